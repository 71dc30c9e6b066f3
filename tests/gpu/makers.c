/* makers -- the makers of all operations by their numbers, and what they share. */
#include "tests/gpu/makers_internal.h"

#include <stdlib.h>

void *made_own(made_call *c, uint64_t count, size_t elem)
{
    if (c->n_owned == MAKER_MEMORY_MAX) call_off("makers", "too many arrays");
    return c->owned[c->n_owned++] = call_memory(count, elem);
}

void made_release(made_call *c)
{
    while (c->n_owned > 0) free(c->owned[--c->n_owned]);
}

bool scene_is_finite_cloud(const scene *s)
{
    return !s->spec.of_views && s->spec.kind != SCENE_HOSTILE && s->spec.kind != SCENE_OPACITIES;
}

bool scene_look_quickly(scene *s)
{
    if (s->n > 5000 && s->spec.kind != SCENE_RANDOM && s->spec.kind != SCENE_EXPLODED) return false;
    if (!s->row_pairs) scene_look(s);
    return true;
}

#define OP(op)                                                                                     \
    static bool make_args_of_##op(scene *s, unsigned variant, void *args, made_call *c)            \
    {                                                                                              \
        _Static_assert(sizeof(kiln_##op##_args) <= OP_ARGS_MAX, "arguments fit into a made_call"); \
        return make_##op(s, variant, args, c);                                                     \
    }
KILN_OP_MAP(OP)
#undef OP

static bool (*const makers[KILN_OP_COUNT])(scene *s, unsigned variant, void *args, made_call *c) = {
#define OP(op) make_args_of_##op,
    KILN_OP_MAP(OP)
#undef OP
};

bool make_call(kiln_op_id op, scene *s, unsigned variant, made_call *out)
{
    out->n_owned = 0;
    return makers[op](s, variant, out->args, out);
}

void make_plain(kiln_op_id op, uint64_t n, unsigned view, scene *s, made_call *out)
{
    for (int of_views = 0; of_views < 2; of_views++) {
        const scene_spec spec = {.kind = SCENE_RANDOM, .n = n, .view = view, .of_views = of_views};
        scene_make(s, &spec);
        if (make_call(op, s, 0, out)) return;
        made_release(out);
        scene_free(s);
    }
    call_off(kiln_op_name(op), "no maker makes a plain call of it");
}
