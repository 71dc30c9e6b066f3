/* tile_find_cuda -- the pairs of every Gaussian, found: the tiles of its box are asked one by one (tile_ask_math.h).
 *
 * Questions are asked by warps, 32 at a time, whoever's they are, so that lanes are busy whatever the sizes:
 *
 *   find_masks  boxes of at most 64 tiles: a lane a Gaussian; the answers are a mask
 *   find_rest   wider ones, listed, are cut into pieces of 8 x 4 tiles: a lane a piece; the answers are a word, bit k is tile
 *               (k % 8, k / 8). What no proof covers is searched by a warp a piece, its half warps taking tile rows
 *               (tile_row_cuda.cuh)
 *
 * Gaussians come in depth order, and the nearest are large: the whole grid shares the listed ones.
 */
#ifndef KILN_KERNELS_TILE_FIND_CUDA_CUH
#define KILN_KERNELS_TILE_FIND_CUDA_CUH

#include "kernels/tile_pairs/tile_ask_cuda.cuh"
#include "kernels/tile_pairs/tile_row_cuda.cuh"

namespace
{

constexpr unsigned GROUP = 256; /* Gaussians whose pairs are summed up; threads of a block */
constexpr uint32_t PIECE_W = 8, PIECE_H = 4, MASK_TILES = 64, NOWHERE = UINT32_MAX;

/* What a call is about, as kernels see it. */
struct job {
    uint64_t n, n_groups;
    const kiln_splat2d *splats;
    kiln_view view;
    uint32_t row0, row1;
};

enum record_kind : uint16_t { RECORD_EMPTY, RECORD_MASK, RECORD_LISTED };

/* What was found for one Gaussian. */
struct alignas(16) record {
    uint64_t pairs;       /* MASK: bit k is tile k of its box, row by row; LISTED: how many, later where the next one goes */
    uint16_t column, row; /* of the box; below 2^16, as a view has at most 2^20 pixels each way */
    uint16_t w;
    record_kind kind;
};
static_assert(sizeof(record) == 16, "one store");

struct found {
    record *records;  /* [n] */
    uint32_t *listed; /* [n]: wide ones from the front, odd ones from the back */
    uint32_t *places; /* [n] of their words, or NOWHERE */
    uint32_t *words;  /* [words_room], NULL where nobody wants them */
    uint64_t words_room;
    uint64_t *n_wide, *n_odd, *n_words;
    uint64_t *group_pairs; /* [n_groups + 1] */
};

/* k / w and k % w, for k and w up to 64, without a division. */
__device__ inline uint32_t step_of(int32_t w) { return static_cast<uint32_t>(4096 / w + 1) | static_cast<uint32_t>(w) << 16; }
__device__ inline uint32_t down(uint32_t k, uint32_t step) { return k * (step & 0xffff) >> 12; }
__device__ inline uint32_t along(uint32_t k, uint32_t step) { return k - down(k, step) * (step >> 16); }

/* A warp's part of shared memory. */
struct asking {
    float4 asked[WARP][2]; /* a kiln_asked */
    uint2 boxes[WARP];     /* column | row << 16 of its first tile; step_of its width */
    uint32_t firsts[WARP], words[MASK_TILES + 2];

    __device__ void put(uint32_t slot, const kiln_asked &g, const kiln_tile_box &b)
    {
        asked[slot][0] = make_float4(g.x, g.y, g.a, g.b);
        asked[slot][1] = make_float4(g.c, g.t, g.b_a, g.b_c);
        boxes[slot] = make_uint2(static_cast<uint32_t>(b.column) | static_cast<uint32_t>(b.row) << 16, step_of(b.w));
    }
    __device__ kiln_asked get(uint32_t slot) const
    {
        const float4 u = asked[slot][0], v = asked[slot][1];
        return {u.x, u.y, u.z, u.w, v.x, v.y, v.z, v.w};
    }
};

/* Sums of tile rows by a block: a picture has few rows, and all would queue for them in global memory. Pictures with more than ROWS
 * have so many that they need not queue. At most 256 Gaussians, 2^24 pairs of a row, come between two rounds; FLUSH rounds stay
 * below 2^32. */
class row_sums
{
  public:
    static constexpr uint32_t ROWS = 1024, FLUSH = 64;
    __device__ row_sums(uint32_t *sums, uint32_t rows, uint64_t *row_pairs)
        : sums_(sums), row_pairs_(row_pairs), rows_(row_pairs && rows <= ROWS ? rows : 0)
    {
        for (uint32_t r = threadIdx.x; r < rows_; r += blockDim.x) sums_[r] = 0;
        __syncthreads();
    }
    __device__ void add(uint32_t row, unsigned pairs)
    {
        if (pairs && rows_)
            atomicAdd(&sums_[row], pairs);
        else if (pairs)
            kiln::add64(&row_pairs_[row], pairs);
    }
    /* Lines of w tiles from `row` on. */
    __device__ void add_lines(uint32_t row, uint64_t mask, uint32_t w)
    {
        for (; mask; mask >>= w, row++) add(row, static_cast<unsigned>(__popcll(mask & ((1ull << w) - 1))));
    }
    /* By the whole block. */
    __device__ void end_round()
    {
        if (++round_ % FLUSH == 0) flush();
    }
    __device__ void flush()
    {
        __syncthreads();
        for (uint32_t r = threadIdx.x; r < rows_; r += blockDim.x) {
            if (sums_[r]) kiln::add64(&row_pairs_[r], sums_[r]);
            sums_[r] = 0;
        }
        __syncthreads();
    }

  private:
    uint32_t *sums_;
    uint64_t *row_pairs_;
    uint32_t rows_, round_ = 0;
};

/* ---- boxes of few tiles ----------------------------------------------------------------------------------------------- */
/* 64 bits of `words` from bit `first` on. */
__device__ inline uint64_t bits_from(const uint32_t *words, uint32_t first)
{
    const uint32_t *at = words + first / 32;
    const uint64_t low = __funnelshift_r(at[0], at[1], first), high = __funnelshift_r(at[1], at[2], first);
    return high << 32 | low;
}

/* The tiles of the lanes' boxes, 0 to 64 each, row by row, as a mask in every lane. */
__device__ inline uint64_t ask_boxes(const kiln_view &v, asking &room, const kiln_splat2d &s, const kiln_tile_box &own, uint32_t n)
{
    question_row row(room.firsts, n);
    if (n > 0) room.put(row.slot(), kiln_ask_of(&s), own);
    __syncwarp();
    for (uint32_t at = 0; at < row.total(); at += WARP) {
        uint32_t slot, k;
        const bool asks = row.next(at, &slot, &k);
        const uint2 box = room.boxes[slot];
        const int32_t column = static_cast<int32_t>((box.x & 0xffff) + along(k, box.y));
        const int32_t tile_row = static_cast<int32_t>((box.x >> 16) + down(k, box.y));
        const unsigned reached =
            ask(v, asks, room.get(slot), column, tile_row, [&](int lane) { return room.get(__shfl_sync(ALL, slot, lane)); });
        if (lane_index() == 0) room.words[at / WARP] = reached;
    }
    __syncwarp();
    const uint64_t mask = n > 0 ? bits_from(room.words, row.first()) & ~0ull >> (64 - n) : 0;
    __syncwarp();
    return mask;
}

/* Into how many pieces a box is cut: from its first tile on. */
__device__ inline uint32_t pieces_of(const kiln_tile_box &b)
{
    return (static_cast<uint32_t>(b.w) + PIECE_W - 1) / PIECE_W * ((static_cast<uint32_t>(b.h) + PIECE_H - 1) / PIECE_H);
}

/* Puts the lane's Gaussian into the front or the back list, with a place for its n words where there is one. */
__device__ inline void list_it(const found &f, uint64_t n_all, uint32_t id, bool wide, bool odd, uint32_t n)
{
    const unsigned wides = __ballot_sync(ALL, wide), odds = __ballot_sync(ALL, odd);
    if (!(wides | odds)) return;
    uint64_t words, place = sum_below<uint64_t>(n, &words);
    unsigned long long at_wide = 0, at_odd = 0, at_words = 0;
    if (lane_index() == 0) {
        if (wides) at_wide = atomicAdd(reinterpret_cast<unsigned long long *>(f.n_wide), __popc(wides));
        if (odds) at_odd = atomicAdd(reinterpret_cast<unsigned long long *>(f.n_odd), __popc(odds));
        if (f.words) at_words = atomicAdd(reinterpret_cast<unsigned long long *>(f.n_words), words);
    }
    at_wide = __shfl_sync(ALL, at_wide, 0);
    at_odd = __shfl_sync(ALL, at_odd, 0);
    place += __shfl_sync(ALL, at_words, 0);
    if (!(wide || odd)) return;
    const uint64_t at = wide ? at_wide + __popc(wides & lanes_below()) : n_all - 1 - (at_odd + __popc(odds & lanes_below()));
    f.listed[at] = id;
    f.places[at] = f.words && place + n <= f.words_room ? static_cast<uint32_t>(place) : NOWHERE;
}

template <bool BY_ROW>
__global__ void __launch_bounds__(GROUP, 4)
    find_masks(const __grid_constant__ job j, const __grid_constant__ found f, uint64_t *row_pairs)
{
    __shared__ asking rooms[GROUP / WARP];
    __shared__ uint32_t sums[BY_ROW ? row_sums::ROWS : 1];
    row_sums rows(sums, j.row1 - j.row0, BY_ROW ? row_pairs : nullptr);
    for (uint64_t group = blockIdx.x; group < j.n_groups; group += gridDim.x) {
        const uint64_t i = group * GROUP + threadIdx.x;
        kiln_box_kind kind = KILN_BOX_EMPTY;
        kiln_splat2d s;
        kiln_tile_box box = {};
        if (i < j.n) {
            s = load_splat(&j.splats[i]);
            kind = kiln_find_box(&s, &j.view, j.row0, j.row1, &box);
        }
        const uint64_t tiles = static_cast<uint64_t>(box.w) * static_cast<uint32_t>(box.h);
        const bool few = kind == KILN_BOX_PROVEN && tiles <= MASK_TILES, wide = kind == KILN_BOX_PROVEN && !few;
        record r = {};
        r.pairs = ask_boxes(j.view, rooms[threadIdx.x / WARP], s, box, few ? static_cast<uint32_t>(tiles) : 0);
        r.column = static_cast<uint16_t>(box.column);
        r.row = static_cast<uint16_t>(box.row);
        r.w = static_cast<uint16_t>(box.w);
        r.kind = few ? RECORD_MASK : kind == KILN_BOX_EMPTY ? RECORD_EMPTY : RECORD_LISTED;
        if (i < j.n) f.records[i] = r;
        list_it(f, j.n, static_cast<uint32_t>(i), wide, kind == KILN_BOX_ODD, r.kind == RECORD_LISTED ? pieces_of(box) : 0);
        const unsigned pairs = sum_of_warp(static_cast<unsigned>(__popcll(r.pairs)));
        if (lane_index() == 0 && pairs) kiln::add64(&f.group_pairs[group], pairs);
        if (BY_ROW && few) rows.add_lines(r.row - j.row0, r.pairs, r.w);
        if (BY_ROW) rows.end_round();
    }
    if (BY_ROW) rows.flush();
}

/* ---- the rest -------------------------------------------------------------------------------------------------------- */
/* Piece number k of a box. */
__device__ inline kiln_tile_box piece_of(const kiln_tile_box &b, uint32_t k)
{
    const uint32_t across = (static_cast<uint32_t>(b.w) + PIECE_W - 1) / PIECE_W;
    const int32_t x = static_cast<int32_t>(k % across * PIECE_W), y = static_cast<int32_t>(k / across * PIECE_H);
    return {b.column + x, b.row + y, min(b.w - x, static_cast<int32_t>(PIECE_W)), min(b.h - y, static_cast<int32_t>(PIECE_H))};
}

/* Tiles of a piece, row by row, as a word. */
__device__ inline uint32_t word_of(uint64_t mask, int32_t w)
{
    uint32_t word = 0;
    for (uint32_t up = 0; mask; mask >>= w, up += PIECE_W) word |= static_cast<uint32_t>(mask & ((1u << w) - 1)) << up;
    return word;
}

/* A word where nothing is proven, by a whole warp. */
__device__ inline uint32_t search_piece(const job &j, const kiln_splat2d &s, const kiln_tile_box &box)
{
    const row_group g = cg::tiled_partition<KILN_TILE>(cg::this_thread_block());
    uint32_t word = 0;
    kiln_splat_extent e;
    if (!kiln_find_extent(&s, j.row0, j.row1, &e)) return 0;
    for (int32_t k = static_cast<int32_t>(lane_index()) / KILN_TILE; k < box.h; k += static_cast<int32_t>(WARP) / KILN_TILE) {
        const uint32_t y = static_cast<uint32_t>(box.row + k);
        if (y < e.row_first || y >= e.row_end) continue;
        kiln_tile_row r = kiln_find_tile_row(&s, &e, &j.view, y);
        const int32_t from = max(r.column, box.column), to = min(r.column + r.n, box.column + box.w);
        if (from >= to) continue;
        r.column = from;
        r.n = to - from;
        r.px1 = min(r.px1, to * KILN_TILE - 1);
        put_row(g, s, r, [&](int32_t at, uint64_t bits) {
            word |= static_cast<uint32_t>(bits) << (at - box.column) << k * static_cast<int32_t>(PIECE_W);
        });
    }
    __syncwarp();
    return bits_of_warp(word);
}

/* 32 listed Gaussians, a lane each. */
struct batch {
    uint32_t id, place, before, total; /* before: pieces of lower lanes; total: of all */

    __device__ batch(const job &j, const found &f, uint64_t at, bool is_one)
    {
        uint32_t n = 0;
        id = 0;
        place = 0;
        if (is_one) {
            id = f.listed[at];
            place = f.places[at];
            const kiln_splat2d s = load_splat(&j.splats[id]);
            kiln_tile_box box;
            (void)kiln_find_box(&s, &j.view, j.row0, j.row1, &box); /* it is listed */
            n = pieces_of(box);
        }
        before = sum_below(n, &total);
    }
    /* Whose a piece is: the last lane that begins at it or before. All have pieces but those behind the last. */
    __device__ int owner(uint32_t at) const
    {
        int low = 0;
        for (int d = WARP / 2; d > 0; d /= 2)
            if (__shfl_sync(ALL, before, low + d) <= at) low += d;
        return low;
    }
};

/* The lane's piece of 32 from `first` on: its box, and whose it is. */
struct lane_piece {
    uint32_t id, place; /* of its word, or NOWHERE */
    bool is_one;
    kiln_splat2d s;
    kiln_tile_box box;

    __device__ lane_piece(const job &j, const batch &b, uint32_t at)
    {
        is_one = at < b.total;
        const int lane = b.owner(is_one ? at : b.total - 1);
        const uint32_t begin = __shfl_sync(ALL, b.before, lane), k = is_one ? at - begin : 0;
        id = __shfl_sync(ALL, b.id, lane);
        place = __shfl_sync(ALL, b.place, lane);
        if (place != NOWHERE) place += k;
        s = load_splat(&j.splats[id]);
        (void)kiln_find_box(&s, &j.view, j.row0, j.row1, &box);
        box = piece_of(box, k);
    }
};

/* A word of an odd Gaussian, by a whole warp. Rare, and large: apart, so that the rest need not save registers for it. */
__device__ __noinline__ uint32_t find_odd_word(const job &j, uint32_t id, const kiln_tile_box *box)
{
    return search_piece(j, load_splat(&j.splats[id]), *box);
}

/* The words of 32 pieces of wide boxes, and of odd ones. */
__device__ inline uint32_t find_wide_words(const job &j, asking &room, const lane_piece &p)
{
    const uint32_t n = p.is_one ? static_cast<uint32_t>(p.box.w * p.box.h) : 0;
    return word_of(ask_boxes(j.view, room, p.s, p.box, n), p.box.w);
}

__device__ inline uint32_t find_odd_words(const job &j, const lane_piece &p)
{
    uint32_t word = 0;
    for (unsigned left = __ballot_sync(ALL, p.is_one); left; left &= left - 1) {
        const int lane = __ffs(static_cast<int>(left)) - 1;
        const kiln_tile_box box = {__shfl_sync(ALL, p.box.column, lane), __shfl_sync(ALL, p.box.row, lane),
                                   __shfl_sync(ALL, p.box.w, lane), __shfl_sync(ALL, p.box.h, lane)};
        const uint32_t of_lane = find_odd_word(j, __shfl_sync(ALL, p.id, lane), &box);
        if (lane_index() == static_cast<unsigned>(lane)) word = of_lane;
    }
    return word;
}

template <bool ODD> __device__ uint32_t find_words(const job &j, asking &room, const lane_piece &p)
{
    return ODD ? find_odd_words(j, p) : find_wide_words(j, room, p);
}

/* sink(piece), by whole warps. All blocks take up to 32 listed Gaussians at a time, which all of a block's warps look up, and take
 * turns with their pieces. */
template <bool ODD, typename Sink> __device__ void for_listed(const job &j, const found &f, const Sink &sink)
{
    constexpr uint32_t EACH = ODD ? 1 : WARP;
    const uint64_t n = ODD ? *f.n_odd : *f.n_wide;
    const uint32_t warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    for (uint64_t first = blockIdx.x; first < n; first += WARP * gridDim.x) {
        const uint64_t k = first + static_cast<uint64_t>(lane_index()) * gridDim.x;
        const batch b(j, f, ODD ? j.n - 1 - k : k, k < n);
        for (uint32_t at = warp * EACH; at < b.total; at += warps * EACH)
            sink(lane_piece(j, b, lane_index() < EACH ? at + lane_index() : b.total));
    }
}

/* Line y of a word. */
__device__ inline void add_line(uint64_t *to, uint32_t word, int32_t y)
{
    const unsigned pairs = static_cast<unsigned>(__popc(word >> y * static_cast<int32_t>(PIECE_W) & 0xff));
    if (pairs) kiln::add64(to, pairs);
}

template <bool BY_ROW>
__global__ void __launch_bounds__(GROUP, 4)
    find_rest(const __grid_constant__ job j, const __grid_constant__ found f, uint64_t *row_pairs)
{
    __shared__ asking rooms[GROUP / WARP];
    const auto keep = [&](const lane_piece &p, uint32_t word) {
        if (!p.is_one) return;
        if (p.place != NOWHERE) f.words[p.place] = word;
        const unsigned pairs = static_cast<unsigned>(__popc(word));
        if (pairs == 0) return;
        kiln::add64(&f.records[p.id].pairs, pairs);
        kiln::add64(&f.group_pairs[p.id / GROUP], pairs);
        if constexpr (BY_ROW)
            for (int32_t y = 0; y < p.box.h; y++) add_line(&row_pairs[static_cast<uint32_t>(p.box.row + y) - j.row0], word, y);
    };
    asking &room = rooms[threadIdx.x / WARP];
    for_listed<false>(j, f, [&](const lane_piece &p) { keep(p, find_words<false>(j, room, p)); });
    for_listed<true>(j, f, [&](const lane_piece &p) { keep(p, find_words<true>(j, room, p)); });
}

} // namespace

#endif
