/* makers_prune -- Rules of kiln-prune. */
#include "tests/gpu/makers_internal.h"

#include "tests/unit/prune_off.h"

static void set_rules(kiln_prune_rules *r, unsigned variant)
{
    const bool drops = variant == 2;
    *r = (kiln_prune_rules){.min_opacity = -5.5f,
                            .crop_box = {-4, -4, -4, 4, 4, 8},
                            .crop_sphere = {0, 0, 1, 6},
                            .outlier = 0.09f,
                            .min_scale = -8,
                            .max_scale = 1,
                            .max_extent = 0.5f,
                            .max_spacing = {4, variant ? 1e-4f : 0.0f},
                            .max_needle = 10};
    r->min_scale_policy = r->max_scale_policy = r->max_extent_policy = r->max_spacing_policy =
        r->max_needle_policy = drops ? KILN_PRUNE_DROP : KILN_PRUNE_CLAMP;
    if (variant == 3) /* every rule off */
        *r = prune_rules_off();
}

bool make_prune(const scene *s, unsigned variant, kiln_prune_args *a, made_call *c)
{
    if (variant > 3 || s->spec.of_views) return false;
    uint8_t *drop = made_own(c, s->n, 1);
    uint64_t(*counts)[2] = made_own(c, KILN_PRUNE_RULES, sizeof *counts);
    for (uint64_t i = 0; i < s->n; i++)
        drop[i] = i % 13 == 5 ? (uint8_t)(i % 7 % (KILN_PRUNE_APART + 1)) : KILN_PRUNE_STAY;
    for (uint64_t r = 0; r < KILN_PRUNE_RULES; r++) counts[r][0] = 1000 + r, counts[r][1] = r << 40;
    set_rules(&c->rules, variant);
    *a = (kiln_prune_args){.n = s->n,
                           .means = s->means,
                           .log_scales = s->log_scales,
                           .opacity_logits = s->opacity_logits,
                           .spacing2 = variant == 1 ? NULL : s->spacing2,
                           .drop = variant == 0 ? NULL : drop,
                           .rules = &c->rules,
                           .keep = made_own(c, s->n, 1),
                           .log_scales_out = made_own(c, 3 * s->n, sizeof(float)),
                           .counts = counts};
    return true;
}
