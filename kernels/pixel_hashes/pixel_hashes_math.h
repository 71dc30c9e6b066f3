/* pixel_hashes_math -- XXH3-128 of more than 240 bytes, shared by both siblings.
 *
 * Input is 64-bit words, little end first. Eight words are a stripe, sixteen stripes a block of
 * 1,024 bytes. Each of eight lanes has an accumulator. A stripe adds to lane i, whose word is w and
 * whose neighbour's (lane i ^ 1) is v:
 *
 *   v + low(w ^ s) * high(w ^ s),  s: the 64 bits of the secret at byte 8 * (stripe in its block +
 *                                  i)
 *
 * What a stripe adds does not depend on the accumulator. So the sum of a block can be made first,
 * in any order, for all blocks at once. Only the scrambling between two blocks has an order:
 * accumulator = scramble(accumulator + sum of the block).
 *
 *   | block 0 | block 1 | ... | block n - 1 |  full blocks, each followed by scrambling; n = (bytes
 *                                              - 1) / 1024
 *   | stripe | ... | stripe |                  then whole stripes, (bytes - 1 - 1024 n) / 64 of
 *                                              them
 *            | last stripe |                   the last 64 bytes, with the secret at byte 121: may
 *                                              overlap the others
 *
 * At the end, the eight accumulators are folded into each half of the hash, from another place of
 * the secret.
 */
#ifndef KILN_KERNELS_PIXEL_HASHES_MATH_H
#define KILN_KERNELS_PIXEL_HASHES_MATH_H

#include "base/hd.h"
#include "kernels/pixel_hashes/pixel_hashes.h"

#include <stdint.h>

enum {
    KILN_XXH_LANES = 8,
    KILN_XXH_STRIPES = 16, /* of a block */
    KILN_XXH_STRIPE_BYTES = 64,
    KILN_XXH_BLOCK_BYTES = KILN_XXH_STRIPES * KILN_XXH_STRIPE_BYTES,
    /* the last of them is no full block */
    KILN_XXH_PIECE_BLOCKS = KILN_PIXEL_PIECE * 16 / KILN_XXH_BLOCK_BYTES,
    /* bytes of the secret */
    KILN_XXH_SCRAMBLE_AT = 128,
    KILN_XXH_LAST_AT = 121,
    KILN_XXH_LOW_AT = 11,
    KILN_XXH_HIGH_AT = 117,
};

/* Returns 64 bits of the secret (kSecret of the specification), from this byte on; at most 184. */
static inline KILN_HD uint64_t kiln_xxh_secret(unsigned byte)
{
    static const uint64_t words[24] = {
        0xbe4ba423396cfeb8u, 0x1cad21f72c81017cu, 0xdb979083e96dd4deu, 0x1f67b3b7a4a44072u,
        0x78e5c0cc4ee679cbu, 0x2172ffcc7dd05a82u, 0x8e2443f7744608b8u, 0x4c263a81e69035e0u,
        0xcb00c391bb52283cu, 0xa32e531b8b65d088u, 0x4ef90da297486471u, 0xd8acdea946ef1938u,
        0x3f349ce33f76faa8u, 0x1d4f0bc7c7bbdcf9u, 0x3159b4cd4be0518au, 0x647378d9c97e9fc8u,
        0xc3ebd33483acc5eau, 0xeb6313faffa081c5u, 0x49daf0b751dd0d17u, 0x9e68d429265516d3u,
        0xfca1477d58be162bu, 0xce31d07ad1b8f88fu, 0x280416958f3acb45u, 0x7e404bbbcafbd7afu};
    const unsigned at = byte / 8, bits = byte % 8 * 8;
    return bits == 0 ? words[at] : words[at] >> bits | words[at + 1] << (64 - bits);
}

static inline KILN_HD uint64_t kiln_xxh_start(unsigned lane)
{
    static const uint64_t primes[KILN_XXH_LANES] = {
        0xc2b2ae3du,         0x9e3779b185ebca87u, 0xc2b2ae3d27d4eb4fu, 0x165667b19e3779f9u,
        0x85ebca77c2b2ae63u, 0x85ebca77u,         0x27d4eb2f165667c5u, 0x9e3779b1u};
    return primes[lane];
}

/* Returns what a stripe adds to a lane. */
static inline KILN_HD uint64_t kiln_xxh_stripe(uint64_t word, uint64_t neighbour, uint64_t secret)
{
    const uint64_t key = word ^ secret;
    return neighbour + (key & 0xffffffffu) * (key >> 32);
}

static inline KILN_HD uint64_t kiln_xxh_scramble(uint64_t sum, uint64_t secret)
{
    return (sum ^ sum >> 47 ^ secret) * 0x9e3779b1u; /* PRIME32_1 */
}

/* Returns the 128-bit product's halves, one xor the other. */
static inline KILN_HD uint64_t kiln_xxh_fold(uint64_t a, uint64_t b)
{
#ifdef __CUDA_ARCH__
    return a * b ^ __umul64hi(a, b);
#else
    __extension__ const unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#endif
}

/* Folds the accumulators into one half of the hash. */
static inline KILN_HD uint64_t kiln_xxh_merge(const uint64_t lanes[KILN_XXH_LANES],
                                              unsigned secret_at, uint64_t start)
{
    uint64_t h = start;
    for (unsigned i = 0; i < KILN_XXH_LANES; i += 2)
        h += kiln_xxh_fold(lanes[i] ^ kiln_xxh_secret(secret_at + 8 * i),
                           lanes[i + 1] ^ kiln_xxh_secret(secret_at + 8 * i + 8));
    h ^= h >> 37;
    h *= 0x165667919e3779f9u;
    return h ^ h >> 32;
}

/* Writes the hash of so many bytes from its accumulators. */
static inline KILN_HD void kiln_xxh_end(const uint64_t lanes[KILN_XXH_LANES], uint64_t bytes,
                                        unsigned char out[KILN_PIXEL_HASH_BYTES])
{
    /* PRIME64_1 */
    const uint64_t low = kiln_xxh_merge(lanes, KILN_XXH_LOW_AT, bytes * 0x9e3779b185ebca87u);
    /* PRIME64_2 */
    const uint64_t high = kiln_xxh_merge(lanes, KILN_XXH_HIGH_AT, ~(bytes * 0xc2b2ae3d27d4eb4fu));
    for (unsigned i = 0; i < 8; i++) {
        out[i] = (unsigned char)(high >> (56 - 8 * i));
        out[8 + i] = (unsigned char)(low >> (56 - 8 * i));
    }
}

/* A piece, as it is hashed. */
typedef struct {
    uint64_t first; /* byte of the picture */
    uint64_t bytes;
    uint32_t blocks;  /* full ones, each scrambled */
    uint32_t stripes; /* after them, without the last */
} kiln_xxh_piece;

static inline KILN_HD kiln_xxh_piece kiln_xxh_piece_at(uint64_t pixels, uint64_t i)
{
    kiln_xxh_piece p;
    const uint64_t left = pixels - i * KILN_PIXEL_PIECE;
    p.first = i * KILN_PIXEL_PIECE * 16;
    p.bytes = (left < KILN_PIXEL_PIECE ? left : KILN_PIXEL_PIECE) * 16;
    p.blocks = (uint32_t)((p.bytes - 1) / KILN_XXH_BLOCK_BYTES);
    p.stripes = (uint32_t)((p.bytes - 1) % KILN_XXH_BLOCK_BYTES / KILN_XXH_STRIPE_BYTES);
    return p;
}

#endif
