/* plain -- draws pictures for languages that call C without its headers, such as Python through
 * ctypes: numbers, pointers and text alone, no structure. Callers in C use draw.h.
 * python/splatkiln/drawing.py is such a caller.
 *
 *   kiln_plain_new       a painter, on a device
 *   kiln_plain_scene     what it draws,
 *   kiln_plain_renderer  by whose arithmetic,
 *   kiln_plain_camera    and from where: in any order, each again whenever it changes
 *   kiln_plain_draw      a picture
 *   kiln_plain_message   what was wrong
 *   kiln_plain_free
 *
 * Functions that return an int return 0, or the exit code of a program that fails so: 2 an unknown
 * profile, a missing pointer or an impossible size, 3 planes that cannot be drawn, 5 out of memory,
 * 6 the device.
 *
 * Threads: any; a painter is used by one at a time. A GPU keeps the planes of a scene from its
 * first picture on, as far as four fifths of its free memory hold them; the rest is copied for each
 * picture.
 */
#ifndef KILN_KERNELS_DRAW_PLAIN_H
#define KILN_KERNELS_DRAW_PLAIN_H

#include "base/extern_c.h"

#include <stdint.h>

KILN_C_BEGIN

/* pointers of a chunk: means, log_scales, quats, opacity_logits, sh0, shN, source_row */
enum { KILN_PLAIN_PLANES = 7 };

typedef struct kiln_plain kiln_plain;
/* device: -1 the CPU, else the number of a CUDA device, which is opened for the first picture.
 * threads: of the CPU, 0 counts as 1. NULL: out of memory. */
kiln_plain *kiln_plain_new(int device, unsigned threads);
void kiln_plain_free(kiln_plain *p); /* NULL: does nothing */
/* The sentence of the last failure; "" if the last call has not failed. Valid until the next
 * call. */
const char *kiln_plain_message(const kiln_plain *p);

/* origin [3]: of the scene, planes are relative to it. rows [n_chunks], planes
 * [n_chunks][KILN_PLAIN_PLANES], as in a manifest: planar, not activated; shN may be NULL for
 * degree 0. Source rows order Gaussians of equal depth; each number once in a scene. Rows, pointers
 * and planes must stay until the last picture of them. */
int kiln_plain_scene(kiln_plain *p, const double *origin, uint32_t sh_degree, uint32_t n_chunks,
                     const uint64_t *rows, const void *const *planes);
/* profile: a name of profiles.def. near_m: the near plane in scene units, 0 or less: the profile's
 * own. */
int kiln_plain_renderer(kiln_plain *p, const char *profile, int antialiased, float near_m);
/* pose [12]: R row by row, then t: x_camera = R x_world + t. intrinsics [4]: fx, fy, cx, cy in
 * pixels; the centre of the first pixel is (0.5, 0.5). */
int kiln_plain_camera(kiln_plain *p, const double *pose, const double *intrinsics, uint32_t width,
                      uint32_t height);
/* Draws with the bits of kiln-render on the same kind of device. background [3]. rgba
 * [height][width][4], and depth [height][width] or NULL: out, as in raster.h. */
int kiln_plain_draw(kiln_plain *p, const float *background, float *rgba, float *depth);

KILN_C_END

#endif
