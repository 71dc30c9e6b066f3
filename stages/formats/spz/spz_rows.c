/* spz_rows -- see the header. The codes of all planes but positions, rotations and harmonics go
 * through tables of 256 entries, made when a decoder is: one look-up a value, and no logarithm that
 * is not our own decides a bit. */
#include "stages/formats/spz/spz_rows.h"

#include "base/endian.h"
#include "base/file.h"
#include "base/harmonics.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "kernels/math/half_math.h"
#include "stages/files/packing.h"
#include "stages/formats/codes.h"
#include "stages/formats/spz/spz_axes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    FRACTION_MAX = 30,
    DEGREE_MAX = 4,
    PIECE_ROWS = 4096,
    SH_FLOATS_MAX = 72,
    RECORDS_MAX = 4096
};

const char *const kiln_spz_plane_names[KILN_SPZ_PLANES] = {"position", "alpha",    "colour",
                                                           "scale",    "rotation", "SH"};

/* ---- header ---------------------------------------------------------------------------------- */

static kiln_status check_numbers(const kiln_spz_header *h, unsigned flags, const char *name,
                                 kiln_error *err)
{
    if (h->version < 1 || h->version > 4)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' says that it is SPZ version %u; versions 1 to 4 are read", name,
                         h->version);
    if (h->n == 0)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is an SPZ file without Gaussians: its header counts 0", name);
    if (h->sh_degree > DEGREE_MAX)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s' has spherical harmonics of degree %u in its SPZ header; 4 is the highest", name,
            h->sh_degree);
    if (h->fraction > FRACTION_MAX)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s' has positions with %u fractional bits in its SPZ header; %d are the most", name,
            h->fraction, FRACTION_MAX);
    if (flags & KILN_SPZ_LEVELS)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is an SPZ file with Spark's level-of-detail tree (flag 0x80), which "
                         "uses other codes; write it "
                         "again without levels",
                         name);
    if (flags & ~(unsigned)(KILN_SPZ_ANTIALIASED | KILN_SPZ_EXTENDED))
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' has the flags 0x%02x in its SPZ header; 0x01 and 0x02 are known",
                         name, flags);
    return KILN_OK;
}

kiln_status kiln_spz_header_parse(const unsigned char bytes[KILN_SPZ_HEADER], const char *name,
                                  kiln_spz_header *out, kiln_error *err)
{
    memset(out, 0, sizeof *out);
    if (memcmp(bytes, KILN_SPZ_MAGIC, 4) != 0)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' does not hold SPZ, which begins with " KILN_SPZ_MAGIC, name);
    out->version = kiln_get_u32(bytes + KILN_SPZ_VERSION_AT);
    out->n = kiln_get_u32(bytes + KILN_SPZ_COUNT_AT);
    out->sh_degree = bytes[KILN_SPZ_DEGREE_AT];
    out->fraction = bytes[KILN_SPZ_FRACTION_AT];
    out->antialiased = bytes[KILN_SPZ_FLAGS_AT] & KILN_SPZ_ANTIALIASED;
    out->extended = bytes[KILN_SPZ_FLAGS_AT] & KILN_SPZ_EXTENDED;
    out->n_streams = bytes[KILN_SPZ_N_STREAMS_AT];
    KILN_TRY(check_numbers(out, bytes[KILN_SPZ_FLAGS_AT], name, err));
    kiln_spz_strides(out->version, out->sh_degree, out->stride);
    for (int p = 0; p < KILN_SPZ_PLANES; p++)
        out->at[p + 1] = out->at[p] + (uint64_t)out->n * out->stride[p];
    return KILN_OK;
}

/* ---- extension records ----------------------------------------------------------------------- */

static kiln_status take_axes(int fd, const char *name, uint64_t at, uint32_t bytes,
                             uint32_t *system, kiln_error *err)
{
    unsigned char value[4];
    if (bytes != sizeof value)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' has a coordinate system of %u bytes instead of 4 at byte %llu", name,
                         bytes, (unsigned long long)at);
    KILN_TRY(kiln_file_read_at(fd, name, at, value, sizeof value, err));
    const uint32_t found = kiln_get_u32(value);
    if (found < 1 || found > KILN_SPZ_SYSTEMS)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' names the coordinate system %u at byte %llu; 1 to %d are known",
                         name, found, (unsigned long long)at, KILN_SPZ_SYSTEMS);
    if (*system && *system != found)
        return kiln_fail(err, KILN_E_INPUT, "'%s' names two coordinate systems, %s and %s", name,
                         kiln_spz_system_name(*system), kiln_spz_system_name(found));
    *system = found;
    return KILN_OK;
}

kiln_status kiln_spz_extensions_read(int fd, const char *name, uint64_t from, uint64_t to,
                                     uint32_t *system, kiln_error *err)
{
    unsigned char head[KILN_SPZ_RECORD_HEADER];
    uint32_t records = 0;
    for (uint64_t at = from; at < to; records++) {
        if (records == RECORDS_MAX)
            return kiln_fail(err, KILN_E_INPUT, "'%s' has more than %d SPZ extension records", name,
                             RECORDS_MAX);
        if (to - at < sizeof head)
            return kiln_fail(err, KILN_E_INPUT,
                             "'%s' ends inside an SPZ extension record at byte %llu", name,
                             (unsigned long long)at);
        KILN_TRY(kiln_file_read_at(fd, name, at, head, sizeof head, err));
        const uint32_t bytes = kiln_get_u32(head + 4);
        at += sizeof head;
        if (bytes > to - at)
            return kiln_fail(err, KILN_E_INPUT,
                             "'%s' has an SPZ extension record of %u bytes at byte %llu, but only "
                             "%llu bytes are left",
                             name, bytes, (unsigned long long)at, (unsigned long long)(to - at));
        if (kiln_get_u32(head) == KILN_SPZ_RECORD_AXES)
            KILN_TRY(take_axes(fd, name, at, bytes, system, err));
        at += bytes;
    }
    return KILN_OK;
}

/* ---- tables ---------------------------------------------------------------------------------- */

struct kiln_spz_decoder {
    kiln_spz_header header;
    float logit[256], colour[256], log_scale[256];
    float sh[256];
    /* components of quaternions */
    double first_three[256], smallest_three[1 << KILN_SPZ_SMALLEST_BITS];
    double step; /* of positions */
    /* [PIECE_ROWS] rows of one plane */
    unsigned char *piece;
};

static double smallest_component(uint32_t code)
{
    const uint32_t size = code & KILN_SPZ_SMALLEST_MOST;
    return (code & KILN_SPZ_SMALLEST_SIGN ? -1 : 1) *
           (KILN_SPZ_SQRT_HALF * size / (double)KILN_SPZ_SMALLEST_MOST);
}

static void fill_tables(kiln_spz_decoder *d)
{
    kiln_code_logits(d->logit);
    for (int b = 0; b < 256; b++) {
        d->colour[b] = (float)((b / 255.0 - 0.5) / KILN_SPZ_COLOUR_SCALE);
        d->log_scale[b] = (float)b / KILN_SPZ_SCALE_STEPS + KILN_SPZ_SCALE_LEAST;
        d->sh[b] = (float)(b - KILN_SPZ_SH_ZERO) / KILN_SPZ_SH_STEPS;
        d->first_three[b] = b / (double)KILN_SPZ_FIRST_THREE - 1.0;
    }
    for (uint32_t b = 0; b < 1u << KILN_SPZ_SMALLEST_BITS; b++)
        d->smallest_three[b] = smallest_component(b);
    d->step = ldexp(1.0, -(int)d->header.fraction);
}

static size_t piece_bytes(uint32_t sh_degree, uint64_t n)
{
    const size_t sh = kiln_sh_components(sh_degree);
    return kiln_min_u64(n, PIECE_ROWS) * (sh > 9 ? sh : 9);
}

uint64_t kiln_spz_decoder_ram(uint32_t sh_degree)
{
    return sizeof(kiln_spz_decoder) + piece_bytes(sh_degree, PIECE_ROWS);
}

kiln_status kiln_spz_decoder_new(const kiln_spz_header *h, kiln_spz_decoder **out, kiln_error *err)
{
    kiln_spz_decoder *d;
    *out = NULL;
    KILN_TRY(KILN_ALLOC(&d, 1, "SPZ decoder", err));
    d->header = *h;
    const kiln_status st =
        KILN_ALLOC_UNSET(&d->piece, piece_bytes(h->sh_degree, h->n), "SPZ rows", err);
    if (st != KILN_OK) {
        free(d);
        return st;
    }
    fill_tables(d);
    *out = d;
    return KILN_OK;
}

void kiln_spz_decoder_free(kiln_spz_decoder *d)
{
    if (!d) return;
    free(d->piece);
    free(d);
}

/* ---- planes to rows: `n` of them, the first of which is row `at` of the block, whose components are `stride` apart --------- */

static void take_fixed(const kiln_spz_decoder *d, uint64_t n, double *dst, uint64_t stride)
{
    for (uint64_t c = 0; c < 3; c++)
        for (uint64_t i = 0; i < n; i++) {
            const unsigned char *p = d->piece + 9 * i + 3 * c;
            const int32_t v =
                (int32_t)((uint32_t)p[0] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 24) >> 8;
            dst[c * stride + i] = v * d->step;
        }
}

/* Version 1. Unlike halves of our own these may be infinite or none. */
static void take_halves(const kiln_spz_decoder *d, uint64_t n, double *dst, uint64_t stride)
{
    for (uint64_t c = 0; c < 3; c++)
        for (uint64_t i = 0; i < n; i++) {
            const uint16_t half = kiln_get_u16(d->piece + 6 * i + 2 * c);
            const double special = half & 0x3ff    ? (double)NAN
                                   : half & 0x8000 ? -HUGE_VAL
                                                   : HUGE_VAL;
            dst[c * stride + i] =
                (half & 0x7c00) == 0x7c00 ? special : (double)kiln_half_value(half);
        }
}

static void take_spz_codes(const unsigned char *piece, const float table[256], uint32_t components,
                           uint64_t n, float *dst, uint64_t stride)
{
    for (uint32_t c = 0; c < components; c++)
        for (uint64_t i = 0; i < n; i++) dst[c * stride + i] = table[piece[components * i + c]];
}

/* The missing component: what is left to length 1; 0 where rounding left nothing, and then the
 * others are made unit. */
static double missing_of(double q[3])
{
    const double sum = q[0] * q[0] + q[1] * q[1] + q[2] * q[2],
                 shrink = sum > 1 ? 1 / sqrt(sum) : 1;
    for (int k = 0; k < 3; k++) q[k] *= shrink;
    return sum < 1 ? sqrt(1 - sum) : 0;
}

/* Versions 1 and 2: x, y, z. */
static void take_first_three(const kiln_spz_decoder *d, uint64_t n, float *dst, uint64_t stride)
{
    for (uint64_t i = 0; i < n; i++) {
        const unsigned char *p = d->piece + 3 * i;
        double q[3] = {d->first_three[p[0]], d->first_three[p[1]], d->first_three[p[2]]};
        dst[i] = (float)missing_of(q);
        for (uint64_t k = 0; k < 3; k++) dst[(k + 1) * stride + i] = (float)q[k];
    }
}

/* From version 3 on. */
static void place_smallest_three(uint32_t largest, double q[3], float *dst, uint64_t stride)
{
    static const unsigned char plane[4] = {1, 2, 3, 0}; /* of x, y, z, w */
    static const unsigned char others[4][3] = {{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}};
    dst[plane[largest] * stride] = (float)missing_of(q);
    for (int k = 0; k < 3; k++) dst[plane[others[largest][k]] * stride] = (float)q[k];
}

/* Of the k-th of the three. */
static uint32_t code_of(uint32_t word, int k)
{
    return word >> (2 - k) * KILN_SPZ_SMALLEST_BITS & ((1u << KILN_SPZ_SMALLEST_BITS) - 1);
}

void kiln_spz_smallest_three(uint32_t word, float wxyz[4])
{
    double q[3] = {smallest_component(code_of(word, 0)), smallest_component(code_of(word, 1)),
                   smallest_component(code_of(word, 2))};
    place_smallest_three(word >> KILN_SPZ_LARGEST_SHIFT, q, wxyz, 1);
}

static void take_smallest_three(const kiln_spz_decoder *d, uint64_t n, float *dst, uint64_t stride)
{
    const double *table = d->smallest_three;
    for (uint64_t i = 0; i < n; i++) {
        const uint32_t word = kiln_get_u32(d->piece + 4 * i);
        double q[3] = {table[code_of(word, 0)], table[code_of(word, 1)], table[code_of(word, 2)]};
        place_smallest_three(word >> KILN_SPZ_LARGEST_SHIFT, q, dst + i, stride);
    }
}

/* Takes the rows of one plane out of d->piece. */
static void take_plane(const kiln_spz_decoder *d, kiln_spz_plane plane, uint64_t at, uint64_t n,
                       kiln_rows *rows)
{
    const uint64_t stride = rows->n;
    switch (plane) {
    case KILN_SPZ_POSITIONS:
        (d->header.version == 1 ? take_halves : take_fixed)(d, n, rows->means + at, stride);
        break;
    case KILN_SPZ_ALPHAS:
        take_spz_codes(d->piece, d->logit, 1, n, rows->opacity_logits + at, stride);
        break;
    case KILN_SPZ_COLOURS:
        take_spz_codes(d->piece, d->colour, 3, n, rows->sh0 + at, stride);
        break;
    case KILN_SPZ_SCALES:
        take_spz_codes(d->piece, d->log_scale, 3, n, rows->log_scales + at, stride);
        break;
    case KILN_SPZ_ROTATIONS:
        (d->header.version < 3 ? take_first_three : take_smallest_three)(d, n, rows->quats + at,
                                                                         stride);
        break;
    case KILN_SPZ_SH: /* coefficient-major with the colours inside, as rows->shN */
        take_spz_codes(d->piece, d->sh, d->header.stride[plane], n, rows->shN + at, stride);
        break;
    case KILN_SPZ_PLANES:
        break;
    }
}

kiln_status kiln_spz_decoder_read(kiln_spz_decoder *d, const kiln_spz_unpacked *from,
                                  uint64_t first, uint64_t n, kiln_rows *rows, kiln_error *err)
{
    rows->n = n;
    for (kiln_spz_plane p = 0; p < KILN_SPZ_PLANES; p++) {
        const uint64_t stride = d->header.stride[p],
                       begin = from->base + d->header.at[p] + first * stride;
        for (uint64_t at = 0; at < n && stride; at += PIECE_ROWS) {
            const uint64_t k = kiln_min_u64(n - at, PIECE_ROWS);
            KILN_TRY(kiln_file_read_at(from->fd, from->name, begin + at * stride, d->piece,
                                       k * stride, err));
            take_plane(d, p, at, k, rows);
        }
    }
    return KILN_OK;
}

/* ---- a gzip stream in a range of another file ------------------------------------------------ */

kiln_status kiln_spz_range_header(const kiln_spz_range *in, kiln_spz_header *out, kiln_error *err)
{
    unsigned char head[KILN_SPZ_HEADER];
    uint64_t n = 0;
    const int scratch = memfd_create("SPZ header", MFD_CLOEXEC);
    if (scratch < 0)
        return kiln_fail(err, KILN_E_NOMEM, "cannot read '%s': %s", in->name, strerror(errno));
    const kiln_unpacking q = {.name = in->name,
                              .from = in->fd,
                              .begin = in->from,
                              .end = in->from + in->bytes,
                              .to = scratch,
                              .limit = sizeof head,
                              .keep = sizeof head,
                              .most = UINT64_MAX};
    kiln_status st = kiln_unpack_range(kiln_packing_named("gzip"), &q, &n, err);
    if (st == KILN_OK && n < sizeof head)
        st = kiln_fail(err, KILN_E_INPUT, "'%s' has %llu bytes of SPZ, less than a header",
                       in->name, (unsigned long long)n);
    if (st == KILN_OK) st = kiln_file_read_at(scratch, in->name, 0, head, sizeof head, err);
    close(scratch);
    return st == KILN_OK ? kiln_spz_header_parse(head, in->name, out, err) : st;
}

kiln_status kiln_spz_range_unpack(const kiln_spz_range *in, const kiln_spz_header *h, int to,
                                  uint64_t at, kiln_error *err)
{
    const uint64_t whole = KILN_SPZ_HEADER + h->at[KILN_SPZ_PLANES];
    uint64_t n = 0;
    const kiln_unpacking q = {.name = in->name,
                              .from = in->fd,
                              .begin = in->from,
                              .end = in->from + in->bytes,
                              .to = to,
                              .at = at,
                              .limit = UINT64_MAX,
                              .keep = whole,
                              .most = whole + KILN_UNPACK_MORE,
                              .why = "the SPZ in it is damaged"};
    KILN_TRY(kiln_unpack_range(kiln_packing_named("gzip"), &q, &n, err));
    if (n >= whole) return KILN_OK;
    return kiln_fail(
        err, KILN_E_INPUT,
        "the SPZ in '%s' unpacks to %llu bytes, but the %u Gaussians of its header take %llu",
        in->name, (unsigned long long)n, h->n, (unsigned long long)whole);
}
