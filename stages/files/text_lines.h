/* text_lines -- lines of a text file one after the other, in fixed memory: a line is at most
 * KILN_LINE_MAX bytes. */
#ifndef KILN_STAGES_FILES_TEXT_LINES_H
#define KILN_STAGES_FILES_TEXT_LINES_H

#include "base/status.h"
#include "stages/files/text_numbers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KILN_LINE_MAX = 1 << 20 };

typedef struct {
    int fd;           /* borrowed */
    const char *path; /* borrowed */
    char *data;       /* [capacity] owned */
    /* 2 * KILN_LINE_MAX; one byte more than the file if that is shorter, so that its end shows */
    size_t capacity;
    size_t at, have;
    uint64_t base; /* file offset of data[0] */
    bool at_end;   /* the file holds nothing behind data[have] */
} kiln_lines;

kiln_status kiln_lines_init(kiln_lines *l, int fd, const char *path,
                            kiln_error *err) KILN_MUST_CHECK;
void kiln_lines_release(kiln_lines *l);
void kiln_lines_seek(kiln_lines *l, uint64_t offset);
uint64_t kiln_lines_offset(const kiln_lines *l); /* of the next line */
/* The next line without its LF or CR LF; *line NULL at the end of the file. Valid until the next
 * call. */
kiln_status kiln_lines_next(kiln_lines *l, const char **line, size_t *size,
                            kiln_error *err) KILN_MUST_CHECK;

#endif
