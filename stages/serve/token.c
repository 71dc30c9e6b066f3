/* token -- see the header. */
#include "stages/serve/token.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

kiln_status kiln_token_make(char out[KILN_TOKEN_LENGTH + 1], kiln_error *err)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[KILN_TOKEN_LENGTH / 2];
    ssize_t n;
    do {
        n = getrandom(bytes, sizeof bytes, 0);
    } while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof bytes)
        return kiln_fail(err, KILN_E_IO, "cannot get random bytes for the address: %s",
                         strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[KILN_TOKEN_LENGTH] = '\0';
    return KILN_OK;
}

bool kiln_token_equal(const char token[KILN_TOKEN_LENGTH + 1], const char *given, size_t length)
{
    volatile unsigned char differs = length != KILN_TOKEN_LENGTH;
    for (size_t i = 0; i < KILN_TOKEN_LENGTH; i++)
        differs |= (unsigned char)(token[i] ^ (i < length ? given[i] : 0));
    return !differs;
}
