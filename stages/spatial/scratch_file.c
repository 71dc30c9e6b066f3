/* Scratch files: plain reads and writes at places, and the words for a disk that is full. */
#include "stages/spatial/scratch_file.h"

#include "base/file.h"
#include "base/log.h"
#include "base/option.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { EARLY_BYTES = 1 << 18 };

static bool part_path(const kiln_scratch_file *f, char out[KILN_PATH_MAX])
{
    return (size_t)snprintf(out, KILN_PATH_MAX, "%s.part", f->path) < KILN_PATH_MAX;
}

/* A write at `at` failed with the errno `why`. */
static kiln_status fail_write(const kiln_scratch_file *f, uint64_t at, int why, kiln_error *err)
{
    struct statvfs fs;
    char size[32], free_text[32] = "an unknown number of bytes";
    if (why != ENOSPC && why != EDQUOT && why != EFBIG)
        return kiln_fail(err, KILN_E_IO, "cannot write '%s' at byte %llu: %s", f->path,
                         (unsigned long long)at, strerror(why));
    if (fstatvfs(f->fd, &fs) == 0) kiln_size_text((uint64_t)fs.f_bavail * fs.f_frsize, free_text);
    return kiln_fail(err, KILN_E_IO,
                     "cannot write scratch '%s' of %s at byte %llu: %s; %s are free there; make "
                     "room, name another folder "
                     "with --scratch-dir, or give more memory with --ram",
                     f->path, kiln_size_text(f->bytes, size), (unsigned long long)at, strerror(why),
                     free_text);
}

/* Where the file system cannot take room beforehand, the writes will tell. */
static kiln_status reserve_scratch(const kiln_scratch_file *f, kiln_error *err)
{
    int rc;
    if (f->bytes == 0) return KILN_OK;
    do rc = fallocate(f->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)f->bytes);
    while (rc != 0 && errno == EINTR);
    if (rc == 0 || errno == EOPNOTSUPP || errno == ENOSYS) return KILN_OK;
    return fail_write(f, 0, errno, err);
}

kiln_status kiln_scratch_create(const char *folder, const char *name, uint64_t bytes,
                                kiln_scratch_file *out, kiln_error *err)
{
    char part[KILN_PATH_MAX];
    *out = (kiln_scratch_file){.fd = -1, .is_new = true, .bytes = bytes};
    KILN_TRY(kiln_path_join(out->path, sizeof out->path, folder, name, err));
    if (bytes > INT64_MAX || !part_path(out, part)) {
        kiln_status st =
            kiln_fail(err, KILN_E_INPUT, "cannot make a scratch file '%s' of %llu bytes", out->path,
                      (unsigned long long)bytes);
        *out = (kiln_scratch_file){0};
        return st;
    }
    (void)unlink(part); /* of a run that was killed, or a stranger's link to another file */
    out->seal = kiln_seal_new();
    if (!out->seal) {
        *out = (kiln_scratch_file){0};
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for a scratch file");
    }
    out->fd = open(part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    const kiln_status st = out->fd < 0 ? fail_write(out, 0, errno, err) : reserve_scratch(out, err);
    if (st != KILN_OK) kiln_scratch_drop(out);
    return st;
}

kiln_status kiln_scratch_write(const kiln_scratch_file *f, uint64_t at, const void *data,
                               size_t bytes, kiln_error *err)
{
    size_t done;
    if (at > f->bytes || bytes > f->bytes - at)
        return kiln_fail(err, KILN_E_BUG,
                         "%zu bytes at byte %llu lie beyond scratch '%s' of %llu bytes", bytes,
                         (unsigned long long)at, f->path, (unsigned long long)f->bytes);
    const int why = kiln_file_pwrite(f->fd, at, data, bytes, &done);
    if (why) return fail_write(f, at + done, why, err);
    if (f->seal && !f->stays_unnamed) KILN_TRY(kiln_seal_note(f->seal, at, data, bytes, err));
    /* The disk begins at once, so that kiln_scratch_finish finds little left to wait for; that it
     * can is no promise. */
    if (bytes >= EARLY_BYTES && !f->left_in_cache)
        (void)sync_file_range(f->fd, (off_t)at, (off_t)bytes, SYNC_FILE_RANGE_WRITE);
    return KILN_OK;
}

kiln_status kiln_scratch_read(const kiln_scratch_file *f, uint64_t at, void *data, size_t bytes,
                              kiln_error *err)
{
    const kiln_status st = kiln_file_read_at(f->fd, f->path, at, data, bytes, err);
    if (st != KILN_E_INPUT) return st;
    return kiln_fail(err, KILN_E_IO,
                     "scratch '%s' ends before byte %llu; run the same command again", f->path,
                     (unsigned long long)(at + bytes));
}

/* The name may only be there when the bytes are: a power cut must not leave a whole file of
 * zeros. */
kiln_status kiln_scratch_finish(kiln_scratch_file *f, kiln_error *err)
{
    char part[KILN_PATH_MAX];
    kiln_status st = KILN_OK;
    int why = 0;
    if (!part_path(f, part))
        return kiln_fail(err, KILN_E_BUG, "the path of scratch '%s' is too long", f->path);
    if (f->seal) st = kiln_seal_write(f->seal, f->fd, f->path, f->bytes, &why, err);
    if (why) st = fail_write(f, f->bytes, why, err);
    if (st == KILN_OK && !f->left_in_cache && fdatasync(f->fd) != 0)
        st = fail_write(f, 0, errno, err);
    if (close(f->fd) != 0 && st == KILN_OK) st = fail_write(f, 0, errno, err);
    f->fd = -1;
    if (st == KILN_OK && rename(part, f->path) != 0)
        st = kiln_fail(err, KILN_E_IO, "cannot rename '%s' to '%s': %s", part, f->path,
                       strerror(errno));
    if (st == KILN_OK) f->is_new = false; /* it has its name */
    kiln_scratch_drop(f);
    return st;
}

void kiln_scratch_boot(char out[KILN_SCRATCH_BOOT_MAX])
{
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? 0 : read(fd, out, KILN_SCRATCH_BOOT_MAX - 1);
    if (fd >= 0) (void)close(fd);
    out[n > 0 ? n : 0] = 0;
    out[strcspn(out, "\n")] = 0;
}

void kiln_scratch_drop(kiln_scratch_file *f)
{
    char part[KILN_PATH_MAX];
    if (!*f->path) return;
    if (f->fd >= 0) (void)close(f->fd); /* read only, or thrown away */
    if (f->is_new && part_path(f, part)) (void)unlink(part);
    kiln_seal_free(f->seal);
    *f = (kiln_scratch_file){0};
}

/* A link is not followed, and a pipe does not hold the run up. -1: errno says why. */
static int open_to_read(const char *path)
{
    return open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

bool kiln_scratch_is_whole(const char *folder, const char *name, uint64_t bytes)
{
    char path[KILN_PATH_MAX];
    if (kiln_path_join(path, sizeof path, folder, name, NULL) != KILN_OK) return false;
    const int fd = open_to_read(path);
    const bool fits = fd >= 0 && kiln_seal_fits(fd, path, bytes);
    if (fd >= 0) (void)close(fd);
    return fits;
}

kiln_status kiln_scratch_keep_sound(const char *folder, const char *name, uint64_t bytes,
                                    bool *kept, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    *kept = false;
    KILN_TRY(kiln_path_join(path, sizeof path, folder, name, err));
    const int fd = open_to_read(path);
    if (fd < 0 && errno == ENOENT) return KILN_OK;
    const kiln_status st = fd < 0 ? KILN_OK : kiln_seal_check(fd, path, bytes, kept, err);
    if (fd >= 0) (void)close(fd);
    if (st != KILN_OK || *kept) return st;
    kiln_warn("scratch '%s' differs from what was written; it is removed and made again", path);
    if (unlink(path) == 0 || errno == ENOENT) return KILN_OK;
    return kiln_fail(err, KILN_E_IO,
                     "scratch '%s' is damaged and cannot be removed: %s; remove it, then run the "
                     "same command again",
                     path, strerror(errno));
}

kiln_status kiln_scratch_open(const char *folder, const char *name, uint64_t bytes,
                              kiln_scratch_file *out, kiln_error *err)
{
    kiln_status st = KILN_OK;
    *out = (kiln_scratch_file){.fd = -1, .bytes = bytes};
    KILN_TRY(kiln_path_join(out->path, sizeof out->path, folder, name, err));
    out->fd = open_to_read(out->path);
    if (out->fd < 0)
        st = kiln_fail(err, KILN_E_IO, "cannot open scratch '%s': %s; run the same command again",
                       out->path, strerror(errno));
    else if (!kiln_seal_fits(out->fd, out->path, bytes))
        st = kiln_fail(
            err, KILN_E_IO,
            "scratch '%s' is incomplete, or was made for another run; run the same command again",
            out->path);
    if (st != KILN_OK) kiln_scratch_drop(out);
    return st;
}

kiln_status kiln_scratch_open_shared(const char *path, uint64_t bytes, kiln_scratch_file *out,
                                     kiln_error *err)
{
    struct stat s;
    *out = (kiln_scratch_file){.fd = open(path, O_RDWR | O_CLOEXEC), .bytes = bytes};
    (void)snprintf(out->path, sizeof out->path, "%s", path);
    kiln_status st = KILN_OK;
    if (out->fd < 0)
        st = kiln_fail(err, KILN_E_IO, "cannot open the shared memory '%s': %s", path,
                       strerror(errno));
    else if (fstat(out->fd, &s) != 0 || (uint64_t)s.st_size != bytes)
        st = kiln_fail(err, KILN_E_IO, "'%s' is not shared memory of %llu bytes", path,
                       (unsigned long long)bytes);
    if (st != KILN_OK && out->fd >= 0) (void)close(out->fd);
    if (st != KILN_OK) *out = (kiln_scratch_file){0};
    return st;
}
