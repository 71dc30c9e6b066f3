/* `kiln pipeline` -- bakes a scene: the stages of pipelines/stages.def, one after the other, in
 * this process (programs.h).
 *
 * The options of all stages are read and checked before the first stage starts, so that a slip in
 * an option of the last stage is reported at once. What a user did not give is not passed on: the
 * stages have defaults and stored parameters, this has none. So what is to be done is known
 * (bake.h) when the first stage runs. `make pipeline` calls this with --make as the first word, and
 * its variables as they were typed (MIN_OPACITY=0.02). */
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/quote.h"
#include "stages/engine/json_text.h"
#include "stages/engine/meaning.h"
#include "stages/engine/program.h"
#include "stages/engine/stage_graph.h"
#include "stages/front/bake_commands.h"
#include "stages/front/bake_places.h"
#include "stages/front/bake_report.h"
#include "stages/front/bake_stored.h"
#include "stages/front/bake_targets.h"
#include "stages/front/call_checks.h"
#include "stages/front/chosen_stages.h"
#include "stages/front/front.h"
#include "stages/front/programs.h"
#include "stages/front/stage_calls.h"
#include "stages/products/stale_products.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kiln_bake_options o;

/* clang-format off */
#define OWN_ROWS \
    KILN_OPTION_PATH("out", &o.out, "DIR", \
                     "folder of the bake; default: bake/ in the folder of the scene, or NAME.bake beside its file", .letter = 'o'), \
    KILN_OPTION_TEXT("stages", &o.stages, "LIST", \
                     "run only these stages, such as prune,chunk; the next run without it redoes what depends on them"), \
    KILN_OPTION_BOOL("demo", &o.demo, \
                     "make a demo scene and bake it; SCENE is then its folder, " KILN_DEMO_FOLDER " where none is given"), \
    KILN_OPTION_BOOL("lod", &o.lod, \
                     "also make levels of detail (kiln-lod); a bake that has them keeps them up to date without this"), \
    KILN_OPTION_BOOL("report", &o.report, "write report.html, the bake as one page to look at, when all stages are done", \
                     .def = "yes", .brief = "write report.html, the bake as a page to look at"), \
    KILN_OPTION_BOOL("print-commands", &o.print_commands, \
                     "print the command of each stage and of the report, quoted for a shell, and run none of them", .brief = "print the command of each stage, run none")
/* clang-format on */

static const kiln_opt own_rows[] = {OWN_ROWS, KILN_OPTION_END};
/* make has no positionals: SCENE is a variable, too */
static const kiln_opt make_rows[] = {
    OWN_ROWS,
    KILN_OPTION_PATH("scene", &o.scene, "PATH", "what to bake"),
    KILN_OPTION_END,
};

static kiln_pipeline_table table;
static kiln_cli cli;

/* ---- the table and its help ------------------------------------------------------------------ */

static void help_section(const char *title, int section, bool all, FILE *out)
{
    kiln_opt *rows;
    size_t n = 0;
    if (KILN_ALLOC(&rows, table.n + 1, "a part of the help", NULL) != KILN_OK) return;
    for (size_t i = 0; i < table.n; i++)
        if (table.section[i] == section) rows[n++] = table.rows[i];
    kiln_cli_help_rows(title, rows, all, out);
    free(rows);
}

static void help_pipeline_command(const kiln_cli *c, bool all, FILE *out)
{
    char title[80];
    (void)fprintf(out, "Usage: %s %s [options]\n\n", c->program, c->positionals);
    kiln_cli_wrap("Bakes a scene: a folder or a file with Gaussians or points, cameras and photos. "
                  "The result is a folder: "
                  "manifest.db, report.html (the bake as a page), renders/ (a picture of each "
                  "camera) and export/ (the scene for "
                  "other renderers). A second run redoes only what has changed; after a crash, it "
                  "continues where it stopped.",
                  0, out);
    help_section("Options", KILN_SECTION_OWN, all, out);
    if (!all) {
        (void)fputc('\n', out);
        (void)snprintf(title, sizeof title, "%s", kiln_profile_names + 1);
        (void)fprintf(out,
                      "Of its stages' options:\n"
                      "      --export FORMATS      what export/ holds: ply,spz,sog,html,lod ...\n"
                      "  -p, --profile NAME        %s\n"
                      "      --devices LIST        compute there: cpu, all, cuda:0 ...\n\n",
                      title);
        kiln_cli_wrap("It takes all options of the stages, which are stored in the manifest "
                      "as usual. kiln help STAGE lists "
                      "those of one stage, --help-all those of all; some need the stage's name in "
                      "front (--export-format).",
                      0, out);
        return;
    }
    help_section("Options of several stages", KILN_SECTION_SHARED, all, out);
    for (size_t s = 0; s < table.n_stages; s++) {
        (void)snprintf(title, sizeof title, "Options of %.50s", table.stage[s].stage);
        help_section(title, (int)s, all, out);
    }
    (void)fputc('\n', out);
    kiln_cli_wrap("* What is given here is stored in the manifest and used by later runs too.", 2,
                  out);
    kiln_cli_wrap("To give an option to one stage alone, put the stage's name in front: "
                  "--prune-min-opacity, --render-threads.",
                  0, out);
    kiln_cli_help_rows("Others", kiln_print_options, all, out);
}

static const char *const notes[] = {
    "The stages run one after the other. The first that fails ends the bake, and kiln pipeline "
    "ends with its exit code; run the "
    "same command to continue from there.",
    "At the end kiln-report writes report.html into the folder of the bake, unless --stages or "
    "--no-report is given or nothing has "
    "changed since. The bake succeeds even if the report cannot be written.",
    "An option goes to each stage that has it. With the name of a stage in front, as in "
    "--prune-min-opacity, it goes to that stage "
    "alone. Options that mean different things to different stages have only such names: "
    "--render-format, --export-format.",
    NULL};

static kiln_status make_pipeline_cli(bool from_make, kiln_cli *out, kiln_pipeline_table *t,
                                     kiln_error *err)
{
    KILN_TRY(kiln_pipeline_table_make(from_make ? make_rows : own_rows, t, err));
    *out = (kiln_cli){.program = KILN_PIPELINE,
                      .summary = "bakes a scene: all stages, one after the other",
                      .positionals = "SCENE",
                      .n_optional = 1,
                      .tables_note = notes,
                      .options = t->rows,
                      .common = kiln_print_options,
                      .help = help_pipeline_command,
                      .from_make = from_make};
    return KILN_OK;
}

kiln_status kiln_front_pipeline_cli(kiln_cli *out, kiln_pipeline_table *t, kiln_error *err)
{
    return make_pipeline_cli(false, out, t, err);
}

/* ---- the command line ------------------------------------------------------------------------ */

/* MIN_OPACITY=0.02, a variable of make, to --min-opacity=0.02; NULL for a variable without a value,
 * which make's user did not set. Other words stay. */
static kiln_status from_variable(char *word, char **out, kiln_error *err)
{
    char *equals = strchr(word, '=');
    *out = word;
    if (word[0] == '-' || !equals) return KILN_OK;
    *out = NULL;
    if (!equals[1]) return KILN_OK;
    const size_t n = strlen(word) + 3;
    KILN_TRY(KILN_ALLOC(out, n, "a variable of make", err)); /* kept: argv borrows it */
    (void)snprintf(*out, n, "--%s", word);
    for (char *c = *out + 2; *c != '='; c++)
        *c = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
    return KILN_OK;
}

static kiln_status read_variables(int *argc, char **argv, kiln_error *err)
{
    int n = 1;
    for (int i = 2; i < *argc; i++) {
        char *word;
        KILN_TRY(from_variable(argv[i], &word, err));
        if (word) argv[n++] = word;
    }
    argv[n] = NULL;
    *argc = n;
    return KILN_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

/* " (bad input)"; "" for a code that is none of ours. */
static const char *meaning_of(int code, char buf[160])
{
    char text[128];
    kiln_exit_text(code, text, sizeof text);
    (void)snprintf(buf, 160, *text ? " (%s)" : "%s", text);
    return buf;
}

/* Always said: make turns every exit code into 2, and its user finds the program's here. */
static void say_end(const char *program, int code, int signal)
{
    char meaning[160];
    if (signal)
        (void)fprintf(stderr, KILN_PIPELINE ": kiln-%s was ended by signal %d (%s)\n", program,
                      signal, strsignal(signal));
    else
        (void)fprintf(stderr, KILN_PIPELINE ": kiln-%s ended with exit code %d%s\n", program, code,
                      meaning_of(code, meaning));
}

static bool wants_report(void) { return o.report && !o.stages; }

static bool is_yes(const char *name)
{
    char text[KILN_PATH_MAX];
    for (size_t i = 0; i < table.n; i++)
        if (!strcmp(table.rows[i].name, name))
            return !strcmp(kiln_opt_text(&table.rows[i], text, sizeof text), "yes");
    return false;
}

static kiln_status run_program(const char *name, const char **argv, bool quiet, int *code,
                               kiln_error *err)
{
    int signal;
    if (kiln_log_get() == KILN_LOG_VERBOSE) {
        (void)fprintf(stderr, KILN_PIPELINE ": kiln-%s", name);
        for (size_t i = 1; argv[i]; i++) (void)fprintf(stderr, " %s", argv[i]);
        (void)fputc('\n', stderr);
    }
    KILN_TRY(kiln_program_run(name, argv, quiet, code, &signal, err));
    if (*code) say_end(name, *code, signal);
    return KILN_OK;
}

/* Made under another name first: what stands under its own is whole, and is used as it is. */
static kiln_status make_demo(const char *given, int *code, kiln_error *err)
{
    char unfinished[KILN_PATH_MAX], dir[KILN_PATH_MAX];
    if (kiln_is_dir(given)) return KILN_OK;
    KILN_TRY(kiln_path_join(dir, sizeof dir, "", given, err));
    for (size_t n = strlen(dir); n > 1 && dir[n - 1] == '/';) dir[--n] = '\0';
    kiln_leftover_folders_drop(dir);
    KILN_TRY(kiln_temporary_path(dir, unfinished, err));
    const char *argv[] = {NULL, "demo", unfinished, "--quiet", NULL};
    KILN_TRY(run_program("generate", argv, true, code, err));
    if (*code) return KILN_OK;
    if (rename(unfinished, dir) != 0)
        return kiln_fail(err, KILN_E_IO, "cannot rename '%s' to '%s': %s", unfinished, dir,
                         strerror(errno));
    kiln_say("made a demo scene in %s", dir);
    return KILN_OK;
}

/* --devices of the last stage behind this one that computes where that says; NULL: there is none.
 * Stages that pack, and those that run many units at a time on the CPU, mostly do not. */
static const char *devices_behind(const kiln_bake *b, size_t s)
{
    const char *devices = NULL;
    while (++s < table.n_stages) {
        const kiln_stage_program *p =
            b->runs[s] ? kiln_stage_program_find(table.stage[s].stage) : NULL;
        if (p && p->unit && !(p->flags & (KILN_PROGRAM_PACKS | KILN_PROGRAM_SERIAL)))
            devices = b->call[s].devices;
    }
    return devices;
}

static bool runs_behind(const kiln_bake *b, size_t s)
{
    while (++s < table.n_stages)
        if (b->runs[s]) return true;
    return false;
}

/* Time left is told by each stage, beside its own progress. The report takes time, too. */
static void plan_time(kiln_bake *b)
{
    const char *names[KILN_STAGES_MAX + 1];
    bool runs[KILN_STAGES_MAX + 1];
    size_t n = 0;
    for (; n < table.n_stages; n++) {
        names[n] = table.stage[n].stage;
        runs[n] = b->runs[n];
    }
    names[n] = "report";
    runs[n++] = wants_report();
    kiln_time_left_init(&b->left, n, names, runs, b->manifest);
}

static kiln_status run_pipeline_stage(kiln_bake *b, size_t s, int *code, kiln_error *err)
{
    const bool tells = b->level != KILN_LOG_QUIET;
    KILN_TRY(kiln_program_stopped(err));
    kiln_program_keep_workers(runs_behind(b, s));
    kiln_program_expect(devices_behind(b, s));
    if (tells) kiln_time_left_begin(&b->left, s);
    const kiln_status st = run_program(table.stage[s].stage, b->call[s].argv, false, code, err);
    kiln_log_init(KILN_PIPELINE, b->level);
    if (tells) kiln_time_left_end(&b->left, s);
    return st;
}

/* The first stages bring what options name: cameras, chunks. */
static kiln_status check_stage_names(const kiln_bake *b, size_t s, kiln_error *err)
{
    const kiln_status st = kiln_stage_names_check(b, table.stage[s].stage, err);
    kiln_log_init(KILN_PIPELINE, b->level);
    return st;
}

static kiln_status run_stages(kiln_bake *b, int *code, kiln_error *err)
{
    if (b->level != KILN_LOG_QUIET) plan_time(b);
    for (size_t s = 0; s < table.n_stages; s++) {
        const kiln_stage_call *c = &b->call[s];
        if (!b->runs[s]) continue;
        KILN_TRY(run_pipeline_stage(b, s, code, err));
        if (*code == 0) KILN_TRY(check_stage_names(b, s, err));
        if (*code == 0) continue;
        if (*code != kiln_exit_code(KILN_E_PARTIAL) || !c->allows_partial) return KILN_OK;
        const size_t at = strlen(b->partial);
        (void)snprintf(b->partial + at, sizeof b->partial - at, " kiln-%s", table.stage[s].stage);
        *code = 0;
    }
    if (b->partial[0]) *code = kiln_exit_code(KILN_E_PARTIAL);
    return KILN_OK;
}

/* ---- the report ------------------------------------------------------------------------------ */

/* The command of the report, its program first. */
static kiln_status add_report_words(const kiln_bake *b, kiln_words *out, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    KILN_TRY(kiln_program_path("report", path, err));
    KILN_TRY(kiln_words_add(out, path, err));
    KILN_TRY(kiln_words_add(out, b->manifest, err));
    KILN_TRY(kiln_words_add(out, "--quiet", err));
    if (is_yes("allow-network-fs")) KILN_TRY(kiln_words_add(out, "--allow-network-fs", err));
    return is_yes("overwrite") ? kiln_words_add(out, "--overwrite", err) : KILN_OK;
}

static kiln_status make_report(const kiln_bake *b, kiln_error *err)
{
    kiln_words words = {0};
    kiln_status st = wants_report() ? add_report_words(b, &words, err) : KILN_OK;
    if (st == KILN_OK) st = kiln_bake_report_make(&words, b->manifest, b->out, err);
    kiln_words_release(&words);
    return st;
}

/* Behind the commands of the stages. */
static kiln_status print_report_command(const kiln_bake *b, kiln_error *err)
{
    kiln_words words = {0};
    kiln_buffer line = {0};
    kiln_status st = wants_report() ? add_report_words(b, &words, err) : KILN_OK;
    for (size_t i = 0; i < words.n && st == KILN_OK; i++) {
        if (i) st = kiln_buffer_put(&line, " ", 1, err);
        if (st == KILN_OK) st = kiln_word_quote(&line, words.word[i], err);
    }
    if (st == KILN_OK && line.size) (void)printf("%.*s\n", (int)line.size, (const char *)line.data);
    kiln_buffer_release(&line);
    kiln_words_release(&words);
    return st;
}

/* Said at the end, where what the bake is of is looked for; each stage has said it before it began,
 * too. */
static void say_stored(const kiln_bake *b)
{
    if (!b->stored.size) return;
    kiln_say("stored options in force until --reset: %s", (const char *)b->stored.data);
}

/* Nothing is dropped without being asked for: what is left of before is named. */
static void say_stale_products(const kiln_bake *b)
{
    kiln_manifest *m;
    kiln_stale_list list;
    char text[1024];
    if (!kiln_is_file(b->manifest) ||
        kiln_manifest_open(b->manifest, KILN_OPEN_READ, "pipeline", true, &m, NULL) != KILN_OK)
        return;
    if (kiln_stale_products_get(m, &list, NULL) == KILN_OK && list.n > 0) {
        kiln_stale_products_text(&list, text);
        kiln_say("%s; kiln gc %s removes those that nobody has changed", text, b->manifest);
    }
    kiln_stale_list_release(&list);
    kiln_manifest_close(m);
}

enum { SHORT = 100 /* of what this very run has said in full */ };
static int64_t begun_ns; /* kiln_wall_ns of this run */

/* Length of the whole words of a text that fit. */
static int words_within(const char *text, int most)
{
    int n = most;
    while (n > 0 && text[n] != ' ') n--;
    while (n > 0 && strchr(" ,;:", text[n - 1])) n--;
    return n ? n : most;
}

/* What a stage said when it made its output, which may be long ago, and which a reader of the last
 * lines alone would miss. */
static void say_heading(bool *headed)
{
    if (!*headed) kiln_say("Warnings that affect these results:");
    *headed = true;
}

static void say_meaning_of(kiln_manifest *m, const char *stage, bool *headed)
{
    kiln_run_row row;
    bool found;
    json_t *report = NULL;
    const char *sentence;
    if (kiln_run_row_last(m, stage, &found, &row, NULL) != KILN_OK || !found) return;
    if (kiln_json_parse(row.counters, strlen(row.counters), 0, "a run", &report, NULL, NULL) ==
        KILN_OK)
        for (size_t i = 0; (sentence = kiln_meaning_get(report, i)); i++) {
            say_heading(headed);
            if (row.start_ns >= begun_ns && strlen(sentence) > SHORT)
                kiln_warn("  %s: %.*s ... (see above)", stage, words_within(sentence, SHORT),
                          sentence);
            else
                kiln_warn("  %s: %s", stage, sentence);
        }
    json_decref(report);
    kiln_run_row_release(&row);
}

static void say_meaning(const kiln_bake *b)
{
    kiln_manifest *m;
    bool headed = false;
    if (*kiln_meaning_passed_on()) {
        say_heading(&headed);
        kiln_warn("  import: %s", kiln_meaning_passed_on());
    }
    if (!kiln_is_file(b->manifest) ||
        kiln_manifest_open(b->manifest, KILN_OPEN_READ, "pipeline", true, &m, NULL) != KILN_OK)
        return;
    for (size_t s = 0; s < b->table->n_stages; s++)
        say_meaning_of(m, b->table->stage[s].stage, &headed);
    kiln_manifest_close(m);
}

static void say_place(const kiln_bake *b, const char *what, const char *stage, const char *folder)
{
    char path[KILN_PATH_MAX];
    if (*stage && !kiln_bake_runs(b, stage)) return;
    if (kiln_path_join(path, sizeof path, b->out, folder, NULL) == KILN_OK &&
        (kiln_is_dir(path) || kiln_is_file(path)))
        kiln_print("%-9s %s", what, path);
}

static void say_next(const kiln_bake *b)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+-";
    const bool bare = !b->manifest[strspn(b->manifest, plain)];
    kiln_buffer word = {0};
    if (bare)
        kiln_print("look:     kiln serve %s", b->manifest);
    else if (kiln_word_quote(&word, b->manifest, NULL) == KILN_OK)
        kiln_print("look:     kiln serve %.*s", (int)word.size, (const char *)word.data);
    kiln_buffer_release(&word);
}

/* stdout is for results: with --json those are the stages' documents, with --quiet there are
 * none. */
static void say_places(const kiln_bake *b)
{
    if (is_yes("json") || is_yes("quiet")) return;
    say_place(b, "baked:", "", "manifest.db");
    if (wants_report()) say_place(b, "report:", "", "report.html");
    say_place(b, "pictures:", "render", "renders");
    say_place(b, "export:", "export", "export");
    if (kiln_is_file(b->manifest)) say_next(b);
}

/* Everything that is known before the first stage runs. */
static kiln_status prepare_bake(const kiln_parsed *parsed, kiln_bake *b, kiln_error *err)
{
    begun_ns = kiln_wall_ns();
    b->asked = &o;
    b->own_rows = own_rows;
    b->table = &table;
    b->cli = &cli;
    b->level = is_yes("quiet")     ? KILN_LOG_QUIET
               : is_yes("verbose") ? KILN_LOG_VERBOSE
                                   : KILN_LOG_NORMAL;
    kiln_log_init(cli.program, b->level);
    KILN_TRY(kiln_chosen_stages_begin(b, err));
    KILN_TRY(kiln_bake_places(parsed, b, err));
    KILN_TRY(kiln_chosen_stages_end(b, err));
    KILN_TRY(kiln_stage_calls_make(b, err));
    /* what was given is forgotten when the stages' own options are read */
    if (!o.print_commands) KILN_TRY(kiln_bake_targets_check(b, is_yes("overwrite"), err));
    if (!o.print_commands) KILN_TRY(kiln_bake_stored(b, err));
    KILN_TRY(kiln_stage_calls_check(b, err));
    kiln_log_init(cli.program, b->level);
    return KILN_OK;
}

static kiln_status run_bake(const kiln_parsed *parsed, kiln_bake *b, int *code, kiln_error *err)
{
    KILN_TRY(prepare_bake(parsed, b, err));
    if (o.demo) KILN_TRY(make_demo(b->scene, code, err));
    if (*code == 0 && o.print_commands) {
        KILN_TRY(kiln_stage_calls_print(b, err));
        return print_report_command(b, err);
    }
    if (*code == 0) KILN_TRY(run_stages(b, code, err));
    if (*code == 0 || b->partial[0]) KILN_TRY(make_report(b, err));
    if (*code == 0) say_stale_products(b);
    if (*code == 0) say_places(b);
    if (*code == 0 || b->partial[0]) say_meaning(b);
    if (*code == 0 || b->partial[0]) say_stored(b);
    if (b->partial[0] && *code == kiln_exit_code(KILN_E_PARTIAL))
        return kiln_fail(err, KILN_E_PARTIAL,
                         "baked in part: %s lacks units that%s gave up; run the same command to "
                         "try them again; kiln info names them",
                         b->manifest, b->partial);
    return KILN_OK;
}

static kiln_status run_pipeline(const kiln_parsed *parsed, char *const *words, int *code,
                                kiln_error *err)
{
    static kiln_bake b; /* too big for the stack */
    b.words = words;
    const kiln_status st = run_bake(parsed, &b, code, err);
    kiln_program_stop_workers(); /* a last stage that ran has done so */
    kiln_stage_calls_release(&b);
    kiln_buffer_release(&b.stored);
    return st;
}

static kiln_status parse_and_run(int argc, char **argv, int *code, kiln_error *err)
{
    kiln_parsed parsed;
    const bool from_make = argc > 1 && !strcmp(argv[1], "--make");
    KILN_TRY(make_pipeline_cli(from_make, &cli, &table, err));
    if (from_make) KILN_TRY(read_variables(&argc, argv, err));
    KILN_TRY(kiln_cli_parse(&cli, argc, argv, &parsed, err));
    return parsed.done ? KILN_OK : run_pipeline(&parsed, argv + 1, code, err);
}

kiln_status kiln_front_pipeline(int argc, char **argv, int *code, kiln_error *err)
{
    const kiln_status st = parse_and_run(argc, argv, code, err);
    kiln_pipeline_table_release(&table);
    return st;
}

/* ---- the commands alone, for `kiln slurm` ---------------------------------------------------- */

enum { GUEST_ROWS_MAX = 32 };

static kiln_status make_guest_cli(const kiln_bake_guest *g, bool from_make, kiln_error *err)
{
    static kiln_opt rows[GUEST_ROWS_MAX];
    size_t n = 0;
    for (const kiln_opt *row = from_make ? make_rows : own_rows; row->name; row++) rows[n++] = *row;
    for (const kiln_opt *row = g->rows; row->name; row++) {
        if (n + 1 == GUEST_ROWS_MAX)
            return kiln_fail(err, KILN_E_BUG, "%s has too many options", g->program);
        rows[n++] = *row;
    }
    rows[n] = (kiln_opt){.name = NULL};
    KILN_TRY(kiln_pipeline_table_make(rows, &table, err));
    cli = (kiln_cli){.program = g->program,
                     .positionals = "SCENE",
                     .n_optional = 1,
                     .options = table.rows,
                     .common = kiln_print_options,
                     .help = g->help,
                     .from_make = from_make};
    return KILN_OK;
}

static kiln_status copy_command(const kiln_bake *b, size_t s, kiln_bake_commands *out,
                                kiln_error *err)
{
    char path[KILN_PATH_MAX];
    const kiln_stage_call *call = &b->call[s];
    kiln_stage_command *c = &out->stage[out->n++];
    /* a name that stays when the table goes */
    const kiln_stage_info *info = kiln_stage_find(b->table->stage[s].stage);
    *c = (kiln_stage_command){.stage = info->name, .allows_partial = call->allows_partial};
    KILN_TRY(kiln_program_path(c->stage, path, err));
    KILN_TRY(kiln_words_add(&c->words, path, err));
    for (size_t i = 1; i < call->n; i++) KILN_TRY(kiln_words_add(&c->words, call->argv[i], err));
    return KILN_OK;
}

static kiln_status copy_commands(kiln_bake *b, kiln_bake_commands *out, kiln_error *err)
{
    (void)snprintf(out->out, sizeof out->out, "%s", b->out);
    (void)snprintf(out->manifest, sizeof out->manifest, "%s", b->manifest);
    (void)snprintf(out->scene, sizeof out->scene, "%s", b->scene ? b->scene : "");
    for (size_t s = 0; s < b->table->n_stages; s++)
        if (b->runs[s]) KILN_TRY(copy_command(b, s, out, err));
    return out->n ? KILN_OK : kiln_fail(err, KILN_E_USAGE, "--stages names no stage");
}

static kiln_status make_commands(const kiln_bake_guest *g, int argc, char **argv,
                                 kiln_bake_commands *out, kiln_error *err)
{
    static kiln_bake b; /* too big for the stack */
    kiln_parsed parsed;
    int code = 0;
    const bool from_make = argc > 1 && !strcmp(argv[1], "--make");
    KILN_TRY(make_guest_cli(g, from_make, err));
    if (from_make) KILN_TRY(read_variables(&argc, argv, err));
    KILN_TRY(kiln_cli_parse(&cli, argc, argv, &parsed, err));
    out->printed = parsed.done;
    if (parsed.done) return KILN_OK;
    KILN_TRY(g->check(&cli, err));
    const bool reports = wants_report();
    if (g->stages) o.stages = g->stages;
    b.words = argv + 1;
    /* another host may run them: what this machine has and lacks says nothing */
    o.print_commands = true;
    kiln_status st = prepare_bake(&parsed, &b, err);
    if (st == KILN_OK && o.demo && g->makes_demo()) st = make_demo(b.scene, &code, err);
    if (st == KILN_OK && code) st = kiln_fail(err, KILN_E_IO, "the demo scene was not made");
    if (st == KILN_OK) st = copy_commands(&b, out, err);
    if (st == KILN_OK && reports) st = add_report_words(&b, &out->report, err);
    kiln_stage_calls_release(&b);
    return st;
}

kiln_status kiln_bake_commands_make(const kiln_bake_guest *g, int argc, char **argv,
                                    kiln_bake_commands *out, kiln_error *err)
{
    *out = (kiln_bake_commands){0};
    const kiln_status st = make_commands(g, argc, argv, out, err);
    kiln_pipeline_table_release(&table);
    return st;
}

void kiln_bake_commands_release(kiln_bake_commands *c)
{
    for (size_t s = 0; s < c->n; s++) kiln_words_release(&c->stage[s].words);
    kiln_words_release(&c->report);
    c->n = 0;
}
