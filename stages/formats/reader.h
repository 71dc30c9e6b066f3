/* reader -- a splat or point file format: one file and one row of readers.def.
 *
 * Adding one: draw the layout in stages/formats/NAME/NAME.h, which a writer of the format includes
 * too, write NAME_read.c with probe, open, read, close as kiln_reader_NAME with `packed`, add its
 * row, and put small files of the format into tests/data/fuzz/reader-NAME, without which unit/fuzz
 * and unit/readers fail; their names end in the suffix where probe goes by it. One that keeps more
 * than KILN_READER_RAM in memory has ram too, one that must look behind the rows has finish, one
 * that cannot be read in any order (streams, pictures, text) has spool and so ram, one of several
 * files has members. By hand: the table of docs/import.md, CHANGELOG.md. --list-formats, the
 * suffixes that are looked for in a folder, and these tests come of the row: the harness
 * reader-NAME of tests/fuzz, a round trip where a writer has the same suffix (e2e/formats), and
 * that no file is claimed by two readers with one score (unit/readers).
 *
 * probe decides by content: 0 (not mine) .. 100; the highest wins, a tie is a bug that unit/readers
 * reports. One that goes by the name takes kiln_packing_stem of it, or a packed file is not known.
 * open validates everything that can be rejected without the rows (header, sizes against the file,
 * counts, at most UINT32_MAX - 1 rows); *info is zero when it begins; spool, where there is one,
 * then writes the rows into scratch in a form that can be read in any order, once an import; read
 * is called for consecutive row ranges, first once over the whole file (the scan, which also
 * validates), later for single blocks, perhaps in another process, seeking with the offsets that
 * the scan recorded. Nothing here sanitises values: clean_rows.c does that once for all formats.
 */
#ifndef KILN_STAGES_FORMATS_READER_H
#define KILN_STAGES_FORMATS_READER_H

#include "base/status.h"
#include "schema/manifest.h"
#include "schema/row_check.h"
#include "stages/files/foreign.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KILN_EXTRAS_MAX = 256 };

typedef enum {
    /* a column that we do not know, or one that a dialect changes on the way in */
    KILN_KEEP_ALWAYS,
    /* a known column in a type that float32 cannot always hold: kept when it loses a bit in any
     * row */
    KILN_KEEP_IF_LOSSY,
} kiln_keep;

typedef struct {
    char name[64]; /* as in the file */
    kiln_type type;
    kiln_keep keep;
    int axis; /* 0, 1, 2: a coordinate, which a non-zero origin makes lossy; else -1 */
    /* the file's own numbers of what planes hold; left out where rows are moved or files joined */
    bool raw;
} kiln_extra;

typedef enum { KILN_DIALECT_3DGS, KILN_DIALECT_2DGS } kiln_dialect;

/* What the numbers of a format are taken for whose specification names a frame (SPZ: RUB; glTF:
 * LUF). Others have PLY's, RDF. */
typedef enum {
    KILN_FRAME_RUB,   /* those of the specification: they are turned into PLY's frame */
    KILN_FRAME_AS_IS, /* PLY's, whatever the specification says: many writers convert nothing */
} kiln_source_frame;

/* What the user says about reading. */
typedef struct {
    kiln_source_frame frame;
    uint32_t lod;   /* level of a scene in levels; 0: the finest that is there */
    bool is_static; /* PLY: rows that are of many moments are read as one */
    /* PLY: scales are lengths and opacities are 0..1; logarithms and logits are taken */
    bool activated;
    bool no_extras; /* PLY: columns of unknown meaning are left out, but for normals */
} kiln_read_options;

/* Where a source is read. open copies what it keeps. */
typedef struct {
    const char *path; /* what to read: the user's file, or scratch with what was packed in it */
    const char *name; /* the user's file: for sentences, and its folder is where members lie */
    /* "gzip": the user's file is such a stream, and `path` is what it holds; NULL: it is not
     * packed */
    const char *packing;
    /* scratch that the reader's own spool has filled; NULL: not yet, so that read is not called */
    const char *spool;
    /* `path` has the first MiB of what is packed, and zeros behind it: sizes and what lies there
     * are unknown */
    bool head_only;
    const kiln_read_options *options;
} kiln_source_at;

typedef struct {
    kiln_scene_kind kind; /* points or splats */
    kiln_dialect dialect;
    uint64_t n_rows;
    /* of the file that is read, as its header says; 0: the header does not say */
    uint64_t file_bytes;
    uint64_t spool_bytes; /* that spool writes, at most; 0: read reads the file itself */
    /* host memory that each thread of spool takes for what this file holds: the largest picture,
     * windows */
    uint64_t spool_ram;
    uint32_t sh_degree;
    bool antialiased;
    bool wide; /* coordinates are doubles: origin and extra/x.. planes apply */
    /* points: colours present (else they are 0 and counted) ; splats: colour came as rgb, not
     * f_dc */
    bool has_rgb;
    bool rgb_u8;
    /* log_scales and opacity_logits are the file's numbers, whatever these mean */
    bool logs_as_read;
    /* filter_3D went into log_scales and opacity_logits; the raw columns are extras */
    bool folded;
    /* open failed on a sound file that holds something else, such as a GLB of meshes */
    bool has_none;
    /* records have no fixed size: only a whole pass validates them and finds the blocks */
    bool needs_full_scan;
    char up_axis[64]; /* from comments, "" unknown */
    /* of a format with a frame of its own: what its numbers were taken for, "RUB", "RDF"; else
     * "" */
    char axes[8];
    char writer[64]; /* "inria", "gsplat", "brush", ... as far as the file says */
    kiln_extra extras[KILN_EXTRAS_MAX]; /* see kiln_keep; in file order */
    uint32_t n_extras;
    /* JSON: what export needs to write the same columns again: property order, types, comments */
    char layout[8192];
    /* sentence(s) for the user, "" none: what is unusual, a warning: trailing bytes, files that are
     * missing */
    char notes[1024];
    /* the same of what is as it should be, and is only said: which axes, which level */
    char remarks[512];
} kiln_source_info;

/* A batch of rows, planar. Arrays have room for KILN_BLOCK_ROWS rows; stride (distance between
 * components) is n. */
typedef struct {
    uint64_t n;
    double *means;                 /* [3][n] */
    float *log_scales;             /* [3][n], splats only */
    float *quats;                  /* [4][n] */
    float *opacity_logits;         /* [n] */
    float *sh0;                    /* [3][n]; */
    float *shN;                    /* [3K][n] coefficient-major */
    float *rgb;                    /* [3][n], 0..1; points, or splats with rgb */
    void *extras[KILN_EXTRAS_MAX]; /* [n] of extras[i].type */
} kiln_rows;
kiln_status kiln_rows_alloc(kiln_rows *rows, const kiln_source_info *info,
                            kiln_error *err) KILN_MUST_CHECK;
void kiln_rows_release(kiln_rows *rows);

/* in place of a reader's name: the scene's rows are of several files */
#define KILN_JOINED_FORMAT "joined"

typedef struct kiln_source kiln_source; /* a reader's own */

typedef enum {
    KILN_PASS_SPOOL,        /* open and spool on one thread */
    KILN_PASS_SPOOL_THREAD, /* each further thread of spool */
    KILN_PASS_SCAN,         /* open and the first pass of read over the whole file */
    KILN_PASS_BLOCK,        /* open and read of single blocks */
} kiln_read_pass;

/* What can be said of a packed file (packing.h) before it is unpacked. */
typedef enum {
    /* open reads no more than a header at the beginning: it looks at the first MiB */
    KILN_PACKED_HEAD = 1,
    /* open reads on, or from the end: nothing is known but the format until the file is unpacked */
    KILN_PACKED_WHOLE,
    KILN_PACKED_NEVER, /* such files are not read packed */
} kiln_packed;

typedef kiln_status kiln_member_fn(void *context, const char *path, kiln_error *err);

typedef struct {
    const char *name;     /* "ply" */
    const char *suffixes; /* "ply", separated by commas */
    const char *summary;  /* for --list-formats */
    kiln_packed packed;
    bool has_options; /* rows depend on kiln_read_options */
    /* Host memory in bytes, at most, of an open source beside its rows during a pass: pieces of the
     * file, lines, pictures. NULL: no more than KILN_READER_RAM, whatever the file and the pass. */
    uint64_t (*ram)(const kiln_source_info *info, kiln_read_pass pass);
    /* head: the first KILN_PROBE_BYTES */
    int (*probe)(const unsigned char *head, size_t len, const char *path);
    /* May be NULL. Of a format without a mark, whose suffix decides: could a file of so many bytes
     * under another name be one? */
    bool (*may_be)(const unsigned char *head, size_t len, uint64_t file_bytes);
    kiln_status (*open)(const kiln_source_at *at, kiln_source **out, kiln_source_info *info,
                        kiln_error *err);
    /* May be NULL. Calls add with the absolute path of each file besides the one that is opened
     * that rows come from. They are hashed and watched like it. No name leads out of the folder of
     * at->name. Only open and spool read them, never read: a block must not be of another state
     * than its key says. */
    kiln_status (*members)(kiln_source *s, kiln_member_fn *add, void *context, kiln_error *err);
    /* May be NULL; called when info->spool_bytes is not 0, after an open without at->spool, in a
     * worker. Writes the rows to fd, from its byte 0 on, in a form in which read finds a row by its
     * number: planes of codes, decoded pixels, binary rows. It has no header, because open finds
     * the layout again in the user's file. Checks all that can be wrong with what it reads.
     * threads: at most so many. */
    kiln_status (*spool)(kiln_source *s, int fd, unsigned threads, kiln_error *err);
    /* rows [first, first + n), n <= KILN_BLOCK_ROWS, into rows (rows->n set to n), in any order, by
     * several workers. offset: byte position of row `first`, or UINT64_MAX: the reader stands there
     * already (sequential) or computes it. *next_offset: of the row behind. */
    kiln_status (*read)(kiln_source *s, uint64_t first, uint64_t n, uint64_t offset,
                        kiln_rows *rows, uint64_t *next_offset, kiln_error *err);
    /* after the last row of a whole pass: checks what follows; may add to info->notes. NULL: open
     * has seen all that follows */
    kiln_status (*finish)(kiln_source *s, kiln_source_info *info, kiln_error *err);
    void (*close)(kiln_source *s);
} kiln_reader;
enum { KILN_READER_RAM = 256 << 10 };
/* What `ram` and `finish` say, also where a reader has none. Only kiln_reader_ram takes NULL for
 * the reader: nothing is read, which takes no memory. */
uint64_t kiln_reader_ram(const kiln_reader *reader, const kiln_source_info *info,
                         kiln_read_pass pass);
kiln_status kiln_reader_finish(const kiln_reader *reader, kiln_source *s, kiln_source_info *info,
                               kiln_error *err) KILN_MUST_CHECK;

#define READER(id) extern const kiln_reader kiln_reader_##id;
#include "stages/formats/readers.def"
#undef READER
/* in the order of readers.def, NULL-terminated */
extern const kiln_reader *const kiln_readers[];
const kiln_reader *kiln_reader_named(const char *name); /* NULL when there is none */
/* Prints the formats, one a line: name, suffixes, what it is. */
void kiln_readers_list(void);
/* The reader of a file, by content, and what the file says of itself; a packed file (packing.h) is
 * looked into. Of one that is KILN_PACKED_WHOLE only info->kind is known: n_rows is 0. NULL and
 * KILN_E_INPUT with one sentence when none knows it (or it is one that comes later), or the
 * reader's own. */
kiln_status kiln_source_look(const char *path, const kiln_read_options *options,
                             const kiln_reader **out, kiln_source_info *info,
                             kiln_error *err) KILN_MUST_CHECK;
/* How sure the reader that wins a file is of it, by its content and name alone: 0 (there is none)
 * .. 100. */
int kiln_source_claim(const char *path);
/* A format without a mark that a file which no reader knows could be; NULL: none. */
const kiln_reader *kiln_source_guess(const char *path);
/* Calls add for each of its members. Those of a packed file are KILN_E_INPUT. */
kiln_status kiln_source_members(const char *path, const kiln_read_options *options,
                                kiln_member_fn *add, void *context,
                                kiln_error *err) KILN_MUST_CHECK;

#endif
