/* plain -- draws a picture for languages that call C without its headers, such as Python through ctypes: numbers, pointers and text
 * alone, no structure. Callers in C use draw.h. examples/python/splatkiln.py is such a caller.
 *
 * Threads: any; every call has a runner of its own. On a GPU each call therefore pays for a CUDA context and copies all planes.
 */
#ifndef KILN_KERNELS_DRAW_PLAIN_H
#define KILN_KERNELS_DRAW_PLAIN_H

#include "base/extern_c.h"

#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

enum { KILN_PLAIN_PLANES = 7 }; /* pointers of a chunk: means, log_scales, quats, opacity_logits, sh0, shN, source_row */

/* Draws one camera with the bits of kiln-render on the same kind of device.
 *
 *   device, threads   -1 the CPU, else the number of a CUDA device; CPU threads, 0 counts as 1
 *   profile, near_m   a name of profiles.def; near plane in scene units, 0 or less: the profile's own
 *   pose [12]         R row by row, then t: x_camera = R x_world + t
 *   origin [3]        the scene's: planes are relative to it
 *   intrinsics [4]    fx, fy, cx, cy in pixels; the centre of the first pixel is (0.5, 0.5)
 *   background [3]
 *   rows [n_chunks], planes [n_chunks][KILN_PLAIN_PLANES]   as in a manifest: planar, not activated. shN may be NULL for degree 0.
 *                     Source rows order Gaussians of equal depth; each number once in a scene
 *   rgba [height][width][4], depth [height][width] or NULL  out, as in raster.h
 *   message           out, or NULL: the sentence of a failure, cut at message_bytes; "" after success
 *
 * Returns 0 or the exit code of a program that fails so: 2 an unknown profile, a missing pointer or an impossible size, 3 planes
 * that cannot be drawn, 5 out of memory, 6 the device. */
int kiln_draw_plain(int device, unsigned threads, const char *profile, int antialiased, float near_m, const double *pose,
                    const double *origin, const double *intrinsics, uint32_t width, uint32_t height, const float *background,
                    uint32_t sh_degree, uint32_t n_chunks, const uint64_t *rows, const void *const *planes, float *rgba,
                    float *depth, char *message, size_t message_bytes);

KILN_C_END

#endif
