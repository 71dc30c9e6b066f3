/* Hashes of rows. Planes are planar, so a run of rows that the first cache holds takes one
 * component after the other; two components of 32 bits, nearly all there are, go into one step. The
 * steps are multiplications by odd numbers, rotations and additions, of which each is one to one
 * (the numbers are those of XXH64, the last mixing that of MurmurHash3). */
#include "stages/chunk/row_sums.h"

#include "base/minmax.h"

#include <string.h>

enum { RUN = 512 }; /* rows; their hashes are 8 KiB */

static const uint64_t first_odd = 0x9E3779B185EBCA87, second_odd = 0xC2B2AE3D27D4EB4F;

typedef struct {
    uint64_t low[RUN], high[RUN];
} run_hashes;

static inline uint64_t turn(uint64_t x, unsigned bits) { return x << bits | x >> (64 - bits); }

static inline void step(run_hashes *h, uint64_t i, uint64_t value)
{
    h->low[i] = turn((h->low[i] ^ value) * first_odd, 29);
    h->high[i] = (turn(h->high[i], 31) + value) * second_odd;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53;
    return x ^ x >> 33;
}

static void add_pair(run_hashes *h, const unsigned char *a, const unsigned char *b, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint32_t x, y;
        memcpy(&x, a + i * sizeof x, sizeof x);
        memcpy(&y, b + i * sizeof y, sizeof y);
        step(h, i, (uint64_t)y << 32 | x);
    }
}

static inline void add_elements(run_hashes *h, const unsigned char *a, uint32_t size, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t value = 0;
        memcpy(&value, a + i * size, size);
        step(h, i, value);
    }
}

static void add_component(run_hashes *h, const unsigned char *a, uint32_t size, uint64_t n)
{
    if (size == 4) /* so that the compiler knows the size */
        add_elements(h, a, 4, n);
    else
        add_elements(h, a, size, n);
}

/* Rows [first, first + n) of a part. */
static void add_part(run_hashes *h, const kiln_block_rows *b, const kiln_row_part *p,
                     uint64_t first, uint64_t n)
{
    const uint64_t apart = b->n_rows * p->size; /* bytes from a component to the next */
    const unsigned char *at = b->planes + b->n_rows * p->at + first * p->size;
    uint32_t c = 0;
    if (p->size == sizeof(uint32_t))
        for (; c + 1 < p->plane->components; c += 2)
            add_pair(h, at + c * apart, at + (c + 1) * apart, n);
    for (; c < p->plane->components; c++) add_component(h, at + c * apart, p->size, n);
}

static void add_run(const kiln_block_rows *b, uint64_t first, uint64_t n, kiln_row_sum *sums)
{
    run_hashes h;
    for (uint64_t i = 0; i < n; i++) {
        h.low[i] = h.high[i] = 0;
        step(&h, i, (uint64_t)b->block << 32 | (first - b->first + i));
    }
    for (uint32_t i = 0; i < b->parts->n; i++) add_part(&h, b, &b->parts->items[i], first, n);
    for (uint64_t i = 0; i < n; i++) {
        kiln_row_sum *sum = &sums[b->chunk[first + i]];
        sum->low += mix(h.low[i]);
        sum->high += mix(h.high[i]);
    }
}

void kiln_row_sums_add(const kiln_block_rows *b, kiln_row_sum *sums)
{
    const uint64_t end = b->first + b->count;
    for (uint64_t first = b->first; first < end; first += RUN)
        add_run(b, first, kiln_min_u64(end - first, RUN), sums);
}
