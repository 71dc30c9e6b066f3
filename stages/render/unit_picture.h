/* unit_picture -- the picture of a unit of kiln-render, while the worker makes it: what it is drawn
 * with and into. On the CPU by stored lists or band by band; on a GPU in a single pass, else of the
 * scene in its memory, else in slabs. */
#ifndef KILN_STAGES_RENDER_UNIT_PICTURE_H
#define KILN_STAGES_RENDER_UNIT_PICTURE_H

#include "stages/render/outside.h"
#include "stages/render/photo.h"
#include "stages/render/render_units.h"

typedef struct {
    uint32_t width, height;
    /* pictures that the worker encodes at a time (encoding.h); 0: each is encoded before the next
     * is drawn */
    uint32_t n_encoding;
    uint64_t encoding_ram; /* bytes that they take, without canvases */
    float background[3];
    kiln_canvas *canvas; /* taken from the worker's, to be given back; NULL: not taken yet */
    float *rgba;         /* its pixels; NULL: they stayed on the GPU */
    float *depth;        /* NULL: not asked for */
    /* What a GPU has made of the pixels: */
    unsigned char *rows; /* those of the PNG, in the canvas; NULL: the host makes them */
    /* that of a video, without its line, in the canvas; NULL: the host makes it */
    unsigned char *frame;
    /* of the picture's pieces (pixels.h); owned; NULL: the host makes them */
    unsigned char *hashes;
    uint64_t visible, pairs;
    uint32_t slabs; /* 0: not drawn in slabs */
    bool from_table;
    bool fast;
    double psnr, ssim;
    double fast_db, full_db; /* NAN: not measured */
    double draw_s, encode_s;
    double depth_step; /* scene units of a step of its depth's file; 0: none */
    kiln_outside outside;
    char damage[KILN_PHOTO_DAMAGE]; /* of the photo */
} kiln_unit_picture;

/* What a single pass copies to the host, besides hashes and depth. */
typedef enum {
    KILN_WANTED_FLOATS,
    KILN_WANTED_PNG_ROWS,
    KILN_WANTED_FRAME,
    KILN_WANTED_NOTHING
} kiln_wanted;
kiln_wanted kiln_unit_picture_wanted(const kiln_render_unit *u, const kiln_unit_picture *p);

/* Says whether it is drawn in the GPU's memory, because host memory has no room for its
 * Gaussians. */
bool kiln_unit_picture_on_device(const kiln_render_unit *u);
/* Draws it; p has size, background, n_encoding and whether it is fast, and the rest is 0. Pixels
 * are in p->rgba, or what is wanted of them in p's canvas. KILN_E_CAP: there is no memory for it,
 * and how much would do. */
kiln_status kiln_unit_picture_draw(kiln_worker *w, kiln_frame_state *s, const kiln_render_unit *u,
                                   kiln_unit_picture *p, kiln_error *err) KILN_MUST_CHECK;
/* Describes its file. */
kiln_picture_job kiln_unit_picture_job(const kiln_render_unit *u, const kiln_unit_picture *p);

/* Bytes of canvases where so many pictures are encoded at a time. If none is, the only canvas is a
 * part of u->ram: 0. */
uint64_t kiln_unit_picture_canvases(const kiln_render_unit *u, uint32_t n_encoding);
/* How the unit divides the worker's memory: `drawing` is what is taken to draw; the rest keeps
 * planes and decodes ahead. */
kiln_frame_share kiln_unit_picture_share(const kiln_render_unit *u, const kiln_unit_picture *p,
                                         uint64_t drawing);
/* Takes a canvas, if there is none yet. If there are as many as there may be, waits until a picture
 * is encoded. */
kiln_status kiln_unit_picture_take_canvas(kiln_worker *w, kiln_frame_state *s,
                                          const kiln_render_unit *u, kiln_unit_picture *p,
                                          kiln_error *err) KILN_MUST_CHECK;
void kiln_unit_picture_give_canvas(kiln_unit_picture *p);
void kiln_unit_picture_drop_hashes(kiln_unit_picture *p);

#endif
