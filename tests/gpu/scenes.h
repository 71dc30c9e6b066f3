/* scenes -- small scenes of every odd kind, and how a camera sees them: what the GPU tests give to
 * the operations. */
#ifndef KILN_TESTS_GPU_SCENES_H
#define KILN_TESTS_GPU_SCENES_H

#include "kernels/ops.h"

#include <stdbool.h>

/* name, what is odd about it */
#define SCENE_KIND_MAP(X)                                         \
    X(RANDOM, "random")                                           \
    X(CLUSTERED, "clustered")                                     \
    X(EQUAL, "equal") /* one Gaussian, n times */                 \
    X(LINE, "on a line")                                          \
    X(EXPLODED, "exploded") /* some scales by e^8 */              \
    X(DENORMAL, "denormal") /* in every plane */                  \
    X(LARGE, "large")       /* coordinates, scales, norms */      \
    X(NEEDLES, "needles")                                         \
    X(OFF_SCREEN, "off screen") /* behind, beside, on the edge */ \
    X(OPACITIES, "opacities")   /* infinite logits, 1/255 */      \
    X(HOSTILE, "hostile")       /* NaN and infinity anywhere */   \
    X(EDGES, "edges")           /* of what is tame (kernels/project/project_math.h) */

typedef enum {
#define X(id, name) SCENE_##id,
    SCENE_KIND_MAP(X)
#undef X
        SCENE_KINDS
} scene_kind;

enum { SCENE_SH_DEGREE = 4, SCENE_VIEWS = 7 };

typedef struct {
    scene_kind kind;
    uint64_t n;
    unsigned view; /* below SCENE_VIEWS */
    kiln_profile_id profile;
    bool antialiased;
    bool of_views; /* one of those that vary how it is seen, not what is there */
} scene_spec;

typedef struct {
    scene_spec spec;
    uint64_t n;
    kiln_view view;
    /* planes of n; shN of degree SCENE_SH_DEGREE; spacing2 and rgb as an import has them */
    float *means, *log_scales, *quats, *opacity_logits, *sh0, *shN, *spacing2, *rgb;
    float *data; /* all of them; owned */
    /* as the CPU's baseline sees it, by scene_look: in depth order, pairs of each tile row */
    uint64_t visible;
    kiln_splat2d *splats;
    uint64_t *row_pairs;
} scene;

/* KILN_GPU_SMALL is set: a sanitizer slows the program a hundredfold. */
bool scenes_are_small(void);
/* Calls fn for every scene of the tests; when they are small, for few and small ones. Without cuda
 * only two kinds have a scene of the largest size, which is 20,000 rows then instead of 65,536, and
 * pictures have fewer tiles: a GPU needs more than one block of blocks and more tiles than
 * multiprocessors. The CPU's siblings differ within a row of values, and would take minutes. */
void scenes_each(bool cuda, void (*fn)(void *context, const scene_spec *spec), void *context);

/* The same for equal specs on every machine. Out of memory ends the test. */
void scene_make(scene *s, const scene_spec *spec);
void scene_look(scene *s);
void scene_free(scene *s);
const char *scene_name(const scene_spec *spec, char out[128]);

#endif
