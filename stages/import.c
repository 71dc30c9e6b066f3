/* kiln-import -- reads a scene: Gaussians or points, cameras, photos.
 *
 * 1. The data set is looked through and the files that matter are hashed where they changed: nothing changed, nothing done.
 * 2. A scan in the worker validates the whole file of rows before a manifest is made or touched.
 * 3. Blocks of 65,536 rows are read again, sanitised and stored, each a unit; the root cube is one more.
 * 4. One transaction makes it all current.
 * Memory does not grow with the file: the parent holds 8 bytes a block, the worker one block. */
#include "base/checked.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "base/quote.h"
#include "stages/engine/engine.h"
#include "stages/engine/run_layers.h"
#include "stages/import/blocks.h"
#include "stages/import/cameras/orbit.h"
#include "stages/import/dataset/additions.h"
#include "stages/import/cameras/pinholes.h"
#include "stages/import/dataset/findings.h"
#include "stages/import/dataset/sources.h"
#include "stages/import/import_outputs.h"
#include "stages/import/random_points.h"
#include "stages/import/scan.h"
#include "stages/import/import_scene.h"
#include "stages/import/undistorted/undistorted.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    const char *cameras, *split, *photos, *add, *write_undistorted;
    uint64_t random_points, seed, max_inflated;
    uint32_t up, frame, lod, undistort_filter;
    kiln_move move;
    bool list, list_formats, rehash, dataparser, parts, ignore_distortion;
    double undistort_blank;
} o;

static const kiln_opt options[] = {
    {"cameras", 0, KILN_OPT_PATH, &o.cameras, "FILE", NULL, NULL,
     "cameras from here: cameras.json, transforms.json, a COLMAP folder, nerfstudio's camera_path.json or a list of camera objects",
     KILN_KEYED},
    {"dataparser", 0, KILN_OPT_BOOL, &o.dataparser, NULL, "yes", NULL,
     "move the cameras as nerfstudio moved them for its training, if dataparser_transforms.json lies beside the Gaussians or in "
     "the scene's folder",
     KILN_KEYED | KILN_LATER},
    {"split", 0, KILN_OPT_TEXT, &o.split, "RULE", "auto", NULL,
     "which cameras are test views: every:N (every Nth by name), names:FILE (those that FILE names, one on each line), all-train "
     "(none) or auto: as the scene's files say, else names beginning test/, else every 8th by name",
     KILN_KEYED | KILN_LATER},
    {"photos", 0, KILN_OPT_PATH, &o.photos, "DIR", NULL, NULL,
     "photos are sought here first: the image folder, or the folder that holds it", KILN_KEYED | KILN_LATER},
    {"random-points", 0, KILN_OPT_U64, &o.random_points, "N", "0", "0..4294967294", "make N points when the data set has none",
     KILN_KEYED},
    {"seed", 0, KILN_OPT_U64, &o.seed, "S", "0", NULL, "seed of --random-points: another seed, other points", KILN_KEYED},
    {"up", 0, KILN_OPT_ENUM, &o.up, "AXIS", "auto", "auto|x|-x|y|-y|z|-z",
     "axis that points up, for the orbit of cameras that a scene without cameras gets; auto: the one its files name, else -y",
     KILN_KEYED | KILN_LATER},
    {"frame", 0, KILN_OPT_ENUM, &o.frame, "FRAME", "rub", "rub|as-is",
     "what the numbers of SPZ and glTF files are taken for; rub: what their specifications say (x right, y up, z back; glTF: x "
     "left, "
     "y up, z forward), turned into the axes of PLY; as-is: those of PLY, which many programs write into them",
     KILN_KEYED | KILN_LATER | KILN_NAMED},
    {"lod", 0, KILN_OPT_U32, &o.lod, "N", "0", "0..63", "level of detail of a streamed SOG scene; 0: the finest that is there",
     KILN_KEYED | KILN_LATER},
    {"max-inflated", 0, KILN_OPT_U64, &o.max_inflated, "X", "100", "1..1000000",
     "a packed file that does not say how large it is inside may unpack to X times its size", 0},
    {"add", 0, KILN_OPT_LIST, &o.add, "FILE", NULL, NULL,
     "join the rows of this file, too; behind a ';' each what moves it alone: 'FILE;translate=1,0,0;rotate=0,90,0;scale=2'",
     KILN_KEYED | KILN_LATER | KILN_NAMED},
    {"parts", 0, KILN_OPT_BOOL, &o.parts, NULL, NULL, NULL,
     "SCENE is a folder of splat files that are one scene: all are joined, in the order of their names", KILN_KEYED | KILN_LATER},
    {"translate", 0, KILN_OPT_F64X3, o.move.translate, "X,Y,Z", "0,0,0", NULL,
     "move all that is read, with its cameras: after --scale and --rotate this is added", KILN_KEYED | KILN_LATER | KILN_NAMED},
    {"rotate", 0, KILN_OPT_F64X3, o.move.rotate, "X,Y,Z", "0,0,0", NULL,
     "turn all that is read, with its cameras: degrees about the axis x, then about y, then about z",
     KILN_KEYED | KILN_LATER | KILN_NAMED},
    {"scale", 0, KILN_OPT_F64, &o.move.scale, "S", "1", KILN_MOVE_SCALES,
     "make all that is read S times as large, with its cameras", KILN_KEYED | KILN_LATER | KILN_NAMED},
    {"undistort-blank", 0, KILN_OPT_F64, &o.undistort_blank, "B", "0", "0..1",
     "of the pinhole as which a camera with a lens is drawn: 0: as large as it can be with no blank pixel in its undistorted "
     "photo; "
     "1: as small as it can be with all of the photo (COLMAP's blank_pixels)",
     KILN_KEYED | KILN_LATER},
    {"ignore-distortion", 0, KILN_OPT_BOOL, &o.ignore_distortion, NULL, NULL, NULL,
     "take cameras with a lens for pinholes: draw them with their own focal lengths, compare their photos as they are",
     KILN_KEYED | KILN_LATER},
    {"write-undistorted", 0, KILN_OPT_PATH, &o.write_undistorted, "DIR", NULL, NULL,
     "write undistorted photos (PNG) and a COLMAP model of their pinholes into this new folder, import nothing", KILN_ONCE},
    {"undistort-filter", 0, KILN_OPT_ENUM, &o.undistort_filter, "FILTER", "bilinear", KILN_UNDISTORT_FILTERS,
     "of --write-undistorted: bilinear, as COLMAP's image_undistorter does, or lanczos, which is sharper", 0},
    {"list", 'l', KILN_OPT_BOOL, &o.list, NULL, NULL, NULL, "say what was found and what would be used, import nothing", KILN_ONCE},
    {"list-formats", 0, KILN_OPT_BOOL, &o.list_formats, NULL, NULL, NULL, "name the formats that are read, and end", KILN_ALONE},
    {"rehash", 0, KILN_OPT_BOOL, &o.rehash, NULL, NULL, NULL,
     "hash every source file again, also if its size and time are unchanged", 0},
    {NULL, 0, KILN_OPT_END, NULL, NULL, NULL, NULL, NULL, 0},
};

/* Of --up, by index. */
static const char *const ups[] = {NULL, "x", "-x", "y", "-y", "z", "-z"};

static const kiln_cli cli = {.program = "kiln-import",
                             .summary = "reads a scene into a manifest: Gaussians or points, cameras, photos",
                             .positionals = "SCENE MANIFEST",
                             .n_positionals = 2,
                             .options = options,
                             .common = kiln_common_options};

/* ---- the worker ------------------------------------------------------------------------------------------------------------- */

typedef struct {
    char reader[32];
    kiln_place place;
    kiln_similarity move;
} scan_request;
#define SCAN_UNIT "scan"
#define CUBE_UNIT "root cube"

/* One unit for all files: the origin is of all their rows. */
static kiln_status scan_unit(kiln_worker *w, const scan_request *q, uint32_t n, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_scan *scan = NULL;
    kiln_scan_part *parts = NULL;
    kiln_buffer offsets = {0};
    KILN_GO(KILN_ALLOC(&scan, n, "scan", err));
    KILN_GO(KILN_ALLOC(&parts, n, "files of rows", err));
    for (uint32_t k = 0; k < n; k++) {
        parts[k] = (kiln_scan_part){kiln_reader_named(q[k].reader), kiln_place_at(&q[k].place), q[k].move};
        if (!parts[k].reader) KILN_GO(kiln_fail(err, KILN_E_BUG, "no reader is called '%s'", q[k].reader));
    }
    KILN_GO(kiln_scan_sources(w, parts, n, scan, &offsets, err));
    KILN_GO(kiln_worker_put(w, "scan", scan, n * sizeof *scan, 1, err));
    KILN_GO(kiln_worker_put(w, "offsets", offsets.data, offsets.size, 8, err));
done:
    kiln_buffer_release(&offsets);
    free(parts);
    free(scan);
    return st;
}

static kiln_status unit(kiln_worker *w, const char *name, const void *payload, size_t bytes, kiln_error *err)
{
    if (strcmp(name, KILN_HASH_UNIT) == 0) return kiln_sources_unit(w, payload, bytes, err);
    if (strcmp(name, CUBE_UNIT) == 0) return kiln_cube_unit(w, payload, bytes / sizeof(kiln_cube_part), err);
    if (bytes == sizeof(kiln_spool_request) && (strcmp(name, KILN_UNPACK_UNIT) == 0 || strcmp(name, KILN_SPOOL_UNIT) == 0))
        return kiln_spool_unit(w, payload, err);
    if (strcmp(name, SCAN_UNIT) == 0 && bytes % sizeof(scan_request) == 0)
        return scan_unit(w, payload, (uint32_t)(bytes / sizeof(scan_request)), err);
    if (bytes == sizeof(kiln_undistorted_request)) return kiln_undistorted_unit(w, payload, err);
    if (bytes == sizeof(kiln_block_request)) return kiln_block_unit(w, payload, err);
    return kiln_fail(err, KILN_E_BUG, "import has no unit '%s' of %zu bytes", name, bytes);
}

/* ---- arguments -------------------------------------------------------------------------------------------------------------- */

/* Relative to the folder of this run; a later one may start elsewhere, so the absolute path is what is stored. */
static kiln_status absolute_cameras(kiln_error *err)
{
    char full[KILN_PATH_MAX];
    if (!o.cameras || !kiln_opt_given(&cli, "cameras")) return KILN_OK;
    if (!realpath(o.cameras, full)) return kiln_fail(err, KILN_E_INPUT, "cannot open '%s': %s", o.cameras, strerror(errno));
    return kiln_opt_set(&cli, "cameras", full, "--cameras", err);
}

/* The file of names, too, is stored by its absolute path. */
static kiln_status read_split(kiln_split *split, kiln_error *err)
{
    char full[KILN_PATH_MAX], text[KILN_PATH_MAX];
    KILN_TRY(kiln_split_parse(o.split, split, err));
    if (split->kind != KILN_SPLIT_NAMES || !kiln_opt_given(&cli, "split")) return KILN_OK;
    if (!realpath(split->file, full))
        return kiln_fail(err, KILN_E_INPUT, "cannot open '%s' of --split: %s", split->file, strerror(errno));
    if (snprintf(text, sizeof text, "names:%s", full) >= (int)sizeof text)
        return kiln_fail(err, KILN_E_INPUT, "the path '%s' of --split is too long", full);
    KILN_TRY(kiln_opt_set(&cli, "split", text, "--split", err));
    return kiln_split_parse(o.split, split, err);
}

static kiln_status absolute_photos(kiln_error *err)
{
    char full[KILN_PATH_MAX];
    if (!o.photos || !kiln_opt_given(&cli, "photos")) return KILN_OK;
    if (!realpath(o.photos, full)) return kiln_fail(err, KILN_E_INPUT, "cannot open '%s': %s", o.photos, strerror(errno));
    if (!kiln_is_dir(full))
        return kiln_fail(err, KILN_E_INPUT, "'%s' is no folder; --photos takes the one that holds the photos", full);
    return kiln_opt_set(&cli, "photos", full, "--photos", err);
}

static kiln_status absolute_file(const char *item, kiln_buffer *text, kiln_error *err)
{
    char path[KILN_PATH_MAX], full[KILN_PATH_MAX];
    kiln_move move;
    KILN_TRY(kiln_addition_parse(item, path, &move, err));
    if (!realpath(path, full)) return kiln_fail(err, KILN_E_INPUT, "cannot open '%s' of --add: %s", path, strerror(errno));
    return kiln_addition_text(full, &move, text, err);
}

/* The same of --add, whose items get their one form. */
static kiln_status absolute_added(kiln_error *err)
{
    const kiln_opt *row = options;
    const char *at = o.add;
    char *item = NULL;
    kiln_buffer text = {0};
    kiln_status st = KILN_OK;
    if (!o.add || !kiln_opt_given(&cli, "add")) return KILN_OK;
    while (strcmp(row->name, "add") != 0) row++;
    KILN_GO(KILN_ALLOC(&item, KILN_OPT_TEXT_MAX, "a list", err));
    o.add = NULL;
    while (kiln_opt_list_next(&at, item, KILN_OPT_TEXT_MAX)) {
        text.size = 0;
        KILN_GO(absolute_file(item, &text, err));
        KILN_GO(kiln_opt_list_add(row, (const char *)text.data, err));
    }
done:
    kiln_buffer_release(&text);
    free(item);
    return st;
}

/* ---- key --------------------------------------------------------------------------------------------------------------------- */

static kiln_hash input_key(kiln_run *r, const kiln_import_result *i, const kiln_sources *s)
{
    kiln_hasher *h = kiln_run_key(r);
    kiln_key_text(h, "name", i->data.name);
    kiln_key_text(h, "root", i->data.root);
    kiln_key_text(h, "rows", i->data.rows_path);
    kiln_key_text(h, "reader", i->data.reader ? i->data.reader->name : "");
    for (uint32_t k = 1; k < i->n_parts; k++) {
        kiln_key_text(h, "rows", i->parts[k].path);
        kiln_key_text(h, "reader", i->parts[k].reader->name);
    }
    for (uint32_t k = 0; k < s->n; k++) {
        kiln_key_text(h, "path", s->files[k].path);
        kiln_key_hash(h, "content", s->files[k].hash);
    }
    if (i->data.split_later) kiln_key_text(h, "split", i->data.split_rule);
    if (i->data.n_distorted) kiln_key_u64(h, "pinholes", 1); /* their own ones were stored once */
    return kiln_key_end(h);
}

/* Nothing to do; a file that only looks newer is noted, so that the next run need not read it again. */
static kiln_status finish_fresh(kiln_run *r, const kiln_sources *s, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    if (s->touched) {
        KILN_TRY(kiln_manifest_begin(m, err));
        kiln_status st = kiln_sources_put(m, s->files, s->n, err);
        if (st == KILN_OK) st = kiln_manifest_commit(m, err);
        if (st != KILN_OK) {
            kiln_manifest_rollback(m);
            return st;
        }
    }
    return kiln_run_nothing_to_do(r, err);
}

/* ---- scan ---------------------------------------------------------------------------------------------------------------------
 */

/* Members are read here and not later, so that here is where they must be as they were hashed. */
static kiln_status prepare(kiln_run *r, const char *manifest, kiln_import_result *i, const kiln_sources *s, kiln_error *err)
{
    bool members = false;
    for (uint32_t k = 0; k < i->n_parts; k++) {
        kiln_part *p = &i->parts[k];
        const kiln_source_file *f = kiln_sources_find(s, p->path);
        const kiln_file_info file = {.size = f->size, .mtime_ns = f->mtime_ns, .inode = f->inode};
        KILN_TRY(kiln_prepare(r, manifest, p->reader, p->path, &i->data.read, o.max_inflated, &file, &p->prepared, err));
        members |= p->n_members > 0;
    }
    return members ? kiln_sources_unchanged(s, err) : KILN_OK;
}

static kiln_status take_scans(kiln_run *r, kiln_import_result *i, const kiln_unit *u, uint64_t **offsets, kiln_error *err)
{
    kiln_scan *scans = NULL;
    uint64_t bytes, n_blocks = 0;
    kiln_status st = kiln_unit_data(r, u, "scan", (void **)&scans, &bytes, err);
    if (st == KILN_OK && bytes != i->n_parts * sizeof *scans)
        st = kiln_fail(err, KILN_E_BUG, "the scan gave %llu bytes", (unsigned long long)bytes);
    for (uint32_t k = 0; k < i->n_parts && st == KILN_OK; k++) {
        i->parts[k].scan = scans[k];
        n_blocks += scans[k].n_blocks;
    }
    free(scans);
    if (st == KILN_OK) st = kiln_unit_data(r, u, "offsets", (void **)offsets, &bytes, err);
    if (st == KILN_OK && bytes != n_blocks * sizeof **offsets)
        st = kiln_fail(err, KILN_E_BUG, "the scan gave %llu bytes of offsets", (unsigned long long)bytes);
    return st == KILN_OK ? kiln_join(i->parts, i->n_parts, *offsets, &i->scan, err) : st;
}

static kiln_status run_scan(kiln_run *r, kiln_import_result *i, uint64_t **offsets, kiln_error *err)
{
    kiln_status st = KILN_OK;
    scan_request *q = NULL;
    kiln_unit u = {.name = SCAN_UNIT, .ram = KILN_SCAN_RAM, .volatile_result = true};
    KILN_TRY(KILN_ALLOC(&q, i->n_parts, "files of rows", err));
    for (uint32_t k = 0; k < i->n_parts; k++) {
        snprintf(q[k].reader, sizeof q[k].reader, "%s", i->parts[k].reader->name);
        q[k].place = i->parts[k].prepared.place;
        q[k].move = i->parts[k].move;
    }
    u.payload = q;
    u.payload_bytes = i->n_parts * sizeof *q;
    KILN_GO(kiln_run_units(r, "checking", &u, 1, err));
    KILN_GO(take_scans(r, i, &u, offsets, err));
done:
    free(q);
    kiln_units_release(&u, 1);
    return st;
}

static bool is_blender(const kiln_dataset *d)
{
    for (uint32_t i = 0; i < d->n_findings; i++)
        if (d->findings[i].used && strcmp(d->findings[i].role, "cameras") == 0 &&
            strncmp(kiln_path_base(d->findings[i].path), "transforms_", 11) == 0)
            return true;
    return false;
}

/* Without rows in the data set: random ones if asked for, else a sentence. */
static void plan_without_rows(kiln_import_result *i)
{
    memset(&i->scan, 0, sizeof i->scan);
    i->random = o.random_points > 0 && i->data.n_cameras > 0;
    if (i->random) {
        i->scan.info.kind = KILN_SCENE_POINTS;
        i->scan.info.n_rows = o.random_points;
        i->scan.info.has_rgb = true;
        i->scan.n_blocks = (o.random_points + KILN_BLOCK_ROWS - 1) / KILN_BLOCK_ROWS;
        return;
    }
    kiln_warn("'%s' holds %u cameras but neither Gaussians nor points; --random-points N makes N to start from", i->data.root,
              i->data.n_cameras);
}

static kiln_status scan(kiln_run *r, kiln_import_result *i, uint64_t **offsets, kiln_error *err)
{
    if (i->n_parts) KILN_TRY(run_scan(r, i, offsets, err));
    if (i->scan.info.n_rows == 0) {
        if (i->data.n_cameras == 0)
            return kiln_fail(err, KILN_E_INPUT, "'%s' holds neither Gaussians nor points nor cameras; there is nothing to import",
                             i->data.root);
        plan_without_rows(i);
    } else if (o.random_points) {
        kiln_say("--random-points is not needed: '%s' has rows", i->data.rows_path);
    }
    return KILN_OK;
}

/* ---- blocks --------------------------------------------------------------------------------------------------------------------
 */

static void fill_random(const kiln_import_result *i, const double box[6], uint64_t block, kiln_block_request *q)
{
    const uint64_t first = block * KILN_BLOCK_ROWS, left = i->scan.info.n_rows - first;
    memset(q, 0, sizeof *q);
    snprintf(q->reader, sizeof q->reader, "%s", KILN_RANDOM_READER);
    q->block = block;
    q->first = q->row = first;
    q->n = left < KILN_BLOCK_ROWS ? left : KILN_BLOCK_ROWS;
    q->offset = UINT64_MAX;
    q->seed = o.seed;
    kiln_similarity_identity(&q->move);
    memcpy(q->box, box, sizeof q->box);
}

static void fill_request(const kiln_part *p, const kiln_source_file *file, uint64_t block, kiln_block_request *q)
{
    const uint64_t own = block - p->first_block, first = own * KILN_BLOCK_ROWS, left = p->scan.info.n_rows - first;
    memset(q, 0, sizeof *q);
    q->place = p->prepared.place;
    snprintf(q->reader, sizeof q->reader, "%s", p->reader->name);
    q->file = (kiln_file_info){.size = file->size, .mtime_ns = file->mtime_ns, .inode = file->inode};
    q->block = block;
    q->first = first;
    q->n = left < KILN_BLOCK_ROWS ? left : KILN_BLOCK_ROWS;
    q->offset = p->offsets[own];
    memcpy(q->origin, p->scan.origin, sizeof q->origin);
    memcpy(q->keep, p->scan.keep, sizeof q->keep);
    q->row = p->first_row + first;
    q->move = p->move;
    q->sh_degree = p->scan.info.sh_degree;
    q->has_rgb = p->scan.info.has_rgb;
    q->n_zeros = p->n_zeros;
    memcpy(q->zeros, p->zeros, sizeof q->zeros);
}

/* All that the rows of a part come from: one file, or it and its members in the order of their paths. */
static kiln_hash content_hash(const kiln_part *p, const kiln_sources *s)
{
    const kiln_source_file *file = kiln_sources_find(s, p->path);
    if (p->n_members == 0) return file->hash;
    kiln_hasher *h = kiln_hasher_new();
    kiln_key_hash(h, "content", file->hash);
    for (uint32_t k = 0; k < p->n_members; k++) {
        const kiln_source_file *member = kiln_sources_find(s, p->members[k].text);
        kiln_key_text(h, "member", kiln_path_base(p->members[k].text));
        kiln_key_hash(h, "content", member ? member->hash : (kiln_hash){{0}});
    }
    return kiln_key_end(h);
}

/* What a file alone and not moved does not have is in no key: such a block is the same in a joined scene. */
static void key_join(kiln_hasher *h, const kiln_part *p, const kiln_block_request *q)
{
    if (q->row != q->first) kiln_key_u64(h, "row", q->row);
    if (q->sh_degree != p->file_degree) kiln_key_u64(h, "sh_degree", q->sh_degree);
    if (q->has_rgb != p->file_rgb) kiln_key_u64(h, "has_rgb", q->has_rgb);
    if (!kiln_similarity_is_identity(&q->move)) {
        kiln_key_f64(h, "scale", q->move.scale);
        kiln_key_bytes(h, "rotation", q->move.r, sizeof q->move.r);
        kiln_key_bytes(h, "translation", q->move.t, sizeof q->move.t);
    }
    for (uint32_t z = 0; z < q->n_zeros; z++) {
        kiln_key_text(h, "zeros", q->zeros[z].name);
        kiln_key_u64(h, "type", q->zeros[z].type);
    }
}

/* part NULL: random points */
static kiln_hash block_key(kiln_run *r, const kiln_part *p, const kiln_block_request *q, kiln_hash content)
{
    KILN_KEY_LISTS(kiln_block_request, 5896);
    kiln_hasher *h = kiln_run_key_bare(r, "block");
    kiln_key_text(h, "reader", q->reader);
    kiln_key_hash(h, "content", content);
    if (p && p->reader->has_options) {
        kiln_key_u64(h, "frame", q->place.options.frame);
        kiln_key_u64(h, "lod", q->place.options.lod);
    }
    kiln_key_u64(h, "first", q->first);
    kiln_key_u64(h, "n", q->n);
    kiln_key_bytes(h, "origin", q->origin, sizeof q->origin);
    kiln_key_bytes(h, "keep", q->keep, sizeof q->keep);
    kiln_key_u64(h, "seed", q->seed);
    kiln_key_bytes(h, "box", q->box, sizeof q->box);
    if (p) key_join(h, p, q);
    return kiln_key_end(h);
}

static kiln_status take_counters(kiln_run *r, kiln_import_result *i, const kiln_unit *u, kiln_error *err)
{
    json_t *c = NULL;
    kiln_row_counts counts;
    KILN_TRY(kiln_unit_counters(r, u, &c, err));
    kiln_status st = kiln_unit_refuse(
        r, u, kiln_row_counts_parse(json_object_get(c, "dropped"), json_object_get(c, "clamped"), &counts, err), err);
    if (st == KILN_OK) st = kiln_unit_count(r, u, c, "rows", &counts.read, err);
    if (st == KILN_OK) st = kiln_unit_count(r, u, c, "kept", &counts.kept, err);
    if (st == KILN_OK) {
        kiln_row_counts_add(&i->counts, &counts);
        if (json_array_size(i->dropped_rows) < 100 && json_array_extend(i->dropped_rows, json_object_get(c, "dropped_rows")) != 0)
            st = kiln_fail(err, KILN_E_NOMEM, "out of memory while counting rows");
    }
    json_decref(c);
    return st;
}

static void fill_units(kiln_run *r, const kiln_import_result *i, const kiln_sources *s, kiln_unit *units,
                       kiln_block_request *requests)
{
    double box[6] = {0};
    kiln_hash content = {{0}};
    const kiln_part *p = NULL;
    if (i->random) kiln_random_box(i->data.cameras, i->data.n_cameras, is_blender(&i->data), box);
    for (uint64_t b = 0; b < i->scan.n_blocks; b++) {
        const kiln_part *now = i->random ? NULL : kiln_part_of_block(i->parts, i->n_parts, b);
        if (now && now != p) content = content_hash(now, s);
        p = now;
        if (p)
            fill_request(p, kiln_sources_find(s, p->path), b, &requests[b]);
        else
            fill_random(i, box, b, &requests[b]);
        snprintf(units[b].name, sizeof units[b].name, "block %llu", (unsigned long long)b);
        units[b].key = block_key(r, p, &requests[b], content);
        units[b].payload = &requests[b];
        units[b].payload_bytes = sizeof requests[b];
        units[b].cost = requests[b].n;
        units[b].ram =
            p ? kiln_block_ram(p->reader, &p->scan.info, p->scan.keep) : kiln_block_ram(NULL, &i->scan.info, i->scan.keep);
        units[b].optional = true;
    }
}

static kiln_status run_blocks(kiln_run *r, kiln_import_result *i, const kiln_sources *s, kiln_unit *units,
                              kiln_block_request *requests, kiln_error *err)
{
    fill_units(r, i, s, units, requests);
    KILN_TRY(kiln_run_units(r, "importing", units, i->scan.n_blocks, err));
    for (uint64_t b = 0; b < i->scan.n_blocks; b++) {
        if (!units[b].quarantined) {
            KILN_TRY(kiln_unit_pass(r, &units[b], take_counters(r, i, &units[b], err)));
            continue;
        }
        i->n_missing++;
        i->rows_missing += requests[b].n;
    }
    KILN_TRY(kiln_run_refused(r, err));
    if (i->n_missing == i->scan.n_blocks && i->n_missing > 0)
        return kiln_fail(err, KILN_E_PARTIAL, "no block of '%s' could be imported", i->data.rows_path);
    return KILN_OK;
}

static bool is_cube(const kiln_cube *c)
{
    bool sound = isfinite(c->half) && c->half > 0;
    for (int a = 0; a < 3; a++)
        sound = sound && isfinite(c->centre[a]) && isfinite(c->inner_lo[a]) && isfinite(c->inner_hi[a]) &&
                c->inner_lo[a] <= c->inner_hi[a];
    return sound;
}

static kiln_status run_cube(kiln_run *r, kiln_import_result *i, const kiln_layer *l, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_cube_part *parts = NULL;
    kiln_unit u = {.name = CUBE_UNIT, .ram = kiln_cube_ram(KILN_BLOCK_ROWS)};
    KILN_TRY(KILN_ALLOC(&parts, l->n_chunks, "blocks", err));
    kiln_hasher *h = kiln_run_key_bare(r, "cube");
    for (uint32_t b = 0; b < l->n_chunks; b++) {
        const kiln_plane *means = kiln_chunk_plane(&l->chunks[b], "means");
        parts[b] = (kiln_cube_part){.means = means->data.segments[0], .n = l->chunks[b].count};
        kiln_key_hash(h, "means", parts[b].means);
    }
    u.key = kiln_key_end(h);
    u.payload = parts;
    u.payload_bytes = l->n_chunks * sizeof *parts;
    KILN_GO(kiln_run_units(r, "measuring", &u, 1, err));
    KILN_GO(kiln_unit_struct(r, &u, "cube", &i->cube, sizeof i->cube, err));
    if (!is_cube(&i->cube)) KILN_GO(kiln_unit_refuse(r, &u, kiln_fail(err, KILN_E_IO, "its root cube is none"), err));
done:
    kiln_units_release(&u, 1);
    free(parts);
    return st;
}

/* ---- commit ---------------------------------------------------------------------------------------------------------------------
 */

static kiln_status choose_cameras(kiln_import_result *i, kiln_error *err)
{
    double lo[3], hi[3];
    i->cameras = i->data.cameras;
    i->n_cameras = i->data.n_cameras;
    if (i->n_cameras > 0 || i->counts.kept == 0) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&i->orbit, KILN_ORBIT_CAMERAS, "cameras", err));
    for (int a = 0; a < 3; a++) {
        lo[a] = i->scan.origin[a] + (double)i->cube.inner_lo[a];
        hi[a] = i->scan.origin[a] + (double)i->cube.inner_hi[a];
    }
    const kiln_axis up = kiln_import_up(i);
    kiln_orbit(up.text, lo, hi, i->orbit);
    i->cameras = i->orbit;
    i->n_cameras = KILN_ORBIT_CAMERAS;
    kiln_say("no cameras found; %d stand on an orbit instead, up is %s%s", KILN_ORBIT_CAMERAS, up.text[0] ? up.text : "-y",
             i->up ? "" : " (see --up)");
    return KILN_OK;
}

typedef struct {
    const kiln_import_result *result;
    const kiln_sources *sources;
    kiln_layer *layer; /* NULL: no rows */
    kiln_scene scene;
} commit_context;

static kiln_status make(kiln_run *r, kiln_manifest *m, void *context, kiln_error *err)
{
    commit_context *c = context;
    KILN_TRY(kiln_stage_outputs_clear(m, "import", err));
    if (c->layer) KILN_TRY(kiln_run_put_layer(r, c->layer, err));
    KILN_TRY(kiln_scene_put(m, &c->scene, err));
    KILN_TRY(kiln_cameras_put(m, c->result->cameras, c->result->n_cameras, err));
    return kiln_sources_put(m, c->sources->files, c->sources->n, err);
}

static kiln_status commit(kiln_run *r, kiln_import_result *i, const kiln_sources *s, kiln_layer *layer, kiln_hash key,
                          kiln_error *err)
{
    kiln_status st = KILN_OK;
    commit_context *c = NULL;
    KILN_TRY(KILN_ALLOC(&c, 1, "scene", err));
    c->result = i;
    c->sources = s;
    c->layer = layer;
    KILN_GO(choose_cameras(i, err));
    KILN_GO(kiln_import_scene(i, &c->scene, err));
    KILN_GO(kiln_import_report(i, kiln_run_report(r), err));
    KILN_GO(kiln_sources_unchanged(s, err));
    KILN_GO(kiln_run_commit(r, key, make, c, err));
    if (i->counts.kept == 0)
        kiln_say("%u cameras", i->n_cameras);
    else
        kiln_say("%llu %s, %u cameras", (unsigned long long)i->counts.kept,
                 i->scan.info.kind == KILN_SCENE_SPLATS ? "Gaussians" : "points", i->n_cameras);
done:
    free(c);
    return st;
}

/* ---- the run
 * --------------------------------------------------------------------------------------------------------------------- */

static kiln_status open_existing(kiln_run *r, const char *path, kiln_error *err)
{
    kiln_manifest *m = NULL;
    struct stat s;
    if (stat(path, &s) != 0 || s.st_size == 0) return KILN_OK; /* made later, once the scene is known to be good */
    /* not WRITE: an import that was killed in its first moment leaves a database without tables, which this one fills */
    KILN_TRY(kiln_manifest_open(path, o.list || o.write_undistorted ? KILN_OPEN_READ : KILN_OPEN_CREATE, "import",
                                kiln_run_allow_network(r), &m, err));
    kiln_run_set_manifest(r, m);
    return kiln_run_load_parameters(r, err);
}

static kiln_status create(kiln_run *r, const char *path, kiln_error *err)
{
    kiln_manifest *m = NULL;
    if (kiln_run_manifest(r)) return KILN_OK;
    KILN_TRY(kiln_manifest_open(path, KILN_OPEN_CREATE, "import", kiln_run_allow_network(r), &m, err));
    kiln_run_set_manifest(r, m);
    return KILN_OK;
}

static kiln_status import_rows(kiln_run *r, kiln_import_result *i, const kiln_sources *s, kiln_hash key, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_unit *units = NULL;
    kiln_block_request *requests = NULL;
    kiln_layer *layer = NULL;
    uint64_t n = i->scan.n_blocks;
    KILN_GO(KILN_ALLOC(&units, n, "units", err));
    KILN_GO(KILN_ALLOC(&requests, n, "units", err));
    KILN_GO(run_blocks(r, i, s, units, requests, err));
    if (n) {
        KILN_GO(kiln_import_layer(i, r, units, &layer, err));
        KILN_GO(run_cube(r, i, layer, err));
    }
    KILN_GO(commit(r, i, s, layer, key, err));
done:
    kiln_layer_free(layer);
    if (units) kiln_units_release(units, n);
    free(requests);
    free(units);
    return st;
}

/* What a block takes, by the header of its file; what is wrong with that, the scan tells. */
static uint64_t block_ram(const kiln_part *p, const kiln_read_options *read, uint64_t *n_blocks)
{
    kiln_source_info *info = NULL;
    const kiln_reader *reader;
    uint8_t keep[KILN_EXTRAS_MAX];
    uint64_t ram = 0;
    kiln_error unread;
    memset(keep, 1, sizeof keep);
    if (KILN_ALLOC(&info, 1, "a header", &unread) == KILN_OK &&
        kiln_source_look(p->path, read, &reader, info, &unread) == KILN_OK) {
        ram = kiln_max_u64(kiln_scan_ram(reader, info), kiln_block_ram(reader, info, keep));
        *n_blocks += kiln_div_up(info->n_rows, KILN_BLOCK_ROWS);
    }
    free(info);
    return ram;
}

/* Where memory is too short for the first lists, what is named has room for those behind them, too. */
static void foresee(kiln_run *r, const kiln_import_result *i)
{
    uint64_t n_blocks = 0, block = 0;
    if (kiln_run_unit_ram(r) > 2 * (uint64_t)KILN_SCAN_RAM) return;
    for (uint32_t k = 0; k < i->n_parts; k++) block = kiln_max_u64(block, block_ram(&i->parts[k], &i->data.read, &n_blocks));
    kiln_run_foresee_ram(r, kiln_max_u64(block, kiln_max_u64(KILN_SCAN_RAM, kiln_cube_ram(KILN_BLOCK_ROWS))),
                         n_blocks ? n_blocks : 1);
}

/* Cameras are moved here once; all that is made of them lies in the moved world. */
static kiln_status plan_parts(kiln_import_result *i, kiln_error *err)
{
    kiln_similarity move;
    i->move = o.move;
    kiln_similarity_of_move(&i->move, &move);
    for (uint32_t c = 0; c < i->data.n_cameras; c++) kiln_similarity_pose(&move, i->data.cameras[c].r, i->data.cameras[c].t);
    return kiln_parts_make(&i->data, &i->move, &i->parts, &i->n_parts, err);
}

/* nerfstudio's exporter leaves the file that says where its Gaussians lie in the folder of the training. */
static void warn_of_world(const kiln_import_result *i)
{
    const kiln_dataset *d = &i->data;
    if (strcmp(i->scan.info.writer, "nerfstudio") != 0 || i->scan.info.kind != KILN_SCENE_SPLATS || d->has_dataparser) return;
    if (d->n_cameras > 0 && d->world != KILN_WORLD_OF_ROWS)
        kiln_warn("the Gaussians are of nerfstudio, which trains in a world of its own; if the cameras do not fit, copy "
                  "dataparser_transforms.json from the folder of the training to '%s'",
                  d->root);
}

static kiln_status import_dataset(kiln_run *r, const char *manifest, kiln_import_result *i, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_sources sources = {0};
    uint64_t *offsets = NULL;
    bool fresh = false;
    KILN_GO(kiln_sources_collect(&i->data, &sources, err));
    foresee(r, i);
    KILN_GO(kiln_sources_hash(&sources, r, o.rehash, err));
    kiln_hash key = input_key(r, i, &sources);
    if (kiln_run_manifest(r)) KILN_GO(kiln_run_is_fresh(r, key, &fresh, err));
    if (fresh) {
        st = finish_fresh(r, &sources, err);
        goto done;
    }
    KILN_GO(prepare(r, manifest, i, &sources, err));
    KILN_GO(scan(r, i, &offsets, err));
    kiln_join_say(i->parts, i->n_parts);
    kiln_findings_say(&i->data); /* now that it is good: what is refused gets its one sentence alone */
    warn_of_world(i);
    KILN_GO(create(r, manifest, err));
    KILN_GO(import_rows(r, i, &sources, key, err));
done:
    free(offsets);
    kiln_sources_release(&sources);
    return st;
}

static kiln_status run(kiln_run *r, kiln_error *err)
{
    const char *scene = kiln_run_args(r)->positional[0], *manifest = kiln_run_args(r)->positional[1];
    char avoid[KILN_PATH_MAX];
    kiln_status st = KILN_OK;
    kiln_import_result *i = NULL;
    kiln_split split;
    KILN_TRY(absolute_cameras(err));
    KILN_TRY(absolute_photos(err));
    KILN_TRY(absolute_added(err));
    KILN_TRY(read_split(&split, err)); /* before anything is opened: what is typed wrongly is a mistake in usage */
    KILN_TRY(open_existing(r, manifest, err));
    KILN_TRY(read_split(&split, err)); /* again, as a stored rule may have come */
    KILN_TRY(kiln_folder_to_avoid(scene, manifest, avoid, err));
    KILN_TRY(KILN_ALLOC(&i, 1, "import", err));
    i->dropped_rows = json_array();
    const kiln_dataset_wishes wishes = {.cameras = o.cameras,
                                        .photos = o.photos,
                                        .avoid = avoid,
                                        .add = o.add,
                                        .parts = o.parts,
                                        .read = {.frame = (kiln_source_frame)o.frame, .lod = o.lod},
                                        .split = split,
                                        .no_dataparser = !o.dataparser};
    KILN_GO(kiln_dataset_find(scene, &wishes, &i->data, err));
    KILN_GO(kiln_pinholes_set(&i->data, o.undistort_blank, o.ignore_distortion, err));
    if (o.write_undistorted) { /* in the world of the files, where points stay, too */
        st = kiln_undistorted_write(r, &i->data, o.write_undistorted, (kiln_undistort_filter)o.undistort_filter, err);
        goto done;
    }
    KILN_GO(plan_parts(i, err));
    i->up = ups[o.up];
    i->has_background = i->data.has_background;
    memcpy(i->background, i->data.background, sizeof i->background);
    st = o.list ? kiln_findings_list(r, &i->data, err) : import_dataset(r, manifest, i, err);
done:
    for (uint32_t k = 0; k < i->n_parts; k++) kiln_prepared_release(&i->parts[k].prepared);
    free(i->parts);
    kiln_dataset_release(&i->data);
    json_decref(i->dropped_rows);
    free(i->orbit);
    free(i);
    return st;
}

int main(int argc, char **argv)
{
    static const kiln_stage_program program = {.name = "import",
                                               .cli = &cli,
                                               .opens_itself = true,
                                               .packs = true,
                                               .manifest_arg = 1,
                                               .lists = &o.list_formats,
                                               .list = kiln_readers_list,
                                               .run = run,
                                               .unit = unit,
                                               .outputs = kiln_import_outputs};
    return kiln_program_main(&program, argc, argv);
}
