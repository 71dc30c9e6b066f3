/* lists_write_cuda -- writes the pairs that tile_find_cuda.cuh has found, in drawing order and in
 * one pass.
 *
 * A block takes groups of 256 places of the order. It fetches their records, and writes the pairs
 * of their masks behind those of all groups before. Where that is it learns by looking back, in two
 * levels (place_cuda.cuh); a group here is a block there.
 *
 * Waits for memory and for other blocks are longer than the work between them. So a block has four
 * groups in work. In one turn it
 *   - counts and publishes the next group, whose records have arrived,
 *   - asks for the records of the group after that, and for the order of the one behind,
 *   - looks back for the present group and writes it.
 * Counted groups lie in shared memory, two at a time. Warps count for themselves. The first warp
 * adds them up, looks back, and tells each warp where its pairs begin. So a turn has two barriers:
 * all have counted, and all know where to write.
 *
 * Pairs beyond the capacity are not written: only at the end is it known whether there are too
 * many.
 */
#ifndef KILN_KERNELS_TILE_LISTS_LISTS_WRITE_CUDA_CUH
#define KILN_KERNELS_TILE_LISTS_LISTS_WRITE_CUDA_CUH

#include "kernels/project/place_cuda.cuh"
#include "kernels/tile_pairs/tile_write_cuda.cuh"

namespace
{

constexpr int WRITE_AT_ONCE = 6; /* blocks of a multiprocessor: 40 registers a thread */
constexpr unsigned WRITE_BLOCKS = 132 * WRITE_AT_ONCE, GROUP_WARPS = GROUP / WARP;
constexpr uint32_t NO_ID = UINT32_MAX; /* n is at most 2^32 - 2 */

/* Tells each block where its pairs begin. All 0 before the launch. */
struct group_places {
    kiln::places places;
    uint32_t *ticket;
};

/* ---- sums over a warp ------------------------------------------------------------------------ */
/* The sum over this lane and those below. */
__device__ inline uint32_t sum_up_to(uint32_t v)
{
    /* shfl itself says which lanes have one below: without that five comparisons are kept */
#pragma unroll
    for (unsigned d = 1; d < WARP; d *= 2)
        asm volatile("{.reg .u32 o; .reg .pred p;\n\t"
                     "shfl.sync.up.b32 o|p, %0, %1, 0, 0xffffffff;\n\t"
                     "@p add.u32 %0, %0, o;}"
                     : "+r"(v)
                     : "r"(d));
    return v;
}
__device__ inline uint64_t sum_up_to(uint64_t v)
{
    uint64_t total;
    return sum_below(v, &total) + v;
}

__device__ inline uint64_t sum_of_warp(uint64_t v)
{
    for (int step = WARP / 2; step > 0; step /= 2) v += __shfl_xor_sync(ALL, v, step);
    return v;
}

/* As sum_of_warp, where the sum may need more bits than what is added. */
__device__ inline uint64_t long_sum_of_warp(uint32_t v)
{
    return sum_of_warp(v & 0xffff) + (static_cast<uint64_t>(sum_of_warp(v >> 16)) << 16);
}
__device__ inline uint64_t long_sum_of_warp(uint64_t v) { return sum_of_warp(v); }

/* ---- a group in shared memory ---------------------------------------------------------------- */
/* A Gaussian whose mask is written: two numbers in one word, so that one load fetches it. Place is
 * place_in_group. */
template <typename Place> struct alignas(16) ordered_box {
    enum : unsigned {
        BITS = 8 * sizeof(Place),
        TILE_BITS = BITS / 2,
        STEP_BITS = 11,
        PLACE_BITS = BITS - STEP_BITS
    };
    Place tile_turn;  /* the corner's tile; above: from the end of a row to the begin of the next */
    Place place_step; /* place among the warp's pairs; above: box_step() */
    uint32_t id, mask;
};
/* A warp's sum of pairs and, in as many bits as a step, of questions. */
enum : unsigned { QUESTION_BITS = ordered_box<uint32_t>::STEP_BITS };
static_assert(WARP * MASK_TILES < 1u << QUESTION_BITS, "questions of a warp fit");
static_assert((WARP - 1) * 65536u < 1u << ordered_box<uint32_t>::PLACE_BITS,
              "what is before a lane fits where there are 65,536 tiles at most");
static_assert((WARP - 1) * 0xffffffffull < 1ull << ordered_box<uint64_t>::PLACE_BITS,
              "what is before a lane fits with any number of tiles");

/* k * box_step(w) >> 10 is k / w, for k below 32 and w up to 32. The step is 1024 / w + 1, or one
 * less where w divides. */
__device__ inline uint32_t box_step(uint32_t w)
{
    return static_cast<uint32_t>(kiln_near_div(1024.0f, static_cast<float>(w))) + 1;
}

/* What the first warp tells each warp. */
template <typename Place> struct alignas(16) warp_begin {
    uint64_t begin; /* of its pairs */
    Place left;     /* of the capacity from there on, or all that Place can say */
    uint32_t group; /* whose order is asked for next */
};

/* A warp's part of a group. */
template <typename Place> struct alignas(16) group_part {
    ordered_box<Place> boxes[WARP];
    uint32_t firsts[WARP]; /* questions of each box */
    warp_begin<Place> begin;
    Place pairs;
};

template <typename Place> struct write_shared {
    group_part<Place> parts[2][GROUP_WARPS];
    uint32_t tickets[4]; /* groups of this turn and the next three */
};

/* ---- counting a group ------------------------------------------------------------------------ */
/* What a lane keeps of its Gaussian from counting to writing. */
template <typename Place> struct counted {
    uint32_t first;     /* of its questions; NO_QUESTION if it has none */
    uint32_t questions; /* of the warp */
    uint32_t id;
    Place place; /* of a listed Gaussian among the warp's pairs; NOT_LISTED */
    static constexpr uint32_t NO_QUESTION = UINT32_MAX;
    static constexpr Place NOT_LISTED = ~Place(0);
};

/* Called by a whole warp. */
template <typename Place>
__device__ counted<Place> count_by_warp(group_part<Place> &part, const record &r, uint32_t id,
                                        uint32_t tiles_x)
{
    using box = ordered_box<Place>;
    const uint32_t mask = r.mask(), n = static_cast<uint32_t>(32 - __clz(static_cast<int>(mask)));
    const Place pairs = static_cast<Place>(r.pairs()), own = pairs << QUESTION_BITS | n,
                with = sum_up_to(own), before = with - own;
    const uint32_t first = static_cast<uint32_t>(before) & ((1u << QUESTION_BITS) - 1);
    const Place place = before >> QUESTION_BITS;
    if (lane_index() == WARP - 1) part.pairs = place + pairs;
    const unsigned asking = __ballot_sync(ALL, n > 0);
    if (n > 0) {
        const unsigned slot = __popc(asking & lanes_below());
        part.boxes[slot] = {r.first_tile() | static_cast<Place>(tiles_x - r.w()) << box::TILE_BITS,
                            place | static_cast<Place>(box_step(r.w())) << box::PLACE_BITS, id,
                            mask};
        part.firsts[slot] = first;
    }
    return {n > 0 ? first : counted<Place>::NO_QUESTION,
            __shfl_sync(ALL, static_cast<uint32_t>(with), WARP - 1) & ((1u << QUESTION_BITS) - 1),
            id, r.is_listed() ? place : counted<Place>::NOT_LISTED};
}

/* Returns the sum of all groups before. As kiln::place_look_back, but sums have 64 bits. Called by
 * a whole warp. */
template <typename Place> __device__ uint64_t look_back_for(const kiln::places &p, uint32_t group)
{
    const uint32_t inside = group % kiln::PLACE_GROUP;
    uint64_t *const own = p.words + (group - inside) + lane_index();
    uint64_t before = 0;
    bool in_group = lane_index() < inside; /* in the first round */
    for (int32_t at = static_cast<int32_t>(group / kiln::PLACE_GROUP) - 1 -
                      static_cast<int32_t>(lane_index());
         ; at -= WARP, in_group = false) {
        uint64_t word, count, sum;
        unsigned sums, needed, unknown;
#pragma unroll 1
        do {
            word = in_group ? kiln::place_read(own) : uint64_t(kiln::PLACE_COUNT);
            count = at >= 0 ? kiln::place_read(p.groups + at) : 0;
            sum = at >= 0 ? kiln::place_read(p.sums + at) : uint64_t(kiln::PLACE_SUM);
            sums = __ballot_sync(ALL, sum >= kiln::PLACE_SUM);
            needed = sums ^ (sums - 1); /* up to the nearest sum; all without one */
            unknown = __ballot_sync(ALL, sum < kiln::PLACE_SUM &&
                                             count < kiln::PLACE_GROUP * kiln::PLACE_TOLD);
        } while ((unknown & needed) | __ballot_sync(ALL, word < kiln::PLACE_COUNT));
        const bool adds = (needed & ~sums) >> lane_index() & 1;
        before += long_sum_of_warp(
            static_cast<Place>(word & kiln::PLACE_VALUE) +
            (adds ? static_cast<Place>(count & (kiln::PLACE_TOLD - 1)) : Place(0)));
        if (sums)
            return before +
                   (__shfl_sync(ALL, sum, __ffs(static_cast<int>(sums)) - 1) & kiln::PLACE_VALUE);
    }
}
/* 33 groups of 256 Gaussians with all tiles each */
static_assert((kiln::PLACE_GROUP + 1) * GROUP * 65536ull <= UINT32_MAX, "a lane's count fits");
static_assert((kiln::PLACE_GROUP + 1) * GROUP * 0xffffffffull < kiln::PLACE_TOLD, "likewise");

/* Writes tile_lists' stats; called by one thread of the last group. */
__device__ inline void write_list_stats(uint64_t *stats, uint64_t found, uint64_t capacity,
                                        uint64_t visible)
{
    stats[0] = found <= capacity ? found : 0;
    stats[1] = found;
    stats[2] = visible;
}

/* ---- writing a group ------------------------------------------------------------------------- */
/* Returns the pointer, which is to global memory, so that it is computed here. The compiler would
 * else add what it is made of to every index. */
template <typename T> __device__ inline T *computed(T *p)
{
    size_t at = __cvta_generic_to_global(p);
    asm("" : "+l"(at));
    return static_cast<T *>(__cvta_global_to_generic(at));
}

/* Writes the pairs of the warp's boxes. ids, tiles: where the warp's pairs begin. */
template <typename Tile, typename Place>
__device__ void write_boxes(const group_part<Place> &part, const counted<Place> &c, uint32_t *ids,
                            Tile *tiles, Place left)
{
    using box = ordered_box<Place>;
    ids = computed(ids);
    tiles = computed(tiles);
    const uint32_t up_to_me = lanes_below() << 1 | 1;
    uint32_t ahead = c.first, question = lane_index(), begun = UINT32_MAX;
#pragma unroll 1
    for (uint32_t at = 0; at < c.questions; at += WARP, question += WARP, ahead -= WARP) {
        /* shifts that leave 0 from 32 on */
        const unsigned heads = bits_of_warp(__funnelshift_lc(0, 1, ahead)),
                       slot = begun + __popc(heads & up_to_me);
        begun += __popc(heads);
        const box b = part.boxes[slot];
        const uint32_t k = question - part.firsts[slot];
        if (!(__funnelshift_rc(b.mask, 0, k) & 1)) continue;
        const Place place =
            (b.place_step & ((Place(1) << box::PLACE_BITS) - 1)) + __popc(b.mask & ((1u << k) - 1));
        if (place >= left) continue;
        const uint32_t down = k * static_cast<uint32_t>(b.place_step >> box::PLACE_BITS) >> 10;
        tiles[place] =
            static_cast<Tile>(static_cast<uint32_t>(b.tile_turn) + k +
                              down * static_cast<uint32_t>(b.tile_turn >> box::TILE_BITS));
        ids[place] = b.id;
    }
    __syncwarp();
}

/* Writes the pairs of all masks. order holds positions in splats, which become the ids of the
 * pairs. The record of a listed Gaussian gets the place of its pairs, which finish_pairs writes.
 */
template <typename Tile>
__global__ void __launch_bounds__(GROUP, WRITE_AT_ONCE)
    write_in_order(const job j, const found f, const group_places p, const uint32_t *order,
                   const pairs_out<Tile> out, uint64_t *stats)
{
    using place = place_in_group<Tile>;
    __shared__ write_shared<place> s;
    kiln::launch_before_is_done();
    const uint32_t n = static_cast<uint32_t>(j.count.get()),
                   groups = n > 0 ? static_cast<uint32_t>(groups_of(n)) : 1;
    const unsigned warp = threadIdx.x / WARP;
    const auto order_at = [&](uint32_t group) {
        const uint32_t i = group * GROUP + threadIdx.x;
        return i < n ? order[i] : NO_ID;
    };
    const auto record_of = [&](uint32_t id) { return id != NO_ID ? f.records[id] : record{}; };
    /* Called by a whole block: counts a group and publishes its number of pairs. */
    const auto count_group = [&](uint32_t group, group_part<place> *parts, const record &r,
                                 uint32_t id) {
        const counted<place> c = count_by_warp(parts[warp], r, id, out.tiles_x);
        __syncthreads();
        if (warp == 0) {
            const place pairs =
                sum_of_warp(lane_index() < GROUP_WARPS ? parts[lane_index()].pairs : place(0));
            if (lane_index() == 0) kiln::place_say_count(p.places, group, pairs);
        }
        return c;
    };
    if (threadIdx.x == 0) s.tickets[0] = atomicAdd(p.ticket, 1);
    __syncthreads();
    if (s.tickets[0] >= groups) return;
    uint32_t id = order_at(s.tickets[0]);
    if (threadIdx.x == 0) s.tickets[1] = atomicAdd(p.ticket, 1);
    record r = record_of(id);
    __syncthreads();
    uint32_t next_id = order_at(s.tickets[1]);
    if (threadIdx.x == 0) s.tickets[2] = atomicAdd(p.ticket, 1);
    counted<place> now = count_group(s.tickets[0], s.parts[0], r, id);
    id = next_id;
    r = record_of(id);
    __syncthreads();
    next_id = order_at(s.tickets[2]);
    uint32_t ahead = 0; /* the first thread's: the group of the turn after the next three */
    if (threadIdx.x == 0) ahead = atomicAdd(p.ticket, 1);
#pragma unroll 1
    for (uint32_t turn = 0;; turn++) {
        group_part<place> *const parts = s.parts[turn & 1], *const next_parts = s.parts[~turn & 1];
        const uint32_t next_group = s.tickets[(turn + 1) & 3];
        const bool goes_on = next_group < groups;
        counted<place> next = {};
        if (goes_on) next = count_group(next_group, next_parts, r, id);
        id = next_id;
        r = record_of(id);
        if (warp == 0) {
            const uint32_t group = s.tickets[turn & 3];
            const uint64_t first = look_back_for<place>(p.places, group);
            const place own = lane_index() < GROUP_WARPS ? parts[lane_index()].pairs : place(0),
                        with = sum_up_to(own);
            const uint32_t fetched = __shfl_sync(ALL, ahead, 0);
            if (lane_index() < GROUP_WARPS) {
                const uint64_t begin = first + (with - own), capacity = out.rule.capacity,
                               left = capacity > begin ? capacity - begin : 0;
                const place most = ~place(0);
                parts[lane_index()].begin = {begin, left < most ? static_cast<place>(left) : most,
                                             fetched};
            }
            if (lane_index() == GROUP_WARPS - 1) {
                kiln::place_say_sum(p.places, group, first + with);
                if (group == groups - 1)
                    write_list_stats(stats, first + with, out.rule.capacity, *j.count.known);
            }
            if (lane_index() == 0) {
                s.tickets[(turn + 3) & 3] = fetched;
                ahead = atomicAdd(p.ticket, 1);
            }
        }
        __syncthreads();
        const warp_begin<place> mine = parts[warp].begin;
        next_id = order_at(mine.group);
        if (now.place != counted<place>::NOT_LISTED)
            f.records[now.id] = record::of_listed(mine.begin + now.place);
        write_boxes(parts[warp], now, out.ids + mine.begin, out.tiles + mine.begin, mine.left);
        if (!goes_on) return;
        now = next;
    }
}

/* Writes the pairs of listed Gaussians. */
template <typename Tile>
__global__ void __launch_bounds__(GROUP, REST_AT_ONCE)
    finish_pairs(const job j, const found f, const pairs_out<Tile> out)
{
    kiln::launch_before_is_done();
    if (out.rule.holds()) write_listed(j, f, out);
}

} // namespace

#endif
