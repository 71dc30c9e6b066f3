/* render_units -- what a worker of kiln-render computes: one camera's picture, its files, and its distance to the photo. */
#ifndef KILN_STAGES_RENDER_UNITS_H
#define KILN_STAGES_RENDER_UNITS_H

#include "base/file.h"
#include "stages/frame/frame.h"
#include "stages/image/image.h"
#include "stages/render/encoding.h"

/* --format none beside kiln_picture_format: drawn and hashed, no file. */
enum { KILN_RENDER_NO_FILE = KILN_N_PICTURE_FORMATS };

typedef struct {
    kiln_view_request request;
    bool count_only;     /* kiln_frame_count instead of a picture: where memory is tight, before its unit is handed out */
    uint64_t ram;        /* kiln_unit.ram, which allows for ... */
    uint64_t band_pairs; /* ... lists of so many pairs */
    uint64_t slab_room;  /* not 0: ... and for slabs of so many Gaussians: all of them do not fit (kiln_frame_slabs) */
    kiln_render_encoding encoding;
    kiln_layer_kind layer_kind;
    kiln_hash layer;     /* its digest */
    char camera[1025];   /* name, to find its table */
    kiln_hash table_key; /* a stored table is used when it has this key */
    double background[3];
    char photo[KILN_PATH_MAX];   /* compared with when not "" */
    kiln_file_info photo_file;   /* as import hashed it, which the unit's key says; size 0: not known */
    kiln_hash photo_hash;        /* of that */
    char picture[KILN_PATH_MAX]; /* absolute path of the file to write; "" for none */
    char depth[KILN_PATH_MAX];   /* "" for none */
    uint32_t format;             /* kiln_picture_format of the picture, or KILN_RENDER_NO_FILE */
    bool alpha;                  /* RGBA instead of RGB in a PNG */
    bool fast;                   /* as in raster.h */
    bool measured;               /* drawn exactly, too: how far the fast picture is from that */
} kiln_render_unit;

/* Of the pictures that are there while one is drawn: with its depth, and the exact one that it is measured by. */
static inline uint64_t kiln_render_picture_bytes(const kiln_render_unit *u)
{
    const uint64_t floats = 4 + (u->depth[0] != 0) + (u->measured ? 4 : 0);
    return floats * sizeof(float) * u->request.view.width * u->request.view.height;
}

/* Outputs: "pixels" (the 16 bytes of kiln_pixels_hash). Counters: visible, pairs, slabs (absent when drawn at once), psnr, ssim
 * (absent without a photo), outside (outside.h; where a photo without alpha was measured), note and photo (what is wrong with a
 * photo that is damaged, and its kiln_photo_state), fast_db (of measured ones: dB from the exact picture, or "inf"), from_table;
 * picture, depth: the files as written (written.h); draw_s, and with files encode_s: seconds until the picture was there, and until
 * its files were. The files are written before the unit is handed in, each under a temporary name first. */
kiln_status kiln_render_compute(kiln_worker *w, const char *name, const void *payload, size_t payload_bytes, kiln_error *err);

#endif
