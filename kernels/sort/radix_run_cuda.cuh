/* radix_run_cuda -- lays out and launches the radix sort of radix_cuda.cuh: the whole sort, or one
 * pass for a caller that counts digits itself or keeps its pairs in another form between passes.
 */
#ifndef KILN_KERNELS_SORT_RADIX_RUN_CUDA_CUH
#define KILN_KERNELS_SORT_RADIX_RUN_CUDA_CUH

#include "kernels/sort/radix_cuda.cuh"

namespace kiln
{

/* Pairs that an earlier pass has written. */
template <typename Key, typename Input> struct radix_arrays {
    Input in;
    const Key *keys;
    const uint32_t *values;

    __device__ uint64_t count() const { return in.count(); }
    __device__ Key key(uint64_t i) const { return keys[i]; }
    __device__ uint32_t value(uint64_t i) const { return values[i]; }
};

template <typename Key> struct radix_to_arrays {
    Key *keys;
    uint32_t *values;

    __device__ void put(uint64_t i, Key key, uint32_t value) const
    {
        keys[i] = key;
        values[i] = value;
    }
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
    /* of 32 bits, each */
    uint64_t look_back_words() const
    {
        return tiles * RADIX_DIGITS * word_bytes() / sizeof(uint32_t);
    }
};

/* Bytes of shared memory that a block of this device can have. */
inline size_t radix_shared_most()
{
    int device = 0, bytes = 0;
    if (cudaGetDevice(&device) != cudaSuccess) return 0;
    if (cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) !=
        cudaSuccess)
        return 0;
    return static_cast<size_t>(bytes);
}

/* The cut for so many pairs, or the largest below it whose tiles fit the device: of long keys they
 * take about 130 KB, where Hopper has 227 and graphics GPUs have 64 to 99. */
template <typename Key> radix_size radix_size_for(uint64_t n, bool wide)
{
    constexpr uint64_t SOME = 200000, MANY = 2000000;
    const size_t most = radix_shared_most();
    if ((wide || n >= MANY) &&
        sizeof(radix_shared_memory<Key, uint64_t, radix_many, radix_masks>) <= most)
        return radix_size::MANY;
    if ((wide || n >= SOME) &&
        sizeof(radix_shared_memory<Key, uint64_t, radix_some, radix_masks>) <= most)
        return radix_size::SOME;
    return radix_size::FEW;
}

inline uint64_t radix_tile(radix_size cut)
{
    return cut == radix_size::MANY   ? radix_many::TILE
           : cut == radix_size::SOME ? radix_some::TILE
                                     : radix_few::TILE;
}

/* What a sort of at most n pairs needs beside keys and values, on the current device. The state
 * must be 0 when the sort begins: the caller takes it from where it clears more, and clears it. */
template <typename Key>
void lay_out_radix(radix_sort<Key> *s, kiln_carve *c, uint64_t n, unsigned bits, radix_state *state)
{
    s->n = n;
    s->plan = radix_plan_of(bits);
    s->state = state;
    s->wide = s->wide || n >= RADIX_NARROW; /* a test may ask for it */
    s->cut = radix_size_for<Key>(n, s->wide);
    s->tiles = (n + radix_tile(s->cut) - 1) / radix_tile(s->cut);
    for (unsigned i = 0; i < 2 && i < s->plan.passes; i++)
        s->look_back[i] = kiln_take(c, s->tiles * RADIX_DIGITS, s->word_bytes());
}

template <typename Cut, typename Way, typename Word, typename Sorted, typename Input,
          typename Output, typename Rider>
cudaError_t run_radix_cut(const radix_sort<Sorted> &s, const Input &in, const Output &out,
                          unsigned pass, const Rider &rider, cudaStream_t stream)
{
    using Key = decltype(in.key(0)); /* words may be longer than what was sorted by */
    constexpr size_t shared =
        sizeof(radix_shared_memory<Key, Word, Cut, Way, RADIX_HAS_VALUES<Input>>);
    const auto kernel = radix_pass<Key, Word, Cut, Way, Input, Output, Rider>;
    const unsigned to = pass % 2;
    unsigned first = s.plan.first(pass);
    if constexpr (!RADIX_HAS_VALUES<Input>) first = in.first_bit();
    const radix_job<Word> j = {first,
                               s.plan.width(pass),
                               s.state->counts[pass],
                               &s.state->tickets[pass],
                               static_cast<Word *>(s.look_back[to]),
                               pass + 1 < s.plan.passes ? static_cast<Word *>(s.look_back[1 - to])
                                                        : nullptr};
    if (shared > 48 * 1024) {
        const cudaError_t e = cudaFuncSetAttribute(
            kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
        if (e != cudaSuccess) return e;
    }
    return launch_early(kernel, static_cast<unsigned>(s.tiles) + rider.blocks(), Cut::THREADS,
                        shared, stream, in, out, j, rider);
}

template <typename Way, typename Word, typename Key, typename Input, typename Output,
          typename Rider>
cudaError_t run_radix_words(const radix_sort<Key> &s, const Input &in, const Output &out,
                            unsigned pass, const Rider &rider, cudaStream_t stream)
{
    if (s.cut == radix_size::MANY)
        return run_radix_cut<radix_many, Way, Word>(s, in, out, pass, rider, stream);
    if (s.cut == radix_size::SOME)
        return run_radix_cut<radix_some, Way, Word>(s, in, out, pass, rider, stream);
    return run_radix_cut<radix_few, Way, Word>(s, in, out, pass, rider, stream);
}

template <typename Way, typename Key, typename Input, typename Output, typename Rider>
cudaError_t run_radix_way(const radix_sort<Key> &s, const Input &in, const Output &out,
                          unsigned pass, const Rider &rider, cudaStream_t stream)
{
    return s.wide ? run_radix_words<Way, uint64_t>(s, in, out, pass, rider, stream)
                  : run_radix_words<Way, uint32_t>(s, in, out, pass, rider, stream);
}

/* One pass. Before the first one the state has the digits' counts, and the first pass's look-back
 * is 0. If n is 0, nothing is launched and the rider does not ride. */
template <radix_rank RANK = radix_rank::BALLOTS, typename Key, typename Input, typename Output,
          typename Rider = radix_no_rider>
cudaError_t run_radix_pass(const radix_sort<Key> &s, const Input &in, const Output &out,
                           unsigned pass, cudaStream_t stream, const Rider &rider = {})
{
    if (s.n == 0) return cudaSuccess;
    if constexpr (RANK == radix_rank::BALLOTS)
        return run_radix_way<radix_ballots>(s, in, out, pass, rider, stream);
    else if (s.plan.width(pass) <= radix_few_masks::BITS)
        return run_radix_way<radix_few_masks>(s, in, out, pass, rider, stream);
    else
        return run_radix_way<radix_masks>(s, in, out, pass, rider, stream);
}

/* ---- a rider without a pass ------------------------------------------------------------------ */
constexpr unsigned RADIX_RIDER_BLOCK = 512;

template <typename Rider>
__global__ void __launch_bounds__(RADIX_RIDER_BLOCK) radix_ride_alone(const Rider rider)
{
    __shared__ typename Rider::template memory<RADIX_RIDER_BLOCK> memory;
    launch_before_is_done();
    rider.template ride<RADIX_RIDER_BLOCK>(memory, blockIdx.x);
}

template <typename Rider> cudaError_t run_radix_rider(const Rider &rider, cudaStream_t stream)
{
    if (rider.blocks() == 0) return cudaSuccess;
    return launch_early(radix_ride_alone<Rider>, rider.blocks(), RADIX_RIDER_BLOCK, 0, stream,
                        rider);
}

/* ---- all passes ------------------------------------------------------------------------------ */
/* Pass p writes to keys[p % 2] and values[p % 2]: `in` may read from [1], not from [0]. Sets
 * *result to the place where the sorted pairs are. The state must be 0. */
template <radix_rank RANK = radix_rank::BALLOTS, typename Key, typename Input>
cudaError_t run_radix(const radix_sort<Key> &s, const Input &in, cudaStream_t stream,
                      unsigned *result)
{
    *result = (s.plan.passes - 1) % 2;
    if (s.n == 0) return cudaSuccess;
    cudaError_t e =
        launch_early(radix_count<Key, Input>,
                     blocks_for(s.n, RADIX_COUNT_BLOCK * RADIX_COUNT_EACH, RADIX_COUNT_BLOCKS),
                     RADIX_COUNT_BLOCK, 0, stream, in, s.plan, s.state,
                     static_cast<uint32_t *>(s.look_back[0]), s.look_back_words());
    for (unsigned pass = 0; pass < s.plan.passes && e == cudaSuccess; pass++) {
        const unsigned to = pass % 2, from = 1 - to;
        const radix_to_arrays<Key> out = {s.keys[to], s.values[to]};
        if (pass == 0)
            e = run_radix_pass<RANK>(s, in, out, pass, stream);
        else
            e = run_radix_pass<RANK>(s, radix_arrays<Key, Input>{in, s.keys[from], s.values[from]},
                                     out, pass, stream);
    }
    return e;
}

} // namespace kiln

#endif
