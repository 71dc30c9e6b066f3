/* product_place -- see the header. */
#include "stages/products/product_place.h"

#include "base/file.h"
#include "stages/products/product_mark.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void kiln_product_look(const char *path, kiln_product_seen *out)
{
    struct stat s;
    *out = (kiln_product_seen){.overwrite = out->overwrite,
                               .keeps_ours = out->keeps_ours,
                               .bake = out->bake,
                               .there = lstat(path, &s) == 0};
    if (!out->there) return;
    out->device = s.st_dev;
    out->inode = s.st_ino;
    out->size = (uint64_t)s.st_size;
    out->mtime_ns = (int64_t)s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec;
}

static bool is_same(const kiln_product_seen *a, const kiln_product_seen *b)
{
    return a->there == b->there && a->device == b->device && a->inode == b->inode &&
           a->size == b->size && a->mtime_ns == b->mtime_ns;
}

static bool is_ours(const char *path, kiln_hash bake)
{
    const kiln_mark mark = kiln_product_mark_of(path, bake);
    return mark == KILN_MARK_OURS || mark == KILN_MARK_SEALED;
}

/* Both are read to the end only if they are alike. */
static bool has_same_bytes(const char *a, const char *b)
{
    enum { STEP = 1 << 16 };
    kiln_file_info x, y;
    unsigned char *bytes = NULL;
    int in[2] = {-1, -1};
    bool same = kiln_file_stat(a, &x, NULL) == KILN_OK && kiln_file_stat(b, &y, NULL) == KILN_OK &&
                x.size == y.size && kiln_file_open(a, &in[0], NULL) == KILN_OK &&
                kiln_file_open(b, &in[1], NULL) == KILN_OK &&
                KILN_ALLOC_UNSET(&bytes, 2 * STEP, "two files", NULL) == KILN_OK;
    for (uint64_t at = 0; same && at < x.size; at += STEP) {
        const size_t n = x.size - at < STEP ? (size_t)(x.size - at) : STEP;
        same = kiln_file_read_at(in[0], a, at, bytes, n, NULL) == KILN_OK &&
               kiln_file_read_at(in[1], b, at, bytes + STEP, n, NULL) == KILN_OK &&
               memcmp(bytes, bytes + STEP, n) == 0;
    }
    for (int i = 0; i < 2; i++)
        if (in[i] >= 0) (void)close(in[i]);
    free(bytes);
    return same;
}

/* What may go: what stood there before, what -w allows, what is ours; and a file with the same
 * bytes, with which nothing is lost. A worker that died right behind its rename has left one, and
 * another one computes the unit again. */
static bool may_replace(const char *temporary, const char *path, const kiln_product_seen *seen,
                        const kiln_product_seen *now)
{
    struct stat s;
    if (is_same(now, seen) || seen->overwrite) return true;
    if (!seen->keeps_ours && is_ours(path, seen->bake)) return true;
    return lstat(path, &s) == 0 && S_ISREG(s.st_mode) && has_same_bytes(temporary, path);
}

static kiln_status rename_failed(const char *temporary, const char *path, int why, kiln_error *err)
{
    return kiln_fail(err, KILN_E_IO, "cannot rename '%s' to '%s': %s", temporary, path,
                     strerror(why));
}

/* *again: something appeared there since it was looked at. */
static kiln_status rename_to_free(const char *temporary, const char *path, bool *again,
                                  kiln_error *err)
{
    struct stat s;
    *again = false;
    if (renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE) == 0) return KILN_OK;
    *again = errno == EEXIST;
    if (*again) return KILN_OK;
    if (errno != EINVAL && errno != ENOSYS) return rename_failed(temporary, path, errno, err);
    *again = lstat(path, &s) == 0; /* a file system that cannot do both at once */
    if (*again || rename(temporary, path) == 0) return KILN_OK;
    return rename_failed(temporary, path, errno, err);
}

kiln_status kiln_product_refuse_made(const char *path, kiln_error *err)
{
    return kiln_fail(err, KILN_E_USAGE,
                     "'%s' was made or changed by another program during this run, so it is not "
                     "replaced; choose another place, or replace it with -w, --overwrite",
                     path);
}

kiln_status kiln_product_put(const char *temporary, const char *path, const kiln_product_seen *seen,
                             kiln_error *err)
{
    enum { TRIES = 8 }; /* others put something there and take it away */
    kiln_product_note(temporary, path);
    if (!kiln_hash_is_zero(seen->bake)) kiln_product_note_export(temporary, path, seen->bake);
    for (int i = 0; i < TRIES; i++) {
        bool again;
        kiln_product_seen now = *seen;
        kiln_product_look(path, &now);
        if (!now.there) {
            KILN_TRY(rename_to_free(temporary, path, &again, err));
            if (!again) return KILN_OK;
            continue;
        }
        KILN_TRY(kiln_file_replaceable(path, err));
        if (!may_replace(temporary, path, seen, &now)) return kiln_product_refuse_made(path, err);
        return rename(temporary, path) == 0 ? KILN_OK : rename_failed(temporary, path, errno, err);
    }
    return kiln_fail(err, KILN_E_IO,
                     "cannot give '%s' its name: other programs use it at the same time", path);
}

static kiln_status fill_product_file(int fd, const char *path, const void *data, size_t size,
                                     kiln_error *err)
{
    kiln_status st = kiln_file_write_at(fd, path, 0, data, size, err);
    if (st == KILN_OK && fsync(fd) != 0) st = kiln_file_write_failed(path, errno, err);
    if (close(fd) != 0 && st == KILN_OK) st = kiln_file_write_failed(path, errno, err);
    return st;
}

kiln_status kiln_product_write(const char *path, const void *data, size_t size,
                               const kiln_product_seen *seen, kiln_error *err)
{
    char temporary[KILN_PATH_MAX];
    int fd;
    KILN_TRY(kiln_file_replaceable(path, err));
    KILN_TRY(kiln_make_parents(path, err));
    KILN_TRY(kiln_temporary_create(path, temporary, &fd, err));
    kiln_status st = fill_product_file(fd, path, data, size, err);
    if (st == KILN_OK) st = kiln_product_put(temporary, path, seen, err);
    if (st != KILN_OK) (void)unlink(temporary); /* the first reason is the one to tell */
    return st;
}
