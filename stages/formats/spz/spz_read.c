/* spz_read -- the reader of SPZ files, versions 1 to 4 (Niantic's; spz.h).
 *
 * Versions 1 to 3 are one gzip stream (packing.h), so that what is read here begins with the header
 * and is read where it lies. So is a version 4 inside gzip, which nianticlabs/spz accepts; its byte
 * 15 is 0, where a file of version 4 counts its streams. Such a file has zstd streams, which spool
 * unpacks to planes (spz_streams.h). Frames: an extension record decides; else --frame.
 */
#include "stages/formats/reader.h"

#include "base/file.h"
#include "base/memory.h"
#include "stages/formats/spz/spz_axes.h"
#include "stages/formats/spz/spz_rows.h"
#include "stages/formats/spz/spz_streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    char *name; /* for sentences */
    int fd, spool_fd;
    kiln_spz_header header;
    kiln_spz_streams streams;
    bool in_streams; /* a file of version 4 */
    uint32_t system; /* the axes of its numbers; 0: RDF, or taken for it */
    kiln_spz_decoder *decoder;
} spz_source;

static int probe_spz(const unsigned char *head, size_t len, const char *path)
{
    (void)path;
    return len >= 4 && memcmp(head, KILN_SPZ_MAGIC, 4) == 0 ? 100 : 0;
}

static void close_spz(kiln_source *source)
{
    spz_source *s = (spz_source *)source;
    if (!s) return;
    kiln_spz_decoder_free(s->decoder);
    if (s->spool_fd >= 0) close(s->spool_fd);
    if (s->fd >= 0) close(s->fd);
    free(s->name);
    free(s);
}

/* ---- open ------------------------------------------------------------------------------------ */

static void add_note(kiln_source_info *info, const char *text)
{
    const size_t n = strlen(info->notes);
    snprintf(info->notes + n, sizeof info->notes - n, "%s%s", n ? "; " : "", text);
}

/* Which axes the numbers have, and what the user is told about that. */
static void choose_axes(spz_source *s, uint32_t named, kiln_source_frame frame,
                        kiln_source_info *info)
{
    char text[200];
    s->system = named ? named : frame == KILN_FRAME_RUB ? KILN_SPZ_RUB : 0;
    snprintf(info->axes, sizeof info->axes, "%s",
             kiln_spz_system_name(s->system ? s->system : KILN_SPZ_RDF));
    if (named) {
        snprintf(
            text, sizeof text, "its axes are %s, as the file itself says%s%s",
            kiln_spz_system_name(named), named == KILN_SPZ_RDF ? "" : ", and are turned to RDF",
            kiln_spz_system_is_mirrored(named) ? ", which mirrors them because they are left-handed"
                                               : "");
        snprintf(info->remarks, sizeof info->remarks, "%s", text);
        if (frame == KILN_FRAME_AS_IS && named != KILN_SPZ_RDF)
            add_note(info, "the file itself names its axes, and as-is does not change that");
    } else {
        snprintf(info->remarks, sizeof info->remarks, "%s",
                 s->system ? "SPZ numbers are taken as RUB, as the format has them, and turned to "
                             "RDF; where the scene comes upside "
                             "down, --frame as-is leaves them"
                           : "SPZ numbers are left as they stand (as-is)");
    }
}

/* Header and planes lie in the file as they are. */
static kiln_status open_planes(spz_source *s, const kiln_source_at *at, uint64_t size,
                               uint32_t *named, kiln_source_info *info, kiln_error *err)
{
    const uint64_t end = KILN_SPZ_HEADER + s->header.at[KILN_SPZ_PLANES];
    if (!at->packing || strcmp(at->packing, "gzip") != 0)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is SPZ version %u without its gzip stream; pack it with gzip",
                         s->name, s->header.version);
    info->file_bytes = end;
    if (at->head_only) return KILN_OK;
    if (size < end)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s' unpacks to %llu bytes, but the %u Gaussians of its SPZ header take %llu", s->name,
            (unsigned long long)size, s->header.n, (unsigned long long)end);
    if (s->header.extended) return kiln_spz_extensions_read(s->fd, s->name, end, size, named, err);
    if (size > end) add_note(info, "bytes after the last Gaussian are ignored");
    return KILN_OK;
}

static kiln_status open_streams(spz_source *s, const kiln_source_at *at, uint64_t size,
                                uint32_t *named, kiln_source_info *info, kiln_error *err)
{
    KILN_TRY(
        kiln_spz_streams_read(s->fd, s->name, size, at->head_only, &s->header, &s->streams, err));
    info->spool_bytes = s->header.at[KILN_SPZ_PLANES];
    info->spool_ram = s->streams.window;
    if (at->spool) KILN_TRY(kiln_file_open(at->spool, &s->spool_fd, err));
    if (at->head_only || !s->header.extended) return KILN_OK;
    return kiln_spz_extensions_read(s->fd, s->name, KILN_SPZ_STREAMS_HEADER,
                                    s->streams.extensions_end, named, err);
}

static kiln_status read_spz_header(spz_source *s, uint64_t size, kiln_error *err)
{
    unsigned char head[KILN_SPZ_HEADER];
    if (size < sizeof head)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' has only %llu bytes of SPZ, less than a header; is it complete?",
                         s->name, (unsigned long long)size);
    KILN_TRY(kiln_file_read_at(s->fd, s->name, 0, head, sizeof head, err));
    return kiln_spz_header_parse(head, s->name, &s->header, err);
}

static kiln_status open_spz(const kiln_source_at *at, kiln_source **out, kiln_source_info *info,
                            kiln_error *err)
{
    kiln_status st = KILN_OK;
    spz_source *s = NULL;
    kiln_file_info file;
    uint32_t named = 0;
    *out = NULL;
    KILN_TRY(KILN_ALLOC(&s, 1, "SPZ reader", err));
    s->fd = s->spool_fd = -1;
    KILN_GO(KILN_ALLOC(&s->name, strlen(at->name) + 1, "path", err));
    strcpy(s->name, at->name);
    KILN_GO(kiln_file_open(at->path, &s->fd, err));
    KILN_GO(kiln_file_stat(at->path, &file, err));
    KILN_GO(read_spz_header(s, file.size, err));
    memset(info, 0, sizeof *info);
    s->in_streams = s->header.version == 4 && (!at->packing || s->header.n_streams);
    KILN_GO((s->in_streams ? open_streams : open_planes)(s, at, file.size, &named, info, err));
    info->kind = KILN_SCENE_SPLATS;
    info->n_rows = s->header.n;
    info->sh_degree = s->header.sh_degree;
    info->antialiased = s->header.antialiased;
    if (at->head_only && s->header.extended && !named) /* its records lie behind what is packed */
        snprintf(info->remarks, sizeof info->remarks,
                 "which axes its numbers have shows when the file is unpacked");
    else
        choose_axes(s, named, at->options->frame, info);
    KILN_GO(kiln_spz_decoder_new(&s->header, &s->decoder, err));
    *out = (kiln_source *)s;
    return KILN_OK;
done:
    close_spz((kiln_source *)s);
    return st;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static kiln_status spool_spz(kiln_source *source, int fd, unsigned threads, kiln_error *err)
{
    const spz_source *s = (const spz_source *)source;
    return kiln_spz_streams_spool(&s->streams, &s->header, s->fd, s->name, fd, threads, err);
}

static kiln_status read_spz_rows(kiln_source *source, uint64_t first, uint64_t n, uint64_t offset,
                                 kiln_rows *rows, uint64_t *next_offset, kiln_error *err)
{
    spz_source *s = (spz_source *)source;
    (void)offset; /* planes: rows are found by their number */
    *next_offset = UINT64_MAX;
    const kiln_spz_unpacked unpacked = {s->in_streams ? s->spool_fd : s->fd, s->name,
                                        s->in_streams ? 0 : KILN_SPZ_HEADER};
    KILN_TRY(kiln_spz_decoder_read(s->decoder, &unpacked, first, n, rows, err));
    if (s->system && s->system != KILN_SPZ_RDF)
        kiln_spz_rows_turn(rows, s->header.sh_degree, s->system);
    return KILN_OK;
}

static uint64_t spz_reader_ram(const kiln_source_info *info, kiln_read_pass pass)
{
    const uint64_t thread = pass == KILN_PASS_SPOOL || pass == KILN_PASS_SPOOL_THREAD
                                ? kiln_spz_streams_ram(info->spool_ram)
                                : 0;
    return pass == KILN_PASS_SPOOL_THREAD
               ? thread
               : thread + sizeof(spz_source) + kiln_spz_decoder_ram(info->sh_degree);
}

const kiln_reader kiln_reader_spz = {
    .name = "spz",
    .suffixes = "spz",
    .summary = "SPZ versions 1 to 4 (Niantic; Scaniverse, Adobe, SuperSplat); see --frame",
    .packed = KILN_PACKED_HEAD,
    .has_options = true,
    .ram = spz_reader_ram,
    .probe = probe_spz,
    .open = open_spz,
    .spool = spool_spz,
    .read = read_spz_rows,
    .close = close_spz,
};
