/* real_scene -- trained scenes of the reference data, each with one camera of truth.json: read by
 * tests/unit/truth_scene.h, which is C and not for CUDA files. */
#ifndef KILN_TESTS_BENCH_REAL_SCENE_H
#define KILN_TESTS_BENCH_REAL_SCENE_H

#include "base/extern_c.h"
#include "base/status.h"

#include <stdint.h>

KILN_C_BEGIN

typedef struct {
    const char *name;
    uint64_t n;
    float *planes; /* [59][n] in the order of truth_scene; free() */
    float rotation[9], translation[3];
    float focal; /* in heights of the image */
} bench_real_scene;

unsigned bench_real_scenes(void);
/* shared: the folder of reference data. */
kiln_status bench_real_scene_read(const char *shared, unsigned which, bench_real_scene *out,
                                  kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
