/* words -- see the header. */
#include "stages/front/words.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a list ---------------------------------------------------------------------------------- */

static kiln_status reserve_word(kiln_words *w, kiln_error *err)
{
    char **more;
    if (w->n + 1 < w->capacity) return KILN_OK; /* one for the NULL */
    const size_t capacity = w->capacity ? 2 * w->capacity : 16;
    KILN_TRY(KILN_ALLOC(&more, capacity, "the words of a command", err));
    if (w->n) memcpy(more, w->word, w->n * sizeof *more);
    free(w->word);
    w->word = more;
    w->capacity = capacity;
    return KILN_OK;
}

static kiln_status add_word_bytes(kiln_words *w, const char *bytes, size_t length, kiln_error *err)
{
    char *copy;
    KILN_TRY(reserve_word(w, err));
    KILN_TRY(KILN_ALLOC(&copy, length + 1, "a word of a command", err));
    if (length) memcpy(copy, bytes, length);
    w->word[w->n++] = copy;
    w->word[w->n] = NULL;
    return KILN_OK;
}

kiln_status kiln_words_add(kiln_words *w, const char *word, kiln_error *err)
{
    return add_word_bytes(w, word, strlen(word), err);
}

kiln_status kiln_words_addf(kiln_words *w, kiln_error *err, const char *fmt, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, fmt);
    const int n = vasprintf(&text, fmt, args);
    va_end(args);
    if (n < 0) return kiln_fail(err, KILN_E_NOMEM, "out of memory for a word of a command");
    const kiln_status st = add_word_bytes(w, text, (size_t)n, err);
    free(text);
    return st;
}

kiln_status kiln_words_add_all(kiln_words *w, const kiln_words *more, kiln_error *err)
{
    for (size_t i = 0; i < more->n; i++) KILN_TRY(kiln_words_add(w, more->word[i], err));
    return KILN_OK;
}

bool kiln_words_hold(const kiln_words *w, const char *word)
{
    for (size_t i = 0; i < w->n; i++)
        if (!strcmp(w->word[i], word)) return true;
    return false;
}

bool kiln_words_begin(const kiln_words *w, const char *beginning)
{
    for (size_t i = 0; i < w->n; i++)
        if (!strncmp(w->word[i], beginning, strlen(beginning))) return true;
    return false;
}

void kiln_words_release(kiln_words *w)
{
    for (size_t i = 0; i < w->n; i++) free(w->word[i]);
    free(w->word);
    *w = (kiln_words){0};
}

/* ---- a text ---------------------------------------------------------------------------------- */

static bool separates_words(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static kiln_status refuse_expansion(char c, const char *name, kiln_error *err)
{
    return kiln_fail(
        err, KILN_E_USAGE,
        "%s: '%c' is not expanded here; quote it with '...' or a \\ to use it literally", name, c);
}

/* The part of a word behind its opening quote; *at is moved behind the closing one. */
static kiln_status read_quoted(const char **at, char quote, const char *name, kiln_buffer *word,
                               kiln_error *err)
{
    for (const char *p = *at; *p; p++) {
        if (*p == quote) {
            *at = p + 1;
            return KILN_OK;
        }
        const bool escapes = quote == '"' && *p == '\\' && p[1] && strchr("$`\"\\\n", p[1]);
        if (escapes) p++;
        if (escapes && *p == '\n') continue; /* sh joins the lines */
        if (quote == '"' && !escapes && strchr("$`", *p)) return refuse_expansion(*p, name, err);
        KILN_TRY(kiln_buffer_put(word, p, 1, err));
    }
    return kiln_fail(err, KILN_E_USAGE, "%s: a %c is not closed", name, quote);
}

/* One word, which begins at *at. */
static kiln_status read_split_word(const char **at, const char *name, kiln_buffer *word,
                                   kiln_error *err)
{
    while (**at && !separates_words(**at)) {
        const char c = *(*at)++;
        if (c == '\'' || c == '"') {
            KILN_TRY(read_quoted(at, c, name, word, err));
        } else if (c == '\\') {
            if (!**at) return kiln_fail(err, KILN_E_USAGE, "%s: nothing follows the last \\", name);
            const char next = *(*at)++;
            /* sh joins the lines */
            if (next != '\n') KILN_TRY(kiln_buffer_put(word, &next, 1, err));
        } else if (c == '$' || c == '`') {
            return refuse_expansion(c, name, err);
        } else {
            KILN_TRY(kiln_buffer_put(word, &c, 1, err));
        }
    }
    return KILN_OK;
}

kiln_status kiln_words_split(const char *text, const char *name, kiln_words *out, kiln_error *err)
{
    kiln_buffer word = {0};
    kiln_status st = KILN_OK;
    while (separates_words(*text)) text++;
    while (*text) {
        word.size = 0;
        KILN_GO(read_split_word(&text, name, &word, err));
        KILN_GO(add_word_bytes(out, (const char *)word.data, word.size, err));
        while (separates_words(*text)) text++;
    }
done:
    kiln_buffer_release(&word);
    return st;
}

kiln_status kiln_word_quote(kiln_buffer *out, const char *word, kiln_error *err)
{
    KILN_TRY(kiln_buffer_put(out, "'", 1, err));
    for (; *word; word++) {
        const char *const text = *word == '\'' ? "'\\''" : (char[]){*word, '\0'};
        KILN_TRY(kiln_buffer_put(out, text, strlen(text), err));
    }
    return kiln_buffer_put(out, "'", 1, err);
}
