/* draw -- see draw.h. A table has the ways to draw a view; the first that is allowed, can, and has
 * the memory draws it. */
#include "kernels/draw/draw.h"

#include "kernels/draw/draw_bands.h"
#include "kernels/draw/host_collect.h"
#include "kernels/draw/resident.h"
#include "kernels/draw/resident_collect.h"
#include "kernels/draw/shares.h"
#include "kernels/draw/single_pass.h"
#include "kernels/draw/slabs.h"

#include <string.h>

/* A view on its way. */
typedef struct {
    kiln_runner *runner;
    const kiln_draw_scene *scene;
    const kiln_draw_want *want;
    unsigned ways; /* that are allowed */
    kiln_draw_stats *out;
} job;

/* Arguments of raster for the whole view, without lists and Gaussians. */
static kiln_raster_args whole_picture(const job *j, float *rgba, float *depth)
{
    const kiln_draw_scene *s = j->scene;
    kiln_raster_args a = {.view = s->view,
                          .profile = s->profile,
                          .fast = s->fast,
                          .row1 = kiln_view_tiles_y(s->view),
                          .rgba = rgba,
                          .depth = depth};
    if (j->want->background) memcpy(a.background, j->want->background, sizeof a.background);
    return a;
}

/* The same, with the caller's memory for its floats. */
static kiln_status place_picture(const job *j, kiln_raster_args *out, kiln_error *err)
{
    *out = whole_picture(j, j->want->rgba, j->want->depth);
    return j->want->place && !j->want->sums
               ? j->want->place(j->want->place_context, &out->rgba, err)
               : KILN_OK;
}

/* ---- a drawing ------------------------------------------------------------------------------- */
static void tell_listed(const job *j, const kiln_drawing *d, const kiln_bands_listed *listed)
{
    j->out->visible = d->n;
    j->out->pairs = j->out->listed = listed->pairs;
    j->out->band_pairs = listed->band_pairs;
}

static kiln_status weigh_drawing(const job *j, kiln_drawing *d, kiln_error *err)
{
    kiln_status st;
    kiln_shares shares;
    kiln_bands_listed listed = {0};
    bool done;
    const kiln_raster_args a = whole_picture(j, NULL, NULL);
    KILN_GO(kiln_shares_begin(j->runner, d, j->want, &shares, err));
    const kiln_band_way way = kiln_shares_bands(&shares);
    KILN_GO(kiln_bands_draw(&way, &a, &listed, &done, err));
    KILN_GO(kiln_shares_add(&shares, err));
    tell_listed(j, d, &listed);
done:
    kiln_shares_release(&shares);
    return st;
}

/* Draws a drawing wherever it is. */
static kiln_status draw_drawing(const job *j, kiln_drawing *d, kiln_error *err)
{
    kiln_raster_args a;
    kiln_bands_listed listed = {0};
    bool done;
    kiln_bands_source of = {.runner = j->runner,
                            .drawing = d,
                            .stored = j->want->lists,
                            .most_pairs = j->want->most_band_pairs};
    if (j->want->sums) return weigh_drawing(j, d, err);
    KILN_TRY(place_picture(j, &a, err));
    const kiln_band_way way = kiln_bands_of(&of);
    const kiln_status st = kiln_bands_draw(&way, &a, &listed, &done, err);
    tell_listed(j, d, &listed);
    return st;
}

static kiln_status count_on_device(void *context, const kiln_tile_pairs_count_args *a, bool *done,
                                   kiln_error *err)
{
    return kiln_resident_count(context, a, done, err);
}

static kiln_status draw_band_on_device(void *context, const kiln_band *b, bool *done,
                                       kiln_error *err)
{
    return kiln_resident_raster(context, &b->a, done, err);
}

/* Draws a drawing on its device, or gives up. */
static kiln_status draw_drawing_there(const job *j, kiln_drawing *d, const kiln_raster_args *a,
                                      bool *done, kiln_error *err)
{
    kiln_bands_listed listed = {0};
    const kiln_band_way way = {.count = count_on_device, .draw = draw_band_on_device, .context = d};
    KILN_TRY(kiln_bands_draw(&way, a, &listed, done, err));
    tell_listed(j, d, &listed);
    return KILN_OK;
}

/* ---- the ways -------------------------------------------------------------------------------- */
static bool has_store(const job *j) { return j->scene->store && j->scene->header; }
static bool may_use_host(const job *j) { return j->ways & KILN_DRAW_HOST; }
static uint64_t slab_capacity(const job *j)
{
    return j->want->capacity > 0 ? j->want->capacity : j->out->device_capacity;
}

static bool can_pass(const job *j) { return has_store(j) && !j->want->sums; }
static bool can_use_device(const job *j)
{
    return has_store(j) && (may_use_host(j) || !j->want->sums);
}
static bool can_cut(const job *j) { return slab_capacity(j) > 0; }
static bool can_always(const job *j)
{
    (void)j;
    return true;
}

static uint64_t no_ram(const job *j)
{
    (void)j;
    return 0;
}

static uint64_t slabs_ram(const job *j)
{
    kiln_draw_size size = *j->want->size;
    size.visible = slab_capacity(j);
    return kiln_draw_slabs_bytes(&size, j->scene->view, j->scene->n_chunks);
}

static uint64_t host_ram(const job *j)
{
    const kiln_draw_size *size = j->want->size;
    const uint64_t collecting = kiln_draw_collect_bytes(size), kept = kiln_draw_kept_bytes(size);
    const uint64_t drawing = kept + kiln_draw_picture_bytes(size, j->scene->view);
    return collecting > drawing ? collecting : drawing;
}

static kiln_status draw_in_a_pass(const job *j, bool *done, kiln_error *err)
{
    const kiln_draw_outputs floats = {.rgba = j->want->rgba, .depth = j->want->depth};
    const kiln_draw_outputs *to = j->want->single_pass ? j->want->single_pass : &floats;
    const kiln_raster_args a = whole_picture(j, to->rgba, to->depth);
    return kiln_pass_draw(j->scene, &a, to, j->out, done, err);
}

static kiln_status draw_on_device(const job *j, bool *done, kiln_error *err)
{
    const bool alone = !may_use_host(j);
    kiln_raster_args a;
    kiln_drawing d = {0};
    if (alone) KILN_TRY(place_picture(j, &a, err));
    KILN_TRY(kiln_resident_collect(j->scene, &d, done, err));
    if (*done) {
        const kiln_status st =
            alone ? draw_drawing_there(j, &d, &a, done, err) : draw_drawing(j, &d, err);
        kiln_drawing_release(&d);
        KILN_TRY(st);
    }
    if (*done || (!alone && !(j->ways & KILN_DRAW_SLABS))) return KILN_OK;
    return kiln_resident_slab_capacity(j->scene, &j->out->device_capacity, err);
}

static kiln_status draw_in_slabs(const job *j, bool *done, kiln_error *err)
{
    kiln_raster_args a;
    *done = true;
    if (j->want->sums)
        return kiln_slabs_weigh(j->runner, j->scene, slab_capacity(j), j->want, j->out, err);
    KILN_TRY(place_picture(j, &a, err));
    return kiln_slabs_draw(j->runner, j->scene, slab_capacity(j), &a, j->out, err);
}

static kiln_status draw_through_host(const job *j, bool *done, kiln_error *err)
{
    kiln_drawing d = {0};
    *done = true;
    KILN_TRY(kiln_host_collect(j->runner, j->scene, &d, err));
    const kiln_status st = draw_drawing(j, &d, err);
    kiln_drawing_release(&d);
    return st;
}

static const struct {
    kiln_draw_way way;
    bool (*can)(const job *j);
    uint64_t (*ram)(const job *j); /* host memory, if want->size is known */
    kiln_status (*draw)(const job *j, bool *done, kiln_error *err);
} ways[] = {
    {KILN_DRAW_SINGLE_PASS, can_pass, no_ram, draw_in_a_pass},
    {KILN_DRAW_DEVICE, can_use_device, no_ram, draw_on_device},
    {KILN_DRAW_SLABS, can_cut, slabs_ram, draw_in_slabs},
    {KILN_DRAW_HOST, can_always, host_ram, draw_through_host},
};
enum { WAYS = sizeof ways / sizeof *ways };

/* The last way that is allowed has the memory that it needs, or the caller would not allow it. */
static bool has_ram(const job *j, unsigned i)
{
    bool last = true;
    for (unsigned k = i + 1; k < WAYS; k++) last = last && !(j->ways & ways[k].way);
    return last || !j->want->size || ways[i].ram(j) <= j->want->ram;
}

kiln_status kiln_draw(kiln_runner *r, const kiln_draw_scene *s, const kiln_draw_want *want,
                      kiln_draw_stats *out, kiln_error *err)
{
    enum { USUAL = KILN_DRAW_SINGLE_PASS | KILN_DRAW_DEVICE | KILN_DRAW_HOST };
    kiln_draw_stats own;
    const job j = {r, s, want, want->ways ? want->ways : USUAL, out ? out : &own};
    bool done = false;
    *j.out = (kiln_draw_stats){0};
    for (unsigned i = 0; i < WAYS && !done; i++) {
        if (!(j.ways & ways[i].way) || !ways[i].can(&j) || !has_ram(&j, i)) continue;
        *j.out = (kiln_draw_stats){.device_capacity = j.out->device_capacity};
        KILN_TRY(ways[i].draw(&j, &done, err));
        if (done) j.out->way = ways[i].way;
    }
    return KILN_OK;
}

kiln_status kiln_draw_picture(kiln_runner *r, const kiln_draw_scene *s, kiln_drawing *d,
                              const kiln_draw_want *want, kiln_draw_stats *out, kiln_error *err)
{
    kiln_draw_stats own;
    const job j = {r, s, want, KILN_DRAW_HOST, out ? out : &own};
    *j.out = (kiln_draw_stats){.way = KILN_DRAW_HOST};
    return draw_drawing(&j, d, err);
}
