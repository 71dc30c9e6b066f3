/* bands -- cuts a table into units by its pairs alone, never by a memory cap, so that stored bytes
 * depend on nothing else.
 */
#include "kernels/tile_pairs/tile_pairs.h"

uint32_t kiln_tile_bands(const uint64_t *row_pairs, uint32_t tiles_y, uint32_t *starts)
{
    uint32_t n = 0;
    uint64_t sum = 0;
    for (uint32_t row = 0; row < tiles_y; row++) {
        if (row == 0 || sum > KILN_BAND_PAIRS || row_pairs[row] > KILN_BAND_PAIRS - sum) {
            starts[n++] = row;
            sum = 0;
        }
        sum += row_pairs[row];
    }
    starts[n] = tiles_y;
    return n;
}
