/* render_units -- the unit of kiln-render, which a worker computes: a camera's picture, its files,
 * and its distance from the photo.
 */
#ifndef KILN_STAGES_RENDER_UNITS_H
#define KILN_STAGES_RENDER_UNITS_H

#include "base/file.h"
#include "stages/frame/frame.h"
#include "stages/image/image.h"
#include "stages/render/encoding.h"
#include "stages/render/video_frame.h"

#include <stdio.h>

/* Values of --format in addition to kiln_picture_format. none: the picture is drawn and hashed, and
 * no file is written. y4m and raw: all pictures are one stream; that of each is none then. */
enum { KILN_RENDER_NO_FILE = KILN_N_PICTURE_FORMATS, KILN_RENDER_Y4M, KILN_RENDER_RAW };

/* Values of --exposure. Of a unit: what is done with its matrix. */
typedef enum { KILN_EXPOSURE_COMPARE, KILN_EXPOSURE_ON, KILN_EXPOSURE_OFF } kiln_exposure_use;
#define KILN_EXPOSURE_USES "compare|on|off"

/* A part of a picture, in pixels from its upper left corner. */
typedef struct {
    uint32_t width, height, x, y;
} kiln_render_crop;

/* The payload of a unit. */
typedef struct {
    kiln_view_request request;
    /* If set, the unit is kiln_frame_count instead of a picture: memory is tight, so Gaussians are
     * counted before the picture's unit is handed out. */
    bool count_only;
    uint64_t ram;        /* kiln_unit.ram */
    uint64_t band_pairs; /* pairs of a band for which `ram` has room */
    /* 0: `ram` has room for all visible Gaussians. Else for slabs of so many */
    uint64_t slab_capacity;
    /* If above 0, the picture is drawn in the memory of the worker's GPU, which takes so much of
     * `ram`. If the GPU refuses it, the worker counts its Gaussians and draws it in slabs, for
     * which `ram` has room. slab_capacity is 0. */
    uint64_t device_ram;
    kiln_render_encoding encoding;
    kiln_drawn_name drawn;
    char camera[1025];   /* name, by which its tile table is found */
    kiln_hash table_key; /* a stored table is used if it has this key */
    double background[3];
    char photo[KILN_PATH_MAX];        /* path of the photo to compare with; "": none */
    kiln_file_info photo_file;        /* the photo as import hashed it; size 0: not known */
    kiln_hash photo_hash;             /* of the photo as import hashed it */
    char mask[KILN_PATH_MAX];         /* of the photo; "": none */
    kiln_file_info mask_file;         /* as photo_file */
    kiln_hash mask_hash;              /* as photo_hash */
    uint32_t mask_width, mask_height; /* of its file, which `ram` has room for */
    /* of the photo; width 0: it is a pinhole's, compared as it is */
    kiln_lens lens;
    /* the camera's: what the photo is undistorted to, if it has a lens */
    kiln_pinhole pinhole;
    uint32_t undistort_filter; /* kiln_undistort_filter */
    /* kiln_exposure_use: the picture is compared, or is, as exposure_matrix has it (exposure.h) */
    uint32_t exposure;
    double exposure_matrix[12];
    bool may_expose;    /* `ram` has room for a copy to compare */
    bool exposure_lost; /* the matrix is not known, so that the photo is not compared */
    /* only what the photo shows where nothing is drawn is wanted, and nothing where it has no
     * white */
    bool look_only;
    bool right_half;             /* only this of the photo is compared */
    char picture[KILN_PATH_MAX]; /* absolute path of the file to write; "": none */
    char depth[KILN_PATH_MAX];   /* the same for the depth */
    uint32_t format;             /* kiln_picture_format of the picture, or KILN_RENDER_NO_FILE */
    bool depth_colours;          /* the depth is a PNG in colours (depth.h) */
    bool alpha;                  /* a PNG is RGBA instead of RGB */
    bool fast;                   /* fast, as in raster.h */
    /* a fast picture is also drawn exactly, to measure the distance between the two */
    bool measured;
    /* the view is also drawn in full, to measure the distance between the two */
    bool against_full;
    /* its file is `picture` with "full" in the place of "level", which stands there */
    uint32_t full_at;
    /* The worker counts the picture's Gaussians, then draws it in slabs, for which `ram` has room.
     * device_ram and slab_capacity are 0.
     */
    bool count_first;
    /* what is kept of the picture, and of its depth, once it is drawn; width 0: all of it */
    kiln_render_crop crop;
    /* What stood there when the run began: of `picture`, of `depth`, of the full picture. */
    kiln_product_seen picture_seen, depth_seen, full_seen;
    /* of a video, in which the picture is one; kind KILN_VIDEO_NONE: in none */
    kiln_video_frame frame;
} kiln_render_unit;

/* Return the size that the photo must have. */
static inline uint32_t kiln_render_photo_width(const kiln_render_unit *u)
{
    return u->lens.width > 0 ? u->lens.width : u->request.view.width;
}

static inline uint32_t kiln_render_photo_height(const kiln_render_unit *u)
{
    return u->lens.width > 0 ? u->lens.height : u->request.view.height;
}

/* Says whether another picture of the view is drawn, to be compared. */
static inline bool kiln_render_is_compared(const kiln_render_unit *u)
{
    return u->measured || u->against_full;
}

/* The file of the full picture; "" where none is written. out: KILN_PATH_MAX bytes. */
static inline void kiln_render_full_path(const kiln_render_unit *u, char *out)
{
    const char *behind = u->picture[0] ? u->picture + u->full_at + sizeof "level" - 1 : "";
    snprintf(out, KILN_PATH_MAX, "%.*s%s%s", (int)(behind[0] ? u->full_at : 0), u->picture,
             behind[0] ? "full" : "", behind);
}

/* Returns the bytes of the picture, its depth if it is written, and the picture that it is compared
 * with. */
static inline uint64_t kiln_render_picture_bytes(const kiln_render_unit *u)
{
    const uint64_t floats = 4 + (u->depth[0] != 0) + (kiln_render_is_compared(u) ? 4 : 0);
    return floats * sizeof(float) * u->request.view.width * u->request.view.height;
}

/* The `unit` of the stage. Output: "pixels", the 16 bytes of kiln_pixels_hash.
 * Counters:
 *   visible, pairs
 *   slabs                  absent if the picture was not drawn in slabs
 *   psnr, ssim             absent without a photo
 *   outside                outside.h; only if a photo without alpha was measured
 *   note, photo, mask      of a damaged photo or mask: what is wrong, and the kiln_photo_state of
 *                          both
 *   exposure_lost          true if the photo was not compared for want of its exposure
 *   fast_db                of a fast picture that was measured: dB from the exact picture, or "inf"
 *   full_db                with against_full: dB from the full picture, or "inf"
 *   from_table             lists came from a stored table
 *   picture, depth         the written files (written.h)
 *   depth_step             scene units of a step of a depth's 16-bit PNG; absent with other files,
 *                          or if it is empty
 *   draw_s, encode_s       seconds to draw, and to write the files (absent without files)
 * Files are written under a temporary name first, and are complete before the unit is answered.
 * With a count_only payload the unit is kiln_frame_count. KILN_E_CAP, KILN_E_DEVICE, KILN_E_INPUT,
 * KILN_E_IO. */
kiln_status kiln_render_compute(kiln_worker *w, const char *name, const void *payload,
                                size_t payload_bytes, kiln_error *err);

#endif
