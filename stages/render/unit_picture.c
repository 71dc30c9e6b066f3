/* unit_picture -- see the header. */
#include "stages/render/unit_picture.h"

#include "stages/render/lists.h"
#include "stages/render/picture_size.h"
#include "stages/render/pixels.h"

#include <stdlib.h>
#include <string.h>

bool kiln_unit_picture_on_device(const kiln_render_unit *u) { return u->device_ram > 0; }

uint64_t kiln_unit_picture_canvases(const kiln_render_unit *u, uint32_t n_encoding)
{
    return n_encoding > 0 ? (n_encoding + 1) * kiln_canvas_bytes(u->encoding.pixels) : 0;
}

kiln_frame_share kiln_unit_picture_share(const kiln_render_unit *u, const kiln_unit_picture *p,
                                         uint64_t drawing)
{
    return (kiln_frame_share){.ram = p->encoding_ram + drawing,
                              .largest = p->encoding_ram + u->encoding.drawing,
                              .canvases = kiln_unit_picture_canvases(u, p->n_encoding)};
}

kiln_status kiln_unit_picture_take_canvas(kiln_worker *w, kiln_frame_state *s,
                                          const kiln_render_unit *u, kiln_unit_picture *p,
                                          kiln_error *err)
{
    const uint64_t pixels = p->n_encoding > 0 ? u->encoding.pixels : (uint64_t)p->width * p->height;
    if (p->canvas) return KILN_OK;
    KILN_TRY(kiln_frame_canvas(w, s, pixels, p->n_encoding + 1, &p->canvas, err));
    p->rgba = kiln_canvas_pixels(p->canvas);
    return KILN_OK;
}

void kiln_unit_picture_give_canvas(kiln_unit_picture *p)
{
    kiln_canvas_give(p->canvas);
    p->canvas = NULL;
    p->rgba = NULL;
    p->rows = p->frame = NULL;
}

void kiln_unit_picture_drop_hashes(kiln_unit_picture *p)
{
    free(p->hashes);
    p->hashes = NULL;
}

kiln_picture_job kiln_unit_picture_job(const kiln_render_unit *u, const kiln_unit_picture *p)
{
    return (kiln_picture_job){
        .path = u->picture,
        .format = (kiln_picture_format)u->format,
        .width = p->width,
        .height = p->height,
        .step = 4,
        .channels = u->format == KILN_NPY || (u->alpha && u->format < KILN_JPEG) ? 4 : 3,
        .data = p->rgba,
        .over = p->background,
        .rows = p->rows};
}

/* Says whether the GPU hashes the picture: not if the host cuts a part of it out, or changes it. */
static bool is_hashed_there(const kiln_render_unit *u, const kiln_unit_picture *p)
{
    return u->crop.width == 0 && u->exposure != KILN_EXPOSURE_ON &&
           kiln_pixel_hashes_can((uint64_t)p->width * p->height);
}

/* Floats are compared with a photo or an exact picture, written as they are, or hashed if the GPU
 * cannot. */
kiln_wanted kiln_unit_picture_wanted(const kiln_render_unit *u, const kiln_unit_picture *p)
{
    const bool hashed = is_hashed_there(u, p);
    if (!hashed || u->photo[0] || kiln_render_is_compared(u)) return KILN_WANTED_FLOATS;
    if (u->format != KILN_RENDER_NO_FILE && !kiln_picture_is_png((kiln_picture_format)u->format))
        return KILN_WANTED_FLOATS;
    if (u->frame.kind != KILN_VIDEO_NONE) return KILN_WANTED_FRAME;
    return u->format == KILN_RENDER_NO_FILE ? KILN_WANTED_NOTHING : KILN_WANTED_PNG_ROWS;
}

/* ---- drawn ----------------------------------------------------------------------------------- */
typedef struct {
    kiln_worker *w;
    kiln_frame_state *s;
    const kiln_render_unit *u;
    kiln_unit_picture *p;
    kiln_lists lists; /* its stored table */
} drawing;

/* A kiln_draw_place_fn. */
static kiln_status place(void *context, float **rgba, kiln_error *err)
{
    const drawing *d = context;
    KILN_TRY(kiln_unit_picture_take_canvas(d->w, d->s, d->u, d->p, err));
    *rgba = d->p->rgba;
    return KILN_OK;
}

/* What a unit wants, and what the want points to. */
typedef struct {
    kiln_draw_want want;
    kiln_draw_lists lists;
    kiln_draw_size size;
    kiln_draw_outputs to;
    kiln_png_rows_args png;
    kiln_pixel_bytes_args frame;
} wanted;

/* A GPU can draw in a single pass if it has drawn such a picture before. If the pass fails, a
 * drawing is made while the canvas exists. The unit's memory has room for both only if the worker
 * encodes beside drawing, or if no drawing comes to host memory. */
static bool may_pass(const drawing *d)
{
    return !d->lists.table && (d->p->n_encoding > 0 || kiln_unit_picture_on_device(d->u)) &&
           d->u->slab_capacity == 0;
}

/* The GPU hashes the picture and copies only what the host needs of it, to the canvas. There is
 * none if that is nothing. */
static kiln_status want_single_pass(const drawing *d, wanted *x, kiln_error *err)
{
    kiln_unit_picture *p = d->p;
    const kiln_render_unit *u = d->u;
    const uint64_t pixels = (uint64_t)p->width * p->height;
    const kiln_wanted what = kiln_unit_picture_wanted(u, p);
    if (is_hashed_there(u, p))
        KILN_TRY(KILN_ALLOC_UNSET(&p->hashes, KILN_PIXEL_HASH_BYTES * kiln_pixel_pieces(pixels),
                                  "hashes of a picture", err));
    const kiln_picture_job of = kiln_unit_picture_job(u, p);
    x->png = kiln_picture_png_rows(&of);
    x->frame = kiln_video_frame_args(u->frame.kind, p->width, u->frame.width, u->frame.height);
    x->png.rows = x->frame.bytes = (unsigned char *)p->rgba;
    x->to = (kiln_draw_outputs){.rgba = what == KILN_WANTED_FLOATS ? p->rgba : NULL,
                                .depth = p->depth,
                                .hashes = p->hashes,
                                .png = what == KILN_WANTED_PNG_ROWS ? &x->png : NULL,
                                .bytes = what == KILN_WANTED_FRAME ? &x->frame : NULL};
    x->want.single_pass = &x->to;
    x->want.ways |= KILN_DRAW_SINGLE_PASS;
    return KILN_OK;
}

/* Pairs of a band for which the unit has memory, or could have: 4 arrays of ranks, of a part's
 * ranks, and of their code. A single tile row can exceed the size of a band, and the plan cannot
 * know this before pairs are counted. */
static uint64_t most_band_pairs(const drawing *d)
{
    const uint64_t may = kiln_worker_ram(d->w), spare = may > d->u->ram ? may - d->u->ram : 0;
    const uint64_t most = d->u->band_pairs + spare / (4 * sizeof(uint32_t));
    return most > 0 ? most : 1;
}

static kiln_status say_band_memory(const drawing *d, uint64_t pairs, kiln_error *err)
{
    char lists[32], more[32];
    const uint64_t need = d->u->ram + 4 * sizeof(uint32_t) * (pairs - d->u->band_pairs),
                   may = kiln_worker_ram(d->w);
    return kiln_fail(err, KILN_E_CAP,
                     "a band of '%s' lists %llu pairs, which take %s of memory; raise --ram by %s",
                     d->u->camera, (unsigned long long)pairs,
                     kiln_size_text(sizeof(uint32_t) * pairs, lists),
                     kiln_size_text(need - may, more));
}

/* A drawing, on the device where it fits; else slabs there, if what they take is within what the
 * unit has for a drawing; else a drawing in host memory. */
static kiln_status want_drawing(drawing *d, wanted *x, kiln_error *err)
{
    const uint64_t chunk = kiln_frame_chunk_bytes(kiln_frame_layer(d->s), true),
                   picture = kiln_render_picture_bytes(d->u);
    KILN_TRY(kiln_frame_state_bound(d->s, &d->u->request, &x->size, err));
    x->want.ways |= KILN_DRAW_DEVICE | KILN_DRAW_SLABS | KILN_DRAW_HOST;
    x->want.size = &x->size;
    x->want.ram = d->u->ram > chunk + picture ? d->u->ram - chunk - picture : 0;
    x->want.most_band_pairs = most_band_pairs(d);
    x->lists = kiln_lists_of(&d->lists);
    if (d->lists.table) x->want.lists = &x->lists;
    return KILN_OK;
}

static kiln_status want_of(drawing *d, wanted *x, kiln_error *err)
{
    *x = (wanted){.want = {.background = d->p->background,
                           .rgba = d->p->rgba,
                           .depth = d->p->depth,
                           .place = place,
                           .place_context = d,
                           .capacity = d->u->slab_capacity}};
    if (may_pass(d)) KILN_TRY(want_single_pass(d, x, err));
    if (d->u->count_first) return KILN_OK;
    if (!kiln_unit_picture_on_device(d->u) && d->u->slab_capacity == 0)
        return want_drawing(d, x, err);
    x->want.ways |= d->u->slab_capacity > 0 ? KILN_DRAW_SLABS : KILN_DRAW_DEVICE;
    return KILN_OK;
}

static void take_stats(const drawing *d, const wanted *x, const kiln_draw_stats *stats)
{
    kiln_unit_picture *p = d->p;
    p->visible = stats->visible;
    p->pairs = stats->pairs;
    p->slabs = stats->slabs;
    p->from_table = d->lists.starts != NULL;
    if (stats->way != KILN_DRAW_SINGLE_PASS) return;
    p->rows = x->to.png ? x->png.rows : NULL;
    p->frame = x->to.bytes ? x->frame.bytes : NULL;
    p->rgba = x->to.rgba;
}

/* ---- where host memory has no room for the Gaussians ----------------------------------------- */
/* Sets how much of the worker's memory drawing takes. */
static void share(const drawing *d, uint64_t taken)
{
    const kiln_frame_share of = kiln_unit_picture_share(d->u, d->p, taken);
    kiln_frame_state_share(d->w, d->s, &of);
}

/* Finds slabs for a view that nobody has counted, or that the GPU has refused. device_capacity: of
 * its slabs, 0: none. They take at most half of the memory if there is room for any, so that their
 * chunks are decoded on several threads. */
static kiln_status find_capacity(const drawing *d, uint64_t device_capacity, uint64_t *row_pairs,
                                 uint64_t *capacity, kiln_error *err)
{
    const kiln_render_unit *u = d->u;
    const kiln_layer *layer = kiln_frame_layer(d->s);
    const uint64_t others = d->p->encoding_ram + kiln_unit_picture_canvases(u, d->p->n_encoding),
                   all = kiln_worker_ram(d->w);
    const uint64_t may = all > others ? all - others : 0;
    kiln_draw_size size;
    kiln_draw_tally t = {.row_pairs = row_pairs};
    KILN_TRY(kiln_frame_state_bound(d->s, &u->request, &size, err));
    KILN_TRY(kiln_frame_tally(d->w, d->s, &u->request, &t, err));
    size.visible = t.visible;
    kiln_draw_size_bands(&size, &u->request.view, row_pairs);
    size.band_pairs = kiln_render_slab_band(size.band_pairs, t.pairs);
    const uint64_t least = kiln_render_slabs_ram(layer, u, &size, kiln_render_smallest_slab(&size));
    *capacity = kiln_render_largest_slab(layer, u, &size, least <= may / 2 ? may / 2 : may);
    if (device_capacity > 0 && device_capacity < *capacity) *capacity = device_capacity;
    const uint64_t ram = kiln_render_slabs_ram(layer, u, &size, *capacity);
    /* a tile row with many pairs */
    KILN_TRY(kiln_worker_need_ram(d->w, others + ram, 0, u->camera, err));
    share(d, ram);
    return KILN_OK;
}

/* In slabs, once its Gaussians are counted. A stored table is not used, because its lists name
 * Gaussians of the whole view. */
static kiln_status draw_uncounted(drawing *d, uint64_t device_capacity, wanted *x, kiln_error *err)
{
    kiln_draw_stats stats;
    uint64_t *row_pairs;
    x->want.ways = KILN_DRAW_SLABS;
    KILN_TRY(kiln_unit_picture_take_canvas(d->w, d->s, d->u, d->p, err));
    share(d, d->u->ram);
    KILN_TRY(
        KILN_ALLOC(&row_pairs, kiln_view_tiles_y(&d->u->request.view), "pairs of tile rows", err));
    kiln_status st = find_capacity(d, device_capacity, row_pairs, &x->want.capacity, err);
    if (st == KILN_OK) st = kiln_frame_draw(d->w, d->s, &d->u->request, &x->want, &stats, err);
    if (st == KILN_OK) take_stats(d, x, &stats);
    free(row_pairs);
    return st;
}

static kiln_status draw_wanted(drawing *d, kiln_error *err)
{
    kiln_draw_stats stats = {0};
    wanted x;
    KILN_TRY(want_of(d, &x, err));
    const kiln_status st =
        x.want.ways ? kiln_frame_draw(d->w, d->s, &d->u->request, &x.want, &stats, err) : KILN_OK;
    if (st == KILN_E_CAP && x.want.most_band_pairs > 0 && stats.band_pairs > x.want.most_band_pairs)
        return say_band_memory(d, stats.band_pairs, err);
    KILN_TRY(st);
    if (stats.way != KILN_DRAW_SINGLE_PASS) kiln_unit_picture_drop_hashes(d->p);
    if (!stats.way) return draw_uncounted(d, stats.device_capacity, &x, err);
    take_stats(d, &x, &stats);
    return KILN_OK;
}

/* Adds advice to a failure of a kernel, which knows no options, unless its sentence already names
 * one. */
static void advise_fast(kiln_error *err)
{
    static const char advice[] = "; give --vram more, or draw with --no-fast";
    const int capacity = (int)(sizeof err->msg - sizeof advice);
    if (err && !strstr(err->msg, "--"))
        (void)kiln_fail(err, err->status, "%.*s%s", capacity, err->msg, advice);
}

/* A stored table saves work on the CPU alone: a GPU makes the lists in less time than a thread of
 * the CPU decodes them. Nor is there one for a fast picture, or for slabs. */
static bool may_use_table(kiln_worker *w, const kiln_render_unit *u, const kiln_unit_picture *p)
{
    return !p->fast && !u->count_first && kiln_runner_exec(kiln_worker_runner(w)).device < 0;
}

kiln_status kiln_unit_picture_draw(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u,
                                   kiln_unit_picture *p, kiln_error *err)
{
    drawing d = {.w = w, .s = s, .u = u, .p = p};
    kiln_status st = KILN_OK;
    kiln_frame_set_fast(s, p->fast);
    if (may_use_table(w, u, p))
        KILN_GO(kiln_lists_find(w, &u->request, u->camera, u->table_key, &d.lists, err));
    KILN_GO(draw_wanted(&d, err));
done:
    if (st == KILN_E_CAP && p->fast) advise_fast(err);
    kiln_lists_release(&d.lists);
    return st;
}
