/* makers -- arguments for every operation from a scene. A row of KILN_OP_MAP without a maker does
 * not compile. */
#ifndef KILN_TESTS_GPU_MAKERS_H
#define KILN_TESTS_GPU_MAKERS_H

#include "tests/gpu/op_image.h"
#include "tests/gpu/scenes.h"

enum { MAKER_MEMORY_MAX = 32 };

/* The arguments of one call, and what they point to. Does not move. */
typedef struct {
    _Alignas(16) unsigned char args[OP_ARGS_MAX];
    kiln_prune_rules rules;
    unsigned n_owned;
    void *owned[MAKER_MEMORY_MAX];
} made_call;

/* The call of that variant, 0 and up; false when there is none (more) for this scene. Release
 * either way. Operations on what a camera sees look at the scene first, when nobody has. */
bool make_call(kiln_op_id op, scene *s, unsigned variant, made_call *out);
void made_release(made_call *c);
/* The first call of an operation, of a random scene of n rows. scene_free and made_release. */
void make_plain(kiln_op_id op, uint64_t n, unsigned view, scene *s, made_call *out);

#endif
