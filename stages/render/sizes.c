/* sizes -- the host memory of a picture's unit, before it is handed out. An upper bound counts every row of the chunks that the
 * camera may see. If that is more than a unit may take, the camera's Gaussians are counted, in fixed memory. */
#include "stages/render/render_plan.h"

#include "base/minmax.h"
#include "kernels/pixel_hashes/pixel_hashes.h"
#include "stages/engine/devices.h"
#include "stages/render/photo.h"
#include "stages/tiles/rank_code.h"

#include <stdlib.h>
#include <string.h>

enum { SLABS_MOST = 64 }; /* a chunk is read once for each slab that it reaches into */

/* Returns the bytes for writing the largest of the files, whatever its format. */
static uint64_t writing(const kiln_render_job *j)
{
    const kiln_picture_job largest = {
        .format = KILN_PNG16, .width = (uint32_t)j->camera->width, .height = (uint32_t)j->camera->height, .step = 4, .channels = 4};
    return j->payload.format == KILN_RENDER_NO_FILE ? 0 : kiln_picture_write_bytes(&largest);
}

static uint64_t comparing(const kiln_render_job *j, uint64_t pixels)
{
    enum { PHOTO = 16 + 12, RGB = 12, MASK = 1, COMPARING = 8 << 20 };
    const kiln_render_unit *u = &j->payload;
    const uint64_t of_photo = (uint64_t)kiln_render_photo_width(u) * kiln_render_photo_height(u);
    const uint64_t mask = u->mask[0] ? (uint64_t)u->mask_width * u->mask_height : 0;
    const uint64_t reading = PHOTO * kiln_max_u64(of_photo, mask) + (mask ? MASK * of_photo : 0);
    const kiln_undistort_args warp = kiln_photo_undistortion(u);
    if (u->lens.width == 0) return reading + COMPARING;
    return kiln_max_u64(reading, (RGB + MASK) * (of_photo + pixels) + kiln_undistort_bytes(&warp)) + COMPARING;
}

/* Returns the bytes beside the frame, once it is made: the picture with its depth, and the largest of three:
 *   drawing      lists; a band of a stored table, its code as read and as decoded; the exact picture if a fast one is measured
 *   comparing    the photo as read and over the background, its mask, and 64 KiB a thread. A mask is read before its photo. Or the
 *                photo over the background with its mask, and undistorted
 *   writing      the files */
static uint64_t beside_frame(const kiln_render_job *j, const kiln_draw_size *size)
{
    enum { RGBA = 16, DEPTH = 4 + 4 };
    const uint64_t pixels = (uint64_t)j->camera->width * j->camera->height;
    const uint64_t code = 2 * kiln_ranks_code_most(size->band_pairs, size->band_tiles, size->visible);
    const uint64_t exact = j->payload.measured ? RGBA * pixels : 0;
    const uint64_t drawing = kiln_draw_picture_bytes(size, &j->payload.request.view) + code + exact;
    const uint64_t photo = j->payload.photo[0] ? comparing(j, pixels) : 0;
    return (RGBA + (j->payload.depth[0] ? DEPTH : 0)) * pixels + kiln_max_u64(drawing, kiln_max_u64(photo, writing(j)));
}

/* Returns the bytes for a picture in slabs. Photos are compared and files written after the last slab. size: of the frame; its
 * band_pairs are those that a slab may have. */
static uint64_t slabs_ram(const kiln_render_plan *s, const kiln_render_job *j, const kiln_draw_size *size, uint64_t room)
{
    const kiln_view *view = &j->payload.request.view;
    const kiln_draw_size none = {0};
    kiln_draw_size slab = *size;
    slab.visible = room;
    slab.band_tiles = (uint64_t)kiln_view_tiles_x(view) * kiln_view_tiles_y(view);
    const uint64_t picture = kiln_render_picture_bytes(&j->payload);
    return kiln_max_u64(kiln_frame_slabs_ram(s->layer, &j->payload.request, &slab, picture), beside_frame(j, &none));
}

/* Returns the largest slabs for which `may` has room; if it has none, the smallest that are used. */
static uint64_t find_slab_room(const kiln_render_plan *s, const kiln_render_job *j, const kiln_draw_size *size, uint64_t may)
{
    uint64_t low = size->visible / SLABS_MOST + 1, high = size->visible;
    while (high > low + 1) {
        const uint64_t middle = low + (high - low) / 2;
        *(slabs_ram(s, j, size, middle) <= may ? &low : &high) = middle;
    }
    return low;
}

/* Returns the least memory that is enough for a camera that is not counted: for the whole picture, or in the smallest slabs. */
static uint64_t least_ram(const kiln_render_plan *s, uint32_t i, uint64_t whole)
{
    const kiln_render_job *j = &s->jobs[i];
    const kiln_draw_size size = kiln_frame_bound(&j->payload.request, s->layer);
    const uint64_t slabs = slabs_ram(s, j, &size, size.visible / SLABS_MOST + 1);
    return whole < slabs ? whole : slabs;
}

static void set_size(const kiln_render_plan *s, uint32_t i, const kiln_draw_size *size)
{
    kiln_render_job *j = &s->jobs[i];
    j->payload.band_pairs = size->band_pairs;
    j->payload.ram = kiln_frame_ram(s->layer, size, true, beside_frame(j, size));
    s->units[i].ram = j->payload.ram;
    s->units[i].cost = 4 * size->visible + (uint64_t)j->camera->width * j->camera->height;
}

/* ---- counting where memory is tight ----------------------------------------------------------------------------------- */
/* Sets the memory of a counted camera with `pairs` pairs. It is drawn in slabs if the whole is more than a unit may take, and slabs
 * take less. */
static void set_counted(kiln_run *r, const kiln_render_plan *s, uint32_t i, kiln_draw_size size, uint64_t pairs)
{
    kiln_render_job *j = &s->jobs[i];
    const uint64_t may = kiln_run_unit_ram(r);
    set_size(s, i, &size);
    if (s->units[i].ram <= may) return;
    size.band_pairs = kiln_max_u64(
        size.band_pairs, pairs < KILN_BAND_PAIRS ? pairs : KILN_BAND_PAIRS); /* a band can have more rows than in the frame */
    const uint64_t room = find_slab_room(s, j, &size, may), ram = slabs_ram(s, j, &size, room);
    if (ram >= s->units[i].ram) return;
    j->payload.slab_room = room;
    s->units[i].ram = j->payload.ram = ram;
}

static kiln_status take_count(kiln_run *r, const kiln_render_plan *s, uint32_t i, const kiln_unit *u, kiln_draw_size size,
                              kiln_error *err)
{
    kiln_frame_counts c;
    const kiln_view_request *request = &s->jobs[i].payload.request;
    KILN_TRY(kiln_frame_counts_read(r, u, request, s->layer, &c, err));
    size.visible = c.visible;
    kiln_draw_size_bands(&size, &request->view, c.row_pairs);
    set_counted(r, s, i, size, c.pairs);
    free(c.row_pairs);
    return KILN_OK;
}

static void make_count(kiln_run *r, const kiln_render_plan *s, uint32_t i, kiln_render_unit *payload, kiln_unit *u)
{
    const kiln_render_job *j = &s->jobs[i];
    kiln_hasher *h = kiln_run_key_bare(r, "count with boxes");
    kiln_key_hash(h, "table", j->payload.table_key);
    *payload = j->payload;
    payload->count_only = true;
    payload->ram = u->ram = kiln_frame_count_ram(s->layer, &payload->request);
    snprintf(u->name, sizeof u->name, "pairs of %.120s", j->camera->name);
    u->key = kiln_key_end(h);
    u->payload = payload;
    u->payload_bytes = sizeof *payload;
    u->cost = s->units[i].cost;
    u->ram_cache = kiln_frame_cache_ram(s->layer);
    u->ram_after = least_ram(s, i, s->units[i].ram);
    u->optional = u->planning = true;
    u->volatile_result = kiln_run_is_once(r);
}

/* A camera whose count was quarantined is tried with room for its planes alone. If it fails, no other camera does. */
static kiln_status count_tight(kiln_run *r, const kiln_render_plan *s, const uint32_t *tight, uint32_t n, bool in_parts,
                               kiln_error *err)
{
    kiln_status st;
    kiln_unit *units = NULL;
    kiln_render_unit *payloads = NULL;
    KILN_GO(KILN_ALLOC(&units, n, "units", err));
    KILN_GO(KILN_ALLOC(&payloads, n, "units", err));
    for (uint32_t k = 0; k < n; k++) make_count(r, s, tight[k], &payloads[k], &units[k]);
    KILN_GO(kiln_run_units(r, "counting visible Gaussians, because memory is tight", units, n, err));
    for (uint32_t k = 0; k < n; k++) {
        kiln_draw_size size = kiln_frame_bound(&payloads[k].request, s->layer);
        size.in_parts = in_parts;
        if (units[k].quarantined) {
            size.visible = 0;
            set_size(s, tight[k], &size);
            continue;
        }
        KILN_GO(take_count(r, s, tight[k], &units[k], size, err));
    }
done:
    if (units) kiln_units_release(units, n);
    free(payloads);
    free(units);
    return st;
}

static uint32_t count_due(const kiln_render_plan *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_jobs; i++) n += s->jobs[i].due;
    return n;
}

/* Says whether pictures are made in parts, because a GPU draws them. Looks for no device if nothing is to be drawn. */
static kiln_status may_be_in_parts(kiln_run *r, const kiln_render_plan *s, bool *may, kiln_error *err)
{
    const char *kind = "cpu";
    if (count_due(s) > 0) KILN_TRY(kiln_run_device_kind(r, &kind, err));
    *may = strcmp(kind, "cpu") != 0;
    return KILN_OK;
}

/* Sets how many pictures a GPU's worker encodes while it draws, if its memory has room for all. */
static kiln_status size_encoding(kiln_run *r, kiln_render_plan *s, bool on_gpu, kiln_error *err)
{
    enum { DEPTH = 4 + 4 };
    kiln_render_encoding t = {0};
    unsigned workers = 1;
    const uint32_t n_due = count_due(s);
    if (n_due > 0) KILN_TRY(kiln_run_worker_count(r, &workers, err));
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const kiln_render_job *j = &s->jobs[i];
        const uint64_t pixels = (uint64_t)j->camera->width * j->camera->height;
        t.drawing = kiln_max_u64(t.drawing, s->units[i].ram);
        const uint64_t hashes = KILN_PIXEL_HASH_BYTES * kiln_pixel_pieces(pixels);
        t.writing = kiln_max_u64(t.writing, writing(j) + (j->payload.depth[0] ? DEPTH * pixels : 0) + hashes);
        t.pixels = kiln_max_u64(t.pixels, pixels);
    }
    t.most = kiln_render_encoding_most(kiln_devices_threads(kiln_common_values.threads) / workers, n_due / workers);
    const uint64_t cache = kiln_frame_cache_ram(s->layer) + (on_gpu && n_due > 0 ? kiln_render_encoding_bytes(&t) : 0);
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        s->jobs[i].payload.encoding = t;
        s->units[i].ram_cache = cache;
    }
    return KILN_OK;
}

kiln_status kiln_render_plan_size(kiln_run *r, kiln_render_plan *s, kiln_error *err)
{
    bool in_parts;
    kiln_status st = KILN_OK;
    uint32_t *tight, n = 0;
    const uint64_t may = kiln_run_unit_ram(r);
    KILN_TRY(may_be_in_parts(r, s, &in_parts, err));
    KILN_TRY(KILN_ALLOC(&tight, s->n_jobs, "cameras", err));
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const kiln_render_job *j = &s->jobs[i];
        kiln_draw_size size = kiln_frame_bound(&j->payload.request, s->layer);
        size.in_parts = in_parts;
        set_size(s, i, &size);
        if (j->due && s->units[i].ram > may) tight[n++] = i;
    }
    if (n > 0) st = count_tight(r, s, tight, n, in_parts, err);
    if (st == KILN_OK) st = size_encoding(r, s, in_parts, err);
    free(tight);
    return st;
}
