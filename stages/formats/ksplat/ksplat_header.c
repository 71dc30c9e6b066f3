/* ksplat_header -- every count is a number that somebody else chose: sizes are added up in 64 bits,
 * where products of two of them fit, and compared with the file before the next one is. */
#include "stages/formats/ksplat/ksplat_header.h"

#include "base/endian.h"
#include "base/file.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER = KILN_KSPLAT_HEADER, SECTION = KILN_KSPLAT_SECTION, DEGREE_MAX = 3 };

typedef struct {
    int fd;
    const char *path;
    kiln_ksplat_header *h;
    uint64_t at;        /* where the data of the next section begins */
    uint64_t n_partial; /* in the sections so far */
    uint32_t n_rows;    /* of the header */
    uint32_t n_headers; /* of sections */
} parser;

#define BAD(p, format, ...) kiln_fail(err, KILN_E_INPUT, "'%s': " format, (p)->path, ##__VA_ARGS__)

bool kiln_ksplat_begins(const unsigned char *head, size_t len)
{
    enum { ENOUGH = 512 };
    if (len < ENOUGH || head[0] != KILN_KSPLAT_MAJOR || head[1] != KILN_KSPLAT_MINOR) return false;
    if (kiln_get_u16(head + KILN_KSPLAT_LEVEL_AT) > KILN_KSPLAT_LEVEL_MAX) return false;
    if (kiln_get_u32(head + KILN_KSPLAT_SECTIONS_CAPACITY_AT) == 0 ||
        kiln_get_u32(head + KILN_KSPLAT_ROWS_AT) == 0)
        return false;
    /* what follows the fields is left as it was allocated */
    for (size_t i = KILN_KSPLAT_FIELDS; i < ENOUGH; i++)
        if (head[i]) return false;
    return true;
}

static double sh_limit(float stored, double otherwise)
{
    return stored != 0 && !isnan(stored) ? (double)stored : otherwise;
}

static kiln_status parse_header(parser *p, kiln_error *err)
{
    unsigned char b[HEADER];
    if (p->h->file_bytes < HEADER)
        return BAD(p,
                   "%llu bytes are less than the %d of the header of a .ksplat file; is the "
                   "download complete?",
                   (unsigned long long)p->h->file_bytes, HEADER);
    KILN_TRY(kiln_file_read_at(p->fd, p->path, 0, b, HEADER, err));
    if (b[0] != KILN_KSPLAT_MAJOR || b[1] != KILN_KSPLAT_MINOR)
        return BAD(p, "it says that it is .ksplat version %u.%u; only 0.1 exists", b[0], b[1]);
    p->h->level = kiln_get_u16(b + KILN_KSPLAT_LEVEL_AT);
    if (p->h->level > KILN_KSPLAT_LEVEL_MAX)
        return BAD(p, "its compression level is %u; there are 0, 1 and 2", p->h->level);
    p->n_headers = kiln_get_u32(b + KILN_KSPLAT_SECTIONS_CAPACITY_AT);
    p->n_rows = kiln_get_u32(b + KILN_KSPLAT_ROWS_AT);
    p->h->sh_min = sh_limit(kiln_get_f32(b + KILN_KSPLAT_SH_LEAST_AT), -KILN_KSPLAT_SH_RANGE);
    p->h->sh_max = sh_limit(kiln_get_f32(b + KILN_KSPLAT_SH_MOST_AT), KILN_KSPLAT_SH_RANGE);
    if ((p->h->file_bytes - HEADER) / SECTION < p->n_headers)
        return BAD(
            p, "%u headers of sections do not fit into its %llu bytes; is the download complete?",
            p->n_headers, (unsigned long long)p->h->file_bytes);
    if (p->n_rows == 0) return BAD(p, "it declares 0 Gaussians; there is nothing to import");
    p->at = HEADER + (uint64_t)SECTION * p->n_headers;
    return KILN_OK;
}

/* What positions are packed with, of a section that has rows. */
static kiln_status parse_buckets(parser *p, uint32_t number, const unsigned char *b,
                                 uint32_t n_centres, kiln_ksplat_section *s, kiln_error *err)
{
    const float size = kiln_get_f32(b + KILN_KSPLAT_BLOCK_SIZE_AT);
    const uint32_t range = kiln_get_u32(b + KILN_KSPLAT_RANGE_AT),
                   centre_bytes = kiln_get_u16(b + KILN_KSPLAT_CENTRE_BYTES_AT);
    s->block_size = (double)size;
    s->range = range ? range : KILN_KSPLAT_RANGE;
    if (centre_bytes != KILN_KSPLAT_CENTRE)
        return BAD(p, "section %u has buckets of %u bytes; a centre has %d", number, centre_bytes,
                   KILN_KSPLAT_CENTRE);
    if (!(size > 0) || isinf(size))
        return BAD(p, "the block size of section %u is no positive number", number);
    if ((uint64_t)s->n_full + s->n_partial > n_centres)
        return BAD(p, "section %u has %u buckets, but %u full and %u partly filled ones", number,
                   n_centres, s->n_full, s->n_partial);
    if ((uint64_t)s->n_full * s->bucket_rows > s->n_rows)
        return BAD(p, "section %u has %u full buckets of %u, more than its %llu Gaussians", number,
                   s->n_full, s->bucket_rows, (unsigned long long)s->n_rows);
    return KILN_OK;
}

static kiln_status add_section(parser *p, const kiln_ksplat_section *s, kiln_error *err)
{
    kiln_ksplat_header *h = p->h;
    if (h->n_sections == KILN_KSPLAT_SECTIONS_MAX)
        return BAD(p, "more than %d sections have Gaussians", KILN_KSPLAT_SECTIONS_MAX);
    h->sections[h->n_sections++] = *s;
    h->n_rows += s->n_rows;
    if (s->sh_degree > h->sh_degree) h->sh_degree = s->sh_degree;
    return KILN_OK;
}

static kiln_status parse_section(parser *p, uint32_t number, const unsigned char *b,
                                 kiln_error *err)
{
    const uint32_t level = p->h->level,
                   capacity = kiln_get_u32(b + KILN_KSPLAT_SECTION_CAPACITY_AT);
    const uint32_t n_centres = kiln_get_u32(b + KILN_KSPLAT_BUCKETS_AT);
    kiln_ksplat_section s = {.first_row = p->h->n_rows, .first_partial = p->n_partial};
    s.n_rows = kiln_get_u32(b + KILN_KSPLAT_SECTION_ROWS_AT);
    s.sh_degree = kiln_get_u16(b + KILN_KSPLAT_DEGREE_AT);
    s.bucket_rows = kiln_get_u32(b + KILN_KSPLAT_BUCKET_ROWS_AT);
    s.n_full = kiln_get_u32(b + KILN_KSPLAT_FULL_AT);
    s.n_partial = kiln_get_u32(b + KILN_KSPLAT_PARTIAL_AT);
    if (s.n_rows > capacity)
        return BAD(p, "section %u holds %llu Gaussians but has room for %u", number,
                   (unsigned long long)s.n_rows, capacity);
    if (s.sh_degree > DEGREE_MAX)
        return BAD(p, "section %u has SH degree %u; at most %d is read", number, s.sh_degree,
                   DEGREE_MAX);
    s.row_bytes = kiln_ksplat_row_bytes(level, s.sh_degree);
    s.lengths_at = p->at;
    s.centres_at = s.lengths_at + KILN_KSPLAT_LENGTH * (uint64_t)s.n_partial;
    s.rows_at = s.centres_at + (uint64_t)kiln_get_u16(b + KILN_KSPLAT_CENTRE_BYTES_AT) * n_centres;
    p->at = s.rows_at + (uint64_t)s.row_bytes * capacity;
    if (p->at > p->h->file_bytes)
        return BAD(p, "section %u ends at byte %llu of a file of %llu; is the download complete?",
                   number, (unsigned long long)p->at, (unsigned long long)p->h->file_bytes);
    if (s.n_rows == 0) return KILN_OK;
    if (level) KILN_TRY(parse_buckets(p, number, b, n_centres, &s, err));
    p->n_partial += s.n_partial;
    return add_section(p, &s, err);
}

kiln_status kiln_ksplat_header_read(int fd, const char *path, const char *name,
                                    kiln_ksplat_header *out, kiln_error *err)
{
    parser p = {.fd = fd, .path = name, .h = out};
    kiln_file_info file;
    memset(out, 0, sizeof *out);
    KILN_TRY(kiln_file_stat(path, &file, err));
    out->file_bytes = file.size;
    KILN_TRY(parse_header(&p, err));
    const uint32_t capacity =
        p.n_headers < KILN_KSPLAT_SECTIONS_MAX ? p.n_headers : KILN_KSPLAT_SECTIONS_MAX;
    KILN_TRY(KILN_ALLOC(&out->sections, capacity, "sections", err));
    for (uint32_t i = 0; i < p.n_headers; i++) {
        unsigned char b[SECTION];
        KILN_TRY(kiln_file_read_at(fd, name, HEADER + (uint64_t)SECTION * i, b, SECTION, err));
        KILN_TRY(parse_section(&p, i, b, err));
    }
    out->used_bytes = p.at;
    if (out->n_rows != p.n_rows)
        return BAD(&p, "its header declares %u Gaussians, its sections hold %llu", p.n_rows,
                   (unsigned long long)out->n_rows);
    if (out->n_rows > UINT32_MAX - 1)
        return BAD(&p, "ids have 32 bits, so at most 4294967294 rows can be read");
    return KILN_OK;
}

void kiln_ksplat_header_release(kiln_ksplat_header *h)
{
    free(h->sections);
    memset(h, 0, sizeof *h);
}

const kiln_ksplat_section *kiln_ksplat_section_of(const kiln_ksplat_header *h, uint64_t row)
{
    uint32_t lo = 0, hi = h->n_sections - 1; /* the last one that begins at or before the row */
    while (lo < hi) {
        const uint32_t middle = hi - (hi - lo) / 2;
        if (h->sections[middle].first_row <= row)
            lo = middle;
        else
            hi = middle - 1;
    }
    return &h->sections[lo];
}
