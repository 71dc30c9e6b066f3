/* kiln-verify -- checks a manifest from the inside (every hash, count, bound, reference), or prints
 * what two bakes are compared by. Reads only; a writer may go on meanwhile. */
#include "base/log.h"
#include "base/memory.h"
#include "base/quote.h"
#include "stages/engine/devices/devices.h"
#include "stages/engine/engine.h"
#include "stages/engine/program.h"
#include "stages/engine/json_text.h"
#include "stages/engine/memory/ram_free.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
    bool digest, quick;
} o;

static const kiln_opt options[] = {
    KILN_OPTION_BOOL("digest", &o.digest, "print sorted lines KIND NAME DIGEST instead of checking",
                     .letter = 'd', .brief = "print lines KIND NAME DIGEST, check nothing"),
    KILN_OPTION_BOOL("quick", &o.quick,
                     "check only structure, rows, counts, references and sizes; the content of "
                     "blobs is not read",
                     .brief = "check structure, rows, counts and sizes alone"),
    KILN_OPTION_NUMBER("ram", &kiln_common_values.ram, "SIZE",
                       "most host memory to take: a size or a share of what is free; with little, "
                       "fewer threads check (one always "
                       "does)",
                       .def = "80%"),
    KILN_OPTION_END,
};

static const char *const notes[] = {
    "Every problem found is a line on stderr; the program then ends with 74.",
    "With --quick no blob is read: it is fast, but does not find damage inside of blobs.",
    "With --digest: the current layers, tile tables and images, one a line. Blanks, control bytes "
    "and '%' in names are "
    "percent-encoded. Two bakes with equal lines hold the same.",
    NULL,
};

static const kiln_cli cli = {.program = "kiln-verify",
                             .summary =
                                 "checks every hash, count, bound and reference of a manifest",
                             .positionals = "MANIFEST",
                             .n_positionals = 1,
                             .tables_note = notes,
                             .options = options,
                             .common = kiln_common_options};

/* ---- digests --------------------------------------------------------------------------------- */
static void print_line(void *context, const char *kind, const char *name, kiln_hash digest)
{
    char hex[33];
    (void)context;
    /* stdout is checked at the end of main */
    kiln_print("%s %s %s", kind, name, kiln_hash_hex(digest, hex));
}

static void add_line(void *context, const char *kind, const char *name, kiln_hash digest)
{
    char hex[33];
    json_t *lines = context;
    /* an entry that cannot be made is noticed by its count */
    (void)json_array_append_new(lines, json_pack("{s:o, s:o, s:s}", "kind", kiln_json_string(kind),
                                                 "name", kiln_json_string(name), "digest",
                                                 kiln_hash_hex(digest, hex)));
}

static void count_line(void *context, const char *kind, const char *name, kiln_hash digest)
{
    (void)kind, (void)name, (void)digest;
    ++*(size_t *)context;
}

static kiln_status digests(kiln_run *r, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    if (!kiln_run_json(r)) return kiln_manifest_digests(m, print_line, NULL, err);
    size_t expected = 0;
    json_t *lines = json_array();
    kiln_status st = lines ? kiln_manifest_digests(m, count_line, &expected, err) : KILN_E_NOMEM;
    if (st == KILN_OK) st = kiln_manifest_digests(m, add_line, lines, err);
    if (st == KILN_OK && json_array_size(lines) != expected) st = KILN_E_NOMEM;
    if (st == KILN_E_NOMEM) st = kiln_fail(err, st, "out of memory for the digests");
    if (st == KILN_OK && json_object_set(kiln_run_report(r), "digests", lines) != 0)
        st = kiln_fail(err, KILN_E_NOMEM, "out of memory for the digests");
    json_decref(lines);
    return st;
}

/* ---- verify ---------------------------------------------------------------------------------- */
typedef struct {
    kiln_progress bar;
    uint64_t done_mib;
    bool begun;
} progress;

static void tell_problem(void *context, const char *sentence)
{
    (void)context;
    kiln_warn("%s", sentence);
}

static void show_progress(void *context, uint64_t done_bytes, uint64_t all_bytes)
{
    progress *p = context;
    if (!p->begun) kiln_progress_start(&p->bar, "checking", "MiB", all_bytes >> 20);
    p->begun = true;
    kiln_progress_add(&p->bar, (done_bytes >> 20) - p->done_mib);
    p->done_mib = done_bytes >> 20;
    if (done_bytes == all_bytes) kiln_progress_stop(&p->bar); /* sentences follow */
}

static kiln_status check_bake(kiln_run *r, uint64_t *bytes, kiln_error *err)
{
    progress p = {.begun = false};
    const uint64_t free_bytes = kiln_ram_free("");
    const uint64_t ram = kiln_size_resolve(kiln_common_values.ram, free_bytes);
    const kiln_verify_options options_of_check = {
        .threads = kiln_devices_threads(kiln_common_values.threads),
        .ram_bytes = ram < free_bytes ? ram : free_bytes,
        .quick = o.quick,
        .report = tell_problem,
        .progress = show_progress,
        .context = &p};
    const kiln_status st =
        kiln_manifest_verify_with(kiln_run_manifest(r), &options_of_check, bytes, err);
    if (p.begun) kiln_progress_stop(&p.bar);
    return st;
}

/* How many of each kind of thing were looked at. Not count(*): SQLite does that in one step, which
 * nothing ends where a b-tree of a damaged file loops. */
#define COUNT(table) "SELECT coalesce(sum(1), 0) FROM " table
static const struct {
    const char *key, *one, *more, *sql;
} counted[] = {
    {"blobs", "blob", "blobs", COUNT("blob")},
    {"units", "unit", "units", COUNT("unit")},
    {"layers", "layer", "layers", COUNT("layer")},
    {"chunks", "block or chunk", "blocks and chunks", COUNT("chunk")},
    {"planes", "plane", "planes", COUNT("plane")},
    {"tile_tables", "tile table", "tile tables", COUNT("tile_table")},
    {"cameras", "camera", "cameras", COUNT("camera")},
    {"images", "image", "images", COUNT("image")},
    {"runs", "run", "runs", COUNT("run")},
};
enum { N_COUNTED = sizeof counted / sizeof *counted };

static kiln_status count_rows_by_sql(kiln_manifest *m, const char *sql, int64_t *out,
                                     kiln_error *err)
{
    sqlite3 *db = kiln_manifest_sqlite(m);
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    if (rc == SQLITE_OK) rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) *out = sqlite3_column_int64(s, 0);
    (void)sqlite3_finalize(s); /* repeats rc */
    if (rc == SQLITE_ROW) return KILN_OK;
    return kiln_fail(err, KILN_E_IO, "cannot read '%s': %s", kiln_manifest_path(m),
                     sqlite3_errmsg(db));
}

/* What a whole bake would hold besides: no damage, but worth a word where everything else is
 * well. */
static const char *const stage_names[] = {
#define STAGE(name, ...) #name,
#include "pipelines/stages.def"
#undef STAGE
};
enum { N_STAGES = sizeof stage_names / sizeof *stage_names };

static kiln_status count_quarantined(kiln_manifest *m, uint32_t n[N_STAGES], uint32_t *all,
                                     kiln_error *err)
{
    *all = 0;
    for (int i = 0; i < N_STAGES; i++) {
        kiln_quarantine_row *rows;
        KILN_TRY(kiln_quarantine_get(m, stage_names[i], &rows, &n[i], err));
        free(rows);
        *all += n[i];
    }
    return KILN_OK;
}

static void print_end(const uint32_t n[N_STAGES], uint32_t all)
{
    if (all == 0) {
        kiln_print(": all is well");
        return;
    }
    kiln_print_part(": complete but for %" PRIu32 " quarantined unit%s: ", all,
                    all == 1 ? "" : "s");
    const char *comma = "";
    for (int i = 0; i < N_STAGES; i++) {
        if (n[i] == 0) continue;
        kiln_print_part("%s%" PRIu32 " of %s", comma, n[i], stage_names[i]);
        comma = ", ";
    }
    kiln_print("; kiln-info names them; run the same command of the stage to try them again");
}

static kiln_status verify(kiln_run *r, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    json_t *report = kiln_run_report(r);
    uint64_t bytes;
    int64_t n[N_COUNTED];
    uint32_t quarantined[N_STAGES], n_quarantined;
    char size[32];
    KILN_TRY(check_bake(r, &bytes, err));
    for (size_t i = 0; i < N_COUNTED; i++) {
        KILN_TRY(count_rows_by_sql(m, counted[i].sql, &n[i], err));
        if (json_object_set_new(report, counted[i].key, json_integer(n[i])) != 0)
            return kiln_fail(err, KILN_E_NOMEM, "out of memory for the report");
    }
    KILN_TRY(count_quarantined(m, quarantined, &n_quarantined, err));
    if (json_object_set_new(report, "checked_bytes", json_integer((json_int_t)bytes)) != 0 ||
        json_object_set_new(report, "quick", json_boolean(o.quick)) != 0 ||
        json_object_set_new(report, "quarantined", json_integer(n_quarantined)) != 0)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for the report");
    if (kiln_run_json(r)) return KILN_OK;
    if (o.quick)
        kiln_print_part("%s: checked rows and references, not the bytes, of ",
                        kiln_manifest_path(m));
    else
        kiln_print_part("%s: checked %s in ", kiln_manifest_path(m), kiln_size_text(bytes, size));
    for (size_t i = 0; i < N_COUNTED; i++)
        kiln_print_part("%s%" PRId64 " %s", i ? ", " : "", n[i],
                        n[i] == 1 ? counted[i].one : counted[i].more);
    print_end(quarantined, n_quarantined);
    return KILN_OK;
}

static kiln_status run_verify(kiln_run *r, kiln_error *err)
{
    if (o.digest && o.quick)
        return kiln_fail(err, KILN_E_USAGE, "--digest checks nothing; leave out --quick");
    return o.digest ? digests(r, err) : verify(r, err);
}

static const kiln_stage_program program = {
    .name = "verify", .cli = &cli, .open = KILN_OPEN_READ, .run = run_verify};

int main(int argc, char **argv) { return kiln_program_main(&program, argc, argv); }
