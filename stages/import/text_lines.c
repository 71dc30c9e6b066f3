/* text_lines -- see the header. strtod_l with a C locale of our own: a program that embeds the library may have set
 * any other, and then "0,5" would be a number and "0.5" not. */
#include "stages/import/text_lines.h"

#include "base/checked.h"
#include "base/memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

kiln_status kiln_lines_init(kiln_lines *l, int fd, const char *path, kiln_error *err)
{
    struct stat s;
    *l = (kiln_lines){.fd = fd, .path = path};
    l->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!l->c_locale) return kiln_fail(err, KILN_E_NOMEM, "cannot make the C locale: %s", strerror(errno));
    l->room = 2 * (size_t)KILN_LINE_MAX;
    if (fstat(fd, &s) == 0 && s.st_size >= 0 && (uint64_t)s.st_size < l->room) l->room = (size_t)s.st_size + 1;
    return kiln_alloc_unset((void **)&l->data, l->room, 1, "text lines", err);
}

void kiln_lines_release(kiln_lines *l)
{
    if (l->c_locale) freelocale(l->c_locale);
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
static kiln_status fill(kiln_lines *l, kiln_error *err)
{
    memmove(l->data, l->data + l->at, l->have - l->at);
    l->base += l->at;
    l->have -= l->at;
    l->at = 0;
    while (l->have < KILN_LINE_MAX && !l->at_end) {
        ssize_t got = pread(l->fd, l->data + l->have, l->room - l->have, (off_t)(l->base + l->have));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return kiln_fail(err, KILN_E_IO, "cannot read '%s': %s", l->path, strerror(errno));
        if (got == 0) l->at_end = true;
        l->have += (size_t)got;
    }
    return KILN_OK;
}

kiln_status kiln_lines_next(kiln_lines *l, const char **line, size_t *size, kiln_error *err)
{
    char *lf = l->have > l->at ? memchr(l->data + l->at, '\n', l->have - l->at) : NULL;
    if (!lf && !l->at_end) {
        KILN_TRY(fill(l, err));
        lf = l->have ? memchr(l->data, '\n', l->have) : NULL;
    }
    *line = NULL;
    *size = 0;
    if (l->at == l->have) return KILN_OK;
    size_t n = lf ? (size_t)(lf - (l->data + l->at)) : l->have - l->at;
    if (n > KILN_LINE_MAX || (!lf && !l->at_end))
        return kiln_fail(err, KILN_E_INPUT, "'%s', offset %llu: a line of more than %d bytes", l->path,
                         (unsigned long long)kiln_lines_offset(l), KILN_LINE_MAX);
    *line = l->data + l->at;
    *size = n && l->data[l->at + n - 1] == '\r' ? n - 1 : n;
    l->at += n + (lf ? 1 : 0);
    return KILN_OK;
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f'; }

bool kiln_token_next(kiln_words *w, const char **word, size_t *size)
{
    while (w->at < w->end && is_blank(*w->at)) w->at++;
    const char *start = w->at;
    while (w->at < w->end && !is_blank(*w->at)) w->at++;
    *word = start;
    *size = (size_t)(w->at - start);
    return *size > 0;
}

/* A NUL-terminated copy when the word can be a number at all. */
static kiln_number copy_token(const char *word, size_t size, char out[KILN_TOKEN_MAX + 1], bool *literal)
{
    size_t sign = size && (word[0] == '-' || word[0] == '+');
    if (size > KILN_TOKEN_MAX) return KILN_NUMBER_TOO_LARGE;
    memcpy(out, word, size);
    out[size] = '\0';
    *literal =
        !(strcasecmp(out + sign, "nan") == 0 || strcasecmp(out + sign, "inf") == 0 || strcasecmp(out + sign, "infinity") == 0);
    if (!*literal) return KILN_NUMBER_OK;
    for (size_t i = 0; i < size; i++)
        if (!memchr("0123456789+-.eE", out[i], 15) || !out[i]) return KILN_NUMBER_NOT_ONE;
    return KILN_NUMBER_OK;
}

kiln_number kiln_parse_f64(const kiln_lines *l, const char *word, size_t size, double *out)
{
    char token[KILN_TOKEN_MAX + 1], *end;
    bool literal;
    kiln_number r = copy_token(word, size, token, &literal);
    if (r != KILN_NUMBER_OK) return r;
    *out = strtod_l(token, &end, l->c_locale);
    if (end != token + size || size == 0) return KILN_NUMBER_NOT_ONE;
    return literal && !isfinite(*out) ? KILN_NUMBER_TOO_LARGE : KILN_NUMBER_OK;
}

/* strtof and not a cast of strtod: rounding twice may miss the nearest float. */
kiln_number kiln_parse_f32(const kiln_lines *l, const char *word, size_t size, float *out)
{
    char token[KILN_TOKEN_MAX + 1], *end;
    bool literal;
    kiln_number r = copy_token(word, size, token, &literal);
    if (r != KILN_NUMBER_OK) return r;
    *out = strtof_l(token, &end, l->c_locale);
    if (end != token + size || size == 0) return KILN_NUMBER_NOT_ONE;
    return literal && !isfinite(*out) ? KILN_NUMBER_TOO_LARGE : KILN_NUMBER_OK;
}

kiln_number kiln_parse_u64(const char *word, size_t size, uint64_t *out)
{
    uint64_t v = 0;
    if (size == 0) return KILN_NUMBER_NOT_ONE;
    for (size_t i = 0; i < size; i++)
        if (word[i] < '0' || word[i] > '9') return KILN_NUMBER_NOT_ONE;
    for (size_t i = 0; i < size; i++)
        if (!kiln_mul(v, 10, &v) || !kiln_add(v, (uint64_t)(word[i] - '0'), &v)) return KILN_NUMBER_TOO_LARGE;
    *out = v;
    return KILN_NUMBER_OK;
}
