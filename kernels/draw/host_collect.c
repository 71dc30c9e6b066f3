/* host_collect -- see the header. Chunks are projected one at a time, so Gaussians that the camera
 * does not see take no memory. */
#include "kernels/draw/host_collect.h"

#include "base/memory.h"
#include "kernels/visible/visible_math.h"

#include <stdlib.h>
#include <string.h>

/* Visible Gaussians in the order of chunks and rows. The arrays have the same length. */
typedef struct {
    uint64_t n, capacity;
    kiln_splat2d *splats;
    uint32_t *chunk, *source_rows;
} gathered;

static void gathered_release(gathered *g)
{
    free(g->splats);
    free(g->chunk);
    free(g->source_rows);
}

static bool grow_one(void **array, uint64_t capacity, size_t elem)
{
    void *more = capacity <= SIZE_MAX / elem ? realloc(*array, (size_t)capacity * elem) : NULL;
    if (!more) return false;
    kiln_memory_use_large_pages(more, (size_t)capacity * elem);
    *array = more;
    return true;
}

static kiln_status grow_gathered(gathered *g, uint64_t need, kiln_error *err)
{
    const uint64_t capacity = need + need / 2;
    if (need <= g->capacity) return KILN_OK;
    if (!grow_one((void **)&g->splats, capacity, sizeof *g->splats) ||
        !grow_one((void **)&g->chunk, capacity, sizeof *g->chunk) ||
        !grow_one((void **)&g->source_rows, capacity, sizeof *g->source_rows))
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for %llu visible Gaussians",
                         (unsigned long long)need);
    g->capacity = capacity;
    return KILN_OK;
}

/* Keeps those of a chunk's visible Gaussians that belong to the slab, in their order. Returns how
 * many. */
static uint64_t keep_wanted(const kiln_visible_window *w, const kiln_draw_chunk *c,
                            kiln_splat2d *splats, uint64_t visible)
{
    uint64_t kept = 0;
    for (uint64_t k = 0; k < visible; k++)
        if (kiln_visible_wanted(w, &splats[k], c->source_rows[splats[k].row]))
            splats[kept++] = splats[k];
    return kept;
}

static kiln_status gather_chunk(kiln_runner *r, const kiln_draw_scene *s, uint32_t i, gathered *g,
                                kiln_error *err)
{
    enum { WORTH_THREADS = 16384 };
    const int threads = (int)kiln_runner_get_info(r).threads;
    kiln_draw_chunk c = {0};
    uint64_t visible = 0;
    KILN_TRY(s->chunk(s->context, i, &c, err));
    if (c.n == 0) return KILN_OK;
    KILN_TRY(grow_gathered(g, g->n + c.n, err));
    const kiln_project_args a = {.n = c.n,
                                 .means = c.means,
                                 .log_scales = c.log_scales,
                                 .quats = c.quats,
                                 .opacity_logits = c.opacity_logits,
                                 .sh0 = c.sh0,
                                 .shN = c.sh0 && s->sh_degree > 0 ? c.shN : NULL,
                                 .sh_degree = c.sh0 ? s->sh_degree : 0,
                                 .half_sh = s->fast,
                                 .view = s->view,
                                 .cut = s->cut,
                                 .profile = s->profile,
                                 .antialiased = s->antialiased,
                                 .splats = g->splats + g->n,
                                 .n_visible = &visible};
    KILN_TRY(kiln_runner_run(r, KILN_OP_project, &a, err));
    if (s->window) visible = keep_wanted(&s->window->visible, &c, a.splats, visible);
#pragma omp parallel for num_threads(threads) if (visible > WORTH_THREADS)
    for (uint64_t k = g->n; k < g->n + visible; k++) {
        g->chunk[k] = i;
        g->source_rows[k] = c.source_rows[g->splats[k].row];
    }
    g->n += visible;
    return KILN_OK;
}

/* Sorts; the caller frees *order. Frees the source rows, which are not needed afterwards. */
static kiln_status find_order(kiln_runner *r, gathered *g, uint32_t **order, kiln_error *err)
{
    kiln_status st;
    float *depths = NULL;
    const int threads = (int)kiln_runner_get_info(r).threads;
    KILN_GO(KILN_ALLOC_UNSET(&depths, g->n, "depths", err));
    KILN_GO(KILN_ALLOC_UNSET(order, g->n, "drawing order", err));
#pragma omp parallel for num_threads(threads)
    for (uint64_t i = 0; i < g->n; i++) depths[i] = g->splats[i].depth;
    const kiln_depth_order_args a = {
        .n = g->n, .depths = depths, .source_rows = g->source_rows, .order = *order};
    KILN_GO(kiln_runner_run(r, KILN_OP_depth_order, &a, err));
    /* frees 20 bytes a Gaussian on the CPU, before the ordered copy is allocated */
    kiln_runner_trim(r);
    free(g->source_rows);
    g->source_rows = NULL;
done:
    free(depths);
    return st;
}

static kiln_status put_in_order(kiln_runner *r, gathered *g, kiln_drawing *out, kiln_error *err)
{
    kiln_status st;
    uint32_t *order = NULL;
    const int threads = (int)kiln_runner_get_info(r).threads;
    KILN_GO(find_order(r, g, &order, err));
    KILN_GO(KILN_ALLOC_UNSET(&out->splats, g->n, "visible Gaussians", err));
    KILN_GO(KILN_ALLOC_UNSET(&out->chunk, g->n, "visible Gaussians", err));
#pragma omp parallel for num_threads(threads)
    for (uint64_t i = 0; i < g->n; i++) {
        out->splats[i] = g->splats[order[i]];
        out->chunk[i] = g->chunk[order[i]];
    }
    out->n = g->n;
done:
    free(order);
    return st;
}

kiln_status kiln_host_collect(kiln_runner *r, const kiln_draw_scene *s, kiln_drawing *out,
                              kiln_error *err)
{
    gathered g = {0};
    kiln_status st = KILN_OK;
    /* frees the work space of an earlier picture, several times what is needed here */
    kiln_runner_trim(r);
    for (uint32_t i = 0; st == KILN_OK && i < s->n_chunks; i++) {
        st = gather_chunk(r, s, i, &g, err);
        if (st == KILN_OK && g.n > UINT32_MAX - 1)
            st = kiln_fail(err, KILN_E_INPUT, "more than 4294967294 Gaussians are visible");
    }
    if (st == KILN_OK) st = put_in_order(r, &g, out, err);
    gathered_release(&g);
    if (st == KILN_OK) return KILN_OK;
    free(out->splats);
    free(out->chunk);
    *out = (kiln_drawing){0};
    return st;
}
