/* float_places -- see the header. */
#include "stages/formats/float_places.h"

#include <math.h>

void kiln_float_places(const kiln_export *e, kiln_export_rows *rows)
{
    for (uint64_t c = 0; c < 3; c++) {
        float *mean = rows->means + c * rows->n;
        for (uint64_t i = 0; e->origin[c] != 0 && i < rows->n; i++)
            mean[i] = (float)((double)mean[i] + e->origin[c]);
    }
}

/* The largest distance between neighbouring floats at the positions of what is written. */
static double coarsest_step(const kiln_export *e)
{
    double step = 0;
    for (int c = 0; c < 3; c++) {
        const kiln_value_range *r = &e->survey.means[c];
        const float far =
            (float)fmax(fabs((double)r->lo + e->origin[c]), fabs((double)r->hi + e->origin[c]));
        step = fmax(step, (double)nextafterf(far, HUGE_VALF) - (double)far);
    }
    return step;
}

static bool is_zero(const double v[3]) { return v[0] == 0 && v[1] == 0 && v[2] == 0; }

kiln_status kiln_origin_note(kiln_export_parent *p, kiln_error *err)
{
    const double *o = p->e->base;
    if (!p->e->keep_origin || is_zero(o)) return KILN_OK;
    return kiln_export_note(
        p, err, "positions are relative to the scene's origin %.17g %.17g %.17g", o[0], o[1], o[2]);
}

kiln_status kiln_float_places_note(kiln_export_parent *p, kiln_error *err)
{
    if (is_zero(p->e->origin)) return kiln_origin_note(p, err);
    return kiln_export_note(
        p, err,
        "readers hold positions as float32, whose steps are up to %.3g where this scene lies; "
        "--keep-origin writes them relative to its origin",
        coarsest_step(p->e));
}
