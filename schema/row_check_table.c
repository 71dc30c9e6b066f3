/* row_check_table -- tile tables: bands that tile the picture, arrays of the sizes that follow.
 * What the arrays hold is checked when they are decoded (stages/tiles/rank_code.h) and, all of it,
 * by check_tables.c. */
#include "base/file.h"
#include "schema/manifest_internal.h"
#include "schema/row_check.h"

#include <inttypes.h>
#include <math.h>

enum { TILE = 16, CODE_MAX = 5 /* bytes of a rank's LEB128 */ };

static kiln_status check_array(const kiln_tile_table *t, const kiln_array *a, const char *name,
                               uint64_t n, uint32_t elem, kiln_error *err)
{
    if (a->raw_bytes / elem == n && a->raw_bytes % elem == 0 && kiln_array_is_whole(a))
        return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "tile table of camera '%.300s': array '%s' has %" PRIu64 " bytes, but %" PRIu64
                     " elements of %" PRIu32 " are expected",
                     t->camera, name, a->raw_bytes, n, elem);
}

static kiln_status check_band(const kiln_tile_table *t, const kiln_tile_band *b, bool with_arrays,
                              kiln_error *err)
{
    const uint64_t tiles = (uint64_t)(b->row1 - b->row0) * t->tiles_x,
                   code = b->rank_delta.raw_bytes;
    if (b->pairs > tiles * t->visible) /* at most 2^32 tiles and 2^32 - 2 Gaussians */
        return kiln_fail(err, KILN_E_INPUT,
                         "tile table of camera '%.300s': rows %" PRIu32 "..%" PRIu32
                         " claim %" PRIu64 " pairs of %" PRIu64 " tiles and %" PRIu64 " Gaussians",
                         t->camera, b->row0, b->row1, b->pairs, tiles, t->visible);
    if (!with_arrays) return KILN_OK;
    KILN_TRY(check_array(t, &b->tile_count, "tile_count", tiles, sizeof(uint32_t), err));
    KILN_TRY(check_array(t, &b->tile_bytes, "tile_bytes", tiles, sizeof(uint32_t), err));
    if (code >= b->pairs && code / CODE_MAX <= b->pairs && kiln_array_is_whole(&b->rank_delta))
        return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "tile table of camera '%.300s': array 'rank_delta' has %" PRIu64
                     " bytes for %" PRIu64 " pairs",
                     t->camera, code, b->pairs);
}

static kiln_status check_bands(const kiln_tile_table *t, bool with_arrays, kiln_error *err)
{
    uint64_t pairs = 0;
    uint32_t row = 0;
    for (uint32_t i = 0; i < t->n_bands; i++) {
        const kiln_tile_band *b = &t->bands[i];
        if (b->row0 != row || b->row1 <= b->row0 || b->row1 > t->tiles_y)
            return kiln_fail(err, KILN_E_INPUT,
                             "tile table of camera '%.300s': band %" PRIu32
                             " has tile rows %" PRIu32 "..%" PRIu32 ", but row %" PRIu32
                             " must follow",
                             t->camera, i, b->row0, b->row1, row);
        row = b->row1;
        KILN_TRY(check_band(t, b, with_arrays, err));
        pairs += b->pairs; /* at most tiles x visible, which are 2^32 and 2^32 */
    }
    if (row != t->tiles_y)
        return kiln_fail(err, KILN_E_INPUT,
                         "tile table of camera '%.300s': its bands end at tile row %" PRIu32
                         " of %" PRIu32,
                         t->camera, row, t->tiles_y);
    if (pairs == t->pairs) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "tile table of camera '%.300s': it claims %" PRIu64
                     " pairs, but its bands have %" PRIu64,
                     t->camera, t->pairs, pairs);
}

static kiln_status check_numbers(const kiln_tile_table *t, kiln_error *err)
{
    const char *why;
    if (!kiln_name_is_safe(t->camera, &why))
        return kiln_fail(err, KILN_E_INPUT,
                         "a tile table belongs to a camera whose name '%.300s' is refused: %s",
                         t->camera, why);
    if (!kiln_name_is_safe(t->profile, &why))
        return kiln_fail(err, KILN_E_INPUT, "tile table of camera '%.300s': it names no profile",
                         t->camera);
    if (!(t->near_m > 0 && isfinite(t->near_m)))
        return kiln_fail(err, KILN_E_INPUT,
                         "tile table of camera '%.300s': its near plane is at %g", t->camera,
                         t->near_m);
    if (t->width == 0 || t->height == 0 || t->width > KILN_PICTURE_SIDE_MAX ||
        t->height > KILN_PICTURE_SIDE_MAX || t->tiles_x != (t->width + TILE - 1) / TILE ||
        t->tiles_y != (t->height + TILE - 1) / TILE)
        return kiln_fail(err, KILN_E_INPUT,
                         "tile table of camera '%.300s': %" PRIu32 " x %" PRIu32
                         " tiles do not cover %" PRIu32 " x %" PRIu32 " pixels",
                         t->camera, t->tiles_x, t->tiles_y, t->width, t->height);
    if (t->visible <= KILN_LAYER_COUNT_MAX) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "tile table of camera '%.300s': it claims %" PRIu64
                     " visible Gaussians, more than 2^32 - 2",
                     t->camera, t->visible);
}

kiln_status kiln_row_check_table(const kiln_tile_table *t, bool with_arrays, kiln_error *err)
{
    KILN_TRY(check_numbers(t, err));
    if (with_arrays) {
        KILN_TRY(
            check_array(t, &t->visible_slot, "visible_slot", t->visible, sizeof(uint32_t), err));
        KILN_TRY(check_array(t, &t->visible_row, "visible_row", t->visible, sizeof(uint16_t), err));
        if (!kiln_array_is_whole(&t->chunks))
            return kiln_fail(err, KILN_E_INPUT,
                             "tile table of camera '%.300s': array 'chunks' lacks segments",
                             t->camera);
    }
    return check_bands(t, with_arrays, err);
}
