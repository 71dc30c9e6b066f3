/* tile_sort_cuda -- makes lists from (tile, Gaussian) pairs: a stable sort by tile
 * (kernels/sort/radix_cuda.cuh), over the bits that tile numbers need, and the number of pairs of
 * each tile.
 *
 * uint16_t tiles, two passes at most: pairs are counted by tile before they are sorted, in shared
 * memory, and from the pairs of each tile follows what each pass of the sort would count. So the
 * last pass writes ids alone. Between the two passes a pair is one word: what is left of the tile's
 * number above the id. There must be bits enough for both (have_words).
 *
 * uint32_t tiles, for all else: the sort counts for itself and keeps the tiles, which are then
 * counted by their borders.
 */
#ifndef KILN_KERNELS_TILE_PAIRS_TILE_SORT_CUDA_CUH
#define KILN_KERNELS_TILE_PAIRS_TILE_SORT_CUDA_CUH

#include "kernels/sort/sort.cuh"
#include "kernels/tile_pairs/tile_capacity_cuda.cuh"

#include <algorithm>

namespace
{

enum { TILE_BLOCK = 256, NARROW_BITS = 16, WORD_BITS = 32 };

/* ---- counting -------------------------------------------------------------------------------- */
/* COUNT_TILES: of a block in 48 KB, which every device has; a picture of 1920 x 1080 has fewer.
 * COUNT_STEP: pairs that a block reads at once. COUNT_PAIRS: so many at least for a second block of
 * a multiprocessor, as each block adds all its tiles. */
constexpr unsigned COUNT_BLOCK = 1024, COUNT_AT_ONCE = 2, COUNT_BLOCKS = 132 * COUNT_AT_ONCE,
                   COUNT_TILES = 12288, COUNT_EACH = sizeof(uint4) / sizeof(uint16_t),
                   COUNT_STEP = COUNT_BLOCK * COUNT_EACH, COUNT_PAIRS = COUNT_STEP * 4;

/* Adds up a block's counts by the digits of both passes: half of its threads for each, two threads
 * a digit. from: a multiple of RADIX_DIGITS. */
__device__ inline void add_digits(const uint32_t *own_counts, uint32_t from, uint32_t own,
                                  const kiln::radix_plan &plan, kiln::radix_state *state)
{
    constexpr uint32_t PARTS = COUNT_BLOCK / 2 / kiln::RADIX_DIGITS;
    const uint32_t low_bits = plan.width(0), low = 1u << low_bits;
    const uint32_t t = threadIdx.x % kiln::RADIX_DIGITS, pass = threadIdx.x / (COUNT_BLOCK / 2);
    const uint32_t part = threadIdx.x / kiln::RADIX_DIGITS % PARTS;
    uint32_t sum = 0, digit = t;
    if (pass == 0 && t < low) {
#pragma unroll 8
        for (uint32_t i = t + part * low; i < own; i += PARTS * low) sum += own_counts[i];
    } else if (pass == 1 && plan.passes == 2) {
        digit = (from >> low_bits) + t;
#pragma unroll 8
        for (uint32_t k = part; k < low; k += PARTS) {
            /* each thread begins elsewhere, for the banks */
            const uint32_t i = (t << low_bits) + ((k + t) & (low - 1));
            if (i < own) sum += own_counts[i];
        }
    }
    if (sum) kiln::add64(&state->counts[pass][digit], sum);
}

/* Counts the pairs of tiles [blockIdx.y * slice, + slice) of n_tiles in shared memory and adds them
 * to `counts` and to the digits' in *state; both must be 0 before. tiles is 16-byte aligned. Clears
 * so many words of the first pass's look-back, too. */
__global__ void __launch_bounds__(COUNT_BLOCK, COUNT_AT_ONCE)
    count_tiles(const uint16_t *tiles, const capacity_rule rule, uint32_t n_tiles, uint32_t slice,
                uint32_t *counts, const kiln::radix_plan plan, kiln::radix_state *state,
                uint32_t *look_back, uint64_t look_back_words)
{
    extern __shared__ uint32_t own_counts[];
    const uint32_t from = blockIdx.y * slice, own = min(n_tiles - from, slice);
    for (uint32_t i = threadIdx.x; i < own; i += COUNT_BLOCK) own_counts[i] = 0;
    kiln::launch_before_is_done();
    const uint4 *const eights = reinterpret_cast<const uint4 *>(tiles);
    const uint64_t n = rule.listed(), n_eights = n / COUNT_EACH;
    uint64_t at = kiln::thread_index();
    uint4 next = at < n_eights ? eights[at] : uint4{};
    for (uint64_t i = kiln::thread_index(); blockIdx.y == 0 && i < look_back_words;
         i += kiln::thread_count())
        look_back[i] = 0;
    __syncthreads();
    const auto count_tile = [&](uint32_t tile) {
        if (tile - from < own) atomicAdd(&own_counts[tile - from], 1u);
    };
    while (at < n_eights) {
        const uint32_t now[] = {next.x, next.y, next.z, next.w};
        at += kiln::thread_count();
        if (at < n_eights) next = eights[at];
#pragma unroll
        for (const uint32_t two : now) {
            count_tile(two & 0xffff);
            count_tile(two >> 16);
        }
    }
    if (kiln::thread_index() < n % COUNT_EACH)
        count_tile(tiles[n_eights * COUNT_EACH + kiln::thread_index()]);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < own; i += COUNT_BLOCK)
        if (own_counts[i]) atomicAdd(&counts[from + i], own_counts[i]);
    add_digits(own_counts, from, own, plan, state);
}

/* Counts the pairs of each tile from the sorted tiles. Where a tile begins, that place is
 * subtracted from its count; where it ends, added, modulo 2^32. Elements behind the listed pairs
 * are ignored. counts must be 0 before; sorted is 16-byte aligned. */
template <typename Tile>
__global__ void __launch_bounds__(TILE_BLOCK)
    count_by_tile(const Tile *sorted, const capacity_rule rule, uint32_t *counts)
{
    constexpr uint32_t EACH = sizeof(uint4) / sizeof(Tile), STEP = TILE_BLOCK * EACH;
    kiln::launch_before_is_done();
    const uint64_t n = rule.listed();
    for (uint64_t base = static_cast<uint64_t>(blockIdx.x) * STEP; base < n;
         base += static_cast<uint64_t>(gridDim.x) * STEP) {
        const uint64_t first = base + threadIdx.x * EACH, end = min(first + EACH, n);
        alignas(uint4) Tile tiles[EACH] = {};
        if (first + EACH <= n)
            *reinterpret_cast<uint4 *>(tiles) = *reinterpret_cast<const uint4 *>(&sorted[first]);
        else
            for (uint32_t k = 0; k < EACH; k++)
                if (first + k < n) tiles[k] = sorted[first + k];
        Tile before =
            static_cast<Tile>(__shfl_up_sync(~0u, static_cast<uint32_t>(tiles[EACH - 1]), 1));
        if (threadIdx.x % 32 == 0 && first > 0 && first < n) before = sorted[first - 1];
#pragma unroll
        for (uint32_t k = 0; k < EACH; k++) {
            const uint64_t i = first + k;
            if (i >= end) break;
            const bool begins = i == 0 || tiles[k] != before;
            if (begins) atomicAdd(&counts[tiles[k]], 0u - static_cast<uint32_t>(i));
            if (begins && i > 0) atomicAdd(&counts[before], static_cast<uint32_t>(i));
            if (i == n - 1) atomicAdd(&counts[tiles[k]], static_cast<uint32_t>(n));
            before = tiles[k];
        }
    }
}

/* ---- what passes read and write -------------------------------------------------------------- */
/* The first pass reads pairs as they were written. */
template <typename Tile> struct tile_input {
    capacity_rule rule;
    const Tile *tiles;
    const uint32_t *ids;

    __device__ uint64_t count() const { return rule.listed(); }
    __device__ Tile key(uint64_t i) const { return tiles[i]; }
    __device__ uint32_t value(uint64_t i) const { return ids[i]; }
};

/* A word between two passes: the tile's number without its lowest bits, which the first pass has
 * sorted by, above the id. */
struct word_shape {
    unsigned sorted_bits, id_bits;
};

struct word_output {
    word_shape shape;
    uint32_t *words;

    __device__ void put(uint64_t i, uint16_t tile, uint32_t id) const
    {
        words[i] = static_cast<uint32_t>(tile) >> shape.sorted_bits << shape.id_bits | id;
    }
};

struct word_input : kiln::radix_words {
    capacity_rule rule;
    word_shape shape;
    const uint32_t *words;

    word_input(const capacity_rule &r, const word_shape &s, const uint32_t *w)
        : rule(r), shape(s), words(w)
    {
    }
    unsigned first_bit() const { return shape.id_bits; }
    __device__ uint64_t count() const { return rule.listed(); }
    __device__ uint32_t key(uint64_t i) const { return words[i]; }
};

/* The last pass writes ids. */
struct ids_output {
    word_shape shape;
    uint32_t *ids;

    __device__ void put(uint64_t i, uint32_t, uint32_t id) const { ids[i] = id; }
    __device__ void put(uint64_t i, uint32_t word) const
    {
        ids[i] = word & ((1u << shape.id_bits) - 1);
    }
};

/* ---- launchers ------------------------------------------------------------------------------- */
template <typename Tile> struct tile_sort {
    kiln::radix_sort<Tile> radix;
    uint64_t n_tiles;
    word_shape shape; /* of uint16_t tiles */

    unsigned lists() const { return (radix.plan.passes - 1) % 2; } /* where the last pass writes */
    /* [capacity] each: where pairs are written, which is where the first pass does not write. */
    Tile *tiles() const { return radix.keys[1]; }
    uint32_t *ids() const { return radix.values[1]; }
};

inline unsigned bits_below(uint64_t end)
{
    unsigned bits = 1;
    while (end > 1ull << bits) bits++;
    return bits;
}

/* Do uint16_t tiles do? */
inline bool have_words(uint64_t n_tiles, uint64_t n_ids)
{
    const kiln::radix_plan plan = kiln::radix_plan_of(bits_below(n_tiles));
    return plan.bits <= NARROW_BITS &&
           (plan.passes == 1 || bits_below(n_ids) + plan.width(1) <= WORD_BITS);
}
static_assert(NARROW_BITS <= 2 * static_cast<int>(kiln::RADIX_BITS), "two passes at most");

/* Lays out what nothing uses before the first pass ends its reading of pairs. Ids are below n_ids;
 * ids [capacity]: where the lists are to be. */
template <typename Tile>
void lay_out_between(tile_sort<Tile> *s, kiln_carve *c, uint64_t capacity, uint64_t n_tiles,
                     uint64_t n_ids, uint32_t *ids)
{
    *s = {};
    s->n_tiles = n_tiles;
    s->radix.plan = kiln::radix_plan_of(bits_below(n_tiles));
    s->shape = {s->radix.plan.first(1), bits_below(n_ids)};
    s->radix.values[s->lists()] = ids;
    /* else pairs are written there */
    if (s->lists() == 1) s->radix.values[0] = kiln::take<uint32_t>(c, capacity);
    if (sizeof(Tile) > sizeof(uint16_t)) s->radix.keys[0] = kiln::take<Tile>(c, capacity);
}

/* Lays out the rest, which is used from when pairs are written. state: cleared by the caller before
 * tiles are added up. */
template <typename Tile>
void lay_out_tile_sort(tile_sort<Tile> *s, kiln_carve *c, uint64_t capacity,
                       kiln::radix_state *state)
{
    kiln::lay_out_radix(&s->radix, c, capacity, s->radix.plan.bits, state);
    s->radix.keys[1] = kiln::take<Tile>(c, capacity);
    if (s->lists() == 0) s->radix.values[1] = kiln::take<uint32_t>(c, capacity);
}

/* Tiles of a block that counts: all, where its shared memory has room. */
inline uint32_t count_slice(uint64_t n_tiles)
{
    const uint64_t capacity =
        kiln::radix_shared_most() / sizeof(uint32_t) / kiln::RADIX_DIGITS * kiln::RADIX_DIGITS;
    return static_cast<uint32_t>(n_tiles <= COUNT_TILES || n_tiles <= capacity ? n_tiles
                                 : capacity > COUNT_TILES                      ? capacity
                                                                               : COUNT_TILES);
}

/* Counts the pairs of each tile, and by digit. */
inline kiln_status count_first(const kiln_exec *x, const tile_sort<uint16_t> &s,
                               const capacity_rule &rule, uint32_t *tile_counts, kiln_error *err)
{
    const uint32_t n_tiles = static_cast<uint32_t>(s.n_tiles), slice = count_slice(n_tiles);
    const size_t shared = slice * sizeof(uint32_t);
    /* as many as fit at once */
    const unsigned most = slice > 2 * COUNT_TILES ? COUNT_BLOCKS / 2 : COUNT_BLOCKS;
    /* a block of each multiprocessor first, if it reads no fewer pairs than it adds tiles */
    const unsigned few =
        kiln::blocks_for(s.radix.n, std::max<unsigned>(COUNT_STEP, slice), COUNT_BLOCKS / 2);
    const dim3 grid(std::max(few, kiln::blocks_for(s.radix.n, COUNT_PAIRS, most)),
                    (n_tiles + slice - 1) / slice);
    /* the most there is, not this view's: another thread may set it for its own before the
     * launch */
    if (slice > COUNT_TILES)
        CUDA_TRY(cudaFuncSetAttribute(count_tiles, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(kiln::radix_shared_most())));
    CUDA_RUN(kiln::launch_early(count_tiles, grid, COUNT_BLOCK, shared, x->stream, s.tiles(), rule,
                                n_tiles, slice, tile_counts, s.radix.plan, s.radix.state,
                                static_cast<uint32_t *>(s.radix.look_back[0]),
                                s.radix.look_back_words()));
    return KILN_OK;
}

/* Sorts the pairs and counts them in tile_counts, which must be 0. The rider (radix_cuda.cuh) works
 * when all are counted, beside the last pass. */
template <typename Rider = kiln::radix_no_rider>
kiln_status sort_lists(const kiln_exec *x, const tile_sort<uint16_t> &s, const capacity_rule &rule,
                       uint32_t *tile_counts, kiln_error *err, const Rider &rider = {})
{
    const kiln::radix_sort<uint16_t> &r = s.radix;
    const tile_input<uint16_t> written = {rule, s.tiles(), s.ids()};
    if (r.n == 0 || s.n_tiles == 0) {
        CUDA_RUN(kiln::run_radix_rider(rider, x->stream));
        return KILN_OK;
    }
    KILN_TRY(count_first(x, s, rule, tile_counts, err));
    /* neighbouring pairs are of different tiles */
    constexpr kiln::radix_rank MASKS = kiln::radix_rank::MASKS;
    if (r.plan.passes == 1) {
        CUDA_RUN(kiln::run_radix_pass<MASKS>(r, written, ids_output{s.shape, r.values[0]}, 0,
                                             x->stream, rider));
        return KILN_OK;
    }
    CUDA_RUN(
        kiln::run_radix_pass<MASKS>(r, written, word_output{s.shape, r.values[0]}, 0, x->stream));
    CUDA_RUN(kiln::run_radix_pass<MASKS>(r, word_input{rule, s.shape, r.values[0]},
                                         ids_output{s.shape, r.values[1]}, 1, x->stream, rider));
    return KILN_OK;
}

template <typename Rider = kiln::radix_no_rider>
kiln_status sort_lists(const kiln_exec *x, const tile_sort<uint32_t> &s, const capacity_rule &rule,
                       uint32_t *tile_counts, kiln_error *err, const Rider &rider = {})
{
    unsigned at;
    CUDA_RUN(
        kiln::run_radix(s.radix, tile_input<uint32_t>{rule, s.tiles(), s.ids()}, x->stream, &at));
    LAUNCH_EARLY(count_by_tile<uint32_t>,
                 kiln::blocks_for(s.radix.n, TILE_BLOCK * sizeof(uint4) / sizeof(uint32_t)),
                 TILE_BLOCK, s.radix.keys[at], rule, tile_counts);
    CUDA_RUN(kiln::run_radix_rider(rider, x->stream));
    return KILN_OK;
}
} // namespace

#endif
