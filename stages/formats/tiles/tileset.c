/* tileset -- see the header. */
#include "stages/formats/tiles/tileset.h"

#include "base/option.h"
#include "base/vec3.h"
#include "kernels/math/real64.h"
#include "schema/level_sites.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPLATS "KHR_gaussian_splatting"
#define PACKED SPLATS "_compression_spz_2"

/* ---- names ----------------------------------------------------------------------------------- */

bool kiln_tile_can_name(const char *node)
{
    return node[0] == '/' && node[strspn(node, "0123456789/-.+")] == '\0';
}

void kiln_tile_uri(const char *node, uint32_t level, char out[KILN_TILE_URI])
{
    char name[KILN_TILE_URI];
    size_t n = 0;
    if (*node == '/') node++;
    for (; *node && n < 100; node++) name[n++] = *node == '/' ? '_' : *node;
    name[n] = 0;
    (void)snprintf(out, KILN_TILE_URI, "%.100s_L%u.glb", n ? name : "root", level);
}

void kiln_tile_part_uri(const char *node, uint32_t level, uint32_t part, char out[KILN_TILE_URI])
{
    kiln_tile_uri(node, level, out);
    (void)snprintf(out + strlen(out) - 4, 16, "_F%u.glb", part);
}

/* Where "_L7" begins at the end of name[0 .. n); 0: it does not end so. */
static size_t before_number(const char *name, size_t n, char letter)
{
    size_t i = n;
    while (i > 0 && name[i - 1] >= '0' && name[i - 1] <= '9') i--;
    return i == n || i < 3 || name[i - 1] != letter || name[i - 2] != '_' ? 0 : i - 2;
}

bool kiln_tile_uri_is_ours(const char *name)
{
    const size_t n = strlen(name);
    if (n < 8 || strcmp(name + n - 4, ".glb") != 0) return false;
    const size_t part = before_number(name, n - 4, 'F'),
                 path = before_number(name, part ? part : n - 4, 'L');
    if (path == 0) return false;
    return (path == 4 && memcmp(name, "root", 4) == 0) || strspn(name, "0123456789_-.+") >= path;
}

/* ---- errors ---------------------------------------------------------------------------------- */

enum {
    SCREEN_ERROR = 16, /* pixels that CesiumJS allows */
    /* pixels across: a scene that is smaller in the picture needs no more than its coarsest
     * level */
    LEAST_SCENE = 32
};
static const double like = 3.1623e-4; /* 35 dB */
/* of a picture that the scene fills: a small one, since larger ones only look better */
static const double pixels = 25e4;

double kiln_tile_shadow(const float lo[3], const float hi[3])
{
    const double x = (double)hi[0] - (double)lo[0], y = (double)hi[1] - (double)lo[1],
                 z = (double)hi[2] - (double)lo[2];
    return (x * y + y * z + z * x) / 2;
}

/* What a level may differ by, and the footprint `full` at which the scene fills a picture. From
 * there outwards the picture stays, and the scene in it becomes smaller, so more is allowed. */
typedef struct {
    double most, full;
} allowance;

/* Of step i: the stored error over the allowed one. */
static double excess_at(const kiln_chunk *level, const allowance *a, uint32_t i, double footprint)
{
    const double far = footprint > a->full ? footprint / a->full : 1;
    return (double)level->errors[i] / (a->most * far * far);
}

/* Beyond the last step, where more is lost than is allowed: errors go on along the line through the
 * last two, if it rises, and what is allowed grows with the square of the footprint. */
static double beyond_last(const kiln_chunk *level, const allowance *a, double s)
{
    const uint32_t last = level->n_errors - 1;
    const double here = (double)level->errors[last],
                 before = last > 0 ? (double)level->errors[last - 1] : here;
    const double slope = here > before ? 2 * (here - before) / s : 0,
                 square = a->most / (a->full * a->full);
    return (slope + sqrt(slope * slope + 4 * square * (here - slope * s))) / (2 * square);
}

/* The footprint from which on no more is lost than is allowed. Looked for from far to near, because
 * errors may grow with the footprint; over its square they fall. Below the first step they are not
 * measured: there they are taken to grow with the inverse of its square, as what was measured is
 * seen ever larger. */
static double footprint_of(const kiln_chunk *level, const allowance *a)
{
    const uint32_t n = level->n_errors;
    double s = ldexp(1, level->error_step + (int)n - 1), after = excess_at(level, a, n - 1, s);
    if (after > 1) return beyond_last(level, a, s);
    for (uint32_t i = n - 1; i-- > 0;) {
        const double here = excess_at(level, a, i, s /= 2);
        if (here > 1) return s + s * (here - 1) / (here - after);
        after = here;
    }
    const double near = s * sqrt((double)level->errors[0] / a->most);
    return near > a->full ? sqrt(near * a->full) : near;
}

double kiln_tile_error(const kiln_chunk *level, double shadow, double whole)
{
    if (level->level == 0 || !(shadow > 0)) return 0;
    const allowance a = {.most = shadow * like, .full = sqrt(fmax(whole, shadow) / pixels)};
    if (level->n_errors)
        return SCREEN_ERROR *
               fmin(footprint_of(level, &a), sqrt(fmax(whole, shadow)) / LEAST_SCENE);
    return SCREEN_ERROR * sqrt(shadow / (double)(level->count ? level->count : 1));
}

void kiln_tile_core_box(const kiln_level_node *n, float lo[3], float hi[3])
{
    if (n->sites) {
        memcpy(lo, n->sites->core_min, sizeof n->sites->core_min);
        memcpy(hi, n->sites->core_max, sizeof n->sites->core_max);
        return;
    }
    memcpy(lo, n->reach_min, sizeof n->reach_min);
    memcpy(hi, n->reach_max, sizeof n->reach_max);
}

static double shadow_of(const kiln_level_node *n)
{
    float lo[3], hi[3];
    kiln_tile_core_box(n, lo, hi);
    return kiln_tile_shadow(lo, hi);
}

void kiln_tile_shares(const kiln_level_tree *t, double *parts)
{
    const kiln_level_node *root = &t->nodes[t->n_nodes - 1];
    const double whole =
        shadow_of(root) > 0 ? shadow_of(root) : kiln_tile_shadow(root->reach_min, root->reach_max);
    double all = 0, leaves = 0;
    for (uint32_t i = 0; i < t->n_nodes; i++) {
        const kiln_level_node *n = &t->nodes[i];
        parts[i] = n->chunk ? fmin(shadow_of(n), whole) : 0;
        all += parts[i];
        leaves += n->chunk != NULL;
    }
    for (uint32_t i = 0; i < t->n_nodes; i++) { /* children are in front of their parents */
        const kiln_level_node *n = &t->nodes[i];
        if (n->chunk) parts[i] = whole * ((all > 0 ? parts[i] / all : 0) + 1 / leaves) / 2;
        for (uint32_t k = 0; k < n->n_children; k++)
            parts[i] += parts[t->children[n->first_child + k]];
    }
}

void kiln_tileset_settle(kiln_tile *tiles, uint32_t n)
{
    for (uint32_t i = n; i-- > 1;) { /* children are behind their parents */
        const kiln_tile *t = &tiles[i];
        kiln_tile *parent = &tiles[t->parent];
        parent->error = fmax(parent->error, t->error);
        for (int c = 0; c < 3; c++) {
            parent->lo[c] = fmin(parent->lo[c], t->lo[c]);
            parent->hi[c] = fmax(parent->hi[c], t->hi[c]);
        }
    }
    for (uint32_t i = 0; i < n; i++) /* parents are in front of their children */
        for (int c = 0; c < 3; c++) {
            const kiln_tile *parent = &tiles[i ? tiles[i].parent : 0];
            if (tiles[i].lo[c] > tiles[i].hi[c])
                tiles[i].lo[c] = tiles[i].hi[c] = i ? (parent->lo[c] + parent->hi[c]) / 2 : 0;
        }
}

/* ---- place ----------------------------------------------------------------------------------- */

void kiln_tile_axes(const double v[3], double out[3])
{
    const double at[3] = {v[0], v[2], 0.0 - v[1]};
    memcpy(out, at, sizeof at);
}

/* The shortest turn of the unit vector u to z: I + [v] + [v]^2 / (1 + c), v = u x z, c = u . z; by
 * half a turn about x where u is -z. */
static void turn_to_z(const double u[3], double out[3][3])
{
    const double c = u[2], v[3] = {u[1], -u[0], 0};
    const double skew[3][3] = {{0, -v[2], v[1]}, {v[2], 0, -v[0]}, {-v[1], v[0], 0}};
    memset(out, 0, 9 * sizeof(double));
    if (c < -1 + 1e-12) {
        out[0][0] = 1;
        out[1][1] = out[2][2] = -1;
        return;
    }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            double square = 0;
            for (int k = 0; k < 3; k++) square += skew[i][k] * skew[k][j];
            out[i][j] = (i == j) + skew[i][j] + square / (1 + c);
        }
}

void kiln_tileset_place(double latitude, double longitude, double height, const double up[3],
                        double transform[16])
{
    const double a = 6378137, flattening = 1 / 298.257223563, e2 = flattening * (2 - flattening);
    double sin_phi, cos_phi, sin_lambda, cos_lambda;
    kiln_sincos_degrees(latitude, &sin_phi, &cos_phi);
    kiln_sincos_degrees(longitude, &sin_lambda, &cos_lambda);
    const double away[3] = {cos_phi * cos_lambda, cos_phi * sin_lambda, sin_phi},
                 east[3] = {-sin_lambda, cos_lambda, 0};
    /* radius of curvature in the prime vertical */
    const double normal = a / sqrt(1 - e2 * away[2] * away[2]);
    double north[3], turned[3], turn[3][3], length;
    kiln_vec3_cross(away, east, north);
    kiln_tile_axes(up, turned);
    length = sqrt(turned[0] * turned[0] + turned[1] * turned[1] + turned[2] * turned[2]);
    for (int i = 0; i < 3; i++) turned[i] = length > 0 ? turned[i] / length : i == 2;
    turn_to_z(turned, turn);
    for (int j = 0; j < 3; j++)
        for (int i = 0; i < 3; i++)
            transform[4 * j + i] =
                east[i] * turn[0][j] + north[i] * turn[1][j] + away[i] * turn[2][j];
    for (int i = 0; i < 3; i++)
        transform[12 + i] = (normal * (i == 2 ? 1 - e2 : 1) + height) * away[i];
    transform[3] = transform[7] = transform[11] = 0;
    transform[15] = 1;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static kiln_status put_box(const kiln_tile *t, kiln_buffer *b, kiln_error *err)
{
    double c[3], h[3];
    for (int i = 0; i < 3; i++) {
        c[i] = (t->lo[i] + t->hi[i]) / 2 + 0.0;
        h[i] = (t->hi[i] - t->lo[i]) / 2;
    }
    return kiln_buffer_printf(
        b, err, "\"boundingVolume\":{\"box\":[%.17g,%.17g,%.17g,%.17g,0,0,0,%.17g,0,0,0,%.17g]}",
        c[0], c[1], c[2], h[0], h[1], h[2]);
}

static kiln_status open_tile(const kiln_tileset *t, uint32_t i, kiln_buffer *b, kiln_error *err)
{
    const kiln_tile *tile = &t->tiles[i];
    KILN_TRY(kiln_buffer_printf(b, err, "{"));
    KILN_TRY(put_box(tile, b, err));
    KILN_TRY(kiln_buffer_printf(b, err, ",\"geometricError\":%.17g", tile->error));
    if (i == 0) KILN_TRY(kiln_buffer_printf(b, err, ",\"refine\":\"REPLACE\""));
    if (i == 0 && t->placed)
        for (int k = 0; k < 16; k++)
            KILN_TRY(kiln_buffer_printf(b, err, "%s%.17g%s", k ? "," : ",\"transform\":[",
                                        t->transform[k] + 0.0, k == 15 ? "]" : ""));
    return tile->uri[0] ? kiln_buffer_printf(b, err, ",\"content\":{\"uri\":\"%s\"}", tile->uri)
                        : KILN_OK;
}

/* Children of tile i are list[first[i]] .. list[first[i + 1] - 1], in their order. */
static void list_children(const kiln_tileset *t, uint32_t *first, uint32_t *list)
{
    for (uint32_t i = 1; i < t->n; i++) first[t->tiles[i].parent + 1]++;
    for (uint32_t i = 0; i < t->n; i++) first[i + 1] += first[i];
    for (uint32_t i = t->n; i-- > 1;) list[--first[t->tiles[i].parent + 1]] = i;
    /* first[i + 1] is now where tile i's children begin: move it to its place */
    memmove(first, first + 1, t->n * sizeof *first);
    first[t->n] = t->n - 1;
}

/* Without recursion: the tree may be deep. */
static kiln_status put_tiles(const kiln_tileset *t, const uint32_t *first, const uint32_t *list,
                             uint32_t *next, kiln_buffer *b, kiln_error *err)
{
    uint32_t at = 0;
    KILN_TRY(open_tile(t, 0, b, err));
    for (;;) {
        const uint32_t child = first[at] + next[at];
        if (child < first[at + 1]) {
            KILN_TRY(kiln_buffer_printf(b, err, next[at] ? "," : ",\"children\":["));
            next[at]++;
            at = list[child];
            KILN_TRY(open_tile(t, at, b, err));
            continue;
        }
        KILN_TRY(kiln_buffer_printf(b, err, next[at] ? "]}" : "}"));
        if (at == 0) return KILN_OK;
        at = t->tiles[at].parent;
    }
}

kiln_status kiln_tileset_json(const kiln_tileset *t, kiln_buffer *out, kiln_error *err)
{
    kiln_status st = KILN_OK;
    uint32_t *first = NULL, *list = NULL, *next = NULL;
    KILN_GO(KILN_ALLOC(&first, (uint64_t)t->n + 1, "tiles", err));
    KILN_GO(KILN_ALLOC(&list, t->n, "tiles", err));
    KILN_GO(KILN_ALLOC(&next, t->n, "tiles", err));
    list_children(t, first, list);
    KILN_GO(kiln_buffer_printf(
        out, err,
        "{\"asset\":{\"version\":\"1.1\",\"generator\":\"SplatKiln %s\"},\"geometricError\":%.17g,"
        "\"extensionsUsed\":[\"3DTILES_content_gltf\"],\"extensions\":{\"3DTILES_content_gltf\":"
        "{\"extensionsUsed\":[\"" SPLATS "\",\"" PACKED "\"],\"extensionsRequired\":[\"" SPLATS
        "\",\"" PACKED "\"]}},\"root\":",
        kiln_version, fmax(t->extent, 2 * t->tiles[0].error)));
    KILN_GO(put_tiles(t, first, list, next, out, err));
    KILN_GO(kiln_buffer_printf(out, err, "}\n"));
done:
    free(first);
    free(list);
    free(next);
    return st;
}
