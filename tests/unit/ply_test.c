/* ply -- the reader of PLY files, on small files made here: types, byte orders, dialects,
 * limits. */
#include "import_source.h"

#include "stages/files/text_lines.h"
#include "stages/formats/ply/mip_filter.h"
#include "stages/formats/ply/ply_header.h"
#include "stages/formats/ply/ply_table.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const char *const minimal[] = {"x",      "y",       "z",       "f_dc_0",  "f_dc_1",
                                      "f_dc_2", "opacity", "scale_0", "scale_1", "scale_2",
                                      "rot_0",  "rot_1",   "rot_2",   "rot_3"};
enum { MINIMAL = 14 };

/* A file under construction. */
typedef struct {
    kiln_buffer b;
} file;

static void text(file *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void text(file *f, const char *fmt, ...)
{
    char line[4096];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    assert_int_equal(kiln_buffer_put(&f->b, line, (size_t)n, NULL), KILN_OK);
}
static void bytes(file *f, const void *p, size_t n)
{
    assert_int_equal(kiln_buffer_put(&f->b, p, n, NULL), KILN_OK);
}

static kiln_status read_it(file *f, import_source *s, kiln_error *err)
{
    const char *path = import_source_file("a.ply", f->b.data, f->b.size);
    kiln_status st = import_source_read(path, s, err);
    unlink(path);
    kiln_buffer_release(&f->b);
    return st;
}

static void must_read(file *f, import_source *s)
{
    kiln_error err = {0};
    if (read_it(f, s, &err) != KILN_OK) fail_msg("%s", err.msg);
}

static void must_refuse(file *f, const char *because)
{
    import_source s;
    kiln_error err = {0};
    assert_int_equal(read_it(f, &s, &err), KILN_E_INPUT);
    if (!strstr(err.msg, because)) fail_msg("'%s' does not say '%s'", err.msg, because);
    import_source_free(&s);
}

/* Value of column c in row i: a small integer, which every type holds and no rule drops. */
static int value_of(uint64_t i, int c) { return (int)((i * 7 + (unsigned)c * 3) % 80) + 1; }

static void put_typed(file *f, kiln_type t, int v, bool swap)
{
    unsigned char raw[8] = {0}, out[8];
    float f32 = (float)v;
    double f64 = v;
    int64_t i = v;
    size_t n = kiln_type_size(t);
    if (t == KILN_TYPE_F32)
        memcpy(raw, &f32, 4);
    else if (t == KILN_TYPE_F64)
        memcpy(raw, &f64, 8);
    else
        memcpy(raw, &i, n);
    for (size_t k = 0; k < n; k++) out[k] = raw[swap ? n - 1 - k : k];
    bytes(f, out, n);
}

static void splat_header(file *f, const char *format, uint64_t n, const char *type)
{
    text(f, "ply\nformat %s 1.0\nelement vertex %llu\n", format, (unsigned long long)n);
    for (int c = 0; c < MINIMAL; c++) text(f, "property %s %s\n", type, minimal[c]);
    text(f, "end_header\n");
}

/* Where column c of `minimal` lies in a row of import_source. */
static int place_of(int c) { return c < 3 ? c : c < 6 ? c + 8 : c == 6 ? 10 : c < 10 ? c : c - 7; }

static void check_values(const import_source *s, uint64_t n)
{
    assert_int_equal(s->n, n);
    for (uint64_t i = 0; i < n; i++)
        for (int c = 0; c < MINIMAL; c++)
            if (s->rows[i * s->floats + (unsigned)place_of(c)] !=
                (float)value_of(s->source_row[i], c))
                fail_msg("row %llu column %s", (unsigned long long)i, minimal[c]);
}

static void every_type_name_and_byte_order_reads_the_same(void **state)
{
    static const char *const names[] = {"char",   "int8",    "uchar",  "uint8",  "short", "int16",
                                        "ushort", "uint16",  "int",    "int32",  "uint",  "uint32",
                                        "float",  "float32", "double", "float64"};
    static const char *const formats[] = {"binary_little_endian", "binary_big_endian", "ascii"};
    (void)state;
    for (size_t t = 0; t < sizeof names / sizeof *names; t++)
        for (int k = 0; k < 3; k++) {
            file f = {{0}};
            import_source s;
            kiln_type type;
            assert_true(kiln_ply_type_find(names[t], &type));
            splat_header(&f, formats[k], 5, names[t]);
            for (uint64_t i = 0; i < 5; i++)
                for (int c = 0; c < MINIMAL; c++) {
                    if (k == 2)
                        text(&f, "%d%s", value_of(i, c), c + 1 < MINIMAL ? " " : "\n");
                    else
                        put_typed(&f, type, value_of(i, c), k == 1);
                }
            must_read(&f, &s);
            check_values(&s, 5);
            import_source_free(&s);
        }
}

/* Around the size of a block, where a border could lose or repeat a row. */
static void rows_at_the_borders_of_blocks_are_all_there(void **state)
{
    static const uint64_t sizes[] = {
        1, 2, KILN_BLOCK_ROWS - 1, KILN_BLOCK_ROWS, KILN_BLOCK_ROWS + 1, 2 * KILN_BLOCK_ROWS + 3};
    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (int ascii = 0; ascii < 2; ascii++) {
            file f = {{0}};
            import_source s;
            splat_header(&f, ascii ? "ascii" : "binary_little_endian", sizes[k], "uchar");
            for (uint64_t i = 0; i < sizes[k]; i++)
                for (int c = 0; c < MINIMAL; c++) {
                    if (ascii)
                        text(&f, "%d%c", value_of(i, c), c + 1 < MINIMAL ? ' ' : '\n');
                    else
                        put_typed(&f, KILN_TYPE_U8, value_of(i, c), false);
                }
            must_read(&f, &s);
            check_values(&s, sizes[k]);
            import_source_free(&s);
        }
}

/* What stays moves together: each column with its row, extras too. */
static void rows_that_stay_keep_their_own_values(void **state)
{
    enum { N = 200 };
    file f = {{0}};
    import_source s;
    uint64_t kept = 0;
    (void)state;
    splat_header(&f, "ascii", N, "float");
    f.b.size -= strlen("end_header\n");
    text(&f, "property ushort tag\nend_header\n");
    for (uint64_t i = 0; i < N; i++) {
        for (int c = 0; c < MINIMAL; c++) {
            if (i % 3 == 1 && c == (int)(i % MINIMAL))
                text(&f, "nan ");
            else
                text(&f, "%d ", value_of(i, c));
        }
        text(&f, "%d\n", (int)i);
    }
    must_read(&f, &s);
    check_values(&s, N - N / 3 - 1 + (N % 3 == 0));
    for (uint64_t i = 0; i < N; i++) {
        if (i % 3 == 1) continue;
        assert_int_equal(s.source_row[kept], i);
        assert_true(s.extras[kept++] == (double)i);
    }
    import_source_free(&s);
}

static void f_rest_goes_from_channel_major_to_coefficient_major(void **state)
{
    file f = {{0}};
    import_source s;
    (void)state;
    text(&f, "ply\nformat ascii 1.0\nelement vertex 1\n");
    for (int c = 0; c < MINIMAL; c++) text(&f, "property float %s\n", minimal[c]);
    for (int i = 23; i >= 0; i--) text(&f, "property float f_rest_%d\n", i); /* any order */
    text(&f, "end_header\n");
    for (int c = 0; c < MINIMAL; c++) text(&f, "1 ");
    for (int i = 23; i >= 0; i--) text(&f, "%d ", i);
    text(&f, "\n");
    must_read(&f, &s);
    assert_int_equal(s.scan.info.sh_degree, 2);
    for (int k = 0; k < 8; k++)
        for (int c = 0; c < 3; c++)
            assert_float_equal(s.rows[14 + k * 3 + c], (float)(c * 8 + k), 0);
    import_source_free(&s);
}

static void unknown_columns_are_kept_with_their_type(void **state)
{
    file f = {{0}};
    import_source s;
    float one = 1;
    double label = 0.1;
    (void)state;
    text(&f, "ply\nformat binary_little_endian 1.0\nelement vertex 1\nproperty double "
             "confidence\nproperty float x\nproperty float y\n"
             "property float z\nproperty uchar tag\nend_header\n");
    bytes(&f, &label, 8);
    for (int i = 0; i < 3; i++) bytes(&f, &one, 4);
    bytes(&f, "\x07", 1);
    must_read(&f, &s);
    assert_int_equal(s.scan.info.kind, KILN_SCENE_POINTS);
    assert_false(s.scan.info.has_rgb);
    assert_int_equal(s.scan.info.n_extras, 2);
    assert_string_equal(s.scan.info.extras[0].name, "confidence");
    assert_int_equal(s.scan.info.extras[0].type, KILN_TYPE_F64);
    assert_true(s.extras[0] == 0.1 && s.extras[1] == 7);
    import_source_free(&s);
}

/* A scan that a plan has stored may be a stranger's: each of these is what a hostile manifest can
 * hold. */
static void a_stored_scan_is_checked(void **state)
{
    static const struct {
        size_t at;
        unsigned char byte;
        size_t n;
    } cases[] = {
        {offsetof(kiln_scan, info.kind), 9, 1},
        {offsetof(kiln_scan, info.n_rows), 2, 1}, /* still one block */
        {offsetof(kiln_scan, info.n_rows), 0xff, 8},
        {offsetof(kiln_scan, info.sh_degree), 5, 1},
        {offsetof(kiln_scan, info.wide), 2, 1},
        {offsetof(kiln_scan, info.writer), 'x', sizeof(((kiln_scan *)0)->info.writer)},
        {offsetof(kiln_scan, info.layout), 'x', sizeof(((kiln_scan *)0)->info.layout)},
        {offsetof(kiln_scan, info.notes), 'x', sizeof(((kiln_scan *)0)->info.notes)},
        {offsetof(kiln_scan, info.n_extras), 0xff, 4},
        {offsetof(kiln_scan, info.extras[1].name), 'x',
         sizeof(((kiln_scan *)0)->info.extras[1].name)},
        {offsetof(kiln_scan, info.extras[1].type), 8, 1},
        {offsetof(kiln_scan, info.extras[1].axis), 3, 1},
        {offsetof(kiln_scan, info.extras[1].raw), 7, 1},
        {offsetof(kiln_scan, origin), 0xff, 8},
        {offsetof(kiln_scan, keep) + KILN_EXTRAS_MAX - 1, 2, 1},
        {offsetof(kiln_scan, n_blocks), 3, 1},
    };
    file f = {{0}};
    import_source s;
    const float one[3] = {1, 1, 1};
    kiln_error err = {0};
    (void)state;
    text(&f, "ply\nformat binary_little_endian 1.0\nelement vertex 1\nproperty float x\nproperty "
             "float y\nproperty float z\n"
             "property uchar tag\nproperty uchar other\nend_header\n");
    bytes(&f, one, sizeof one);
    bytes(&f, "\x07\x08", 2);
    must_read(&f, &s);
    assert_int_equal(kiln_scan_check(&s.scan, 1, &err), KILN_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const kiln_scan was = s.scan;
        memset((unsigned char *)&s.scan + cases[i].at, cases[i].byte, cases[i].n);
        const kiln_status st = kiln_scan_check(&s.scan, 1, &err);
        if (st != (i == 1 ? KILN_OK : KILN_E_IO)) fail_msg("case %zu: %d", i, (int)st);
        memcpy(&s.scan, &was, sizeof was);
    }
    import_source_free(&s);
}

static void comments_say_axis_and_mode_in_any_case_and_the_last_one_wins(void **state)
{
    static const struct {
        const char *comments, *axis;
        bool antialiased;
    } cases[] = {
        {"comment Vertical Axis: z\n", "z", false},
        {"comment VERTICAL AXIS: -Y\n", "-y", false},
        {"comment vertical axis: 0 0.5 1\n", "0 0.5 1", false},
        {"comment vertical axis: 0 0 0\n", "", false},
        {"comment vertical axis: sideways\n", "", false},
        {"comment vertical axis: x\ncomment Vertical Axis: y\n", "-y", false},
        {"comment vertical axis: +y\n", "y", false},
        {"comment splatrendermode: MIP\n", "", true},
        {"comment SplatRenderMode: mip\ncomment SplatRenderMode: default\n", "", false},
        {"comment antialiased 1\n", "", true},
        {"comment antialiased 1\ncomment antialiased 0\n", "", false},
        {"comment element vertex 7\ncomment end_header\nobj_info vertical axis: y\n", "", false},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        file f = {{0}};
        import_source s;
        text(&f,
             "ply\nformat ascii 1.0\n%selement vertex 1\nproperty float x\nproperty float "
             "y\nproperty float z\nend_header\n1 2 3\n",
             cases[k].comments);
        must_read(&f, &s);
        assert_string_equal(s.scan.info.up_axis, cases[k].axis);
        assert_int_equal(s.scan.info.antialiased, cases[k].antialiased);
        import_source_free(&s);
    }
}

static void nerfstudio_colours_become_coefficients(void **state)
{
    file f = {{0}};
    import_source s;
    (void)state;
    text(&f, "ply\nformat ascii 1.0\nelement vertex 1\n");
    for (int c = 0; c < MINIMAL; c++)
        if (c < 3 || c > 5) text(&f, "property float %s\n", minimal[c]);
    text(&f, "property uint8 red\nproperty uint8 green\nproperty uint8 blue\nend_header\n");
    for (int c = 0; c < MINIMAL - 3; c++) text(&f, "1 ");
    text(&f, "0 128 255\n");
    must_read(&f, &s);
    assert_int_equal(s.scan.info.kind, KILN_SCENE_SPLATS);
    assert_true(s.scan.info.rgb_u8);
    const double codes[] = {0, 128, 255};
    for (int c = 0; c < 3; c++)
        assert_true(fabs((double)s.rows[11 + c] - (codes[c] / 255 - 0.5) / 0.28209479177387814) <
                    1e-6);
    assert_true(s.extras[1] == 128); /* kept, so that export writes the same bytes */
    import_source_free(&s);
}

static void point_colours_are_decided_by_type_not_by_value(void **state)
{
    static const struct {
        const char *type, *names[3];
        int code;
        float want;
    } cases[] = {
        {"uchar", {"red", "green", "blue"}, 1, 1 / 255.0f},
        {"float", {"r", "g", "b"}, 1, 1.0f},
        {"ushort", {"diffuse_red", "diffuse_green", "diffuse_blue"}, 1, 1 / 65535.0f},
        {"double", {"scalar_red", "scalar_green", "scalar_blue"}, 1, 1.0f},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        file f = {{0}};
        import_source s;
        text(&f, "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float "
                 "y\nproperty float z\n");
        for (int c = 0; c < 3; c++) text(&f, "property %s %s\n", cases[k].type, cases[k].names[c]);
        text(&f, "end_header\n0 0 0 %d %d %d\n", cases[k].code, cases[k].code, cases[k].code);
        must_read(&f, &s);
        assert_true(s.scan.info.has_rgb);
        for (int c = 0; c < 3; c++) assert_true(s.rows[3 + c] == cases[k].want);
        import_source_free(&s);
    }
}

static void cloud_compare_prefixes_are_read(void **state)
{
    file f = {{0}};
    import_source s;
    (void)state;
    text(&f, "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float "
             "y\nproperty float z\nproperty uchar "
             "red\nproperty uchar green\nproperty uchar blue\n");
    for (int c = 3; c < MINIMAL; c++) text(&f, "property float scalar_%s\n", minimal[c]);
    text(&f, "end_header\n1 1 1 9 9 9 ");
    for (int c = 3; c < MINIMAL; c++) text(&f, "%d ", c);
    text(&f, "\n");
    must_read(&f, &s);
    assert_int_equal(s.scan.info.kind, KILN_SCENE_SPLATS);
    assert_true(s.rows[11] == 3 && s.rows[10] == 6); /* f_dc_0 and not red; opacity */
    assert_int_equal(s.scan.info.n_extras, 3);
    import_source_free(&s);
}

static void doubles_are_kept_where_float32_would_lose_bits(void **state)
{
    for (int lossy = 0; lossy < 2; lossy++) {
        file f = {{0}};
        import_source s;
        const double v[2][6] = {{1, 2, 3, -1, -2, -3}, {0.1, 2, 3, -1, -2, -3}};
        (void)state;
        text(&f, "ply\nformat binary_little_endian 1.0\nelement vertex 2\nproperty double "
                 "x\nproperty double y\nproperty double "
                 "z\nend_header\n");
        bytes(&f, v[lossy], sizeof v[lossy]);
        must_read(&f, &s);
        assert_true(s.scan.info.wide);
        assert_int_equal(s.scan.info.n_extras, 3);
        assert_int_equal(s.scan.keep[0], lossy);
        assert_int_equal(s.scan.keep[1], 0);
        assert_true(s.extras[0] == v[lossy][0]);
        import_source_free(&s);
    }
}

static void elements_around_vertex_are_stepped_over(void **state)
{
    static const char *const formats[] = {"binary_little_endian", "ascii"};
    (void)state;
    for (int k = 0; k < 2; k++) {
        file f = {{0}};
        import_source s;
        text(&f,
             "ply\nformat %s 1.0\nelement camera 2\nproperty double f\nproperty ushort w\nelement "
             "nothing 3\nelement vertex 1\n",
             formats[k]);
        text(&f, "property uchar x\nproperty uchar y\nproperty uchar z\nelement face 1\nproperty "
                 "list uchar int i\nend_header\n");
        if (k)
            text(&f, "5 6\n7 8\n1 2 3\n3 0 0 0\n");
        else {
            for (int i = 0; i < 2; i++) bytes(&f, "0123456789", 10);
            bytes(&f, "\1\2\3\1\0\0\0\0", 8);
        }
        must_read(&f, &s);
        assert_true(s.n == 1 && s.rows[0] == 1 && s.rows[2] == 3);
        import_source_free(&s);
    }
}

static void a_header_is_at_most_a_mebibyte(void **state)
{
    (void)state;
    for (int over = 0; over < 2; over++) {
        file f = {{0}};
        import_source s;
        kiln_error err = {0};
        size_t want = KILN_PLY_HEADER_MAX - 120 + (over ? 240 : 0);
        text(&f, "ply\nformat ascii 1.0\n");
        while (f.b.size < want) text(&f, "comment padding padding padding padding\n");
        text(&f, "element vertex 1\nproperty uchar x\nproperty uchar y\nproperty uchar "
                 "z\nend_header\n1 2 3\n");
        assert_int_equal(read_it(&f, &s, &err), over ? KILN_E_INPUT : KILN_OK);
        import_source_free(&s);
    }
}

static void what_cannot_be_read_is_refused_with_its_reason(void **state)
{
    static const struct {
        const char *body, *because;
    } cases[] = {
        {"format ascii 1.0\nformat ascii 1.0\n", "second format line"},
        {"format ascii 1.0\nelement vertex 1\nproperty half x\n", "type 'half' is unknown"},
        {"format ascii 1.0\nelement vertex +1\n", "plain decimal"},
        {"format ascii 1.0\nelement vertex 0x10\n", "plain decimal"},
        {"format ascii 1.0\nelement vertex 1 2\n", "element line"},
        {"format ascii 1.0\nelement vertex 1\nproperty list uchar int x\n", "cannot hold a list"},
        {"format ascii 1.0\nelement codebook_centers 1\nproperty float a\nelement vertex "
         "1\nproperty float x\nend_header\n1\n1\n",
         "codebooks"},
        {"format ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float "
         "z\nend_header\n0x1p3 0 0\n",
         "not a number"},
        {"format ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float "
         "z\nend_header\n1e99 0 0\n",
         "does not fit"},
        {"format ascii 1.0\nelement vertex 1\nproperty uchar x\nproperty float y\nproperty float "
         "z\nend_header\n256 0 0\n",
         "does not fit"},
        {"format ascii 1.0\nelement vertex 1\nproperty uchar x\nproperty float y\nproperty float "
         "z\nend_header\n1.5 0 0\n",
         "not a number"},
        {"format binary_little_endian 1.0\nelement a 18446744073709551615\nproperty double "
         "q\nelement vertex 1\nproperty uchar "
         "x\nend_header\n",
         "overflow"},
        {"format ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty float "
         "z\nend_header\nnan 0 0\n",
         "no usable row"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        file f = {{0}};
        text(&f, "ply\n%s", cases[k].body);
        must_refuse(&f, cases[k].because);
    }
}

/* mip-splatting's save_fused_ply in long double */
static void filter_3d_is_folded_in(void **state)
{
    static const float filters[] = {0, 1e-6f, 0.01f, 1, 1000};
    static const float scales[] = {-80, -20, -5, 0, 5, 60}, logits[] = {-12, -1, 0, 3, 12};
    (void)state;
    for (size_t a = 0; a < 5; a++)
        for (size_t b = 0; b < 6; b++)
            for (size_t c = 0; c < 5; c++) {
                float f = filters[a], s[3] = {scales[b], scales[(b + 1) % 6], scales[(b + 2) % 6]},
                      o = logits[c], was[3], was_o = o;
                long double coef = 1;
                memcpy(was, s, sizeof s);
                kiln_mip_filter_fold(1, &f, s, &o);
                for (int i = 0; i < 3; i++) {
                    long double s2 = expl(2 * (long double)was[i]),
                                t2 = s2 + (long double)f * (long double)f;
                    coef *= s2 / t2;
                    assert_true(fabsl((long double)s[i] - 0.5L * logl(t2)) < 1e-5L);
                }
                if (f == 0) assert_true(memcmp(s, was, sizeof s) == 0 && o == was_o);
                /* the logit is a float32: near -200 its last bit is 1.5e-5 */
                long double alpha = sqrtl(coef) / (1 + expl(-(long double)was_o)),
                            folded = 1 / (1 + expl(-(long double)o));
                assert_true(fabsl(folded - alpha) <= 2e-5L * alpha);
            }
}

static void own_exp_and_log_are_accurate(void **state)
{
    (void)state;
    for (int i = -7450; i <= 7097; i++) {
        double x = i * 0.1, want = (double)expl((long double)x);
        if (want > 1e-300) assert_true(fabs(kiln_exp_f64(x) - want) <= 4e-16 * want);
    }
    for (int i = -1000; i <= 1000; i++) {
        double x = ldexp(1 + (i & 15) / 16.0, i), want = (double)logl((long double)x);
        assert_true(fabs(kiln_log_f64(x) - want) <= 5e-16 * fabs(want));
    }
    assert_true(kiln_exp_f64(-HUGE_VAL) == 0 && kiln_exp_f64(HUGE_VAL) == HUGE_VAL &&
                kiln_log_f64(0) == -HUGE_VAL);
    assert_true(isnan(kiln_exp_f64(NAN)) && isnan(kiln_log_f64(-1)) &&
                kiln_log_f64(HUGE_VAL) == HUGE_VAL);
}

static void lines_end_with_lf_or_crlf_or_the_file(void **state)
{
    static const char content[] = "one\r\n\ntwo\rx\nlast";
    static const char *const want[] = {"one", "", "two\rx", "last"};
    const char *path = import_source_file("lines", content, sizeof content - 1), *line;
    FILE *f = fopen(path, "rb");
    kiln_lines l;
    kiln_error err = {0};
    size_t n;
    (void)state;
    assert_non_null(f);
    assert_int_equal(kiln_lines_init(&l, fileno(f), path, &err), KILN_OK);
    for (int pass = 0; pass < 2; pass++) {
        kiln_lines_seek(&l, 0);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(kiln_lines_next(&l, &line, &n, &err), KILN_OK);
            assert_int_equal(n, strlen(want[i]));
            assert_memory_equal(line, want[i], n);
        }
        assert_int_equal(kiln_lines_next(&l, &line, &n, &err), KILN_OK);
        assert_null(line);
    }
    kiln_lines_seek(&l, 5);
    assert_int_equal(kiln_lines_offset(&l), 5);
    assert_int_equal(kiln_lines_next(&l, &line, &n, &err), KILN_OK);
    assert_int_equal(n, 0);
    kiln_lines_release(&l);
    fclose(f);
    unlink(path);
}

/* Values that no integer column holds: each has a defined place, with the sanitizers too. */
static void integer_columns_take_any_value(void **state)
{
    (void)state;
    static const float values[] = {NAN, -INFINITY, INFINITY, -1e30f, 1e30f, 300.4f, -200.6f, 1.4f};
    enum { N = sizeof values / sizeof *values };
    static const struct {
        kiln_type type;
        int64_t want[N];
    } rows[] = {
        {KILN_TYPE_U8, {0, 0, 255, 0, 255, 255, 0, 1}},
        {KILN_TYPE_I8, {0, -128, 127, -128, 127, 127, -128, 1}},
        {KILN_TYPE_U16, {0, 0, 65535, 0, 65535, 300, 0, 1}},
        {KILN_TYPE_I32, {0, INT32_MIN, INT32_MAX, INT32_MIN, INT32_MAX, 300, -201, 1}},
    };
    static float data[N];
    const kiln_export_rows planes = {.n = N, .opacity_logits = data};
    memcpy(data, values, sizeof data);
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const uint32_t size = (uint32_t)kiln_type_size(rows[r].type);
        kiln_ply_column column = {
            .type = rows[r].type, .plane = "opacity_logits", .role = KILN_ROLE_OPACITY};
        const kiln_ply_table table = {.row_bytes = size, .n_columns = 1, .columns = &column};
        unsigned char got[N * 8];
        assert_int_equal(kiln_ply_encode(&table, &planes, 0, N, got, NULL), KILN_OK);
        for (int i = 0; i < N; i++)
            if (memcmp(got + (size_t)i * size, &rows[r].want[i], size) != 0)
                fail_msg("type %d, value %d", (int)rows[r].type, i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_name_and_byte_order_reads_the_same),
        cmocka_unit_test(rows_at_the_borders_of_blocks_are_all_there),
        cmocka_unit_test(rows_that_stay_keep_their_own_values),
        cmocka_unit_test(f_rest_goes_from_channel_major_to_coefficient_major),
        cmocka_unit_test(unknown_columns_are_kept_with_their_type),
        cmocka_unit_test(a_stored_scan_is_checked),
        cmocka_unit_test(comments_say_axis_and_mode_in_any_case_and_the_last_one_wins),
        cmocka_unit_test(nerfstudio_colours_become_coefficients),
        cmocka_unit_test(point_colours_are_decided_by_type_not_by_value),
        cmocka_unit_test(cloud_compare_prefixes_are_read),
        cmocka_unit_test(doubles_are_kept_where_float32_would_lose_bits),
        cmocka_unit_test(elements_around_vertex_are_stepped_over),
        cmocka_unit_test(a_header_is_at_most_a_mebibyte),
        cmocka_unit_test(what_cannot_be_read_is_refused_with_its_reason),
        cmocka_unit_test(filter_3d_is_folded_in),
        cmocka_unit_test(own_exp_and_log_are_accurate),
        cmocka_unit_test(integer_columns_take_any_value),
        cmocka_unit_test(lines_end_with_lf_or_crlf_or_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
