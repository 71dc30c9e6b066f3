/* radix_cuda -- a stable radix sort of (key, 32-bit value) on the device, least significant digit first, one pass over the pairs
 * for each digit of up to 8 bits (A. Adinets, D. Merrill, Onesweep, 2022).
 *
 *   1. One launch counts the digits of all passes.
 *   2. A pass is one launch. A block takes a tile of neighbouring pairs, counts their digits and publishes the counts. Then it
 *      ranks the pairs by digit in shared memory and finds how many of each digit the tiles before it have, by decoupled
 *      look-back (place_cuda.cuh has the idea), one thread for each digit. It writes its pairs digit by digit, so that
 *      neighbours in memory are written together.
 *
 * What is sorted comes from an Input: how many pairs there are, which the device alone may know, and each pair. So the first pass
 * can make its keys from other arrays, and nothing behind the last pair is touched:
 *
 *   struct Input {
 *       __device__ uint64_t count() const;            at most as many as the launcher was told
 *       __device__ Key key(uint64_t i) const;
 *       __device__ uint32_t value(uint64_t i) const;
 *   };
 *
 * Small launches wait for each other longer than they work. From Hopper on a pass is put on the device while the one before runs,
 * and waits there for its end. Tiles are small where there are few pairs, so that all multiprocessors have some.
 *
 * Memory: two arrays of a word for each digit and tile, used in turn. A pass clears the one of the next, which the pass before has
 * finished with.
 */
#ifndef KILN_KERNELS_SORT_RADIX_CUDA_CUH
#define KILN_KERNELS_SORT_RADIX_CUDA_CUH

#include "kernels/early_cuda.cuh"

#include <cuda/atomic>
#include <stdint.h>

namespace kiln
{

constexpr unsigned RADIX_BITS = 8, RADIX_DIGITS = 1u << RADIX_BITS, RADIX_PASSES = 8, RADIX_CALLERS = 4;
constexpr unsigned RADIX_COUNT_BLOCK = 256, RADIX_COUNT_EACH = 16, RADIX_COUNT_BLOCKS = 132 * 4;
constexpr uint64_t RADIX_NARROW = 1ull << 30; /* fewer pairs are counted in words of 32 bits, of which two say what they are */
constexpr unsigned RADIX_LOOK = 8;            /* words of look-back that are asked for at once */

/* Which bits of a key are the digit of which pass: as even as they can be, so that no pass has few bits. */
struct radix_plan {
    unsigned bits, passes;

    __host__ __device__ unsigned first(unsigned pass) const { return bits * pass / passes; }
    __host__ __device__ unsigned width(unsigned pass) const { return first(pass + 1) - first(pass); }
};

inline radix_plan radix_plan_of(unsigned bits) { return {bits, (bits + RADIX_BITS - 1) / RADIX_BITS}; }

template <typename Key> __device__ inline unsigned radix_digit(Key key, unsigned first, unsigned width)
{
    return static_cast<unsigned>(key >> first) & ((1u << width) - 1);
}

/* What all launches of a sort share; cleared before the first one. */
struct radix_state {
    uint64_t counts[RADIX_PASSES][RADIX_DIGITS]; /* pairs of each digit */
    uint32_t tickets[RADIX_PASSES];
    uint32_t callers[RADIX_CALLERS]; /* the caller's, cleared with the rest */
};

/* How a pass is cut: few large tiles look back less, many small ones keep all multiprocessors busy. */
template <int Threads, int Items> struct radix_cut {
    static constexpr int THREADS = Threads, ITEMS = Items, TILE = Threads * Items;
};
using radix_many = radix_cut<512, 16>;
using radix_some = radix_cut<512, 8>;
using radix_few = radix_cut<256, 4>;
enum class radix_size { FEW, SOME, MANY };

/* ---- counting -------------------------------------------------------------------------------------------------------- */
/* Clears the first pass's look-back, too, so many words of 32 bits. */
template <typename Key, typename Input>
__global__ void __launch_bounds__(RADIX_COUNT_BLOCK)
    radix_count(const Input in, const radix_plan plan, radix_state *state, uint32_t *look_back, uint64_t look_back_words)
{
    __shared__ uint32_t counts[RADIX_PASSES][RADIX_DIGITS];
    for (unsigned i = threadIdx.x; i < plan.passes * RADIX_DIGITS; i += RADIX_COUNT_BLOCK) (&counts[0][0])[i] = 0;
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

/* ---- look-back ------------------------------------------------------------------------------------------------------- */
/* A word of look-back: a number of pairs, above it what they are of. Word: uint32_t, or uint64_t for RADIX_NARROW pairs and more.
 */
template <typename Word> struct radix_word {
    static constexpr unsigned SHIFT = 8 * sizeof(Word) - 2;
    static constexpr Word TILE = Word(1) << SHIFT, SUM = Word(2) << SHIFT, VALUE = TILE - 1; /* TILE: of this tile alone */
    using shared = cuda::atomic_ref<Word, cuda::thread_scope_device>;

    __device__ static void say(Word *word, Word what) { shared(*word).store(what, cuda::memory_order_relaxed); }
    __device__ static Word ask(Word *word) { return shared(*word).load(cuda::memory_order_relaxed); }
};

/* How many pairs of this thread's digit the tiles before `tile` have. Several words are asked for at once, because a block would
 * else wait for each of the tiles before it that are as late as itself. */
template <typename Word> __device__ Word radix_look_back(Word *look_back, uint64_t tile)
{
    using word = radix_word<Word>;
    Word before = 0;
    for (uint64_t left = tile; left > 0;) { /* tiles 0 .. left - 1 are to be added */
        Word words[RADIX_LOOK];
#pragma unroll
        for (unsigned k = 0; k < RADIX_LOOK; k++)
            words[k] = k < left ? word::ask(&look_back[(left - 1 - k) * RADIX_DIGITS + threadIdx.x]) : word::SUM;
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

/* ---- a pass ---------------------------------------------------------------------------------------------------------- */
/* Shared memory of a block. */
template <typename Key, typename Word, int THREADS, int ITEMS> struct radix_room {
    static constexpr unsigned TILE = ITEMS * THREADS, WARPS = THREADS / 32;
    Key keys[TILE];
    uint32_t values[TILE];
    Word places[RADIX_DIGITS];            /* where a digit's pairs go, less their place within the tile */
    uint32_t counts[WARPS][RADIX_DIGITS]; /* of a warp; then where its next pair of the digit goes within the tile */
    Word all_sums[RADIX_DIGITS / 32];
    uint32_t sums[RADIX_DIGITS / 32], ticket;
};

/* Returns the sum over the digits before this thread's. By the whole block; `sums` is nobody else's. */
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

/* Of a multiprocessor, at least: else the compiler takes so many registers that too few threads fit. */
template <typename Key> constexpr int RADIX_THREADS_AT_ONCE = sizeof(Key) == sizeof(uint64_t) ? 768 : 1024;

/* What a pass reads and writes beside its input. */
template <typename Key, typename Word> struct radix_job {
    unsigned first, width; /* of the digit */
    Key *keys;
    uint32_t *values;
    const uint64_t *counts;
    uint32_t *ticket;
    Word *look_back, *next; /* next: the other pass's, to be cleared; NULL behind the last pass */
};

template <typename Key, typename Word, int THREADS, int ITEMS, typename Input>
__global__ void __launch_bounds__(THREADS, RADIX_THREADS_AT_ONCE<Key> / THREADS)
    radix_pass(const Input in, const radix_job<Key, Word> j)
{
    using room = radix_room<Key, Word, THREADS, ITEMS>;
    using word = radix_word<Word>;
    extern __shared__ uint4 radix_shared[];
    room &r = *reinterpret_cast<room *>(radix_shared);
    const unsigned t = threadIdx.x, warp = t / 32;
    const bool is_digit = THREADS == RADIX_DIGITS || t < RADIX_DIGITS; /* thread t is digit t, too */
    for (unsigned i = t; i < room::WARPS * RADIX_DIGITS; i += THREADS) (&r.counts[0][0])[i] = 0;
    launch_before_is_done();
    if (THREADS * ITEMS <= radix_few::TILE)
        let_next_launch_begin(); /* large ones would take places of other streams, and wait there */
    if (t == 0) r.ticket = atomicAdd(j.ticket, 1u);
    if (j.next && is_digit) j.next[uint64_t(blockIdx.x) * RADIX_DIGITS + t] = 0;
    const Word all = is_digit ? static_cast<Word>(j.counts[t]) : 0;
    __syncthreads();
    const uint64_t n = in.count(), tile = r.ticket, begin = tile * room::TILE;
    if (begin >= n) return;
    const unsigned valid = static_cast<unsigned>(n - begin < room::TILE ? n - begin : room::TILE);

    /* A warp has neighbouring pairs, 32 at a time. What is behind the end has the highest digit and comes last. */
    const unsigned own = warp * 32 * ITEMS + t % 32;
    Key keys[ITEMS];
    uint32_t values[ITEMS];
#pragma unroll
    for (int k = 0; k < ITEMS; k++) keys[k] = own + k * 32 < valid ? in.key(begin + own + k * 32) : static_cast<Key>(~Key(0));
#pragma unroll
    for (int k = 0; k < ITEMS; k++) values[k] = own + k * 32 < valid ? in.value(begin + own + k * 32) : 0;
#pragma unroll
    for (int k = 0; k < ITEMS; k++) atomicAdd(&r.counts[warp][radix_digit(keys[k], j.first, j.width)], 1u);
    __syncthreads();

    /* The tile's counts are published before its pairs are ranked: others wait for them. */
    Word *const said = &j.look_back[tile * RADIX_DIGITS + t];
    uint32_t count = 0;
    if (is_digit) {
#pragma unroll
        for (unsigned w = 0; w < room::WARPS; w++) {
            const uint32_t of_warp = r.counts[w][t];
            r.counts[w][t] = count;
            count += of_warp;
        }
        word::say(said, (tile == 0 ? word::SUM : word::TILE) + count);
    }
    const uint32_t start = radix_sum_before(count, r.sums);
    const Word all_start = radix_sum_before(all, r.all_sums);
    if (is_digit) {
#pragma unroll
        for (unsigned w = 0; w < room::WARPS; w++) r.counts[w][t] += start;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < ITEMS; k++) {
        uint32_t *const place = &r.counts[warp][radix_digit(keys[k], j.first, j.width)];
        const unsigned alike = radix_alike(radix_digit(keys[k], j.first, j.width)), below = __popc(alike & ((1u << t % 32) - 1));
        const uint32_t to = *place + below;
        __syncwarp();
        if (below == 0) *place = to + __popc(alike);
        __syncwarp();
        r.keys[to] = keys[k];
        r.values[to] = values[k];
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
        j.keys[to] = key;
        j.values[to] = r.values[i];
    }
}

/* ---- launchers ------------------------------------------------------------------------------------------------------- */
/* Pairs that an earlier pass has written. */
template <typename Key, typename Input> struct radix_arrays {
    Input in;
    const Key *keys;
    const uint32_t *values;

    __device__ uint64_t count() const { return in.count(); }
    __device__ Key key(uint64_t i) const { return keys[i]; }
    __device__ uint32_t value(uint64_t i) const { return values[i]; }
};

template <typename Key> struct radix_sort {
    uint64_t n; /* at most so many pairs */
    radix_plan plan;
    Key *keys[2];
    uint32_t *values[2];
    radix_state *state;
    void *look_back[2];
    radix_size cut;
    uint64_t tiles;
    bool wide; /* words of 64 bits */

    uint64_t word_bytes() const { return wide ? sizeof(uint64_t) : sizeof(uint32_t); }
};

/* Bytes of shared memory that a block of this device can have. */
inline size_t radix_shared_most()
{
    int device = 0, bytes = 0;
    if (cudaGetDevice(&device) != cudaSuccess) return 0;
    if (cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) != cudaSuccess) return 0;
    return static_cast<size_t>(bytes);
}

/* The cut for so many pairs, or the largest below it whose tiles fit the device: of long keys they take 116 KB, where Hopper has
 * 227 and graphics GPUs have 64 to 99. */
template <typename Key> radix_size radix_size_for(uint64_t n, bool wide)
{
    constexpr uint64_t SOME = 200000, MANY = 2000000;
    const size_t most = radix_shared_most();
    if ((wide || n >= MANY) && sizeof(radix_room<Key, uint64_t, radix_many::THREADS, radix_many::ITEMS>) <= most)
        return radix_size::MANY;
    if ((wide || n >= SOME) && sizeof(radix_room<Key, uint64_t, radix_some::THREADS, radix_some::ITEMS>) <= most)
        return radix_size::SOME;
    return radix_size::FEW;
}

inline uint64_t radix_tile(radix_size cut)
{
    return cut == radix_size::MANY ? radix_many::TILE : cut == radix_size::SOME ? radix_some::TILE : radix_few::TILE;
}

/* What a sort of at most n pairs needs beside keys and values, on the current device. The state must be 0 when the sort begins: the
 * caller takes it from where it clears more, and clears it. */
template <typename Key> void lay_out_radix(radix_sort<Key> *s, kiln_carve *c, uint64_t n, unsigned bits, radix_state *state)
{
    s->n = n;
    s->plan = radix_plan_of(bits);
    s->state = state;
    s->wide = s->wide || n >= RADIX_NARROW; /* a test may ask for it */
    s->cut = radix_size_for<Key>(n, s->wide);
    s->tiles = (n + radix_tile(s->cut) - 1) / radix_tile(s->cut);
    for (void *&l : s->look_back) l = kiln_take(c, s->tiles * RADIX_DIGITS, s->word_bytes());
}

template <typename Cut, typename Word, typename Key, typename Input>
cudaError_t run_radix_cut(const radix_sort<Key> &s, const Input &in, unsigned pass, cudaStream_t stream)
{
    constexpr size_t shared = sizeof(radix_room<Key, Word, Cut::THREADS, Cut::ITEMS>);
    const auto kernel = radix_pass<Key, Word, Cut::THREADS, Cut::ITEMS, Input>;
    const unsigned to = pass % 2;
    const radix_job<Key, Word> j = {s.plan.first(pass),
                                    s.plan.width(pass),
                                    s.keys[to],
                                    s.values[to],
                                    s.state->counts[pass],
                                    &s.state->tickets[pass],
                                    static_cast<Word *>(s.look_back[to]),
                                    pass + 1 < s.plan.passes ? static_cast<Word *>(s.look_back[1 - to]) : nullptr};
    if (shared > 48 * 1024) {
        const cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
        if (e != cudaSuccess) return e;
    }
    return launch_early(kernel, static_cast<unsigned>(s.tiles), Cut::THREADS, shared, stream, in, j);
}

template <typename Word, typename Key, typename Input>
cudaError_t run_radix_words(const radix_sort<Key> &s, const Input &in, unsigned pass, cudaStream_t stream)
{
    if (s.cut == radix_size::MANY) return run_radix_cut<radix_many, Word>(s, in, pass, stream);
    if (s.cut == radix_size::SOME) return run_radix_cut<radix_some, Word>(s, in, pass, stream);
    return run_radix_cut<radix_few, Word>(s, in, pass, stream);
}

template <typename Key, typename Input>
cudaError_t run_radix_pass(const radix_sort<Key> &s, const Input &in, unsigned pass, cudaStream_t stream)
{
    return s.wide ? run_radix_words<uint64_t>(s, in, pass, stream) : run_radix_words<uint32_t>(s, in, pass, stream);
}

/* Pass p writes to keys[p % 2] and values[p % 2]: `in` may read from [1], not from [0]. Sets *result to the place where the sorted
 * pairs are. The state must be 0. */
template <typename Key, typename Input>
cudaError_t run_radix(const radix_sort<Key> &s, const Input &in, cudaStream_t stream, unsigned *result)
{
    *result = (s.plan.passes - 1) % 2;
    if (s.n == 0) return cudaSuccess;
    const uint64_t look_back_words = s.tiles * RADIX_DIGITS * s.word_bytes() / sizeof(uint32_t);
    cudaError_t e =
        launch_early(radix_count<Key, Input>, blocks_for(s.n, RADIX_COUNT_BLOCK * RADIX_COUNT_EACH, RADIX_COUNT_BLOCKS),
                     RADIX_COUNT_BLOCK, 0, stream, in, s.plan, s.state, static_cast<uint32_t *>(s.look_back[0]), look_back_words);
    for (unsigned pass = 0; pass < s.plan.passes && e == cudaSuccess; pass++) {
        const unsigned from = 1 - pass % 2;
        if (pass == 0)
            e = run_radix_pass(s, in, pass, stream);
        else
            e = run_radix_pass(s, radix_arrays<Key, Input>{in, s.keys[from], s.values[from]}, pass, stream);
    }
    return e;
}

} // namespace kiln

#endif
