/* count -- see the header. */
#include "base/count.h"

#include <stdio.h>
#include <string.h>

const char *kiln_count_text(uint64_t n, const char *words, char out[KILN_COUNT_TEXT])
{
    const char *bar = strchr(words, '|');
    const int one = bar ? (int)(bar - words) : (int)strlen(words);
    if (n == 1)
        (void)snprintf(out, KILN_COUNT_TEXT, "1 %.*s", one, words);
    else if (bar)
        (void)snprintf(out, KILN_COUNT_TEXT, "%llu %s", (unsigned long long)n, bar + 1);
    else
        (void)snprintf(out, KILN_COUNT_TEXT, "%llu %ss", (unsigned long long)n, words);
    return out;
}
