/* kiln-gc -- drops what no current output of a bake needs, and gives its space back.
 *
 * Layers, units and blobs of earlier runs stay in a manifest until this is run: schema/gc.h says
 * what is kept. Deleting takes no room to speak of; SQLite's VACUUM writes what is kept twice, into
 * a file without a name and into -wal, before the manifest shrinks. So room is looked at first, and
 * where it lacks the deletion stands and the space inside the file is for later runs. */
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/quote.h"
#include "schema/gc.h"
#include "stages/engine/engine.h"
#include "stages/engine/program.h"
#include "stages/engine/json_text.h"
#include "stages/formats/chunks/chunks_index.h"
#include "stages/products/stale_products.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static struct {
    bool dry_run, vacuum, keep_runs;
    const char *scratch_dir;
} o;

static const kiln_opt options[] = {
    KILN_OPTION_BOOL("dry-run", &o.dry_run, "print what would be dropped; change nothing",
                     .letter = 'n', .flags = KILN_ONCE),
    KILN_OPTION_BOOL(
        "keep-runs", &o.keep_runs,
        "keep the records of all runs; default: drop those that the report no longer shows"),
    KILN_OPTION_BOOL(
        "vacuum", &o.vacuum,
        "return free space to the disk; by default only if it is much, with --vacuum in any case",
        .def = "yes"),
    KILN_OPTION_PATH("scratch-dir", &o.scratch_dir, "DIR",
                     "folder for the temporary copy of --vacuum; default: beside the manifest"),
    KILN_OPTION_END,
};

static const char *const notes[] = {
    "It keeps the current outputs of all stages and the units that they were made from, so that a "
    "changed option redoes no more "
    "than before. It keeps finished units of stages that are not complete yet, cameras, images and "
    "parameters. Of each stage it "
    "keeps the record of the run that made its output, with those of tasks on other hosts, and the "
    "newest record. --keep-runs "
    "keeps the records of all runs.",
    "It also removes outdated files of the bake's own folder: pictures of removed cameras, exports "
    "of earlier rows, an earlier "
    "report. A file that was changed since SplatKiln wrote it stays.",
    "A vacuum needs space for two copies of what is kept: one in the scratch folder, one beside "
    "the manifest until the end. If "
    "space is missing, the program ends with 74 after dropping. Later stages use the space inside "
    "the file; kiln-gc --vacuum "
    "returns it to the disk when there is room.",
    NULL,
};

static const kiln_cli cli = {.program = "kiln-gc",
                             .summary =
                                 "drops what no current output needs, and gives its space back",
                             .positionals = "MANIFEST",
                             .n_positionals = 1,
                             .tables_note = notes,
                             .options = options,
                             .common = kiln_common_options};

static const char *const stage_names[] = {
#define STAGE(name, ...) #name,
#include "pipelines/stages.def"
#undef STAGE
};
static const char *const layer_names[] = {
#define LAYER(kind, ...) #kind,
#include "schema/layers.def"
};
enum {
    N_STAGES = sizeof stage_names / sizeof *stage_names,
    N_KINDS = sizeof layer_names / sizeof *layer_names
};

/* What came of the space. */
typedef enum { SPACE_LEFT, SPACE_LITTLE, SPACE_GIVEN_BACK, SPACE_TOO_LITTLE } space_end;
/* "vacuum" of the report */
static const char *const space_words[] = {"no", "not worth it", "done", "no room"};

typedef struct {
    kiln_gc *plan;
    uint64_t file_before, file_now; /* bytes of the file */
    uint64_t free_bytes;            /* inside it, when the rows are dropped */
    uint64_t need;                  /* bytes that vacuum writes in each of its two places */
    /* bytes of the file when no process reads an older state of it */
    uint64_t file_soon;
    space_end end;
    kiln_stale_list stale; /* files that do not follow from the bake */
    uint32_t removed;      /* of these; with --dry-run those that would be */
} collection;

/* ---- files of the bake's folder -------------------------------------------------------------- */
static bool remove_chunk_file(void *folder, const char *name, uint64_t bytes)
{
    char path[KILN_PATH_MAX];
    struct stat s;
    if (kiln_path_join(path, sizeof path, folder, name, NULL) == KILN_OK && lstat(path, &s) == 0 &&
        S_ISREG(s.st_mode) && (uint64_t)s.st_size == bytes)
        /* one that stays is named by its content, and the next export of chunks uses it */
        (void)unlink(path);
    return true;
}

/* The files that an index of chunks names lie beside it, among others'. */
static void remove_chunk_files(const collection *c, const kiln_stale_product *p)
{
    static const char index_name[] = "export/chunks/index.json";
    char path[KILN_PATH_MAX], folder[KILN_PATH_MAX];
    if (!p->unchanged || strcmp(p->path, index_name) != 0) return;
    if (kiln_path_inside(path, sizeof path, c->stale.folder, p->path, "-o", NULL) != KILN_OK)
        return;
    (void)snprintf(folder, sizeof folder, "%.*s", (int)(kiln_path_base(path) - path - 1), path);
    (void)kiln_chunks_index_read(path, remove_chunk_file, folder);
}

static kiln_status remove_files(kiln_run *r, collection *c, kiln_error *err)
{
    for (uint32_t i = 0; i < c->stale.n && o.dry_run; i++)
        c->removed += c->stale.products[i].unchanged;
    if (o.dry_run) return KILN_OK;
    for (uint32_t i = 0; i < c->stale.n; i++) remove_chunk_files(c, &c->stale.products[i]);
    return kiln_stale_products_remove(kiln_run_manifest(r), &c->stale, &c->removed, err);
}

static void print_files(const collection *c)
{
    const uint32_t kept = c->stale.n - c->removed;
    if (c->stale.n == 0) return;
    kiln_print("%-8s  %10" PRIu32 "  %10" PRIu32 "   %s", "files", c->removed, kept,
               kept ? "kept: changed since they were written" : "");
    for (uint32_t i = 0; i < c->stale.n; i++)
        kiln_print("%-8s  %s%s", "", c->stale.products[i].path,
                   c->stale.products[i].unchanged ? "" : " (changed, so kept)");
}

static json_t *files_json(const collection *c)
{
    json_t *all = json_array();
    for (uint32_t i = 0; all && i < c->stale.n; i++) {
        json_t *one = json_pack("{s:o, s:b}", "path", kiln_json_string(c->stale.products[i].path),
                                "removed", (int)c->stale.products[i].unchanged);
        if (json_array_append_new(all, one) == 0) continue;
        json_decref(all);
        return NULL;
    }
    return all;
}

/* ---- the report ------------------------------------------------------------------------------ */
static kiln_status no_memory_for_gc(kiln_error *err)
{
    return kiln_fail(err, KILN_E_NOMEM, "out of memory for the report");
}

static json_t *number(uint64_t v) { return json_integer((json_int_t)v); }

typedef kiln_gc_count count_fn(const kiln_gc *g, const char *name);

/* {"all": 3, "pruned": 1, ...}: names that have none are left out. */
static json_t *gc_counts_json(const kiln_gc *g, count_fn *count, const char *const *names, size_t n,
                              bool dropped)
{
    const kiln_gc_count all = count(g, NULL);
    json_t *out = json_pack("{s:o}", "all", number(dropped ? all.dropped : all.kept));
    for (size_t i = 0; out && i < n; i++) {
        const kiln_gc_count c = count(g, names[i]);
        const uint64_t v = dropped ? c.dropped : c.kept;
        if (v == 0 || json_object_set_new(out, names[i], number(v)) == 0) continue;
        json_decref(out);
        return NULL;
    }
    return out;
}

static json_t *half_json(const kiln_gc *g, bool dropped)
{
    const kiln_gc_count blobs = kiln_gc_blobs(g);
    return json_pack("{s:o, s:o, s:o, s:o}", "layers",
                     gc_counts_json(g, kiln_gc_layers, layer_names, N_KINDS, dropped), "units",
                     gc_counts_json(g, kiln_gc_units, stage_names, N_STAGES, dropped), "runs",
                     gc_counts_json(g, kiln_gc_runs, stage_names, N_STAGES, dropped), "blobs",
                     number(dropped ? blobs.dropped : blobs.kept));
}

static kiln_status fill_report(kiln_run *r, const collection *c, kiln_error *err)
{
    json_t *all =
        json_pack("{s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "dry_run",
                  (int)o.dry_run, "files", files_json(c), "dropped", half_json(c->plan, true),
                  "kept", half_json(c->plan, false), "dropped_bytes",
                  number(kiln_gc_bytes(c->plan)), "dropped_run_bytes",
                  number(kiln_gc_run_bytes(c->plan)), "file_bytes_before", number(c->file_before),
                  "file_bytes", number(c->file_now), "free_bytes", number(c->free_bytes),
                  "vacuum_needs_bytes", number(c->need), "vacuum", space_words[c->end]);
    const int failed = all ? json_object_update(kiln_run_report(r), all) : -1;
    json_decref(all);
    return failed ? no_memory_for_gc(err) : KILN_OK;
}

static void print_names(const kiln_gc *g, count_fn *count, const char *const *names, size_t n)
{
    const char *before = "   ";
    for (size_t i = 0; i < n; i++) {
        const uint64_t dropped = count(g, names[i]).dropped;
        if (dropped == 0) continue;
        kiln_print_part("%s%s %" PRIu64, before, names[i], dropped);
        before = ", ";
    }
    kiln_print_gap();
}

static void print_table(const collection *c)
{
    char text[32], now[32];
    const kiln_gc_count layers = kiln_gc_layers(c->plan, NULL),
                        units = kiln_gc_units(c->plan, NULL), runs = kiln_gc_runs(c->plan, NULL),
                        blobs = kiln_gc_blobs(c->plan);
    kiln_print("%-8s  %10s  %10s", "", o.dry_run ? "would drop" : "dropped",
               o.dry_run ? "would keep" : "kept");
    kiln_print_part("%-8s  %10" PRIu64 "  %10" PRIu64, "layers", layers.dropped, layers.kept);
    print_names(c->plan, kiln_gc_layers, layer_names, N_KINDS);
    kiln_print_part("%-8s  %10" PRIu64 "  %10" PRIu64, "units", units.dropped, units.kept);
    print_names(c->plan, kiln_gc_units, stage_names, N_STAGES);
    kiln_print_part("%-8s  %10" PRIu64 "  %10" PRIu64, "runs", runs.dropped, runs.kept);
    print_names(c->plan, kiln_gc_runs, stage_names, N_STAGES);
    kiln_print("%-8s  %10" PRIu64 "  %10" PRIu64 "   %s", "blobs", blobs.dropped, blobs.kept,
               kiln_size_text(kiln_gc_bytes(c->plan), text));
    print_files(c);
    if (o.dry_run)
        kiln_print("%-8s  %10s", "file", kiln_size_text(c->file_before, text));
    else
        kiln_print("%-8s  %10s before, %s now", "file", kiln_size_text(c->file_before, text),
                   kiln_size_text(c->file_now, now));
}

/* ---- room ------------------------------------------------------------------------------------ */
static kiln_status find_real_folder(const char *path, char out[KILN_PATH_MAX], kiln_error *err)
{
    char *real = realpath(path, NULL), *slash = real ? strrchr(real, '/') : NULL;
    const size_t n = slash ? (size_t)(slash - real) : 0;
    if (!slash || n >= KILN_PATH_MAX) {
        free(real);
        return kiln_fail(err, KILN_E_IO, "cannot find where '%s' is: %s", path, strerror(errno));
    }
    memcpy(out, real, n);
    out[n] = '\0';
    free(real);
    if (n == 0) strcpy(out, "/");
    return KILN_OK;
}

typedef struct {
    char folder[KILN_PATH_MAX];
    dev_t device;
    uint64_t free_bytes;
} place;

static kiln_status look_at_place(place *p, kiln_error *err)
{
    struct statvfs fs;
    struct stat s;
    if (stat(p->folder, &s) != 0 || statvfs(p->folder, &fs) != 0)
        return kiln_fail(err, KILN_E_IO, "cannot access folder '%s': %s", p->folder,
                         strerror(errno));
    p->device = s.st_dev;
    p->free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    return KILN_OK;
}

/* Where the copy goes, and where -wal grows. */
static kiln_status find_places(kiln_run *r, place *beside, place *scratch, kiln_error *err)
{
    KILN_TRY(find_real_folder(kiln_manifest_path(kiln_run_manifest(r)), beside->folder, err));
    memcpy(scratch->folder, beside->folder, sizeof scratch->folder);
    /* checked before anything was dropped */
    if (o.scratch_dir) strcpy(scratch->folder, o.scratch_dir);
    KILN_TRY(look_at_place(beside, err));
    return look_at_place(scratch, err);
}

static kiln_status refuse_vacuum(const place *p, uint64_t need, bool both, kiln_error *err)
{
    char need_text[32], free_text[32];
    return kiln_fail(err, KILN_E_IO,
                     "vacuum needs %s in '%s'%s, but %s are free; unneeded data are dropped, and "
                     "later stages use their space; "
                     "kiln-gc --vacuum returns it to the disk when there is room%s",
                     kiln_size_text(need, need_text), p->folder,
                     both ? " (twice what is kept)" : "", kiln_size_text(p->free_bytes, free_text),
                     both ? ", half of it with --scratch-dir on another disk" : "");
}

/* SQLite writes what is kept into both places. KILN_E_IO with the numbers where there is too
 * little. */
static kiln_status check_vacuum_space(const place *beside, const place *scratch, uint64_t need,
                                      kiln_error *err)
{
    if (beside->device == scratch->device)
        return 2 * need <= beside->free_bytes ? KILN_OK
                                              : refuse_vacuum(beside, 2 * need, true, err);
    if (need > beside->free_bytes) return refuse_vacuum(beside, need, false, err);
    return need > scratch->free_bytes ? refuse_vacuum(scratch, need, false, err) : KILN_OK;
}

static void say_need(const place *beside, const place *scratch, uint64_t need)
{
    char need_text[32], free_text[32], scratch_text[32];
    if (beside->device == scratch->device)
        kiln_say("vacuum temporarily %s %s in '%s', where %s are free",
                 o.dry_run ? "would need" : "needs", kiln_size_text(2 * need, need_text),
                 beside->folder, kiln_size_text(beside->free_bytes, free_text));
    else
        kiln_say("vacuum temporarily %s %s in '%s', where %s are free, and as much in '%s', where "
                 "%s are free",
                 o.dry_run ? "would need" : "needs", kiln_size_text(need, need_text),
                 beside->folder, kiln_size_text(beside->free_bytes, free_text), scratch->folder,
                 kiln_size_text(scratch->free_bytes, scratch_text));
}

/* ---- the work -------------------------------------------------------------------------------- */
/* A sixteenth of the file, or any when it was asked for: less is not worth writing all of the rest
 * twice. */
static bool is_worth(uint64_t free_bytes, uint64_t file_bytes)
{
    enum { LEAST = 1 << 20, SHARE = 16 };
    if (!o.vacuum || free_bytes == 0) return false;
    return kiln_opt_given(&cli, "vacuum") ||
           (free_bytes >= LEAST && free_bytes * SHARE >= file_bytes);
}

/* -wal has a few bytes beside each page. */
static uint64_t space_for(uint64_t kept_bytes)
{
    return kept_bytes + kept_bytes / 1024 + (1 << 20);
}

static kiln_status interrupted(void *run, kiln_error *err)
{
    const kiln_status st = kiln_run_interrupted(run, NULL);
    if (st == KILN_OK) return KILN_OK;
    return kiln_fail(err, st,
                     "%s; what was dropped stays dropped; run the same command to continue",
                     kiln_status_text(st));
}

static bool drops_any(const kiln_gc *g)
{
    return kiln_gc_layers(g, NULL).dropped || kiln_gc_units(g, NULL).dropped ||
           kiln_gc_runs(g, NULL).dropped || kiln_gc_blobs(g).dropped;
}

static kiln_status drop_unneeded(kiln_run *r, kiln_gc *g, kiln_error *err)
{
    kiln_progress progress;
    kiln_status st = KILN_OK;
    uint64_t done = 0;
    bool more = drops_any(g);
    kiln_progress_start(&progress, "dropping", "MiB", kiln_gc_bytes(g) >> 20);
    while (more && st == KILN_OK) {
        st = interrupted(r, err);
        if (st == KILN_OK) st = kiln_gc_step(g, &more, err);
        kiln_progress_add(&progress, (kiln_gc_bytes_done(g) >> 20) - done);
        done = kiln_gc_bytes_done(g) >> 20;
    }
    kiln_progress_stop(&progress);
    return st;
}

static kiln_status file_size(kiln_run *r, uint64_t *out, kiln_error *err)
{
    kiln_file_info info;
    KILN_TRY(kiln_file_stat(kiln_manifest_path(kiln_run_manifest(r)), &info, err));
    *out = info.size;
    return KILN_OK;
}

/* c->end is NO_ROOM where this fails for want of it. */
static kiln_status give_back(kiln_run *r, collection *c, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    kiln_space space;
    place beside, scratch;
    KILN_TRY(kiln_manifest_space(m, &space, err));
    c->free_bytes = space.free_bytes;
    c->need = space_for(space.file_bytes - space.free_bytes);
    if (!o.vacuum || space.free_bytes == 0) return KILN_OK;
    c->end = SPACE_LITTLE;
    if (!is_worth(space.free_bytes, space.file_bytes)) return KILN_OK;
    c->end = SPACE_TOO_LITTLE;
    KILN_TRY(find_places(r, &beside, &scratch, err));
    KILN_TRY(check_vacuum_space(&beside, &scratch, c->need, err));
    say_need(&beside, &scratch, c->need);
    KILN_TRY(kiln_manifest_vacuum(m, scratch.folder, interrupted, r, err));
    c->end = SPACE_GIVEN_BACK;
    KILN_TRY(kiln_manifest_space(m, &space, err));
    c->file_soon = space.file_bytes;
    c->free_bytes = space.free_bytes;
    return KILN_OK;
}

/* What vacuum would need is known but for how blobs share pages. */
static kiln_status predict(kiln_run *r, collection *c, kiln_error *err)
{
    kiln_space space;
    place beside, scratch;
    KILN_TRY(kiln_manifest_space(kiln_run_manifest(r), &space, err));
    const uint64_t dropped = kiln_gc_bytes(c->plan) + kiln_gc_run_bytes(c->plan),
                   held = space.file_bytes - space.free_bytes;
    c->free_bytes = space.free_bytes + (dropped < held ? dropped : held);
    c->need = space_for(space.file_bytes - c->free_bytes);
    c->end = is_worth(c->free_bytes, space.file_bytes) ? SPACE_LEFT : SPACE_LITTLE;
    if (!is_worth(c->free_bytes, space.file_bytes)) return KILN_OK;
    KILN_TRY(find_places(r, &beside, &scratch, err));
    say_need(&beside, &scratch, c->need);
    return KILN_OK;
}

/* A second failure to say what was dropped would hide the first. */
static kiln_status report_gc(kiln_run *r, collection *c, kiln_status st, kiln_error *err)
{
    char text[32];
    kiln_status reported = file_size(r, &c->file_now, st == KILN_OK ? err : NULL);
    if (reported == KILN_OK) reported = fill_report(r, c, st == KILN_OK ? err : NULL);
    const bool nothing = !drops_any(c->plan) && c->stale.n == 0 && c->end != SPACE_GIVEN_BACK;
    if (nothing && st == KILN_OK) kiln_say("nothing to do: all data are needed");
    if (!nothing && kiln_run_prints(r)) print_table(c);
    if (!o.dry_run && c->end != SPACE_GIVEN_BACK && c->end != SPACE_TOO_LITTLE && c->free_bytes > 0)
        kiln_say("%s inside the file are free for later stages; --vacuum returns them to the disk",
                 kiln_size_text(c->free_bytes, text));
    if (c->end == SPACE_GIVEN_BACK && c->file_now > c->file_soon)
        kiln_say("the file shrinks to %s when the programs that read it now have ended",
                 kiln_size_text(c->file_soon, text));
    return st == KILN_OK ? reported : st;
}

static kiln_status collect_garbage(kiln_run *r, collection *c, kiln_error *err)
{
    if (o.scratch_dir && (!kiln_is_dir(o.scratch_dir) || strlen(o.scratch_dir) >= KILN_PATH_MAX))
        return kiln_fail(err, KILN_E_USAGE, "--scratch-dir takes a folder that exists, not '%s'",
                         o.scratch_dir);
    KILN_TRY(file_size(r, &c->file_before, err));
    KILN_TRY(kiln_stale_products_get(kiln_run_manifest(r), &c->stale, err));
    KILN_TRY(remove_files(r, c, err)); /* before the units that describe them */
    KILN_TRY(kiln_gc_plan(kiln_run_manifest(r), &c->plan, err));
    if (o.keep_runs) kiln_gc_keep_runs(c->plan);
    if (!o.dry_run) KILN_TRY(drop_unneeded(r, c->plan, err));
    return report_gc(r, c, o.dry_run ? predict(r, c, err) : give_back(r, c, err), err);
}

static kiln_status run_gc(kiln_run *r, kiln_error *err)
{
    collection c = {0};
    const kiln_status st = collect_garbage(r, &c, err);
    kiln_gc_free(c.plan);
    kiln_stale_list_release(&c.stale);
    return st;
}

static const kiln_stage_program program = {.name = "gc",
                                           .cli = &cli,
                                           .open = KILN_OPEN_WRITE,
                                           .flags = KILN_PROGRAM_WATCHES,
                                           .run = run_gc};

int main(int argc, char **argv) { return kiln_program_main(&program, argc, argv); }
