/* ksplat_writer -- .ksplat of levels 0 to 2 (ksplat_layout.h). Level 0 needs one round. Levels 1 and 2 need to know the boxes of
 * the buckets first, because the largest of a section gives its step, and level 2 the range of the coefficients.
 *
 * Chunks do not end where buckets do. In the first round a unit measures the buckets that are wholly its own and gives the least
 * step of each section that they are in, and the two boxes of its part of its first and its last bucket. The parent adds up parts
 * that are of one bucket and gives the whole boxes to the units of the second round, so that all of them find the same centre. */
#include "stages/export/ksplat_layout.h"
#include "stages/export/ksplat_rows.h"
#include "stages/export/linear.h"
#include "stages/export/rows.h"
#include "stages/export/writer.h"

#include "base/minmax.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKET = KILN_KSPLAT_BUCKET_ROWS, FLUSH_ROWS = 8192 };

/* The plan: this, then kiln_ksplat_box [2 a chunk] of first and last buckets, then int16_t [n_sections] of steps. */
typedef struct {
    uint32_t level;
    float sh_least, sh_most;
    uint32_t unused;
} plan_head;

/* A unit's result of the first round: this, then int16_t of the steps of the sections that its rows are in. */
typedef struct {
    kiln_ksplat_box first, last;
    float sh_least, sh_most;
} measured;

static const char *const counts[] = {"colours were clamped to 0 .. 1",
                                     "scales were clamped to 6e-8 .. 65504, which half precision holds",
                                     "coefficients of spherical harmonics were clamped to -65504 .. 65504",
                                     "coordinates were clamped to the reach of their bucket",
                                     "opacities were clamped to 1e-38 .. 0.99999994 before they were rounded",
                                     NULL};

/* ---- the plan ------------------------------------------------------------------------------------------------------------------
 */

static plan_head head_of(const void *plan)
{
    plan_head h;
    memcpy(&h, plan, sizeof h);
    return h;
}

static kiln_ksplat_layout layout_of(const kiln_export *e, const void *plan)
{
    kiln_ksplat_layout l;
    const uint32_t most = KILN_KSPLAT_WRITTEN_DEGREE;
    kiln_ksplat_layout_make(e->n_rows, head_of(plan).level, e->sh_degree < most ? e->sh_degree : most, &l);
    return l;
}

static size_t box_at(uint64_t i) { return sizeof(plan_head) + i * sizeof(kiln_ksplat_box); }
static size_t step_at(const kiln_export *e, uint32_t section)
{
    return box_at(2 * (uint64_t)e->n_chunks) + section * sizeof(int16_t);
}

static kiln_status make_plan(kiln_export_parent *p, uint32_t level, kiln_error *err)
{
    const kiln_export *e = p->e;
    const plan_head h = {.level = level, .sh_least = HUGE_VALF, .sh_most = -HUGE_VALF};
    const int16_t least = KILN_KSPLAT_LEAST_STEP;
    kiln_ksplat_layout l;
    kiln_ksplat_layout_make(e->n_rows, level, 0, &l);
    if (e->sh_degree > KILN_KSPLAT_WRITTEN_DEGREE)
        KILN_TRY(kiln_export_note(p, err, "a .ksplat holds spherical harmonics up to degree 2; those above are left out"));
    if (kiln_export_scene(e)->antialiased)
        KILN_TRY(kiln_export_note(p, err, "a .ksplat cannot say that the scene is antialiased; the viewer has to be told"));
    if (level == 0 && (e->origin[0] != 0 || e->origin[1] != 0 || e->origin[2] != 0))
        KILN_TRY(kiln_export_note(
            p, err, "positions far from 0 lose digits as floats; --keep-origin writes them relative to the scene's origin"));
    KILN_TRY(kiln_buffer_put(p->plan, &h, sizeof h, err));
    KILN_TRY(kiln_buffer_put(p->plan, NULL, box_at(2 * (uint64_t)e->n_chunks) - sizeof h, err));
    for (uint32_t i = 0; i < l.n_sections; i++) KILN_TRY(kiln_buffer_put(p->plan, &least, sizeof least, err));
    return KILN_OK;
}

static kiln_status plan_level0(kiln_export_parent *p, kiln_error *err) { return make_plan(p, 0, err); }
static kiln_status plan_level1(kiln_export_parent *p, kiln_error *err) { return make_plan(p, 1, err); }
static kiln_status plan_level2(kiln_export_parent *p, kiln_error *err) { return make_plan(p, 2, err); }

/* Bucket of the first (i even) or last row of chunk i / 2, which has rows. */
static uint64_t bucket_of_end(const kiln_export *e, uint64_t i)
{
    const kiln_export_chunk *c = &e->chunks[i / 2];
    return (c->first + (i % 2 ? c->n - 1 : 0)) / BUCKET;
}

/* ---- the first round: workers --------------------------------------------------------------------------------------------------
 */

static unsigned measured_planes(const kiln_export *e)
{
    return KILN_ROWS_MEANS | (head_of(e->plan).level == 2 && e->sh_degree ? KILN_ROWS_SHN : 0u);
}

static uint64_t measure_ram(const kiln_export *e, uint64_t unit)
{
    return kiln_export_rows_ram(e, unit, measured_planes(e)) + (1 << 16);
}

static kiln_ksplat_rows rows_of(const kiln_export *e, const kiln_export_rows *rows)
{
    kiln_ksplat_rows r = {.n = rows->n, .first = rows->first, .means = rows->means, .shN = rows->shN};
    memcpy(r.origin, e->origin, sizeof r.origin);
    return r;
}

/* Rows from `at` on that are of one bucket. */
static uint64_t rows_of_bucket(const kiln_ksplat_rows *r, uint64_t at)
{
    return kiln_min_u64(BUCKET - (r->first + at) % BUCKET, r->n - at);
}

static void measure_buckets(const kiln_ksplat_layout *l, const kiln_ksplat_rows *r, measured *m, int16_t *steps)
{
    const uint64_t first = r->first / BUCKET, last = (r->first + r->n - 1) / BUCKET;
    kiln_ksplat_box_clear(&m->first);
    kiln_ksplat_box_clear(&m->last);
    for (uint64_t at = 0, n; at < r->n; at += n) {
        const uint64_t bucket = (r->first + at) / BUCKET;
        int16_t *step = &steps[kiln_ksplat_row_section(l, r->first + at) - kiln_ksplat_row_section(l, r->first)];
        kiln_ksplat_box box;
        n = rows_of_bucket(r, at);
        kiln_ksplat_rows_box(r, at, n, &box);
        if (bucket == first)
            m->first = box;
        else if (bucket == last)
            m->last = box;
        else if (kiln_ksplat_box_step(&box) > *step)
            *step = kiln_ksplat_box_step(&box);
    }
}

static kiln_status measure_rows(kiln_export_worker *x, const kiln_export_rows *rows, kiln_error *err)
{
    const kiln_ksplat_layout l = layout_of(x->e, x->e->plan);
    const kiln_ksplat_rows r = rows_of(x->e, rows);
    const uint32_t first = kiln_ksplat_row_section(&l, r.first), last = kiln_ksplat_row_section(&l, r.first + r.n - 1);
    const size_t bytes = sizeof(measured) + (last - first + 1) * sizeof(int16_t);
    unsigned char *result = NULL;
    KILN_TRY(KILN_ALLOC(&result, bytes, "steps of sections", err));
    measured *m = (measured *)(void *)result;
    int16_t *steps = (int16_t *)(void *)(result + sizeof *m);
    m->sh_least = HUGE_VALF;
    m->sh_most = -HUGE_VALF;
    for (uint32_t i = 0; i <= last - first; i++) steps[i] = KILN_KSPLAT_LEAST_STEP;
    measure_buckets(&l, &r, m, steps);
    if (l.level == 2 && l.sh_degree) kiln_ksplat_rows_range(&r, l.sh_degree, &m->sh_least, &m->sh_most);
    const kiln_status st = kiln_export_result(x, result, bytes, err);
    free(result);
    return st;
}

static kiln_status measure_chunk(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    kiln_export_rows rows;
    KILN_TRY(kiln_export_rows_read(x, unit, measured_planes(x->e), &rows, err));
    const kiln_status st = rows.n ? measure_rows(x, &rows, err) : KILN_OK;
    kiln_export_rows_release(&rows);
    return st;
}

/* ---- the first round: parent ---------------------------------------------------------------------------------------------------
 */

static void raise_step(kiln_export_parent *p, uint32_t section, int16_t step)
{
    unsigned char *at = p->plan->data + step_at(p->e, section);
    int16_t now;
    memcpy(&now, at, sizeof now);
    if (step > now) memcpy(at, &step, sizeof step);
}

static kiln_status gather(kiln_export_parent *p, uint64_t unit, const void *result, size_t bytes, kiln_error *err)
{
    const kiln_export_chunk *c = &p->e->chunks[unit];
    const kiln_ksplat_layout l = layout_of(p->e, p->plan->data);
    measured m;
    if (c->n == 0) return KILN_OK;
    const uint32_t first = kiln_ksplat_row_section(&l, c->first), last = kiln_ksplat_row_section(&l, c->first + c->n - 1);
    if (!result || bytes != sizeof m + (last - first + 1) * sizeof(int16_t))
        return kiln_fail(err, KILN_E_BUG, "a chunk's measures have %zu bytes", bytes);
    memcpy(&m, result, sizeof m);
    memcpy(p->plan->data + box_at(2 * unit), &m.first, sizeof m.first);
    memcpy(p->plan->data + box_at(2 * unit + 1), &m.last, sizeof m.last);
    for (uint32_t i = 0; i <= last - first; i++) {
        int16_t step;
        memcpy(&step, (const unsigned char *)result + sizeof m + i * sizeof step, sizeof step);
        raise_step(p, first + i, step);
    }
    plan_head h = head_of(p->plan->data);
    h.sh_least = m.sh_least < h.sh_least ? m.sh_least : h.sh_least;
    h.sh_most = m.sh_most > h.sh_most ? m.sh_most : h.sh_most;
    memcpy(p->plan->data, &h, sizeof h);
    return KILN_OK;
}

/* Ends of chunks from `from` to `to` are of one bucket. */
static void join_ends(kiln_export_parent *p, const kiln_ksplat_layout *l, uint64_t from, uint64_t to)
{
    kiln_ksplat_box whole, part;
    kiln_ksplat_box_clear(&whole);
    for (uint64_t i = from; i <= to; i++) {
        if (p->e->chunks[i / 2].n == 0) continue;
        memcpy(&part, p->plan->data + box_at(i), sizeof part);
        kiln_ksplat_box_add(&whole, &part);
    }
    for (uint64_t i = from; i <= to; i++) memcpy(p->plan->data + box_at(i), &whole, sizeof whole);
    raise_step(p, kiln_ksplat_row_section(l, bucket_of_end(p->e, from) * BUCKET), kiln_ksplat_box_step(&whole));
}

static kiln_status join_buckets(kiln_export_parent *p, kiln_error *err)
{
    const kiln_ksplat_layout l = layout_of(p->e, p->plan->data);
    const uint64_t none = UINT64_MAX;
    uint64_t from = none, to = 0;
    (void)err;
    for (uint64_t i = 0; i < 2 * (uint64_t)p->e->n_chunks; i++) {
        if (p->e->chunks[i / 2].n == 0) continue;
        if (from != none && bucket_of_end(p->e, i) != bucket_of_end(p->e, from)) {
            join_ends(p, &l, from, to);
            from = none;
        }
        if (from == none) from = i;
        to = i;
    }
    if (from != none) join_ends(p, &l, from, to);
    return KILN_OK;
}

/* ---- the second round ----------------------------------------------------------------------------------------------------------
 */

/* A worker's, of one round. */
typedef struct {
    kiln_ksplat_layout layout;
    kiln_ksplat_scales scales;
    int16_t steps[KILN_KSPLAT_WRITTEN_SECTIONS];
} writer_state;

static uint64_t write_ram(const kiln_export *e, uint64_t unit)
{
    const kiln_ksplat_layout l = layout_of(e, e->plan);
    const uint64_t rows = e->chunks[unit].chunk->count;
    return kiln_export_rows_ram(e, unit, KILN_ROWS_SPLAT) + rows * 4 * sizeof(float) + (uint64_t)FLUSH_ROWS * l.row_bytes +
           sizeof(writer_state) + (1 << 16);
}

static void fill_scales(const kiln_export *e, const void *plan, const kiln_ksplat_layout *l, int16_t *steps, kiln_ksplat_scales *s)
{
    const plan_head h = head_of(plan);
    memcpy(steps, (const unsigned char *)plan + step_at(e, 0), l->n_sections * sizeof *steps);
    *s = (kiln_ksplat_scales){.steps = steps};
    if (h.sh_least <= h.sh_most) kiln_ksplat_sh_range(h.sh_least, h.sh_most, s);
}

static kiln_status have_state(kiln_export_worker *x, kiln_error *err)
{
    writer_state *s;
    const kiln_ksplat_layout l = layout_of(x->e, x->e->plan);
    if (x->own) return KILN_OK;
    if (x->e->plan_bytes != step_at(x->e, l.n_sections)) return kiln_fail(err, KILN_E_BUG, "a plan of %zu bytes", x->e->plan_bytes);
    KILN_TRY(KILN_ALLOC(&s, 1, ".ksplat writer", err));
    s->layout = l;
    fill_scales(x->e, x->e->plan, &s->layout, s->steps, &s->scales);
    x->own = s;
    return KILN_OK;
}

/* Of a unit: records and centres that are not written yet, of one section. */
typedef struct {
    const writer_state *s;
    kiln_ksplat_rows rows;
    uint64_t unit;
    unsigned char *records; /* [FLUSH_ROWS] */
    float centres[FLUSH_ROWS / BUCKET + 1][3];
    uint64_t from, n; /* rows of the chunk in records */
    uint64_t first_bucket, n_centres;
} pieces;

static kiln_status flush(kiln_export_worker *x, pieces *p, kiln_error *err)
{
    const kiln_ksplat_layout *l = &p->s->layout;
    if (p->n)
        KILN_TRY(kiln_export_write(x, p->records, p->n * l->row_bytes, kiln_ksplat_row_place(l, p->rows.first + p->from), err));
    if (p->n_centres)
        KILN_TRY(
            kiln_export_write(x, p->centres, p->n_centres * sizeof *p->centres, kiln_ksplat_centre_place(l, p->first_bucket), err));
    p->from += p->n;
    p->n = p->n_centres = 0;
    return KILN_OK;
}

static void find_centre(const kiln_export *e, const pieces *p, uint64_t at, uint64_t n, float centre[3])
{
    const uint64_t row = p->rows.first + at, bucket = row / BUCKET;
    kiln_ksplat_box box;
    if (bucket == bucket_of_end(e, 2 * p->unit))
        memcpy(&box, (const unsigned char *)e->plan + box_at(2 * p->unit), sizeof box);
    else if (bucket == bucket_of_end(e, 2 * p->unit + 1))
        memcpy(&box, (const unsigned char *)e->plan + box_at(2 * p->unit + 1), sizeof box);
    else
        kiln_ksplat_rows_box(&p->rows, at, n, &box);
    kiln_ksplat_box_centre(&box, p->s->steps[kiln_ksplat_row_section(&p->s->layout, row)], centre);
}

static kiln_status write_buckets(kiln_export_worker *x, pieces *p, kiln_error *err)
{
    const kiln_ksplat_layout *l = &p->s->layout;
    for (uint64_t at = 0, n; at < p->rows.n; at += n) {
        const uint64_t row = p->rows.first + at;
        float centre[3] = {0};
        n = rows_of_bucket(&p->rows, at);
        if (row % l->section_rows == 0 || p->n + n > FLUSH_ROWS) KILN_TRY(flush(x, p, err));
        if (l->level) find_centre(x->e, p, at, n, centre);
        if (l->level && row % BUCKET == 0) { /* the chunk that has a bucket's first row writes its centre */
            if (p->n_centres == 0) p->first_bucket = row / BUCKET;
            memcpy(p->centres[p->n_centres++], centre, sizeof centre);
        }
        kiln_ksplat_encode(l, &p->s->scales, centre, &p->rows, at, n, p->records + p->n * l->row_bytes, x->counts);
        p->n += n;
    }
    return flush(x, p, err);
}

static kiln_status write_rows(kiln_export_worker *x, uint64_t unit, const kiln_export_rows *rows, kiln_error *err)
{
    kiln_status st = KILN_OK;
    pieces p = {.s = x->own, .rows = rows_of(x->e, rows), .unit = unit};
    const uint64_t n = rows->n;
    float *quats = NULL;
    KILN_GO(KILN_ALLOC_UNSET(&quats, 4 * n, "rotations", err));
    KILN_GO(kiln_alloc_unset((void **)&p.records, FLUSH_ROWS, p.s->layout.row_bytes, "records", err));
    kiln_linear_scales(3 * n, rows->log_scales, rows->log_scales);
    kiln_ksplat_quats(p.s->layout.level, n, rows->quats, quats);
    x->counts[KILN_KSPLAT_COUNTS] += kiln_alphas(n, rows->opacity_logits, rows->opacity_logits);
    p.rows.scales = rows->log_scales;
    p.rows.quats = quats;
    p.rows.alphas = rows->opacity_logits;
    p.rows.sh0 = rows->sh0;
    KILN_GO(write_buckets(x, &p, err));
done:
    free(p.records);
    free(quats);
    return st;
}

static kiln_status write_chunk(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    kiln_export_rows rows;
    KILN_TRY(have_state(x, err));
    KILN_TRY(kiln_export_rows_read(x, unit, KILN_ROWS_SPLAT, &rows, err));
    const kiln_status st = rows.n ? write_rows(x, unit, &rows, err) : KILN_OK;
    kiln_export_rows_release(&rows);
    return st;
}

/* ---- headers -------------------------------------------------------------------------------------------------------------------
 */

static kiln_status begin(kiln_export_parent *p, kiln_error *err)
{
    return kiln_export_resize(p, layout_of(p->e, p->plan->data).bytes, err);
}

static kiln_status finish(kiln_export_parent *p, kiln_error *err)
{
    const kiln_ksplat_layout l = layout_of(p->e, p->plan->data);
    int16_t steps[KILN_KSPLAT_WRITTEN_SECTIONS];
    kiln_ksplat_scales s;
    kiln_buffer head = {0};
    uint64_t place;
    const uint32_t last = kiln_ksplat_last_bucket(&l, &place);
    fill_scales(p->e, p->plan->data, &l, steps, &s);
    kiln_status st = kiln_ksplat_head(&l, &s, &head, err);
    if (st == KILN_OK) st = kiln_export_put(p, head.data, head.size, 0, err);
    if (st == KILN_OK && last) st = kiln_export_put(p, &last, sizeof last, place, err);
    kiln_buffer_release(&head);
    return st;
}

/* ---- formats -------------------------------------------------------------------------------------------------------------------
 */

static const kiln_export_round rounds[] = {
    {.what = "measuring", .ram = measure_ram, .run = measure_chunk, .gather = gather, .end = join_buckets},
    {.what = "exporting", .ram = write_ram, .run = write_chunk},
};

const kiln_writer_functions kiln_writer_ksplat = {.place = KILN_PLACE_FILE,
                                                  .counts = counts,
                                                  .plan = plan_level1,
                                                  .begin = begin,
                                                  .rounds = rounds,
                                                  .n_rounds = 2,
                                                  .finish = finish};
const kiln_writer_functions kiln_writer_ksplat0 = {.place = KILN_PLACE_FILE,
                                                   .counts = counts,
                                                   .plan = plan_level0,
                                                   .begin = begin,
                                                   .rounds = rounds + 1,
                                                   .n_rounds = 1,
                                                   .finish = finish};
const kiln_writer_functions kiln_writer_ksplat2 = {.place = KILN_PLACE_FILE,
                                                   .counts = counts,
                                                   .plan = plan_level2,
                                                   .begin = begin,
                                                   .rounds = rounds,
                                                   .n_rounds = 2,
                                                   .finish = finish};
