/* ksplat_layout -- see the header. */
#include "stages/formats/ksplat/ksplat_layout.h"

#include "base/checked.h"
#include "base/endian.h"
#include "base/minmax.h"

#include <math.h>
#include <string.h>

enum {
    HEADER = KILN_KSPLAT_HEADER,
    SECTION = KILN_KSPLAT_SECTION,
    CENTRE = KILN_KSPLAT_CENTRE,
    BUCKET = KILN_KSPLAT_BUCKET_ROWS,
    PLAIN_BUCKETS = 1 << 16
};

/* ---- sections -------------------------------------------------------------------------------- */

/* Begins a section where the steps of one would differ by more than `tolerance`. Returns their
 * number, above `most` if there are more. */
static uint32_t cut_sections(kiln_ksplat_layout *l, const int8_t *steps, int tolerance,
                             uint32_t most)
{
    uint32_t n = 0;
    int lo = 0, hi = 0;
    for (uint32_t b = 0; b < l->n_buckets; b++) {
        lo = steps[b] < lo ? steps[b] : lo;
        hi = steps[b] > hi ? steps[b] : hi;
        if (b == 0 || hi - lo > tolerance) {
            if (n == most) return most + 1;
            l->first[n++] = b;
            lo = hi = steps[b];
        }
        l->step[n - 1] = (int8_t)hi;
    }
    l->first[n] = (uint32_t)l->n_buckets;
    return n;
}

/* With the least tolerance that leaves a header of 1,024 bytes for at least 4,096 rows, but in
 * small files. */
static void cut_by_steps(kiln_ksplat_layout *l, const int8_t *steps)
{
    const uint64_t share = l->n_buckets / 16;
    const uint32_t most = share < 8                              ? 8
                          : share < KILN_KSPLAT_WRITTEN_SECTIONS ? (uint32_t)share
                                                                 : KILN_KSPLAT_WRITTEN_SECTIONS;
    for (int tolerance = 0;; tolerance++) {
        l->n_sections = cut_sections(l, steps, tolerance, most);
        if (l->n_sections <= most) return;
    }
}

/* Lengths of sections have 32 bits. */
static void cut_evenly(kiln_ksplat_layout *l)
{
    l->n_sections = (uint32_t)kiln_div_up(l->n_buckets, PLAIN_BUCKETS);
    for (uint32_t i = 0; i < l->n_sections; i++) l->first[i] = i * PLAIN_BUCKETS;
    l->first[l->n_sections] = (uint32_t)l->n_buckets;
}

void kiln_ksplat_layout_make(uint64_t n_rows, uint32_t level, uint32_t sh_degree,
                             const int8_t *steps, kiln_ksplat_layout *out)
{
    memset(out, 0, sizeof *out);
    out->n_rows = n_rows;
    out->n_buckets = kiln_ksplat_buckets_of(n_rows);
    out->level = level;
    out->sh_degree = sh_degree;
    out->row_bytes = kiln_ksplat_row_bytes(level, sh_degree);
    if (level)
        cut_by_steps(out, steps);
    else
        cut_evenly(out);
}

/* ---- places ---------------------------------------------------------------------------------- */

/* The buckets before it are full. */
static uint64_t section_place(const kiln_ksplat_layout *l, uint32_t section)
{
    const uint64_t bucket_bytes = (l->level ? CENTRE : 0) + BUCKET * (uint64_t)l->row_bytes;
    return HEADER + (uint64_t)SECTION * l->n_sections + l->first[section] * bucket_bytes;
}

static uint64_t buckets_in(const kiln_ksplat_layout *l, uint32_t section)
{
    return l->first[section + 1] - l->first[section];
}

static uint64_t rows_in(const kiln_ksplat_layout *l, uint32_t section)
{
    return kiln_min_u64(l->n_rows, (uint64_t)l->first[section + 1] * BUCKET) -
           (uint64_t)l->first[section] * BUCKET;
}

static uint32_t partial_in(const kiln_ksplat_layout *l, uint32_t section)
{
    return l->level ? (uint32_t)(rows_in(l, section) % BUCKET) : 0;
}

/* Behind the length of its last bucket, where that stands. */
static uint64_t centres_place(const kiln_ksplat_layout *l, uint32_t section)
{
    return section_place(l, section) + (partial_in(l, section) ? KILN_KSPLAT_LENGTH : 0);
}

uint32_t kiln_ksplat_bucket_section(const kiln_ksplat_layout *l, uint64_t bucket)
{
    uint32_t lo = 0, hi = l->n_sections - 1; /* the last one that begins at or before the bucket */
    while (lo < hi) {
        const uint32_t middle = hi - (hi - lo) / 2;
        if (l->first[middle] <= bucket)
            lo = middle;
        else
            hi = middle - 1;
    }
    return lo;
}

uint64_t kiln_ksplat_centre_place(const kiln_ksplat_layout *l, uint64_t bucket)
{
    const uint32_t section = kiln_ksplat_bucket_section(l, bucket);
    return centres_place(l, section) + (bucket - l->first[section]) * CENTRE;
}

uint64_t kiln_ksplat_row_place(const kiln_ksplat_layout *l, uint64_t row)
{
    const uint32_t section = kiln_ksplat_bucket_section(l, row / BUCKET);
    const uint64_t centres = l->level ? buckets_in(l, section) * CENTRE : 0;
    return centres_place(l, section) + centres +
           (row - (uint64_t)l->first[section] * BUCKET) * l->row_bytes;
}

uint32_t kiln_ksplat_last_bucket(const kiln_ksplat_layout *l, uint64_t *place)
{
    *place = section_place(l, l->n_sections - 1);
    return partial_in(l, l->n_sections - 1);
}

/* ---- headers --------------------------------------------------------------------------------- */

static void fill_section(const kiln_ksplat_layout *l, uint32_t number, unsigned char out[SECTION])
{
    const uint64_t rows = rows_in(l, number), buckets = l->level ? buckets_in(l, number) : 0,
                   partial = partial_in(l, number) != 0;
    memset(out, 0, SECTION);
    kiln_put_u32(out + KILN_KSPLAT_SECTION_ROWS_AT, rows);
    kiln_put_u32(out + KILN_KSPLAT_SECTION_CAPACITY_AT, rows);
    kiln_put_u32(out + KILN_KSPLAT_SECTION_BYTES_AT,
                 KILN_KSPLAT_LENGTH * partial + CENTRE * buckets + l->row_bytes * rows);
    kiln_put_u16(out + KILN_KSPLAT_DEGREE_AT, l->sh_degree);
    if (l->level == 0) return;
    kiln_put_u32(out + KILN_KSPLAT_BUCKET_ROWS_AT, KILN_KSPLAT_BUCKET_ROWS);
    kiln_put_u32(out + KILN_KSPLAT_BUCKETS_AT, buckets);
    kiln_put_f32(out + KILN_KSPLAT_BLOCK_SIZE_AT,
                 (float)ldexp(2.0 * KILN_KSPLAT_RANGE, l->step[number]));
    kiln_put_u16(out + KILN_KSPLAT_CENTRE_BYTES_AT, CENTRE);
    kiln_put_u32(out + KILN_KSPLAT_RANGE_AT, KILN_KSPLAT_RANGE);
    kiln_put_u32(out + KILN_KSPLAT_FULL_AT, buckets - partial);
    kiln_put_u32(out + KILN_KSPLAT_PARTIAL_AT, partial);
}

kiln_status kiln_ksplat_head(const kiln_ksplat_layout *l, kiln_ksplat_sh_range range,
                             kiln_buffer *out, kiln_error *err)
{
    unsigned char head[HEADER] = {KILN_KSPLAT_MAJOR, KILN_KSPLAT_MINOR};
    kiln_put_u32(head + KILN_KSPLAT_SECTIONS_CAPACITY_AT, l->n_sections);
    kiln_put_u32(head + KILN_KSPLAT_SECTIONS_AT, l->n_sections);
    kiln_put_u32(head + KILN_KSPLAT_ROWS_CAPACITY_AT, l->n_rows);
    kiln_put_u32(head + KILN_KSPLAT_ROWS_AT, l->n_rows);
    kiln_put_u16(head + KILN_KSPLAT_LEVEL_AT, l->level);
    kiln_put_f32(head + KILN_KSPLAT_SH_LEAST_AT, range.least);
    kiln_put_f32(head + KILN_KSPLAT_SH_MOST_AT, range.most);
    KILN_TRY(kiln_buffer_put(out, head, sizeof head, err));
    for (uint32_t i = 0; i < l->n_sections; i++) {
        unsigned char section[SECTION];
        fill_section(l, i, section);
        KILN_TRY(kiln_buffer_put(out, section, sizeof section, err));
    }
    return KILN_OK;
}

/* ---- boxes ----------------------------------------------------------------------------------- */

/* Centres are multiples of GRID steps, so they may lie half of that beside the middle of their box,
 * and one step more by rounding.
 */
enum {
    GRID = 2048,
    REACH = KILN_KSPLAT_RANGE - GRID / 2 - 1,
    MOST_STEP = 112 /* 2 RANGE of it are below the largest float */
};

void kiln_ksplat_box_clear(kiln_ksplat_box *b)
{
    for (int c = 0; c < 3; c++) {
        b->lo[c] = HUGE_VAL;
        b->hi[c] = -HUGE_VAL;
    }
}

void kiln_ksplat_box_add(kiln_ksplat_box *b, const kiln_ksplat_box *other)
{
    for (int c = 0; c < 3; c++) {
        b->lo[c] = other->lo[c] < b->lo[c] ? other->lo[c] : b->lo[c];
        b->hi[c] = other->hi[c] > b->hi[c] ? other->hi[c] : b->hi[c];
    }
}

/* The least k with v <= most * 2^k; v positive. */
static int exponent_of(double v, double most)
{
    int k;
    return frexp(v / most, &k) == 0.5 ? k - 1 : k;
}

/* A centre is a float: where floats lie further apart than GRID steps, it could be out of reach. */
int8_t kiln_ksplat_box_step(const kiln_ksplat_box *b)
{
    int step = KILN_KSPLAT_LEAST_STEP;
    for (int c = 0; c < 3 && b->lo[c] <= b->hi[c]; c++) {
        const double half = b->hi[c] / 2 - b->lo[c] / 2,
                     far = fabs(b->lo[c]) > fabs(b->hi[c]) ? fabs(b->lo[c]) : fabs(b->hi[c]);
        const int by_size = half > 0 ? exponent_of(half, REACH) : step,
                  by_float = far > 0 ? exponent_of(far, 0x1p24 * GRID) : step;
        step = by_size > step ? by_size : step;
        step = by_float > step ? by_float : step;
    }
    return (int8_t)(step > MOST_STEP ? MOST_STEP : step);
}

void kiln_ksplat_box_centre(const kiln_ksplat_box *b, int step, float centre[3])
{
    const double grid = ldexp(GRID, step);
    for (int c = 0; c < 3; c++)
        centre[c] = (float)(floor((b->lo[c] / 2 + b->hi[c] / 2) / grid + 0.5) * grid);
}

kiln_ksplat_sh_range kiln_ksplat_sh_range_of(float least, float most)
{
    return (kiln_ksplat_sh_range){least == 0 ? -0x1p-126f : least, most == 0 ? 0x1p-126f : most};
}
