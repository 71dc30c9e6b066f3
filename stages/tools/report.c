/* kiln-report -- a bake as one HTML file that loads nothing: what was imported and why, what each stage did, how its pictures look.
 * stages/report/ gathers and writes it; this is the command line. Reads only, but for the file that it writes. */
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/quote.h"
#include "stages/engine/engine.h"
#include "stages/engine/json_text.h"
#include "stages/lod/levels_info.h"
#include "stages/report/report_page.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *output, *against;
    uint32_t max_mb;
} o;

static const kiln_opt options[] = {
    {"output", 'o', KILN_OPT_PATH, &o.output, "FILE", NULL, NULL, "the HTML file; without it report.html beside the manifest", 0},
    {"against", 0, KILN_OPT_PATH, &o.against, "OTHER.db", NULL, NULL, "also say what differs from this other bake", 0},
    {"max-mb", 0, KILN_OPT_U32, &o.max_mb, "N", "15", "1..1000",
     "most megabytes of the file; cameras whose pictures do not fit are left out", 0},
    {NULL, 0, KILN_OPT_END, NULL, NULL, NULL, NULL, NULL, 0},
};

static const char *const notes[] = {
    "The file is opened from disk with any browser. It holds all that it shows: no network, no other file.",
    "Photos are read only where import has read them and their content is still the same, pictures only in the bake's folder; "
    "what the page shows of them is encoded anew. --threads says how many are decoded at a time.",
    "Manifests may come from other people: texts from them are escaped, and the page's policy runs no script but its own.",
    NULL,
};

static const kiln_cli cli = {.program = "kiln-report",
                             .summary = "writes what a bake holds and how it came about as one HTML file",
                             .positionals = "MANIFEST",
                             .n_positionals = 1,
                             .tables_note = notes,
                             .options = options,
                             .common = kiln_common_options};

/* Beside the manifest. */
static kiln_status default_output(const char *manifest, char out[KILN_PATH_MAX], kiln_error *err)
{
    char folder[KILN_PATH_MAX] = ".";
    const char *slash = strrchr(manifest, '/');
    const size_t n = slash ? (size_t)(slash - manifest) + 1 : 0;
    if (n >= sizeof folder) return kiln_fail(err, KILN_E_INPUT, "the path '%.60s...' is too long", manifest);
    if (n) {
        memcpy(folder, manifest, n);
        folder[n] = '\0';
    }
    return kiln_path_inside(out, KILN_PATH_MAX, folder, "report.html", "-o", err);
}

static kiln_status find_output(const char *manifest, char out[KILN_PATH_MAX], kiln_error *err)
{
    if (!o.output) return default_output(manifest, out, err);
    if (!kiln_path_base(o.output)[0] || kiln_is_dir(o.output))
        return kiln_fail(err, KILN_E_USAGE, "-o '%s' is a folder; give a file, such as report.html", o.output);
    return kiln_path_join(out, KILN_PATH_MAX, "", o.output, err);
}

static kiln_status write_page(const kiln_report *report, const char *path, uint64_t *bytes, kiln_error *err)
{
    kiln_html h;
    kiln_html_init(&h, err);
    kiln_report_page(&h, report);
    kiln_status st = kiln_html_status(&h);
    if (st == KILN_OK) st = kiln_file_replaceable(path, err);
    if (st == KILN_OK) st = kiln_file_write(path, h.out.data, h.out.size, err);
    *bytes = h.out.size;
    kiln_html_release(&h);
    return st;
}

static unsigned threads(void) { return kiln_common_values.threads ? kiln_common_values.threads : (unsigned)omp_get_num_procs(); }

typedef struct {
    kiln_bake_facts bake, against;
    kiln_manifest *other; /* of against; NULL without */
    kiln_prune_survey survey;
    kiln_picture_set pictures;
    json_t *levels;
} findings; /* too big for the stack */

static kiln_status open_other(const kiln_run *r, findings *f, kiln_error *err)
{
    if (!o.against) return KILN_OK;
    KILN_TRY(kiln_manifest_open(o.against, KILN_OPEN_READ, "report", kiln_run_allow_network(r), &f->other, err));
    return kiln_bake_facts_get(f->other, &f->against, err);
}

static kiln_report report_of(const findings *f)
{
    return (kiln_report){.bake = &f->bake,
                         .against = f->other ? &f->against : NULL,
                         .survey = &f->survey,
                         .pictures = &f->pictures,
                         .levels = f->levels};
}

/* What --max-mb leaves for pictures beside everything else, and the markup around them. */
static kiln_status room_for_pictures(const findings *f, uint64_t *bytes, kiln_error *err)
{
    enum { AROUND = 3000 * KILN_VIEWS_SHOWN };
    const uint64_t most = (uint64_t)o.max_mb * 1000000;
    const kiln_report report = report_of(f);
    kiln_html h;
    kiln_html_init(&h, err);
    kiln_report_page(&h, &report);
    const kiln_status st = kiln_html_status(&h);
    *bytes = h.out.size + AROUND < most ? most - h.out.size - AROUND : 0;
    if (st == KILN_OK && h.out.size > most) kiln_warn("without any picture the page is larger than --max-mb %u", o.max_mb);
    kiln_html_release(&h);
    return st;
}

static kiln_status gather(kiln_run *r, findings *f, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    uint64_t bytes;
    KILN_TRY(kiln_bake_facts_get(m, &f->bake, err));
    KILN_TRY(open_other(r, f, err));
    KILN_TRY(kiln_prune_survey_make(&f->bake, &f->survey, err));
    KILN_TRY(kiln_levels_info(m, &f->levels, err));
    KILN_TRY(room_for_pictures(f, &bytes, err));
    return kiln_picture_set_make(&f->bake, bytes, threads(), &f->pictures, err);
}

static kiln_status write_report(kiln_run *r, const char *path, uint64_t *bytes, kiln_error *err)
{
    findings *f = NULL;
    KILN_TRY(KILN_ALLOC(&f, 1, "a report", err));
    kiln_status st = gather(r, f, err);
    const kiln_report report = report_of(f);
    if (st == KILN_OK) st = write_page(&report, path, bytes, err);
    json_decref(f->levels);
    kiln_picture_set_release(&f->pictures);
    kiln_bake_facts_release(&f->against);
    kiln_manifest_close(f->other);
    kiln_bake_facts_release(&f->bake);
    free(f);
    return st;
}

static kiln_status run(kiln_run *r, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    char path[KILN_PATH_MAX], size[32];
    uint64_t bytes = 0;
    KILN_TRY(find_output(kiln_manifest_path(m), path, err));
    KILN_TRY(kiln_run_check_target(r, path, err));
    if (o.against && kiln_manifest_owns(o.against, path))
        return kiln_fail(err, KILN_E_USAGE, "'%s' is the bake of --against, or belongs to it; choose another place with -o", path);
    KILN_TRY(write_report(r, path, &bytes, err));
    json_t *report = kiln_run_report(r);
    if (json_object_set_new(report, "path", kiln_json_string(path)) != 0 ||
        json_object_set_new(report, "bytes", json_integer((json_int_t)bytes)) != 0)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for the report");
    if (!kiln_run_json(r) && kiln_log_get() != KILN_LOG_QUIET) kiln_print("%s: %s", path, kiln_size_text(bytes, size));
    return KILN_OK;
}

static const kiln_stage_program program = {.name = "report", .cli = &cli, .open = KILN_OPEN_READ, .run = run};

int main(int argc, char **argv) { return kiln_program_main(&program, argc, argv); }
