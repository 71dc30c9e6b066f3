/* Readers of rows that are packed in place (.splat, .ksplat, compressed PLY): what their samples do
 * not show. Rows come out the same from whichever row on they are read, in any order, whatever was
 * read before. */
#include "import_source.h"

#include "kernels/math/half_math.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include <cmocka.h>

static const kiln_read_options as_is = {.frame = KILN_FRAME_AS_IS};

/* ---- bytes of a file that is made here ------------------------------------------------------- */

static void put(kiln_buffer *b, const void *data, size_t n)
{
    assert_int_equal(kiln_buffer_put(b, data, n, NULL), KILN_OK);
}
static void put_u32(kiln_buffer *b, uint32_t v) { put(b, &v, sizeof v); }
static void put_f32(kiln_buffer *b, float v) { put(b, &v, sizeof v); }
static void put_u16(kiln_buffer *b, uint16_t v) { put(b, &v, sizeof v); }
static void put_text(kiln_buffer *b, const char *text) { put(b, text, strlen(text)); }

static uint32_t random_bits(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* ---- reading ranges -------------------------------------------------------------------------- */

typedef struct {
    const kiln_reader *reader;
    kiln_source *source;
    kiln_source_info info;
    kiln_rows rows;
} opened;

static void open_file(const char *path, const char *reader, opened *o)
{
    kiln_error err = {0};
    const kiln_source_at at = {.path = path, .name = path, .options = &as_is};
    memset(o, 0, sizeof *o);
    if (kiln_source_look(path, &as_is, &o->reader, &o->info, &err) != KILN_OK)
        fail_msg("%s", err.msg);
    assert_string_equal(o->reader->name, reader);
    memset(&o->info, 0, sizeof o->info);
    assert_int_equal(o->reader->open(&at, &o->source, &o->info, &err), KILN_OK);
    assert_int_equal(kiln_rows_alloc(&o->rows, &o->info, &err), KILN_OK);
}

static void close_file(opened *o)
{
    o->reader->close(o->source);
    kiln_rows_release(&o->rows);
}

static uint32_t floats_of(const opened *o)
{
    return 11 + 3 * (o->info.sh_degree + 1) * (o->info.sh_degree + 1);
}

/* Rows [first, first + n), interleaved: xyz, quaternion, log scales, logit, SH. */
static void read_range(opened *o, uint64_t first, uint64_t n, float *out)
{
    const uint32_t k3 = 3 * ((o->info.sh_degree + 1) * (o->info.sh_degree + 1) - 1);
    const kiln_rows *r = &o->rows;
    kiln_error err = {0};
    uint64_t next;
    if (o->reader->read(o->source, first, n, UINT64_MAX, &o->rows, &next, &err) != KILN_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(r->n, n);
    for (uint64_t i = 0; i < n; i++) {
        for (uint32_t a = 0; a < 3; a++) *out++ = (float)r->means[a * n + i];
        for (uint32_t a = 0; a < 4; a++) *out++ = r->quats[a * n + i];
        for (uint32_t a = 0; a < 3; a++) *out++ = r->log_scales[a * n + i];
        *out++ = r->opacity_logits[i];
        for (uint32_t a = 0; a < 3; a++) *out++ = r->sh0[a * n + i];
        for (uint32_t a = 0; a < k3; a++) *out++ = r->shN[a * n + i];
    }
}

static void read_all(opened *o, float *out)
{
    for (uint64_t at = 0; at < o->info.n_rows; at += KILN_BLOCK_ROWS) {
        const uint64_t left = o->info.n_rows - at;
        read_range(o, at, left < KILN_BLOCK_ROWS ? left : KILN_BLOCK_ROWS, out + at * floats_of(o));
    }
}

/* The caller frees: all rows, which `tries` ranges anywhere give again, bit by bit. */
static float *rows_from_anywhere(const char *path, const char *reader, opened *o, unsigned tries,
                                 uint64_t longest)
{
    uint32_t state = 7;
    open_file(path, reader, o);
    const uint64_t n_rows = o->info.n_rows;
    const size_t row = floats_of(o) * sizeof(float);
    float *all = malloc(n_rows * row), *some = malloc(longest * row);
    assert_true(all && some && n_rows >= longest);
    read_all(o, all);
    for (unsigned t = 0; t < tries; t++) {
        const uint64_t n = 1 + random_bits(&state) % longest,
                       first = random_bits(&state) % (n_rows - n + 1);
        read_range(o, first, n, some);
        if (memcmp(some, all + first * floats_of(o), n * row) != 0)
            fail_msg("%s: rows %llu to %llu read alone differ", path, (unsigned long long)first,
                     (unsigned long long)(first + n));
    }
    free(some);
    return all;
}

static void refused(const char *path, const char *sentence)
{
    import_source s;
    kiln_error err = {0};
    assert_int_equal(import_source_read(path, &s, &err), KILN_E_INPUT);
    if (!strstr(err.msg, sentence)) fail_msg("'%s' does not say '%s'", err.msg, sentence);
    import_source_free(&s);
}

/* ---- .splat ---------------------------------------------------------------------------------- */

static void put_splat_rows(kiln_buffer *b, uint32_t n)
{
    uint32_t state = 1;
    for (uint32_t i = 0; i < n; i++) {
        for (int c = 0; c < 3; c++) put_f32(b, (float)i + (float)c / 4);
        for (int c = 0; c < 3; c++) put_f32(b, 0.5f + (float)c);
        for (int c = 0; c < 8; c++)
            put(b, &(unsigned char){(unsigned char)(random_bits(&state) | 1)}, 1);
    }
}

static void a_splat_file_goes_by_its_suffix(void **state)
{
    kiln_buffer b = {0};
    opened o;
    (void)state;
    put_splat_rows(&b, 9000); /* more than two pieces */
    float *rows =
        rows_from_anywhere(import_source_file("a.SPLAT", b.data, b.size), "splat", &o, 50, 9000);
    for (uint32_t i = 0; i < 9000; i++) {
        const unsigned char *codes = b.data + i * 32 + 24;
        const float *row = rows + i * 14;
        assert_true(row[0] == (float)i && row[2] == (float)i + 0.5f);
        for (int c = 0; c < 4; c++) assert_true(row[3 + c] == ((float)codes[4 + c] - 128) / 128);
        assert_true(row[8] == (float)log(1.5));
        assert_true(codes[3] == 255 ? row[10] == HUGE_VALF
                                    : fabs(255 / (1 + exp(-(double)row[10])) - codes[3]) < 1e-4);
    }
    free(rows);
    close_file(&o);
    refused(import_source_file("a.bin", b.data, b.size), "no splat or point file that we know");
    refused(import_source_file("cut.splat", b.data, b.size - 1), "not a multiple of the 32");
    kiln_buffer_release(&b);
}

static void other_content_under_the_name_splat_is_not_read_as_rows(void **state)
{
    static const char ply[] =
        "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty float y\nproperty "
        "float z\n"
        "end_header\n1 2 3\n                                                                     ";
    (void)state;
    refused(import_source_file("ply.splat", ply, 160), "begins with \"ply\"");
    refused(import_source_file("plain.splat", "plyx", 4), "not a multiple of the 32");
}

static void a_packed_splat_file_has_two_suffixes(void **state)
{
    kiln_buffer b = {0};
    import_source s;
    kiln_error err = {0};
    (void)state;
    put_splat_rows(&b, 3);
    for (int plain = 0; plain < 2; plain++) {
        unsigned char packed[256];
        z_stream z = {.next_in = b.data,
                      .avail_in = (uInt)b.size,
                      .next_out = packed,
                      .avail_out = sizeof packed};
        assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
        const char *path =
            import_source_file(plain ? "p.splat" : "p.splat.gz", packed, z.total_out);
        assert_int_equal(deflateEnd(&z), Z_OK);
        if (plain) {
            refused(path, "gzip data with the name");
        } else if (import_source_read(path, &s, &err) != KILN_OK) {
            fail_msg("%s", err.msg);
        } else {
            assert_int_equal(s.n, 3);
            import_source_free(&s);
        }
    }
    kiln_buffer_release(&b);
}

/* ---- .ksplat --------------------------------------------------------------------------------- */

typedef struct {
    uint32_t capacity, bucket_rows, n_full, n_partial, degree;
    const uint32_t *lengths;
} section;

enum { RANGE = 1000 };
#define BLOCK 2.0f

static uint32_t rows_of(const section *s)
{
    uint32_t n = s->n_full * s->bucket_rows;
    for (uint32_t i = 0; i < s->n_partial; i++) n += s->lengths[i];
    return n;
}

static uint32_t row_bytes_of(const section *s) { return 24 + (s->degree ? 18 : 0); }

static void put_ksplat_headers(kiln_buffer *b, const section *sections, uint32_t n_sections)
{
    static const unsigned char zeros[4096];
    uint32_t n_rows = 0;
    for (uint32_t i = 0; i < n_sections; i++) n_rows += rows_of(&sections[i]);
    put(b, (const unsigned char[]){0, 1, 0, 0}, 4);
    for (int i = 0; i < 2; i++) put_u32(b, n_sections);
    for (int i = 0; i < 2; i++) put_u32(b, n_rows);
    put_u16(b, 1); /* level */
    put(b, zeros, 4096 - 22);
    for (uint32_t i = 0; i < n_sections; i++) {
        const section *s = &sections[i];
        const uint32_t fields[] = {rows_of(s), s->capacity, s->bucket_rows,
                                   s->n_full + s->n_partial};
        put(b, fields, sizeof fields);
        put_f32(b, BLOCK);
        put_u32(b, 12);
        put_u32(b, RANGE);
        put_u32(b, 0);
        put_u32(b, s->n_full);
        put_u32(b, s->n_partial);
        put_u32(b, s->degree);
        put(b, zeros, 1024 - 44);
    }
}

/* Of bucket k of section i the centre is (k, -k, 1000 i); row r has the codes r % 2001, 1000,
 * 2000. */
static void put_ksplat_section(kiln_buffer *b, const section *s, uint32_t number)
{
    static const unsigned char zeros[64];
    const uint32_t n_rows = rows_of(s);
    put(b, s->lengths, 4 * (size_t)s->n_partial);
    for (uint32_t k = 0; k < s->n_full + s->n_partial; k++) {
        put_f32(b, (float)k);
        put_f32(b, -(float)k);
        put_f32(b, 1000.0f * (float)number);
    }
    for (uint32_t r = 0; r < n_rows; r++) {
        put_u16(b, (uint16_t)(r % (2 * RANGE + 1)));
        put_u16(b, RANGE);
        put_u16(b, 2 * RANGE);
        for (int c = 0; c < 3; c++) put_u16(b, kiln_half_of(0.25f));
        for (int c = 0; c < 4; c++) put_u16(b, kiln_half_of(c ? 0.0f : 1.0f));
        put(b, (const unsigned char[]){255, 0, 128, 128}, 4);
        for (uint32_t v = 0; v < (s->degree ? 9u : 0u); v++) put_u16(b, kiln_half_of((float)v));
    }
    for (uint32_t r = n_rows; r < s->capacity; r++) put(b, zeros, row_bytes_of(s));
}

static const char *ksplat_file(const char *name, const section *sections, uint32_t n)
{
    kiln_buffer b = {0};
    put_ksplat_headers(&b, sections, n);
    for (uint32_t i = 0; i < n; i++) put_ksplat_section(&b, &sections[i], i);
    const char *path = import_source_file(name, b.data, b.size);
    kiln_buffer_release(&b);
    return path;
}

/* Every row by the definition: its bucket found by counting. */
static void check_ksplat_rows(const section *sections, uint32_t n_sections, const float *rows,
                              uint32_t floats)
{
    for (uint32_t i = 0; i < n_sections; i++) {
        const section *s = &sections[i];
        uint32_t r = 0;
        for (uint32_t k = 0; k < s->n_full + s->n_partial; k++) {
            const uint32_t n = k < s->n_full ? s->bucket_rows : s->lengths[k - s->n_full];
            for (uint32_t j = 0; j < n; j++, r++, rows += floats) {
                const double u = (double)(r % (2 * RANGE + 1));
                assert_true(rows[0] == (float)((u - RANGE) * (1.0 / RANGE) + k));
                assert_true(rows[1] == -(float)k && rows[2] == 1000.0f * (float)i + 1);
                assert_true(rows[7] == (float)log(0.25));
                /* channel-major in the file, coefficient-major in rows */
                for (uint32_t v = 14; v < floats; v++)
                    assert_true(rows[v] ==
                                (s->degree ? (float)((v - 14) % 3 * 3 + (v - 14) / 3) : 0));
            }
        }
    }
}

static void rows_of_a_ksplat_find_their_bucket(void **state)
{
    static const uint32_t some[] = {1, 0, 3, 2}, others[] = {0, 5, 1, 0};
    const section sections[] = {
        {.capacity = 20, .bucket_rows = 4, .n_full = 3, .n_partial = 4, .lengths = some},
        {.capacity = 0, .bucket_rows = 4},
        {.capacity = 6, .bucket_rows = 9, .n_partial = 4, .degree = 1, .lengths = others},
        {.capacity = 10, .bucket_rows = 5, .n_full = 2},
    };
    opened o;
    (void)state;
    float *rows =
        rows_from_anywhere(ksplat_file("four.ksplat", sections, 4), "ksplat", &o, 500, 34);
    assert_int_equal(o.info.n_rows, 34);
    assert_int_equal(o.info.sh_degree, 1);
    check_ksplat_rows(sections, 4, rows, floats_of(&o));
    free(rows);
    close_file(&o);
}

/* More partial buckets than the index has places, so that lengths are walked between them, and more
 * rows than a block. */
static void an_index_of_buckets_has_gaps(void **state)
{
    enum { BUCKETS = 150000 };
    static uint32_t lengths[2][BUCKETS];
    section sections[2] = {{.bucket_rows = 3, .n_full = 2000}, {.bucket_rows = 1, .n_full = 1}};
    opened o;
    uint32_t random = 3;
    (void)state;
    for (int i = 0; i < 2; i++) {
        for (uint32_t k = 0; k < BUCKETS; k++)
            lengths[i][k] = k > 40000 && k < 90000 ? 0 : random_bits(&random) % 3;
        sections[i].n_partial = BUCKETS;
        sections[i].lengths = lengths[i];
        sections[i].capacity = rows_of(&sections[i]);
    }
    float *rows = rows_from_anywhere(ksplat_file("many.ksplat", sections, 2), "ksplat", &o, 60,
                                     KILN_BLOCK_ROWS);
    assert_true(o.info.n_rows > 3 * KILN_BLOCK_ROWS);
    check_ksplat_rows(sections, 2, rows, floats_of(&o));
    free(rows);
    close_file(&o);
}

static void a_ksplat_is_known_by_its_content_too(void **state)
{
    const section one = {.capacity = 12, .bucket_rows = 4, .n_full = 3};
    static const char *const names[] = {"b.splat", "b.bin", "b.KSPLAT"};
    opened o;
    (void)state;
    for (int i = 0; i < 3; i++) {
        open_file(ksplat_file(names[i], &one, 1), "ksplat", &o);
        assert_int_equal(o.info.n_rows, 12);
        close_file(&o);
    }
    refused(import_source_file("c.ksplat", "nothing of it", 13), "13 bytes are less than");
}

/* Halves are what IEEE says, infinities too, and rows with them are dropped. */
static void halves_of_a_ksplat_are_all_halves(void **state)
{
    const section one = {.capacity = 4, .bucket_rows = 4, .n_full = 1};
    /* infinity, the negative and positive least, zero */
    static const uint16_t scales[] = {0x7c00, 0x8001, 0x0000, 0x0001};
    kiln_buffer b = {0};
    import_source s;
    (void)state;
    put_ksplat_headers(&b, &one, 1);
    put_ksplat_section(&b, &one, 0);
    for (int i = 0; i < 4; i++) memcpy(b.data + 4096 + 1024 + 12 + 24 * i + 6, &scales[i], 2);
    assert_int_equal(import_source_read(import_source_file("h.ksplat", b.data, b.size), &s, NULL),
                     KILN_OK);
    assert_int_equal(s.n, 2);
    assert_int_equal(s.counts.dropped[KILN_DROP_SCALE], 2);
    assert_int_equal(s.counts.clamped[KILN_CLAMP_SCALE_LOW], 1);
    assert_true(s.source_row[0] == 2 && s.rows[7] == -87 &&
                s.rows[s.floats + 7] == (float)(-24 * log(2)));
    import_source_free(&s);
    kiln_buffer_release(&b);
}

/* ---- compressed PLY -------------------------------------------------------------------------- */

enum { PACKED_ROWS = 10000 }; /* 39 chunks and 16 rows; more than two pieces */

static void put_chunks(kiln_buffer *b, uint32_t *random)
{
    for (uint32_t k = 0; k < (PACKED_ROWS + 255) / 256; k++)
        for (int i = 0; i < 18; i++)
            put_f32(b, (float)k + (i / 3 % 2 ? 2.0f : -2.0f) +
                           (float)(random_bits(random) % 100) / 100);
}

static void put_packed(kiln_buffer *b, uint32_t *random)
{
    for (uint32_t i = 0; i < 4 * PACKED_ROWS; i++)
        put_u32(b, random_bits(random) << 16 ^ random_bits(random));
}

static void put_codes(kiln_buffer *b, uint32_t *random)
{
    for (uint32_t i = 0; i < 9 * PACKED_ROWS; i++)
        put(b, &(unsigned char){(unsigned char)random_bits(random)}, 1);
}

static void put_properties(kiln_buffer *b, const char *element, const char *type,
                           const char *const *names, int n)
{
    put_text(b, element);
    for (int i = 0; i < n; i++) {
        char line[64];
        snprintf(line, sizeof line, "property %s %s\n", type, names[i]);
        put_text(b, line);
    }
}

static const char *const bounds[] = {
    "min_x",       "min_y",       "min_z",       "max_x",       "max_y",       "max_z",
    "min_scale_x", "min_scale_y", "min_scale_z", "max_scale_x", "max_scale_y", "max_scale_z",
    "min_r",       "min_g",       "min_b",       "max_r",       "max_g",       "max_b"};
static const char *const fields[] = {"packed_position", "packed_rotation", "packed_scale",
                                     "packed_color"};
static const char *const rest[] = {"f_rest_0", "f_rest_1", "f_rest_2", "f_rest_3", "f_rest_4",
                                   "f_rest_5", "f_rest_6", "f_rest_7", "f_rest_8"};

/* As PlayCanvas writes it; `odd`: another order of elements, one more between them, and comments in
 * front that fill 3 KiB. */
static const char *compressed_file(const char *name, bool odd)
{
    kiln_buffer b = {0};
    uint32_t seeds[3] = {11, 12, 13};
    put_text(&b, "ply\nformat binary_little_endian 1.0\n");
    for (int i = 0; odd && i < 50; i++)
        put_text(&b, "comment a line about nothing that is long enough to matter\n");
    if (!odd) put_properties(&b, "element chunk 40\n", "float", bounds, 18);
    if (odd) put_properties(&b, "element sh 10000\n", "uchar", rest, 9);
    put_properties(&b, "element vertex 10000\n", "uint", fields, 4);
    if (odd) put_text(&b, "element other 3\nproperty uchar thing\n");
    if (odd) put_properties(&b, "element chunk 40\n", "float", bounds, 18);
    if (!odd) put_properties(&b, "element sh 10000\n", "uchar", rest, 9);
    put_text(&b, "end_header\n");
    if (!odd) put_chunks(&b, &seeds[0]);
    if (odd) put_codes(&b, &seeds[2]);
    put_packed(&b, &seeds[1]);
    if (odd) put_text(&b, "abc");
    if (odd) put_chunks(&b, &seeds[0]);
    if (!odd) put_codes(&b, &seeds[2]);
    const char *path = import_source_file(name, b.data, b.size);
    kiln_buffer_release(&b);
    return path;
}

/* The row by the definition, in double. */
static void check_packed_row(const float *chunk, const uint32_t *v, const unsigned char *codes,
                             const float *row)
{
    static const int shifts[] = {21, 11, 0};
    static const double steps[] = {2047, 1023, 2047};
    double q[4], sum = 0;
    const uint32_t largest = v[1] >> 30;
    for (int c = 0; c < 3; c++) {
        const double t = (v[0] >> shifts[c] & (uint32_t)steps[c]) / steps[c],
                     u = (v[2] >> shifts[c] & (uint32_t)steps[c]) / steps[c];
        const double a = (v[3] >> (24 - 8 * c) & 255) / 255.0;
        assert_true(fabs((double)row[c] - ((double)chunk[c] * (1 - t) + (double)chunk[3 + c] * t)) <
                    1e-5);
        assert_true(fabs((double)row[7 + c] -
                         ((double)chunk[6 + c] * (1 - u) + (double)chunk[9 + c] * u)) < 1e-5);
        assert_true(fabs((double)row[11 + c] * 0.28209479177387814 + 0.5 -
                         ((double)chunk[12 + c] * (1 - a) + (double)chunk[15 + c] * a)) < 1e-5);
    }
    for (uint32_t i = 0, shift = 20; i < 4; i++) {
        if (i == largest) continue;
        q[i] = ((v[1] >> shift & 1023) / 1023.0 - 0.5) * sqrt(2);
        sum += q[i] * q[i];
        shift -= 10;
    }
    q[largest] = sqrt(fmax(0, 1 - sum));
    for (int i = 0; i < 4; i++) assert_true(fabs((double)row[3 + i] - q[i]) < 1e-6);
    for (int k = 0; k < 3; k++)
        for (int c = 0; c < 3; c++) {
            const int b = codes[3 * c + k];
            assert_true(row[14 + 3 * k + c] == (b == 0     ? -4.0f
                                                : b == 255 ? 4.0f
                                                           : (float)(((b + 0.5) / 256 - 0.5) * 8)));
        }
}

static void packed_rows_of_a_ply_lie_between_the_bounds_of_their_chunk(void **state)
{
    kiln_buffer chunks = {0}, packed = {0}, codes = {0};
    uint32_t seeds[3] = {11, 12, 13};
    opened o;
    (void)state;
    put_chunks(&chunks, &seeds[0]);
    put_packed(&packed, &seeds[1]);
    put_codes(&codes, &seeds[2]);
    float *rows =
        rows_from_anywhere(compressed_file("p.ply", false), "compressed-ply", &o, 100, 9000);
    assert_int_equal(o.info.n_rows, PACKED_ROWS);
    for (uint32_t i = 0; i < PACKED_ROWS; i++)
        check_packed_row((const float *)(const void *)chunks.data + i / 256 * 18,
                         (const uint32_t *)(const void *)packed.data + i * 4, codes.data + i * 9,
                         rows + i * 23);
    close_file(&o);
    opened odd;
    float *same =
        rows_from_anywhere(compressed_file("odd.ply", true), "compressed-ply", &odd, 20, 9000);
    assert_memory_equal(rows, same, PACKED_ROWS * 23 * sizeof *rows);
    close_file(&odd);
    free(same);
    free(rows);
    kiln_buffer_release(&chunks);
    kiln_buffer_release(&packed);
    kiln_buffer_release(&codes);
}

static void what_is_wrong_with_a_packed_header_is_said(void **state)
{
#define VERTEX                                                                                  \
    "element vertex 1\nproperty uint packed_position\nproperty uint packed_rotation\nproperty " \
    "uint packed_scale\nproperty uint "                                                         \
    "packed_color\n"
    static const struct {
        const char *text, *sentence;
    } files[] = {
        {"ply\nformat ascii 1.0\n" VERTEX "end_header\n1 2 3 4\n", "must be binary_little_endian"},
        {"ply\nformat binary_little_endian 1.0\nelement chunk 1\nproperty list uchar float "
         "min_x\n" VERTEX "end_header\n",
         "list property"},
        {"ply\nformat binary_little_endian 1.0\n" VERTEX "end_header\n................",
         "no element chunk"},
        {"ply\nformat binary_little_endian 1.0\n" VERTEX
         "element chunk 1\nproperty uchar a\nproperty uchar a\nend_header\n....................",
         "declared twice"},
        {"ply\nformat binary_little_endian 1.0\nelement chunk 0\nelement codebook_centers "
         "1\nproperty float a\nelement vertex 1\n"
         "property float x\nend_header\n........",
         "packed_position of the element vertex is missing"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        refused(import_source_file("w.ply", files[i].text, strlen(files[i].text)),
                files[i].sentence);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_splat_file_goes_by_its_suffix),
        cmocka_unit_test(other_content_under_the_name_splat_is_not_read_as_rows),
        cmocka_unit_test(a_packed_splat_file_has_two_suffixes),
        cmocka_unit_test(rows_of_a_ksplat_find_their_bucket),
        cmocka_unit_test(an_index_of_buckets_has_gaps),
        cmocka_unit_test(a_ksplat_is_known_by_its_content_too),
        cmocka_unit_test(halves_of_a_ksplat_are_all_halves),
        cmocka_unit_test(packed_rows_of_a_ply_lie_between_the_bounds_of_their_chunk),
        cmocka_unit_test(what_is_wrong_with_a_packed_header_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
