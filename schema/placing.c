#include "schema/placing.h"

#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_BYTES = 4 << 20 };

static kiln_status write_copied_file(const kiln_place_from *from, int fd, const char *path,
                                     kiln_error *err)
{
    unsigned char *data = NULL;
    kiln_status st = KILN_OK;
    KILN_TRY(KILN_ALLOC_UNSET(&data, COPY_BYTES, "a copy", err));
    for (uint64_t at = 0, left = from->bytes; left > 0;) {
        const size_t n = left < COPY_BYTES ? (size_t)left : COPY_BYTES;
        KILN_GO(from->read(from->source, at, data, n, err));
        KILN_GO(kiln_file_write_at(fd, path, at, data, n, err));
        at += n;
        left -= n;
    }
    if (from->mode && fchmod(fd, (mode_t)from->mode) != 0)
        st = kiln_file_write_failed(path, errno, err);
    if (st == KILN_OK && fsync(fd) != 0) st = kiln_file_write_failed(path, errno, err);
done:
    free(data);
    return st;
}

kiln_status kiln_place_temporary(const char *to, uint32_t restarts, char out[KILN_PATH_MAX],
                                 kiln_error *err)
{
    char host[KILN_PROCESS_SPACE_MAX];
    (void)kiln_process_space(host); /* any will do for a name */
    const int n =
        snprintf(out, KILN_PATH_MAX, "%s.tmp.%s.%ld.%" PRIu32, to, host, (long)getpid(), restarts);
    if (n > 0 && n < KILN_PATH_MAX) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE, "the path '%.60s...' is too long", to);
}

kiln_status kiln_place_copy(const kiln_place_from *from, const char *to, kiln_error *err)
{
    char tmp[KILN_PATH_MAX];
    int fd = -1;
    KILN_TRY(kiln_place_temporary(to, from->restarts, tmp, err));
    KILN_TRY(kiln_file_create(tmp, &fd, err));
    kiln_status st = write_copied_file(from, fd, tmp, err);
    if (close(fd) != 0 && st == KILN_OK) st = kiln_file_write_failed(to, errno, err);
    if (st == KILN_OK && rename(tmp, to) != 0) st = kiln_file_write_failed(to, errno, err);
    if (st != KILN_OK) (void)unlink(tmp); /* the first reason is the one to tell */
    return st;
}

typedef struct {
    int fd;
    const char *path;
} source_file;

static kiln_status read_source_file(void *source, uint64_t at, void *dst, size_t bytes,
                                    kiln_error *err)
{
    const source_file *f = source;
    return kiln_file_read_at(f->fd, f->path, at, dst, bytes, err);
}

kiln_status kiln_place_file(const char *from, const char *to, uint32_t restarts, kiln_error *err)
{
    source_file f = {.path = from};
    struct stat s = {0};
    KILN_TRY(kiln_file_open(from, &f.fd, err));
    kiln_status st = KILN_OK;
    if (fstat(f.fd, &s) != 0)
        st = kiln_fail(err, KILN_E_IO, "cannot access '%s': %s", from, strerror(errno));
    const kiln_place_from all = {
        .read = read_source_file, .source = &f, .bytes = (uint64_t)s.st_size, .restarts = restarts};
    if (st == KILN_OK) st = kiln_place_copy(&all, to, err);
    (void)close(f.fd); /* was only read */
    return st;
}

/* Is `rest` HOST.PID.RESTARTS of a process that has ended, and HOST where we run? */
static bool is_ended(const char *rest, const char *host)
{
    const size_t n = strlen(host);
    long pid;
    uint32_t restarts;
    char end;
    if (strncmp(rest, host, n) != 0 || rest[n] != '.') return false;
    return sscanf(rest + n + 1, "%ld.%" SCNu32 "%c", &pid, &restarts, &end) == 2 && pid > 0 &&
           kiln_process_ended(pid);
}

void kiln_place_leftovers_drop(const char *folder, const char *begin, const char *mark,
                               bool all_hosts)
{
    char host[KILN_PROCESS_SPACE_MAX], path[KILN_PATH_MAX];
    const bool known = kiln_process_space(host);
    DIR *d = opendir(folder);
    if (!d) return;
    for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
        const char *const at = strstr(e->d_name, mark);
        if (!at || strncmp(e->d_name, begin, strlen(begin)) != 0) continue;
        if (!all_hosts && !(known && is_ended(at + strlen(mark), host))) continue;
        if (kiln_path_join(path, sizeof path, folder, e->d_name, NULL) == KILN_OK)
            (void)unlink(path);
    }
    (void)closedir(d);
}
