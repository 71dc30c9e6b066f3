/* knn_device -- the spacing of a whole layer in the memory of a GPU, for a host that has no room
 * for its points. Means go to the device block by block; values come back piece by piece: once to
 * find the median's bin, once more for its low bits and as outputs.
 */
#include "base/carve.h"
#include "base/memory.h"
#include "kernels/violation.h"
#include "stages/knn/knn_units.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    kiln_runner *runner;
    kiln_exec x;
    char *at; /* of the runner's device */
    uint64_t bytes;
    uint64_t *violation;
    float *means, *spacing2; /* [3][n], [n] */
    void *work;
    size_t work_bytes;
    /* on the host; what is under way on the stream reads and writes them */
    float *block, *values; /* means of a block; values of a piece */
    uint64_t *counts;      /* [KILN_RANK_BINS] */
    uint64_t left;         /* the violation word */
} device;

static kiln_knn_args args_of(const device *d, uint64_t n, uint32_t k)
{
    return (kiln_knn_args){.n = n, .k = k, .means = d->means, .spacing2 = d->spacing2};
}

/* Lays out the block d->at; NULL: measures it. */
static kiln_status lay_out_device(device *d, uint64_t n, uint32_t k, kiln_error *err)
{
    kiln_carve c = {d->at, 0};
    d->violation = kiln_take(&c, 1, sizeof *d->violation);
    d->means = kiln_take(&c, 3 * n, sizeof *d->means);
    d->spacing2 = kiln_take(&c, n, sizeof *d->spacing2);
    const kiln_knn_args a = args_of(d, n, k);
    KILN_TRY(kiln_runner_work(d->runner, KILN_OP_knn, &a, &d->work_bytes, err));
    d->work = kiln_take(&c, d->work_bytes, 1);
    d->bytes = c.used;
    return KILN_OK;
}

/* Takes the memory; d->at is NULL if there is not enough. */
static kiln_status device_take(kiln_worker *w, uint64_t n, uint32_t k, device *d, kiln_error *err)
{
    void *at = NULL;
    *d = (device){.runner = kiln_worker_runner(w)};
    d->x = kiln_runner_exec(d->runner);
    if (d->x.device < 0) return KILN_OK;
    KILN_TRY(lay_out_device(d, n, k, err));
    if (d->bytes == SIZE_MAX) return KILN_OK;
    KILN_TRY(kiln_runner_take(d->runner, d->bytes, &at, err));
    d->at = at;
    return at ? lay_out_device(d, n, k, err) : KILN_OK;
}

/* Gives everything back once the stream is idle. Returns st, or if that is no failure what waiting
 * says. */
static kiln_status device_give(device *d, kiln_status st)
{
    const kiln_status waited = d->at ? kiln_device_wait(&d->x, NULL) : KILN_OK;
    if (d->at) kiln_runner_give(d->runner, d->at, d->bytes);
    free(d->counts);
    free(d->values);
    free(d->block);
    *d = (device){0};
    return st == KILN_OK ? waited : st;
}

kiln_status kiln_knn_fits_device(kiln_worker *w, const kiln_layer *l, const kiln_knn_unit *u,
                                 kiln_error *err)
{
    device d;
    KILN_TRY(device_take(w, l->count, u->neighbors, &d, err));
    const unsigned char fits = d.at != NULL;
    KILN_TRY(device_give(&d, KILN_OK));
    return kiln_worker_put(w, "fits", &fits, sizeof fits, sizeof fits, err);
}

/* ---- means ----------------------------------------------------------------------------------- */
static uint64_t largest_source_block(const kiln_layer *l)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < l->n_chunks; i++)
        rows = l->chunks[i].count > rows ? l->chunks[i].count : rows;
    return rows;
}

static kiln_status copy_means(const device *d, const kiln_layer *l, uint64_t first, uint64_t n,
                              kiln_error *err)
{
    for (uint64_t axis = 0; axis < 3; axis++)
        KILN_TRY(kiln_device_copy_in(&d->x, d->means + axis * l->count + first, d->block + axis * n,
                                     n * sizeof *d->block, err));
    return kiln_device_wait(&d->x, err); /* the next block takes the place of this one */
}

static kiln_status fill_means(kiln_worker *w, const device *d, const kiln_layer *l, kiln_error *err)
{
    kiln_manifest *m;
    uint64_t first = 0;
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    for (uint32_t i = 0; i < l->n_chunks; i++) {
        const uint64_t n = l->chunks[i].count;
        if (n == 0) continue;
        if (n > l->count - first)
            return kiln_fail(err, KILN_E_IO,
                             "layer '%s' has more rows in its chunks than it claims", l->kind);
        KILN_TRY(
            kiln_plane_read(m, &l->chunks[i], "means", d->block, n * 3 * sizeof *d->block, err));
        KILN_TRY(copy_means(d, l, first, n, err));
        first += n;
    }
    return first == l->count
               ? KILN_OK
               : kiln_fail(err, KILN_E_IO, "layer '%s' has fewer rows in its chunks than it claims",
                           l->kind);
}

/* ---- values ---------------------------------------------------------------------------------- */
static kiln_status search(device *d, uint64_t n, uint32_t k, kiln_error *err)
{
    const kiln_knn_args a = args_of(d, n, k);
    KILN_TRY(kiln_device_fill(&d->x, d->violation, 0xff, sizeof *d->violation, err));
    KILN_TRY(
        kiln_runner_launch(d->runner, KILN_OP_knn, &a, d->work, d->work_bytes, d->violation, err));
    KILN_TRY(kiln_device_copy_out(&d->x, &d->left, d->violation, sizeof d->left, err));
    KILN_TRY(kiln_device_wait(&d->x, err));
    return kiln_violation_fail(d->left, err);
}

/* Consecutive blocks, at least one, whose values are on the host at a time. */
typedef struct {
    uint32_t first, end;
    uint64_t row, rows;
} piece;

static bool next_piece(const kiln_layer *l, piece *p)
{
    p->first = p->end;
    p->row += p->rows;
    p->rows = 0;
    while (p->end < l->n_chunks &&
           (p->rows == 0 || p->rows + l->chunks[p->end].count <= KILN_KNN_PIECE_ROWS))
        p->rows += l->chunks[p->end++].count;
    return p->first < l->n_chunks;
}

static kiln_status put_blocks(kiln_worker *w, const kiln_layer *l, const piece *p,
                              const float *values, kiln_error *err)
{
    for (uint32_t i = p->first; i < p->end; i++) {
        const kiln_chunk *c = &l->chunks[i];
        KILN_TRY(
            kiln_worker_put(w, c->name, values, c->count * sizeof *values, sizeof *values, err));
        values += c->count;
    }
    return KILN_OK;
}

static void add_summary(kiln_knn_summary *sum, const kiln_knn_summary *s, bool first)
{
    if (first || s->min2 < sum->min2) sum->min2 = s->min2;
    if (first || s->max2 > sum->max2) sum->max2 = s->max2;
    sum->fallbacks += s->fallbacks;
}

/* Brings all values down and counts them. In pass 1 they become outputs. */
static kiln_status bring_down(kiln_worker *w, const device *d, const kiln_layer *l,
                              const kiln_knn_unit *u, kiln_ranks_args a, kiln_knn_summary *sum,
                              kiln_error *err)
{
    *sum = (kiln_knn_summary){0};
    for (piece p = {0}; next_piece(l, &p);) {
        if (p.rows > 0) {
            KILN_TRY(kiln_device_copy_out(&d->x, d->values, d->spacing2 + p.row,
                                          p.rows * sizeof *d->values, err));
            KILN_TRY(kiln_device_wait(&d->x, err));
            const kiln_knn_summary s = kiln_knn_finish(d->values, p.rows, l->count, u);
            add_summary(sum, &s, p.row == 0);
            a.n = p.rows, a.values = d->values;
            KILN_TRY(KILN_WORK(w, ranks, &a, err));
        }
        if (a.pass == 1) KILN_TRY(put_blocks(w, l, &p, d->values, err));
    }
    return KILN_OK;
}

static kiln_status hand_in(kiln_worker *w, const device *d, const kiln_layer *l,
                           const kiln_knn_unit *u, kiln_error *err)
{
    kiln_knn_summary sum;
    uint64_t rank = (l->count - 1) / 2;
    kiln_ranks_args a = {.counts = d->counts};
    KILN_TRY(bring_down(w, d, l, u, a, &sum, err));
    a.high = kiln_rank_pick(d->counts, &rank);
    a.pass = 1;
    memset(d->counts, 0, KILN_RANK_BINS * sizeof *d->counts);
    KILN_TRY(bring_down(w, d, l, u, a, &sum, err));
    return kiln_knn_put_summary(
        w, &sum, kiln_rank_value(a.high << 16 | kiln_rank_pick(d->counts, &rank)), err);
}

/* ---- all of it ------------------------------------------------------------------------------- */
/* A block larger than a piece is a piece of its own. */
static uint64_t piece_rows(const kiln_layer *l)
{
    const uint64_t block = largest_source_block(l);
    return block > KILN_KNN_PIECE_ROWS ? block : KILN_KNN_PIECE_ROWS;
}

uint64_t kiln_knn_on_device_ram(const kiln_layer *l)
{
    const uint64_t block = 3 * sizeof(float) * largest_source_block(l),
                   values = sizeof(float) * piece_rows(l);
    const uint64_t here =
        block + kiln_read_ram(block) > values ? block + kiln_read_ram(block) : values;
    return here + kiln_outputs_ram(l->count * sizeof(float)) + KILN_RANK_BINS * sizeof(uint64_t) +
           (4u << 20);
}

static kiln_status measure_on_device(kiln_worker *w, device *d, const kiln_layer *l,
                                     const kiln_knn_unit *u, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC_UNSET(&d->block, 3 * largest_source_block(l), "the means of a block", err));
    KILN_TRY(fill_means(w, d, l, err));
    free(d->block);
    d->block = NULL;
    KILN_TRY(search(d, l->count, u->neighbors, err));
    KILN_TRY(KILN_ALLOC_UNSET(&d->values, piece_rows(l), "the spacing of blocks", err));
    KILN_TRY(KILN_ALLOC(&d->counts, KILN_RANK_BINS, "the bins of a median", err));
    return hand_in(w, d, l, u, err);
}

kiln_status kiln_knn_on_device(kiln_worker *w, const kiln_layer *l, const kiln_knn_unit *u,
                               kiln_error *err)
{
    device d;
    KILN_TRY(device_take(w, l->count, u->neighbors, &d, err));
    if (!d.at)
        return kiln_fail(
            err, KILN_E_CAP,
            "the GPU has less free memory than when the run was planned; run kiln-knn again");
    return device_give(&d, measure_on_device(w, &d, l, u, err));
}
