/* words -- the words of a command line: collected, split from a text, quoted for a shell.
 *
 * `word` ends with NULL, so that it can be handed to exec. An empty list is {0}; release it after a
 * failure, too. */
#ifndef KILN_STAGES_FRONT_WORDS_H
#define KILN_STAGES_FRONT_WORDS_H

#include "base/memory.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    char **word; /* owned; NULL while empty */
    size_t n, capacity;
} kiln_words;

kiln_status kiln_words_add(kiln_words *w, const char *word, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_words_addf(kiln_words *w, kiln_error *err, const char *fmt, ...)
    KILN_PRINTF(3, 4) KILN_MUST_CHECK;
kiln_status kiln_words_add_all(kiln_words *w, const kiln_words *more,
                               kiln_error *err) KILN_MUST_CHECK;
bool kiln_words_hold(const kiln_words *w, const char *word);
/* Says whether a word begins like this. */
bool kiln_words_begin(const kiln_words *w, const char *beginning);
void kiln_words_release(kiln_words *w);

/* Appends the words of a text. They are separated by blanks and line breaks; '...', "..." and \
 * keep blanks in a word, as in sh. Nothing is expanded: * ? ~ | & ; < > ( ) # are characters like
 * any other. $ and ` are, too, inside of '...' or behind a \; elsewhere they are refused, because a
 * shell would put something else in their place. name: of the option, for the sentence.
 * KILN_E_USAGE: that, or a quote that does not end. */
kiln_status kiln_words_split(const char *text, const char *name, kiln_words *out,
                             kiln_error *err) KILN_MUST_CHECK;
/* Appends a word as a shell would want it: 'it'\''s'. */
kiln_status kiln_word_quote(kiln_buffer *out, const char *word, kiln_error *err) KILN_MUST_CHECK;

#endif
