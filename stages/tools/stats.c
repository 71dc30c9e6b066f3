/* kiln-stats -- counts, ranges, quantiles and histograms of the columns of any file that is read, or of a layer, without importing
 * it; and what pairs a renderer would list. stages/stats/ measures and tells. */
#include "base/memory.h"
#include "base/quote.h"
#include "stages/engine/program.h"
#include "stages/import/import_options.h"
#include "stages/stats/stats.h"

#include <stdlib.h>
#include <string.h>

static const kiln_opt own[] = {
    KILN_OPTION_TEXT("pairs", &kiln_stats_given.pairs, "WxH",
                     "also count the pairs of tiles and Gaussians that a renderer lists, in pictures of this size; own: of the "
                     "cameras' own",
                     .brief = "what a renderer lists in pictures of this size", .group = "Pairs"),
    KILN_OPTION_PATH(
        "cameras", &kiln_stats_given.cameras, "FILE",
        "with --pairs: cameras from here, as kiln-import reads them; else those of the manifest, or eight on a circle"),
    KILN_OPTION_ENUM("profile", &kiln_stats_given.view.profile, "NAME", kiln_profile_names + 1, "with --pairs: the renderer",
                     .letter = 'p', .def = "gsplat-1.5", .brief = "the renderer"),
    KILN_OPTION_ENUM("antialiased", &kiln_stats_given.view.antialiased, "WHEN", "scene|on|off",
                     "with --pairs: antialiasing (mip compensation), as the scene was trained, on or off", .def = "scene",
                     .brief = "mip compensation: as the scene says, or on, off"),
    KILN_OPTION_TEXT("near", &kiln_stats_given.view.near_text, "M",
                     "with --pairs: near plane in scene units; profile: the renderer's own", .def = "profile",
                     .brief = "near plane in scene units"),
    KILN_OPTION_ENUM("layer", &kiln_stats_given.layer, "LAYER", kiln_drawable_names + 1, "of a manifest", .def = "source",
                     .brief = "of a manifest: which layer", .group = "Rows"),
};

/* How files are read is for kiln-import to say. */
static const char *const taken[] = {"frame", "lod", "static", "activated", "extra", "max-inflated"};

enum { N_OWN = sizeof own / sizeof *own, N_TAKEN = sizeof taken / sizeof *taken };
static kiln_opt options[N_OWN + N_TAKEN + 1];

static kiln_status check_size(const char *text, kiln_error *err)
{
    uint32_t size[2];
    return kiln_stats_size(text, size, err);
}

static const kiln_opt_check checks[] = {{"pairs", check_size}, KILN_VIEW_OPTION_CHECKS, {NULL, NULL}};

static const char *const notes[] = {
    "Scales are told as lengths, opacities within 0 to 1, f_dc as colours; stdDev in the JSON is of the numbers of the file. "
    "Quantiles "
    "are exact (nearest rank). Numbers that are not finite are counted as bad and left out of the rest.",
    "The fields of splat-transform's --stats json are in --json by the same names.",
    "box pairs are what the renderer lists by its own boxes, at 24 bytes each in gsplat's isect_tiles; pairs are those that can "
    "show.",
    NULL};

static const kiln_cli cli = {.program = "kiln-stats",
                             .summary = "measures the columns of a file or of a layer, and the pairs that a renderer would list",
                             .positionals = "FILE|MANIFEST",
                             .n_positionals = 1,
                             .tables_note = notes,
                             .options = options,
                             .common = kiln_common_options,
                             .checks = checks};

static void make_options(void)
{
    size_t n = 0;
    for (size_t i = 0; i < N_OWN; i++) options[n++] = own[i];
    for (const kiln_opt *o = kiln_import_cli.options; o->name; o++)
        for (size_t i = 0; i < N_TAKEN; i++)
            if (!strcmp(o->name, taken[i])) {
                options[n] = *o;
                options[n++].flags = 0; /* nothing of it is stored */
            }
}

static kiln_status run_stats(kiln_run *r, kiln_error *err)
{
    kiln_stats *s;
    if (kiln_stats_given.cameras && !kiln_stats_given.pairs)
        return kiln_fail(err, KILN_E_USAGE, "--cameras is for --pairs, which says in what size");
    KILN_TRY(KILN_ALLOC(&s, 1, "statistics", err));
    kiln_status st = kiln_stats_make(r, kiln_run_args(r)->positional[0], s, err);
    if (st == KILN_OK) st = kiln_stats_tell(r, s, err);
    kiln_stats_release(s);
    free(s);
    return st;
}

static const kiln_stage_program program = {.name = "stats",
                                           .cli = &cli,
                                           .flags = KILN_PROGRAM_OPENS_ITSELF | KILN_PROGRAM_SERIAL,
                                           .run = run_stats,
                                           .unit = kiln_stats_unit};

int main(int argc, char **argv)
{
    make_options();
    return kiln_program_main(&program, argc, argv);
}
