/* spz4_write -- SPZ version 4: a header, a table of contents, and one zstd frame a plane (spz.h).
 *
 * A frame cannot be put together from parts that were packed by themselves, so round 1 writes the
 * codes of each chunk to their places in scratch, plane after plane, and round 2 packs one plane a
 * unit, on all its threads: zstd cuts the input into jobs of a fixed size, so that the frame is the
 * same for any number of them. When all lengths are known, round 3 copies the frames to their
 * places.
 *
 * Search for matches of 6 bytes and more: shorter ones cost more than Huffman codes of noise.
 * Harmonics of 1M Gaussians of degree 3 take 8.7 MB in 1.2 s; level 12, which nianticlabs/spz uses,
 * the same in 4.9 s, level 3 10.0 MB. Small planes are searched longer, which takes a third more:
 * those of a trained chair 154 kB as in level 12, instead of 157. Positions in the layer's order
 * have high bytes in common with rows before, in matches of 3 bytes: 6.28 MB, of 5 bytes 6.37.
 */
#include "stages/formats/spz/spz_scene.h"

#include "base/endian.h"
#include "base/minmax.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum {
    LEVEL = 6,
    POSITION_WINDOW_LOG = 19,
    POSITION_MATCH_MIN = 3,
    TABLE_LOG = 16,
    SEARCH_LOG = 5,
    MATCH_MIN = 6
};
#define SMALL_PLANE ((uint64_t)16 << 20)
#define JOB_BYTES (1 << 20)
#define BUFFER_BYTES ((size_t)1 << 20)
#define ZSTD_RAM ((uint64_t)12 << 20)
#define ZSTD_THREAD_RAM ((uint64_t)6 << 20)

/* Behind kiln_spz_plan; sizes are known from round 3 on. */
typedef struct {
    uint64_t bytes[KILN_SPZ_PLANES], place[KILN_SPZ_PLANES]; /* of the frames, in the file */
} frames;

static const kiln_spz_plan *spz4_plan_of(const kiln_export *e) { return e->plan; }
static const frames *frames_of(const kiln_export *e)
{
    return (const frames *)(const void *)(spz4_plan_of(e) + 1);
}

static uint64_t stream_count(const kiln_export *e)
{
    return (uint64_t)kiln_spz_n_streams(e->sh_degree);
}
/* The harmonics, most of the file, first. */
static int plane_of(const kiln_export *e, uint64_t unit)
{
    return (int)(stream_count(e) - 1 - unit);
}

/* Frames are behind the codes in scratch, which has holes: each has room for twice its codes. */
static uint64_t frame_scratch(const kiln_spz_plan *plan, int p)
{
    return plan->at[KILN_SPZ_PLANES] + 2 * plan->at[p] + (uint64_t)p * 65536;
}

static kiln_status plan_spz4(kiln_export_parent *p, kiln_error *err)
{
    KILN_TRY(kiln_spz_plan_make(p, err));
    return kiln_buffer_put(p->plan, NULL, sizeof(frames), err);
}

/* ---- round 1 --------------------------------------------------------------------------------- */

static kiln_status code_chunk(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const kiln_spz_plan *plan = spz4_plan_of(x->e);
    kiln_spz_chunk c;
    kiln_status st = kiln_spz_chunk_encode(x, plan, unit, &c, err);
    for (int p = 0; p < KILN_SPZ_PLANES && st == KILN_OK; p++)
        st = kiln_export_scratch_write(x, c.planes[p], c.bytes[p],
                                       plan->at[p] + c.first * plan->stride[p], err);
    kiln_spz_chunk_release(&c);
    return st;
}

static uint64_t code_ram(const kiln_export *e, uint64_t unit)
{
    return kiln_spz_chunk_ram(e, spz4_plan_of(e), unit);
}

/* ---- round 2 --------------------------------------------------------------------------------- */

typedef struct {
    kiln_export_worker *x;
    ZSTD_CCtx *zstd;
    unsigned char *in, *out; /* [BUFFER_BYTES] each */
    uint64_t from, left;     /* codes that are to be read */
    uint64_t to, given;      /* where the frame goes, and its bytes so far */
} packing;

static bool set_compression(ZSTD_CCtx *z, int plane, uint64_t plain, unsigned threads)
{
    size_t bad = 0;
    const bool is_small = plain <= SMALL_PLANE;
#define SET(what, value) bad |= ZSTD_isError(ZSTD_CCtx_setParameter(z, ZSTD_c_##what, (value)))
    SET(compressionLevel, LEVEL);
    SET(contentSizeFlag, 1);
    SET(checksumFlag, 1);
    SET(windowLog, plane == KILN_SPZ_POSITIONS ? POSITION_WINDOW_LOG : is_small ? 17 : 16);
    SET(minMatch, plane == KILN_SPZ_POSITIONS ? POSITION_MATCH_MIN : MATCH_MIN);
    if (plane != KILN_SPZ_POSITIONS) {
        SET(strategy, is_small ? ZSTD_lazy2 : ZSTD_lazy);
        SET(searchLog, SEARCH_LOG);
        SET(hashLog, TABLE_LOG);
        SET(chainLog, TABLE_LOG);
    }
#undef SET
    bad |= ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(z, plain));
    /* a library without threads packs on one, into other bytes than one with them */
    if (!ZSTD_isError(ZSTD_CCtx_setParameter(z, ZSTD_c_nbWorkers, (int)threads)))
        bad |= ZSTD_isError(ZSTD_CCtx_setParameter(z, ZSTD_c_jobSize, JOB_BYTES));
    return !bad;
}

/* Packs n bytes of p->in; last: the frame ends with them. */
static kiln_status pack_some(packing *p, size_t n, bool last, kiln_error *err)
{
    ZSTD_inBuffer in = {p->in, n, 0};
    for (size_t more = 1; last ? more != 0 : in.pos < n;) {
        ZSTD_outBuffer out = {p->out, BUFFER_BYTES, 0};
        more = ZSTD_compressStream2(p->zstd, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(more))
            return kiln_fail(err, KILN_E_NOMEM, "cannot compress '%s': %s", p->x->e->target,
                             ZSTD_getErrorName(more));
        KILN_TRY(kiln_export_scratch_write(p->x, p->out, out.pos, p->to + p->given, err));
        p->given += out.pos;
    }
    return KILN_OK;
}

static kiln_status pack_all(packing *p, kiln_error *err)
{
    while (p->left) {
        const size_t n = (size_t)kiln_min_u64(p->left, BUFFER_BYTES);
        KILN_TRY(kiln_export_scratch_read(p->x, p->in, n, p->from, err));
        p->from += n;
        p->left -= n;
        KILN_TRY(pack_some(p, n, p->left == 0, err));
    }
    return KILN_OK;
}

static kiln_status pack_plane(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const kiln_spz_plan *plan = spz4_plan_of(x->e);
    const int plane = plane_of(x->e, unit);
    packing p = {.x = x,
                 .from = plan->at[plane],
                 .left = plan->at[plane + 1] - plan->at[plane],
                 .to = frame_scratch(plan, plane)};
    kiln_status st = KILN_OK;
    KILN_GO(kiln_alloc_unset((void **)&p.in, BUFFER_BYTES, 1, "codes", err));
    KILN_GO(kiln_alloc_unset((void **)&p.out, BUFFER_BYTES, 1, "packed codes", err));
    p.zstd = ZSTD_createCCtx();
    if (!p.zstd || !set_compression(p.zstd, plane, p.left, kiln_worker_threads(x->w)))
        st = kiln_fail(err, KILN_E_NOMEM, "out of memory: cannot compress '%s'", x->e->target);
    if (st == KILN_OK) KILN_GO(pack_all(&p, err));
    if (st == KILN_OK) st = kiln_export_result(x, &p.given, sizeof p.given, err);
done:
    ZSTD_freeCCtx(p.zstd);
    free(p.out);
    free(p.in);
    return st;
}

static uint64_t pack_ram(const kiln_export *e, uint64_t unit)
{
    (void)e;
    (void)unit;
    return ZSTD_RAM + 2 * BUFFER_BYTES + kiln_outputs_ram(sizeof(uint64_t));
}
static uint64_t pack_thread_ram(const kiln_export *e, uint64_t unit)
{
    (void)e;
    (void)unit;
    return ZSTD_THREAD_RAM;
}

static kiln_status gather_frame_sizes(kiln_export_parent *p, uint64_t unit, const void *result,
                                      size_t bytes, kiln_error *err)
{
    frames *f = (void *)(p->plan->data + sizeof(kiln_spz_plan));
    if (bytes != sizeof *f->bytes)
        return kiln_fail(err, KILN_E_BUG, "plane %d has a size of %zu bytes", plane_of(p->e, unit),
                         bytes);
    memcpy(&f->bytes[plane_of(p->e, unit)], result, bytes);
    return KILN_OK;
}

/* Places of the frames; the header and the table of contents. */
static kiln_status end_packing(kiln_export_parent *p, kiln_error *err)
{
    enum { TOC = KILN_SPZ_STREAMS_HEADER, FRONT_MAX = TOC + KILN_SPZ_PLANES * KILN_SPZ_TOC_ROW };
    const kiln_spz_plan *plan = (const void *)p->plan->data;
    frames *f = (void *)(p->plan->data + sizeof *plan);
    const int n = (int)stream_count(p->e);
    unsigned char front[FRONT_MAX] = {0};
    uint64_t place = TOC + (uint64_t)n * KILN_SPZ_TOC_ROW;
    kiln_spz_header_make(p->e->n_rows, &plan->coding, kiln_export_scene(p->e)->antialiased, 4,
                         (unsigned char)n, front);
    kiln_put_u32(front + KILN_SPZ_TOC_AT, TOC);
    for (int k = 0; k < n; k++) {
        const uint64_t plain = plan->at[k + 1] - plan->at[k];
        kiln_put_u64(kiln_put_u64(front + TOC + k * KILN_SPZ_TOC_ROW, f->bytes[k]), plain);
        f->place[k] = place;
        place += f->bytes[k];
    }
    return kiln_export_put(p, front, TOC + (size_t)n * KILN_SPZ_TOC_ROW, 0, err);
}

/* ---- round 3 --------------------------------------------------------------------------------- */

static kiln_status copy_frame(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const int plane = plane_of(x->e, unit);
    const uint64_t from = frame_scratch(spz4_plan_of(x->e), plane),
                   bytes = frames_of(x->e)->bytes[plane];
    unsigned char *buffer = NULL;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_alloc_unset((void **)&buffer, BUFFER_BYTES, 1, "packed codes", err));
    for (uint64_t at = 0; at < bytes && st == KILN_OK; at += BUFFER_BYTES) {
        const size_t n = (size_t)kiln_min_u64(bytes - at, BUFFER_BYTES);
        st = kiln_export_scratch_read(x, buffer, n, from + at, err);
        if (st == KILN_OK)
            st = kiln_export_write(x, buffer, n, frames_of(x->e)->place[plane] + at, err);
    }
    free(buffer);
    return st;
}

static uint64_t copy_ram(const kiln_export *e, uint64_t unit)
{
    (void)e;
    (void)unit;
    return BUFFER_BYTES;
}

static const kiln_export_round rounds[] = {
    KILN_SPZ_MEASURING,
    {.what = "coding", .ram = code_ram, .run = code_chunk},
    {.what = "packing",
     .units = stream_count,
     .ram = pack_ram,
     .ram_thread = pack_thread_ram,
     .run = pack_plane,
     .gather = gather_frame_sizes,
     .end = end_packing},
    {.what = "joining", .units = stream_count, .ram = copy_ram, .run = copy_frame},
};

const kiln_writer_functions kiln_writer_spz4 = {.place = KILN_PLACE_FILE,
                                                .scratch = true,
                                                .relative = true,
                                                .counts = kiln_spz_counts,
                                                .reader = "spz",
                                                .plan = plan_spz4,
                                                .rounds = rounds,
                                                .n_rounds = 4};
