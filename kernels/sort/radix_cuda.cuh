/* radix_cuda -- a stable radix sort of (key, 32-bit value) on the device, least significant digit
 * first, one pass over the pairs for each digit of up to 8 bits (A. Adinets, D. Merrill, Onesweep,
 * 2022).
 *
 *   1. One launch counts the digits of all passes.
 *   2. A pass is one launch. A block takes a tile of neighbouring pairs, counts their digits and
 *      publishes the counts. Then it ranks the pairs by digit in shared memory and finds how many
 *      of each digit the tiles before it have, by decoupled look-back (place_cuda.cuh has the
 *      idea), one thread for each digit. It writes its pairs digit by digit, so that neighbours in
 *      memory are written together.
 *
 * What is sorted comes from an Input: how many pairs there are, which the device alone may know,
 * and each pair. So the first pass can make its keys from other arrays, and nothing behind the last
 * pair is touched:
 *
 *   struct Input {
 *       __device__ uint64_t count() const;            at most as many as the launcher was told
 *       __device__ Key key(uint64_t i) const;
 *       __device__ uint32_t value(uint64_t i) const;
 *   };
 *
 * Each pass has an Output, which may keep less than the pair where less is needed afterwards:
 *
 *   struct Output {
 *       __device__ void put(uint64_t i, Key key, uint32_t value) const;
 *   };
 *
 * If a pair is one word, an Input derived from radix_words gives it as the key and returns the
 * first bit of the pass's digit, unsigned first_bit() const; no values are moved, and put has no
 * value.
 *
 * Small launches wait for each other longer than they work. From Hopper on a pass is put on the
 * device while the one before runs, and waits there for its end. Tiles are small where there are
 * few pairs, so that all multiprocessors have some.
 *
 * Memory: two arrays of a word for each digit and tile, used in turn. A pass clears the one of the
 * next, which the pass before has finished with.
 */
#ifndef KILN_KERNELS_SORT_RADIX_CUDA_CUH
#define KILN_KERNELS_SORT_RADIX_CUDA_CUH

#include "kernels/early_cuda.cuh"

#include <cuda/atomic>
#include <stdint.h>
#include <type_traits>

namespace kiln
{

constexpr unsigned RADIX_BITS = 8, RADIX_DIGITS = 1u << RADIX_BITS, RADIX_PASSES = 8,
                   RADIX_CALLERS = 4;
constexpr unsigned RADIX_COUNT_BLOCK = 256, RADIX_COUNT_EACH = 16, RADIX_COUNT_BLOCKS = 132 * 4;
/* fewer pairs are counted in words of 32 bits, of which two say what they are */
constexpr uint64_t RADIX_NARROW = 1ull << 30;
constexpr unsigned RADIX_LOOK = 8; /* words of look-back that are asked for at once */

/* Which bits of a key are the digit of which pass: as even as they can be, so that no pass has few
 * bits. */
struct radix_plan {
    unsigned bits, passes;

    __host__ __device__ unsigned first(unsigned pass) const { return bits * pass / passes; }
    __host__ __device__ unsigned width(unsigned pass) const
    {
        return first(pass + 1) - first(pass);
    }
};

inline radix_plan radix_plan_of(unsigned bits)
{
    return {bits, (bits + RADIX_BITS - 1) / RADIX_BITS};
}

template <typename Key>
__device__ inline unsigned radix_digit(Key key, unsigned first, unsigned width)
{
    return static_cast<unsigned>(key >> first) & ((1u << width) - 1);
}

/* What all launches of a sort share; cleared before the first one. */
struct radix_state {
    uint64_t counts[RADIX_PASSES][RADIX_DIGITS]; /* pairs of each digit */
    uint32_t tickets[RADIX_PASSES];
    uint32_t callers[RADIX_CALLERS]; /* the caller's, cleared with the rest */
};

struct radix_words {
};
template <typename Input>
constexpr bool RADIX_HAS_VALUES = !std::is_base_of<radix_words, Input>::value;

/* How a pass is cut: few large tiles look back less, many small ones keep all multiprocessors
 * busy. */
template <int Threads, int Items> struct radix_cut {
    static constexpr int THREADS = Threads, ITEMS = Items, TILE = Threads * Items;
};
using radix_many = radix_cut<512, 14>;
using radix_some = radix_cut<512, 8>;
using radix_few = radix_cut<256, 4>;
enum class radix_size { FEW, SOME, MANY };

/* How a warp finds the pairs of equal digits among 32:
 *   BALLOTS  a ballot for each bit of the digit
 *   MASKS    each lane sets its bit in a mask of its digit in shared memory. Two thirds of the
 *            instructions, but lanes of one digit wait for each other, and so does what the warp
 *            ranks next. */
enum class radix_rank { BALLOTS, MASKS };

/* How a pass ranks, and how many digits it has room for. */
template <radix_rank Rank, unsigned Bits> struct radix_way {
    static constexpr radix_rank RANK = Rank;
    static constexpr unsigned BITS = Bits, DIGITS = 1u << Bits;
};
using radix_ballots = radix_way<radix_rank::BALLOTS, RADIX_BITS>;
using radix_masks = radix_way<radix_rank::MASKS, RADIX_BITS>;
/* half the memory: a block more on a multiprocessor */
using radix_few_masks = radix_way<radix_rank::MASKS, RADIX_BITS - 1>;

/* ---- counting -------------------------------------------------------------------------------- */
/* Clears the first pass's look-back, too, so many words of 32 bits. */
template <typename Key, typename Input>
__global__ void __launch_bounds__(RADIX_COUNT_BLOCK)
    radix_count(const Input in, const radix_plan plan, radix_state *state, uint32_t *look_back,
                uint64_t look_back_words)
{
    __shared__ uint32_t counts[RADIX_PASSES][RADIX_DIGITS];
    for (unsigned i = threadIdx.x; i < plan.passes * RADIX_DIGITS; i += RADIX_COUNT_BLOCK)
        (&counts[0][0])[i] = 0;
    launch_before_is_done();
    for (uint64_t i = thread_index(); i < look_back_words; i += thread_count()) look_back[i] = 0;
    __syncthreads();
    const uint64_t n = in.count(), step = thread_count();
    for (uint64_t i = thread_index(); i < n; i += RADIX_COUNT_EACH * step) {
        Key keys[RADIX_COUNT_EACH];
#pragma unroll
        for (unsigned k = 0; k < RADIX_COUNT_EACH; k++)
            if (i + k * step < n) keys[k] = in.key(i + k * step);
        for (unsigned p = 0; p < plan.passes; p++) {
            const unsigned first = plan.first(p), width = plan.width(p);
#pragma unroll
            for (unsigned k = 0; k < RADIX_COUNT_EACH; k++)
                if (i + k * step < n) atomicAdd(&counts[p][radix_digit(keys[k], first, width)], 1u);
        }
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < plan.passes * RADIX_DIGITS; i += RADIX_COUNT_BLOCK) {
        const uint32_t count = (&counts[0][0])[i];
        if (count) add64(&state->counts[0][0] + i, count);
    }
}

/* ---- look-back ------------------------------------------------------------------------------- */
/* A word of look-back: a number of pairs, above it what they are of. Word: uint32_t, or uint64_t
 * for RADIX_NARROW pairs and more.
 */
template <typename Word> struct radix_word {
    static constexpr unsigned SHIFT = 8 * sizeof(Word) - 2;
    /* TILE: of this tile alone */
    static constexpr Word TILE = Word(1) << SHIFT, SUM = Word(2) << SHIFT, VALUE = TILE - 1;
    using shared = cuda::atomic_ref<Word, cuda::thread_scope_device>;

    __device__ static void say(Word *word, Word what)
    {
        shared(*word).store(what, cuda::memory_order_relaxed);
    }
    __device__ static Word ask(Word *word)
    {
        return shared(*word).load(cuda::memory_order_relaxed);
    }
};

/* How many pairs of this thread's digit the tiles before `tile` have. Several words are read at
 * once. Otherwise a block would wait for each of the tiles before it that are as late as itself. */
template <typename Word> __device__ Word radix_look_back(Word *look_back, uint64_t tile)
{
    using word = radix_word<Word>;
    Word before = 0;
    for (uint64_t left = tile; left > 0;) { /* tiles 0 .. left - 1 are to be added */
        Word words[RADIX_LOOK];
#pragma unroll
        for (unsigned k = 0; k < RADIX_LOOK; k++)
            words[k] = k < left ? word::ask(&look_back[(left - 1 - k) * RADIX_DIGITS + threadIdx.x])
                                : word::SUM;
#pragma unroll
        for (unsigned k = 0; k < RADIX_LOOK; k++) {
            if (words[k] < word::TILE) break; /* not yet known: ask again from here */
            before += words[k] & word::VALUE;
            if (words[k] >= word::SUM) return before;
            left--;
        }
    }
    return before;
}

/* ---- a pass ---------------------------------------------------------------------------------- */
/* Of a warp and a digit. */
template <radix_rank> struct radix_cell {
    uint32_t place; /* pairs; then where the next one goes within the tile */
};
template <> struct alignas(uint64_t) radix_cell<radix_rank::MASKS> {
    uint32_t place, lanes; /* lanes: whose pair has the digit, while 32 are ranked; else 0 */
};

/* Shared memory of a block. */
template <typename Key, typename Word, typename Cut, typename Way, bool VALUES = true>
struct radix_shared_memory {
    static constexpr unsigned TILE = Cut::TILE, WARPS = Cut::THREADS / 32;
    Key keys[TILE];
    uint32_t values[VALUES ? TILE : 1];
    Word places[Way::DIGITS]; /* where a digit's pairs go, less their place within the tile */
    radix_cell<Way::RANK> cells[WARPS][Way::DIGITS];
    Word all_sums[RADIX_DIGITS / 32];
    uint32_t sums[RADIX_DIGITS / 32], ticket;
};

/* Returns the sum over the digits before this thread's. By the whole block; `sums` is nobody
 * else's. */
template <typename T> __device__ T radix_sum_before(T v, T *sums)
{
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    T sum = v;
#pragma unroll
    for (unsigned step = 1; step < 32; step *= 2) {
        const T other = __shfl_up_sync(~0u, sum, step);
        if (lane >= step) sum += other;
    }
    if (lane == 31 && warp < RADIX_DIGITS / 32) sums[warp] = sum;
    __syncthreads();
#pragma unroll
    for (unsigned w = 0; w < RADIX_DIGITS / 32; w++) sum += w < warp ? sums[w] : 0;
    return sum - v;
}

/* Lanes of the warp with the same digit. */
__device__ inline unsigned radix_alike(unsigned digit)
{
    unsigned alike = ~0u;
#pragma unroll
    for (unsigned b = 0; b < RADIX_BITS; b++) {
        const bool set = digit >> b & 1;
        const unsigned lanes = __ballot_sync(~0u, set);
        alike &= set ? lanes : ~lanes;
    }
    return alike;
}

/* Return where this lane's pair goes within the tile; cells: the warp's. Called by a whole warp, 32
 * pairs after 32. */
__device__ inline uint32_t radix_place(radix_cell<radix_rank::BALLOTS> *cells, unsigned digit)
{
    uint32_t *const place = &cells[digit].place;
    const unsigned alike = radix_alike(digit),
                   below = __popc(alike & ((1u << threadIdx.x % 32) - 1));
    const uint32_t to = *place + below;
    __syncwarp();
    if (below == 0) *place = to + __popc(alike);
    __syncwarp();
    return to;
}

__device__ inline uint32_t radix_place(radix_cell<radix_rank::MASKS> *cells, unsigned digit)
{
    radix_cell<radix_rank::MASKS> *const cell = &cells[digit];
    atomicOr(&cell->lanes, 1u << threadIdx.x % 32);
    __syncwarp();
    const radix_cell<radix_rank::MASKS> seen = *cell;
    const unsigned below = __popc(seen.lanes & ((1u << threadIdx.x % 32) - 1));
    __syncwarp();
    if (below == 0) *cell = {seen.place + __popc(seen.lanes), 0};
    __syncwarp();
    return seen.place + below;
}

/* Of a multiprocessor, at least: else the compiler takes so many registers that too few threads
 * fit. */
template <typename Key, bool VALUES>
constexpr int RADIX_THREADS_AT_ONCE = sizeof(Key) == sizeof(uint64_t) ? 768
                                      : VALUES                        ? 1024
                                                                      : 1536;

/* Other work that needs no more than what is there before a pass, and would take a launch of its
 * own: it has the first blocks of the pass's launch. A Rider says how many, what shared memory
 * they need (no more than the pass), and does it, called by a whole block:
 *
 *   struct Rider {
 *       __host__ __device__ uint32_t blocks() const;
 *       template <unsigned THREADS> using memory = ...;
 *       template <unsigned THREADS>
 *       __device__ void ride(memory<THREADS> &m, uint32_t block) const;
 *   };
 */
struct radix_no_rider {
    __host__ __device__ uint32_t blocks() const { return 0; }
    template <unsigned> struct memory {
    };
    template <unsigned THREADS> __device__ void ride(memory<THREADS> &, uint32_t) const {}
};

/* What a pass reads and writes beside its pairs. */
template <typename Word> struct radix_job {
    unsigned first, width; /* of the digit */
    const uint64_t *counts;
    uint32_t *ticket;
    Word *look_back, *next; /* next: the other pass's, to be cleared; NULL behind the last pass */
};

template <typename Key, typename Word, typename Cut, typename Way, typename Input, typename Output,
          typename Rider>
__global__ void
__launch_bounds__(Cut::THREADS, RADIX_THREADS_AT_ONCE<Key, RADIX_HAS_VALUES<Input>> / Cut::THREADS)
    radix_pass(const Input in, const Output out, const radix_job<Word> j, const Rider rider)
{
    constexpr bool VALUES = RADIX_HAS_VALUES<Input>;
    constexpr int THREADS = Cut::THREADS, ITEMS = Cut::ITEMS;
    using shared = radix_shared_memory<Key, Word, Cut, Way, VALUES>;
    using word = radix_word<Word>;
    extern __shared__ uint4 radix_shared[];
    shared &r = *reinterpret_cast<shared *>(radix_shared);
    const unsigned t = threadIdx.x, warp = t / 32;
    const bool is_digit = THREADS == Way::DIGITS || t < Way::DIGITS; /* thread t is digit t, too */
    using rider_memory = typename Rider::template memory<THREADS>;
    static_assert(sizeof(rider_memory) <= sizeof(shared), "a rider has the pass's memory");
    if (blockIdx.x < rider.blocks()) {
        launch_before_is_done();
        if (Cut::TILE <= radix_few::TILE) let_next_launch_begin();
        rider.template ride<THREADS>(*reinterpret_cast<rider_memory *>(radix_shared), blockIdx.x);
        return;
    }
    for (unsigned i = t; i < shared::WARPS * Way::DIGITS; i += THREADS) (&r.cells[0][0])[i] = {};
    /* what was launched before does not look at it */
    if (t == 0) r.ticket = atomicAdd(j.ticket, 1u);
    launch_before_is_done();
    /* large ones would take places of other streams, and wait there */
    if (Cut::TILE <= radix_few::TILE) let_next_launch_begin();
    if (j.next && t < RADIX_DIGITS)
        j.next[uint64_t(blockIdx.x - rider.blocks()) * RADIX_DIGITS + t] = 0;
    const Word all = is_digit ? static_cast<Word>(j.counts[t]) : 0;
    __syncthreads();
    const uint64_t n = in.count(), tile = r.ticket, begin = tile * shared::TILE;
    if (begin >= n) return;
    const unsigned valid =
        static_cast<unsigned>(n - begin < shared::TILE ? n - begin : shared::TILE);

    /* A warp has neighbouring pairs, 32 at a time. What is behind the end has the highest digit and
     * comes last. */
    const unsigned own = warp * 32 * ITEMS + t % 32;
    Key keys[ITEMS];
    uint32_t values[VALUES ? ITEMS : 1];
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        keys[k] = own + k * 32 < valid ? in.key(begin + own + k * 32) : static_cast<Key>(~Key(0));
    if constexpr (VALUES) {
#pragma unroll
        for (int k = 0; k < ITEMS; k++)
            values[k] = own + k * 32 < valid ? in.value(begin + own + k * 32) : 0;
    }
#pragma unroll
    for (int k = 0; k < ITEMS; k++)
        atomicAdd(&r.cells[warp][radix_digit(keys[k], j.first, j.width)].place, 1u);
    __syncthreads();

    /* The tile's counts are published before its pairs are ranked: others wait for them. */
    Word *const said = &j.look_back[tile * RADIX_DIGITS + t];
    uint32_t count = 0;
    if (is_digit) {
#pragma unroll
        for (unsigned w = 0; w < shared::WARPS; w++) {
            const uint32_t of_warp = r.cells[w][t].place;
            r.cells[w][t].place = count;
            count += of_warp;
        }
        word::say(said, (tile == 0 ? word::SUM : word::TILE) + count);
    }
    const uint32_t start = radix_sum_before(count, r.sums);
    const Word all_start = radix_sum_before(all, r.all_sums);
    if (is_digit) {
#pragma unroll
        for (unsigned w = 0; w < shared::WARPS; w++) r.cells[w][t].place += start;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const uint32_t to = radix_place(r.cells[warp], radix_digit(keys[k], j.first, j.width));
        r.keys[to] = keys[k];
        if constexpr (VALUES) r.values[to] = values[k];
    }
    if (is_digit) {
        const Word before = radix_look_back(j.look_back, tile);
        if (tile > 0) word::say(said, word::SUM + before + count);
        r.places[t] = all_start + before - start;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        const unsigned i = k * THREADS + t;
        if (i >= valid) break;
        const Key key = r.keys[i];
        const Word to = r.places[radix_digit(key, j.first, j.width)] + i;
        if constexpr (VALUES)
            out.put(to, key, r.values[i]);
        else
            out.put(to, key);
    }
}

} // namespace kiln

#endif
