/* makers_project -- Gaussians as a camera sees them, and their colours. */
#include "tests/gpu/makers_internal.h"

/* All columns of all rows, of some, an odd number of columns, and none. */
bool make_sh_halves(const scene *s, unsigned variant, kiln_sh_halves_args *a, made_call *c)
{
    static const uint32_t columns[] = {72, 72, 45, 0};
    if (variant >= sizeof columns / sizeof *columns || s->spec.of_views) return false;
    const uint64_t first = variant == 1 ? s->n / 3 : 0,
                   words = kiln_sh_words(columns[variant]) * s->n;
    *a = (kiln_sh_halves_args){.rows = s->n,
                               .first = first,
                               .n = variant == 1 ? s->n / 2 : s->n,
                               .columns = columns[variant],
                               .shN = s->shN,
                               .halves = made_own(c, words, sizeof *a->halves)};
    /* other rows stay as they are */
    for (uint64_t i = 0; i < words; i++) a->halves[i] = (uint32_t)(i * 2654435761u);
    return true;
}

/* Variants 3 and 4 with colours in half precision, from floats and from halves. */
bool make_project(const scene *s, unsigned variant, kiln_project_args *a, made_call *c)
{
    static const kiln_exec cpu = {.device = -1, .threads = 2};
    kiln_sh_halves_args halves;
    if (variant > 4 || (variant == 4 && !make_sh_halves(s, 0, &halves, c))) return false;
    if (variant == 4) call_now(kiln_ops_cpu_baseline(), &cpu, KILN_OP_sh_halves, &halves);
    uint32_t *source_rows = made_own(c, s->n, sizeof *source_rows);
    for (uint64_t i = 0; i < s->n; i++) source_rows[i] = (uint32_t)(3 * (s->n - i));
    *a = (kiln_project_args){.n = s->n,
                             KILN_PROJECT_PLANES(s),
                             .sh0 = variant != 2 ? s->sh0 : NULL,
                             .shN = variant != 2 && variant != 4 ? s->shN : NULL,
                             .sh_halves = variant == 4 ? halves.halves : NULL,
                             .half_sh = variant > 2,
                             .sh_degree = variant == 1   ? (uint32_t)(s->spec.kind % 4)
                                          : variant == 2 ? 0
                                                         : SCENE_SH_DEGREE,
                             .view = &s->view,
                             .profile = s->spec.profile,
                             .antialiased = s->spec.antialiased,
                             .splats = made_own(c, s->n, sizeof *a->splats),
                             .n_visible = made_own(c, 1, sizeof(uint64_t)),
                             .box_pairs = variant != 1 ? made_own(c, 1, sizeof(uint64_t)) : NULL,
                             .source_rows = variant > 0 ? source_rows : NULL,
                             .depths = variant > 0 ? made_own(c, s->n, sizeof *a->depths) : NULL,
                             .rows = variant > 0 ? made_own(c, s->n, sizeof *a->rows) : NULL};
    return true;
}
