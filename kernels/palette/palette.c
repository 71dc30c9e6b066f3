/* What both siblings refuse, and the size of the index. */
#include "kernels/palette/palette.h"

#include "kernels/palette/palette_math.h"

#include <inttypes.h>

kiln_status kiln_palette_check(const char *op, uint64_t n, uint64_t most, uint32_t d, uint32_t p,
                               kiln_error *err)
{
    if (d == 0 || d > KILN_PALETTE_VALUES_MAX)
        return kiln_fail(err, KILN_E_INPUT, "%s: a row has %u values; 1 to %d are possible", op, d,
                         KILN_PALETTE_VALUES_MAX);
    if (p == 0 || p > KILN_PALETTE_ENTRIES_MAX)
        return kiln_fail(err, KILN_E_INPUT, "%s: the palette has %u entries; 1 to %d are possible",
                         op, p, KILN_PALETTE_ENTRIES_MAX);
    if (n > most)
        return kiln_fail(err, KILN_E_INPUT,
                         "%s: there are %" PRIu64 " rows; at most %" PRIu64 " are possible", op, n,
                         most);
    return KILN_OK;
}

uint64_t kiln_palette_index_words(uint32_t p, uint32_t d)
{
    return kiln_palette_places_of(p, d).words;
}
