/* makers_palette -- Palettes of spherical harmonics. */
#include "tests/gpu/makers_internal.h"

/* What a variant of the three operations works on. distinct: values of the rows' seed, so at most
 * as many rows differ; noise 0: the rows of a group are equal. Few entries and very many, whole
 * cells that are equal, more entries than rows that differ, one value a row (means meet, and
 * entries are left without rows), rows at the limit. */
typedef struct {
    uint32_t d, p;
    uint64_t groups;
    int spread, noise;
} palette_spec;

static bool palette_spec_of(const scene *s, unsigned variant, palette_spec *out)
{
    const uint32_t n = (uint32_t)s->n;
    const palette_spec specs[] = {{45, n / 4 + 1, n / 60 + 1, 700, 250},
                                  {24, n / 3 + 1, n / 5 + 1, 1800, 0},
                                  {9, n / 2 + 1, 40, 300, 60},
                                  {1, n / 3 + 1, n, 1000, 700},
                                  {48, 70, 7, 2047, 0},
                                  {7, 1, 5, 1500, 500},
                                  {2, 300, 90, 1000, 3}};
    if (variant >= sizeof specs / sizeof *specs || s->spec.kind > SCENE_CLUSTERED ||
        s->spec.of_views || n == 0)
        return false;
    /* the time it takes */
    if (n > 5000 && (variant > 0 || s->spec.kind != SCENE_RANDOM)) return false;
    *out = specs[variant];
    if (s->spec.kind == SCENE_CLUSTERED) out->noise /= 4;
    return true;
}

static int16_t *make_palette_rows(const palette_spec *p, uint64_t n, made_call *c)
{
    int16_t *rows = made_own(c, n * p->d, sizeof *rows);
    uint64_t state = n;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t group = i * 2654435761u % p->groups + 1;
        for (uint32_t k = 0; k < p->d; k++) {
            group = group * 6364136223846793005u + 1442695040888963407u; /* Knuth, MMIX */
            state = state * 6364136223846793005u + 1442695040888963407u;
            const int64_t middle = (int64_t)(group >> 33) % (2 * p->spread + 1) - p->spread;
            const int64_t v =
                middle +
                (p->noise > 0 ? (int64_t)(state >> 33) % (2 * p->noise + 1) - p->noise : 0);
            rows[i * p->d + k] = (int16_t)(v > KILN_PALETTE_LIMIT    ? KILN_PALETTE_LIMIT
                                           : v < -KILN_PALETTE_LIMIT ? -KILN_PALETTE_LIMIT
                                                                     : v);
        }
    }
    return rows;
}

bool make_palette_train(const scene *s, unsigned variant, kiln_palette_train_args *a, made_call *c)
{
    palette_spec p;
    if (!palette_spec_of(s, variant, &p)) return false;
    *a = (kiln_palette_train_args){.n = s->n,
                                   .seed = variant,
                                   .d = p.d,
                                   .p = p.p,
                                   .rows = make_palette_rows(&p, s->n, c),
                                   .centroids =
                                       made_own(c, (uint64_t)p.p * p.d, sizeof *a->centroids),
                                   .n_entries = made_own(c, 1, sizeof *a->n_entries)};
    return true;
}

/* The rows themselves as entries. */
bool make_palette_index(const scene *s, unsigned variant, kiln_palette_index_args *a, made_call *c)
{
    palette_spec p;
    if (!palette_spec_of(s, variant, &p)) return false;
    *a = (kiln_palette_index_args){
        .d = p.d,
        .p = (uint32_t)s->n,
        .centroids = make_palette_rows(&p, s->n, c),
        .index = made_own(c, kiln_palette_index_words((uint32_t)s->n, p.d), sizeof *a->index)};
    return true;
}

bool make_palette_assign(const scene *s, unsigned variant, kiln_palette_assign_args *a,
                         made_call *c)
{
    static const kiln_exec cpu = {.device = -1, .threads = 2};
    palette_spec p;
    if (!palette_spec_of(s, variant, &p)) return false;
    int16_t *centroids = make_palette_rows(&p, p.p, c);
    for (uint64_t i = 0; i < (uint64_t)p.p * p.d; i += 3)
        centroids[i] = (int16_t)(centroids[i] / 2);
    kiln_palette_index_args index = {
        .d = p.d,
        .p = p.p,
        .centroids = centroids,
        .index = made_own(c, kiln_palette_index_words(p.p, p.d), sizeof *index.index)};
    call_now(kiln_ops_cpu_baseline(), &cpu, KILN_OP_palette_index, &index);
    *a = (kiln_palette_assign_args){
        .n = s->n,
        .d = p.d,
        .p = p.p,
        .rows = make_palette_rows(&p, s->n, c),
        .centroids = centroids,
        .index = index.index,
        .labels = made_own(c, s->n, sizeof *a->labels),
        .distances = variant == 1 ? NULL : made_own(c, s->n, sizeof *a->distances)};
    return true;
}
