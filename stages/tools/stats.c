/* kiln-stats -- counts, ranges, quantiles and histograms of the columns of any file that is read,
 * or of a layer, without importing it; and what pairs a renderer would list. stages/stats/ measures
 * and tells. */
#include "base/memory.h"
#include "base/quote.h"
#include "stages/engine/program.h"
#include "stages/import/import_options.h"
#include "stages/stats/stats.h"

#include <stdlib.h>
#include <string.h>

static const kiln_opt own[] = {
    KILN_OPTION_TEXT("pairs", &kiln_stats_given.pairs, "WxH",
                     "count what a renderer lists in pictures of this size, too; own stands for "
                     "the sizes of the cameras",
                     .brief = "count what a renderer lists in pictures of this size",
                     .group = "Pairs"),
    KILN_OPTION_PATH("cameras", &kiln_stats_given.cameras, "FILE",
                     "take the cameras of --pairs from here; else they are those of the manifest, "
                     "or eight on an orbit, as kiln-import places them"),
    KILN_OPTION_ENUM("profile", &kiln_stats_given.view.profile, "NAME", kiln_profile_names + 1,
                     "count the pairs of this renderer", .letter = 'p', .def = "gsplat-1.5",
                     .brief = kiln_profile_brief),
    KILN_OPTION_ENUM(
        "antialiased", &kiln_stats_given.view.antialiased, "WHEN", "scene|on|off",
        "project with antialiasing (mip compensation): as the scene was trained, on or off",
        .def = "scene", .brief = "project with mip compensation, or without"),
    KILN_OPTION_TEXT("near", &kiln_stats_given.view.near_text, "M",
                     "cut at this near plane in scene units; profile stands for the renderer's own",
                     .def = "profile", .brief = "cut at this near plane in scene units"),
    KILN_OPTION_ENUM("layer", &kiln_stats_given.layer, "LAYER", kiln_drawable_names + 1,
                     "measure this layer of a manifest", .def = "source", .group = "Rows"),
};

/* How files are read is for kiln-import to say. */
static const char *const taken[] = {"frame", "lod", "static", "activated", "extra", "max-inflated"};
/* And where a scene without cameras is looked at from. */
static const char *const of_pairs[] = {"up", "orbit-at"};

enum {
    N_OWN = sizeof own / sizeof *own,
    N_TAKEN = sizeof taken / sizeof *taken,
    N_OF_PAIRS = sizeof of_pairs / sizeof *of_pairs
};
static kiln_opt options[N_OWN + N_TAKEN + N_OF_PAIRS + 1];

static kiln_status check_size(const char *text, kiln_error *err)
{
    uint32_t size[2];
    return kiln_stats_size(text, size, err);
}

static const kiln_opt_check checks[] = {
    {"pairs", check_size}, KILN_VIEW_OPTION_CHECKS, {NULL, NULL}};

static const char *const notes[] = {
    "Scales are told as lengths, opacities within 0 to 1, f_dc as colours; stdDev in the JSON is "
    "of the numbers of the file. "
    "Quantiles "
    "are exact (nearest rank). Numbers that are not finite are counted as bad and left out of the "
    "rest.",
    "The fields of splat-transform's --stats json are in --json by the same names.",
    "box pairs are what the renderer lists by its own boxes, at 24 bytes each in gsplat's "
    "isect_tiles; pairs are those that can "
    "show.",
    NULL};

static const kiln_cli cli = {
    .program = "kiln-stats",
    .summary = "measures columns of a file or layer, and pairs that renderers list",
    .positionals = "FILE|MANIFEST",
    .n_positionals = 1,
    .tables_note = notes,
    .options = options,
    .common = kiln_common_options,
    .checks = checks};

static void take_options(const char *const *names, size_t n_names, size_t *n)
{
    for (const kiln_opt *o = kiln_import_cli.options; o->name; o++)
        for (size_t i = 0; i < n_names; i++)
            if (!strcmp(o->name, names[i])) {
                options[*n] = *o;
                options[(*n)++].flags = 0; /* nothing of it is stored */
            }
}

static void make_options(void)
{
    size_t n = 0;
    for (size_t i = 0; i < N_OWN; i++) {
        if (n > 0 && own[i].group) take_options(of_pairs, N_OF_PAIRS, &n); /* end those of pairs */
        options[n++] = own[i];
    }
    take_options(taken, N_TAKEN, &n);
}

/* A manifest has cameras of its own, too, which is known later. */
static kiln_status check_orbit(kiln_error *err)
{
    for (size_t i = 0; i < N_OF_PAIRS; i++) {
        if (!kiln_opt_given(&cli, of_pairs[i])) continue;
        kiln_stats_given.orbit = of_pairs[i];
        if (!kiln_stats_given.pairs || kiln_stats_given.cameras)
            return kiln_fail(err, KILN_E_USAGE, "--%s is for --pairs without --cameras",
                             of_pairs[i]);
    }
    return KILN_OK;
}

static kiln_status run_stats(kiln_run *r, kiln_error *err)
{
    kiln_stats *s;
    if (kiln_stats_given.cameras && !kiln_stats_given.pairs)
        return kiln_fail(err, KILN_E_USAGE, "--cameras is for --pairs, which says in what size");
    KILN_TRY(check_orbit(err));
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
