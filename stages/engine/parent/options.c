/* The options that the engine adds: some to every stage, some to programs with a manifest, some to
 * programs with units. */
#include "stages/engine/parent/options.h"

#include "stages/engine/devices/devices.h"
#include "stages/engine/parent/selection.h"
#include "stages/engine/stage_graph.h"

#include <string.h>

kiln_engine_options kiln_engine_values;

static const kiln_opt network_row =
    KILN_OPTION_BOOL("allow-network-fs", &kiln_engine_values.allow_network,
                     "also work on a manifest on a network file system");

static const kiln_opt stage_rows[] = {
    KILN_OPTION_BOOL("force", &kiln_engine_values.force,
                     "compute again and compare with what is stored; if a unit differs, delete it "
                     "and end with 70 (74: it "
                     "was damaged); the next --force stores the new result"),
    KILN_OPTION_BOOL("reset", &kiln_engine_values.reset,
                     "forget the stored parameters of this stage first"),
    KILN_OPTION_BOOL("allow-partial", &kiln_engine_values.allow_partial,
                     "continue after stages that finished partially"),
    KILN_OPTION_PATH("scratch-dir", &kiln_engine_values.scratch_dir, "DIR",
                     "folder for data that do not fit into memory (default: beside the manifest), "
                     "and for the copy that --plan and "
                     "--gather use if the manifest is on a network file system"),
};

static const kiln_opt share_rows[] = {
    KILN_OPTION_TEXT("shard", &kiln_engine_values.shard, "I/N",
                     "compute only the I-th of N equal parts of the units, I from 1 to N; then run "
                     "without it to finish"),
    KILN_OPTION_TEXT("units", &kiln_engine_values.units, "LIST",
                     "compute only these units: positions from 0, or names with * and ?, such as "
                     "3,5-9; then run without it to "
                     "finish"),
};

/* Of a stage that leaves no unit to other runs. */
static const kiln_opt shard_row =
    KILN_OPTION_TEXT("shard", &kiln_engine_values.shard, "I/N",
                     "with --part: the I-th of N equal parts of the planned units, I from 1 to N",
                     .flags = KILN_STEP);

static const kiln_opt round_rows[] = {
    KILN_OPTION_BOOL(
        "plan", &kiln_engine_values.plan,
        "for several hosts: compute what all tasks need, and lock other writers out until --gather",
        .flags = KILN_STEP),
    KILN_OPTION_NUMBER("tasks", &kiln_engine_values.tasks, "N",
                       "number of tasks to plan for, now (--plan) or in the next round (--gather); "
                       "0: one, or as many as before",
                       .def = "0", .range = "0..1000000", .flags = KILN_STEP),
    KILN_OPTION_PATH(
        "part", &kiln_engine_values.part, "DIR",
        "compute part --shard I/N of the plan into a file in DIR; the manifest is only read",
        .flags = KILN_STEP),
    KILN_OPTION_PATH("gather", &kiln_engine_values.gather, "DIR",
                     "bring in the parts in DIR, compute what is missing, and go on: to the end, "
                     "or to the next plan",
                     .flags = KILN_STEP),
    KILN_OPTION_BOOL(
        "no-compute", &kiln_engine_values.no_compute,
        "with --gather: if parts are missing, do not compute them; name their tasks and end with 7",
        .flags = KILN_STEP),
    KILN_OPTION_BOOL("remove-parts", &kiln_engine_values.remove_parts,
                     "with --gather: remove the parts once all units of their plan are stored",
                     .flags = KILN_STEP),
    KILN_OPTION_PATH(
        "shared-dir", &kiln_engine_values.shared_dir, "DIR",
        "folder, visible to all hosts, for data that --plan makes for the tasks (default: beside "
        "the manifest); give "
        "the same to --plan, --part and --gather, and the same path of the manifest on all hosts"),
    KILN_OPTION_BOOL("break-claim", &kiln_engine_values.break_claim,
                     "give up the open plan of this manifest, of any stage, and end; with --plan: "
                     "make a new one"),
};

static const kiln_opt unit_rows[] = {
    KILN_OPTION_BOOL("list-gpus", &kiln_engine_values.list_gpus,
                     "list the GPUs here, their numbers for --devices and their memory, and end",
                     .flags = KILN_DEVICE | KILN_ALONE),
    KILN_OPTION_NUMBER("workers", &kiln_engine_values.workers, "N",
                       "number of worker processes; they share the threads on the CPU, or use one "
                       "GPU each; 0: automatic",
                       .def = "0", .range = "0..256", .flags = KILN_DEVICE),
    KILN_OPTION_NUMBER("deadline", &kiln_engine_values.deadline_s, "SECONDS",
                       "end a worker that computes a unit, or starts, for longer than this, and "
                       "try again; 0: no limit for units",
                       .def = "3600", .range = "0..1000000000", .flags = KILN_DEVICE),
};

static const kiln_opt_check checks[] = {{"shard", kiln_shard_check},
                                        {"units", kiln_units_check},
                                        {"devices", kiln_devices_check},
                                        {NULL, NULL}};

enum { COMMON_ROWS_MAX = 64 };
#define N_ROWS(table) (sizeof(table) / sizeof *(table))

typedef struct {
    kiln_opt rows[COMMON_ROWS_MAX]; /* the engine's, then the program's common ones, then the end */
    unsigned n;
} row_list;
static row_list common;

static bool has_row(const kiln_opt *rows, const char *name)
{
    for (; rows && rows->name; rows++)
        if (!strcmp(rows->name, name)) return true;
    return false;
}

static kiln_status add(const kiln_opt *row, kiln_error *err)
{
    if (common.n + 1 == COMMON_ROWS_MAX)
        return kiln_fail(err, KILN_E_BUG, "more than %d common options", COMMON_ROWS_MAX);
    common.rows[common.n++] = *row;
    return KILN_OK;
}

/* Adds rows, except those whose name the program itself uses. */
static kiln_status add_own(const kiln_stage_program *p, const kiln_opt *rows, size_t n,
                           kiln_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (!has_row(p->cli->options, rows[i].name)) KILN_TRY(add(&rows[i], err));
    return KILN_OK;
}

/* Says whether the word is --NAME or --NAME=VALUE of one of these rows. */
static const kiln_opt *row_of(const kiln_opt *rows, size_t n, const char *word)
{
    if (word[0] != '-' || word[1] != '-') return NULL;
    const size_t length = strcspn(word + 2, "=");
    for (size_t i = 0; i < n; i++)
        if (strlen(rows[i].name) == length && !memcmp(rows[i].name, word + 2, length))
            return &rows[i];
    return NULL;
}

kiln_status kiln_engine_options_refuse(const kiln_stage_program *p, int argc, char **argv,
                                       kiln_error *err)
{
    const char *program = p->cli->program;
    if (!kiln_stage_find(p->name)) return KILN_OK;
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        const kiln_opt *share = (p->flags & KILN_PROGRAM_UNDIVIDED)
                                    ? row_of(share_rows, N_ROWS(share_rows), argv[i])
                                    : NULL;
        const kiln_opt *round = (p->flags & KILN_PROGRAM_ROUNDS)
                                    ? NULL
                                    : row_of(round_rows, N_ROWS(round_rows), argv[i]);
        const bool is_for_part =
            share && (p->flags & KILN_PROGRAM_ROUNDS) && !strcmp(share->name, shard_row.name);
        if (share && !is_for_part && !has_row(p->cli->options, share->name))
            return kiln_fail(
                err, KILN_E_USAGE,
                "%s has no --%s: its output cannot be partial, so one run makes all of it", program,
                share->name);
        if (round && !has_row(p->cli->options, round->name) &&
            strcmp(round->name, "break-claim") != 0)
            return kiln_fail(err, KILN_E_USAGE,
                             "%s has no --%s: its work cannot be shared among hosts; run it once, "
                             "without this option",
                             program, round->name);
    }
    return KILN_OK;
}

/* Some programs lack options that others have, and parsing sets only those that a program has. */
void kiln_engine_options_forget(void)
{
    kiln_common_values = (kiln_common){0};
    kiln_engine_values = (kiln_engine_options){0};
}

kiln_status kiln_engine_options_merge(const kiln_stage_program *p, kiln_cli *out, kiln_error *err)
{
    const bool is_stage = kiln_stage_find(p->name);
    common.n = 0;
    if (is_stage) KILN_TRY(add_own(p, stage_rows, N_ROWS(stage_rows), err));
    if (is_stage && !(p->flags & KILN_PROGRAM_UNDIVIDED))
        KILN_TRY(add_own(p, share_rows, N_ROWS(share_rows), err));
    if (is_stage && (p->flags & KILN_PROGRAM_ROUNDS) && (p->flags & KILN_PROGRAM_UNDIVIDED))
        KILN_TRY(add_own(p, &shard_row, 1, err));
    if (is_stage && (p->flags & KILN_PROGRAM_ROUNDS))
        KILN_TRY(add_own(p, round_rows, N_ROWS(round_rows), err));
    if (!(p->flags & KILN_PROGRAM_OPENS_ITSELF) || is_stage)
        KILN_TRY(add_own(p, &network_row, 1, err)); /* kiln-compare reads pictures only */
    if (p->unit) KILN_TRY(add_own(p, unit_rows, N_ROWS(unit_rows), err));
    /* a program without units uses no device, so options about devices would mislead */
    for (const kiln_opt *o = p->cli->common; o && o->name; o++)
        if (p->unit || !(o->flags & KILN_DEVICE)) KILN_TRY(add(o, err));
    common.rows[common.n] = (kiln_opt){0};
    *out = *p->cli;
    out->common = common.rows;
    out->common_checks = checks;
    return KILN_OK;
}
