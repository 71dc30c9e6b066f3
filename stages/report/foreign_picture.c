/* foreign_picture -- see the header. */
#include "stages/report/foreign_picture.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const cannot_open =
    "The file is missing, is not a regular file, or is too large to show.";

/* -1: there is none that may be read. */
static int open_plain(const char *path, uint64_t *size)
{
    struct stat s;
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return -1;
    if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_size > 0 &&
        (uint64_t)s.st_size <= KILN_FOREIGN_BYTES) {
        *size = (uint64_t)s.st_size;
        return fd;
    }
    (void)close(fd);
    return -1;
}

/* A nameless file in memory, which readers of pictures open by its number. */
static kiln_status keep_copy(const unsigned char *data, uint64_t bytes, int *fd, kiln_error *err)
{
    *fd = memfd_create("kiln-picture", MFD_CLOEXEC);
    if (*fd < 0)
        return kiln_fail(err, KILN_E_IO, "cannot make a file in memory: %s", strerror(errno));
    return kiln_file_write_at(*fd, "a file in memory", 0, data, bytes, err);
}

static kiln_status decode_foreign_picture(int fd, kiln_picture *out, const char **why,
                                          kiln_error *err)
{
    char path[64];
    uint32_t width, height;
    kiln_error bad = {0};
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    *why = "The file is not a picture that can be read.";
    kiln_status st = kiln_picture_size(path, &width, &height, &bad);
    if (st == KILN_OK && (uint64_t)width * height > KILN_FOREIGN_PIXELS) {
        *why = "The picture is too large to show.";
        return KILN_OK;
    }
    if (st == KILN_OK) st = kiln_picture_read(path, out, &bad);
    if (st == KILN_OK) *why = NULL;
    return st == KILN_E_NOMEM ? kiln_fail(err, st, "%s", bad.msg) : KILN_OK;
}

/* as: what the content must be; NULL: any. */
static kiln_status read_plain(const char *path, const kiln_source_file *as, kiln_picture *out,
                              const char **why, kiln_error *err)
{
    uint64_t size = 0;
    unsigned char *data = NULL;
    int copy = -1;
    kiln_status st;
    const int fd = open_plain(path, &size);
    *out = (kiln_picture){0};
    *why = cannot_open;
    if (fd < 0) return KILN_OK;
    KILN_GO(KILN_ALLOC_UNSET(&data, size, "a picture's file", err));
    /* st is KILN_OK: it shrank, or cannot be read */
    if (kiln_file_read_at(fd, path, 0, data, size, NULL) != KILN_OK) goto done;
    *why = "The file has changed since it was imported.";
    if (as && (size != as->size || !kiln_hash_equal(kiln_hash_of(data, size), as->hash))) goto done;
    KILN_GO(keep_copy(data, size, &copy, err));
    st = decode_foreign_picture(copy, out, why, err);
done:
    if (copy >= 0) (void)close(copy);
    free(data);
    (void)close(fd); /* opened for reading: nothing to lose */
    return st;
}

kiln_status kiln_foreign_photo(const char *path, const kiln_source_file *files, uint32_t n_files,
                               kiln_picture *out, const char **why, kiln_error *err)
{
    *out = (kiln_picture){0};
    *why = "The camera has no photo.";
    if (!path[0]) return KILN_OK;
    for (uint32_t i = 0; i < n_files; i++)
        if (strcmp(files[i].path, path) == 0 && strcmp(files[i].role, "photo") == 0)
            return read_plain(path, &files[i], out, why, err);
    *why = "The photo is not among the files that import read.";
    return KILN_OK;
}

kiln_status kiln_foreign_render(const char *manifest, const char *path, kiln_picture *out,
                                const char **why, kiln_error *err)
{
    char folder[KILN_PATH_MAX] = ".", joined[KILN_PATH_MAX], real[KILN_PATH_MAX];
    const char *reason, *slash = strrchr(manifest, '/');
    *out = (kiln_picture){0};
    *why = "No picture was written.";
    if (!path[0]) return KILN_OK;
    *why = "The picture lies outside of the bake's folder.";
    if (path[0] == '/' || !kiln_relative_is_safe(path, &reason)) return KILN_OK;
    if (slash) (void)snprintf(folder, sizeof folder, "%.*s", (int)(slash - manifest) + 1, manifest);
    if (kiln_path_join(joined, sizeof joined, folder, path, NULL) != KILN_OK) return KILN_OK;
    *why = cannot_open;
    return kiln_member_find(folder, joined, real, &reason) ? read_plain(real, NULL, out, why, err)
                                                           : KILN_OK;
}
