/* bake_report -- see the header. */
#include "stages/front/bake_report.h"

#include "base/file.h"
#include "base/log.h"
#include "stages/front/programs.h"
#include "stages/engine/program.h"

/* A bake in which nothing has changed since its report was written needs no other. */
static bool has_report(const char *manifest_path, const char *path)
{
    kiln_file_info manifest, report;
    return kiln_is_file(path) && kiln_file_stat(path, &report, NULL) == KILN_OK &&
           kiln_file_stat(manifest_path, &manifest, NULL) == KILN_OK &&
           report.mtime_ns >= manifest.mtime_ns;
}

kiln_status kiln_bake_report_make(const kiln_words *words, const char *manifest, const char *out,
                                  kiln_error *err)
{
    char path[KILN_PATH_MAX];
    int code = 0, signal;
    if (!words->n || !kiln_is_file(manifest)) return KILN_OK;
    KILN_TRY(kiln_path_join(path, sizeof path, out, "report.html", err));
    if (has_report(manifest, path)) return KILN_OK;
    KILN_TRY(kiln_program_stopped(err));
    char *const first = words->word[0];
    const kiln_status st =
        kiln_program_run("report", (const char **)words->word, true, &code, &signal, err);
    words->word[0] = first; /* which is set there */
    if (st != KILN_OK) kiln_warn("%s", err->msg);
    if (st != KILN_OK || code)
        kiln_warn("the bake is complete, but its report could not be written; run kiln report %s "
                  "to try again",
                  manifest);
    return kiln_program_stopped(err);
}
