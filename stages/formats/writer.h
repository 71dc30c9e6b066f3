/* writer -- a format that a layer can be written to: one file and one row of writers.def.
 *
 * Adding one: draw the layout in stages/formats/NAME/NAME.h, if a reader has not, write
 * NAME_write.c with kiln_writer_NAME, add its row. --format, --help, the man page, completion,
 * --list-formats, the suffixes that -o takes and the sentences that list the formats come of the
 * row, and so does a round trip where a reader reads the suffix (tests/e2e/formats.t): what it
 * reads from a file is written to the same bytes again. By hand: the table of docs/export.md, which
 * that test asks for, CHANGELOG.md, and formats in tests/viewers/cases.mjs; where the file can name
 * its program, a mark (stages/products/product_mark.h), without which a second run with the same -o
 * needs --overwrite.
 *
 *   In `begin` use p->plan: e->plan is not the plan yet.
 *   `plan` says what the format does not hold (kiln_export_note) and calls kiln_float_places_note; nothing else asks for it.
 *   Without .reader, --report-loss leaves the format out; unit/readers asks for it where a reader has the suffix.
 *   What it reads beside the bake goes into .key.
 *   A folder needs .last_file and .is_ours, and .complete, which looks whether the other files are
 *       there.
 *   Limits: KILN_EXPORT_COUNTS counts, KILN_WRITER_NAME_MAX bytes of a name, KILN_WRITERS_MAX formats; the last two are asserted.
 *
 * A writer is a list of rounds. A round has one unit for each chunk that is written, or as many as
 * the writer says; workers run the units in any order, several at once, in memory that the writer
 * predicts. A unit reads rows (rows.h), puts bytes at places of their own into the file, or into
 * scratch for a later round, and may give a small result to the parent. When all units of a round
 * are done, the parent has taken their results in the units' order, and may make the plan anew:
 * bytes that the workers of the next round see. So what is written depends on the rows alone, never
 * on who wrote which of them when.
 *
 * The engine of kiln-export makes the temporary file, syncs it and gives it its name when all
 * rounds are done (export_rounds.c): a target is there whole or not at all.
 */
#ifndef KILN_STAGES_FORMATS_WRITER_H
#define KILN_STAGES_FORMATS_WRITER_H

#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "schema/levels.h"
#include "schema/manifest.h"
#include "stages/engine/engine.h"
#include "stages/formats/reader.h"
#include "stages/products/product_place.h"
#include "stages/select/edits.h"
#include "stages/select/filters.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- what is exported, as parent and workers see it ------------------------------------------ */

/* A bake whose rows are written: the manifest that was given, and those of --add. */
typedef struct {
    char path[KILN_PATH_MAX];
    kiln_scene scene;
    kiln_layer *layer;
    /* of detail, where the format gets them (kiln_export.tree); else NULL */
    kiln_layer *levels;
    uint64_t n_source_rows; /* every source_row is below */
    uint64_t source_first;  /* in source order: the sum of those of the bakes before */
} kiln_export_bake;

/* A chunk that is written, wholly or in part: chunks of which no row is written are not listed. */
typedef struct {
    uint32_t bake; /* index of kiln_export.bakes */
    const kiln_chunk *chunk;
    /* its rows in the file, in baked order: they begin at `first`, and are `n` after selection */
    uint64_t first, n;
    uint32_t node; /* of kiln_export.tree; KILN_NO_NODE without it */
    /* 0: a chunk of the layer; above: one of its levels, or one of kiln_export.made */
    uint32_t level;
} kiln_export_chunk;

/* Chunks that were merged for this export (export/made_levels.h). */
typedef struct {
    uint32_t n;
    /* [n] their planes are not stored: one after the other from `at` on in the file
     * kiln_export.made_path */
    kiln_chunk *chunks;
    uint64_t *at; /* [n] */
} kiln_made_chunks;

/* Least and greatest value of what is written; lo > hi: there is none. */
typedef struct {
    float lo, hi;
} kiln_value_range;

/* Of all rows that are written. means: without kiln_export.origin. */
typedef struct {
    kiln_value_range means[3], log_scales, opacity_logits, sh0, shN;
} kiln_export_survey;

/* Rows of an export without a manifest: what its workers read them by, bytes of whoever exports,
 * and the host memory that this takes. All 0: the rows are the bakes'. */
typedef struct {
    const void *data;
    size_t bytes;
    uint64_t ram;
} kiln_export_from;

/* Cameras and tile tables (export_views.h). */
typedef struct kiln_export_views kiln_export_views;

enum { KILN_EXPORT_BAKES = 64 };

typedef struct {
    kiln_export_bake *bakes; /* [n_bakes], at least one */
    uint32_t n_bakes;
    kiln_export_chunk
        /* [n_chunks], at least one with rows; bake after bake; behind them, with a tree, those of
         * the levels */
        *chunks;
    uint32_t n_chunks;
    /* levels of detail of the only bake, whose chunks are all written; NULL: the format gets
     * none */
    const kiln_level_tree *tree;
    /* The chunks are a cut of the tree of levels: --level, --count, --percent. Rows stand for
     * others, so that no kept value of the source is theirs. `made` has those that no bake has;
     * made_path is the file with their rows, "": there is none. */
    bool cut;
    kiln_made_chunks made;
    char made_path[64];
    uint64_t n_rows;    /* of all chunks, after selection */
    uint32_t sh_degree; /* of what is written: --sh-degree, or the layer's */
    bool splats;        /* Gaussians, else points */
    /* rows are moved, so that no kept value of the source is theirs any more */
    bool edited;
    bool source_order; /* --order: by source_row, else as the layer has them */
    bool no_normals;   /* --no-normals: a PLY without nx ny nz */
    /* of a PLY of Gaussians: INRIA's 62, all float, whatever the source has */
    bool inria_columns;
    bool keep_origin; /* float coordinates relative to the scene's origin */
    /* what means are measured from: the scene's origin, or what a move or several bakes make of
     * it */
    double base[3];
    /* to be added to means for absolute coordinates: base; 0 with keep_origin */
    double origin[3];
    /* as parsed; they are bound to the planes of each bake where its rows are read */
    kiln_filters filters;
    kiln_edits edits;
    bool placed; /* --geo: the scene has a place on the globe */
    /* latitude and longitude in degrees, height above the ellipsoid in metres */
    double geo[3];
    kiln_source_frame frame; /* --frame: of formats whose specification names one */
    /* the ranges of the planes that the writer names in `survey`; of means always */
    kiln_export_survey survey;
    const char *target; /* file or folder as the user named it */
    /* a folder there: names alone say that a file is ours (folder_owner.h) */
    bool replace;
    kiln_product_seen seen; /* what stood there as a file when it was allowed to write it */
    const char *temporary;  /* beside it: the file or folder that is written until it is whole */
    /* Rounds that compute are on GPUs, and a round of the CPU goes on beside them. Not known before
     * the rounds begin. */
    bool apart;
    /* what the parent's plan and gather made, [plan_bytes]; workers see it as of the round's
     * begin */
    const void *plan;
    size_t plan_bytes;
    kiln_export_from from;
    /* The parent's, for a writer that asks for them; else NULL. */
    const kiln_export_views *views;
} kiln_export;

/* Scene of the first bake: name, axes, columns, flags. */
static inline const kiln_scene *kiln_export_scene(const kiln_export *e)
{
    return &e->bakes[0].scene;
}
/* Degree of the spherical harmonics in a format that has at most `most`. */
static inline uint32_t kiln_export_degree(const kiln_export *e, uint32_t most)
{
    return e->sh_degree < most ? e->sh_degree : most;
}
/* The first chunk that is written. All chunks of its bake have its planes. */
static inline const kiln_chunk *kiln_export_sample(const kiln_export *e)
{
    return e->chunks[0].chunk;
}
/* A plane that the sample has, if the chunks of all bakes have it in the same shape; else NULL. */
const kiln_plane *kiln_export_plane_of_all(const kiln_export *e, const char *name);
/* The axis of the first bake's scene that points up, as the moves turn it: "y", "-z", "0 0.5 1"; ""
 * unknown. */
void kiln_export_up_axis(const kiln_export *e, char *out, size_t size);
/* Are the Gaussians 2DGS surfels, as the file said that they were imported from? KILN_E_NOMEM. */
kiln_status kiln_export_is_2dgs(const kiln_export *e, bool *yes, kiln_error *err) KILN_MUST_CHECK;
/* Are all chunks that are written just what a layer holds? */
static inline bool kiln_export_is_as_stored(const kiln_export *e)
{
    return !e->cut && !e->edited && e->filters.n == 0 && e->n_bakes == 1 &&
           e->sh_degree == e->bakes[0].layer->sh_degree;
}

/* Scratch is one space of bytes over several files, stripe after stripe: a file takes one write at
 * a time. */
enum { KILN_SCRATCH_FILES = 8, KILN_SCRATCH_STRIPE = 4 << 20 };

/* What travels to a worker beside kiln_export, the paths and the plan: bytes in all, for a bake,
 * for a chunk. */
enum {
    KILN_SHARED_HEAD = 552,
    KILN_SHARED_BAKE = 56,
    KILN_SHARED_CHUNK = 24,
    KILN_SHARED_MADE = 144
};
/* What every unit takes besides its round's ram: what parent and workers share, with a plan of so
 * many bytes. For foresee. */
uint64_t kiln_export_shared_ram(const kiln_export *e, uint64_t plan_bytes);

/* ---- the parent's side ----------------------------------------------------------------------- */

typedef struct {
    const kiln_export *e;
    int fd; /* the temporary file; -1 of a folder */
    /* becomes e->plan of the next round; a writer replaces or extends it in plan and gather */
    kiln_buffer *plan;
    kiln_buffer *notes, *remarks; /* kiln_export_note, kiln_export_remark */
} kiln_export_parent;

/* A sentence for the user, without a full stop: what the format cannot hold of these rows. */
kiln_status kiln_export_note(kiln_export_parent *p, kiln_error *err, const char *fmt, ...)
    KILN_PRINTF(3, 4) KILN_MUST_CHECK;
/* The same of what is as it should be: which axes a file has. It is said, not warned of. */
kiln_status kiln_export_remark(kiln_export_parent *p, kiln_error *err, const char *fmt, ...)
    KILN_PRINTF(3, 4) KILN_MUST_CHECK;
/* Writes to the temporary file. */
kiln_status kiln_export_put(kiln_export_parent *p, const void *data, size_t bytes, uint64_t offset,
                            kiln_error *err) KILN_MUST_CHECK;
/* Sets the size of the temporary file and takes the room for it; what is not written is 0. */
kiln_status kiln_export_resize(kiln_export_parent *p, uint64_t bytes,
                               kiln_error *err) KILN_MUST_CHECK;

/* ---- the worker's side ----------------------------------------------------------------------- */

enum { KILN_EXPORT_COUNTS = 8 };

/* Arrays that a worker keeps until its round ends, because each page of a new array is a page
 * fault. A unit overwrites what the one before has left in them. Each grows with the rows of a
 * unit, so together they are as large as in the largest unit, which the round's ram counts. */
enum {
    KILN_KEPT_PLANES = 0, /* rows.c's: one for each plane of rows.h */
    KILN_KEPT_ORDER = 11,
    KILN_KEPT_KEYS,
    KILN_KEPT_STEP,
    KILN_KEPT_BUCKET,
    KILN_KEPT_BUCKET_ROWS,
    KILN_KEPT_COEFFICIENTS,
    KILN_KEPT_LABELS,
    KILN_KEPT_ALL
};
typedef struct {
    void *data;
    uint64_t bytes;
} kiln_kept;

/* Where planes are read that are in no manifest (kiln_export.from). One of them is open in a
 * worker. */
typedef struct {
    kiln_status (*open)(const kiln_export *e, kiln_worker *w, void **out, kiln_error *err);
    /* As kiln_plane_read. All planes of a chunk are read before those of the next. */
    kiln_status (*plane)(void *own, const kiln_chunk *c, const char *name, void *dst, size_t bytes,
                         kiln_error *err);
    void (*close)(void *own); /* accepts NULL */
} kiln_export_planes;

typedef struct {
    const kiln_export *e;
    kiln_worker *w;
    int fd;                          /* as the parent's */
    int scratch[KILN_SCRATCH_FILES]; /* -1: the writer has none */
    uint32_t round;
    /* the writer's; NULL at the begin of a round; freed by its close, after kiln_runner_drop */
    void *own;
    /* of the unit in work: a writer adds to those that it names */
    uint64_t counts[KILN_EXPORT_COUNTS];
    const kiln_export_planes *planes; /* NULL: they are in the manifests */
    void *planes_own;                 /* theirs */
    /* rows.c's: connections of the bakes behind the first */
    kiln_manifest *others[KILN_EXPORT_BAKES];
    /* rows.c's: of kiln_export.made_path; -1 until it is open */
    int made;
    kiln_kept kept[KILN_KEPT_ALL];
} kiln_export_worker;

/* Sets *out to the kept array `which`, with room for so many bytes of undefined content; borrowed.
 * Earlier pointers to it are void.
 */
kiln_status kiln_export_keep(kiln_export_worker *x, unsigned which, uint64_t bytes,
                             const char *what, void **out, kiln_error *err) KILN_MUST_CHECK;

/* Write or read `bytes` at `offset` of the temporary file, or of scratch. */
kiln_status kiln_export_write(kiln_export_worker *x, const void *data, size_t bytes,
                              uint64_t offset, kiln_error *err) KILN_MUST_CHECK;
/* Says that a unit has written these bytes of the temporary file in small steps. If they are many,
 * the disk begins to write them. */
void kiln_export_written(kiln_export_worker *x, uint64_t offset, uint64_t bytes);
kiln_status kiln_export_scratch_write(kiln_export_worker *x, const void *data, size_t bytes,
                                      uint64_t offset, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_export_scratch_read(kiln_export_worker *x, void *data, size_t bytes,
                                     uint64_t offset, kiln_error *err) KILN_MUST_CHECK;
/* Gives the unit's result to the parent's gather; at most once a unit. */
kiln_status kiln_export_result(kiln_export_worker *x, const void *data, size_t bytes,
                               kiln_error *err) KILN_MUST_CHECK;
/* The end of a unit that encodes `what` ("an image"): writes `encoded` at `offset` of scratch,
 * where there is room for `bytes_max`, and gives its size, a uint64_t, as the unit's result.
 * KILN_E_BUG when it is larger. */
kiln_status kiln_export_scratch_result(kiln_export_worker *x, const char *what,
                                       const kiln_buffer *encoded, uint64_t bytes_max,
                                       uint64_t offset, kiln_error *err) KILN_MUST_CHECK;

/* ---- a format -------------------------------------------------------------------------------- */

typedef struct {
    const char *what; /* in progress: "packing" */
    /* Number of units; 0: the round is left out. NULL: one a chunk, in the order of e->chunks.
     * Asked for before the first round, too, with the plan as .plan left it, or NULL: 0 for a round
     * that computes opens no GPU ahead. */
    uint64_t (*units)(const kiln_export *e);
    /* Host memory of a unit at most, on one thread and for each further one (NULL: none): arrays
     * and the result. Asked for by the first plan, too, before the round's turn: of it and of
     * `units` is made what a refusal of --ram names, unless the round or the format has a
     * `foresee`. */
    uint64_t (*ram)(const kiln_export *e, uint64_t unit);
    uint64_t (*ram_thread)(const kiln_export *e, uint64_t unit);
    kiln_status (*run)(kiln_export_worker *x, uint64_t unit, kiln_error *err);
    /* May be NULL. What a unit of this round takes at most, where the first plan does not say it by
     * `units` and `ram`: so that a refusal of --ram in an earlier round names a cap that is enough
     * for this one, too. */
    uint64_t (*foresee)(const kiln_export *e);
    /* May be NULL. Called for each unit in order, when the round is over. result: NULL where the
     * unit gave none. */
    kiln_status (*gather)(kiln_export_parent *p, uint64_t unit, const void *result, size_t bytes,
                          kiln_error *err);
    /* May be NULL: called once behind the last gather. */
    kiln_status (*end)(kiln_export_parent *p, kiln_error *err);
    /* What a unit costs beside the others of the round: those that cost most go first. NULL: the
     * rows of its chunk, or 1. */
    uint64_t (*cost)(const kiln_export *e, uint64_t unit);
    bool computes; /* units run operations of the runner: on a GPU where there is one */
    /* Where `apart` is set: goes on while the rounds behind it compute, and is gathered before the
     * next that does not. */
    bool beside;
    /* Where `apart` is set: runs on the workers of GPUs, so that a round beside need not end
     * first. */
    bool stays;
} kiln_export_round;
/* `units` of a round of one unit. */
uint64_t kiln_export_one_unit(const kiln_export *e);

typedef enum {
    KILN_PLACE_FILE, /* one file, e->temporary until it is whole */
    /* a folder, e->temporary until it is whole; then it takes the place of a folder that it may
     * replace */
    KILN_PLACE_FOLDER,
    /* files in the folder e->target itself, each whole or absent; finish writes the one that names
     * them last */
    KILN_PLACE_SHARED,
} kiln_export_place;

/* What became of values, as the end of a sentence that begins with their number. `more` is the key
 * in --json, too. */
typedef struct {
    const char *one;  /* "log scale was clamped to -20 .. 20" */
    const char *more; /* "log scales were clamped to -20 .. 20" */
} kiln_export_count;

enum { KILN_LEAF_NAME = 128 };
#define KILN_READER_RAD "rad" /* no reader of kiln-import: rad_read.h */

/* What the file of a format defines, as kiln_writer_NAME. */
typedef struct {
    kiln_export_place place;
    bool scratch; /* rounds hand bytes to later rounds in a scratch file */
    bool views;   /* cameras and tile tables are part of what is written */
    /* positions are written without kiln_export.origin, whatever --keep-origin says */
    bool relative;
    bool geo; /* --geo is for this format */
    /* --order source is for this format; others write rows as the layer has them */
    bool keeps_order;
    /* KILN_ROWS_...: planes whose ranges are measured before plan is called; those of means always
     * are */
    unsigned survey;
    /* by index of kiln_export_worker.counts, ended by a row of NULL; NULL: it counts nothing */
    const kiln_export_count *counts;
    /* May be NULL: it is made of the rounds. What a unit of any round takes at most, with
     * kiln_export_shared_ram, as far as the list of chunks says, before the survey. For formats
     * whose `plan` reads more than the list, or whose rounds need later plans.
     */
    uint64_t (*foresee)(const kiln_export *e);
    /* Adds to the key of a written file what it depends on beside the bake. KILN_E_INPUT: that is
     * not there. May be NULL. */
    kiln_status (*key)(kiln_hasher *h, kiln_error *err);
    /* Before anything is written. KILN_E_INPUT: the format cannot hold these rows. Notes, the first
     * plan. May be NULL. */
    kiln_status (*plan)(kiln_export_parent *p, kiln_error *err);
    /* Behind plan, with the temporary file open: its size, its header. May be NULL. */
    kiln_status (*begin)(kiln_export_parent *p, kiln_error *err);
    const kiln_export_round *rounds;
    uint32_t n_rounds;
    void (*close)(void *own); /* NULL: free */
    /* Behind the last round; the engine then syncs and renames. May be NULL. */
    kiln_status (*finish)(kiln_export_parent *p, kiln_error *err);
    /* Of a KILN_PLACE_FOLDER: does the format write files of this name? Only a folder in which all
     * are of this kind is replaced (folder_owner.h); of those in a folder inside, which is not
     * asked for itself, the name is FOLDER/FILE. */
    bool (*is_ours)(const char *name);
    /* Of a KILN_PLACE_SHARED: removes what an export that failed left behind. */
    void (*abandon)(const kiln_export *e);
    /* Of a KILN_PLACE_SHARED, for a caller that does not go on with it: removes whole files, too,
     * that only such an export names.
     */
    void (*discard)(const char *target);
    /* name of the format in readers.def that reads the file again, or KILN_READER_RAD; NULL: none
     * does */
    const char *reader;
    /* Of a format whose last_file names files that `reader` reads each: appends those that a viewer
     * draws where all is near, to be found beside last_file, as texts of KILN_LEAF_NAME bytes with
     * their NUL. In them x is right, y up and z back. NULL: `reader` reads the file itself, or
     * last_file. */
    kiln_status (*leaves)(const char *last_file, kiln_buffer *names, kiln_error *err);
    /* in a folder: the file that names the others, JSON; NULL: it writes one file. Of a
     * KILN_PLACE_FOLDER its asset.generator is "SplatKiln VERSION", and each other file, or one
     * beside it, is a text in it */
    const char *last_file;
    /* Is all there that last_file speaks of? Sizes only. NULL: nothing else to look at. */
    bool (*complete)(const char *target);
} kiln_writer_functions;
#define WRITER(id, ...) extern const kiln_writer_functions kiln_writer_##id;
#include "stages/formats/writers.def"
#undef WRITER

/* What a format holds of a layer. */
enum {
    KILN_HOLDS_SPLATS = 1, /* Gaussians */
    KILN_HOLDS_POINTS = 2, /* points without scale and opacity */
    /* every value of every plane, bit by bit; without it values are rounded or left out */
    KILN_HOLDS_BITS = 4,
    KILN_NEEDS_LEVELS = 8, /* it is made of levels of detail, which kiln-lod makes */
    KILN_TAKES_LEVELS = 16 /* it holds them where there are some */
};

enum { KILN_WRITERS_MAX = 32, KILN_WRITER_NAME_MAX = 32 }; /* with its NUL */

/* A row of writers.def. */
typedef struct {
    const char *id;   /* of the C names: compressed_ply */
    const char *name; /* for people: compressed-ply */
    const char *suffixes;
    const char *default_name;
    unsigned holds;
    const char *what;
    const kiln_writer_functions *functions;
} kiln_writer;

/* in the order of writers.def, ended by a row whose name is NULL */
extern const kiln_writer kiln_writers[];
const kiln_writer *kiln_writer_named(const char *name);
/* Is it a version of SPZ? */
bool kiln_writer_is_spz(const kiln_writer *w);
/* Looks for what a format needs of this machine, such as the viewer of a page. KILN_E_INPUT: it is
 * not there; the sentence says how it comes there. */
kiln_status kiln_writer_check_machine(const kiln_writer *w, kiln_error *err) KILN_MUST_CHECK;
/* Prints the formats, one a line: name, suffixes or "(folder)", splats or levels (what is made of
 * splats with their levels of detail), points ("-": holds none), exact or rounded, what it is. */
void kiln_writers_list(void);
/* Reads "ply,spz" into out[KILN_WRITERS_MAX], each format once, in the order of the text.
 * KILN_E_USAGE: there is no such format. */
kiln_status kiln_writers_parse(const char *list, const kiln_writer *out[KILN_WRITERS_MAX],
                               uint32_t *n, kiln_error *err) KILN_MUST_CHECK;
/* Does a format of `list` (--format), or where `output` is not NULL the one that its suffix means,
 * need levels? The first such writer; NULL: none does, or the list is none. */
const kiln_writer *kiln_writers_need_levels(const char *list, const char *output);
/* Who asks what is written: kiln convert has no -o, and writes no format that is made of levels. */
typedef enum { KILN_ASKS_EXPORT, KILN_ASKS_CONVERT } kiln_writers_asked;
/* "NAME.ply, NAME.spz; and as folders: chunks": each suffix once. */
enum { KILN_WRITERS_TEXT = 2 * KILN_WRITERS_MAX * (KILN_WRITER_NAME_MAX + 2) };
void kiln_writers_text(kiln_writers_asked by, char out[KILN_WRITERS_TEXT]);
/* KILN_E_INPUT when the format cannot hold a layer of this kind of rows; the sentence names formats
 * that can. */
kiln_status kiln_writer_check_kind(const kiln_writer *w, bool splats,
                                   kiln_error *err) KILN_MUST_CHECK;
/* The writer whose files have the suffix of `path` (-o), whatever its case; `wanted` where there is
 * no suffix, or none that means a format while a folder is wanted, or where wanted has this suffix
 * too. Of several writers with one suffix the first in writers.def. KILN_E_USAGE when no writer has
 * the suffix, or insists is set (--format was given) and only others than `wanted` have it; the
 * sentence lists what can be written. */
kiln_status kiln_writer_for(const char *path, const kiln_writer *wanted, bool insists,
                            kiln_writers_asked by, const kiln_writer **out,
                            kiln_error *err) KILN_MUST_CHECK;
/* The suffix of `path` that stands for a scene format, written here or not ("ply",
 * "compressed.ply", "spz"); NULL: none does. */
const char *kiln_scene_suffix(const char *path);

#endif
