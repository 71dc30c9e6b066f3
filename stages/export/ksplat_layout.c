/* ksplat_layout -- see the header. */
#include "stages/export/ksplat_layout.h"

#include "base/checked.h"
#include "base/minmax.h"
#include "stages/import/ksplat/ksplat_header.h"

#include <math.h>
#include <string.h>

enum { HEADER = 4096, SECTION = 1024, CENTRE = 12, SECTION_ROWS_MIN = 8192, PLAIN_SECTION_ROWS = 1 << 24 };

/* ---- places -------------------------------------------------------------------------------------------------------------------
 */

/* A header of 1,024 bytes for 8,192 rows is half a percent of them. A reader that walks all sections has few to walk. */
static uint64_t section_rows(uint64_t n_rows, uint32_t level)
{
    uint64_t rows = level ? SECTION_ROWS_MIN : PLAIN_SECTION_ROWS;
    while (kiln_div_up(n_rows, rows) > KILN_KSPLAT_WRITTEN_SECTIONS) rows *= 2;
    return rows;
}

static uint64_t section_buckets(const kiln_ksplat_layout *l) { return l->level ? l->section_rows / KILN_KSPLAT_BUCKET_ROWS : 0; }

/* The sections before it are full. */
static uint64_t section_place(const kiln_ksplat_layout *l, uint32_t section)
{
    const uint64_t bytes = section_buckets(l) * CENTRE + l->section_rows * l->row_bytes;
    return HEADER + (uint64_t)SECTION * l->n_sections + section * bytes;
}

static uint64_t rows_in(const kiln_ksplat_layout *l, uint32_t section)
{
    return kiln_min_u64(l->section_rows, l->n_rows - section * l->section_rows);
}

static uint64_t buckets_in(const kiln_ksplat_layout *l, uint32_t section)
{
    return l->level ? kiln_div_up(rows_in(l, section), KILN_KSPLAT_BUCKET_ROWS) : 0;
}

static uint32_t partial_in(const kiln_ksplat_layout *l, uint32_t section)
{
    return l->level ? (uint32_t)(rows_in(l, section) % KILN_KSPLAT_BUCKET_ROWS) : 0;
}

/* Behind the length of its last bucket, where that stands. */
static uint64_t centres_place(const kiln_ksplat_layout *l, uint32_t section)
{
    return section_place(l, section) + (partial_in(l, section) ? 4 : 0);
}

uint32_t kiln_ksplat_row_section(const kiln_ksplat_layout *l, uint64_t row) { return (uint32_t)(row / l->section_rows); }

uint64_t kiln_ksplat_centre_place(const kiln_ksplat_layout *l, uint64_t bucket)
{
    const uint32_t section = (uint32_t)(bucket / section_buckets(l));
    return centres_place(l, section) + bucket % section_buckets(l) * CENTRE;
}

uint64_t kiln_ksplat_row_place(const kiln_ksplat_layout *l, uint64_t row)
{
    const uint32_t section = kiln_ksplat_row_section(l, row);
    return centres_place(l, section) + buckets_in(l, section) * CENTRE + row % l->section_rows * l->row_bytes;
}

uint32_t kiln_ksplat_last_bucket(const kiln_ksplat_layout *l, uint64_t *place)
{
    *place = section_place(l, l->n_sections - 1);
    return partial_in(l, l->n_sections - 1);
}

void kiln_ksplat_layout_make(uint64_t n_rows, uint32_t level, uint32_t sh_degree, kiln_ksplat_layout *out)
{
    *out = (kiln_ksplat_layout){.n_rows = n_rows,
                                .level = level,
                                .sh_degree = sh_degree,
                                .row_bytes = kiln_ksplat_row_bytes(level, sh_degree),
                                .section_rows = section_rows(n_rows, level)};
    out->n_sections = (uint32_t)kiln_div_up(n_rows, out->section_rows);
    out->n_buckets = level ? kiln_div_up(n_rows, KILN_KSPLAT_BUCKET_ROWS) : 0;
    out->bytes = kiln_ksplat_row_place(out, n_rows - 1) + out->row_bytes;
}

/* ---- headers ------------------------------------------------------------------------------------------------------------------
 */

static void put_u16(unsigned char *at, uint32_t v)
{
    at[0] = (unsigned char)v;
    at[1] = (unsigned char)(v >> 8);
}

static void put_u32(unsigned char *at, uint64_t v)
{
    put_u16(at, (uint32_t)v & 0xffff);
    put_u16(at + 2, (uint32_t)(v >> 16) & 0xffff);
}

static void put_f32(unsigned char *at, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    put_u32(at, bits);
}

static void fill_section(const kiln_ksplat_layout *l, uint32_t number, const kiln_ksplat_scales *s, unsigned char out[SECTION])
{
    const uint64_t rows = rows_in(l, number), buckets = buckets_in(l, number), partial = partial_in(l, number) != 0;
    memset(out, 0, SECTION);
    put_u32(out, rows);
    put_u32(out + 4, rows);
    put_u32(out + 28, 4 * partial + CENTRE * buckets + l->row_bytes * rows);
    put_u16(out + 40, l->sh_degree);
    if (l->level == 0) return;
    put_u32(out + 8, KILN_KSPLAT_BUCKET_ROWS);
    put_u32(out + 12, buckets);
    put_f32(out + 16, (float)ldexp(2.0 * KILN_KSPLAT_RANGE, s->steps[number]));
    put_u16(out + 20, CENTRE);
    put_u32(out + 24, KILN_KSPLAT_RANGE);
    put_u32(out + 32, buckets - partial);
    put_u32(out + 36, partial);
}

kiln_status kiln_ksplat_head(const kiln_ksplat_layout *l, const kiln_ksplat_scales *s, kiln_buffer *out, kiln_error *err)
{
    unsigned char head[HEADER] = {0, 1}; /* version 0.1 */
    put_u32(head + 4, l->n_sections);
    put_u32(head + 8, l->n_sections);
    put_u32(head + 12, l->n_rows);
    put_u32(head + 16, l->n_rows);
    put_u16(head + 20, l->level);
    put_f32(head + 36, s->sh_least);
    put_f32(head + 40, s->sh_most);
    KILN_TRY(kiln_buffer_put(out, head, sizeof head, err));
    for (uint32_t i = 0; i < l->n_sections; i++) {
        unsigned char section[SECTION];
        fill_section(l, i, s, section);
        KILN_TRY(kiln_buffer_put(out, section, sizeof section, err));
    }
    return KILN_OK;
}

/* ---- boxes --------------------------------------------------------------------------------------------------------------------
 */

/* Centres are multiples of GRID steps, so they may lie half of that beside the middle of their box, and one step more by rounding.
 */
enum { GRID = 2048, REACH = KILN_KSPLAT_RANGE - GRID / 2 - 1, MOST_STEP = 112 /* 2 RANGE of it are below the largest float */ };

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
int16_t kiln_ksplat_box_step(const kiln_ksplat_box *b)
{
    int step = KILN_KSPLAT_LEAST_STEP;
    for (int c = 0; c < 3 && b->lo[c] <= b->hi[c]; c++) {
        const double half = b->hi[c] / 2 - b->lo[c] / 2, far = fabs(b->lo[c]) > fabs(b->hi[c]) ? fabs(b->lo[c]) : fabs(b->hi[c]);
        const int by_size = half > 0 ? exponent_of(half, REACH) : step, by_float = far > 0 ? exponent_of(far, 0x1p24 * GRID) : step;
        step = by_size > step ? by_size : step;
        step = by_float > step ? by_float : step;
    }
    return (int16_t)(step > MOST_STEP ? MOST_STEP : step);
}

void kiln_ksplat_box_centre(const kiln_ksplat_box *b, int16_t step, float centre[3])
{
    const double grid = ldexp(GRID, step);
    for (int c = 0; c < 3; c++) centre[c] = (float)(floor((b->lo[c] / 2 + b->hi[c] / 2) / grid + 0.5) * grid);
}

void kiln_ksplat_sh_range(float least, float most, kiln_ksplat_scales *s)
{
    s->sh_least = least == 0 ? -0x1p-126f : least;
    s->sh_most = most == 0 ? 0x1p-126f : most;
}
