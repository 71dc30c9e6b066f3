/* knn_sort_cuda -- sorts the rows by the codes of their points, with the passes of kernels/sort.
 *
 * Problem. A pass of the sort moves keys and rows twice across the device. Codes have 40 or 48
 * bits, so keys of 64 bits would be moved five or six times, though nobody asks for the codes
 * afterwards.
 *
 * What is moved:
 *   - The kernel that makes the codes counts their digits, too. It writes no rows: the first pass
 *     reads code i for row i.
 *   - The first passes sort by the lowest bits, all but the highest 32. Then those are done with,
 *     and the last of these passes writes what is left as keys of 32 bits.
 *   - The last pass writes rows alone.
 *   - Above 2^24 points codes of 32 bits are enough if no large part of the points is in clusters
 *     (choose_codes finds out). Then the first passes have no pairs, and codes lie where they would
 *     have left keys.
 *
 *   bytes a point, written and read: 8 codes, 16 the first pass, 16 each that follows, 12 the last
 *
 * Memory: two arrays of 8 bytes a point, which passes read and write in turn. The sorted rows come
 * into the one that the last pass does not read. Between two long passes rows need 4 bytes more.
 */
#ifndef KILN_KERNELS_KNN_SORT_CUDA_CUH
#define KILN_KERNELS_KNN_SORT_CUDA_CUH

#include "base/minmax.h"
#include "kernels/cuda.cuh"
#include "kernels/sort/radix_run_cuda.cuh"

#include <stdint.h>

namespace
{

constexpr unsigned SHORT_BITS = 32, MOST_BITS = 48, MOST_DIGITS = MOST_BITS / kiln::RADIX_BITS;

/* As much of a code as so many points need: the sort takes a pass for eight bits. */
inline unsigned code_bits(uint64_t n) { return n <= uint64_t(1) << 24 ? 40 : MOST_BITS; }

struct digit_counts {
    kiln::radix_state low, high;
};

struct row_sort {
    kiln::radix_sort<uint64_t> low;  /* passes over the code's lowest bits */
    kiln::radix_sort<uint32_t> high; /* over the other 32 */
    uint64_t *places[2];             /* codes begin in [0] */
    uint32_t *rows;                  /* sorted */
    uint32_t *long_rows;             /* what the first of two long passes leaves */
    digit_counts *counts;
    /* not 0: only the highest 32 bits of codes are there; cleared with the counts */
    uint32_t *is_short;
    /* of 32 bits, of the first pass over low and over high bits; cleared with the counts */
    uint64_t look_back_words[2];
};

inline bool one_long_pass(uint64_t n) { return code_bits(n) - SHORT_BITS <= kiln::RADIX_BITS; }

/* What is free again when the rows are sorted. First the place that the last pass reads: the sorted
 * rows may lie behind its 8 bytes a point. */
inline void lay_out_places(row_sort *s, kiln_carve *c, uint64_t n)
{
    const unsigned first = one_long_pass(n) ? 0 : 1;
    s->places[first] = kiln::take<uint64_t>(c, n);
    s->places[1 - first] = kiln::take<uint64_t>(c, n);
}

inline void lay_out_counts(row_sort *s, kiln_carve *c)
{
    s->counts = kiln::take<digit_counts>(c, 1);
    s->is_short = s->counts ? &s->counts->low.callers[0] : nullptr;
}

/* After the counts. */
inline void lay_out_sort(row_sort *s, kiln_carve *c, uint64_t n)
{
    kiln::lay_out_radix(&s->low, c, n, code_bits(n) - SHORT_BITS, &s->counts->low);
    kiln::lay_out_radix(&s->high, c, n, SHORT_BITS, &s->counts->high);
    s->look_back_words[0] = s->low.look_back_words();
    s->look_back_words[1] = s->high.look_back_words();
}

/* Code i is row i's. */
struct codes_of_rows {
    uint64_t n;
    const uint64_t *codes;

    __device__ uint64_t count() const { return n; }
    __device__ uint64_t key(uint64_t i) const { return codes[i]; }
    __device__ uint32_t value(uint64_t i) const { return static_cast<uint32_t>(i); }
};

/* None where codes are short. */
struct long_codes_of_rows : codes_of_rows {
    const uint32_t *is_short;

    __device__ uint64_t count() const { return *is_short ? 0 : n; }
};

/* What the first passes leave, or short codes of all rows in the same place. */
struct short_keys {
    uint64_t n;
    const uint32_t *keys, *rows, *is_short;

    __device__ uint64_t count() const { return n; }
    __device__ uint32_t key(uint64_t i) const { return keys[i]; }
    __device__ uint32_t value(uint64_t i) const
    {
        return *is_short ? static_cast<uint32_t>(i) : rows[i];
    }
};

/* Keys of 32 bits in the first half of a place, rows in the second. */
struct short_pairs {
    uint32_t *keys, *rows;

    short_pairs(uint64_t *place, uint64_t n)
        : keys(reinterpret_cast<uint32_t *>(place)), rows(keys + n)
    {
    }
};

struct to_short_pairs {
    short_pairs to;
    unsigned done; /* bits */

    __device__ void put(uint64_t i, uint64_t code, uint32_t row) const
    {
        to.keys[i] = static_cast<uint32_t>(code >> done);
        to.rows[i] = row;
    }
};

struct to_rows {
    uint32_t *rows;

    __device__ void put(uint64_t i, uint32_t, uint32_t row) const { rows[i] = row; }
};

/* The two passes over codes that need more than one pass before the highest 32 bits, and the first
 * over those. */
inline cudaError_t sort_by_many_low_bits(const row_sort &s, cudaStream_t stream)
{
    const uint64_t n = s.low.n;
    const long_codes_of_rows all = {{n, s.places[0]}, s.is_short};
    const kiln::radix_arrays<uint64_t, long_codes_of_rows> half = {all, s.places[1], s.long_rows};
    const short_pairs from(s.places[0], n), to(s.places[1], n);
    cudaError_t e = kiln::run_radix_pass(
        s.low, all, kiln::radix_to_arrays<uint64_t>{s.places[1], s.long_rows}, 0, stream);
    if (e == cudaSuccess)
        e = kiln::run_radix_pass(s.low, half, to_short_pairs{from, s.low.plan.bits}, 1, stream);
    if (e == cudaSuccess)
        e = kiln::run_radix_pass(s.high, short_keys{n, from.keys, from.rows, s.is_short},
                                 kiln::radix_to_arrays<uint32_t>{to.keys, to.rows}, 0, stream);
    return e;
}

/* Puts the rows in the order of their codes. The digits have been counted, and the look-back of
 * both first passes is 0. */
inline cudaError_t sort_rows(const row_sort &s, cudaStream_t stream)
{
    const uint64_t n = s.low.n;
    const codes_of_rows all = {n, s.places[0]};
    const bool one_pass = one_long_pass(n);
    cudaError_t e =
        one_pass ? kiln::run_radix_pass(
                       s.low, all, to_short_pairs{{s.places[1], n}, s.low.plan.bits}, 0, stream)
                 : sort_by_many_low_bits(s, stream);
    unsigned at = 1; /* the place where the pairs are */
    for (unsigned pass = one_pass ? 0 : 1; pass < s.high.plan.passes && e == cudaSuccess;
         pass++, at = 1 - at) {
        const short_pairs from(s.places[at], n), to(s.places[1 - at], n);
        const kiln::radix_arrays<uint32_t, codes_of_rows> in = {all, from.keys, from.rows};
        if (pass + 1 < s.high.plan.passes)
            e = kiln::run_radix_pass(s.high, in, kiln::radix_to_arrays<uint32_t>{to.keys, to.rows},
                                     pass, stream);
        else
            e = kiln::run_radix_pass(s.high, in, to_rows{s.rows}, pass, stream);
    }
    return e;
}

} // namespace

#endif
