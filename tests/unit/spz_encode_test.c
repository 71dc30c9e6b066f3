/* spz_encode: the golden files' codes, made of the PLY that they were made of; codes that were read
 * come out again; which fraction a scene gets; what is counted. */
#include "stages/formats/spz/spz_encode.h"
#include "stages/formats/spz/spz_rows.h"
#include "tests/unit/import_source.h"

#include "base/file.h"
#include "base/harmonics.h"
#include "stages/formats/turn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <zlib.h>

#include <cmocka.h>

static const kiln_spz_coding usual = {.fraction = KILN_SPZ_FRACTION,
                                      .first_bits = KILN_SPZ_FIRST_BITS,
                                      .other_bits = KILN_SPZ_OTHER_BITS,
                                      .to_rub = true};

/* ---- rows ------------------------------------------------------------------------------------ */

typedef struct {
    uint64_t n;
    uint32_t degree;
    float *means, *log_scales, *quats, *logits, *sh0, *shN;
} rows;

static uint32_t sh_components(uint32_t degree) { return 3 * ((degree + 1) * (degree + 1) - 1); }

static float *floats(uint64_t n)
{
    float *v = calloc(n + 1, sizeof *v);
    assert_non_null(v);
    return v;
}

static rows make_rows(uint64_t n, uint32_t degree)
{
    return (rows){.n = n,
                  .degree = degree,
                  .means = floats(3 * n),
                  .log_scales = floats(3 * n),
                  .quats = floats(4 * n),
                  .logits = floats(n),
                  .sh0 = floats(3 * n),
                  .shN = floats(sh_components(degree) * n)};
}

static void free_rows(rows *r)
{
    free(r->means);
    free(r->log_scales);
    free(r->quats);
    free(r->logits);
    free(r->sh0);
    free(r->shN);
}

/* Rows of a file as they stand in it, as a chunk's planes have them. */
static rows read_rows(const char *path)
{
    import_source s;
    kiln_error err = {0};
    if (import_source_read(path, &s, &err) != KILN_OK) fail_msg("%s", err.msg);
    rows r = make_rows(s.n, s.scan.info.sh_degree);
    for (uint64_t at = 0; at < s.n; at++) {
        const float *row = s.rows + at * s.floats;
        const uint64_t i = s.source_row[at]; /* every row stays */
        for (uint64_t c = 0; c < 3; c++) r.means[c * s.n + i] = row[c];
        for (uint64_t c = 0; c < 4; c++) r.quats[c * s.n + i] = row[3 + c];
        for (uint64_t c = 0; c < 3; c++) r.log_scales[c * s.n + i] = row[7 + c];
        r.logits[i] = row[10];
        for (uint64_t c = 0; c < 3; c++) r.sh0[c * s.n + i] = row[11 + c];
        for (uint64_t c = 0; c < sh_components(r.degree); c++) r.shN[c * s.n + i] = row[14 + c];
    }
    import_source_free(&s);
    return r;
}

/* ---- codes ----------------------------------------------------------------------------------- */

typedef struct {
    unsigned char *planes[KILN_SPZ_PLANES];
    size_t bytes[KILN_SPZ_PLANES];
    kiln_spz_clamped clamped;
} codes;

static codes encode(const rows *r, kiln_spz_coding coding)
{
    codes out = {0};
    const size_t stride[KILN_SPZ_PLANES] = {9, 1, 3, 3, 4, sh_components(r->degree)};
    for (int p = 0; p < KILN_SPZ_PLANES; p++) {
        out.bytes[p] = r->n * stride[p];
        out.planes[p] = calloc(out.bytes[p] + 1, 1);
    }
    coding.sh_degree = r->degree;
    kiln_spz_encode(&coding,
                    &(kiln_spz_values){.n = r->n,
                                       .stride = r->n,
                                       .means = r->means,
                                       .log_scales = r->log_scales,
                                       .quats = r->quats,
                                       .opacity_logits = r->logits,
                                       .sh0 = r->sh0,
                                       .shN = r->shN},
                    out.planes, &out.clamped);
    return out;
}

static void free_codes(codes *c)
{
    for (int p = 0; p < KILN_SPZ_PLANES; p++) free(c->planes[p]);
}

static const char *sample(const char *name, uint32_t degree, const char *suffix)
{
    static char path[2][512];
    static int turn;
    const char *shared = getenv("KILN_SHARED");
    char *p = path[turn++ & 1];
    snprintf(p, sizeof path[0], "%s/samples/%s%u.%s", shared && *shared ? shared : "../shared",
             name, degree, suffix);
    if (!kiln_is_file(p)) {
        print_message("skipped: '%s' is absent\n", p);
        skip();
    }
    return p;
}

static size_t unpack(const char *path, unsigned char *out, size_t capacity)
{
    gzFile f = gzopen(path, "rb");
    const int n = f ? gzread(f, out, (unsigned)capacity) : -1;
    if (!f || gzclose(f) != Z_OK || n < 0) fail_msg("cannot unpack '%s'", path);
    return (size_t)n;
}

/* Is the code of a harmonic nearer to its value than the one that nianticlabs/spz gives it? That
 * rounds twice. */
static bool is_nearer(const rows *r, size_t i, int ours, int theirs)
{
    static const int about_x[3] = {1, -1, -1};
    const size_t components = 3 * kiln_sh_coefficients(r->degree), c = i % components;
    int of_quat[4], sign[24];
    kiln_turn_signs(about_x, of_quat, sign);
    const double value = 128 + 128.0 * sign[c / 3] * (double)r->shN[c * r->n + i / components];
    return fabs(ours - value) < fabs(theirs - value);
}

/* r: the rows, whose harmonics may have nearer codes; NULL: all bytes are equal. */
static void check_codes(const codes *c, const rows *r, const unsigned char *payload, size_t size,
                        const char *what)
{
    size_t at = 0;
    for (int p = 0; p < KILN_SPZ_PLANES; p++)
        for (size_t i = 0; i < c->bytes[p]; i++, at++)
            if (at >= size ||
                (c->planes[p][i] != payload[at] &&
                 !(r && p == KILN_SPZ_SH && is_nearer(r, i, c->planes[p][i], payload[at]))))
                fail_msg("%s: byte %zu of the %s plane is %u, not %u", what, i,
                         kiln_spz_plane_names[p], c->planes[p][i], at < size ? payload[at] : 256);
    assert_int_equal(at, size);
}

/* nianticlabs/spz turns coefficient (4, 4) with the sign of y, in which it is even; the golden
 * files have that, too. */
static void turn_last_coefficient_as_niantic(rows *r)
{
    for (uint64_t i = 23 * 3 * r->n; i < 24 * 3 * r->n && r->degree == 4; i++)
        r->shN[i] = -r->shN[i];
}

/* nianticlabs/spz multiplies by this float, whose factors spz.h has apart; and by a rounded square
 * root. */
static void factors_are_the_floats_of_niantic(void **state)
{
    (void)state;
    assert_true((float)(255 * KILN_SPZ_COLOUR_SCALE) == 38.25f &&
                (float)KILN_SPZ_SQRT_HALF == 0.70710678f);
}

static void the_golden_files_have_these_codes(void **state)
{
    static unsigned char payload[1 << 20];
    (void)state;
    for (uint32_t degree = 0; degree <= 4; degree++) {
        rows r = read_rows(sample("golden_ply_inria_sh", degree, "ply"));
        const char *path = sample("golden_spz_v3_sh", degree, "spz");
        const size_t size = unpack(path, payload, sizeof payload);
        turn_last_coefficient_as_niantic(&r);
        kiln_spz_coding coding = usual;
        coding.fraction = payload[13];
        codes c = encode(&r, coding);
        check_codes(&c, &r, payload + KILN_SPZ_HEADER, size - KILN_SPZ_HEADER, path);
        free_codes(&c);
        free_rows(&r);
    }
}

/* Read as they stand or turned: the same codes again. */
static void codes_of_golden_files_come_out_again(void **state)
{
    static unsigned char payload[1 << 20];
    (void)state;
    for (uint32_t degree = 0; degree <= 4; degree++) {
        const char *path = sample("golden_spz_v3_sh", degree, "spz");
        const size_t size = unpack(path, payload, sizeof payload);
        rows r = read_rows(path);
        codes c = encode(&r, (kiln_spz_coding){.fraction = payload[13],
                                               .first_bits = 5,
                                               .other_bits = 4,
                                               .signed_zeros = true});
        check_codes(&c, NULL, payload + KILN_SPZ_HEADER, size - KILN_SPZ_HEADER, path);
        free_codes(&c);
        free_rows(&r);
    }
}

/* ---- rotations ------------------------------------------------------------------------------- */

static uint32_t word_of(const float wxyz[4], bool signed_zeros)
{
    rows r = make_rows(1, 0);
    uint32_t word;
    memcpy(r.quats, wxyz, 4 * sizeof *wxyz);
    codes c = encode(
        &r, (kiln_spz_coding){
                .fraction = 12, .first_bits = 5, .other_bits = 4, .signed_zeros = signed_zeros});
    memcpy(&word, c.planes[KILN_SPZ_ROTATIONS], sizeof word);
    free_codes(&c);
    free_rows(&r);
    return word;
}

/* The same floats, or their negatives. */
static bool same_rotation(const float a[4], const float b[4])
{
    bool same = true, negative = true;
    for (int c = 0; c < 4; c++) {
        same &= a[c] == b[c];
        negative &= a[c] == -b[c];
    }
    return same || negative;
}

/* Of rotations whose two largest components are nearly equal, too, where rounding makes the second
 * one the largest. */
static void rotations_that_were_read_keep_their_word(void **state)
{
    uint64_t seed = 7;
    int others = 0;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        float q[4], again[4];
        for (int c = 0; c < 4; c++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            q[c] = (float)(int32_t)(seed >> 32);
        }
        if (i % 4) { /* two that are off by a thousandth at most, others smaller */
            const int a = i / 4 % 4, b = (a + 1 + i / 16 % 3) % 4;
            for (int c = 0; c < 4; c++)
                if (c != a && c != b)
                    q[c] *= (float)(i % 7 + 1) * 0.1f * fabsf(q[a]) / 2147483648.0f;
            q[b] = (q[b] < 0 ? -1.0f : 1.0f) * fabsf(q[a]) * (1.0f + (float)(i % 101 - 50) * 2e-5f);
        }
        const uint32_t word = word_of(q, false);
        kiln_spz_smallest_three(word, again);
        const uint32_t back = word_of(again, true);
        kiln_spz_smallest_three(back, q);
        if (back != word && !same_rotation(q, again))
            fail_msg("word %08x comes back as %08x", word, back);
        others += back != word;
    }
    assert_true(others < 200); /* half turns about an axis: two words stand for the same floats */
}

static void lengths_and_zeros_do_not_matter(void **state)
{
    static const float identity[4] = {1, 0, 0, 0}, huge[4] = {3e38f, 0, 0, 0},
                       tiny[4] = {1e-44f, -0.0f, 0, 0}, turned[4] = {-2, -0.0f, 0, 0};
    (void)state;
    assert_int_equal(word_of(identity, false), 0xc0000000u);
    assert_int_equal(word_of(huge, false), 0xc0000000u);
    assert_int_equal(word_of(tiny, false), 0xc0000000u);
    /* negated: so are the zeros' signs */
    assert_int_equal(word_of(turned, false), 0xc0000000u | 1u << 29 | 1u << 19 | 1u << 9);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void what_no_code_is_near_is_counted(void **state)
{
    rows r = make_rows(5, 1);
    (void)state;
    const float scales[5] = {-10.03f, -10.04f, 5.96f, 5.97f, 0};
    for (int i = 0; i < 5; i++) {
        r.quats[i] = 1;
        r.log_scales[5 + i] = scales[i];
    }
    r.sh0[10 + 3] = 4;
    r.shN[7 * 5 + 2] = r.shN[8 * 5 + 2] = -1.25f;
    r.shN[8 * 5 + 4] = 1.0f;
    codes c = encode(&r, usual);
    assert_int_equal(c.clamped.scales, 2);
    assert_int_equal(c.clamped.colours, 1);
    assert_int_equal(c.clamped.sh, 1);
    for (int i = 0; i < 5; i++)
        assert_int_equal(c.planes[KILN_SPZ_SCALES][3 * i + 1], i < 2 ? 0 : i < 4 ? 255 : 160);
    assert_int_equal(c.planes[KILN_SPZ_COLOURS][3 * 3 + 2], 255);
    assert_int_equal(c.planes[KILN_SPZ_SH][2 * 9 + 7], 0);
    assert_int_equal(c.planes[KILN_SPZ_SH][4 * 9 + 8], 255);
    free_codes(&c);
    free_rows(&r);
}

/* The fraction is chosen so that positions fit; one that does not, all the same, is the farthest
 * code of its side. */
static void positions_beyond_all_codes_are_clamped(void **state)
{
    static const unsigned char most[3] = {0xff, 0xff, 0x7f}, least[3] = {0, 0, 0x80};
    rows r = make_rows(2, 0);
    (void)state;
    r.quats[0] = r.quats[1] = 1;
    r.means[0] = 2048;
    r.means[1] = -3000;
    r.means[2] = 1e30f;
    r.means[3] = -1e30f;
    const kiln_spz_coding as_they_stand = {.fraction = 12, .first_bits = 8, .other_bits = 8};
    codes c = encode(&r, as_they_stand);
    for (int k = 0; k < 2; k++) {
        assert_memory_equal(c.planes[KILN_SPZ_POSITIONS] + 3 * k, most, 3);
        assert_memory_equal(c.planes[KILN_SPZ_POSITIONS] + 9 + 3 * k, least, 3);
    }
    free_codes(&c);
    free_rows(&r);
}

static void more_bits_of_harmonics_are_nearer(void **state)
{
    rows r = make_rows(256, 2);
    (void)state;
    for (int i = 0; i < 256; i++) {
        r.quats[i] = 1;
        r.shN[0 * 256 + i] = r.shN[23 * 256 + i] = (float)(i - 128) / 128;
    }
    codes c = encode(&r, (kiln_spz_coding){.fraction = 12, .first_bits = 8, .other_bits = 6});
    for (int i = 0; i < 256; i++) {
        assert_int_equal(c.planes[KILN_SPZ_SH][24 * i], i);
        const int near = 128 + 4 * (int)lround((i - 128) / 4.0);
        assert_int_equal(c.planes[KILN_SPZ_SH][24 * i + 23], near > 255 ? 255 : near);
    }
    free_codes(&c);
    free_rows(&r);
}

static void a_scene_gets_the_fraction_that_it_fits(void **state)
{
    static const struct {
        double farthest, half_edge;
        uint32_t fraction;
        bool fine;
    } scenes[] = {
        {3, 2, 12, true},           /* a room */
        {2047.9, 512, 12, true},    /* the last that 12 bits hold */
        {2048, 512, 11, true},      /* */
        {9000, 4096, 9, true},      /* a town */
        {5e5, 4, 4, false},         /* a room with a row far away */
        {1e7, 8388608, 0, false},   /* nothing holds it */
        {0.05, 0.0625, 16, true},   /* a coin in metres */
        {1e-3, 0x1p-10, 22, true},  /* a grain of sand */
        {1e-6, 0x1p-20, 24, false}, /* finer than all readers take */
        {1000, 0.0625, 13, false},  /* a coin far from 0 */
    };
    (void)state;
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        uint32_t fraction;
        const bool fine =
            kiln_spz_choose_fraction(scenes[i].farthest, scenes[i].half_edge, &fraction);
        if (fraction != scenes[i].fraction || fine != scenes[i].fine)
            fail_msg("scene %zu gets %u bits, %s", i, fraction, fine ? "fine" : "coarse");
    }
}

static void bits_that_lose_nothing(void **state)
{
    static const struct {
        float v;
        uint32_t needed;
    } of[] = {{0, 0},      {-0.0f, 0},       {1, 0},
              {-3, 0},     {16777216, 0},    {0.5f, 1},
              {-1.75f, 2}, {0x1.8p-12f, 13}, {100 + 0x1p-12f, 12},
              {0.1f, 27},  {0x1p-149f, 149}};
    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        assert_int_equal(kiln_spz_needed_fraction(&of[i].v, 1), of[i].needed);
    const float both[2] = {0.5f, 0.125f};
    assert_int_equal(kiln_spz_needed_fraction(both, 2), 3);
    assert_true(kiln_spz_fits(2047.999f, 12) && !kiln_spz_fits(2048, 12));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_golden_files_have_these_codes),
        cmocka_unit_test(codes_of_golden_files_come_out_again),
        cmocka_unit_test(rotations_that_were_read_keep_their_word),
        cmocka_unit_test(lengths_and_zeros_do_not_matter),
        cmocka_unit_test(what_no_code_is_near_is_counted),
        cmocka_unit_test(more_bits_of_harmonics_are_nearer),
        cmocka_unit_test(a_scene_gets_the_fraction_that_it_fits),
        cmocka_unit_test(bits_that_lose_nothing),
        cmocka_unit_test(positions_beyond_all_codes_are_clamped),
        cmocka_unit_test(factors_are_the_floats_of_niantic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
