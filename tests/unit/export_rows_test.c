/* Rows of compressed PLY and .splat: what was read from such a file is packed to the same bytes
 * again, and anything else to codes that stand for a value within half a step, by the formulas of
 * the formats. */
#include "import_source.h"

#include "base/file.h"
#include "stages/formats/codes.h"
#include "stages/formats/compressed_ply/compressed_ply_rows.h"
#include "stages/formats/linear.h"
#include "stages/formats/splat/splat_rows.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define C0 0.28209479177387814

/* ---- planes ---------------------------------------------------------------------------------- */

typedef struct {
    kiln_packing_planes p;
    uint32_t n_coefficients;
    float *values; /* owned: all planes */
} planes;

/* From rows as import_source has them: xyz, quaternion, log scales, logit, SH. */
static void make_planes(planes *out, const float *rows, uint64_t n, uint32_t floats)
{
    const uint32_t width = floats - 14;
    float *v = malloc(n * floats * sizeof *v);
    assert_non_null(v);
    for (uint64_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < floats; k++) v[k * n + i] = rows[i * floats + k];
    *out = (planes){.p = {.n = n,
                          .means = v,
                          .quats = v + 3 * n,
                          .log_scales = v + 7 * n,
                          .opacity_logits = v + 10 * n,
                          .sh0 = v + 11 * n,
                          .shN = v + 14 * n},
                    .n_coefficients = width / 3,
                    .values = v};
}

static uint32_t random_bits(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static float random_between(uint32_t *state, double lo, double hi)
{
    return (float)(lo + (hi - lo) * ((double)random_bits(state) / 16777215.0));
}

/* Rows of all kinds: equal columns, large and tiny ranges, scales and SH beyond the formats'
 * limits, ties. */
static float *random_rows(uint64_t n, uint32_t floats, uint32_t seed)
{
    float *rows = malloc(n * floats * sizeof *rows), *v = rows;
    assert_non_null(rows);
    for (uint64_t i = 0; i < n; i++, v += floats) {
        v[0] = random_between(&seed, -1e6, 1e6), v[1] = 7,
        v[2] = 1 + random_between(&seed, 0, 3e-6);
        for (int c = 3; c < 7; c++) v[c] = random_between(&seed, -2, 2);
        if (i % 16 == 0) v[3] = v[4] = v[5] = v[6] = 0.5f;
        if (i % 16 == 1) v[3] = -3, v[4] = v[5] = v[6] = 0;
        for (int c = 7; c < 10; c++) v[c] = random_between(&seed, -12, 3);
        v[10] = random_between(&seed, -9, 9);
        for (uint32_t c = 11; c < 14; c++) v[c] = random_between(&seed, -3, 3);
        for (uint32_t c = 14; c < floats; c++) v[c] = random_between(&seed, -4.2, 4.2);
    }
    return rows;
}

/* ---- compressed PLY -------------------------------------------------------------------------- */

typedef struct {
    unsigned char *bounds, *vertices, *sh; /* owned */
    uint64_t moved_scales, moved_sh;
} packed;

/* As a writer does it: rows half ready in pieces that are no groups, then groups. */
static void pack_all(const planes *s, packed *out)
{
    const uint64_t n = s->p.n, piece = 100,
                   n_groups = (n + KILN_PACKED_GROUP - 1) / KILN_PACKED_GROUP;
    kiln_half_packed *half = malloc(n * sizeof *half);
    *out = (packed){.bounds = malloc(n_groups * KILN_PACKED_BOUNDS_BYTES),
                    .vertices = malloc(n * KILN_PACKED_ROW_BYTES),
                    .sh = malloc(n * 3 * s->n_coefficients + 1)};
    assert_true(half && out->bounds && out->vertices && out->sh);
    for (uint64_t at = 0; at < n; at += piece) {
        const uint64_t m = n - at < piece ? n - at : piece;
        out->moved_scales += kiln_half_pack(&s->p, at, m, half + at);
        out->moved_sh +=
            kiln_pack_sh(&s->p, at, m, s->n_coefficients, out->sh + at * 3 * s->n_coefficients);
    }
    for (uint64_t g = 0; g < n_groups; g++) {
        const uint64_t at = g * KILN_PACKED_GROUP,
                       m = n - at < KILN_PACKED_GROUP ? n - at : KILN_PACKED_GROUP;
        kiln_pack_group(half + at, (uint32_t)m, out->bounds + g * KILN_PACKED_BOUNDS_BYTES,
                        out->vertices + at * KILN_PACKED_ROW_BYTES);
    }
    free(half);
}

static void free_packed(packed *p)
{
    free(p->bounds);
    free(p->vertices);
    free(p->sh);
}

static float float_of(const unsigned char *p)
{
    float v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint32_t u32_of(const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static double sigmoid(float v) { return (double)(1 / (1 + expl(-(long double)v))); }

/* A half step, and what rounding to float adds to values of this size. */
static void assert_near(double decoded, double exact, double step, double size, const char *what)
{
    if (!(fabs(decoded - exact) <= step / 2 + size * 1.2e-7))
        fail_msg("%s: %.9g is written as %.9g", what, exact, decoded);
}

static void check_field(const packed *p, const planes *s, uint64_t i, int what,
                        const double expected[3])
{
    static const int shifts[2][3] = {{21, 11, 0}, {24, 16, 8}},
                     steps[2][3] = {{2047, 1023, 2047}, {255, 255, 255}};
    static const int at[3] = {0, 8, 12};
    const unsigned char *b =
        p->bounds + i / KILN_PACKED_GROUP * KILN_PACKED_BOUNDS_BYTES + what * 24;
    const uint32_t v = u32_of(p->vertices + i * KILN_PACKED_ROW_BYTES + at[what]);
    (void)s;
    for (int c = 0; c < 3; c++) {
        const int most = steps[what == 2][c];
        const double lo = (double)float_of(b + 4 * c), hi = (double)float_of(b + 12 + 4 * c);
        const double t = (double)(v >> shifts[what == 2][c] & (uint32_t)most) / most;
        assert_near(lo * (1 - t) + hi * t, expected[c], (hi - lo) / most, fmax(fabs(lo), fabs(hi)),
                    "bounds");
    }
}

static void check_rotation(uint32_t v, const float q[4])
{
    double unit[4], decoded[4], length = 0, rest = 1, sign = 1;
    const uint32_t place = v >> 30;
    for (int c = 0; c < 4; c++) length += (double)q[c] * (double)q[c];
    for (int c = 0; c < 4; c++) unit[c] = length > 0 ? (double)q[c] / sqrt(length) : c == 0;
    for (int c = 3, k = 0; c >= 0; c--) {
        if (c == (int)place) continue;
        decoded[c] = ((double)(v >> k & 1023) / 1023 - 0.5) * sqrt(2);
        rest -= decoded[c] * decoded[c];
        k += 10;
    }
    decoded[place] = sqrt(fmax(0, rest));
    if (unit[place] < 0) sign = -1;
    for (uint32_t c = 0; c < 4; c++) assert_true(fabs(unit[c]) <= fabs(unit[place]));
    for (uint32_t c = 0; c < 4; c++)
        if (c != place) assert_near(sign * decoded[c], unit[c], sqrt(2) / 1023, 1, "rotation");
}

static void check_packed(const planes *s, const packed *p)
{
    const uint64_t n = s->p.n;
    uint64_t scales = 0, sh = 0;
    for (uint64_t i = 0; i < n; i++) {
        double position[3], scale[3], colour[3];
        const float q[4] = {s->p.quats[i], s->p.quats[n + i], s->p.quats[2 * n + i],
                            s->p.quats[3 * n + i]};
        for (uint64_t c = 0; c < 3; c++) {
            const float l = s->p.log_scales[c * n + i];
            position[c] = (double)s->p.means[c * n + i];
            scale[c] = fmin(20, fmax(-20, (double)l));
            scales += fabsf(l) > 20;
            colour[c] = (double)s->p.sh0[c * n + i] * C0 + 0.5;
        }
        check_field(p, s, i, 0, position);
        check_field(p, s, i, 1, scale);
        check_field(p, s, i, 2, colour);
        check_rotation(u32_of(p->vertices + i * KILN_PACKED_ROW_BYTES + 4), q);
        const uint32_t alpha = u32_of(p->vertices + i * KILN_PACKED_ROW_BYTES + 12) & 255;
        assert_near(alpha / 255.0, sigmoid(s->p.opacity_logits[i]), 1.0 / 255, 1e-6, "alpha");
        for (uint64_t k = 0; k < s->n_coefficients; k++)
            for (uint64_t c = 0; c < 3; c++) {
                const double v = (double)s->p.shN[(3 * k + c) * n + i],
                             within = fmin(4, fmax(-4, v));
                const int b = p->sh[i * 3 * s->n_coefficients + c * s->n_coefficients + k];
                const double decoded = b == 0 ? -4 : b == 255 ? 4 : ((b + 0.5) / 256 - 0.5) * 8;
                /* the first and the last step are half as long again */
                assert_near(decoded, within, fabs(within) > 4 - 1.5 / 32 ? 1.5 / 32 : 1.0 / 32, 0,
                            "SH");
                sh += within != v;
            }
    }
    assert_int_equal(p->moved_scales, scales);
    assert_int_equal(p->moved_sh, sh);
}

static void any_row_is_packed_within_half_a_step(void **state)
{
    (void)state;
    for (uint32_t degree = 0; degree <= 3; degree++) {
        const uint32_t floats = 11 + 3 * (degree + 1) * (degree + 1);
        const uint64_t n = 700 + degree;
        float *rows = random_rows(n, floats, 11 + degree);
        rows[7] = -30, rows[8] = 25, rows[floats + 7] = HUGE_VALF; /* scales that no bound takes */
        planes s;
        packed p;
        make_planes(&s, rows, n, floats);
        pack_all(&s, &p);
        check_packed(&s, &p);
        free_packed(&p);
        free(s.values);
        free(rows);
    }
}

/* Values of which a group has one alone need no range; what is no number has a code too. */
static void one_row_and_hostile_rows_are_packed(void **state)
{
    float rows[2][23];
    planes s;
    packed p;
    (void)state;
    for (int i = 0; i < 2; i++)
        for (int c = 0; c < 23; c++) rows[i][c] = NAN;
    for (int c = 0; c < 23; c++) rows[0][c] = 0;
    make_planes(&s, rows[0], 1, 23);
    pack_all(&s, &p);
    static const unsigned char none[24] = {0};
    assert_memory_equal(p.bounds, none, 24);
    assert_int_equal(u32_of(p.vertices), 0);
    /* w is the largest, the others 512 of 1023: a rotation of 0 */
    assert_int_equal(u32_of(p.vertices + 4), 0x20080200);
    assert_int_equal(u32_of(p.vertices + 12), 128);
    assert_int_equal(p.sh[0], 128);
    assert_true(float_of(p.bounds + 48) == 0.5f);
    free_packed(&p);
    free(s.values);
    make_planes(&s, rows[0], 2, 23);
    pack_all(&s, &p);
    assert_int_equal(p.sh[9], 0);
    assert_int_equal(u32_of(p.vertices + 16 + 4), 0x20080200);
    assert_int_equal(p.moved_sh, 9);
    free_packed(&p);
    free(s.values);
}

/* Of every rotation code, also of those whose left out component is not the largest, or that have
 * no length of 1. */
static void every_rotation_code_comes_again(void **state)
{
    uint32_t seed = 3, n_codes = 0;
    (void)state;
    for (uint32_t i = 0; i < 200000; i++) {
        uint32_t v = random_bits(&seed) << 8 ^ random_bits(&seed);
        if (i % 4 == 0) v |= 0x3ff003ff; /* components at sqrt(1/2) */
        if (i % 64 == 1) v |= 0x3fffffff;
        const double root = 1.41421356237309505;
        double rest = 1, part[3];
        float q[4];
        for (int k = 0; k < 3; k++) {
            part[k] = ((double)(v >> (20 - 10 * k) & 1023) / 1023.0 - 0.5) * root;
        }
        rest -= part[0] * part[0] + part[1] * part[1] + part[2] * part[2];
        const double largest = sqrt(fmax(rest, 0)),
                     other = fmax(fabs(part[0]), fmax(fabs(part[1]), fabs(part[2])));
        if (largest < other - 0.002 && rest > -0.0002) continue; /* no encoder makes it */
        n_codes++;
        for (uint32_t c = 0, k = 0; c < 4; c++)
            q[c] = (float)(c == v >> 30 ? sqrt(rest > 0 ? rest : 0.0) : part[k++]);
        const float zero[3] = {0};
        const kiln_packing_planes p = {.n = 1,
                                       .means = zero,
                                       .log_scales = zero,
                                       .quats = q,
                                       .opacity_logits = zero,
                                       .sh0 = zero};
        kiln_half_packed half;
        (void)kiln_half_pack(&p, 0, 1, &half);
        assert_int_equal(half.rotation, v);
    }
    assert_true(n_codes > 20000);
}

/* ---- .splat ---------------------------------------------------------------------------------- */

static kiln_splat_planes splat_planes(const planes *s)
{
    return (kiln_splat_planes){.n = s->p.n,
                               .means = s->p.means,
                               .log_scales = s->p.log_scales,
                               .quats = s->p.quats,
                               .opacity_logits = s->p.opacity_logits,
                               .sh0 = s->p.sh0};
}

static void check_splat_row(const planes *s, uint64_t i, const unsigned char *row)
{
    const uint64_t n = s->p.n;
    double length = 0;
    for (uint64_t c = 0; c < 3; c++) {
        const float scale = float_of(row + 12 + 4 * c);
        assert_true(float_of(row + 4 * c) == s->p.means[c * n + i]);
        assert_true(fabsf(scale - (float)expl((long double)s->p.log_scales[c * n + i])) <=
                    1.2e-7f * scale);
        const double colour = fmin(1, fmax(0, 0.5 + C0 * (double)s->p.sh0[c * n + i]));
        assert_near(row[24 + c] / 255.0, colour, 1.0 / 255, 1e-6, "colour");
    }
    assert_near(row[27] / 255.0, sigmoid(s->p.opacity_logits[i]), 1.0 / 255, 1e-6, "alpha");
    for (uint64_t c = 0; c < 4; c++) length += pow((double)s->p.quats[c * n + i], 2);
    for (uint64_t c = 0; c < 4; c++) {
        const double q = (double)s->p.quats[c * n + i] / sqrt(length);
        assert_near((row[28 + c] - 128) / 128.0, q, q > 127.5 / 128 ? 2.0 / 128 : 1.0 / 128, 1e-6,
                    "rotation");
    }
}

static void any_row_becomes_a_splat_row_within_half_a_step(void **state)
{
    enum { ROWS = 1500, FLOATS = 14 };
    float *rows = random_rows(ROWS, FLOATS, 5);
    static unsigned char out[ROWS * KILN_SPLAT_ROW_BYTES];
    kiln_splat_moved moved = {0};
    planes s;
    uint64_t colours = 0;
    (void)state;
    make_planes(&s, rows, ROWS, FLOATS);
    const kiln_splat_planes p = splat_planes(&s);
    kiln_splat_pack(&p, 0, 700, out, &moved);
    kiln_splat_pack(&p, 700, ROWS - 700, out + 700 * KILN_SPLAT_ROW_BYTES, &moved);
    for (uint64_t i = 0; i < ROWS; i++) {
        check_splat_row(&s, i, out + i * KILN_SPLAT_ROW_BYTES);
        for (uint64_t c = 0; c < 3; c++) {
            const double u = 255 * (0.5 + C0 * (double)s.p.sh0[c * ROWS + i]);
            colours += u < -0.5 || u >= 255.5;
        }
    }
    assert_true(colours > 0);
    assert_int_equal(moved.colours, colours);
    assert_int_equal(moved.scales, 0);
    free(s.values);
    free(rows);
}

static void values_that_a_splat_row_cannot_hold_are_counted(void **state)
{
    float rows[3][14] = {{0}};
    unsigned char out[3 * KILN_SPLAT_ROW_BYTES];
    kiln_splat_moved moved = {0};
    planes s;
    (void)state;
    rows[0][7] = -200, rows[0][8] = 89, rows[0][10] = HUGE_VALF, rows[0][11] = 2, rows[0][12] = -2;
    rows[1][3] = 1;
    rows[2][3] = -1;
    make_planes(&s, rows[0], 3, 14);
    const kiln_splat_planes p = splat_planes(&s);
    kiln_splat_pack(&p, 0, 3, out, &moved);
    assert_int_equal(moved.scales, 2);
    assert_int_equal(moved.colours, 2);
    assert_true(float_of(out + 12) == 0 && float_of(out + 16) == FLT_MAX &&
                float_of(out + 20) == 1);
    /* no rotation is (1, 0, 0, 0) */
    assert_memory_equal(out + 24, ((unsigned char[]){255, 0, 128, 255, 255, 128, 128, 128}), 8);
    assert_memory_equal(out + 32 + 28, ((unsigned char[]){255, 128, 128, 128}), 4);
    assert_memory_equal(out + 64 + 28, ((unsigned char[]){0, 128, 128, 128}), 4);
    free(s.values);
}

/* ---- codes ----------------------------------------------------------------------------------- */

static void alphas_are_nearest_and_stay(void **state)
{
    float logits[256];
    uint8_t codes[256 * 3];
    (void)state;
    kiln_code_logits(logits);
    kiln_opacity_codes(256, logits, codes, 3);
    for (int b = 0; b < 256; b++) assert_int_equal(codes[3 * b], b);
    for (double v = -40; v < 40; v += 0.00037) {
        const float logit = (float)v;
        kiln_opacity_codes(1, &logit, codes, 1);
        assert_near(codes[0], 255 * sigmoid(logit), 1, 1e-9, "alpha");
    }
    const float odd[3] = {NAN, -HUGE_VALF, HUGE_VALF};
    kiln_opacity_codes(3, odd, codes, 1);
    assert_memory_equal(codes, ((uint8_t[]){0, 0, 255}), 3);
}

static void scales_are_the_nearest_floats(void **state)
{
    float logs[64], linear[64];
    (void)state;
    for (double v = -104.5; v < 89.5; v += 64 * 0.00071) {
        for (int i = 0; i < 64; i++) logs[i] = (float)(v + i * 0.00071);
        kiln_linear_scales(64, logs, linear);
        for (int i = 0; i < 64; i++) {
            const long double exact = expl((long double)logs[i]);
            if (exact > (long double)FLT_MAX * (1 + 0x1p-25L)) {
                assert_true(linear[i] == HUGE_VALF);
                continue;
            }
            int e;
            (void)frexpl(exact, &e);
            const long double last_place = ldexpl(1, e - 24 < -149 ? -149 : e - 24);
            if (!(fabsl((long double)linear[i] - exact) <= 0.501L * last_place))
                fail_msg("exp %.9g", (double)logs[i]);
        }
    }
    const float odd[3] = {NAN, -HUGE_VALF, HUGE_VALF};
    kiln_linear_scales(3, odd, linear);
    assert_true(linear[0] != linear[0] && linear[1] == 0 && linear[2] == HUGE_VALF);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* A sample's bytes and rows; skips where it is absent. */
static void load_sample(const char *name, import_source *rows, planes *s, unsigned char **bytes,
                        size_t *size)
{
    const char *shared = getenv("KILN_SHARED");
    char path[512];
    kiln_error err = {0};
    snprintf(path, sizeof path, "%s/samples/%s", shared && *shared ? shared : "../shared", name);
    if (!kiln_is_file(path)) {
        print_message("skipped: '%s' is absent\n", path);
        skip();
    }
    if (kiln_file_read(path, 1 << 24, bytes, size, &err) != KILN_OK) fail_msg("%s", err.msg);
    if (import_source_read(path, rows, &err) != KILN_OK) fail_msg("%s", err.msg);
    make_planes(s, rows->rows, rows->n, rows->floats);
}

/* The samples have the reader's order and groups, so bounds and codes come again. A colour goes
 * through a coefficient, after which its bounds may differ in the last place. */
static void compressed_samples_come_again(void **state)
{
    static const char *const names[] = {"golden_cply_sh0.ply", "golden_cply_sh1.ply",
                                        "golden_cply_sh3.ply"};
    (void)state;
    for (int k = 0; k < 3; k++) {
        import_source rows;
        planes s;
        packed p;
        unsigned char *bytes;
        size_t size;
        load_sample(names[k], &rows, &s, &bytes, &size);
        const uint64_t n = rows.n, n_groups = (n + 255) / 256, width = 3 * s.n_coefficients;
        const unsigned char *sh = bytes + size - n * width,
                            *vertices = sh - n * KILN_PACKED_ROW_BYTES,
                            *bounds = vertices - n_groups * KILN_PACKED_BOUNDS_BYTES;
        assert_memory_equal(bounds - 11, "end_header\n", 11);
        pack_all(&s, &p);
        for (uint64_t g = 0; g < n_groups; g++) {
            const unsigned char *ours = p.bounds + g * KILN_PACKED_BOUNDS_BYTES,
                                *theirs = bounds + g * KILN_PACKED_BOUNDS_BYTES;
            assert_memory_equal(ours, theirs, 48);
            for (int c = 48; c < KILN_PACKED_BOUNDS_BYTES; c += 4)
                assert_true(fabsf(float_of(ours + c) - float_of(theirs + c)) <=
                            1.2e-7f * fmaxf(1, fabsf(float_of(theirs + c))));
        }
        assert_memory_equal(p.vertices, vertices, n * KILN_PACKED_ROW_BYTES);
        assert_memory_equal(p.sh, sh, n * width);
        check_packed(&s, &p);
        free_packed(&p);
        free(s.values);
        free(bytes);
        import_source_free(&rows);
    }
}

static void plain_samples_are_packed_within_half_a_step(void **state)
{
    static const char *const names[] = {"golden_ply_inria_sh0.ply", "golden_ply_inria_sh1.ply",
                                        "golden_ply_inria_sh2.ply", "golden_ply_inria_sh3.ply"};
    (void)state;
    for (int k = 0; k < 4; k++) {
        import_source rows;
        planes s;
        packed p;
        unsigned char *bytes;
        size_t size;
        load_sample(names[k], &rows, &s, &bytes, &size);
        pack_all(&s, &p);
        check_packed(&s, &p);
        free_packed(&p);
        free(s.values);
        free(bytes);
        import_source_free(&rows);
    }
}

static void splat_sample_comes_again(void **state)
{
    import_source rows;
    planes s;
    unsigned char *bytes, out[48 * KILN_SPLAT_ROW_BYTES];
    size_t size;
    kiln_splat_moved moved = {0};
    (void)state;
    load_sample("golden_splat.splat", &rows, &s, &bytes, &size);
    assert_int_equal(size, sizeof out);
    assert_int_equal(rows.n, 48);
    const kiln_splat_planes p = splat_planes(&s);
    kiln_splat_pack(&p, 0, 48, out, &moved);
    for (uint64_t i = 0; i < 48; i++) {
        const unsigned char *ours = out + i * KILN_SPLAT_ROW_BYTES,
                            *theirs = bytes + i * KILN_SPLAT_ROW_BYTES;
        assert_memory_equal(ours, theirs, 12);
        assert_memory_equal(ours + 24, theirs + 24, 8);
        /* exp(log(x)): a logarithm is rounded to half its last place, which is as many places of x
         * as the logarithm is large */
        for (int c = 12; c < 24; c += 4)
            assert_true(fabsf(float_of(ours + c) - float_of(theirs + c)) <=
                        1e-6f * float_of(theirs + c));
    }
    assert_int_equal(moved.colours + moved.scales, 0);
    free(s.values);
    free(bytes);
    import_source_free(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_row_is_packed_within_half_a_step),
        cmocka_unit_test(one_row_and_hostile_rows_are_packed),
        cmocka_unit_test(every_rotation_code_comes_again),
        cmocka_unit_test(any_row_becomes_a_splat_row_within_half_a_step),
        cmocka_unit_test(values_that_a_splat_row_cannot_hold_are_counted),
        cmocka_unit_test(alphas_are_nearest_and_stay),
        cmocka_unit_test(scales_are_the_nearest_floats),
        cmocka_unit_test(compressed_samples_come_again),
        cmocka_unit_test(plain_samples_are_packed_within_half_a_step),
        cmocka_unit_test(splat_sample_comes_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
