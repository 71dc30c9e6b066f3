/* tiles_writer -- 3D Tiles 1.1: tileset.json and a GLB with an SPZ for each level of each node of the tree of levels. A viewer
 * begins with the root's coarsest level and replaces a tile by its children, the next finer level or the nodes below, as it comes
 * near.
 *
 * Round 1 writes the GLBs: positions are relative to the middle of the tile, which is the node's translation in double, so that
 * SPZ's 24 bits and a viewer's floats have the tile alone to tell apart. A unit's result is the box of what its rows show. When all
 * are written, the parent makes tileset.json of the tree.
 */
#include "stages/export/rows.h"
#include "stages/export/spz_deflate.h"
#include "stages/export/spz_scene.h"
#include "stages/export/tile_glb.h"
#include "stages/export/tileset.h"
#include "stages/export/writer.h"

#include "base/file.h"
#include "base/harmonics.h"
#include "kernels/math/real64.h"
#include "stages/engine/json_text.h"
#include "stages/import/cameras/orbit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEGREE_MAX = 3, SIGMAS = 3, TILESET_MAX = 1 << 30 };

/* Of what a tile shows, in a PLY's axes: its centres and three standard deviations of each. */
typedef struct {
    double lo[3], hi[3];
} box;

static uint32_t degree_of(const kiln_export *e) { return kiln_export_degree(e, DEGREE_MAX); }

/* ---- parent ------------------------------------------------------------------------------------------------------------------ */

/* Names become those of files, and stand in JSON. A bake may be a stranger's. */
static kiln_status check_names(const kiln_level_tree *t, kiln_error *err)
{
    for (uint32_t i = 0; i < t->n_nodes; i++)
        if (!kiln_tile_can_name(t->nodes[i].name))
            return kiln_fail(err, KILN_E_INPUT, "3dtiles names its files after chunks, and '%s' is no path of digits",
                             t->nodes[i].name);
    return KILN_OK;
}

static kiln_status plan(kiln_export_parent *p, kiln_error *err)
{
    const kiln_export *e = p->e;
    const double *at = e->origin;
    KILN_TRY(check_names(e->tree, err));
    if (e->sh_degree > DEGREE_MAX)
        KILN_TRY(kiln_export_note(p, err, "its tiles hold spherical harmonics up to degree 3; those of degree 4 are left out"));
    if (at[0] != 0 || at[1] != 0 || at[2] != 0)
        KILN_TRY(kiln_export_note(p, err, "its coordinates are relative to %.17g %.17g %.17g", at[0], at[1], at[2]));
    if (e->frame == KILN_FRAME_AS_IS)
        KILN_TRY(kiln_export_note(p, err, "its axes are those of 3D Tiles; --frame as-is changes nothing"));
    if (!e->placed)
        KILN_TRY(kiln_export_remark(p, err, "it has no place on the globe; --geo LATITUDE,LONGITUDE,HEIGHT gives it one"));
    return kiln_buffer_put(p->plan, NULL, e->n_chunks * sizeof(box), err);
}

static kiln_status gather(kiln_export_parent *p, uint64_t unit, const void *result, size_t bytes, kiln_error *err)
{
    if (bytes != sizeof(box))
        return kiln_fail(err, KILN_E_BUG, "tile %llu has a box of %zu bytes", (unsigned long long)unit, bytes);
    memcpy(p->plan->data + unit * sizeof(box), result, bytes);
    return KILN_OK;
}

static void tile_of(const kiln_export *e, uint32_t chunk, const box *of, const double *parts, kiln_tile *t)
{
    const kiln_export_chunk *c = &e->chunks[chunk];
    const kiln_level_node *node = &e->tree->nodes[c->node];
    double lo[3], hi[3];
    *t = (kiln_tile){.parent = KILN_NO_TILE};
    kiln_tile_uri(node->name, c->level, t->uri);
    t->error = e->edits.moves ? e->edits.move.scale : 1;
    t->error *= kiln_tile_error(c->chunk, parts[c->node], parts[e->tree->n_nodes - 1]);
    kiln_tile_axes(of->lo, lo);
    kiln_tile_axes(of->hi, hi);
    for (int i = 0; i < 3; i++) {
        t->lo[i] = fmin(lo[i], hi[i]);
        t->hi[i] = fmax(lo[i], hi[i]);
    }
}

/* The chunks of each node, coarsest level first, nodes behind their parents: order[i] is the chunk of tile i, last[node] its finest
 * tile.
 */
static void order_tiles(const kiln_export *e, uint32_t *order, uint32_t *count, uint32_t *last)
{
    const kiln_level_tree *tree = e->tree;
    uint32_t at = 0;
    for (uint32_t c = 0; c < e->n_chunks; c++) count[e->chunks[c].node]++;
    for (uint32_t n = tree->n_nodes; n-- > 0;) { /* the root is the last node */
        at += count[n];
        last[n] = at - 1;
        count[n] = 0;
    }
    for (uint32_t c = 0; c < e->n_chunks; c++) { /* of a node the baked chunk comes first, then its levels, ever coarser */
        const uint32_t n = e->chunks[c].node;
        order[last[n] - count[n]++] = c;
    }
}

static kiln_status make_tiles(const kiln_export *e, const box *boxes, kiln_tile *tiles, kiln_error *err)
{
    kiln_status st = KILN_OK;
    uint32_t *order = NULL, *count = NULL, *last = NULL;
    double *parts = NULL;
    const uint32_t n_nodes = e->tree->n_nodes;
    KILN_GO(KILN_ALLOC(&order, e->n_chunks, "tiles", err));
    KILN_GO(KILN_ALLOC(&count, n_nodes, "nodes", err));
    KILN_GO(KILN_ALLOC(&last, n_nodes, "nodes", err));
    KILN_GO(KILN_ALLOC(&parts, n_nodes, "nodes", err));
    order_tiles(e, order, count, last);
    kiln_tile_shares(e->tree, parts);
    for (uint32_t i = 0; i < e->n_chunks; i++) {
        const uint32_t node = e->chunks[order[i]].node, parent = e->tree->nodes[node].parent;
        tile_of(e, order[i], &boxes[order[i]], parts, &tiles[i]);
        if (i && e->chunks[order[i - 1]].node == node)
            tiles[i].parent = i - 1;
        else if (parent != KILN_NO_NODE)
            tiles[i].parent = last[parent];
    }
    kiln_tileset_settle(tiles, e->n_chunks);
done:
    free(order);
    free(count);
    free(last);
    free(parts);
    return st;
}

static void place(const kiln_export *e, kiln_tileset *t)
{
    char text[64];
    double up[3];
    t->placed = e->placed;
    if (!e->placed) return;
    kiln_export_up_axis(e, text, sizeof text);
    kiln_up_vector(text, up); /* unknown: -y, as of PLYs */
    kiln_tileset_place(e->geo[0], e->geo[1], e->geo[2], up, t->transform);
}

static kiln_status finish(kiln_export_parent *p, kiln_error *err)
{
    const kiln_export *e = p->e;
    char path[KILN_PATH_MAX];
    kiln_tile *tiles = NULL;
    kiln_buffer text = {0};
    kiln_status st = KILN_OK;
    KILN_GO(KILN_ALLOC(&tiles, e->n_chunks, "tiles", err));
    KILN_GO(make_tiles(e, (const box *)(const void *)p->plan->data, tiles, err));
    kiln_tileset t = {.tiles = tiles, .n = e->n_chunks};
    place(e, &t);
    KILN_GO(kiln_tileset_json(&t, &text, err));
    KILN_GO(kiln_path_join(path, sizeof path, e->temporary, KILN_TILESET_FILE, err));
    KILN_GO(kiln_file_write(path, text.data, text.size, err));
done:
    free(tiles);
    kiln_buffer_release(&text);
    return st;
}

/* ---- worker ------------------------------------------------------------------------------------------------------------------ */

static uint64_t row_bytes(const kiln_export *e) { return 9 + 1 + 3 + 3 + 4 + kiln_sh_components(degree_of(e)); }

/* Rows, codes, the SPZ, which a buffer takes twice while it grows, and the GLB. */
static uint64_t ram(const kiln_export *e, uint64_t unit)
{
    const uint64_t codes = e->chunks[unit].n * row_bytes(e);
    return kiln_export_rows_ram(e, unit, KILN_ROWS_SPLAT) + 6 * (codes + codes / 512) + ((uint64_t)1 << 20) + KILN_SPZ_DEFLATE_RAM +
           2 * kiln_spz_deflate_room(KILN_SPZ_PIECE) + kiln_outputs_ram(sizeof(box));
}

static void measure(const kiln_export_rows *r, box *b, double middle[3])
{
    for (int c = 0; c < 3; c++) {
        double lo = INFINITY, hi = -INFINITY;
        b->lo[c] = INFINITY;
        b->hi[c] = -INFINITY;
        for (uint64_t i = 0; i < r->n; i++) {
            const double at = (double)r->means[c * r->n + i];
            const float widest = fmaxf(fmaxf(r->log_scales[i], r->log_scales[r->n + i]), r->log_scales[2 * r->n + i]);
            const double reach = SIGMAS * kiln_exp_f64((double)widest);
            lo = fmin(lo, at);
            hi = fmax(hi, at);
            b->lo[c] = fmin(b->lo[c], at - reach);
            b->hi[c] = fmax(b->hi[c], at + reach);
        }
        middle[c] = r->n ? (lo + hi) / 2 : 0;
        if (!r->n) b->lo[c] = b->hi[c] = 0;
    }
}

/* Positions from here on are relative to the middle. Returns the farthest coordinate. */
static double centre(const kiln_export_rows *r, const double middle[3])
{
    double farthest = 0;
    for (int c = 0; c < 3; c++)
        for (uint64_t i = 0; i < r->n; i++) {
            float *v = &r->means[c * r->n + i];
            *v = (float)((double)*v - middle[c]);
            farthest = fmax(farthest, fabs((double)*v));
        }
    return farthest;
}

/* The glTF's axes are right, up, back: those of SPZ, into which the codes are turned. */
static void describe(const kiln_export *e, const kiln_export_rows *r, const double middle[3], kiln_tile_scene *s)
{
    static const float sign[3] = {1, -1, -1};
    *s = (kiln_tile_scene){.n_rows = r->n, .sh_degree = degree_of(e), .antialiased = kiln_export_scene(e)->antialiased};
    for (int c = 0; c < 3; c++) {
        float lo = INFINITY, hi = -INFINITY;
        for (uint64_t i = 0; i < r->n; i++) {
            lo = fminf(lo, sign[c] * r->means[c * r->n + i]);
            hi = fmaxf(hi, sign[c] * r->means[c * r->n + i]);
        }
        s->least[c] = r->n ? lo + 0.0f : 0;
        s->most[c] = r->n ? hi + 0.0f : 0;
        s->translation[c] = (double)sign[c] * middle[c];
    }
}

static kiln_status pack(kiln_export_worker *x, const kiln_export_rows *r, double farthest, kiln_buffer *spz, kiln_error *err)
{
    const kiln_export *e = x->e;
    kiln_spz_coding coding = {
        .sh_degree = degree_of(e), .first_bits = KILN_SPZ_FIRST_BITS, .other_bits = KILN_SPZ_OTHER_BITS, .to_rub = true};
    const size_t stride[KILN_SPZ_PLANES] = {9, 1, 3, 3, 4, kiln_sh_components(coding.sh_degree)};
    unsigned char *planes[KILN_SPZ_PLANES], header[KILN_SPZ_HEADER];
    size_t bytes[KILN_SPZ_PLANES];
    kiln_spz_clamped clamped = {0};
    const kiln_spz_values values = {r->n, r->n, r->means, r->log_scales, r->quats, r->opacity_logits, r->sh0, r->shN};
    (void)kiln_spz_choose_fraction(farthest, farthest, &coding.fraction); /* a tile's half edge: always finer than needed */
    planes[0] = NULL;
    KILN_TRY(kiln_alloc_unset((void **)&planes[0], r->n, row_bytes(e), "the codes of a tile", err));
    for (int p = 0; p < KILN_SPZ_PLANES; p++) {
        bytes[p] = r->n * stride[p];
        if (p) planes[p] = planes[p - 1] + bytes[p - 1];
    }
    kiln_spz_encode(&coding, &values, planes, &clamped);
    x->counts[0] += clamped.scales;
    x->counts[1] += clamped.colours;
    x->counts[2] += clamped.sh;
    kiln_spz_header_make(r->n, &coding, kiln_export_scene(e)->antialiased, 3, 0, header);
    const kiln_status st = kiln_spz_pack(header, planes, bytes, spz, err);
    free(planes[0]);
    return st;
}

static kiln_status put_file(const kiln_export_worker *x, const char *name, const kiln_buffer *b, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    int fd = -1;
    KILN_TRY(kiln_path_join(path, sizeof path, x->e->temporary, name, err));
    KILN_TRY(kiln_file_create(path, &fd, err));
    kiln_status st = kiln_file_write_at(fd, path, 0, b->data, b->size, err);
    if (close(fd) != 0 && st == KILN_OK) st = kiln_file_write_failed(path, errno, err);
    return st;
}

static kiln_status write_tile(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const kiln_export_chunk *c = &x->e->chunks[unit];
    char name[KILN_TILE_URI];
    kiln_export_rows rows = {0};
    kiln_tile_scene scene;
    kiln_buffer spz = {0}, glb = {0};
    kiln_status st = KILN_OK;
    double middle[3];
    box b;
    KILN_GO(kiln_export_rows_read(x, unit, KILN_ROWS_SPLAT, &rows, err));
    measure(&rows, &b, middle);
    const double farthest = centre(&rows, middle);
    describe(x->e, &rows, middle, &scene);
    KILN_GO(pack(x, &rows, farthest, &spz, err));
    KILN_GO(kiln_tile_glb(&scene, spz.data, spz.size, &glb, err));
    kiln_tile_uri(x->e->tree->nodes[c->node].name, c->level, name);
    KILN_GO(put_file(x, name, &glb, err));
    KILN_GO(kiln_export_result(x, &b, sizeof b, err));
done:
    kiln_export_rows_release(&rows);
    kiln_buffer_release(&spz);
    kiln_buffer_release(&glb);
    return st;
}

/* ---- what is there ----------------------------------------------------------------------------------------------------------- */

static bool is_ours(const char *name) { return strcmp(name, KILN_TILESET_FILE) == 0 || kiln_tile_uri_is_ours(name); }

static bool tiles_are_there(const char *folder, json_t *tile)
{
    char path[KILN_PATH_MAX];
    size_t i;
    json_t *child;
    const char *uri = json_string_value(json_object_get(json_object_get(tile, "content"), "uri"));
    if (!uri || !kiln_tile_uri_is_ours(uri) || kiln_path_join(path, sizeof path, folder, uri, NULL) != KILN_OK ||
        !kiln_is_file(path))
        return false;
    json_array_foreach(json_object_get(tile, "children"), i, child)
    {
        if (!tiles_are_there(folder, child)) return false; /* as deep as jansson parses, 2048 */
    }
    return true;
}

static bool complete(const char *target)
{
    char path[KILN_PATH_MAX];
    unsigned char *text;
    size_t size;
    json_t *tileset = NULL;
    if (kiln_path_join(path, sizeof path, target, KILN_TILESET_FILE, NULL) != KILN_OK) return false;
    if (kiln_file_read(path, TILESET_MAX, &text, &size, NULL) != KILN_OK) return false;
    const bool parsed = kiln_json_parse((const char *)text, size, 0, path, &tileset, NULL, NULL) == KILN_OK && tileset;
    free(text);
    const bool all = parsed && tiles_are_there(target, json_object_get(tileset, "root"));
    json_decref(tileset);
    return all;
}

static const kiln_export_round rounds[] = {{.what = "tiles", .ram = ram, .run = write_tile, .gather = gather}};

const kiln_writer_functions kiln_writer_tiles3d = {.place = KILN_PLACE_FOLDER,
                                                   .relative = true,
                                                   .geo = true,
                                                   .counts = kiln_spz_counts,
                                                   .plan = plan,
                                                   .rounds = rounds,
                                                   .n_rounds = 1,
                                                   .finish = finish,
                                                   .is_ours = is_ours,
                                                   .last_file = KILN_TILESET_FILE,
                                                   .complete = complete};
