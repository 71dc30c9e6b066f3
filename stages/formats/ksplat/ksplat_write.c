/* ksplat_write -- .ksplat of levels 0 to 2 (ksplat.h, ksplat_layout.h). Level 0 needs one round.
 * Levels 1 and 2 need to know the boxes of the buckets first, because the largest of a section
 * gives its step, and level 2 the range of the coefficients.
 *
 * Chunks do not end where buckets do. In the first round a unit gives the steps of the buckets that
 * are wholly its own, a byte each, and the boxes of its parts of its first and its last bucket. The
 * parent adds up parts that are of one bucket and gives the whole boxes to the units of the second
 * round, so that all of them find the same centre. */
#include "stages/formats/float_places.h"
#include "stages/formats/ksplat/ksplat_layout.h"
#include "stages/formats/ksplat/ksplat_rows.h"
#include "stages/formats/linear.h"
#include "stages/formats/rows.h"
#include "stages/formats/writer.h"

#include "base/minmax.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKET = KILN_KSPLAT_BUCKET_ROWS, FLUSH_ROWS = 8192 };

/* The plan: this, then kiln_ksplat_box [2 a chunk] of first and last buckets, then the steps of all
 * buckets, int8_t. */
typedef struct {
    uint32_t level;
    float sh_least, sh_most;
    uint32_t unused;
} plan_head;

/* A unit's result of the first round: this, then the steps of the buckets that its rows are in,
 * int8_t. */
typedef struct {
    kiln_ksplat_box first, last;
    float sh_least, sh_most;
} measured;

static const kiln_export_count counts[] = {
    {"colour was clamped to 0 .. 1", "colours were clamped to 0 .. 1"},
    {"scale was clamped to 6e-8 .. 65504, which half precision holds",
     "scales were clamped to 6e-8 .. 65504, which half precision holds"},
    {"coefficient of spherical harmonics was clamped to -65504 .. 65504",
     "coefficients of spherical harmonics were clamped to -65504 .. 65504"},
    {"coordinate was clamped to the reach of its bucket",
     "coordinates were clamped to the reach of their bucket"},
    {"row is rounded to position steps larger than itself; leave out what lies far away "
     "(--filter-box)",
     "rows are rounded to position steps larger than themselves; leave out what lies far away "
     "(--filter-box)"},
    {NULL, NULL}};

/* ---- the plan -------------------------------------------------------------------------------- */

static plan_head head_of(const void *plan)
{
    plan_head h;
    memcpy(&h, plan, sizeof h);
    return h;
}

static size_t box_at(uint64_t i) { return sizeof(plan_head) + i * sizeof(kiln_ksplat_box); }
static size_t step_at(const kiln_export *e, uint64_t bucket)
{
    return box_at(2 * (uint64_t)e->n_chunks) + bucket;
}

static uint32_t ksplat_degree(const kiln_export *e)
{
    return kiln_export_degree(e, KILN_KSPLAT_WRITTEN_DEGREE);
}

static void make_layout(const kiln_export *e, const void *plan, kiln_ksplat_layout *out)
{
    const int8_t *steps = (const int8_t *)((const char *)plan + step_at(e, 0));
    kiln_ksplat_layout_make(e->n_rows, head_of(plan).level, ksplat_degree(e), steps, out);
}

static kiln_ksplat_sh_range range_of(const void *plan)
{
    const plan_head h = head_of(plan);
    return h.sh_least <= h.sh_most ? kiln_ksplat_sh_range_of(h.sh_least, h.sh_most)
                                   : (kiln_ksplat_sh_range){0, 0};
}

static kiln_status plan_ksplat(kiln_export_parent *p, uint32_t level, kiln_error *err)
{
    const kiln_export *e = p->e;
    const plan_head h = {.level = level, .sh_least = HUGE_VALF, .sh_most = -HUGE_VALF};
    if (e->n_rows > UINT32_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "a .ksplat counts rows with 32 bits, and these are %llu; write fewer "
                         "(--chunks, --filter-box), or several files",
                         (unsigned long long)e->n_rows);
    if (e->sh_degree > KILN_KSPLAT_WRITTEN_DEGREE)
        KILN_TRY(kiln_export_note(
            p, err,
            "a .ksplat holds spherical harmonics up to degree 2; those above are left out"));
    if (kiln_export_scene(e)->antialiased)
        KILN_TRY(kiln_export_note(
            p, err,
            "a .ksplat cannot say that the scene is antialiased; the viewer has to be told"));
    KILN_TRY(kiln_float_places_note(p, err));
    KILN_TRY(kiln_buffer_put(p->plan, &h, sizeof h, err));
    return kiln_buffer_put(p->plan, NULL, step_at(e, kiln_ksplat_buckets_of(e->n_rows)) - sizeof h,
                           err);
}

static kiln_status plan_level0(kiln_export_parent *p, kiln_error *err)
{
    return plan_ksplat(p, 0, err);
}
static kiln_status plan_level1(kiln_export_parent *p, kiln_error *err)
{
    return plan_ksplat(p, 1, err);
}
static kiln_status plan_level2(kiln_export_parent *p, kiln_error *err)
{
    return plan_ksplat(p, 2, err);
}

/* Bucket of the first (i even) or last row of chunk i / 2, which has rows. */
static uint64_t bucket_of_end(const kiln_export *e, uint64_t i)
{
    const kiln_export_chunk *c = &e->chunks[i / 2];
    return (c->first + (i % 2 ? c->n - 1 : 0)) / BUCKET;
}

/* ---- the first round: workers ---------------------------------------------------------------- */

static unsigned measured_planes(const kiln_export *e)
{
    return KILN_ROWS_MEANS | (head_of(e->plan).level == 2 && e->sh_degree ? KILN_ROWS_SHN : 0u);
}

static uint64_t measure_ram(const kiln_export *e, uint64_t unit)
{
    return kiln_export_rows_ram(e, unit, measured_planes(e)) + (1 << 16);
}

static kiln_ksplat_rows ksplat_rows_of(const kiln_export *e, const kiln_export_rows *rows)
{
    kiln_ksplat_rows r = {
        .n = rows->n, .first = rows->first, .means = rows->means, .shN = rows->shN};
    memcpy(r.origin, e->origin, sizeof r.origin);
    return r;
}

/* Rows from `at` on that are of one bucket. */
static uint64_t rows_of_bucket(const kiln_ksplat_rows *r, uint64_t at)
{
    return kiln_min_u64(BUCKET - (r->first + at) % BUCKET, r->n - at);
}

static void measure_buckets(const kiln_ksplat_rows *r, measured *m, int8_t *steps)
{
    const uint64_t first = r->first / BUCKET, last = (r->first + r->n - 1) / BUCKET;
    kiln_ksplat_box_clear(&m->first);
    kiln_ksplat_box_clear(&m->last);
    for (uint64_t at = 0, n; at < r->n; at += n) {
        const uint64_t bucket = (r->first + at) / BUCKET;
        kiln_ksplat_box box;
        n = rows_of_bucket(r, at);
        kiln_ksplat_rows_box(r, at, n, &box);
        if (bucket == first)
            m->first = box;
        else if (bucket == last)
            m->last = box;
        else
            steps[bucket - first] = kiln_ksplat_box_step(&box);
    }
}

static uint64_t buckets_of_rows(uint64_t first, uint64_t n)
{
    return (first + n - 1) / BUCKET - first / BUCKET + 1;
}

static kiln_status measure_rows(kiln_export_worker *x, const kiln_export_rows *rows,
                                kiln_error *err)
{
    const kiln_ksplat_rows r = ksplat_rows_of(x->e, rows);
    const size_t bytes = sizeof(measured) + buckets_of_rows(r.first, r.n);
    unsigned char *result = NULL;
    KILN_TRY(KILN_ALLOC(&result, bytes, "steps of buckets", err));
    measured *m = (measured *)(void *)result;
    m->sh_least = HUGE_VALF;
    m->sh_most = -HUGE_VALF;
    measure_buckets(&r, m, (int8_t *)(result + sizeof *m));
    if (head_of(x->e->plan).level == 2 && x->e->sh_degree)
        kiln_ksplat_rows_range(&r, ksplat_degree(x->e), &m->sh_least, &m->sh_most);
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

/* ---- the first round: parent ----------------------------------------------------------------- */

static kiln_status gather_measures(kiln_export_parent *p, uint64_t unit, const void *result,
                                   size_t bytes, kiln_error *err)
{
    const kiln_export_chunk *c = &p->e->chunks[unit];
    measured m;
    if (c->n == 0) return KILN_OK;
    if (!result || bytes != sizeof m + buckets_of_rows(c->first, c->n))
        return kiln_fail(err, KILN_E_BUG, "a chunk's measures have %zu bytes", bytes);
    memcpy(&m, result, sizeof m);
    memcpy(p->plan->data + box_at(2 * unit), &m.first, sizeof m.first);
    memcpy(p->plan->data + box_at(2 * unit + 1), &m.last, sizeof m.last);
    memcpy(p->plan->data + step_at(p->e, c->first / BUCKET), (const char *)result + sizeof m,
           bytes - sizeof m);
    plan_head h = head_of(p->plan->data);
    h.sh_least = m.sh_least < h.sh_least ? m.sh_least : h.sh_least;
    h.sh_most = m.sh_most > h.sh_most ? m.sh_most : h.sh_most;
    memcpy(p->plan->data, &h, sizeof h);
    return KILN_OK;
}

/* Ends of chunks from `from` to `to` are of one bucket. */
static void join_ends(kiln_export_parent *p, uint64_t from, uint64_t to)
{
    kiln_ksplat_box whole, part;
    kiln_ksplat_box_clear(&whole);
    for (uint64_t i = from; i <= to; i++) {
        if (p->e->chunks[i / 2].n == 0) continue;
        memcpy(&part, p->plan->data + box_at(i), sizeof part);
        kiln_ksplat_box_add(&whole, &part);
    }
    for (uint64_t i = from; i <= to; i++) memcpy(p->plan->data + box_at(i), &whole, sizeof whole);
    p->plan->data[step_at(p->e, bucket_of_end(p->e, from))] =
        (unsigned char)kiln_ksplat_box_step(&whole);
}

static kiln_status join_buckets(kiln_export_parent *p, kiln_error *err)
{
    const uint64_t none = UINT64_MAX;
    uint64_t from = none, to = 0;
    (void)err;
    for (uint64_t i = 0; i < 2 * (uint64_t)p->e->n_chunks; i++) {
        if (p->e->chunks[i / 2].n == 0) continue;
        if (from != none && bucket_of_end(p->e, i) != bucket_of_end(p->e, from)) {
            join_ends(p, from, to);
            from = none;
        }
        if (from == none) from = i;
        to = i;
    }
    if (from != none) join_ends(p, from, to);
    return KILN_OK;
}

/* ---- the second round ------------------------------------------------------------------------ */

/* A worker's, of one round. */
typedef struct {
    kiln_ksplat_layout layout;
    kiln_ksplat_sh_range range;
} writer_state;

static uint64_t write_ram(const kiln_export *e, uint64_t unit)
{
    const uint64_t rows = e->chunks[unit].chunk->count,
                   row_bytes = kiln_ksplat_row_bytes(head_of(e->plan).level, ksplat_degree(e));
    return kiln_export_rows_ram(e, unit, KILN_ROWS_SPLAT) + rows * 4 * sizeof(float) +
           FLUSH_ROWS * row_bytes + sizeof(writer_state) + (1 << 16);
}

static kiln_status have_state(kiln_export_worker *x, kiln_error *err)
{
    writer_state *s;
    const size_t expected = step_at(x->e, kiln_ksplat_buckets_of(x->e->n_rows));
    if (x->own) return KILN_OK;
    if (x->e->plan_bytes != expected)
        return kiln_fail(err, KILN_E_BUG, "a plan of %zu bytes", x->e->plan_bytes);
    KILN_TRY(KILN_ALLOC(&s, 1, ".ksplat writer", err));
    make_layout(x->e, x->e->plan, &s->layout);
    s->range = range_of(x->e->plan);
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

static kiln_status flush_pieces(kiln_export_worker *x, pieces *p, kiln_error *err)
{
    const kiln_ksplat_layout *l = &p->s->layout;
    if (p->n)
        KILN_TRY(kiln_export_write(x, p->records, p->n * l->row_bytes,
                                   kiln_ksplat_row_place(l, p->rows.first + p->from), err));
    if (p->n_centres)
        KILN_TRY(kiln_export_write(x, p->centres, p->n_centres * sizeof *p->centres,
                                   kiln_ksplat_centre_place(l, p->first_bucket), err));
    p->from += p->n;
    p->n = p->n_centres = 0;
    return KILN_OK;
}

static void find_centre(const kiln_export *e, const pieces *p, kiln_ksplat_bucket *b)
{
    const uint64_t row = p->rows.first + b->at, bucket = row / BUCKET;
    kiln_ksplat_box box;
    if (bucket == bucket_of_end(e, 2 * p->unit))
        memcpy(&box, (const unsigned char *)e->plan + box_at(2 * p->unit), sizeof box);
    else if (bucket == bucket_of_end(e, 2 * p->unit + 1))
        memcpy(&box, (const unsigned char *)e->plan + box_at(2 * p->unit + 1), sizeof box);
    else
        kiln_ksplat_rows_box(&p->rows, b->at, b->n, &box);
    kiln_ksplat_box_centre(
        &box, p->s->layout.step[kiln_ksplat_bucket_section(&p->s->layout, bucket)], b->centre);
}

static kiln_status write_buckets(kiln_export_worker *x, pieces *p, kiln_error *err)
{
    const kiln_ksplat_layout *l = &p->s->layout;
    for (uint64_t at = 0, n; at < p->rows.n; at += n) {
        const uint64_t row = p->rows.first + at;
        const uint32_t section = kiln_ksplat_bucket_section(l, row / BUCKET);
        n = rows_of_bucket(&p->rows, at);
        kiln_ksplat_bucket b = {.at = at, .n = n};
        if (row == (uint64_t)l->first[section] * BUCKET || p->n + n > FLUSH_ROWS)
            KILN_TRY(flush_pieces(x, p, err));
        if (l->level) find_centre(x->e, p, &b);
        /* the chunk that has a bucket's first row writes its centre */
        if (l->level && row % BUCKET == 0) {
            if (p->n_centres == 0) p->first_bucket = row / BUCKET;
            memcpy(p->centres[p->n_centres++], b.centre, sizeof b.centre);
        }
        kiln_ksplat_encode(l, p->s->range, &p->rows, &b, p->records + p->n * l->row_bytes,
                           x->counts);
        p->n += n;
    }
    return flush_pieces(x, p, err);
}

static kiln_status write_ksplat_rows(kiln_export_worker *x, uint64_t unit,
                                     const kiln_export_rows *rows, kiln_error *err)
{
    kiln_status st = KILN_OK;
    pieces p = {.s = x->own, .rows = ksplat_rows_of(x->e, rows), .unit = unit};
    const uint64_t n = rows->n;
    float *quats = NULL;
    KILN_GO(KILN_ALLOC_UNSET(&quats, 4 * n, "rotations", err));
    KILN_GO(
        kiln_alloc_unset((void **)&p.records, FLUSH_ROWS, p.s->layout.row_bytes, "records", err));
    kiln_linear_scales(3 * n, rows->log_scales, rows->log_scales);
    kiln_ksplat_quats(p.s->layout.level, n, rows->quats, quats);
    p.rows.scales = rows->log_scales;
    p.rows.quats = quats;
    p.rows.opacity_logits = rows->opacity_logits;
    p.rows.sh0 = rows->sh0;
    KILN_GO(write_buckets(x, &p, err));
done:
    free(p.records);
    free(quats);
    return st;
}

static kiln_status write_ksplat_chunk(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    kiln_export_rows rows;
    KILN_TRY(have_state(x, err));
    KILN_TRY(kiln_export_rows_read(x, unit, KILN_ROWS_SPLAT, &rows, err));
    const kiln_status st = rows.n ? write_ksplat_rows(x, unit, &rows, err) : KILN_OK;
    kiln_export_rows_release(&rows);
    return st;
}

/* ---- headers --------------------------------------------------------------------------------- */

static kiln_status finish_ksplat(kiln_export_parent *p, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_ksplat_layout *l = NULL;
    kiln_buffer head = {0};
    uint64_t place;
    KILN_GO(KILN_ALLOC(&l, 1, "sections", err));
    make_layout(p->e, p->plan->data, l);
    const uint32_t last = kiln_ksplat_last_bucket(l, &place);
    KILN_GO(kiln_ksplat_head(l, range_of(p->plan->data), &head, err));
    KILN_GO(kiln_export_put(p, head.data, head.size, 0, err));
    if (last) KILN_GO(kiln_export_put(p, &last, sizeof last, place, err));
done:
    kiln_buffer_release(&head);
    free(l);
    return st;
}

/* ---- formats --------------------------------------------------------------------------------- */

static const kiln_export_round rounds[] = {
    {.what = "measuring",
     .ram = measure_ram,
     .run = measure_chunk,
     .gather = gather_measures,
     .end = join_buckets},
    {.what = "exporting", .ram = write_ram, .run = write_ksplat_chunk},
};

const kiln_writer_functions kiln_writer_ksplat = {.place = KILN_PLACE_FILE,
                                                  .counts = counts,
                                                  .plan = plan_level1,
                                                  .rounds = rounds,
                                                  .n_rounds = 2,
                                                  .finish = finish_ksplat,
                                                  .reader = "ksplat"};
const kiln_writer_functions kiln_writer_ksplat0 = {.place = KILN_PLACE_FILE,
                                                   .counts = counts,
                                                   .plan = plan_level0,
                                                   .rounds = rounds + 1,
                                                   .n_rounds = 1,
                                                   .finish = finish_ksplat,
                                                   .reader = "ksplat"};
const kiln_writer_functions kiln_writer_ksplat2 = {.place = KILN_PLACE_FILE,
                                                   .counts = counts,
                                                   .plan = plan_level2,
                                                   .rounds = rounds,
                                                   .n_rounds = 2,
                                                   .finish = finish_ksplat,
                                                   .reader = "ksplat"};
