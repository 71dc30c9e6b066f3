/* format_files -- writes the generated scene (stages/generate/inputs.h) as a file of a format that
 * import reads, for timings.
 *
 *     format_files FORMAT GAUSSIANS FILE
 *
 * The formats are named in main. Every file has the largest degree of spherical harmonics of its
 * format. Codes are rounded, not searched for: the palette of SOG has entries of the scene's own
 * first Gaussians, and labels are drawn. The whole file is made in memory. This is a tool of the
 * bench: formats are written for people by kiln-export. */
#define KG_STDIO
#include "stages/generate/inputs.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <webp/encode.h>
#include <zlib.h>
#include <zstd.h>

#define SH_C0 0.28209479177387814
enum { DEGREES = 15 };

static kg_scene scene;
static uint64_t n_rows;
static FILE *out;

_Noreturn static void fail(const char *what)
{
    fprintf(stderr, "format_files: %s\n", what);
    exit(1);
}

static void *capacity(uint64_t bytes)
{
    void *p = calloc(bytes ? bytes : 1, 1);
    if (!p) fail("out of memory");
    return p;
}

static void put(const void *data, size_t bytes)
{
    if (fwrite(data, 1, bytes, out) != bytes) fail("cannot write");
}

static kg_splat row(uint64_t i)
{
    kg_splat s;
    kg_splat_at(&scene, i, &s);
    return s;
}

static double clamp(double v, double lo, double hi) { return v < lo ? lo : v > hi ? hi : v; }
static unsigned code(double v, unsigned most) { return (unsigned)(clamp(v, 0, 1) * most + 0.5); }
static double sigmoid(double v) { return 1 / (1 + exp(-v)); }

static void unit_quat(const kg_splat *s, double q[4])
{
    double l = 0;
    for (int c = 0; c < 4; c++) l += (double)s->rot[c] * (double)s->rot[c];
    for (int c = 0; c < 4; c++) q[c] = (double)s->rot[c] / sqrt(l);
}

/* Index of the largest of four; all are negated where it is negative. */
static int largest(double q[4])
{
    int at = 0;
    for (int c = 1; c < 4; c++)
        if (fabs(q[c]) > fabs(q[at])) at = c;
    if (q[at] < 0)
        for (int c = 0; c < 4; c++) q[c] = -q[c];
    return at;
}

static float sh(const kg_splat *s, int k, int c) { return s->f_rest[15 * c + k]; }

/* ---- PLY ------------------------------------------------------------------------------------- */

static void ply_header(const char *format)
{
    static const char *const names[] = {"x", "y", "z", "f_dc_0", "f_dc_1", "f_dc_2"};
    static const char *const last[] = {"opacity", "scale_0", "scale_1", "scale_2",
                                       "rot_0",   "rot_1",   "rot_2",   "rot_3"};
    fprintf(out, "ply\nformat %s 1.0\nelement vertex %llu\n", format, (unsigned long long)n_rows);
    for (int i = 0; i < 6; i++) fprintf(out, "property float %s\n", names[i]);
    for (int i = 0; i < 45; i++) fprintf(out, "property float f_rest_%d\n", i);
    for (int i = 0; i < 8; i++) fprintf(out, "property float %s\n", last[i]);
    fprintf(out, "end_header\n");
}

static void ply_row(const kg_splat *s, float v[59])
{
    memcpy(v, s->pos, 12);
    memcpy(v + 3, s->f_dc, 12);
    memcpy(v + 6, s->f_rest, 180);
    v[51] = s->opacity;
    memcpy(v + 52, s->scale, 12);
    memcpy(v + 55, s->rot, 16);
}

static void write_ply(void)
{
    ply_header("binary_little_endian");
    for (uint64_t i = 0; i < n_rows; i++) {
        const kg_splat s = row(i);
        float v[59];
        ply_row(&s, v);
        put(v, sizeof v);
    }
}

static void write_ascii(void)
{
    ply_header("ascii");
    for (uint64_t i = 0; i < n_rows; i++) {
        const kg_splat s = row(i);
        float v[59];
        ply_row(&s, v);
        for (int k = 0; k < 59; k++) fprintf(out, "%.9g%c", (double)v[k], k == 58 ? '\n' : ' ');
    }
}

enum { CHUNK = 256 };

static uint32_t pack111011(const double v[3], const float lo[3], const float hi[3])
{
    unsigned u[3];
    for (int c = 0; c < 3; c++) {
        const double span = (double)hi[c] - (double)lo[c];
        u[c] = code(span < 1e-5 ? 0 : (v[c] - (double)lo[c]) / span, c == 1 ? 1023 : 2047);
    }
    return u[0] << 21 | u[1] << 11 | u[2];
}

static void cply_values(const kg_splat *s, double v[9])
{
    for (int c = 0; c < 3; c++) {
        v[c] = (double)s->pos[c];
        v[3 + c] = clamp((double)s->scale[c], -20, 20);
        v[6 + c] = 0.5 + SH_C0 * (double)s->f_dc[c];
    }
}

static void write_cply(void)
{
    static const char *const box[] = {"x",       "y", "z", "scale_x", "scale_y",
                                      "scale_z", "r", "g", "b"};
    const uint64_t chunks = (n_rows + CHUNK - 1) / CHUNK;
    float *bounds = capacity(chunks * 18 * sizeof *bounds);
    fprintf(out, "ply\nformat binary_little_endian 1.0\nelement chunk %llu\n",
            (unsigned long long)chunks);
    for (int g = 0; g < 9; g += 3)
        for (int k = 0; k < 6; k++)
            fprintf(out, "property float %s_%s\n", k < 3 ? "min" : "max", box[g + k % 3]);
    fprintf(out,
            "element vertex %llu\nproperty uint packed_position\nproperty uint "
            "packed_rotation\nproperty uint packed_scale\n"
            "property uint packed_color\nelement sh %llu\n",
            (unsigned long long)n_rows, (unsigned long long)n_rows);
    for (int i = 0; i < 45; i++) fprintf(out, "property uchar f_rest_%d\n", i);
    fprintf(out, "end_header\n");
    for (uint64_t i = 0; i < n_rows; i++) {
        const kg_splat s = row(i);
        float *b = bounds + i / CHUNK * 18;
        double v[9];
        cply_values(&s, v);
        for (int k = 0; k < 9; k++) {
            float *lo = b + k / 3 * 6 + k % 3, *hi = lo + 3;
            if (i % CHUNK == 0 || (float)v[k] < *lo) *lo = (float)v[k];
            if (i % CHUNK == 0 || (float)v[k] > *hi) *hi = (float)v[k];
        }
    }
    put(bounds, chunks * 18 * sizeof *bounds);
    for (uint64_t i = 0; i < n_rows; i++) {
        const kg_splat s = row(i);
        const float *b = bounds + i / CHUNK * 18;
        double v[9], q[4];
        uint32_t word[4], shift = 20;
        cply_values(&s, v);
        unit_quat(&s, q);
        const int at = largest(q);
        word[0] = pack111011(v, b, b + 3);
        word[1] = (uint32_t)at << 30;
        for (int c = 0; c < 4; c++)
            if (c != at) {
                word[1] |= code(q[c] * sqrt(0.5) + 0.5, 1023) << shift;
                shift -= 10;
            }
        word[2] = pack111011(v + 3, b + 6, b + 9);
        word[3] = code(sigmoid((double)s.opacity), 255);
        for (int c = 0; c < 3; c++)
            word[3] |= code((v[6 + c] - (double)b[12 + c]) /
                                ((double)b[15 + c] - (double)b[12 + c] + 1e-12),
                            255)
                       << (24 - 8 * c);
        put(word, sizeof word);
    }
    for (uint64_t i = 0; i < n_rows; i++) {
        const kg_splat s = row(i);
        unsigned char b[45];
        for (int k = 0; k < 45; k++)
            b[k] = (unsigned char)clamp(((double)s.f_rest[k] / 8 + 0.5) * 256, 0, 255);
        put(b, sizeof b);
    }
    free(bounds);
}

/* ---- .splat, .ksplat ------------------------------------------------------------------------- */

static void colour_codes(const kg_splat *s, unsigned char b[4])
{
    for (int c = 0; c < 3; c++) b[c] = (unsigned char)code(0.5 + SH_C0 * (double)s->f_dc[c], 255);
    b[3] = (unsigned char)code(sigmoid((double)s->opacity), 255);
}

static void linear_scale(const kg_splat *s, float v[3])
{
    for (int c = 0; c < 3; c++) v[c] = (float)exp((double)s->scale[c]);
}

static void write_splat(void)
{
    for (uint64_t i = 0; i < n_rows; i++) {
        const kg_splat s = row(i);
        unsigned char b[32];
        float scale[3];
        double q[4];
        linear_scale(&s, scale);
        unit_quat(&s, q);
        memcpy(b, s.pos, 12);
        memcpy(b + 12, scale, 12);
        colour_codes(&s, b + 24);
        for (int c = 0; c < 4; c++) b[28 + c] = (unsigned char)clamp(q[c] * 128 + 128, 0, 255);
        put(b, sizeof b);
    }
}

static void set_u32(unsigned char *p, uint32_t v) { memcpy(p, &v, 4); }
static void set_f32(unsigned char *p, float v) { memcpy(p, &v, 4); }

/* Of the range of normal halves, towards zero. */
static uint16_t half(float v)
{
    uint32_t u;
    memcpy(&u, &v, 4);
    const int e = (int)(u >> 23 & 255) - 112;
    if (e <= 0) return (uint16_t)(u >> 16 & 0x8000);
    return (uint16_t)((u >> 16 & 0x8000) |
                      (e > 30 ? 0x7bff : (unsigned)e << 10 | (u >> 13 & 1023)));
}

/* Buckets of 256 rows in their order, whose block is made as large as the bucket with the largest
 * box needs. */
static void write_ksplat(int level)
{
    enum { HEADER = 4096, SECTION = 1024, BUCKET = 256, SH = 24 };
    const uint64_t full = n_rows / BUCKET, buckets = level ? (n_rows + BUCKET - 1) / BUCKET : 0;
    unsigned char *head = capacity(HEADER + SECTION);
    float *centre = capacity(buckets * 3 * sizeof *centre), block = 0;
    for (uint64_t b = 0; b < buckets; b++) {
        float lo[3] = {HUGE_VALF, HUGE_VALF, HUGE_VALF},
              hi[3] = {-HUGE_VALF, -HUGE_VALF, -HUGE_VALF};
        for (uint64_t i = b * BUCKET; i < n_rows && i < (b + 1) * BUCKET; i++) {
            const kg_splat s = row(i);
            for (int c = 0; c < 3; c++) {
                lo[c] = fminf(lo[c], s.pos[c]);
                hi[c] = fmaxf(hi[c], s.pos[c]);
            }
        }
        for (int c = 0; c < 3; c++) {
            centre[3 * b + c] = (lo[c] + hi[c]) / 2;
            block = fmaxf(block, hi[c] - lo[c]);
        }
    }
    const uint32_t rest = (uint32_t)(n_rows % BUCKET);
    head[1] = 1;
    set_u32(head + 4, 1);
    set_u32(head + 8, 1);
    set_u32(head + 12, (uint32_t)n_rows);
    set_u32(head + 16, (uint32_t)n_rows);
    head[20] = (unsigned char)level;
    set_f32(head + 36, -1.5f);
    set_f32(head + 40, 1.5f);
    unsigned char *sec = head + HEADER;
    set_u32(sec, (uint32_t)n_rows);
    set_u32(sec + 4, (uint32_t)n_rows);
    if (level) {
        set_u32(sec + 8, BUCKET);
        set_u32(sec + 12, (uint32_t)buckets);
        set_f32(sec + 16, block);
        sec[20] = 12;
        set_u32(sec + 24, 32767);
        set_u32(sec + 32, (uint32_t)full);
        set_u32(sec + 36, rest ? 1 : 0);
    }
    sec[40] = 2;
    put(head, HEADER + SECTION);
    if (level && rest) put(&rest, 4);
    put(centre, buckets * 3 * sizeof *centre);
    for (uint64_t i = 0; i < n_rows; i++) {
        const kg_splat s = row(i);
        unsigned char b[140];
        float v[10 + SH];
        double q[4];
        size_t at = 0;
        unit_quat(&s, q);
        memcpy(v, s.pos, 12);
        linear_scale(&s, v + 3);
        for (int c = 0; c < 4; c++) v[6 + c] = (float)q[c];
        for (int k = 0; k < 9; k++) v[10 + k] = sh(&s, k % 3, k / 3);
        for (int k = 0; k < 15; k++) v[19 + k] = sh(&s, 3 + k % 5, k / 5);
        for (int k = 0; k < 10; k++) {
            if (!level) {
                set_f32(b + at, v[k]);
                at += 4;
            } else {
                const uint16_t u =
                    k >= 3 ? half(v[k])
                           : (uint16_t)clamp(
                                 round((double)(v[k] - centre[i / BUCKET * 3 + (unsigned)k]) *
                                       32767 / ((double)block / 2)) +
                                     32767,
                                 0, 65535);
                memcpy(b + at, &u, 2);
                at += 2;
            }
        }
        colour_codes(&s, b + at);
        at += 4;
        for (int k = 10; k < 10 + SH; k++) {
            const uint16_t u = half(v[k]);
            if (level == 0) set_f32(b + at, v[k]);
            if (level == 1) memcpy(b + at, &u, 2);
            if (level == 2) b[at] = (unsigned char)clamp(((double)v[k] + 1.5) / 3 * 255, 0, 255);
            at += level == 0 ? 4 : level == 1 ? 2 : 1;
        }
        put(b, at);
    }
    free(centre);
    free(head);
}

/* ---- SPZ ------------------------------------------------------------------------------------- */

static void spz_rotation(const kg_splat *s, int version, unsigned char *b)
{
    double w[4], q[4];
    unit_quat(s, w);
    for (int c = 0; c < 4; c++) q[c] = w[(c + 1) % 4]; /* x y z w */
    if (version < 3) {
        const double sign = q[3] < 0 ? -1 : 1;
        for (int c = 0; c < 3; c++)
            b[c] = (unsigned char)clamp(round(127.5 * sign * q[c] + 127.5), 0, 255);
        return;
    }
    const int at = largest(q);
    uint32_t u = (uint32_t)at;
    for (int c = 0; c < 4; c++)
        if (c != at)
            u = u << 10 | (q[c] < 0 ? 512u : 0u) |
                (uint32_t)clamp(511 * fabs(q[c]) / sqrt(0.5) + 0.5, 0, 511);
    set_u32(b, u);
}

static void spz_planes(int version, unsigned char *plane[6], uint64_t size[6])
{
    const unsigned bytes[6] = {9, 1, 3, 3, version < 3 ? 3 : 4, 45};
    for (int p = 0; p < 6; p++) {
        size[p] = n_rows * bytes[p];
        plane[p] = capacity(size[p]);
    }
    for (uint64_t i = 0; i < n_rows; i++) {
        const kg_splat s = row(i);
        plane[1][i] = (unsigned char)code(sigmoid((double)s.opacity), 255);
        for (unsigned c = 0; c < 3; c++) {
            const uint32_t v = (uint32_t)(int32_t)lround((double)s.pos[c] * 4096);
            memcpy(plane[0] + 9 * i + 3 * c, &v, 3);
            plane[2][3 * i + c] =
                (unsigned char)clamp(round(255 * (0.15 * (double)s.f_dc[c] + 0.5)), 0, 255);
            plane[3][3 * i + c] =
                (unsigned char)clamp(round(16 * ((double)s.scale[c] + 10)), 0, 255);
        }
        spz_rotation(&s, version, plane[4] + bytes[4] * i);
        for (int k = 0; k < DEGREES; k++)
            for (int c = 0; c < 3; c++) {
                const int step = k < 3 ? 8 : 16, v = (int)lround((double)sh(&s, k, c) * 128) + 128;
                plane[5][45 * i + 3 * (unsigned)k + (unsigned)c] =
                    (unsigned char)clamp((v + step / 2) / step * step, 0, 255);
            }
    }
}

static void gz_put(gzFile f, const void *data, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += 1 << 20) {
        const unsigned n = bytes - at < 1 << 20 ? (unsigned)(bytes - at) : 1 << 20;
        if (gzwrite(f, (const char *)data + at, n) != (int)n) fail("cannot write");
    }
}

static void write_spz(int version, const char *path)
{
    unsigned char *plane[6], head[32] = {'N', 'G', 'S', 'P', (unsigned char)version};
    uint64_t size[6], toc[12];
    spz_planes(version, plane, size);
    set_u32(head + 8, (uint32_t)n_rows);
    head[12] = 3;
    head[13] = 12;
    if (version < 4) {
        gzFile f = gzopen(path, "wb6");
        if (!f) fail("cannot open");
        gz_put(f, head, 16);
        for (int p = 0; p < 6; p++) gz_put(f, plane[p], size[p]);
        if (gzclose(f) != Z_OK) fail("cannot write");
        return;
    }
    head[15] = 6;
    head[16] = 32;
    void *packed[6];
    for (int p = 0; p < 6; p++) {
        packed[p] = capacity(ZSTD_compressBound(size[p]));
        toc[2 * p] = ZSTD_compress(packed[p], ZSTD_compressBound(size[p]), plane[p], size[p], 3);
        toc[2 * p + 1] = size[p];
    }
    put(head, sizeof head);
    put(toc, sizeof toc);
    for (int p = 0; p < 6; p++) put(packed[p], toc[2 * p]);
}

/* ---- SOG ------------------------------------------------------------------------------------- */

enum { MEMBERS = 8, PALETTE = 65536 };
static struct {
    char name[32];
    uint8_t *data;
    size_t bytes;
    uint32_t at;
} members[MEMBERS];
static int n_members;

static void add_picture(const char *name, const unsigned char *rgba, int w, int h)
{
    WebPConfig config;
    WebPPicture p;
    WebPMemoryWriter writer;
    if (!WebPConfigPreset(&config, WEBP_PRESET_DEFAULT, 75) ||
        !WebPConfigLosslessPreset(&config, 1) || !WebPPictureInit(&p))
        fail("libwebp");
    config.exact = 1;
    p.use_argb = 1;
    p.width = w;
    p.height = h;
    WebPMemoryWriterInit(&writer);
    p.writer = WebPMemoryWrite;
    p.custom_ptr = &writer;
    if (!WebPPictureImportRGBA(&p, rgba, 4 * w) || !WebPEncode(&config, &p))
        fail("libwebp cannot encode");
    WebPPictureFree(&p);
    snprintf(members[n_members].name, sizeof members[0].name, "%s.webp", name);
    members[n_members].data = writer.mem;
    members[n_members++].bytes = writer.size;
}

static char *text;
static size_t text_at, text_capacity;
static void say(const char *format, ...)
{
    va_list a;
    va_start(a, format);
    if (text_capacity - text_at < 256) text = realloc(text, text_capacity += 1 << 16);
    if (!text) fail("out of memory");
    text_at += (size_t)vsnprintf(text + text_at, text_capacity - text_at, format, a);
    va_end(a);
}

/* 256 even steps. */
static void say_codebook(double lo, double hi)
{
    say("\"codebook\":[");
    for (int i = 0; i < 256; i++) say("%s%.9g", i ? "," : "", lo + (hi - lo) * i / 255);
    say("],");
}

static void zip_members(void)
{
    uint32_t at = 0;
    unsigned char local[30] = {'P', 'K', 3, 4, 20}, central[46] = {'P', 'K', 1, 2, 20, 0, 20},
                  end[22] = {'P', 'K', 5, 6};
    for (int i = 0; i < n_members; i++) {
        const uint32_t crc = (uint32_t)crc32(0, members[i].data, (uInt)members[i].bytes),
                       n = (uint32_t)members[i].bytes;
        set_u32(local + 14, crc);
        set_u32(local + 18, n);
        set_u32(local + 22, n);
        local[26] = (unsigned char)strlen(members[i].name);
        members[i].at = at;
        put(local, sizeof local);
        put(members[i].name, local[26]);
        put(members[i].data, n);
        at += (uint32_t)sizeof local + local[26] + n;
    }
    const uint32_t directory = at;
    for (int i = 0; i < n_members; i++) {
        set_u32(central + 16, (uint32_t)crc32(0, members[i].data, (uInt)members[i].bytes));
        set_u32(central + 20, (uint32_t)members[i].bytes);
        set_u32(central + 24, (uint32_t)members[i].bytes);
        central[28] = (unsigned char)strlen(members[i].name);
        set_u32(central + 42, members[i].at);
        put(central, sizeof central);
        put(members[i].name, central[28]);
        at += (uint32_t)sizeof central + central[28];
    }
    end[8] = end[10] = (unsigned char)n_members;
    set_u32(end + 12, at - directory);
    set_u32(end + 16, directory);
    put(end, sizeof end);
}

static double log_of(double v) { return v < 0 ? -log1p(-v) : log1p(v); }

static void write_sog(void)
{
    const int w = 4 * (int)ceil(sqrt((double)n_rows) / 4),
              h = 4 * (int)ceil((double)n_rows / w / 4);
    const uint64_t pixels = (uint64_t)w * (uint64_t)h;
    unsigned char *low = capacity(4 * pixels), *high = capacity(4 * pixels),
                  *scales = capacity(4 * pixels), *quats = capacity(4 * pixels);
    unsigned char *sh0 = capacity(4 * pixels), *labels = capacity(4 * pixels),
                  *palette = capacity((uint64_t)4 * PALETTE * DEGREES);
    double lo[3] = {HUGE_VAL, HUGE_VAL, HUGE_VAL}, hi[3] = {-HUGE_VAL, -HUGE_VAL, -HUGE_VAL};
    for (uint64_t i = 0; i < n_rows; i++) {
        const kg_splat s = row(i);
        for (int c = 0; c < 3; c++) {
            lo[c] = fmin(lo[c], log_of((double)s.pos[c]));
            hi[c] = fmax(hi[c], log_of((double)s.pos[c]));
        }
    }
    for (uint64_t i = 0; i < n_rows; i++) {
        const kg_splat s = row(i);
        double q[4];
        unit_quat(&s, q);
        const int at = largest(q);
        int k = 0;
        for (int c = 0; c < 4; c++)
            if (c != at)
                quats[4 * i + (unsigned)k++] = (unsigned char)code((q[c] * sqrt(2.0) + 1) / 2, 255);
        quats[4 * i + 3] = (unsigned char)(252 + at);
        for (unsigned c = 0; c < 3; c++) {
            const unsigned u = code((log_of((double)s.pos[c]) - lo[c]) / (hi[c] - lo[c]), 65535);
            low[4 * i + c] = (unsigned char)u;
            high[4 * i + c] = (unsigned char)(u >> 8);
            scales[4 * i + c] = (unsigned char)code(((double)s.scale[c] + 10) / 12, 255);
            sh0[4 * i + c] = (unsigned char)code(((double)s.f_dc[c] + 2) / 4, 255);
        }
        low[4 * i + 3] = high[4 * i + 3] = scales[4 * i + 3] = 255;
        sh0[4 * i + 3] = (unsigned char)code(sigmoid((double)s.opacity), 255);
        const uint64_t label = i * 2654435761u % PALETTE;
        labels[4 * i] = (unsigned char)label;
        labels[4 * i + 1] = (unsigned char)(label >> 8);
        labels[4 * i + 3] = 255;
    }
    for (uint64_t p = 0; p < PALETTE; p++) {
        const kg_splat s = row(p % n_rows);
        for (int k = 0; k < DEGREES; k++) {
            unsigned char *pixel =
                palette + 4 * (p / 64 * (64 * DEGREES) + p % 64 * DEGREES + (uint64_t)k);
            for (int c = 0; c < 3; c++)
                pixel[c] = (unsigned char)code(((double)sh(&s, k, c) + 1) / 2, 255);
            pixel[3] = 255;
        }
    }
    add_picture("means_l", low, w, h);
    add_picture("means_u", high, w, h);
    add_picture("scales", scales, w, h);
    add_picture("quats", quats, w, h);
    add_picture("sh0", sh0, w, h);
    add_picture("shN_centroids", palette, 64 * DEGREES, PALETTE / 64);
    add_picture("shN_labels", labels, w, h);
    say("{\"version\":2,\"count\":%llu,\"means\":{\"mins\":[%.17g,%.17g,%.17g],\"maxs\":[%.17g,%."
        "17g,%.17g],"
        "\"files\":[\"means_l.webp\",\"means_u.webp\"]},\"scales\":{",
        (unsigned long long)n_rows, lo[0], lo[1], lo[2], hi[0], hi[1], hi[2]);
    say_codebook(-10, 2);
    say("\"files\":[\"scales.webp\"]},\"quats\":{\"files\":[\"quats.webp\"]},\"sh0\":{");
    say_codebook(-2, 2);
    say("\"files\":[\"sh0.webp\"]},\"shN\":{\"count\":%d,\"bands\":3,", PALETTE);
    say_codebook(-1, 1);
    say("\"files\":[\"shN_centroids.webp\",\"shN_labels.webp\"]}}");
    snprintf(members[n_members].name, sizeof members[0].name, "meta.json");
    members[n_members].data = (uint8_t *)text;
    members[n_members++].bytes = text_at;
    zip_members();
}

/* ---- GLB ------------------------------------------------------------------------------------- */

static void say_accessor(unsigned i, const char *type)
{
    say("%s{\"bufferView\":%u,\"componentType\":5126,\"count\":%llu,\"type\":\"%s\"%s}",
        i ? "," : "", i, (unsigned long long)n_rows, type,
        i ? "" : ",\"min\":[-100,-100,-100],\"max\":[100,100,100]");
}

static void say_view(unsigned i, uint64_t at, unsigned floats)
{
    say("%s{\"buffer\":0,\"byteOffset\":%llu,\"byteLength\":%llu}", i ? "," : "",
        (unsigned long long)at, (unsigned long long)(n_rows * floats * 4));
}

static void glb_values(uint64_t i, unsigned attribute, float v[4])
{
    const kg_splat s = row(i);
    double q[4];
    switch (attribute) {
    case 0:
        for (int c = 0; c < 3; c++) v[c] = s.pos[c] * (c < 2 ? -1.0f : 1.0f);
        break;
    case 1:
        unit_quat(&s, q);
        for (int c = 0; c < 4; c++) v[c] = (float)q[(c + 1) % 4] * (c < 2 ? -1.0f : 1.0f);
        break;
    case 2:
        linear_scale(&s, v);
        break;
    case 3:
        v[0] = (float)sigmoid((double)s.opacity);
        break;
    default:
        for (int c = 0; c < 3; c++)
            v[c] = attribute == 4 ? s.f_dc[c] : sh(&s, (int)attribute - 5, c);
    }
}

static void write_glb(void)
{
    enum { ATTRIBUTES = 20 };
    unsigned floats[ATTRIBUTES];
    uint64_t at = 0;
    for (unsigned a = 0; a < ATTRIBUTES; a++) floats[a] = a == 1 ? 4 : a == 3 ? 1 : 3;
    say("{\"asset\":{\"version\":\"2.0\"},\"extensionsUsed\":[\"KHR_gaussian_splatting\"],"
        "\"scene\":0,\"scenes\":[{\"nodes\":[0]}],"
        "\"nodes\":[{\"mesh\":0}],\"meshes\":[{\"primitives\":[{\"mode\":0,\"attributes\":{"
        "\"POSITION\":0,"
        "\"KHR_gaussian_splatting:ROTATION\":1,\"KHR_gaussian_splatting:SCALE\":2,\"KHR_gaussian_"
        "splatting:OPACITY\":3");
    for (unsigned k = 0; k < 16; k++) {
        const unsigned l = k < 1 ? 0 : k < 4 ? 1 : k < 9 ? 2 : 3;
        say(",\"KHR_gaussian_splatting:SH_DEGREE_%u_COEF_%u\":%u", l, k - l * l, 4 + k);
    }
    say("},\"extensions\":{\"KHR_gaussian_splatting\":{\"kernel\":\"ellipse\",\"colorSpace\":"
        "\"srgb_rec709_display\"}}}]}],"
        "\"accessors\":[");
    for (unsigned a = 0; a < ATTRIBUTES; a++)
        say_accessor(a, floats[a] == 4 ? "VEC4" : floats[a] == 1 ? "SCALAR" : "VEC3");
    say("],\"bufferViews\":[");
    for (unsigned a = 0; a < ATTRIBUTES; at += n_rows * floats[a] * 4, a++)
        say_view(a, at, floats[a]);
    say("],\"buffers\":[{\"byteLength\":%llu}]}", (unsigned long long)at);
    while (text_at % 4) say(" ");
    const uint32_t head[5] = {0x46546C67, 2, (uint32_t)(28 + text_at + at), (uint32_t)text_at,
                              0x4E4F534A};
    const uint32_t bin[2] = {(uint32_t)at, 0x004E4942};
    put(head, sizeof head);
    put(text, text_at);
    put(bin, sizeof bin);
    for (unsigned a = 0; a < ATTRIBUTES; a++)
        for (uint64_t i = 0; i < n_rows; i++) {
            float v[4];
            glb_values(i, a, v);
            put(v, 4 * floats[a]);
        }
}

int main(int argc, char **argv)
{
    if (argc != 4)
        fail("usage: format_files "
             "ply|ascii|cply|splat|ksplat0|ksplat1|ksplat2|spz2|spz3|spz4|sog|glb GAUSSIANS FILE");
    const char *format = argv[1];
    n_rows = strtoull(argv[2], NULL, 10);
    kg_scene_init(&scene, n_rows, 1);
    out = fopen(argv[3], "wb");
    if (!out) fail("cannot open the file");
    if (strcmp(format, "ply") == 0) write_ply();
    if (strcmp(format, "ascii") == 0) write_ascii();
    if (strcmp(format, "cply") == 0) write_cply();
    if (strcmp(format, "splat") == 0) write_splat();
    if (strncmp(format, "ksplat", 6) == 0) write_ksplat(format[6] - '0');
    if (strncmp(format, "spz", 3) == 0) write_spz(format[3] - '0', argv[3]);
    if (strcmp(format, "sog") == 0) write_sog();
    if (strcmp(format, "glb") == 0) write_glb();
    /* written through another stream */
    const bool is_gzip = strncmp(format, "spz", 3) == 0 && format[3] < '4';
    if (!is_gzip && fclose(out) != 0) fail("cannot write");
    return 0;
}
