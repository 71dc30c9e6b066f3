/* text_lines -- lines of a text file in fixed memory, and numbers from bounded tokens, the same in every locale.
 *
 * Used by the readers of ascii PLY and of COLMAP's points3D.txt. A line is at most KILN_LINE_MAX bytes, a number at most
 * KILN_TOKEN_MAX: a hostile file cannot make either grow.
 */
#ifndef KILN_STAGES_IMPORT_TEXT_LINES_H
#define KILN_STAGES_IMPORT_TEXT_LINES_H

#include "base/status.h"

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KILN_LINE_MAX = 1 << 20, KILN_TOKEN_MAX = 255 };

typedef struct {
    int fd;           /* borrowed */
    const char *path; /* borrowed */
    char *data;       /* [room] owned */
    size_t room;      /* 2 * KILN_LINE_MAX; one byte more than the file if that is shorter, so that its end shows */
    size_t at, have;
    uint64_t base;     /* file offset of data[0] */
    bool at_end;       /* the file holds nothing behind data[have] */
    locale_t c_locale; /* owned */
} kiln_lines;

kiln_status kiln_lines_init(kiln_lines *l, int fd, const char *path, kiln_error *err) KILN_MUST_CHECK;
void kiln_lines_release(kiln_lines *l);
void kiln_lines_seek(kiln_lines *l, uint64_t offset);
uint64_t kiln_lines_offset(const kiln_lines *l); /* of the next line */
/* The next line without its LF or CR LF; *line NULL at the end of the file. Valid until the next call. */
kiln_status kiln_lines_next(kiln_lines *l, const char **line, size_t *size, kiln_error *err) KILN_MUST_CHECK;

typedef struct {
    const char *at, *end;
} kiln_words;
/* The next word of a line (blanks and tabs separate); false when there is none. */
bool kiln_token_next(kiln_words *w, const char **word, size_t *size);

typedef enum { KILN_NUMBER_OK, KILN_NUMBER_NOT_ONE, KILN_NUMBER_TOO_LARGE } kiln_number;
/* Decimal floats, nan and inf; no hexadecimal, no decimal comma. A finite literal that overflows is too large. */
kiln_number kiln_parse_f32(const kiln_lines *l, const char *word, size_t size, float *out);
kiln_number kiln_parse_f64(const kiln_lines *l, const char *word, size_t size, double *out);
/* Digits only, no sign. */
kiln_number kiln_parse_u64(const char *word, size_t size, uint64_t *out);

#endif
