/* kiln-info -- what a manifest holds: stages with their state, a plan that stands, what is in
 * quarantine, counts, the scene, cameras with their metrics, histograms.
 *
 * With --cameras it writes the cameras alone. Else everything is first gathered as the JSON
 * document that --json prints; the table for people is printed from it, so that the two cannot
 * disagree (stages/info). Cameras carry the numbers of one profile, which is named: the one that
 * most images have. */
#include "base/quote.h"
#include "stages/engine/engine.h"
#include "stages/engine/program.h"
#include "stages/engine/json_text.h"
#include "stages/info/info_internal.h"
#include "stages/lod/levels_info.h"
#include "stages/products/product_guard.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

static bool with_levels, with_plots, ascii, cameras_alone, overwrite;
static const char *output;

static const kiln_opt options[] = {
    KILN_OPTION_BOOL("lod", &with_levels,
                     "print Gaussians, bytes and measured error of each level of detail",
                     .brief = "Gaussians, bytes and error of each level of detail"),
    KILN_OPTION_BOOL("plots", &with_plots,
                     "draw histograms: sizes, opacities, needles and spacing before and after "
                     "pruning, PSNR of the cameras, rows "
                     "of the chunks",
                     .brief = "draw histograms of scales, opacities and pictures"),
    KILN_OPTION_BOOL("ascii", &ascii,
                     "with --plots: draw with # and . in place of blocks; without this, the locale "
                     "decides (LC_ALL, LC_CTYPE, "
                     "LANG)",
                     .brief = "draw the plots with ASCII characters alone"),
    KILN_OPTION_BOOL("cameras", &cameras_alone,
                     "write only the cameras, as a JSON list that can be edited and drawn with "
                     "kiln-render --cameras",
                     .brief = "write only the cameras, as JSON for kiln-render"),
    KILN_OPTION_PATH("output", &output, "FILE", "with --cameras: the file to write; -: to stdout",
                     .letter = 'o', .def = "-", .brief = "file for --cameras; default: stdout"),
    KILN_OVERWRITE_OPTION(&overwrite),
    KILN_OPTION_END,
};

static const kiln_cli cli = {.program = "kiln-info",
                             .summary = "says what a manifest holds and which stages are fresh",
                             .positionals = "MANIFEST",
                             .n_positionals = 1,
                             .options = options,
                             .common = kiln_common_options};

static kiln_status check_options(kiln_error *err)
{
    if (kiln_opt_given(&cli, "output") && !cameras_alone)
        return kiln_fail(err, KILN_E_USAGE, "-o needs --cameras; leave it out, or give both");
    if (with_levels && cameras_alone)
        return kiln_fail(err, KILN_E_USAGE,
                         "--lod and --cameras do not go together; leave out one of them");
    if (with_plots && cameras_alone)
        return kiln_fail(err, KILN_E_USAGE,
                         "--plots and --cameras do not go together; leave out one of them");
    if (kiln_opt_given(&cli, "ascii") && !with_plots)
        return kiln_fail(err, KILN_E_USAGE, "--ascii needs --plots; leave it out, or give both");
    return KILN_OK;
}

/* The locale of the environment, which this process does not take over: its numbers have points
 * everywhere. One that is not installed counts as ASCII. */
static bool locale_is_utf8(void)
{
    const locale_t l = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
    const bool is = l && strcmp(nl_langinfo_l(CODESET, l), "UTF-8") == 0;
    if (l) freelocale(l);
    return is;
}

static kiln_status gather_info(kiln_manifest *m, bool in_full, json_t *info, kiln_error *err)
{
    json_t *levels;
    KILN_TRY(kiln_info_set(info, "version", json_integer(1), err));
    KILN_TRY(kiln_info_set(info, "manifest", kiln_json_string(kiln_manifest_path(m)), err));
    KILN_TRY(kiln_info_stages(m, info, err));
    KILN_TRY(kiln_info_plan(m, info, err));
    KILN_TRY(kiln_info_quarantine(m, info, err));
    KILN_TRY(kiln_info_superseded(m, info, err));
    KILN_TRY(kiln_info_scene(m, info, err));
    KILN_TRY(kiln_info_views(m, in_full, info, err));
    if (with_plots) KILN_TRY(kiln_info_plots(m, info, err));
    if (!with_levels) return KILN_OK;
    KILN_TRY(kiln_levels_info(m, &levels, err));
    return kiln_info_set(info, "levels", levels, err);
}

static kiln_status print_json(const json_t *info, kiln_error *err)
{
    if (!kiln_json_lines(info, JSON_INDENT(2) | JSON_REAL_PRECISION(17), kiln_print_json_part))
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for the report");
    kiln_print_gap(); /* stdout is checked at the end of main */
    return KILN_OK;
}

static kiln_status print_table(const json_t *info, kiln_error *err)
{
    kiln_info_print_scene(info);
    kiln_info_print_joined_and_moved(info);
    kiln_info_print_stages(info);
    if (with_levels) kiln_levels_info_print(json_object_get(info, "levels"));
    kiln_info_print_plan(info);
    kiln_info_print_quarantine(info);
    kiln_info_print_superseded(info);
    kiln_info_print_cameras(info);
    kiln_info_print_damaged(info);
    kiln_info_print_fast(info);
    if (!with_plots) return KILN_OK;
    return kiln_info_print_plots(info, kiln_opt_given(&cli, "ascii") ? ascii : !locale_is_utf8(),
                                 err);
}

static kiln_status run_info(kiln_run *r, kiln_error *err)
{
    KILN_TRY(check_options(err));
    if (cameras_alone) return kiln_info_write_cameras(r, output, overwrite, err);
    json_t *info = json_object();
    if (!info) return kiln_fail(err, KILN_E_NOMEM, "out of memory for the report");
    kiln_status st = gather_info(kiln_run_manifest(r), kiln_run_json(r), info, err);
    if (st == KILN_OK) st = kiln_run_json(r) ? print_json(info, err) : print_table(info, err);
    json_decref(info);
    return st;
}

static const kiln_stage_program program = {
    .name = "info", .cli = &cli, .open = KILN_OPEN_READ, .run = run_info};

int main(int argc, char **argv) { return kiln_program_main(&program, argc, argv); }
