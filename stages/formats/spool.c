/* spool -- see spool.h. */
#include "stages/formats/spool.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "base/option.h"
#include "stages/files/packing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

kiln_source_at kiln_place_at(const kiln_place *p)
{
    return (kiln_source_at){.path = p->unpacked[0] ? p->unpacked : p->path,
                            .name = p->path,
                            .packing = p->packing[0] ? p->packing : NULL,
                            .spool = p->spool[0] ? p->spool : NULL,
                            .options = &p->options};
}

void kiln_prepared_release(kiln_prepared *p)
{
    if (p->unpacked_fd >= 0) close(p->unpacked_fd); /* it has no name, so it is gone */
    if (p->spool_fd >= 0) close(p->spool_fd);
    p->unpacked_fd = p->spool_fd = KILN_PREPARED_NONE;
}

kiln_status kiln_spool_write(int fd, const char *path, uint64_t offset, const void *data,
                             uint64_t bytes, kiln_error *err)
{
    const int why = kiln_file_pwrite(fd, offset, data, bytes, NULL);
    return why ? kiln_scratch_write_failed(fd, path, why, err) : KILN_OK;
}

/* ---- the parent ------------------------------------------------------------------------------ */

static kiln_status run_unit(kiln_run *r, const char *name, kiln_spool_request *q, uint64_t ram,
                            uint64_t ram_thread, kiln_error *err)
{
    kiln_unit u = {.payload = q,
                   .payload_bytes = sizeof *q,
                   .ram = ram,
                   .ram_thread = ram_thread,
                   .volatile_result = true};
    snprintf(u.name, sizeof u.name, "%s", name);
    const kiln_status st = kiln_run_units(r, name, &u, 1, err);
    kiln_units_release(&u, 1);
    return st;
}

static kiln_status unpack_to_scratch(kiln_run *r, const char *manifest, kiln_spool_request *q,
                                     kiln_prepared *out, kiln_error *err)
{
    KILN_TRY(kiln_scratch_unnamed(manifest, &out->unpacked_fd, out->place.unpacked, err));
    q->place = out->place;
    return run_unit(r, KILN_UNPACK_UNIT, q, KILN_UNPACK_RAM, 0, err);
}

/* Scratch shares its disk with others: it must not take the last byte. */
static kiln_status check_scratch_space(int fd, const char *path, uint64_t bytes, kiln_error *err)
{
    struct statvfs fs;
    char need[32], free_text[32], place[KILN_PATH_MAX];
    if (fstatvfs(fd, &fs) != 0) return KILN_OK; /* the write tells */
    const uint64_t is_free = (uint64_t)fs.f_bavail * fs.f_frsize,
                   whole = (uint64_t)fs.f_blocks * fs.f_frsize;
    const uint64_t keep = kiln_min_u64(whole / 16, KILN_SCRATCH_KEPT_FREE);
    if (is_free >= keep && is_free - keep >= bytes) return KILN_OK;
    kiln_fd_place_text(fd, place, sizeof place);
    return kiln_fail(err, KILN_E_IO,
                     "'%s' needs %s of scratch%s, but only %s are free there; make room, or name "
                     "another folder with "
                     "--scratch-dir",
                     path, kiln_size_text(bytes, need), place, kiln_size_text(is_free, free_text));
}

static kiln_status spool_to_scratch(kiln_run *r, const char *manifest, const kiln_reader *reader,
                                    const kiln_source_info *info, kiln_spool_request *q,
                                    kiln_prepared *out, kiln_error *err)
{
    KILN_TRY(kiln_scratch_unnamed(manifest, &out->spool_fd, out->place.spool, err));
    KILN_TRY(check_scratch_space(out->spool_fd, out->place.path, info->spool_bytes, err));
    snprintf(q->reader, sizeof q->reader, "%s", reader->name);
    q->place = out->place;
    return run_unit(r, KILN_SPOOL_UNIT, q, kiln_reader_ram(reader, info, KILN_PASS_SPOOL),
                    kiln_reader_ram(reader, info, KILN_PASS_SPOOL_THREAD), err);
}

static kiln_status look_again(const kiln_reader *reader, const kiln_place *place,
                              kiln_source_info *info, kiln_error *err)
{
    kiln_source *source = NULL;
    const kiln_source_at at = kiln_place_at(place);
    memset(info, 0, sizeof *info);
    KILN_TRY(reader->open(&at, &source, info, err));
    reader->close(source);
    return KILN_OK;
}

static kiln_status prepare_source(kiln_run *r, const char *manifest, const kiln_reader *reader,
                                  kiln_spool_request *q, kiln_source_info *info, kiln_prepared *out,
                                  kiln_error *err)
{
    const kiln_reader *same;
    const kiln_packing *packing = NULL;
    KILN_TRY(kiln_packing_find(out->place.path, &packing, err));
    if (!packing && !reader->spool) return KILN_OK;
    if (packing) {
        snprintf(out->place.packing, sizeof out->place.packing, "%s", packing->name);
        KILN_TRY(kiln_source_look(out->place.path, &out->place.options, &same, info, err));
        q->file_bytes = info->file_bytes;
        KILN_TRY(unpack_to_scratch(r, manifest, q, out, err));
    }
    if (!reader->spool) return KILN_OK;
    KILN_TRY(look_again(reader, &out->place, info, err));
    return info->spool_bytes ? spool_to_scratch(r, manifest, reader, info, q, out, err) : KILN_OK;
}

kiln_status kiln_prepare(kiln_run *r, const char *manifest, const kiln_source_wanted *wanted,
                         kiln_prepared *out, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_spool_request *q = NULL;
    kiln_source_info *info = NULL; /* too large for the stack */
    *out = (kiln_prepared){.unpacked_fd = KILN_PREPARED_NONE, .spool_fd = KILN_PREPARED_NONE};
    snprintf(out->place.path, sizeof out->place.path, "%s", wanted->path);
    out->place.options = *wanted->options;
    KILN_GO(KILN_ALLOC(&q, 1, "a source", err));
    KILN_GO(KILN_ALLOC(&info, 1, "what a file says of itself", err));
    q->file = wanted->file;
    q->max_inflated = wanted->max_inflated;
    KILN_GO(prepare_source(r, manifest, wanted->reader, q, info, out, err));
done:
    free(info);
    free(q);
    return st;
}

/* ---- the worker ------------------------------------------------------------------------------ */

static kiln_status unpack_into(const kiln_spool_request *q, int fd, kiln_error *err)
{
    const kiln_packing *packing;
    KILN_TRY(kiln_packing_find(q->place.path, &packing, err));
    if (!packing) return kiln_file_unchanged(q->place.path, &q->file, err);
    return kiln_unpack_whole(packing, q->place.path, fd, q->file_bytes, q->max_inflated, err);
}

static kiln_status spool_into(const kiln_spool_request *q, int fd, unsigned threads,
                              kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_source *source = NULL;
    kiln_source_info *info = NULL;
    const kiln_reader *reader = kiln_reader_named(q->reader);
    kiln_source_at at = kiln_place_at(&q->place);
    at.spool = NULL; /* is just being filled */
    if (!reader || !reader->spool)
        return kiln_fail(err, KILN_E_BUG, "no reader with a spool is called '%s'", q->reader);
    KILN_GO(KILN_ALLOC(&info, 1, "what a file says of itself", err));
    KILN_GO(reader->open(&at, &source, info, err));
    KILN_GO(reader->spool(source, fd, threads, err));
done:
    if (source) reader->close(source);
    free(info);
    return st;
}

kiln_status kiln_spool_unit(kiln_worker *w, const kiln_spool_request *q, kiln_error *err)
{
    const char *scratch = q->reader[0] ? q->place.spool : q->place.unpacked;
    const int fd = open(scratch, O_RDWR | O_TRUNC | O_CLOEXEC);
    if (fd < 0)
        return kiln_fail(err, KILN_E_IO, "cannot open the scratch file for '%s': %s", q->place.path,
                         strerror(errno));
    kiln_status st =
        q->reader[0] ? spool_into(q, fd, kiln_worker_threads(w), err) : unpack_into(q, fd, err);
    if (close(fd) != 0 && st == KILN_OK)
        st = kiln_fail(err, KILN_E_IO, "cannot write scratch for '%s': %s", q->place.path,
                       strerror(errno));
    return st == KILN_OK ? kiln_file_unchanged(q->place.path, &q->file, err) : st;
}
