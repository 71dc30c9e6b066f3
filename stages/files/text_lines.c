/* text_lines -- see the header. */
#include "stages/files/text_lines.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

kiln_status kiln_lines_init(kiln_lines *l, int fd, const char *path, kiln_error *err)
{
    struct stat s;
    *l = (kiln_lines){.fd = fd, .path = path};
    l->capacity = 2 * (size_t)KILN_LINE_MAX;
    if (fstat(fd, &s) == 0 && s.st_size >= 0 && (uint64_t)s.st_size < l->capacity)
        l->capacity = (size_t)s.st_size + 1;
    return kiln_alloc_unset((void **)&l->data, l->capacity, 1, "text lines", err);
}

void kiln_lines_release(kiln_lines *l)
{
    free(l->data);
    *l = (kiln_lines){.fd = -1};
}

void kiln_lines_seek(kiln_lines *l, uint64_t offset)
{
    l->base = offset;
    l->at = l->have = 0;
    l->at_end = false;
}

uint64_t kiln_lines_offset(const kiln_lines *l) { return l->base + l->at; }

/* Moves what is left to the front and reads behind it. */
static kiln_status fill_line_window(kiln_lines *l, kiln_error *err)
{
    memmove(l->data, l->data + l->at, l->have - l->at);
    l->base += l->at;
    l->have -= l->at;
    l->at = 0;
    while (l->have < KILN_LINE_MAX && !l->at_end) {
        ssize_t got =
            pread(l->fd, l->data + l->have, l->capacity - l->have, (off_t)(l->base + l->have));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return kiln_fail(err, KILN_E_IO, "cannot read '%s': %s", l->path, strerror(errno));
        if (got == 0) l->at_end = true;
        l->have += (size_t)got;
    }
    return KILN_OK;
}

kiln_status kiln_lines_next(kiln_lines *l, const char **line, size_t *size, kiln_error *err)
{
    char *lf = l->have > l->at ? memchr(l->data + l->at, '\n', l->have - l->at) : NULL;
    if (!lf && !l->at_end) {
        KILN_TRY(fill_line_window(l, err));
        lf = l->have ? memchr(l->data, '\n', l->have) : NULL;
    }
    *line = NULL;
    *size = 0;
    if (l->at == l->have) return KILN_OK;
    size_t n = lf ? (size_t)(lf - (l->data + l->at)) : l->have - l->at;
    if (n > KILN_LINE_MAX || (!lf && !l->at_end))
        return kiln_fail(err, KILN_E_INPUT, "'%s', offset %llu: a line of more than %d bytes",
                         l->path, (unsigned long long)kiln_lines_offset(l), KILN_LINE_MAX);
    *line = l->data + l->at;
    *size = n && l->data[l->at + n - 1] == '\r' ? n - 1 : n;
    l->at += n + (lf ? 1 : 0);
    return KILN_OK;
}
