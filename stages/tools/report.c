/* kiln-report -- a bake as one HTML file that loads nothing: what was imported and why, what each
 * stage did, how its pictures look. stages/report/ gathers and writes it; this is the command line.
 * Reads only, but for the file that it writes. */
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/quote.h"
#include "stages/engine/engine.h"
#include "stages/engine/program.h"
#include "stages/engine/json_text.h"
#include "stages/products/product_guard.h"
#include "stages/products/product_mark.h"
#include "stages/report/report_make.h"

#include <errno.h>
#include <omp.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static struct {
    const char *output, *against;
    uint32_t max_mb;
    bool overwrite;
} o;

static const kiln_opt options[] = {
    KILN_OPTION_PATH("output", &o.output, "FILE",
                     "the HTML file; default: report.html beside the manifest", .letter = 'o'),
    KILN_OPTION_PATH("against", &o.against, "OTHER.db",
                     "also show the differences from this other bake"),
    KILN_OPTION_NUMBER("max-mb", &o.max_mb, "N",
                       "most megabytes of the file; cameras whose pictures do not fit are left out",
                       .def = "15", .range = "1..1000"),
    KILN_OVERWRITE_OPTION(&o.overwrite),
    KILN_OPTION_END,
};

static const char *const notes[] = {
    "The file is opened from disk with any browser. It contains everything that it shows and needs "
    "no network and no other file.",
    "Photos are read only where import has read them, and only if they are unchanged; pictures are "
    "read only in the bake's folder. "
    "The page shows newly encoded copies. --threads is the number of pictures decoded at a time.",
    "Levels of detail are drawn on the CPU, so large scenes show only some or none; kiln-render "
    "--levels-against draws all of "
    "them.",
    "Manifests may come from other people: texts from them are escaped, and the page's policy runs "
    "no script but its own.",
    NULL,
};

static const kiln_cli cli = {.program = "kiln-report",
                             .summary =
                                 "writes what a bake holds and how it came about as one HTML file",
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
    if (n >= sizeof folder)
        return kiln_fail(err, KILN_E_INPUT, "the path '%.60s...' is too long", manifest);
    if (n) {
        memcpy(folder, manifest, n);
        folder[n] = '\0';
    }
    return kiln_path_inside(out, KILN_PATH_MAX, folder, "report.html", "-o", err);
}

/* Before the page is made, which takes a while. A folder that is not there yet is made with the
 * file. */
static kiln_status check_writable(const char *path, kiln_error *err)
{
    char folder[KILN_PATH_MAX] = ".";
    const size_t n = (size_t)(kiln_path_base(path) - path);
    if (n) {
        memcpy(folder, path, n);
        folder[n] = '\0';
    }
    if (access(folder, W_OK) == 0 || errno == ENOENT) return KILN_OK;
    return kiln_fail(err, KILN_E_IO, "cannot write '%s': %s; -o FILE writes the report elsewhere",
                     path, strerror(errno));
}

static kiln_status find_output(const char *manifest, char out[KILN_PATH_MAX], kiln_error *err)
{
    if (!o.output) return default_output(manifest, out, err);
    if (!kiln_path_base(o.output)[0] || kiln_is_dir(o.output))
        return kiln_fail(err, KILN_E_USAGE, "-o '%s' is a folder; give a file, such as report.html",
                         o.output);
    if (strcasecmp(kiln_path_suffix(o.output), "html") != 0 &&
        strcasecmp(kiln_path_suffix(o.output), "htm") != 0)
        return kiln_fail(err, KILN_E_USAGE, "-o '%s': the name of a report must end with .html",
                         o.output);
    return kiln_path_join(out, KILN_PATH_MAX, "", o.output, err);
}

static unsigned threads(void)
{
    return kiln_common_values.threads ? kiln_common_values.threads : (unsigned)omp_get_num_procs();
}

static kiln_status write_report(kiln_run *r, const char *path, const kiln_product_seen *seen,
                                uint64_t *bytes, kiln_error *err)
{
    const kiln_report_wish wish = {.bytes = (uint64_t)o.max_mb * 1000000, .threads = threads()};
    kiln_manifest *other = NULL;
    kiln_buffer page = {0};
    kiln_status st = KILN_OK;
    if (o.against)
        KILN_GO(kiln_manifest_open(o.against, KILN_OPEN_READ, "report", kiln_run_allow_network(r),
                                   &other, err));
    KILN_GO(kiln_report_make(kiln_run_manifest(r), other, &wish, &page, err));
    if (page.size > wish.bytes)
        kiln_warn("even without pictures the page is larger than --max-mb %u", o.max_mb);
    KILN_GO(kiln_product_seal_html(&page, err));
    KILN_GO(kiln_product_write(path, page.data, page.size, seen, err));
    *bytes = page.size;
done:
    kiln_buffer_release(&page);
    kiln_manifest_close(other);
    return st;
}

static kiln_status run_report(kiln_run *r, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    char path[KILN_PATH_MAX], size[32];
    uint64_t bytes = 0;
    kiln_product_seen seen;
    KILN_TRY(find_output(kiln_manifest_path(m), path, err));
    KILN_TRY(kiln_product_guard_ask(m, o.overwrite, path, &seen, err));
    KILN_TRY(check_writable(path, err));
    if (o.against && kiln_manifest_owns(o.against, path))
        return kiln_fail(
            err, KILN_E_USAGE,
            "'%s' is the bake of --against, or belongs to it; choose another place with -o", path);
    KILN_TRY(write_report(r, path, &seen, &bytes, err));
    json_t *report = kiln_run_report(r);
    if (json_object_set_new(report, "path", kiln_json_string(path)) != 0 ||
        json_object_set_new(report, "bytes", json_integer((json_int_t)bytes)) != 0)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for the report");
    if (kiln_run_prints(r)) kiln_print("%s: %s", path, kiln_size_text(bytes, size));
    return KILN_OK;
}

static const kiln_stage_program program = {
    .name = "report", .cli = &cli, .open = KILN_OPEN_READ, .run = run_report};

int main(int argc, char **argv) { return kiln_program_main(&program, argc, argv); }
