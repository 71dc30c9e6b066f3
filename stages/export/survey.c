/* survey -- see survey.h. */
#include "stages/export/survey.h"

#include "base/harmonics.h"
#include "stages/formats/rows.h"

#include <math.h>
#include <string.h>

static kiln_value_range empty_range(void) { return (kiln_value_range){INFINITY, -INFINITY}; }

static void add_range(kiln_value_range *r, kiln_value_range other)
{
    if (other.lo < r->lo) r->lo = other.lo;
    if (other.hi > r->hi) r->hi = other.hi;
}

/* Planes hold finite numbers only; one that does not is damaged and widens no range. */
static kiln_value_range range_of_values(const float *values, uint64_t n)
{
    kiln_value_range r = empty_range();
    for (uint64_t i = 0; values && i < n; i++) {
        if (values[i] < r.lo) r.lo = values[i];
        if (values[i] > r.hi) r.hi = values[i];
    }
    return r;
}

void kiln_survey_begin(kiln_export_survey *s)
{
    for (int c = 0; c < 3; c++) s->means[c] = empty_range();
    s->log_scales = s->opacity_logits = s->sh0 = s->shN = empty_range();
}

void kiln_survey_add(kiln_export_survey *s, const kiln_export_survey *other)
{
    for (int c = 0; c < 3; c++) add_range(&s->means[c], other->means[c]);
    add_range(&s->log_scales, other->log_scales);
    add_range(&s->opacity_logits, other->opacity_logits);
    add_range(&s->sh0, other->sh0);
    add_range(&s->shN, other->shN);
}

bool kiln_survey_is_needed(const kiln_export *e, unsigned planes)
{
    return e->edited || e->filters.n || e->n_bakes > 1 || (planes & ~(unsigned)KILN_ROWS_MEANS);
}

void kiln_survey_of_bounds(const kiln_export *e, kiln_export_survey *s)
{
    kiln_survey_begin(s);
    for (uint32_t i = 0; i < e->n_chunks; i++)
        for (int c = 0; c < 3; c++)
            add_range(&s->means[c], (kiln_value_range){e->chunks[i].chunk->box_min[c],
                                                       e->chunks[i].chunk->box_max[c]});
}

kiln_status kiln_survey_chunk(kiln_export_worker *x, unsigned planes, uint64_t index,
                              kiln_error *err)
{
    kiln_export_rows rows;
    kiln_chunk_survey out;
    const uint32_t degree = x->e->sh_degree;
    KILN_TRY(kiln_export_rows_read(x, index, planes | KILN_ROWS_MEANS, &rows, err));
    const uint64_t n = rows.n;
    memset(&out, 0, sizeof out);
    out.n = n;
    for (uint64_t c = 0; c < 3; c++) out.of.means[c] = range_of_values(rows.means + c * n, n);
    out.of.log_scales = range_of_values(rows.log_scales, 3 * n);
    out.of.opacity_logits = range_of_values(rows.opacity_logits, n);
    out.of.sh0 = range_of_values(rows.sh0, 3 * n);
    out.of.shN = range_of_values(rows.shN, kiln_sh_components(degree) * n);
    kiln_export_rows_release(&rows);
    return kiln_export_result(x, &out, sizeof out, err);
}
