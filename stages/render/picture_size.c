/* picture_size -- see picture_size.h. */
#include "stages/render/picture_size.h"

#include "base/minmax.h"
#include "stages/render/depth.h"
#include "stages/render/photo.h"
#include "stages/tiles/rank_code.h"

enum { SLABS_MOST = 64 }; /* a chunk is read once for each slab that it reaches into */

static uint64_t pixels_of(const kiln_render_unit *u)
{
    return (uint64_t)u->request.view.width * u->request.view.height;
}

uint64_t kiln_render_writing_bytes(const kiln_render_unit *u)
{
    const kiln_picture_job largest = {
        .format = u->format >= KILN_JPEG ? (kiln_picture_format)u->format : KILN_PNG16,
        .width = u->request.view.width,
        .height = u->request.view.height,
        .step = 4,
        .channels = 4};
    if (u->frame.kind != KILN_VIDEO_NONE)
        return kiln_video_frame_bytes(u->frame.kind, u->frame.width, u->frame.height);
    return u->format == KILN_RENDER_NO_FILE ? 0 : kiln_picture_write_bytes(&largest);
}

static uint64_t comparing(const kiln_render_unit *u)
{
    enum { PHOTO = 16 + 12, RGB = 12, MASK = 1, COMPARING = 8 << 20 };
    const uint64_t of_photo = (uint64_t)kiln_render_photo_width(u) * kiln_render_photo_height(u);
    const uint64_t mask = u->mask[0] ? (uint64_t)u->mask_width * u->mask_height : 0;
    const uint64_t reading = PHOTO * kiln_max_u64(of_photo, mask) + (mask ? MASK * of_photo : 0);
    const uint64_t copies =
        (u->may_expose ? RGB * pixels_of(u) : 0) + (u->right_half ? MASK * pixels_of(u) : 0);
    const kiln_undistort_args warp = kiln_photo_undistortion(u);
    if (u->lens.width == 0) return reading + copies + COMPARING;
    return kiln_max_u64(reading,
                        (RGB + MASK) * (of_photo + pixels_of(u)) + kiln_undistort_bytes(&warp)) +
           copies + COMPARING;
}

/* The picture with its depth, and the largest of three:
 *   drawing      lists; a band of a stored table, its code as read and as decoded; the picture that
 *                it is compared with
 *   comparing    the photo as read and over the background, its mask, and 64 KiB a thread. A mask
 *                is read before its photo. Or the photo over the background with its mask, and
 *                undistorted; the picture as the photo was exposed
 *   writing      the files */
uint64_t kiln_render_beside_frame(const kiln_render_unit *u, const kiln_draw_size *size)
{
    enum { RGBA = 16, DEPTH = 4 };
    const uint64_t pixels = pixels_of(u);
    const uint64_t code =
        2 * kiln_ranks_code_most(size->band_pairs, size->band_tiles, size->visible);
    const uint64_t other = kiln_render_is_compared(u) ? RGBA * pixels : 0;
    const uint64_t drawing = kiln_draw_picture_bytes(size, &u->request.view) + code + other;
    const uint64_t writing = kiln_render_writing_bytes(u) + (u->against_full ? other : 0);
    const uint64_t photo = u->photo[0] ? comparing(u) : 0;
    return RGBA * pixels +
           (u->depth[0] ? DEPTH * pixels + kiln_depth_bytes(pixels, u->depth_colours) : 0) +
           kiln_max_u64(drawing, kiln_max_u64(photo, writing));
}

uint64_t kiln_render_device_ram(const kiln_layer *layer, const kiln_render_unit *u)
{
    /* of each chunk: kiln_draw_chunk_header, and what the store remembers of its planes */
    enum { HEADER = 128 };
    const kiln_draw_size none = {0};
    return kiln_frame_chunk_bytes(layer, true) + (uint64_t)HEADER * layer->n_chunks +
           kiln_render_beside_frame(u, &none);
}

/* Photos are compared and files written after the last slab. */
uint64_t kiln_render_slabs_ram(const kiln_layer *layer, const kiln_render_unit *u,
                               const kiln_draw_size *size, uint64_t capacity)
{
    const kiln_view *view = &u->request.view;
    const kiln_draw_size none = {0};
    kiln_draw_size slab = *size;
    slab.visible = capacity;
    slab.band_tiles = (uint64_t)kiln_view_tiles_x(view) * kiln_view_tiles_y(view);
    return kiln_max_u64(
        kiln_frame_slabs_ram(layer, &u->request, &slab, kiln_render_picture_bytes(u)),
        kiln_render_beside_frame(u, &none));
}

uint64_t kiln_render_smallest_slab(const kiln_draw_size *size)
{
    return size->visible / SLABS_MOST + 1;
}

uint64_t kiln_render_largest_slab(const kiln_layer *layer, const kiln_render_unit *u,
                                  const kiln_draw_size *size, uint64_t may)
{
    uint64_t low = kiln_render_smallest_slab(size), high = size->visible;
    while (high > low + 1) {
        const uint64_t middle = low + (high - low) / 2;
        *(kiln_render_slabs_ram(layer, u, size, middle) <= may ? &low : &high) = middle;
    }
    return low;
}

/* A band of a slab can have more rows than one of the frame. */
uint64_t kiln_render_slab_band(uint64_t band_pairs, uint64_t pairs)
{
    return kiln_max_u64(band_pairs, kiln_min_u64(pairs, KILN_BAND_PAIRS));
}
