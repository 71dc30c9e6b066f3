/* manifest -- the bake: one SQLite file with zstd blobs (SCHEMA.md, manifest.sql).
 *
 * A kiln_manifest is one connection and belongs to one thread. Returned structs own their memory
 * and are freed by the matching _free; strings passed in are borrowed for the call. Writers hold
 * the lock (one per manifest, any number of readers). Errors: KILN_E_IO (damaged, disk full; with
 * SQLite's own text), KILN_E_BUSY (names the holder), KILN_E_INPUT (not a manifest, another schema,
 * or an impossible row), KILN_E_STALE (the requested data do not exist). A manifest may come from a
 * stranger. The functions below check what they return (row_check.h), whatever the file's own
 * CHECKs and indexes say. The functions kiln_..._put of cameras, scenes and layers refuse what
 * could not be read again.
 */
#ifndef KILN_SCHEMA_MANIFEST_H
#define KILN_SCHEMA_MANIFEST_H

#include "base/extern_c.h"
#include "base/status.h"
#include "schema/codec.h"
#include "schema/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

typedef struct kiln_manifest kiln_manifest;
/* one of the things that kiln_manifest_verify found */
typedef void kiln_problem_fn(void *context, const char *sentence);

/* ---- open, lock, close ----------------------------------------------------------------------- */
typedef enum {
    /* must exist; read-only, never blocks a writer; works on read-only media. On a network file
     * system while a claim stands it is KILN_OPEN_FROZEN. */
    KILN_OPEN_READ,
    KILN_OPEN_WRITE,  /* must exist; takes the lock or KILN_E_BUSY saying who holds it */
    KILN_OPEN_CREATE, /* made when missing; takes the lock */
    /* While a claim stands (claim.h), which lets no other writer in: */
    KILN_OPEN_CLAIMED, /* as KILN_OPEN_WRITE, for the one that gathers */
    /* read-only, without any lock, and makes no file beside it, on a network file system too: for
     * parts. KILN_E_BUSY while somebody writes, or has left a log that is not in the file yet */
    KILN_OPEN_FROZEN,
} kiln_open_mode;

/* Opens a manifest. allow_network: also on a network file system, which is KILN_E_IO otherwise.
 * program and stage are written into the lock. While a claim is open, KILN_OPEN_WRITE and _CREATE
 * are KILN_E_BUSY. */
kiln_status kiln_manifest_open(const char *path, kiln_open_mode mode, const char *stage,
                               bool allow_network, kiln_manifest **out,
                               kiln_error *err) KILN_MUST_CHECK;
/* ---- on a network file system: a writer's own copy (remote.c) -------------------------------- */
/* Says whether the file is, or would be, on a file system of another machine, where SQLite's locks
 * cannot be trusted. The environment variable KILN_NETWORK_FS may name a folder that counts as one.
 * KILN_E_INPUT: its folder cannot be accessed. */
kiln_status kiln_manifest_is_remote(const char *path, bool *remote,
                                    kiln_error *err) KILN_MUST_CHECK;
/* Writes the name that copies of this manifest have in `folder`. It is the same in each process of
 * this machine. The manifest need not exist. */
kiln_status kiln_manifest_copy_path(const char *path, const char *folder, char out[4096],
                                    kiln_error *err) KILN_MUST_CHECK;
/* As kiln_manifest_open, for a writer that works on a copy at `copy`, on a local disk; mode must be
 * a writing one. The lock is the manifest's. Other programs of this machine may read the copy
 * meanwhile. Only kiln_manifest_publish makes it the manifest; closing removes it, so that a writer
 * that fails or is killed leaves the manifest as it was. KILN_E_IO: `copy` is on a network file
 * system, too, or its disk is full. KILN_E_BUSY: the manifest has a log that is not in it yet. */
kiln_status kiln_manifest_open_copy(const char *path, const char *copy, kiln_open_mode mode,
                                    const char *stage, kiln_manifest **out,
                                    kiln_error *err) KILN_MUST_CHECK;
/* Puts what is committed into the manifest's place in one step; it is on the disk when the call
 * returns. Outside a transaction. Does nothing if nothing has changed since the last time. If the
 * manifest is opened in its place, this empties its log as far as readers let it, because
 * KILN_OPEN_FROZEN refuses a log with content. KILN_E_BUSY: a reader of the copy keeps the log from
 * being emptied. */
kiln_status kiln_manifest_publish(kiln_manifest *m, kiln_error *err) KILN_MUST_CHECK;
/* Empties the log that a killed gather has left under its claim, because KILN_OPEN_FROZEN refuses
 * it. Does nothing if no log exists. KILN_E_BUSY: another program writes. Other errors as
 * kiln_manifest_open. */
kiln_status kiln_manifest_recover(const char *path, const char *stage, bool allow_network,
                                  kiln_error *err) KILN_MUST_CHECK;

/* Gets SQLite's change counter of the file. It changes when a writer stores something under the
 * same claim. So a reader that has opened the manifest frozen can tell whether it read a single
 * state. KILN_E_IO. */
kiln_status kiln_manifest_changes(kiln_manifest *m, uint32_t *counter,
                                  kiln_error *err) KILN_MUST_CHECK;

/* Closes the manifest. A writer first runs checkpoint(TRUNCATE). Accepts NULL. */
void kiln_manifest_close(kiln_manifest *m);
/* Says whether this open made the file. If so, kiln_manifest_discard closes and removes it and its
 * companions. */
bool kiln_manifest_created(const kiln_manifest *m);
void kiln_manifest_discard(kiln_manifest *m);
const char *kiln_manifest_path(const kiln_manifest *m);
/* Returns by how many bytes the page cache of a writer's connection may still grow. m NULL: of one
 * that is opened later. */
uint64_t kiln_manifest_cache_left(const kiln_manifest *m);
/* Says whether `path` is the manifest or the name of a file beside it that belongs to it, even if
 * that does not exist: nothing else may be written there. Links are followed. Opens nothing. */
bool kiln_manifest_owns(const char *manifest, const char *path);
/* Returns the SQLite handle, for kiln-info and tests; it is a void pointer so that this header
 * needs no sqlite3.h. */
void *kiln_manifest_sqlite(kiln_manifest *m);

/* Begin and end one short transaction. Call rollback after a failure; commit ends with a passive
 * checkpoint. Do not nest. */
kiln_status kiln_manifest_begin(kiln_manifest *m, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_manifest_commit(kiln_manifest *m, kiln_error *err) KILN_MUST_CHECK;
void kiln_manifest_rollback(kiln_manifest *m);
/* Begins a transaction of a reader: everything read until kiln_manifest_rollback belongs to one
 * state. *state: a number that differs from that of this connection's last transaction if another
 * connection has written in between. */
kiln_status kiln_manifest_begin_read(kiln_manifest *m, int64_t *state,
                                     kiln_error *err) KILN_MUST_CHECK;
/* Says whether a program writes the manifest at present, and the name of its stage ("": unknown).
 * Also false if this process may not know. */
bool kiln_manifest_is_written(const char *path, char stage[32]);

/* ---- blobs ----------------------------------------------------------------------------------- */
/* Stores a blob unless one with its hash exists. Inside a transaction. */
kiln_status kiln_manifest_put_blob(kiln_manifest *m, const kiln_blob *b,
                                   kiln_error *err) KILN_MUST_CHECK;
/* Reads the raw bytes of a blob into dst[raw_bytes] and checks their hash. KILN_E_IO: it is
 * missing, damaged or has another size. */
kiln_status kiln_manifest_get_blob(kiln_manifest *m, kiln_hash hash, void *dst, uint64_t raw_bytes,
                                   kiln_error *err) KILN_MUST_CHECK;
/* As above, but allocates *data (free it) and sets *raw_bytes. */
kiln_status kiln_manifest_read_blob(kiln_manifest *m, kiln_hash hash, void **data,
                                    uint64_t *raw_bytes, kiln_error *err) KILN_MUST_CHECK;
/* false too where it cannot be read */
bool kiln_manifest_has_blob(kiln_manifest *m, kiln_hash hash);

/* An array longer than KILN_BLOB_MAX is a list of segments of KILN_BLOB_MAX bytes, the last one
 * shorter. */
typedef struct {
    uint64_t raw_bytes;
    uint32_t n_segments;
    kiln_hash *segments; /* owned by the struct that holds the array */
} kiln_array;
kiln_status kiln_manifest_read_array(kiln_manifest *m, const kiln_array *a, void *dst,
                                     kiln_error *err) KILN_MUST_CHECK;

/* ---- units: the build cache ------------------------------------------------------------------ */
typedef struct {
    char name[96]; /* "means", "plan", "extra/nx", ...; unique in its unit together with segment */
    uint32_t segment;
    kiln_hash hash;
    uint64_t raw_bytes;
    uint32_t elem;
} kiln_unit_output;

typedef struct {
    uint32_t n;
    kiln_unit_output *outputs; /* sorted by (name, segment) */
    char *counters;            /* JSON object as the worker wrote it, never NULL */
} kiln_unit_result;

/* Gets a unit. *found is false and *out is empty if no unit of that key is done. */
kiln_status kiln_unit_find(kiln_manifest *m, kiln_hash key, bool *found, kiln_unit_result *out,
                           kiln_error *err) KILN_MUST_CHECK;
/* Gets only the counters; free(*counters). */
kiln_status kiln_unit_counters_find(kiln_manifest *m, kiln_hash key, bool *found, char **counters,
                                    kiln_error *err) KILN_MUST_CHECK;
/* Calls `visit` with the counters of each unit of this stage and name, in no order. What `visit`
 * returns ends it. */
typedef kiln_status kiln_unit_counters_fn(void *context, const char *counters, kiln_error *err);
kiln_status kiln_unit_counters_visit(kiln_manifest *m, const char *stage, const char *name,
                                     kiln_unit_counters_fn *visit, void *context,
                                     kiln_error *err) KILN_MUST_CHECK;
/* A finished unit. */
typedef struct {
    kiln_hash key;
    const char *stage, *name;
    int64_t wall_ns;
} kiln_unit_done;
/* Inserts blobs (n of them, in the order of the result's outputs; a NULL packed means: the blob is
 * already stored), the unit row and its outputs; takes the unit out of quarantine. Inside a
 * transaction. A unit that exists already is left alone. */
kiln_status kiln_unit_store(kiln_manifest *m, const kiln_unit_done *u, const kiln_unit_result *r,
                            const kiln_blob *blobs, kiln_error *err) KILN_MUST_CHECK;
void kiln_unit_result_release(kiln_unit_result *r);
/* Gets the outputs called `name` as one array (segments in order). KILN_E_STALE: the unit has none.
 * Release a->segments with free. */
kiln_status kiln_unit_result_array(const kiln_unit_result *r, const char *name, kiln_array *a,
                                   kiln_error *err) KILN_MUST_CHECK;
/* Reads that whole array; free(*data). */
kiln_status kiln_unit_result_read(kiln_manifest *m, const kiln_unit_result *r, const char *name,
                                  void **data, uint64_t *bytes, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_unit_forget(kiln_manifest *m, kiln_hash key, kiln_error *err) KILN_MUST_CHECK;
/* Stores which units the current output of a stage was made from, for kiln-gc. Replaces the earlier
 * list. keys: sorted, each once. Inside a transaction. */
kiln_status kiln_units_used_put(kiln_manifest *m, const char *stage, const kiln_hash *keys,
                                uint64_t n, kiln_error *err) KILN_MUST_CHECK;
/* Gets that list; free(*keys). *known is false, without keys, if none is stored: an older version
 * made the output, or it does not exist. */
kiln_status kiln_units_used_get(kiln_manifest *m, const char *stage, bool *known, kiln_hash **keys,
                                uint64_t *n, kiln_error *err) KILN_MUST_CHECK;
/* Returns the key of the unit that stores the list. */
kiln_hash kiln_units_used_key(const char *stage);

/* ---- bulk data ------------------------------------------------------------------------------- */
/* Stores what belongs into one transaction, through `to` alone: m, or a second connection to the
 * same file. It may be called again after a failure; then nothing of the first call is stored. */
typedef kiln_status kiln_bulk_store_fn(kiln_manifest *to, void *context, kiln_error *err);
/* Calls `store` in a transaction of its own. bytes: about how many bytes of new blobs it stores.
 * From 1 MiB on, a second connection writes new pages once, in their place (direct.c); it takes
 * KILN_BULK_RAM at most. With fewer, m writes them twice, through the log; so bytes = 0 keeps the
 * second connection closed. Readers see an ordinary commit either way. No transaction of m may be
 * open, and nothing else may use m meanwhile. */
enum { KILN_BULK_RAM = 23 << 20 };
/* Sets how many CPU threads this process and its children may use in total; 1 at first. With enough
 * of them, a separate thread writes new pages during kiln_bulk_store; it ends before the
 * transaction does. Call it between transactions. */
void kiln_bulk_use_threads(kiln_manifest *m, unsigned threads);
/* on: blobs that kiln_bulk_store stores from now on leave the page cache once they are on the disk,
 * because nothing reads them soon. Storing takes less time then. Call it between transactions. */
void kiln_bulk_pass(kiln_manifest *m, bool on);
kiln_status kiln_bulk_store(kiln_manifest *m, uint64_t bytes, kiln_bulk_store_fn *store,
                            void *context, kiln_error *err) KILN_MUST_CHECK;

/* ---- quarantine: units that failed on every device ------------------------------------------- */
typedef struct {
    kiln_hash key;
    char stage[32], name[160];
    uint32_t attempts;
    char device[160]; /* where it failed last */
    char reason[1024];
    int64_t failed_ns;
} kiln_quarantine_row;
/* Stores a row, and replaces one of the same key. kiln_unit_store removes it, because a finished
 * unit leaves the quarantine. */
kiln_status kiln_quarantine_put(kiln_manifest *m, const kiln_quarantine_row *row,
                                kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_quarantine_remove(kiln_manifest *m, kiln_hash key,
                                   kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_quarantine_clear(kiln_manifest *m, const char *stage,
                                  kiln_error *err) KILN_MUST_CHECK;
/* Gets the rows of a stage, sorted by name. free(*out). */
kiln_status kiln_quarantine_get(kiln_manifest *m, const char *stage, kiln_quarantine_row **out,
                                uint32_t *n, kiln_error *err) KILN_MUST_CHECK;

/* ---- scene ----------------------------------------------------------------------------------- */
typedef enum { KILN_SCENE_NONE, KILN_SCENE_POINTS, KILN_SCENE_SPLATS } kiln_scene_kind;

typedef struct {
    char name[256];
    kiln_scene_kind kind;
    char source_path[4096]; /* the chosen splat or point file, "" when none */
    char source_format[32]; /* reader's name */
    uint64_t rows_read, rows_dropped;
    uint32_t sh_degree;
    bool antialiased;
    char frame[64];   /* "opencv", "opengl", "" unknown */
    char up_axis[64]; /* "y", "-y", "z", "0 0.5 1"; "" unknown */
    char unit[32];
    double origin[3];      /* float64, subtracted from every coordinate and pose */
    char transforms[2048]; /* JSON array: what was applied to coordinates, in order */
    double root_centre[3], root_half;
    bool has_root;
    bool has_background;
    double background[3];
    /* JSON object: header comments, counters by reason, cfg_args, what export needs to be
     * lossless */
    char notes[8192];
} kiln_scene;
/* KILN_E_STALE: nothing imported */
kiln_status kiln_scene_get(kiln_manifest *m, kiln_scene *out, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_scene_put(kiln_manifest *m, const kiln_scene *s, kiln_error *err) KILN_MUST_CHECK;

typedef struct {
    const char *path; /* absolute */
    char role[32];    /* "splats", "points", "cameras", "photo", ... */
    uint64_t size;
    int64_t mtime_ns;
    uint64_t inode;
    kiln_hash hash;
} kiln_source_file;
/* Gets the source files. free(*out), which includes the paths. */
kiln_status kiln_sources_get(kiln_manifest *m, kiln_source_file **out, uint32_t *n,
                             kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_sources_put(kiln_manifest *m, const kiln_source_file *files, uint32_t n,
                             kiln_error *err) KILN_MUST_CHECK; /* replaces all */
/* Calls `visit` for each source file, in the order of their paths, without holding all of them.
 * What `visit` returns ends it. */
typedef kiln_status kiln_source_visit_fn(void *context, const kiln_source_file *f, kiln_error *err);
kiln_status kiln_sources_visit(kiln_manifest *m, kiln_source_visit_fn *visit, void *context,
                               kiln_error *err) KILN_MUST_CHECK;

/* ---- cameras --------------------------------------------------------------------------------- */
enum { KILN_CAMERA_PARAMS = 16, KILN_CAMERA_NAME = 1025 }; /* room for the longest name */
typedef struct {
    const char *name; /* shorter than KILN_CAMERA_NAME. Others own it, as photo and mask */
    /* cam_from_world, row-major; x right, y down, z forward; world as in the source (origin not
     * subtracted) */
    double r[9], t[3];
    uint32_t width, height;
    double fx, fy, cx, cy; /* pixels; centre of the first pixel at 0.5 */
    char model[40];        /* COLMAP model name: "PINHOLE", "OPENCV", ... */
    uint32_t n_params;
    /* all parameters of that model, COLMAP order, scaled to width x height */
    double params[KILN_CAMERA_PARAMS];
    /* the photo has a lens: size, fx .. cy are of its pinhole, params of the photo */
    bool distorted;
    bool synthetic;    /* made by us on an orbit */
    char split[8];     /* "train" or "test" */
    const char *photo; /* absolute path, "" when there is none; never NULL */
    /* as it is compared: turned where its EXIF orientation is followed */
    uint32_t photo_width, photo_height;
    const char *mask;                 /* of the photo: absolute path, "" when there is none */
    uint32_t mask_width, mask_height; /* as the file says */
} kiln_camera;
/* Approximate sizes for estimates: the rows of the largest layer, the cameras, and the pixels of
 * all their pictures. Zeros if nothing is imported. Reads only the numbers. */
typedef struct {
    double rows, cameras, pixels;
} kiln_scene_size;
kiln_status kiln_scene_size_get(kiln_manifest *m, kiln_scene_size *out,
                                kiln_error *err) KILN_MUST_CHECK;
/* Gets all cameras, sorted by name (bytewise). free(*out), which includes the texts. */
kiln_status kiln_cameras_get(kiln_manifest *m, kiln_camera **out, uint32_t *n,
                             kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_cameras_put(kiln_manifest *m, const kiln_camera *cameras, uint32_t n,
                             kiln_error *err) KILN_MUST_CHECK; /* replaces all */
/* Calls `each` for one camera after the other, sorted by name. *c and its texts last until it
 * returns. One is in memory at a time. In one transaction. KILN_E_INPUT: a camera occurs twice.
 * What `each` returns ends it, unless it is KILN_OK. */
typedef kiln_status kiln_camera_fn(void *context, const kiln_camera *c, kiln_error *err);
kiln_status kiln_cameras_each(kiln_manifest *m, kiln_camera_fn *each, void *context,
                              kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_camera_exists(kiln_manifest *m, const char *name, bool *exists,
                               kiln_error *err) KILN_MUST_CHECK;
/* Calls `visit` for each camera that has a photo, in no order, without holding all of them. What
 * `visit` returns ends it. */
typedef kiln_status kiln_photo_visit_fn(void *context, const char *camera, const char *photo,
                                        kiln_error *err);
kiln_status kiln_photos_visit(kiln_manifest *m, kiln_photo_visit_fn *visit, void *context,
                              kiln_error *err) KILN_MUST_CHECK;
/* Returns the hash of what the picture depends on: pose, size, intrinsics, model, params. Name,
 * split, photo and mask are not included. */
kiln_hash kiln_camera_hash(const kiln_camera *c);

/* ---- layers ---------------------------------------------------------------------------------- */
typedef enum {
    KILN_TYPE_U8,
    KILN_TYPE_I8,
    KILN_TYPE_U16,
    KILN_TYPE_I16,
    KILN_TYPE_U32,
    KILN_TYPE_I32,
    KILN_TYPE_F32,
    KILN_TYPE_F64
} kiln_type;
const char *kiln_type_name(kiln_type t); /* "u8" ... "f64" */
bool kiln_type_find(const char *name, kiln_type *out);
uint32_t kiln_type_size(kiln_type t);

typedef struct {
    char name[96]; /* "means", "extra/nx" */
    kiln_type type;
    uint32_t components; /* planar: component after component, count elements each */
    kiln_array data;
} kiln_plane;

enum {
    KILN_LEVELS_MAX = 32, /* of detail: the coarsest one that there can be */
    KILN_ERROR_STEPS = 8, /* footprints at which an error is stored, at most */
};

typedef struct {
    /* block: "00000012"; chunk: octree path, e.g. "/0/3/5-7" or "/0/3.2" for a rank part; of
     * LEVELS: "/0/3/5-7@2" */
    char name[96];
    /* path of the parent cell, "" for blocks; of LEVELS: name of the parent node, "" for the
     * root */
    char parent[96];
    uint64_t count;
    uint32_t level;                   /* of detail: 0; of LEVELS: 1 .. KILN_LEVELS_MAX */
    uint64_t hilbert_lo, hilbert_hi;  /* first and last code, 0 for blocks */
    float box_min[3], box_max[3];     /* of means; empty chunk: 0 */
    float reach_min[3], reach_max[3]; /* where a Gaussian can still reach alpha 1/255 */
    float max_log_scale, max_opacity_logit;
    /* Of a chunk of form LEVELS (levels.h): errors[i] is that of a footprint of 2^(error_step + i)
     * scene units. 0: not measured. */
    uint32_t n_errors;
    int32_t error_step;
    float errors[KILN_ERROR_STEPS];
    uint32_t n_planes;
    kiln_plane *planes; /* sorted by name */
} kiln_chunk;

typedef struct {
    char kind[16]; /* a row of layers.def: "source", "baked", ... */
    /* over chunk names and order, plane names, types and blob hashes; of LEVELS over parents,
     * errors and the four below, too; filled by put and get */
    kiln_hash digest;
    uint64_t count; /* rows of all chunks */
    uint32_t sh_degree;
    /* Of LEVELS; zero, "", false and 0 for other forms. */
    kiln_hash origin; /* digest of the layer `baked` that it stands for */
    /* profile, mip compensation and near plane under which errors were measured */
    char origin_profile[32];
    bool origin_antialiased;
    double origin_near;
    uint32_t n_chunks;
    kiln_chunk *chunks; /* in order */
} kiln_layer;

kiln_hash kiln_layer_digest(const kiln_layer *l);
/* Inserts the rows of a layer and fills l->digest. Its blobs must be stored before. An existing
 * layer of that digest and kind stays. Inside a transaction. */
kiln_status kiln_layer_put(kiln_manifest *m, kiln_layer *l, kiln_error *err) KILN_MUST_CHECK;
/* Gets the current output of that kind. KILN_E_STALE: it does not exist. Free with
 * kiln_layer_free. */
kiln_status kiln_layer_get(kiln_manifest *m, const char *kind, kiln_layer **out,
                           kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_layer_get_digest(kiln_manifest *m, const char *kind, kiln_hash digest,
                                  kiln_layer **out, kiln_error *err) KILN_MUST_CHECK;
/* Gets the layer to draw: the current output of the newest kind that is cut into chunks.
 * KILN_E_STALE: it does not exist. */
kiln_status kiln_layer_get_drawn(kiln_manifest *m, kiln_layer **out,
                                 kiln_error *err) KILN_MUST_CHECK;
void kiln_layer_free(kiln_layer *l);
/* NULL when it has none */
const kiln_plane *kiln_chunk_plane(const kiln_chunk *c, const char *name);
/* Reads a plane into dst, which has exactly count * components * size bytes. Checks every hash, and
 * that planes of planes.def hold finite numbers (no log scale above 88, no zero quaternion).
 * KILN_E_INPUT: they do not, or the chunk has no such plane. */
kiln_status kiln_plane_read(kiln_manifest *m, const kiln_chunk *c, const char *name, void *dst,
                            size_t dst_bytes, kiln_error *err) KILN_MUST_CHECK;

/* ---- stages ---------------------------------------------------------------------------------- */
typedef enum {
    KILN_STAGE_MISSING,
    KILN_STAGE_FRESH,
    KILN_STAGE_STALE,
    KILN_STAGE_PARTIAL
} kiln_stage_state;
const char *kiln_stage_state_name(kiln_stage_state s);

typedef struct {
    char name[32];
    uint32_t version; /* algorithm version it was made with */
    kiln_stage_state state;
    kiln_hash input_key; /* of parameters, version and inputs: equal means nothing to do */
    int64_t finished_ns;
} kiln_stage_row;
/* A stage without a row is MISSING. */
kiln_status kiln_stage_get(kiln_manifest *m, const char *stage, kiln_stage_row *out,
                           kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_stage_put(kiln_manifest *m, const kiln_stage_row *row,
                           kiln_error *err) KILN_MUST_CHECK;
/* Gets a named output of a stage: role -> digest; the role of a layer is its kind. Zero if it does
 * not exist. */
kiln_status kiln_stage_output_get(kiln_manifest *m, const char *stage, const char *role,
                                  kiln_hash *out, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_stage_output_put(kiln_manifest *m, const char *stage, const char *role,
                                  kiln_hash digest, kiln_error *err) KILN_MUST_CHECK;
/* Says whether the output of a finished stage is missing, whatever its state says. That is so if it
 * names no layer, or a layer that does not exist with that kind and digest. */
kiln_status kiln_stage_lost_layer(kiln_manifest *m, const char *stage, bool *lost,
                                  kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_stage_outputs_clear(kiln_manifest *m, const char *stage,
                                     kiln_error *err) KILN_MUST_CHECK;

/* ---- parameters ------------------------------------------------------------------------------ */
typedef struct {
    char name[64];
    char *value; /* owned */
} kiln_parameter;
kiln_status kiln_parameters_get(kiln_manifest *m, const char *stage, kiln_parameter **out,
                                uint32_t *n, kiln_error *err) KILN_MUST_CHECK;
void kiln_parameters_free(kiln_parameter *p, uint32_t n);
kiln_status kiln_parameter_put(kiln_manifest *m, const char *stage, const char *name,
                               const char *value, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_parameters_clear(kiln_manifest *m, const char *stage,
                                  kiln_error *err) KILN_MUST_CHECK;

/* ---- runs ------------------------------------------------------------------------------------ */
typedef struct {
    int64_t id;
    char stage[32];
    char *program;    /* "kiln-knn 0.1.0" */
    char *parameters; /* JSON */
    char *device;     /* "cpu-avx2, 2 threads" or a UUID */
    char *counters;   /* JSON: the stage's numbers, units done and skipped, peak memory */
    int64_t start_ns, stop_ns;
    int exit_code;
} kiln_run_row;
kiln_status kiln_run_row_put(kiln_manifest *m, const kiln_run_row *r,
                             kiln_error *err) KILN_MUST_CHECK;
/* Gets the newest run of a stage that made its output, whole or partial; sets *found. Free with
 * kiln_run_row_release. */
kiln_status kiln_run_row_last(kiln_manifest *m, const char *stage, bool *found, kiln_run_row *out,
                              kiln_error *err) KILN_MUST_CHECK;
void kiln_run_row_release(kiln_run_row *r);
/* Gets the runs that computed units for `last`, a run of kiln_run_row_last, and made no output:
 * tasks of several hosts, whose parts were gathered, and shards. They are those since the previous
 * run that made an output, in the order in which they were stored. The caller frees *out with
 * kiln_run_rows_free, after a failure too. */
kiln_status kiln_run_rows_of_tasks(kiln_manifest *m, const kiln_run_row *last, kiln_run_row **out,
                                   uint32_t *n, kiln_error *err) KILN_MUST_CHECK;
void kiln_run_rows_free(kiln_run_row *rows, uint32_t n);

/* ---- tile tables ----------------------------------------------------------------------------- */
typedef struct {
    uint32_t row0, row1; /* tile rows */
    uint64_t pairs;
    kiln_array tile_count, tile_bytes, rank_delta;
} kiln_tile_band;

typedef struct {
    char camera[1025];
    char profile[32];
    bool antialiased;
    double near_m;
    uint32_t width, height, tiles_x, tiles_y;
    /* of what it was made from: the render's table is the one with the key that it expects */
    kiln_hash key;
    kiln_hash digest; /* of the bytes; filled by put and get */
    uint64_t visible, pairs;
    /* NUL-separated names of the chunks with at least one visible Gaussian */
    kiln_array chunks;
    kiln_array visible_slot; /* u32: index into chunks */
    kiln_array visible_row;  /* u16 */
    uint32_t n_bands;
    kiln_tile_band *bands;
} kiln_tile_table;
kiln_hash kiln_tile_table_digest(const kiln_tile_table *t);
/* Replaces the table of the same (camera, profile, antialiased, near). Inside a transaction. */
kiln_status kiln_tile_table_put(kiln_manifest *m, kiln_tile_table *t,
                                kiln_error *err) KILN_MUST_CHECK;
/* Gets a tile table. KILN_OK with *out NULL: it does not exist. */
kiln_status kiln_tile_table_get(kiln_manifest *m, const char *camera, const char *profile,
                                bool antialiased, double near_m, kiln_tile_table **out,
                                kiln_error *err) KILN_MUST_CHECK;
/* Gets all tile tables, sorted by (camera, profile, antialiased, near). Their arrays have segments
 * only if with_arrays is set. */
kiln_status kiln_tile_tables_get(kiln_manifest *m, bool with_arrays, kiln_tile_table **out,
                                 uint32_t *n, kiln_error *err) KILN_MUST_CHECK;
/* Calls `each` for one after the other, in this order; as kiln_cameras_each. */
typedef kiln_status kiln_tile_table_fn(void *context, const kiln_tile_table *t, kiln_error *err);
kiln_status kiln_tile_tables_each(kiln_manifest *m, bool with_arrays, kiln_tile_table_fn *each,
                                  void *context, kiln_error *err) KILN_MUST_CHECK;
void kiln_tile_tables_free(kiln_tile_table *t, uint32_t n);
/* Drops the tables whose camera does not exist or whose (profile, antialiased, near) differs.
 * Inside a transaction. */
kiln_status kiln_tile_tables_keep(kiln_manifest *m, const char *profile, bool antialiased,
                                  double near_m, kiln_error *err) KILN_MUST_CHECK;

/* ---- images ---------------------------------------------------------------------------------- */
typedef struct {
    char camera[1025];
    char profile[32];
    bool antialiased;
    double near_m;
    double background[3];
    char device_kind[16]; /* "cpu", "cuda" or "cuda-fast" */
    uint32_t width, height;
    kiln_hash key;
    kiln_hash pixels; /* digest of the float32 picture [height][width][4] (SCHEMA.md, Digests) */
    uint64_t visible, pairs;
    double psnr, ssim; /* NAN when there is no photo */
    /* file written, relative to the manifest's folder where below it; "" for none */
    char path[4096];
    char format[8]; /* "png", "png16", "npy" */
} kiln_image;
kiln_status kiln_images_get(kiln_manifest *m, kiln_image **out, uint32_t *n,
                            kiln_error *err) KILN_MUST_CHECK; /* sorted; free(*out) */
/* Calls `each` for one after the other, in this order; as kiln_cameras_each. */
typedef kiln_status kiln_image_fn(void *context, const kiln_image *i, kiln_error *err);
kiln_status kiln_images_each(kiln_manifest *m, kiln_image_fn *each, void *context,
                             kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_image_put(kiln_manifest *m, const kiln_image *i,
                           /* replaces that of (camera, device_kind) */
                           kiln_error *err) KILN_MUST_CHECK;
/* Calls `visit` for the file of each picture, in the order of their paths, with the key of its
 * unit. What `visit` returns ends it.
 */
typedef kiln_status kiln_image_path_fn(void *context, const char *path, kiln_hash unit,
                                       kiln_error *err);
kiln_status kiln_image_paths_visit(kiln_manifest *m, kiln_image_path_fn *visit, void *context,
                                   kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_images_clear(kiln_manifest *m, kiln_error *err) KILN_MUST_CHECK;

/* ---- whole-manifest checks ------------------------------------------------------------------- */
typedef void kiln_digest_line_fn(void *context, const char *kind, const char *name,
                                 kiln_hash digest);
/* Gets sorted lines `KIND NAME DIGEST` of current outputs: layer, table, image (kiln-verify
 * --digest). */
kiln_status kiln_manifest_digests(kiln_manifest *m, kiln_digest_line_fn *line, void *context,
                                  kiln_error *err) KILN_MUST_CHECK;
/* Checks every hash, count, bound and reference; *problems lines through `report`. KILN_E_IO:
 * problems were found. */
kiln_status kiln_manifest_verify(kiln_manifest *m, kiln_problem_fn *report, void *context,
                                 uint64_t *checked_bytes, kiln_error *err) KILN_MUST_CHECK;
typedef void kiln_verify_progress_fn(void *context, uint64_t done_bytes, uint64_t all_bytes);
typedef struct {
    unsigned threads; /* 0: the caller's alone. Each other one has a connection of its own */
    /* most host memory for all of it: with little, fewer threads, but at least one. 0: no limit */
    uint64_t ram_bytes;
    /* structure, rows, counts, references and sizes only, on the caller's thread: blobs are not
     * read */
    bool quick;
    kiln_problem_fn *report; /* may be NULL. It and `progress` are called by the caller's thread */
    kiln_verify_progress_fn *progress; /* may be NULL */
    void *context;
} kiln_verify_options;
/* The same, with threads. The messages and their order do not depend on their number.
 * *checked_bytes: raw bytes whose hash was computed. */
kiln_status kiln_manifest_verify_with(kiln_manifest *m, const kiln_verify_options *o,
                                      uint64_t *checked_bytes, kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
