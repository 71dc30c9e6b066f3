/* .ksplat files that are put together of headers and records, read by kiln-import's reader: every
 * value is within half a step, and what was read is written as the same values again. */
#include "import_source.h"

#include "base/harmonics.h"
#include "kernels/math/half_math.h"
#include "stages/formats/ksplat/ksplat_header.h"
#include "stages/formats/ksplat/ksplat_rows.h"
#include "stages/formats/linear.h"
#include "stages/formats/writer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* means 3, log scales 3, quats 4, logit, sh0 3, shN 24 */
enum { ROWS = 20000, PLANES = 35, DEGREE = 2 };
static float planes[(PLANES + 3) * ROWS];

static float any(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(int)(*seed >> 8) / (float)(1 << 23) - 1.0f;
}

static float *plane(unsigned p, uint64_t n) { return planes + p * n; }

/* Along a path, with a far row now and then. */
static void fill(uint64_t n)
{
    unsigned seed = 5;
    float x[3] = {0.3f, -2, 40};
    for (unsigned p = 3; p < PLANES + 3; p++)
        for (uint64_t i = 0; i < n; i++) plane(p, n)[i] = any(&seed);
    for (uint64_t i = 0; i < n; i++) {
        for (unsigned c = 0; c < 3; c++) {
            x[c] += 0.01f * any(&seed);
            plane(c, n)[i] = i % 5000 == 4999 ? 300 * any(&seed) : x[c];
            plane(3 + c, n)[i] = 5 * plane(3 + c, n)[i] - 4;
        }
        plane(10, n)[i] *= 6;
    }
}

typedef struct {
    float *scales, *quats, *alphas;
    kiln_ksplat_rows rows;
} active;

static active activate(uint64_t n, uint32_t level, const double origin[3])
{
    static float scales[3 * ROWS], quats[4 * ROWS], alphas[ROWS];
    kiln_linear_scales(3 * n, plane(3, n), scales);
    kiln_ksplat_quats(level, n, plane(6, n), quats);
    (void)kiln_alphas(n, plane(10, n), alphas);
    return (active){scales,
                    quats,
                    alphas,
                    {n,
                     0,
                     {origin[0], origin[1], origin[2]},
                     plane(0, n),
                     scales,
                     quats,
                     plane(10, n),
                     plane(11, n),
                     plane(14, n)}};
}

/* Steps of sections and centres of buckets, as the writer's first round finds them. */
static kiln_ksplat_layout layout;
static float centres[ROWS / KILN_KSPLAT_BUCKET_ROWS + 1][3];

static uint64_t bucket_rows(uint64_t n, uint64_t b)
{
    const uint64_t left = n - b * KILN_KSPLAT_BUCKET_ROWS;
    return left < KILN_KSPLAT_BUCKET_ROWS ? left : KILN_KSPLAT_BUCKET_ROWS;
}

static double step_of(uint64_t row)
{
    return ldexp(1,
                 layout.step[kiln_ksplat_bucket_section(&layout, row / KILN_KSPLAT_BUCKET_ROWS)]);
}

static void find_layout(uint32_t level, uint32_t degree, const kiln_ksplat_rows *r)
{
    static int8_t steps[ROWS / KILN_KSPLAT_BUCKET_ROWS + 1];
    kiln_ksplat_box box;
    const uint64_t n = kiln_ksplat_buckets_of(r->n);
    for (uint64_t b = 0; b < n; b++) {
        kiln_ksplat_rows_box(r, b * KILN_KSPLAT_BUCKET_ROWS, bucket_rows(r->n, b), &box);
        steps[b] = kiln_ksplat_box_step(&box);
    }
    kiln_ksplat_layout_make(r->n, level, degree, level ? steps : NULL, &layout);
    for (uint64_t b = 0; b < n; b++) {
        kiln_ksplat_rows_box(r, b * KILN_KSPLAT_BUCKET_ROWS, bucket_rows(r->n, b), &box);
        kiln_ksplat_box_centre(&box, layout.step[kiln_ksplat_bucket_section(&layout, b)],
                               centres[b]);
    }
}

static void put_at(kiln_buffer *file, uint64_t at, const void *data, size_t bytes)
{
    kiln_error err;
    assert_true(at + bytes <= file->size ||
                kiln_buffer_put(file, NULL, at + bytes - file->size, &err) == KILN_OK);
    memcpy(file->data + at, data, bytes);
}

static kiln_ksplat_sh_range write_file(uint64_t n, uint32_t level, uint32_t degree,
                                       const double origin[3], kiln_buffer *file,
                                       uint64_t counts[KILN_KSPLAT_COUNTS])
{
    static unsigned char records[KILN_KSPLAT_BUCKET_ROWS * 140];
    kiln_ksplat_sh_range range = {0, 0};
    kiln_error err;
    uint64_t place;
    float least = HUGE_VALF, most = -HUGE_VALF;
    const active a = activate(n, level, origin);
    find_layout(level, degree, &a.rows);
    if (level == 2 && degree) {
        kiln_ksplat_rows_range(&a.rows, degree, &least, &most);
        range = kiln_ksplat_sh_range_of(least, most);
    }
    assert_int_equal(kiln_ksplat_head(&layout, range, file, &err), KILN_OK);
    const uint32_t last = kiln_ksplat_last_bucket(&layout, &place);
    if (last) put_at(file, place, &last, sizeof last);
    for (uint64_t b = 0; b < layout.n_buckets; b++) {
        kiln_ksplat_bucket bucket = {.at = b * KILN_KSPLAT_BUCKET_ROWS, .n = bucket_rows(n, b)};
        memcpy(bucket.centre, centres[b], sizeof bucket.centre);
        if (level)
            put_at(file, kiln_ksplat_centre_place(&layout, b), centres[b], sizeof centres[b]);
        kiln_ksplat_encode(&layout, range, &a.rows, &bucket, records, counts);
        put_at(file, kiln_ksplat_row_place(&layout, bucket.at), records,
               bucket.n * layout.row_bytes);
    }
    return range;
}

static void read_file(const kiln_buffer *file, import_source *s)
{
    kiln_error err = {0};
    const char *path = import_source_file("x.ksplat", file->data, file->size);
    if (import_source_read(path, s, &err) != KILN_OK) fail_msg("%s", err.msg);
    assert_int_equal(remove(path), 0);
}

/* Half a step of a half as large as v. */
static double half_of_half(double v)
{
    int e;
    (void)frexp(v, &e);
    return ldexp(1, (e < -13 ? -13 : e) - 12);
}

static void check_row(kiln_ksplat_sh_range range, const active *a, const import_source *s,
                      uint64_t i, uint32_t level, uint32_t degree)
{
    const float *row = s->rows + i * s->floats;
    const uint64_t n = a->rows.n;
    const double sh = level == 0   ? 0
                      : level == 2 ? 0.5 * ((double)range.most - (double)range.least) / 255
                                   : 0;
    for (unsigned c = 0; c < 3; c++) {
        const double step = level ? step_of(i) / 2 : 0, scale = (double)a->scales[c * n + i];
        assert_true(fabs((double)row[c] - (double)plane(c, n)[i]) <= step);
        assert_true(fabs(exp((double)row[7 + c]) - scale) <=
                    (level ? half_of_half(scale) : 0) + 3e-7 * scale);
        assert_true(fabs((double)(row[11 + c] - plane(11 + c, n)[i])) <=
                        0.5001 / 255 / KILN_SH_C0_F64 ||
                    fabsf(plane(11 + c, n)[i]) > 0.5f / (float)KILN_SH_C0_F64);
    }
    for (unsigned c = 0; c < 4; c++) {
        const double q = (double)a->quats[c * n + i];
        assert_true(fabs((double)row[3 + c] - q) <= (level ? half_of_half(q) : 0));
    }
    assert_true(fabs(1 / (1 + exp(-(double)row[10])) - (double)a->alphas[i]) <=
                0.75 / 255); /* import moves 0 and 255 by a quarter */
    for (unsigned c = 0; c < kiln_sh_components(degree); c++) {
        const double v = (double)plane(14 + c, n)[i];
        assert_true(fabs((double)row[14 + c] - v) <= (level == 1 ? half_of_half(v) : sh) * 1.0001);
    }
}

static void values_are_within_half_a_step(void **state)
{
    static const uint64_t counts_of_rows[] = {1, 255, 256, 257, 8192, 8193, ROWS};
    const double origin[3] = {0, 0, 0};
    (void)state;
    for (unsigned k = 0; k < sizeof counts_of_rows / sizeof *counts_of_rows; k++)
        for (uint32_t level = 0; level < 3; level++)
            for (uint32_t degree = 0; degree <= DEGREE; degree++) {
                const uint64_t n = counts_of_rows[k];
                kiln_buffer file = {0};
                import_source s;
                uint64_t counts[KILN_KSPLAT_COUNTS] = {0};
                fill(n);
                const active a = activate(n, level, origin);
                const kiln_ksplat_sh_range range =
                    write_file(n, level, degree, origin, &file, counts);
                assert_true(counts[KILN_KSPLAT_LENGTHS] + counts[KILN_KSPLAT_COEFFICIENTS] +
                                counts[KILN_KSPLAT_POSITIONS] ==
                            0);
                read_file(&file, &s);
                assert_true(s.n == n && s.scan.info.sh_degree == degree &&
                            s.scan.info.file_bytes == file.size);
                for (uint64_t i = 0; i<n; i += n> 1000 ? 7 : 1)
                    check_row(range, &a, &s, i, level, degree);
                import_source_free(&s);
                kiln_buffer_release(&file);
            }
}

/* Takes what was read as what is written. */
static void take_back(const import_source *s)
{
    for (uint64_t i = 0; i < s->n; i++) {
        const float *row = s->rows + i * s->floats;
        for (unsigned c = 0; c < 3; c++) plane(c, s->n)[i] = row[c];
        for (unsigned c = 0; c < 3; c++) plane(3 + c, s->n)[i] = row[7 + c];
        for (unsigned c = 0; c < 4; c++) plane(6 + c, s->n)[i] = row[3 + c];
        for (unsigned c = 10; c < s->floats; c++) plane(c, s->n)[i] = row[c];
    }
}

static void what_was_read_is_written_as_it_was(void **state)
{
    const double origin[3] = {0, 0, 0};
    (void)state;
    for (uint32_t level = 0; level < 3; level++) {
        kiln_buffer file = {0}, again = {0};
        import_source s, t;
        uint64_t counts[KILN_KSPLAT_COUNTS] = {0};
        fill(ROWS);
        write_file(ROWS, level, DEGREE, origin, &file, counts);
        read_file(&file, &s);
        take_back(&s);
        write_file(ROWS, level, DEGREE, origin, &again, counts);
        read_file(&again, &t);
        assert_memory_equal(s.rows, t.rows, s.n * s.floats * sizeof(float));
        import_source_free(&s);
        import_source_free(&t);
        kiln_buffer_release(&file);
        kiln_buffer_release(&again);
    }
}

/* Relative to an origin that floats cannot hold beside the positions. */
static void far_scenes_keep_their_steps(void **state)
{
    const double origin[3] = {4500000.25, -700000.5, 1.0 / 3};
    kiln_buffer file = {0};
    import_source s;
    uint64_t counts[KILN_KSPLAT_COUNTS] = {0};
    (void)state;
    fill(4000);
    write_file(4000, 1, 0, origin, &file, counts);
    unsigned char record[24];
    for (uint64_t i = 0; i < 4000; i++)
        for (unsigned c = 0; c < 3; c++) {
            uint16_t code;
            memcpy(record, file.data + kiln_ksplat_row_place(&layout, i), sizeof record);
            memcpy(&code, record + 2 * c, sizeof code);
            const double x = (code - 32767) * step_of(i) + (double)centres[i / 256][c];
            assert_true(fabs(x - ((double)plane(c, 4000)[i] + origin[c])) <= step_of(i) / 2);
        }
    assert_true(step_of(0) < 0x1p-11 && counts[KILN_KSPLAT_POSITIONS] == 0);
    read_file(&file, &s);
    assert_int_equal(s.n, 4000);
    import_source_free(&s);
    kiln_buffer_release(&file);
}

/* Extents and places of every size: all of a box is in reach, at the step that was found and at
 * larger ones. */
static void every_box_is_in_reach(void **state)
{
    unsigned seed = 3;
    (void)state;
    for (int trial = 0; trial < 200000; trial++) {
        kiln_ksplat_box b;
        float centre[3];
        for (int c = 0; c < 3; c++) {
            const double at = ldexp((double)any(&seed), trial % 250 - 125),
                         size = ldexp(fabs((double)any(&seed)), trial % 181 - 120);
            b.lo[c] = fmax((double)(float)at, -1.7e38);
            b.hi[c] = fmin((double)(float)(at + (trial % 3 ? size : 0)), 1.7e38);
            if (b.hi[c] < b.lo[c]) b.hi[c] = b.lo[c];
        }
        const int least = kiln_ksplat_box_step(&b);
        for (int step = least; step < least + 3 && step <= 112; step++) {
            kiln_ksplat_box_centre(&b, step, centre);
            for (int c = 0; c < 3; c++) {
                const double lo = ((double)centre[c] - b.lo[c]) * ldexp(1, -step),
                             hi = (b.hi[c] - (double)centre[c]) * ldexp(1, -step);
                if (lo > 32767 || hi > 32767)
                    fail_msg("%a..%a is %g..%g steps of 2^%d from %a", b.lo[c], b.hi[c], lo, hi,
                             step, (double)centre[c]);
            }
        }
    }
}

static void what_does_not_fit_is_counted(void **state)
{
    const double origin[3] = {0, 0, 0};
    kiln_buffer file = {0};
    import_source s;
    uint64_t counts[KILN_KSPLAT_COUNTS] = {0};
    (void)state;
    fill(4);
    plane(3, 4)[0] = 12;  /* exp of it is above the largest half */
    plane(3, 4)[1] = -20; /* below the least */
    plane(3, 4)[2] = -87; /* what import makes of 0 */
    plane(11, 4)[3] = 9;  /* brighter than white */
    plane(14, 4)[0] = 1e6f;
    write_file(4, 1, 1, origin, &file, counts);
    assert_int_equal(counts[KILN_KSPLAT_LENGTHS], 2);
    assert_int_equal(counts[KILN_KSPLAT_COLOURS], 1);
    assert_int_equal(counts[KILN_KSPLAT_COEFFICIENTS], 1);
    read_file(&file, &s);
    assert_true(fabsf(s.rows[7] - logf(65504)) < 1e-5f &&
                fabsf(s.rows[s.floats + 7] - logf(0x1p-24f)) < 1e-5f);
    assert_true(s.rows[2 * s.floats + 7] == -87);
    import_source_free(&s);
    kiln_buffer_release(&file);
}

/* 0 in the header would be read as -1.5 or 1.5. */
static void no_range_of_coefficients_is_zero(void **state)
{
    (void)state;
    const kiln_ksplat_sh_range none = kiln_ksplat_sh_range_of(0, 0),
                               some = kiln_ksplat_sh_range_of(-0.5f, 0.25f);
    assert_true(none.least < 0 && none.most > 0 && none.most < 1e-30f);
    assert_true(some.least == -0.5f && some.most == 0.25f);
}

/* Buckets of a few far rows have sections of their own; where sizes change all the time, sections
 * stay few. */
static void sections_are_of_like_buckets(void **state)
{
    static int8_t steps[40000];
    (void)state;
    for (int i = 0; i < 40000; i++) steps[i] = (int8_t)(i % 1000 == 500 ? 3 : -12);
    kiln_ksplat_layout_make(40000 * 256, 1, 0, steps, &layout);
    assert_int_equal(layout.n_sections, 81);
    for (uint32_t i = 0; i < 40000; i++)
        assert_int_equal(layout.step[kiln_ksplat_bucket_section(&layout, i)], steps[i]);
    for (int i = 0; i < 40000; i++) steps[i] = (int8_t)(i % 2 ? -11 : i % 1000 == 500 ? 3 : -12);
    kiln_ksplat_layout_make(40000 * 256, 1, 0, steps, &layout);
    assert_int_equal(layout.n_sections, 81);
    for (uint32_t i = 0; i < 40000; i++)
        assert_true(layout.step[kiln_ksplat_bucket_section(&layout, i)] - steps[i] <= 1);
    for (int i = 0; i < 40000; i++) steps[i] = (int8_t)(i % 3 - 100);
    kiln_ksplat_layout_make(40000 * 256 - 255, 1, 0, steps, &layout);
    assert_int_equal(layout.n_sections, 1);
    kiln_ksplat_layout_make(0xffffffffu, 0, 2, NULL, &layout);
    assert_true(layout.n_sections == 256 && kiln_ksplat_row_place(&layout, 0xffffffffu) ==
                                                4096 + 256 * 1024 + 0xffffffffull * 140);
}

static void more_rows_than_the_header_counts_are_refused(void **state)
{
    static const kiln_writer_functions *const levels[] = {&kiln_writer_ksplat0, &kiln_writer_ksplat,
                                                          &kiln_writer_ksplat2};
    (void)state;
    for (int k = 0; k < 3; k++) {
        kiln_export_bake *bake = calloc(1, sizeof *bake);
        kiln_buffer plan = {0}, notes = {0};
        kiln_error err = {0};
        assert_non_null(bake);
        const kiln_export e = {.bakes = bake, .n_bakes = 1, .n_rows = UINT64_C(1) << 32};
        kiln_export_parent p = {.e = &e, .fd = -1, .plan = &plan, .notes = &notes};
        assert_int_equal(levels[k]->plan(&p, &err), KILN_E_INPUT);
        assert_non_null(strstr(err.msg, "4294967296"));
        kiln_buffer_release(&plan);
        kiln_buffer_release(&notes);
        free(bake);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_within_half_a_step),
        cmocka_unit_test(what_was_read_is_written_as_it_was),
        cmocka_unit_test(far_scenes_keep_their_steps),
        cmocka_unit_test(every_box_is_in_reach),
        cmocka_unit_test(what_does_not_fit_is_counted),
        cmocka_unit_test(no_range_of_coefficients_is_zero),
        cmocka_unit_test(sections_are_of_like_buckets),
        cmocka_unit_test(more_rows_than_the_header_counts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
