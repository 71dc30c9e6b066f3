/* file -- opens, reads and writes files. A failure names the file and the reason. A file is read to
 * its last byte or refused. It is written beside its name and then renamed, so that no reader ever
 * sees half a file. */
#include "base/file.h"
#include "base/option.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

kiln_status kiln_file_stat(const char *path, kiln_file_info *out, kiln_error *err)
{
    struct stat s;
    if (stat(path, &s))
        return kiln_fail(err, KILN_E_IO, "cannot access '%s': %s", path, strerror(errno));
    *out = (kiln_file_info){
        .size = s.st_size > 0 ? (uint64_t)s.st_size : 0,
        .mtime_ns = (int64_t)s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec,
        .inode = s.st_ino,
        .is_file = S_ISREG(s.st_mode),
        .is_dir = S_ISDIR(s.st_mode),
    };
    return KILN_OK;
}

kiln_status kiln_file_unchanged(const char *path, const kiln_file_info *then, kiln_error *err)
{
    kiln_file_info now;
    KILN_TRY(kiln_file_stat(path, &now, err));
    if (now.size == then->size && now.mtime_ns == then->mtime_ns && now.inode == then->inode)
        return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "'%s' has changed since it was first read; import again once it is complete",
                     path);
}

bool kiln_is_file(const char *path)
{
    struct stat s;
    return !stat(path, &s) && S_ISREG(s.st_mode);
}

bool kiln_is_dir(const char *path)
{
    struct stat s;
    return !stat(path, &s) && S_ISDIR(s.st_mode);
}

kiln_status kiln_file_open(const char *path, int *fd, kiln_error *err)
{
    struct stat s;
    /* O_NONBLOCK: a pipe in a scene's place is refused below instead of waited for; regular files
     * ignore it */
    int f = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *fd = -1;
    if (f < 0) {
        kiln_status st =
            errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG ? KILN_E_INPUT : KILN_E_IO;
        return kiln_fail(err, st, "cannot open '%s': %s", path, strerror(errno));
    }
    kiln_status st = KILN_OK;
    if (fstat(f, &s))
        st = kiln_fail(err, KILN_E_IO, "cannot access '%s': %s", path, strerror(errno));
    else if (S_ISDIR(s.st_mode))
        st = kiln_fail(err, KILN_E_INPUT, "'%s' is a directory, not a file", path);
    else if (!S_ISREG(s.st_mode))
        st = kiln_fail(err, KILN_E_INPUT, "'%s' is not a regular file", path);
    if (st != KILN_OK) {
        close(f);
        return st;
    }
    *fd = f;
    return KILN_OK;
}

kiln_status kiln_file_read_at(int fd, const char *path, uint64_t offset, void *dst, size_t bytes,
                              kiln_error *err)
{
    unsigned char *at = dst;
    if (offset > INT64_MAX - (uint64_t)bytes)
        return kiln_fail(err, KILN_E_INPUT, "'%s' ends before byte %llu", path,
                         (unsigned long long)offset);
    for (size_t done = 0; done < bytes;) {
        ssize_t n = pread(fd, at + done, bytes - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return kiln_fail(err, KILN_E_IO, "cannot read '%s' at byte %llu: %s", path,
                             (unsigned long long)(offset + done), strerror(errno));
        if (n == 0)
            return kiln_fail(
                err, KILN_E_INPUT,
                "'%s' ends at byte %llu, but %zu more bytes were expected; is it complete?", path,
                (unsigned long long)(offset + done), bytes - done);
        done += (size_t)n;
    }
    return KILN_OK;
}

kiln_status kiln_file_read(const char *path, uint64_t limit, unsigned char **data, size_t *size,
                           kiln_error *err)
{
    kiln_status st = KILN_OK;
    struct stat s;
    int fd;
    *data = NULL;
    *size = 0;
    KILN_TRY(kiln_file_open(path, &fd, err));
    if (fstat(fd, &s)) {
        st = kiln_fail(err, KILN_E_IO, "cannot access '%s': %s", path, strerror(errno));
        goto done;
    }
    uint64_t bytes = (uint64_t)s.st_size;
    if (bytes > limit) {
        st = kiln_fail(err, KILN_E_INPUT, "'%s' has %llu bytes; such a file may have at most %llu",
                       path, (unsigned long long)bytes, (unsigned long long)limit);
        goto done;
    }
    KILN_GO(kiln_alloc((void **)data, bytes + 1, 1, path, err));
    KILN_GO(kiln_file_read_at(fd, path, 0, *data, (size_t)bytes, err));
    *size = (size_t)bytes;
done:
    close(fd);
    if (st != KILN_OK) {
        free(*data);
        *data = NULL;
    }
    return st;
}

kiln_status kiln_path_inside(char *out, size_t size, const char *folder, const char *relative,
                             const char *option, kiln_error *err)
{
    struct stat s;
    KILN_TRY(kiln_path_join(out, size, folder, relative, err));
    char *end = out + strlen(out), *at = end - strlen(relative);
    while (at < end) {
        at += strcspn(at, "/");
        const char was = *at;
        *at = '\0';
        const bool is_link = lstat(out, &s) == 0 && S_ISLNK(s.st_mode);
        if (is_link)
            return kiln_fail(err, KILN_E_INPUT,
                             "'%s' is a link that leads outside of '%s'; remove the link, or name "
                             "the place with %s",
                             out, folder, option);
        *at = was;
        at += was == '/';
    }
    return KILN_OK;
}

bool kiln_member_find(const char *folder, const char *path, char real[KILN_PATH_MAX],
                      const char **why)
{
    char root[PATH_MAX], file[PATH_MAX];
    *why = "is missing";
    if (!realpath(folder, root) || !realpath(path, file)) return false;
    const size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);
    *why = "leads out of the folder through a link";
    if (strncmp(file, root, n) != 0 || file[n] != '/' || strlen(file) >= KILN_PATH_MAX)
        return false;
    *why = "is not a regular file";
    memcpy(real, file, strlen(file) + 1);
    return kiln_is_file(real);
}

/* "; ...": what to do where nothing may be written; else "". */
static const char *advice_of(int error)
{
    const bool is_refused = error == EROFS || error == EACCES || error == EPERM;
    return is_refused ? "; make the folder writable, or choose another place" : "";
}

kiln_status kiln_make_parents(const char *path, kiln_error *err)
{
    char dir[KILN_PATH_MAX];
    size_t length = strlen(path);
    if (length >= sizeof dir)
        return kiln_fail(err, KILN_E_INPUT, "the path '%.60s...' is longer than %d bytes", path,
                         KILN_PATH_MAX - 1);
    memcpy(dir, path, length + 1);
    for (char *slash = strchr(dir + (dir[0] == '/'), '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(dir, 0777) && errno != EEXIST)
            return kiln_fail(err, KILN_E_IO, "cannot make the folder '%s': %s%s", dir,
                             strerror(errno), advice_of(errno));
        *slash = '/';
    }
    return KILN_OK;
}

kiln_status kiln_file_replaceable(const char *path, kiln_error *err)
{
    struct stat s;
    /* what cannot be looked at, the write itself will tell */
    if (stat(path, &s) || S_ISREG(s.st_mode)) return KILN_OK;
    return kiln_fail(err, KILN_E_IO, "cannot write '%s': it is a %s, not a file; give another name",
                     path, S_ISDIR(s.st_mode) ? "folder" : "device or pipe");
}

/* ---- writing --------------------------------------------------------------------------------- */
void kiln_file_free_text(const char *path, int error, char *out, size_t size)
{
    char folder[KILN_PATH_MAX], amount[32];
    struct statvfs fs;
    struct rlimit limit;
    const size_t length = (size_t)(kiln_path_base(path) - path);
    *out = '\0';
    if (error == EFBIG && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        (void)snprintf(
            out, size,
            "; a file may have at most %s here; raise the limit (ulimit -f) and run again",
            kiln_size_text(limit.rlim_cur, amount));
    if ((error != ENOSPC && error != EDQUOT) || length >= sizeof folder) return;
    memcpy(folder, path, length);
    folder[length] = '\0';
    if (statvfs(length ? folder : ".", &fs) == 0)
        (void)snprintf(out, size, "; %s are free there; make room and run again",
                       kiln_size_text((uint64_t)fs.f_bavail * fs.f_frsize, amount));
}

kiln_status kiln_file_write_failed(const char *path, int error, kiln_error *err)
{
    char free_text[128];
    kiln_file_free_text(path, error, free_text, sizeof free_text);
    if (!*free_text) (void)snprintf(free_text, sizeof free_text, "%s", advice_of(error));
    return kiln_fail(err, KILN_E_IO, "cannot write '%s': %s%s", path, strerror(error), free_text);
}

void kiln_fd_place_text(int fd, char *out, size_t size)
{
    enum { SHOWN = 400 }; /* bytes; a sentence has more to say than a path */
    char link[32], path[KILN_PATH_MAX];
    *out = '\0';
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, sizeof path - 1);
    if (n <= 0 || path[0] != '/' || strncmp(path, "/memfd:", 7) == 0) return;
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    slash[slash == path] = '\0';
    (void)snprintf(out, size, " in '%.*s'", SHOWN, path);
}

kiln_status kiln_scratch_write_failed(int fd, const char *what_for, int error, kiln_error *err)
{
    struct statvfs fs;
    char place[KILN_PATH_MAX], free_text[128] = "", amount[32];
    kiln_fd_place_text(fd, place, sizeof place);
    if ((error == ENOSPC || error == EDQUOT) && fstatvfs(fd, &fs) == 0)
        (void)snprintf(free_text, sizeof free_text, "; %s are free there; make room",
                       kiln_size_text((uint64_t)fs.f_bavail * fs.f_frsize, amount));
    else
        kiln_file_free_text("", error, free_text, sizeof free_text);
    return kiln_fail(
        err, KILN_E_IO,
        "cannot write scratch for '%s'%s: %s%s, or name another folder with --scratch-dir",
        what_for, place, strerror(error), free_text);
}

int kiln_file_pwrite(int fd, uint64_t offset, const void *data, size_t bytes, size_t *done)
{
    const unsigned char *from = data;
    size_t at = 0;
    int error = 0;
    while (at < bytes && error == 0) {
        const ssize_t n = pwrite(fd, from + at, bytes - at, (off_t)(offset + at));
        if (n > 0)
            at += (size_t)n;
        else if (n == 0 || errno != EINTR)
            error = n == 0 ? ENOSPC : errno; /* a disk that takes nothing and does not say why */
    }
    if (done) *done = at;
    return error;
}

kiln_status kiln_file_write_at(int fd, const char *path, uint64_t offset, const void *data,
                               size_t bytes, kiln_error *err)
{
    const int error = kiln_file_pwrite(fd, offset, data, bytes, NULL);
    return error ? kiln_file_write_failed(path, error, err) : KILN_OK;
}

kiln_status kiln_file_create(const char *path, int *fd, kiln_error *err)
{
    (void)unlink(path); /* what is not removed is not opened below */
    *fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    return *fd < 0 ? kiln_file_write_failed(path, errno, err) : KILN_OK;
}

kiln_status kiln_file_write(const char *path, const void *data, size_t size, kiln_error *err)
{
    char tmp[KILN_PATH_MAX];
    int fd;
    KILN_TRY(kiln_file_replaceable(path, err));
    KILN_TRY(kiln_make_parents(path, err));
    KILN_TRY(kiln_temporary_create(path, tmp, &fd, err));
    kiln_status st = kiln_file_write_at(fd, path, 0, data, size, err);
    if (st == KILN_OK && fsync(fd)) st = kiln_file_write_failed(path, errno, err);
    if (close(fd) && st == KILN_OK) st = kiln_file_write_failed(path, errno, err);
    if (st == KILN_OK && rename(tmp, path)) st = kiln_file_write_failed(path, errno, err);
    if (st != KILN_OK) (void)unlink(tmp); /* the write's own reason is the one to tell */
    return st;
}

kiln_status kiln_folder_sync(const char *folder, kiln_error *err)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return kiln_fail(err, KILN_E_IO, "cannot open folder '%s': %s", folder, strerror(errno));
    const int error = fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP ? 0 : errno;
    (void)close(fd); /* was only read */
    return error ? kiln_fail(err, KILN_E_IO, "cannot sync folder '%s': %s", folder, strerror(error))
                 : KILN_OK;
}
