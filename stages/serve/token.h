/* token -- the secret word in the server's address. Other users of this machine reach a loopback
 * address as well as its owner does; only who knows the word is answered. Pure functions but for
 * kiln_token_make; any thread. */
#ifndef KILN_STAGES_SERVE_TOKEN_H
#define KILN_STAGES_SERVE_TOKEN_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

enum { KILN_TOKEN_LENGTH = 32 /* hexadecimal digits: 128 bits */ };

/* Writes a new word with its NUL. KILN_E_IO: the system has no random bytes. */
kiln_status kiln_token_make(char out[KILN_TOKEN_LENGTH + 1], kiln_error *err) KILN_MUST_CHECK;
/* Says whether given[length] is the token, in a time that does not depend on where the two
 * differ. */
bool kiln_token_equal(const char token[KILN_TOKEN_LENGTH + 1], const char *given, size_t length);

#endif
