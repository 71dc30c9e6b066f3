#include "stages/import/activation.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LEAST, LARGEST };

static const char likely[] = "the values look activated already";

static void begin_range(float range[2])
{
    range[LEAST] = HUGE_VALF;
    range[LARGEST] = -HUGE_VALF;
}

void kiln_activation_begin(kiln_activation *a)
{
    *a = (kiln_activation){0};
    begin_range(a->opacity);
    begin_range(a->scale);
    begin_range(a->length);
    begin_range(a->colour);
}

static void widen_value_range(float range[2], float v)
{
    if (!isfinite(v)) return;
    if (v < range[LEAST]) range[LEAST] = v;
    if (v > range[LARGEST]) range[LARGEST] = v;
}

static void widen_all(float range[2], const float *v, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) widen_value_range(range, v[i]);
}

void kiln_activation_add(const kiln_rows *rows, kiln_dialect dialect, kiln_activation *a)
{
    const uint64_t n = rows->n;
    const float *w = rows->quats, *x = w + n, *y = x + n, *z = y + n;
    a->n += n;
    widen_all(a->opacity, rows->opacity_logits, n);
    widen_all(a->scale, rows->log_scales, (dialect == KILN_DIALECT_2DGS ? 2 : 3) * n);
    widen_all(a->colour, rows->sh0, 3 * n);
    for (uint64_t i = 0; i < n; i++)
        widen_value_range(a->length, sqrtf(w[i] * w[i] + x[i] * x[i] + y[i] * y[i] + z[i] * z[i]));
}

static bool are_colours(const kiln_activation *a)
{
    return a->colour[LEAST] >= 0 && a->colour[LARGEST] <= 1;
}

bool kiln_activation_is_likely(const kiln_activation *a)
{
    const float one = 1e-3f;
    const bool units = a->length[LEAST] >= 1 - one && a->length[LARGEST] <= 1 + one;
    return a->n > 0 && a->opacity[LEAST] >= 0 && a->opacity[LARGEST] <= 1 && a->scale[LEAST] > 0 &&
           a->scale[LARGEST] >= a->scale[LEAST] && (units || are_colours(a));
}

void kiln_activation_note(const kiln_activation *a, kiln_source_info *info)
{
    const size_t used = strlen(info->notes);
    if (!kiln_activation_is_likely(a)) return;
    snprintf(info->notes + used, sizeof info->notes - used,
             "%s%s: of %llu rows all opacities are %.3g to %.3g, all scales %.3g to %.3g, and %s "
             "are %.3g to %.3g; as logits and "
             "logarithms, which a PLY should hold, these make far too large Gaussians: --activated "
             "takes them as "
             "opacities and lengths",
             used ? "; " : "", likely, (unsigned long long)a->n, (double)a->opacity[LEAST],
             (double)a->opacity[LARGEST], (double)a->scale[LEAST], (double)a->scale[LARGEST],
             are_colours(a) ? "colours" : "lengths of quaternions",
             (double)(are_colours(a) ? a->colour : a->length)[LEAST],
             (double)(are_colours(a) ? a->colour : a->length)[LARGEST]);
}

const char *kiln_activation_noted(const char *notes) { return strstr(notes, likely); }
