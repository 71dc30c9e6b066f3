/* spz_write -- SPZ versions 2 and 3: the header and six planes of codes in one gzip stream. Version
 * 3 is what most readers take.
 *
 * Round 1 codes a chunk and deflates each of its planes in pieces, each by itself and ended on a
 * byte (Z_SYNC_FLUSH), so that pieces one behind the other are one deflate stream. They go to
 * scratch. When all lengths are known, round 2 copies them to their places, plane after plane.
 * Pieces begin and end where chunks and their multiples of 256 KiB do: the bytes are the same
 * whoever packs them (spz_deflate.h).
 */
#include "stages/formats/spz/spz_deflate.h"
#include "stages/formats/spz/spz_scene.h"

#include "base/minmax.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define COPY_BYTES ((uint64_t)1 << 20)

/* A plane of a chunk, packed. */
typedef struct {
    uint64_t place; /* in the file */
    uint32_t bytes, crc;
} packed_plane;

/* Of a chunk: a unit's result, and an element of the list behind kiln_spz_plan. */
typedef struct {
    packed_plane planes[KILN_SPZ_PLANES];
} packed_chunk;

static const kiln_spz_plan *spz_plan_of(const kiln_export *e) { return e->plan; }
static const packed_chunk *chunks_of(const kiln_export *e)
{
    return (const packed_chunk *)(const void *)(spz_plan_of(e) + 1);
}

/* ---- round 1 --------------------------------------------------------------------------------- */

/* Scratch has holes: a chunk has room for planes that do not compress. */
static uint64_t scratch_place(const kiln_export *e, uint64_t unit)
{
    const kiln_spz_plan *plan = spz_plan_of(e);
    uint64_t row = 0;
    for (int p = 0; p < KILN_SPZ_PLANES; p++) row += plan->stride[p];
    return e->chunks[unit].first * 2 * row + unit * 65536;
}

typedef struct {
    int plane;
    const unsigned char *plain;
    size_t bytes;
    unsigned char *out;
    size_t packed;
    bool done;
} piece;

/* Pieces of all planes, in their order; out: where the first one goes. Returns how many. */
static uint64_t cut_planes(const kiln_spz_chunk *c, unsigned char *out, piece *pieces)
{
    uint64_t n = 0;
    for (int p = 0; p < KILN_SPZ_PLANES; p++)
        for (size_t at = 0; at < c->bytes[p]; at += KILN_SPZ_PIECE) {
            const size_t bytes = kiln_min_u64(c->bytes[p] - at, KILN_SPZ_PIECE);
            pieces[n++] =
                (piece){.plane = p, .plain = c->planes[p] + at, .bytes = bytes, .out = out};
            out += kiln_spz_deflate_bound(bytes);
        }
    return n;
}

static void packing_size(const size_t bytes[KILN_SPZ_PLANES], uint64_t *pieces, uint64_t *capacity)
{
    *pieces = *capacity = 0;
    for (int p = 0; p < KILN_SPZ_PLANES; p++) {
        *pieces += kiln_spz_pieces(bytes[p]);
        *capacity += kiln_spz_deflate_bound(bytes[p]) +
                     kiln_spz_pieces(bytes[p]) * kiln_spz_deflate_bound(0);
    }
}

/* Moves the pieces together and notes what each plane takes. */
static uint64_t join_pieces(const kiln_spz_chunk *c, const piece *pieces, uint64_t n,
                            unsigned char *out, packed_chunk *result)
{
    uint64_t at = 0;
    for (uint64_t i = 0; i < n; i++) {
        memmove(out + at, pieces[i].out, pieces[i].packed);
        result->planes[pieces[i].plane].bytes += (uint32_t)pieces[i].packed;
        at += pieces[i].packed;
    }
    for (int p = 0; p < KILN_SPZ_PLANES; p++)
        result->planes[p].crc = (uint32_t)crc32_z(crc32(0, NULL, 0), c->planes[p], c->bytes[p]);
    return at;
}

static kiln_status pack_spz_planes(kiln_export_worker *x, const kiln_spz_chunk *c, uint64_t unit,
                                   kiln_error *err)
{
    kiln_status st = KILN_OK;
    const int threads = (int)kiln_worker_threads(x->w);
    uint64_t n, capacity;
    piece *pieces = NULL;
    unsigned char *out = NULL;
    packed_chunk result = {0};
    packing_size(c->bytes, &n, &capacity);
    KILN_GO(KILN_ALLOC(&pieces, n, "pieces of a chunk", err));
    KILN_GO(kiln_alloc_unset((void **)&out, capacity, 1, "a packed chunk", err));
    n = cut_planes(c, out, pieces);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1) if (threads > 1)
    for (uint64_t i = 0; i < n; i++)
        pieces[i].done =
            kiln_spz_deflate(pieces[i].plane, pieces[i].plain, pieces[i].bytes, pieces[i].out,
                             kiln_spz_deflate_bound(pieces[i].bytes), &pieces[i].packed);
    for (uint64_t i = 0; i < n && st == KILN_OK; i++)
        if (!pieces[i].done)
            st = kiln_fail(err, KILN_E_NOMEM, "out of memory: cannot compress '%s'", x->e->target);
    if (st == KILN_OK) {
        const uint64_t bytes = join_pieces(c, pieces, n, out, &result);
        KILN_GO(kiln_export_scratch_write(x, out, bytes, scratch_place(x->e, unit), err));
        KILN_GO(kiln_export_result(x, &result, sizeof result, err));
    }
done:
    free(out);
    free(pieces);
    return st;
}

static kiln_status pack_chunk(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    kiln_spz_chunk c;
    kiln_status st = kiln_spz_chunk_encode(x, spz_plan_of(x->e), unit, &c, err);
    if (st == KILN_OK) st = pack_spz_planes(x, &c, unit, err);
    kiln_spz_chunk_release(&c);
    return st;
}

/* Rows are gone when the codes are packed, but what is freed may stay with the process. */
static uint64_t pack_ram(const kiln_export *e, uint64_t unit)
{
    size_t bytes[KILN_SPZ_PLANES];
    uint64_t pieces, capacity;
    for (int p = 0; p < KILN_SPZ_PLANES; p++)
        bytes[p] = e->chunks[unit].n * spz_plan_of(e)->stride[p];
    packing_size(bytes, &pieces, &capacity);
    return kiln_spz_chunk_ram(e, spz_plan_of(e), unit) + capacity + pieces * sizeof(piece) +
           KILN_SPZ_DEFLATE_RAM + kiln_outputs_ram(sizeof(packed_chunk));
}
static uint64_t pack_thread_ram(const kiln_export *e, uint64_t unit)
{
    (void)e;
    (void)unit;
    return KILN_SPZ_DEFLATE_RAM;
}

static kiln_status gather_packed_chunk(kiln_export_parent *p, uint64_t unit, const void *result,
                                       size_t bytes, kiln_error *err)
{
    if (bytes != sizeof(packed_chunk))
        return kiln_fail(err, KILN_E_BUG, "chunk %llu has a list of %zu bytes",
                         (unsigned long long)unit, bytes);
    return kiln_buffer_put(p->plan, result, bytes, err);
}

/* ---- the parent in between ------------------------------------------------------------------- */

/* Gives each plane of each chunk its place, and writes what stands before and behind them. */
static kiln_status end_packing(kiln_export_parent *p, kiln_error *err)
{
    unsigned char header[KILN_SPZ_HEADER], front[KILN_SPZ_FRONT], back[KILN_SPZ_BACK];
    const kiln_spz_plan *plan = (const void *)p->plan->data;
    packed_chunk *chunks = (void *)(p->plan->data + sizeof *plan);
    uint64_t place = KILN_SPZ_FRONT;
    kiln_spz_header_make(p->e->n_rows, &plan->coding, kiln_export_scene(p->e)->antialiased,
                         plan->coding.first_three ? KILN_SPZ_OLDEST : 3, 0, header);
    kiln_spz_front(header, front);
    uint32_t crc = (uint32_t)crc32_z(crc32(0, NULL, 0), header, KILN_SPZ_HEADER);
    for (int k = 0; k < KILN_SPZ_PLANES; k++)
        for (uint32_t c = 0; c < p->e->n_chunks; c++) {
            packed_plane *one = &chunks[c].planes[k];
            one->place = place;
            place += one->bytes;
            crc = (uint32_t)crc32_combine(crc, one->crc,
                                          (z_off_t)(p->e->chunks[c].n * plan->stride[k]));
        }
    kiln_spz_back(crc, KILN_SPZ_HEADER + plan->at[KILN_SPZ_PLANES], back);
    KILN_TRY(kiln_export_put(p, front, sizeof front, 0, err));
    return kiln_export_put(p, back, sizeof back, place, err);
}

/* ---- round 2 --------------------------------------------------------------------------------- */

static kiln_status copy_chunk(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const packed_chunk *c = &chunks_of(x->e)[unit];
    uint64_t from = scratch_place(x->e, unit);
    unsigned char *bytes = NULL;
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_alloc_unset((void **)&bytes, COPY_BYTES, 1, "a packed plane", err));
    for (int p = 0; p < KILN_SPZ_PLANES; p++) {
        for (uint64_t at = 0; at < c->planes[p].bytes; at += COPY_BYTES) {
            const size_t n = kiln_min_u64(c->planes[p].bytes - at, COPY_BYTES);
            KILN_GO(kiln_export_scratch_read(x, bytes, n, from + at, err));
            KILN_GO(kiln_export_write(x, bytes, n, c->planes[p].place + at, err));
        }
        from += c->planes[p].bytes;
    }
done:
    free(bytes);
    return st;
}

static uint64_t copy_ram(const kiln_export *e, uint64_t unit)
{
    (void)e;
    (void)unit;
    return COPY_BYTES;
}

/* With the places of all planes, which are in the plan then. */
static uint64_t copy_foresee(const kiln_export *e)
{
    return COPY_BYTES + kiln_export_shared_ram(e, e->n_chunks * sizeof(packed_chunk));
}

static const kiln_export_round rounds[] = {
    KILN_SPZ_MEASURING,
    {.what = "packing",
     .ram = pack_ram,
     .ram_thread = pack_thread_ram,
     .run = pack_chunk,
     .gather = gather_packed_chunk,
     .end = end_packing},
    {.what = "joining", .ram = copy_ram, .run = copy_chunk, .foresee = copy_foresee},
};

const kiln_writer_functions kiln_writer_spz = {.place = KILN_PLACE_FILE,
                                               .scratch = true,
                                               .relative = true,
                                               .reader = "spz",
                                               .counts = kiln_spz_counts,
                                               .plan = kiln_spz_plan_make,
                                               .rounds = rounds,
                                               .n_rounds = 3};

const kiln_writer_functions kiln_writer_spz2 = {.place = KILN_PLACE_FILE,
                                                .scratch = true,
                                                .relative = true,
                                                .reader = "spz",
                                                .counts = kiln_spz_counts,
                                                .plan = kiln_spz_plan_oldest,
                                                .rounds = rounds,
                                                .n_rounds = 3};
