/* former_log -- see the header. */
#include "stages/serve/former_log.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Links are followed, as SQLite does. */
static int open_log(const char *manifest)
{
    char real[PATH_MAX], path[PATH_MAX + 8];
    if (!realpath(manifest, real)) return -1;
    (void)snprintf(path, sizeof path, "%s-wal", real);
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static void look_at_log(const char *manifest, kiln_seen_log *out, struct stat *s)
{
    const int fd = open_log(manifest);
    *out = (kiln_seen_log){.there = fd >= 0 && fstat(fd, s) == 0 && S_ISREG(s->st_mode)};
    if (out->there) {
        out->device = s->st_dev;
        out->inode = s->st_ino;
        out->filled = pread(fd, out->head, sizeof out->head, 0) == (ssize_t)sizeof out->head;
    }
    if (fd >= 0) (void)close(fd);
}

void kiln_log_look(const char *manifest, kiln_seen_log *out)
{
    struct stat s;
    look_at_log(manifest, out, &s);
}

static bool is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec < b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec < b->tv_nsec);
}

/* The same log with the same head was there before. Another head in the same log: either the former
 * file's stage went on until it was replaced, or a stage of the new file has begun. Times say
 * which. A rename sets the time of the file's last change and not that of its last write; a stage
 * that moves its log into the file sets both. */
bool kiln_log_is_former(const char *manifest, const kiln_seen_log *seen)
{
    kiln_seen_log now;
    struct stat log, file;
    look_at_log(manifest, &now, &log);
    if (!now.filled || !seen->there || now.device != seen->device || now.inode != seen->inode)
        return false;
    if (seen->filled && memcmp(now.head, seen->head, sizeof now.head) == 0) return true;
    return stat(manifest, &file) == 0 && is_before(&log.st_mtim, &file.st_ctim) &&
           is_before(&file.st_mtim, &file.st_ctim);
}
