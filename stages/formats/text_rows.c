/* text_rows -- see text_rows.h.
 *
 * The text is read in windows, which are cut at ends of lines into a piece for each thread. Two
 * passes over the pieces: the first counts rows, so that the second knows the number of each
 * piece's first row and where its records go. Counting takes a twentieth of parsing. */
#include "stages/formats/text_rows.h"

#include "base/memory.h"
#include "base/minmax.h"
#include "stages/files/text_lines.h"
#include "stages/formats/spool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 1 << 20, RECORDS_BYTES = 1 << 18, THREADS_MAX = 1024 };

typedef struct {
    const char *begin, *end; /* whole lines */
    uint64_t n_rows;
    uint64_t first;         /* number of its first row */
    unsigned char *records; /* [RECORDS_BYTES], or one record if that is longer */
    kiln_error err;         /* of its first bad row */
} piece;

typedef struct {
    const kiln_text_rows *t;
    int out;
    unsigned n_pieces;
    char *window; /* [capacity] */
    size_t capacity, have;
    uint64_t base; /* file offset of window[0] */
    bool at_end;
    piece *pieces;
} spooler;

/* ---- lines ----------------------------------------------------------------------------------- */

static bool is_row(const kiln_text_rows *t, const char *line, size_t size)
{
    kiln_token_line words = {line, line + size};
    const char *word;
    size_t n;
    return kiln_token_next(&words, &word, &n) && !(t->comment && *word == t->comment);
}

/* The line at *at without its end; moves *at behind it. */
static const char *next_line(const char **at, const char *end, size_t *size)
{
    const char *line = *at, *lf = memchr(line, '\n', (size_t)(end - line));
    *size = (size_t)((lf ? lf : end) - line);
    *at = lf ? lf + 1 : end;
    if (*size && line[*size - 1] == '\r') (*size)--;
    return line;
}

static void count_text_rows(const spooler *s, piece *p)
{
    size_t size;
    p->n_rows = 0;
    for (const char *at = p->begin; at < p->end;) {
        const char *line = next_line(&at, p->end, &size);
        p->n_rows += is_row(s->t, line, size);
    }
}

/* ---- records --------------------------------------------------------------------------------- */

static kiln_status write_records(const spooler *s, const piece *p, uint64_t record, uint64_t n,
                                 kiln_error *err)
{
    const uint64_t size = s->t->record_bytes;
    return kiln_spool_write(s->out, s->t->path, record * size, p->records, n * size, err);
}

static kiln_status refuse_length(const spooler *s, const char *line, kiln_error *err)
{
    return kiln_fail(err, KILN_E_INPUT, "'%s', offset %llu: a line of more than %d bytes",
                     s->t->path, (unsigned long long)(s->base + (uint64_t)(line - s->window)),
                     KILN_LINE_MAX);
}

static kiln_status parse_rows(const spooler *s, piece *p, kiln_error *err)
{
    const kiln_text_rows *t = s->t;
    const uint64_t last = kiln_min_u64(UINT64_MAX - t->skip, t->n_rows) + t->skip,
                   capacity = RECORDS_BYTES / t->record_bytes + 1;
    uint64_t row = p->first, held = 0;
    size_t size;
    for (const char *at = p->begin; at < p->end && row < last;) {
        const char *line = next_line(&at, p->end, &size);
        if (size > KILN_LINE_MAX) return refuse_length(s, line, err);
        if (!is_row(t, line, size) || row++ < t->skip) continue;
        KILN_TRY(t->parse(t->context, row - 1 - t->skip, line, size,
                          p->records + held * t->record_bytes, err));
        if (++held < capacity) continue;
        KILN_TRY(write_records(s, p, row - t->skip - held, held, err));
        held = 0;
    }
    return write_records(s, p, row - t->skip - held, held, err);
}

/* ---- windows --------------------------------------------------------------------------------- */

/* Moves what is left behind `used` to the front and reads behind it. */
static kiln_status fill_text_window(spooler *s, size_t used, kiln_error *err)
{
    memmove(s->window, s->window + used, s->have - used);
    s->have -= used;
    s->base += used;
    while (s->have < s->capacity && !s->at_end) {
        const ssize_t got =
            pread(s->t->fd, s->window + s->have, s->capacity - s->have, (off_t)(s->base + s->have));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return kiln_fail(err, KILN_E_IO, "cannot read '%s': %s", s->t->path, strerror(errno));
        s->at_end = got == 0;
        s->have += (size_t)got;
    }
    return KILN_OK;
}

/* Bytes of whole lines at the window's begin: all of them at the end of the file. */
static size_t whole_lines(const spooler *s)
{
    const char *lf = s->have && !s->at_end ? memrchr(s->window, '\n', s->have) : NULL;
    return s->at_end ? s->have : lf ? (size_t)(lf - s->window) + 1 : 0;
}

static void cut_text_pieces(spooler *s, size_t bytes)
{
    const char *at = s->window, *const end = s->window + bytes;
    for (unsigned i = 0; i < s->n_pieces; i++) {
        const char *to = s->window + bytes / s->n_pieces * (i + 1);
        if (i + 1 == s->n_pieces) to = end;
        const char *lf = to > at && to < end ? memchr(to, '\n', (size_t)(end - to)) : NULL;
        s->pieces[i].begin = at;
        s->pieces[i].end = to <= at ? at : lf ? lf + 1 : end;
        at = s->pieces[i].end;
    }
}

static kiln_status first_error(const spooler *s, kiln_error *err)
{
    for (unsigned i = 0; i < s->n_pieces; i++)
        if (s->pieces[i].err.status != KILN_OK)
            return kiln_fail(err, s->pieces[i].err.status, "%s", s->pieces[i].err.msg);
    return KILN_OK;
}

static kiln_status take_window(spooler *s, size_t bytes, uint64_t *found, kiln_error *err)
{
    cut_text_pieces(s, bytes);
#pragma omp parallel for schedule(static, 1) num_threads(s->n_pieces)
    for (unsigned i = 0; i < s->n_pieces; i++) count_text_rows(s, &s->pieces[i]);
    for (unsigned i = 0; i < s->n_pieces; i++) {
        s->pieces[i].first = *found;
        *found += s->pieces[i].n_rows;
    }
    if (!s->t->parse) return KILN_OK;
#pragma omp parallel for schedule(static, 1) num_threads(s->n_pieces)
    for (unsigned i = 0; i < s->n_pieces; i++) {
        kiln_error e = {0};
        if (parse_rows(s, &s->pieces[i], &e) != KILN_OK) s->pieces[i].err = e;
    }
    return first_error(s, err);
}

static kiln_status spool_windows(spooler *s, uint64_t *found, kiln_error *err)
{
    const kiln_text_rows *t = s->t;
    const uint64_t wanted = kiln_min_u64(UINT64_MAX - t->skip, t->n_rows) + t->skip;
    *found = 0;
    KILN_TRY(fill_text_window(s, 0, err));
    while (s->have && *found <= wanted && *found < UINT64_MAX) {
        const size_t bytes = whole_lines(s);
        if (bytes == 0) return refuse_length(s, s->window, err);
        KILN_TRY(take_window(s, bytes, found, err));
        KILN_TRY(fill_text_window(s, bytes, err));
    }
    if (wanted < UINT64_MAX) *found = kiln_min_u64(*found, wanted + 1);
    return KILN_OK;
}

static kiln_status begin_spooler(spooler *s, kiln_error *err)
{
    s->capacity = (size_t)s->n_pieces * PIECE_BYTES + KILN_LINE_MAX + 2;
    s->base = s->t->offset;
    KILN_TRY(kiln_alloc_unset((void **)&s->window, s->capacity, 1, "text", err));
    KILN_TRY(KILN_ALLOC(&s->pieces, s->n_pieces, "text", err));
    for (unsigned i = 0; i < s->n_pieces && s->t->parse; i++)
        KILN_TRY(kiln_alloc_unset((void **)&s->pieces[i].records,
                                  RECORDS_BYTES + s->t->record_bytes, 1, "rows of a text", err));
    return KILN_OK;
}

static kiln_status spool_text(const kiln_text_rows *t, int out, unsigned threads, uint64_t *found,
                              kiln_error *err)
{
    spooler s = {.t = t,
                 .out = out,
                 .n_pieces = threads < 1             ? 1
                             : threads > THREADS_MAX ? THREADS_MAX
                                                     : threads};
    kiln_status st = begin_spooler(&s, err);
    if (st == KILN_OK) st = spool_windows(&s, found, err);
    for (unsigned i = 0; i < s.n_pieces && s.pieces; i++) free(s.pieces[i].records);
    free(s.pieces);
    free(s.window);
    return st;
}

kiln_status kiln_text_rows_spool(const kiln_text_rows *t, int out, unsigned threads,
                                 uint64_t *found, kiln_error *err)
{
    return spool_text(t, out, threads, found, err);
}

kiln_status kiln_text_rows_count(const kiln_text_rows *t, uint64_t *found, kiln_error *err)
{
    kiln_text_rows count = *t;
    count.parse = NULL;
    return spool_text(&count, -1, 1, found, err);
}
