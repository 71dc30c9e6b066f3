/* kiln-generate -- writes a scene directory from a seed: `scene` is the benchmark scene of
 * stages/generate/inputs.h at any size, `points` a cloud of bare points, `demo` a small yard with
 * photos. */
#include "base/count.h"
#include "base/file.h"
#include "base/quote.h"
#include "stages/engine/engine.h"
#include "stages/engine/program.h"
#include "stages/formats/writer.h"
#include "stages/generate/generate.h"
#include "stages/products/product_guard.h"

#include <math.h>
#include <omp.h>
#include <string.h>

static struct {
    uint64_t gaussians, seed;
    uint32_t cameras, explode;
    double explode_by;
    const char *size;
    bool overwrite;
} o;

static const kiln_opt options[] = {
    KILN_OPTION_NUMBER("gaussians", &o.gaussians, "N", "how many", .letter = 'n', .def = "120000",
                       .range = "1..4294967294", .brief = "number of Gaussians, or of points"),
    KILN_OPTION_NUMBER("cameras", &o.cameras, "K", "cameras on an orbit", .letter = 'c',
                       .def = "12", .range = "1..100000"),
    KILN_OPTION_TEXT("size", &o.size, "WxH", "of the pictures; demo: 640x400, scene: 1920x1080",
                     .letter = 's', .brief = "width and height of the pictures"),
    KILN_OPTION_NUMBER("seed", &o.seed, "N", "scene: another seed, another scene", .def = "1",
                       .brief = "another seed, another scene"),
    KILN_OPTION_NUMBER("explode", &o.explode, "PERMILLE",
                       "scene: share of Gaussians whose scales explode", .def = "0",
                       .range = "0..1000", .brief = "how many of 1,000 Gaussians are blown up"),
    KILN_OPTION_NUMBER("explode-by", &o.explode_by, "LOG",
                       "scene: by how much their log scales grow", .def = "4", .range = "0..50",
                       .brief = "growth of their scales, as a natural logarithm"),
    KILN_OVERWRITE_ALL_OPTION(&o.overwrite),
    KILN_OPTION_END,
};

static kiln_status parse_size(const char *text, uint32_t *width, uint32_t *height, kiln_error *err)
{
    enum { MOST = 16384 };
    char end;
    if (sscanf(text, "%ux%u%c", width, height, &end) == 2 && *width && *height && *width <= MOST &&
        *height <= MOST)
        return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE, "--size takes WxH, each 1 to %d, not '%s'", MOST, text);
}

static kiln_status check_size_option(const char *text, kiln_error *err)
{
    uint32_t width, height;
    return parse_size(text, &width, &height, err);
}

static const kiln_opt_check checks[] = {{"size", check_size_option}, {NULL, NULL}};

static const kiln_cli cli = {.program = "kiln-generate",
                             .summary =
                                 "writes a scene directory from a seed: demo, scene or points",
                             .positionals = "demo|scene|points DIR",
                             .n_positionals = 2,
                             .options = options,
                             .common = kiln_common_options,
                             .checks = checks};

static kiln_status run_generate(kiln_run *r, kiln_error *err)
{
    const kiln_parsed *args = kiln_run_args(r);
    const char *what = args->positional[0], *dir = args->positional[1];
    const bool demo = strcmp(what, "demo") == 0, points = strcmp(what, "points") == 0;
    kiln_generate_options g = {.gaussians = o.gaussians,
                               .seed = o.seed,
                               .cameras = o.cameras,
                               .width = demo ? 640 : 1920,
                               .height = demo ? 400 : 1080,
                               .explode_per_mille = o.explode,
                               .explode_by = o.explode_by,
                               .overwrite = o.overwrite,
                               .threads = kiln_common_values.threads
                                              ? kiln_common_values.threads
                                              : (unsigned)omp_get_num_procs()};
    if (!demo && !points && strcmp(what, "scene") != 0)
        return kiln_fail(err, KILN_E_USAGE,
                         "kiln-generate makes 'demo', 'scene' or 'points', not '%s'", what);
    const char *suffix =
        kiln_path_base(dir)[0] && !kiln_is_dir(dir) ? kiln_scene_suffix(dir) : NULL;
    if (suffix)
        return kiln_fail(
            err, KILN_E_USAGE,
            "'%s' is the name of a .%s file, but kiln-generate writes a folder with a PLY in it",
            dir, suffix);
    if (o.size) KILN_TRY(parse_size(o.size, &g.width, &g.height, err));
    KILN_TRY(demo     ? kiln_generate_demo(dir, &g, err)
             : points ? kiln_generate_points(dir, &g, err)
                      : kiln_generate_scene(dir, &g, err));
    if (points && kiln_run_prints(r)) kiln_print("%s: %s", dir, KILN_COUNT(g.gaussians, "point"));
    if (!points && kiln_run_prints(r))
        kiln_print("%s: %s, %s", dir, KILN_COUNT(g.gaussians, "Gaussian"),
                   KILN_COUNT(g.cameras, "camera"));
    return KILN_OK;
}

static const kiln_stage_program program = {
    .name = "generate", .cli = &cli, .flags = KILN_PROGRAM_OPENS_ITSELF, .run = run_generate};

int main(int argc, char **argv) { return kiln_program_main(&program, argc, argv); }
