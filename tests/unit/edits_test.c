/* edits_test -- a scene that is moved on export has the rows that it has when it is moved on
 * import; where coordinates are measured from; rows that a move leaves without a finite value are
 * found. */
#include "stages/formats/clean_rows.h"
#include "stages/select/edits.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 300, DEGREE = 3, SH = 45 };
static const double nowhere[3] = {0, 0, 0};

static uint64_t state_of_random = 88172645463325252u;
static double uniform(void)
{
    state_of_random ^= state_of_random << 13;
    state_of_random ^= state_of_random >> 7;
    state_of_random ^= state_of_random << 17;
    return (double)(state_of_random >> 11) * 0x1p-53 * 2 - 1;
}

typedef struct {
    float means[3 * N], log_scales[3 * N], quats[4 * N], shN[SH * N], normals[3][N];
} rows;

static void fill(float *v, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) v[i] = (float)(3 * uniform());
}

static void make_rows(rows *r)
{
    fill(r->means, 3 * N);
    fill(r->log_scales, 3 * N);
    fill(r->quats, 4 * N);
    fill(r->shN, (uint64_t)SH * N);
    for (int a = 0; a < 3; a++) fill(r->normals[a], N);
}

static kiln_edits edits(double x, double y, double z, double rx, double ry, double rz, double scale)
{
    kiln_edits e;
    kiln_edits_of((double[3]){x, y, z}, (double[3]){rx, ry, rz}, scale, 4, &e);
    return e;
}

static uint64_t apply(const kiln_edits *e, const double from[3], const double to[3], rows *r)
{
    uint64_t bad;
    double work[3 * N];
    const kiln_edit_rows what = {.n = N,
                                 .means = r->means,
                                 .log_scales = r->log_scales,
                                 .quats = r->quats,
                                 .shN = r->shN,
                                 .normals = {r->normals[0], r->normals[1], r->normals[2]},
                                 .sh_degree = DEGREE};
    kiln_edits_rows(e, from, to, &what, work, &bad);
    return bad;
}

/* What import makes of the same rows. */
static void import_rows(const kiln_edits *e, rows *r)
{
    kiln_error err = {0};
    kiln_rows in;
    kiln_clean clean;
    kiln_row_counts counts = {0};
    kiln_source_info *info = calloc(1, sizeof *info);
    assert_non_null(info);
    *info = (kiln_source_info){.kind = KILN_SCENE_SPLATS, .sh_degree = DEGREE, .n_extras = 3};
    for (int a = 0; a < 3; a++)
        info->extras[a] = (kiln_extra){
            .name = {'n', (char)('x' + a)}, .type = KILN_TYPE_F32, .keep = KILN_KEEP_ALWAYS};
    assert_int_equal(kiln_rows_alloc(&in, info, &err), KILN_OK);
    assert_int_equal(kiln_clean_alloc(&clean, &err), KILN_OK);
    in.n = N;
    for (int i = 0; i < 3 * N; i++) in.means[i] = (double)r->means[i];
    memcpy(in.log_scales, r->log_scales, sizeof r->log_scales);
    memcpy(in.quats, r->quats, sizeof r->quats);
    memcpy(in.shN, r->shN, sizeof r->shN);
    for (int a = 0; a < 3; a++) memcpy(in.extras[a], r->normals[a], sizeof r->normals[a]);
    kiln_rows_move(&in, info, &e->move, 1);
    kiln_rows_clean(&in, info, nowhere, 0, &clean, &counts);
    assert_int_equal(clean.n, N);
    memcpy(r->means, clean.means, sizeof r->means);
    memcpy(r->log_scales, in.log_scales, sizeof r->log_scales);
    memcpy(r->quats, in.quats, sizeof r->quats);
    memcpy(r->shN, in.shN, sizeof r->shN);
    for (int a = 0; a < 3; a++) memcpy(r->normals[a], in.extras[a], sizeof r->normals[a]);
    kiln_clean_release(&clean);
    kiln_rows_release(&in);
    free(info);
}

static void moved_on_export_is_moved_on_import(void **state)
{
    (void)state;
    const kiln_edits e[] = {edits(1, -2, 300, 10, 70, -33, 2.5), edits(0, 0, 0, 0, 0, 0, 1e-3),
                            edits(0.1, 0, 0, 0, 0, 0, 1), edits(0, 0, 0, 90, 0, 180, 1),
                            edits(0, 0, 0, 0, 0, 0, 1)};
    for (size_t i = 0; i < sizeof e / sizeof *e; i++) {
        rows ours, theirs;
        make_rows(&ours);
        ours.log_scales[7] = -86.5f; /* below import's least after being made smaller */
        theirs = ours;
        assert_int_equal(apply(&e[i], nowhere, nowhere, &ours), N);
        import_rows(&e[i], &theirs);
        assert_memory_equal(&ours, &theirs, sizeof ours);
    }
}

static void what_is_not_moved_keeps_its_bits(void **state)
{
    (void)state;
    static const double origin[3] = {1e7, 0.1, -3};
    rows r, before;
    make_rows(&r);
    before = r;
    const kiln_edits none = edits(0, 0, 0, 0, 0, 0, 1), shift = edits(5, 0, 0, 0, 0, 0, 1);
    assert_false(none.moves);
    assert_int_equal(apply(&none, origin, origin, &r), N);
    assert_memory_equal(&r, &before, sizeof r);
    assert_int_equal(apply(&shift, origin, origin, &r), N);
    assert_memory_equal(r.quats, before.quats, sizeof r - offsetof(rows, quats));
    assert_memory_equal(r.log_scales, before.log_scales, sizeof r.log_scales);
    assert_true(fabs((double)r.means[0] - (double)before.means[0] - 5) < 1e-6);
}

static void another_origin_is_taken_in_double(void **state)
{
    (void)state;
    static const double from[3] = {1e8 + 1, 2, 3}, to[3] = {1e8, 0, 0};
    rows r, before;
    make_rows(&r);
    before = r;
    const kiln_edits none = edits(0, 0, 0, 0, 0, 0, 1);
    assert_int_equal(apply(&none, from, to, &r), N);
    for (int i = 0; i < N; i++)
        assert_true(fabs((double)r.means[i] - ((double)before.means[i] + 1)) < 1e-6);
    for (int i = 0; i < N; i++)
        assert_true(fabs((double)r.means[2 * N + i] - ((double)before.means[2 * N + i] + 3)) <
                    1e-6);
}

static void rows_without_a_finite_value_are_found(void **state)
{
    (void)state;
    rows r;
    const kiln_edits large = edits(0, 0, 0, 0, 0, 0, 1e9), turn = edits(0, 0, 0, 45, 0, 0, 1);
    make_rows(&r);
    r.log_scales[N + 5] = 70; /* + 20.7 */
    r.means[9] = 1e30f;       /* x 1e9 */
    assert_int_equal(apply(&large, nowhere, nowhere, &r), 5);
    make_rows(&r);
    r.means[9] = 1e30f;
    assert_int_equal(apply(&large, nowhere, nowhere, &r), 9);
    make_rows(&r);
    r.shN[3 * N + 4] = r.shN[6 * N + 4] = 3e38f; /* of one colour: their sum is none */
    r.shN[4] = -3e38f;
    assert_int_equal(apply(&turn, nowhere, nowhere, &r), 4);
}

/* ---- the origin ------------------------------------------------------------------------------ */

static kiln_chunk box(float lo, float hi)
{
    return (kiln_chunk){.count = 1, .box_min = {lo, lo, lo}, .box_max = {hi, hi, hi}};
}

static void origin_of(const kiln_edits *e, kiln_chunk *chunks, uint32_t n,
                      const double (*origins)[3], uint32_t n_layers, double out[3])
{
    kiln_edits_span span = {0};
    for (uint32_t i = 0; i < n_layers; i++) {
        const kiln_layer layer = {.n_chunks = n, .chunks = chunks};
        kiln_edits_span_add(&span, e, &layer, NULL, origins[i]);
    }
    kiln_edits_origin(&span, e, out);
}

static void origins_are_kept_or_chosen(void **state)
{
    (void)state;
    kiln_chunk near[2] = {box(-1, 0), box(0, 1)};
    static const double far[2][3] = {{1e7, 0.25, 0}, {1e7, 0.25, 0}},
                        mixed[2][3] = {{0, 0, 0}, {100.75, 0, 0}}, none[1][3] = {{0, 0, 0}};
    double o[3];
    kiln_edits e = edits(0, 0, 0, 0, 0, 0, 1);
    origin_of(&e, near, 2, far, 2, o);
    assert_memory_equal(o, far[0], sizeof o); /* one for all, nothing moves: to the bit */
    origin_of(&e, near, 2, mixed, 2, o);
    assert_memory_equal(o, ((double[3]){101, 0, 0}), sizeof o);
    origin_of(&e, near, 2, none, 1, o);
    assert_memory_equal(o, nowhere, sizeof o);
    e = edits(1, 0, 0, 0, 0, 90, 2);
    origin_of(&e, near, 2, far, 1, o);
    assert_memory_equal(o, ((double[3]){1, 2e7, 0}), sizeof o); /* 2 (-0.25, 1e7) + (1, 0) */
    e = edits(500, 0, 0, 0, 0, 0, 1);                           /* the diagonal is 2 sqrt 3 */
    origin_of(&e, near, 2, none, 1, o);
    assert_memory_equal(o, nowhere, sizeof o);
    e = edits(900, 0, 0, 0, 0, 0, 1);
    origin_of(&e, near, 2, none, 1, o);
    assert_memory_equal(o, ((double[3]){900, 0, 0}), sizeof o);
}

static void chunks_that_are_not_written_do_not_count(void **state)
{
    (void)state;
    kiln_chunk chunks[3] = {box(0, 1), box(0, 1e6f), box(0, 0)};
    const kiln_edits e = edits(1e4, 0, 0, 0, 0, 0, 1);
    const kiln_layer layer = {.n_chunks = 3, .chunks = chunks};
    kiln_edits_span span = {0};
    double o[3];
    chunks[2].count = 0;
    kiln_edits_span_add(&span, &e, &layer, (uint8_t[]){1, 0, 1}, nowhere);
    kiln_edits_origin(&span, &e, o);
    /* the middle, 10000.5, made whole */
    assert_memory_equal(o, ((double[3]){10001, 1, 1}), sizeof o);
}

static void degrees_are_cut_never_raised(void **state)
{
    (void)state;
    kiln_edits e;
    kiln_edits_of(nowhere, nowhere, 1, 2, &e);
    assert_int_equal(kiln_edits_degree(&e, 3), 2);
    assert_int_equal(kiln_edits_degree(&e, 1), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moved_on_export_is_moved_on_import),
        cmocka_unit_test(what_is_not_moved_keeps_its_bits),
        cmocka_unit_test(another_origin_is_taken_in_double),
        cmocka_unit_test(rows_without_a_finite_value_are_found),
        cmocka_unit_test(origins_are_kept_or_chosen),
        cmocka_unit_test(chunks_that_are_not_written_do_not_count),
        cmocka_unit_test(degrees_are_cut_never_raised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
