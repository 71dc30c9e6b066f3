/* import_source -- reads a whole file of rows through its reader and the sanitiser, for tests: rows
 * interleaved, as the side-cars have them. */
#ifndef KILN_TESTS_UNIT_IMPORT_SOURCE_H
#define KILN_TESTS_UNIT_IMPORT_SOURCE_H

#include "base/memory.h"
#include "stages/files/packing.h"
#include "stages/formats/clean_rows.h"
#include "stages/formats/reader.h"
#include "stages/formats/spool.h"
#include "stages/import/scan.h"
#include "tests/unit/test_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct {
    kiln_scan scan;
    kiln_row_counts counts;
    uint64_t n; /* rows that stay */
    /* per row: xyz, quat 4, log scales 3, logit, sh 3 (K + 1); points: xyz, rgb */
    uint32_t floats;
    float *rows;          /* [n][floats] owned */
    uint32_t *source_row; /* [n] owned */
    double *extras;       /* [n][info.n_extras] owned */
} import_source;

static inline void import_source_free(import_source *s)
{
    free(s->rows);
    free(s->source_row);
    free(s->extras);
    memset(s, 0, sizeof *s);
}

static inline double import_source_value(const void *data, kiln_type t, uint64_t i)
{
    switch (t) {
    case KILN_TYPE_U8:
        return ((const uint8_t *)data)[i];
    case KILN_TYPE_I8:
        return ((const int8_t *)data)[i];
    case KILN_TYPE_U16:
        return ((const uint16_t *)data)[i];
    case KILN_TYPE_I16:
        return ((const int16_t *)data)[i];
    case KILN_TYPE_U32:
        return ((const uint32_t *)data)[i];
    case KILN_TYPE_I32:
        return ((const int32_t *)data)[i];
    case KILN_TYPE_F32:
        return (double)((const float *)data)[i];
    case KILN_TYPE_F64:
        return ((const double *)data)[i];
    }
    return 0;
}

/* Rows of one block behind those already there. */
static inline void import_source_take(import_source *s, const kiln_rows *r, const kiln_clean *c)
{
    const kiln_source_info *info = &s->scan.info;
    uint32_t k3 = 3 * ((info->sh_degree + 1) * (info->sh_degree + 1) - 1);
    for (uint64_t i = 0; i < c->n; i++) {
        float *o = s->rows + (s->n + i) * s->floats;
        for (uint32_t a = 0; a < 3; a++) *o++ = c->means[a * c->n + i];
        for (uint32_t a = 0; a < 4 && r->quats; a++) *o++ = r->quats[a * c->n + i];
        for (uint32_t a = 0; a < 3 && r->quats; a++) *o++ = r->log_scales[a * c->n + i];
        if (r->quats) *o++ = r->opacity_logits[i];
        for (uint32_t a = 0; a < 3; a++) *o++ = (r->quats ? r->sh0 : r->rgb)[a * c->n + i];
        for (uint32_t a = 0; a < k3; a++) *o++ = r->shN[a * c->n + i];
        s->source_row[s->n + i] = c->source_row[i];
        for (uint32_t e = 0; e < info->n_extras; e++)
            s->extras[(s->n + i) * info->n_extras + e] =
                import_source_value(r->extras[e], info->extras[e].type, i);
    }
    s->n += c->n;
}

/* A file in memory in the place of scratch; path becomes its name. */
static inline int import_source_scratch(char path[64])
{
    const int fd = memfd_create("scratch", MFD_CLOEXEC);
    if (fd < 0) abort();
    (void)snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

/* As kiln_prepare does it, without workers. */
static inline kiln_status import_source_prepare(const kiln_reader *reader, kiln_source_info *info,
                                                kiln_prepared *p, kiln_error *err)
{
    const kiln_packing *packing = NULL;
    kiln_source *source = NULL;
    KILN_TRY(kiln_packing_find(p->place.path, &packing, err));
    if (packing) {
        (void)snprintf(p->place.packing, sizeof p->place.packing, "%s", packing->name);
        p->unpacked_fd = import_source_scratch(p->place.unpacked);
        KILN_TRY(
            kiln_unpack_whole(packing, p->place.path, p->unpacked_fd, info->file_bytes, 100, err));
    }
    const kiln_source_at at = kiln_place_at(&p->place);
    KILN_TRY(reader->open(&at, &source, info, err));
    kiln_status st = KILN_OK;
    if (info->spool_bytes) p->spool_fd = import_source_scratch(p->place.spool);
    if (info->spool_bytes) st = reader->spool(source, p->spool_fd, 2, err);
    reader->close(source);
    return st;
}

/* As kiln-import does it: scan, then block by block through a reader opened anew, at the offsets
 * that the scan gave. */
static inline kiln_status import_source_read_with(const char *path,
                                                  const kiln_read_options *options,
                                                  import_source *s, kiln_error *err)
{
    const kiln_reader *reader;
    kiln_buffer offsets = {0};
    kiln_source *source = NULL;
    kiln_rows rows = {0};
    kiln_clean clean = {0};
    kiln_source_info *again = NULL;
    kiln_status st;
    kiln_prepared p = {.unpacked_fd = KILN_PREPARED_NONE, .spool_fd = KILN_PREPARED_NONE};
    (void)snprintf(p.place.path, sizeof p.place.path, "%s", path);
    p.place.options = *options;
    memset(s, 0, sizeof *s);
    KILN_GO(KILN_ALLOC(&again, 1, "info", err));
    KILN_GO(kiln_source_look(path, options, &reader, again, err));
    KILN_GO(import_source_prepare(reader, again, &p, err));
    const kiln_source_at at = kiln_place_at(&p.place);
    KILN_GO(kiln_scan_source(NULL, reader, &at, &s->scan, &offsets, err));
    const kiln_source_info *info = &s->scan.info;
    s->floats = info->kind == KILN_SCENE_SPLATS
                    ? 11 + 3 * (info->sh_degree + 1) * (info->sh_degree + 1)
                    : 6;
    KILN_GO(KILN_ALLOC(&s->rows, info->n_rows * s->floats, "rows", err));
    KILN_GO(KILN_ALLOC(&s->source_row, info->n_rows, "rows", err));
    KILN_GO(KILN_ALLOC(&s->extras, info->n_rows * info->n_extras, "extras", err));
    KILN_GO(reader->open(&at, &source, again, err));
    KILN_GO(kiln_rows_alloc(&rows, info, err));
    KILN_GO(kiln_clean_alloc(&clean, err));
    /* backwards: blocks are independent of what was read before */
    for (uint64_t b = s->scan.n_blocks; b-- > 0;) {
        uint64_t next, first = b * KILN_BLOCK_ROWS, left = info->n_rows - first;
        KILN_GO(reader->read(source, first, left < KILN_BLOCK_ROWS ? left : KILN_BLOCK_ROWS,
                             ((const uint64_t *)offsets.data)[b], &rows, &next, err));
        kiln_rows_clean(&rows, info, s->scan.origin, first, &clean, &s->counts);
        import_source_take(s, &rows, &clean);
    }
done:
    if (source) reader->close(source);
    free(again);
    kiln_clean_release(&clean);
    kiln_rows_release(&rows);
    kiln_buffer_release(&offsets);
    kiln_prepared_release(&p);
    return st;
}

static inline kiln_status import_source_read(const char *path, import_source *s, kiln_error *err)
{
    return import_source_read_with(path, &(kiln_read_options){.frame = KILN_FRAME_AS_IS}, s, err);
}

/* A scratch file with this content; the path is static. */
static inline const char *import_source_file(const char *name, const void *data, size_t bytes)
{
    static char path[512];
    (void)snprintf(path, sizeof path, "%s/import-%d-%s", test_folder_parent(), (int)getpid(), name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, bytes, f) != bytes || fclose(f) != 0) abort();
    return path;
}

#endif
