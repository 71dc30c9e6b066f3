/* glb_rows -- see the header. Every loop goes over few rows at a time, so that what it writes with
 * gaps is still in the cache when the next component fills them. */
#include "stages/formats/gltf/glb_rows.h"

#include "base/harmonics.h"
#include "base/minmax.h"
#include "kernels/math/real64.h"
#include "stages/formats/gltf/glb_layout.h"
#include "stages/formats/turn.h"

#include <stddef.h>

enum { TILE_ROWS = 1024, LEVELS = 4095 };

/* IEC 61966-2-1 */
static double linear_of(double c)
{
    return c <= 0.04045 ? c / 12.92 : kiln_exp_f64(2.4 * kiln_log_f64((c + 0.055) / 1.055));
}

void kiln_glb_tables_make(const int sign[3], kiln_glb_tables *t)
{
    int quat[4], sh[24];
    kiln_turn_signs(sign, quat, sh);
    for (int c = 0; c < 3; c++) t->means[c] = (float)sign[c];
    for (int c = 0; c < 4; c++) t->quats[c] = (float)quat[c];
    for (int k = 0; k < 16; k++) t->sh[k] = k ? (float)sh[k - 1] : 1.0f;
    for (int i = 0; i <= LEVELS; i++)
        t->linear[i] = (uint8_t)(linear_of((double)i / LEVELS) * 255 + 0.5);
}

/* out[i][to] = sign * plane[i] for elements of `width` floats */
static void interleave_plane(const float *plane, float sign, uint64_t n, uint32_t width,
                             uint32_t to, float *out)
{
    for (uint64_t i = 0; i < n; i++) out[i * width + to] = sign * plane[i];
}

static void place_vec3(const float *planes, uint64_t stride, const float sign[3], uint64_t n,
                       float *out)
{
    for (uint64_t at = 0; at < n; at += TILE_ROWS)
        for (uint32_t c = 0; c < 3; c++)
            interleave_plane(planes + c * stride + at, sign[c], kiln_min_u64(TILE_ROWS, n - at), 3,
                             c, out + 3 * at);
}

static void place_quats(const kiln_glb_tables *t, const kiln_glb_rows *r, float *out)
{
    for (uint64_t at = 0; at < r->n; at += TILE_ROWS)
        for (uint32_t c = 0; c < 4; c++) /* w is the last one */
            interleave_plane(r->quats + c * r->n + at, t->quats[c],
                             kiln_min_u64(TILE_ROWS, r->n - at), 4, (c + 3) % 4, out + 4 * at);
}

static void place_colours(const kiln_glb_tables *t, const kiln_glb_rows *r, uint8_t *out)
{
    for (uint64_t i = 0; i < r->n; i++) {
        for (uint32_t c = 0; c < 3; c++) {
            const float v = (r->sh0[c * r->n + i] * (float)KILN_SH_C0_F64 + 0.5f) * LEVELS;
            out[4 * i + c] = t->linear[(int32_t)((v < 0 ? 0 : v > LEVELS ? LEVELS : v) + 0.5f)];
        }
        out[4 * i + 3] = (uint8_t)(int32_t)(r->alphas[i] * 255.0f + 0.5f);
    }
}

void kiln_glb_encode(const kiln_glb_tables *t, const kiln_glb_rows *r, uint32_t attribute,
                     void *out)
{
    static const float plain[3] = {1, 1, 1};
    const uint32_t k = attribute - KILN_GLB_SH;
    switch (attribute) {
    case KILN_GLB_POSITION:
        place_vec3(r->means, r->n, t->means, r->n, out);
        break;
    case KILN_GLB_COLOUR:
        place_colours(t, r, out);
        break;
    case KILN_GLB_ROTATION:
        place_quats(t, r, out);
        break;
    case KILN_GLB_SCALE:
        place_vec3(r->scales, r->n, plain, r->n, out);
        break;
    case KILN_GLB_OPACITY:
        interleave_plane(r->alphas, 1, r->n, 1, 0, out);
        break;
    default:
        place_vec3(k ? r->shN + (uint64_t)3 * (k - 1) * r->n : r->sh0, r->n,
                   (const float[3]){t->sh[k], t->sh[k], t->sh[k]}, r->n, out);
    }
}
