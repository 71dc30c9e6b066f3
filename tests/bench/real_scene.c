/* real_scene -- see real_scene.h. */
#include "tests/bench/real_scene.h"

#include "tests/unit/truth_scene.h"

/* Poses and focal lengths are those of truth.json's camera 0. */
static const struct {
    const char *path;
    bench_real_scene scene;
} rows[] = {
    {"scenes/chair/chair.ply",
     {.name = "chair",
      .rotation = {-1.0f, 0.0f, 0.0f, 0.0f, 0.734109998f, -0.679030657f, 0.0f, -0.679030657f,
                   -0.734109938f},
      .translation = {0.0f, -2.23805131e-07f, 4.03112888f},
      .focal = 555.555516f / 400.0f}},
    {"scenes/files/brush_leica_8192.ply",
     {.name = "leica",
      .rotation = {-0.955336511f, 0.0f, 0.295520216f, 0.0976252258f, 0.943858385f, 0.315595806f,
                   -0.278929204f, 0.330350429f, -0.901702344f},
      .translation = {-0.903836548f, -2.17711377f, 11.8909016f},
      .focal = 480.0f / 300.0f}},
};

unsigned bench_real_scenes(void) { return sizeof rows / sizeof *rows; }

kiln_status bench_real_scene_read(const char *shared, unsigned which, bench_real_scene *out,
                                  kiln_error *err)
{
    char path[KILN_PATH_MAX];
    truth_scene s;
    *out = rows[which].scene;
    KILN_TRY(kiln_path_join(path, sizeof path, shared, rows[which].path, err));
    KILN_TRY(truth_scene_ply(&s, out->name, path, err));
    out->n = s.n;
    out->planes = s.data;
    return KILN_OK;
}
