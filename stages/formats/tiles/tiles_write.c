/* tiles_write -- 3D Tiles 1.1: tileset.json and a GLB with an SPZ for each level of each node of
 * the tree of levels. A viewer begins with the root's coarsest level and replaces a tile by its
 * children, the next finer level or the nodes below, as it comes near.
 *
 * Round 1 writes the GLBs: positions are relative to the middle of the tile, which is the node's
 * translation in double, so that SPZ's 24 bits and a viewer's floats have the tile alone to tell
 * apart. What these bits cannot hold beside the rest of a chunk goes into files of its own
 * (tile_parts.h). A unit's result is what its rows show. When all are written, the parent makes
 * tileset.json of the tree. Where there are such files, the root of the tree and all of them are
 * the children of a root without content, so that they are drawn beside whatever level of the tree
 * is.
 */
#include "stages/formats/rows.h"
#include "stages/formats/spz/spz_deflate.h"
#include "stages/formats/spz/spz_scene.h"
#include "stages/formats/tiles/tile_glb.h"
#include "stages/formats/tiles/tile_parts.h"
#include "stages/formats/tiles/tileset.h"
#include "stages/formats/writer.h"

#include "base/file.h"
#include "base/harmonics.h"
#include "base/vec3.h"
#include "kernels/math/real64.h"
#include "stages/engine/json_text.h"
#include "stages/select/up_axis.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEGREE_MAX = 3, SIGMAS = 3, TILESET_MAX = 1 << 30 };

/* Of what a tile shows, in a PLY's axes: its centres and three standard deviations of each. lo
 * above hi: nothing. */
typedef struct {
    double lo[3], hi[3];
} box;

/* What a unit tells of its file, then of each of its parts. */
typedef struct {
    box of;
    uint64_t rows;
    uint32_t fraction; /* bits behind the point of its positions; a part's count for nothing */
    uint32_t unit;
} written_tile;

enum { COUNT_LEFT_OUT = 3, COUNT_STEPS, COUNT_HOLES };
static const kiln_export_count counts[] = {
    KILN_SPZ_COUNTS,
    {"row lies too far away for the codes of any tile, and was left out",
     "rows lie too far away for the codes of any tile, and were left out"},
    {"row is rounded to position steps larger than itself; leave out what lies far away "
     "(--filter-box)",
     "rows are rounded to position steps larger than themselves; leave out what lies far away "
     "(--filter-box)"},
    {"row of a coarser level lies too far from the others for its tile's codes, and was left out "
     "of that level",
     "rows of coarser levels lie too far from the others for their tiles' codes, and were left out "
     "of these levels"},
    {NULL, NULL}};

static uint32_t tiles_degree(const kiln_export *e) { return kiln_export_degree(e, DEGREE_MAX); }

/* ---- parent ---------------------------------------------------------------------------------- */

/* Names become those of files, and stand in JSON. A bake may be a stranger's. */
static kiln_status check_node_names(const kiln_level_tree *t, kiln_error *err)
{
    for (uint32_t i = 0; i < t->n_nodes; i++)
        if (!kiln_tile_can_name(t->nodes[i].name))
            return kiln_fail(
                err, KILN_E_INPUT,
                "3dtiles names its files after chunks, but '%s' is not a path of digits",
                t->nodes[i].name);
    return KILN_OK;
}

static kiln_status plan_tileset(kiln_export_parent *p, kiln_error *err)
{
    const kiln_export *e = p->e;
    const double *at = e->origin;
    KILN_TRY(check_node_names(e->tree, err));
    if (e->sh_degree > DEGREE_MAX)
        KILN_TRY(kiln_export_note(
            p, err,
            "its tiles hold spherical harmonics up to degree 3; those of degree 4 are left out"));
    if (at[0] != 0 || at[1] != 0 || at[2] != 0)
        KILN_TRY(kiln_export_note(p, err, "its coordinates are relative to %.17g %.17g %.17g",
                                  at[0], at[1], at[2]));
    if (e->frame == KILN_FRAME_AS_IS)
        KILN_TRY(kiln_export_note(p, err,
                                  "its axes are those of 3D Tiles; --frame as-is changes nothing"));
    if (!e->placed)
        KILN_TRY(kiln_export_remark(
            p, err, "it has no place on the globe; --geo LATITUDE,LONGITUDE,HEIGHT gives it one"));
    return kiln_buffer_put(p->plan, NULL, e->n_chunks * sizeof(written_tile), err);
}

/* Tiles of all units, in their order, then parts. */
static kiln_status gather_tiles(kiln_export_parent *p, uint64_t unit, const void *result,
                                size_t bytes, kiln_error *err)
{
    written_tile *tiles;
    const size_t own = sizeof *tiles;
    if (bytes < own || bytes % own || bytes / own > KILN_TILE_PARTS + 1)
        return kiln_fail(err, KILN_E_BUG, "tile %llu has a list of %zu bytes",
                         (unsigned long long)unit, bytes);
    tiles = (written_tile *)(void *)p->plan->data;
    memcpy(&tiles[unit], result, own);
    return kiln_buffer_put(p->plan, (const char *)result + own, bytes - own, err);
}

static const written_tile *written_of(const kiln_export_parent *p, uint32_t *n_parts)
{
    const written_tile *tiles = (const written_tile *)(const void *)p->plan->data;
    *n_parts = (uint32_t)(p->plan->size / sizeof *tiles) - p->e->n_chunks;
    return tiles;
}

/* What became of rows that are far away, and what it costs to hold rows that are not quite as
 * far. */
static kiln_status note_far_rows(kiln_export_parent *p, kiln_error *err)
{
    uint32_t n_parts, coarse = 0, least = KILN_SPZ_FRACTION;
    uint64_t far = 0;
    const written_tile *t = written_of(p, &n_parts);
    for (uint32_t i = 0; i < n_parts; i++) far += t[p->e->n_chunks + i].rows;
    for (uint32_t i = 0; i < p->e->n_chunks; i++) {
        coarse += t[i].rows && t[i].fraction < KILN_SPZ_FRACTION;
        least = t[i].rows && t[i].fraction < least ? t[i].fraction : least;
    }
    if (n_parts)
        KILN_TRY(kiln_export_note(p, err,
                                  "%llu row%s too far away for the codes of nearby tiles; %u "
                                  "tile%s of their own, drawn at every level, hold%s them",
                                  (unsigned long long)far, far == 1 ? " lies" : "s lie", n_parts,
                                  n_parts == 1 ? "" : "s", n_parts == 1 ? "s" : ""));
    if (coarse == 0) return KILN_OK;
    return kiln_export_note(p, err,
                            "the positions of %u tile%s have steps of up to 1/%u instead of "
                            "1/4096, because they reach far",
                            coarse, coarse == 1 ? "" : "s", 1u << least);
}

static void set_box(const written_tile *of, kiln_tile *t)
{
    double lo[3], hi[3];
    kiln_tile_axes(of->of.lo, lo);
    kiln_tile_axes(of->of.hi, hi);
    for (int i = 0; i < 3; i++) {
        t->lo[i] = of->rows ? fmin(lo[i], hi[i]) : INFINITY;
        t->hi[i] = of->rows ? fmax(lo[i], hi[i]) : -INFINITY;
    }
}

static void tile_of(const kiln_export *e, uint32_t chunk, const written_tile *of,
                    const double *parts, kiln_tile *t)
{
    const kiln_export_chunk *c = &e->chunks[chunk];
    const kiln_level_node *node = &e->tree->nodes[c->node];
    *t = (kiln_tile){.parent = KILN_NO_TILE};
    if (of->rows) kiln_tile_uri(node->name, c->level, t->uri);
    t->error = e->edits.moves ? e->edits.move.scale : 1;
    t->error *= kiln_tile_error(c->chunk, parts[c->node], parts[e->tree->n_nodes - 1]);
    set_box(of, t);
}

/* The chunks of each node, coarsest level first, nodes behind their parents: order[i] is the chunk
 * of tile i, last[node] its finest tile.
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
    /* of a node the baked chunk comes first, then its levels, ever coarser */
    for (uint32_t c = 0; c < e->n_chunks; c++) {
        const uint32_t n = e->chunks[c].node;
        order[last[n] - count[n]++] = c;
    }
}

/* Behind a root without content: the tree, and the parts behind it. Names of parts are numbers from
 * 1 on in each unit. */
static void add_parts(const kiln_export *e, const written_tile *parts, uint32_t n_parts,
                      kiln_tile *tiles)
{
    const uint32_t n = e->n_chunks + 1;
    uint32_t number = 0;
    memmove(tiles + 1, tiles, e->n_chunks * sizeof *tiles);
    tiles[0] = (kiln_tile){.parent = KILN_NO_TILE, .error = tiles[1].error};
    for (int c = 0; c < 3; c++) {
        tiles[0].lo[c] = INFINITY;
        tiles[0].hi[c] = -INFINITY;
    }
    for (uint32_t i = 1; i < n; i++)
        tiles[i].parent = tiles[i].parent == KILN_NO_TILE ? 0 : tiles[i].parent + 1;
    for (uint32_t i = 0; i < n_parts; i++) {
        const kiln_export_chunk *c = &e->chunks[parts[i].unit];
        number = i && parts[i - 1].unit == parts[i].unit ? number + 1 : 1;
        kiln_tile *t = &tiles[n + i];
        *t = (kiln_tile){.parent = 0};
        kiln_tile_part_uri(e->tree->nodes[c->node].name, c->level, number, t->uri);
        set_box(&parts[i], t);
    }
}

static kiln_status make_tiles(const kiln_export *e, const written_tile *written, uint32_t n_parts,
                              kiln_tile *tiles, kiln_error *err)
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
        tile_of(e, order[i], &written[order[i]], parts, &tiles[i]);
        if (i && e->chunks[order[i - 1]].node == node)
            tiles[i].parent = i - 1;
        else if (parent != KILN_NO_NODE)
            tiles[i].parent = last[parent];
    }
    if (n_parts) add_parts(e, written + e->n_chunks, n_parts, tiles);
    kiln_tileset_settle(tiles, e->n_chunks + (n_parts ? n_parts + 1 : 0));
done:
    free(order);
    free(count);
    free(last);
    free(parts);
    return st;
}

static void place_tileset(const kiln_export *e, kiln_tileset *t)
{
    char text[64];
    double up[3];
    t->placed = e->placed;
    if (!e->placed) return;
    kiln_export_up_axis(e, text, sizeof text);
    kiln_up_vector(text, up); /* unknown: -y, as of PLYs */
    kiln_tileset_place(e->geo[0], e->geo[1], e->geo[2], up, t->transform);
}

static double extent_of(const kiln_export *e)
{
    float lo[3], hi[3];
    double side[3];
    kiln_tile_core_box(&e->tree->nodes[e->tree->n_nodes - 1], lo, hi);
    for (int c = 0; c < 3; c++) side[c] = (double)hi[c] - (double)lo[c];
    return kiln_vec3_length(side) * (e->edits.moves ? e->edits.move.scale : 1);
}

static kiln_status finish_tileset(kiln_export_parent *p, kiln_error *err)
{
    const kiln_export *e = p->e;
    char path[KILN_PATH_MAX];
    kiln_tile *tiles = NULL;
    kiln_buffer text = {0};
    kiln_status st = KILN_OK;
    uint32_t n_parts;
    const written_tile *written = written_of(p, &n_parts);
    const uint32_t n = e->n_chunks + (n_parts ? n_parts + 1 : 0);
    KILN_GO(KILN_ALLOC(&tiles, n, "tiles", err));
    KILN_GO(make_tiles(e, written, n_parts, tiles, err));
    kiln_tileset t = {.tiles = tiles, .n = n, .extent = extent_of(e)};
    place_tileset(e, &t);
    KILN_GO(kiln_tileset_json(&t, &text, err));
    KILN_GO(kiln_path_join(path, sizeof path, e->temporary, KILN_TILESET_FILE, err));
    KILN_GO(kiln_file_write(path, text.data, text.size, err));
done:
    free(tiles);
    kiln_buffer_release(&text);
    return st;
}

/* ---- worker ---------------------------------------------------------------------------------- */

static uint64_t row_bytes(const kiln_export *e)
{
    uint32_t stride[KILN_SPZ_PLANES];
    kiln_spz_strides(3, tiles_degree(e), stride);
    return kiln_spz_row_bytes(stride);
}

/* Components of a row: means, scales, rotation, opacity, colour. */
static uint64_t row_floats(const kiln_export *e)
{
    return 3 + 3 + 4 + 1 + 3 + kiln_sh_components(e->sh_degree);
}

/* The root cube of the chunk's bake, moved as its rows are: turned, it is a cube of the same size,
 * which suffices here. */
static kiln_tile_core core_of(const kiln_export *e, uint64_t unit)
{
    const kiln_scene *s = &e->bakes[e->chunks[unit].bake].scene;
    kiln_tile_core core = {.half = s->has_root ? s->root_half : 0};
    for (int c = 0; c < 3; c++) core.centre[c] = s->root_centre[c] + s->origin[c];
    if (e->edits.moves) {
        kiln_similarity_rows(&e->edits.move, 1,
                             &(kiln_similarity_planes){.n = 1, .means = core.centre});
        core.half *= e->edits.move.scale;
    }
    for (int c = 0; c < 3; c++) core.centre[c] -= e->base[c];
    return core;
}

/* Can a row of the unit be far? By its bounds; of rows that are moved they say nothing. */
static bool may_have_parts(const kiln_export *e, uint64_t unit)
{
    const kiln_tile_core core = core_of(e, unit);
    const kiln_chunk *c = e->chunks[unit].chunk;
    return e->edits.moves || e->n_bakes > 1 ||
           kiln_tile_may_have_parts(&core, c->box_min, c->box_max);
}

/* Rows, codes, the SPZ, which a buffer takes twice while it grows, and the GLB; of a unit that may
 * have parts, the rows of one. */
static uint64_t tiles_writer_ram(const kiln_export *e, uint64_t unit)
{
    const uint64_t n = e->chunks[unit].n, codes = n * row_bytes(e);
    const uint64_t parts = may_have_parts(e, unit)
                               ? n * (row_floats(e) * sizeof(float) + 1 + 2 * sizeof(uint32_t))
                               : 0;
    return kiln_export_rows_ram(e, unit, KILN_ROWS_SPLAT) + parts + 6 * (codes + codes / 512) +
           ((uint64_t)1 << 20) + KILN_SPZ_DEFLATE_RAM + 2 * kiln_spz_deflate_bound(KILN_SPZ_PIECE) +
           kiln_outputs_ram((KILN_TILE_PARTS + 1) * sizeof(written_tile));
}

static void measure_tile(const kiln_export_rows *r, box *b, double middle[3])
{
    for (int c = 0; c < 3; c++) {
        double lo = INFINITY, hi = -INFINITY;
        b->lo[c] = INFINITY;
        b->hi[c] = -INFINITY;
        for (uint64_t i = 0; i < r->n; i++) {
            const double at = (double)r->means[c * r->n + i];
            const float widest = fmaxf(fmaxf(r->log_scales[i], r->log_scales[r->n + i]),
                                       r->log_scales[2 * r->n + i]);
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
static double centre_means(const kiln_export_rows *r, const double middle[3])
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
static void describe_tile(const kiln_export *e, const kiln_export_rows *r, const double middle[3],
                          kiln_tile_scene *s)
{
    static const float sign[3] = {1, -1, -1};
    *s = (kiln_tile_scene){.n_rows = r->n,
                           .sh_degree = tiles_degree(e),
                           .antialiased = kiln_export_scene(e)->antialiased};
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

/* A row is in its place where a step is no larger than it is. */
static uint64_t small_rows(const kiln_export_rows *r, uint32_t fraction)
{
    const float step = (float)(-(double)fraction * 0.69314718055994531); /* ln of 2^-fraction */
    uint64_t n = 0;
    for (uint64_t i = 0; i < r->n; i++) {
        const float widest =
            fmaxf(fmaxf(r->log_scales[i], r->log_scales[r->n + i]), r->log_scales[2 * r->n + i]);
        n += widest < step;
    }
    return n;
}

static kiln_status pack_tile(kiln_export_worker *x, const kiln_export_rows *r, double farthest,
                             written_tile *out, kiln_buffer *spz, kiln_error *err)
{
    const kiln_export *e = x->e;
    kiln_spz_coding coding = {.sh_degree = tiles_degree(e),
                              .first_bits = KILN_SPZ_FIRST_BITS,
                              .other_bits = KILN_SPZ_OTHER_BITS,
                              .to_rub = true};
    uint32_t stride[KILN_SPZ_PLANES];
    unsigned char *planes[KILN_SPZ_PLANES], header[KILN_SPZ_HEADER];
    size_t bytes[KILN_SPZ_PLANES];
    kiln_spz_clamped clamped = {0};
    const kiln_spz_values values = {
        r->n, r->n, r->means, r->log_scales, r->quats, r->opacity_logits, r->sh0, r->shN};
    kiln_spz_strides(3, coding.sh_degree, stride);
    /* a tile's half edge: what is not held was left out */
    (void)kiln_spz_choose_fraction(farthest, farthest, &coding.fraction);
    out->fraction = coding.fraction;
    if (coding.fraction < KILN_SPZ_FRACTION && e->chunks[out->unit].level == 0)
        x->counts[COUNT_STEPS] += small_rows(r, coding.fraction);
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

static kiln_status put_tile_file(const kiln_export_worker *x, const char *name,
                                 const kiln_buffer *b, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    int fd = -1;
    KILN_TRY(kiln_path_join(path, sizeof path, x->e->temporary, name, err));
    KILN_TRY(kiln_file_create(path, &fd, err));
    kiln_status st = kiln_file_write_at(fd, path, 0, b->data, b->size, err);
    if (close(fd) != 0 && st == KILN_OK) st = kiln_file_write_failed(path, errno, err);
    return st;
}

/* Writes the rows as a file. They are moved to its middle. */
static kiln_status write_file(kiln_export_worker *x, const char *name, kiln_export_rows *rows,
                              written_tile *out, kiln_error *err)
{
    kiln_tile_scene scene;
    kiln_buffer spz = {0}, glb = {0};
    kiln_status st = KILN_OK;
    double middle[3];
    measure_tile(rows, &out->of, middle);
    out->rows = rows->n;
    const double farthest = centre_means(rows, middle);
    describe_tile(x->e, rows, middle, &scene);
    KILN_GO(pack_tile(x, rows, farthest, out, &spz, err));
    KILN_GO(kiln_tile_glb(&scene, spz.data, spz.size, &glb, err));
    KILN_GO(put_tile_file(x, name, &glb, err));
done:
    kiln_buffer_release(&spz);
    kiln_buffer_release(&glb);
    return st;
}

/* Rows of one part, component after component, which may be those of `from` itself: they move to
 * the left. Returns what follows. */
static float *take_part(const float *from, uint64_t n, uint64_t components, const uint8_t *part,
                        uint32_t which, float *to)
{
    for (uint64_t c = 0; c < components; c++)
        for (uint64_t i = 0; i < n; i++)
            if (part[i] == which) *to++ = from[c * n + i];
    return to;
}

static uint64_t rows_of_part(const uint8_t *part, uint64_t n, uint32_t which)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < n; i++) count += part[i] == which;
    return count;
}

static kiln_status write_part(kiln_export_worker *x, uint64_t unit, const kiln_export_rows *rows,
                              const uint8_t *part, uint32_t which, written_tile *out,
                              kiln_error *err)
{
    const kiln_export_chunk *c = &x->e->chunks[unit];
    char name[KILN_TILE_URI];
    float *planes, *at;
    kiln_export_rows some = {.n = rows_of_part(part, rows->n, which)};
    KILN_TRY(KILN_ALLOC_UNSET(&planes, some.n * row_floats(x->e), "rows of a tile", err));
    at = some.means = planes;
    at = some.log_scales = take_part(rows->means, rows->n, 3, part, which, at);
    at = some.quats = take_part(rows->log_scales, rows->n, 3, part, which, at);
    at = some.opacity_logits = take_part(rows->quats, rows->n, 4, part, which, at);
    at = some.sh0 = take_part(rows->opacity_logits, rows->n, 1, part, which, at);
    some.shN = take_part(rows->sh0, rows->n, 3, part, which, at);
    if (rows->shN)
        (void)take_part(rows->shN, rows->n, kiln_sh_components(x->e->sh_degree), part, which,
                        some.shN);
    kiln_tile_part_uri(x->e->tree->nodes[c->node].name, c->level, which, name);
    const kiln_status st = write_file(x, name, &some, out, err);
    free(planes);
    return st;
}

/* The tile's own rows stay, in their order. */
static void keep_own(const kiln_export *e, const uint8_t *part, kiln_export_rows *r)
{
    const uint64_t n = r->n;
    (void)take_part(r->means, n, 3, part, 0, r->means);
    (void)take_part(r->log_scales, n, 3, part, 0, r->log_scales);
    (void)take_part(r->quats, n, 4, part, 0, r->quats);
    (void)take_part(r->opacity_logits, n, 1, part, 0, r->opacity_logits);
    (void)take_part(r->sh0, n, 3, part, 0, r->sh0);
    if (r->shN) (void)take_part(r->shN, n, kiln_sh_components(e->sh_degree), part, 0, r->shN);
    r->n = rows_of_part(part, n, 0);
}

/* Writes what is far into files of its own and takes it out of the rows. */
static kiln_status write_parts(kiln_export_worker *x, uint64_t unit, kiln_export_rows *rows,
                               written_tile *out, uint32_t *n_parts, kiln_error *err)
{
    const kiln_tile_core core = core_of(x->e, unit);
    const uint32_t level = x->e->chunks[unit].level;
    uint8_t *part = NULL;
    uint32_t *work = NULL;
    kiln_status st = KILN_OK;
    KILN_GO(KILN_ALLOC(&part, rows->n, "rows of a tile", err));
    KILN_GO(KILN_ALLOC_UNSET(&work, 2 * rows->n, "rows of a tile", err));
    *n_parts = kiln_tile_parts(&core, level, rows->means, rows->n, part, work);
    for (uint32_t k = 1; k <= *n_parts; k++)
        KILN_GO(write_part(x, unit, rows, part, k, &out[k], err));
    const uint64_t left_out = rows_of_part(part, rows->n, KILN_TILE_LEFT_OUT);
    if (level == 0) x->counts[COUNT_LEFT_OUT] += left_out;
    if (level > 0 && !kiln_tile_knows_core(&core)) x->counts[COUNT_HOLES] += left_out;
    if (rows_of_part(part, rows->n, 0) < rows->n) keep_own(x->e, part, rows);
done:
    free(part);
    free(work);
    return st;
}

static kiln_status write_tile(kiln_export_worker *x, uint64_t unit, kiln_error *err)
{
    const kiln_export_chunk *c = &x->e->chunks[unit];
    char name[KILN_TILE_URI];
    kiln_export_rows rows = {0};
    written_tile out[KILN_TILE_PARTS + 1];
    kiln_status st = KILN_OK;
    uint32_t n_parts = 0;
    memset(out, 0, sizeof out); /* with its padding: it is the unit's result */
    for (uint32_t k = 0; k <= KILN_TILE_PARTS; k++) out[k].unit = (uint32_t)unit;
    KILN_GO(kiln_export_rows_read(x, unit, KILN_ROWS_SPLAT, &rows, err));
    if (may_have_parts(x->e, unit)) KILN_GO(write_parts(x, unit, &rows, out, &n_parts, err));
    kiln_tile_uri(x->e->tree->nodes[c->node].name, c->level, name);
    if (rows.n) KILN_GO(write_file(x, name, &rows, &out[0], err));
    KILN_GO(kiln_export_result(x, out, (n_parts + 1) * sizeof *out, err));
done:
    kiln_export_rows_release(&rows);
    return st;
}

/* ---- what is there --------------------------------------------------------------------------- */

static bool is_tiles_file(const char *name)
{
    return strcmp(name, KILN_TILESET_FILE) == 0 || kiln_tile_uri_is_ours(name);
}

static bool tiles_are_there(const char *folder, json_t *tile)
{
    char path[KILN_PATH_MAX];
    size_t i;
    json_t *child;
    const json_t *content = json_object_get(tile, "content");
    const char *uri = json_string_value(json_object_get(content, "uri"));
    if (content &&
        (!uri || !kiln_tile_uri_is_ours(uri) ||
         kiln_path_join(path, sizeof path, folder, uri, NULL) != KILN_OK || !kiln_is_file(path)))
        return false;
    json_array_foreach(json_object_get(tile, "children"), i, child)
    {
        if (!tiles_are_there(folder, child)) return false; /* as deep as jansson parses, 2048 */
    }
    return true;
}

static bool tiles_are_complete(const char *target)
{
    char path[KILN_PATH_MAX];
    unsigned char *text;
    size_t size;
    json_t *tileset = NULL;
    if (kiln_path_join(path, sizeof path, target, KILN_TILESET_FILE, NULL) != KILN_OK) return false;
    if (kiln_file_read(path, TILESET_MAX, &text, &size, NULL) != KILN_OK) return false;
    const bool parsed =
        kiln_json_parse((const char *)text, size, 0, path, &tileset, NULL, NULL) == KILN_OK &&
        tileset;
    free(text);
    const bool all = parsed && tiles_are_there(target, json_object_get(tileset, "root"));
    json_decref(tileset);
    return all;
}

/* Tiles that have content and nothing below them: the finest of each node, and parts. */
static kiln_status add_leaves(json_t *tile, kiln_buffer *names,
                              kiln_error *err) // NOLINT(misc-no-recursion)
{
    char name[KILN_LEAF_NAME] = "";
    size_t i;
    json_t *child, *children = json_object_get(tile, "children");
    const char *uri = json_string_value(json_object_get(json_object_get(tile, "content"), "uri"));
    _Static_assert((int)KILN_TILE_URI == (int)KILN_LEAF_NAME,
                   "names of tiles are listed as names of leaves");
    json_array_foreach(children, i, child) KILN_TRY(add_leaves(child, names, err));
    if (json_array_size(children) || !uri || !kiln_tile_uri_is_ours(uri)) return KILN_OK;
    (void)snprintf(name, sizeof name, "%s", uri);
    return kiln_buffer_put(names, name, sizeof name, err);
}

static kiln_status list_tile_leaves(const char *last_file, kiln_buffer *names, kiln_error *err)
{
    unsigned char *text;
    size_t size;
    json_t *tileset = NULL;
    KILN_TRY(kiln_file_read(last_file, TILESET_MAX, &text, &size, err));
    kiln_status st = kiln_json_parse((const char *)text, size, 0, last_file, &tileset, NULL, err);
    free(text);
    if (st == KILN_OK && !tileset) st = kiln_fail(err, KILN_E_BUG, "'%s' is not JSON", last_file);
    if (st == KILN_OK) st = add_leaves(json_object_get(tileset, "root"), names, err);
    json_decref(tileset);
    return st;
}

static const kiln_export_round rounds[] = {{.what = "tiles",
                                            .ram = tiles_writer_ram,
                                            .run = write_tile,
                                            .gather = gather_tiles,
                                            .end = note_far_rows}};

const kiln_writer_functions kiln_writer_tiles3d = {.place = KILN_PLACE_FOLDER,
                                                   .relative = true,
                                                   .reader = "gltf",
                                                   .leaves = list_tile_leaves,
                                                   .geo = true,
                                                   .counts = counts,
                                                   .plan = plan_tileset,
                                                   .rounds = rounds,
                                                   .n_rounds = 1,
                                                   .finish = finish_tileset,
                                                   .is_ours = is_tiles_file,
                                                   .last_file = KILN_TILESET_FILE,
                                                   .complete = tiles_are_complete};
