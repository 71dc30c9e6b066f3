/* writer -- a format that a layer can be written to: one file and one row of writers.def.
 *
 * Adding one: write stages/export/NAME_writer.c with kiln_writer_NAME, add its row. --format, --help, the man page, completion,
 * --list-formats, the suffixes that -o takes and the sentences that list the formats come of the row, and so does a round trip
 * where a reader reads the format (tests/e2e/formats.t).
 *
 * The parent begins (a temporary file, its header) and finishes (index, fsync, rename); workers write chunk after chunk,
 * in any order, perhaps several of them at once: a chunk's bytes go to a place of their own.
 */
#ifndef KILN_STAGES_EXPORT_WRITER_H
#define KILN_STAGES_EXPORT_WRITER_H

#include "base/status.h"
#include "schema/manifest.h"

#include <stdbool.h>
#include <stdint.h>

/* What is exported, as parent and workers see it. */
typedef struct {
    const kiln_scene *scene;
    const kiln_layer *layer;
    const uint8_t *chosen;  /* [layer->n_chunks]: this chunk is written */
    uint64_t n_rows;        /* of the chosen chunks */
    bool source_order;      /* by source_row, else as the layer has them */
    uint64_t n_source_rows; /* in source order: every source_row is below, which memory is predicted and rows are checked by */
    bool keep_origin;       /* float coordinates relative to the origin, not absolute doubles */
    const char *target;     /* file or folder as the user named it */
    const char *temporary;  /* beside it: what is written until it is whole (files only) */
} kiln_export;

/* What a format holds of a layer. */
enum {
    KILN_HOLDS_SPLATS = 1, /* Gaussians */
    KILN_HOLDS_POINTS = 2, /* points without scale and opacity */
    KILN_HOLDS_BITS = 4,   /* every value of every plane, bit by bit; without it values are rounded or left out */
};

/* What the file of a format defines, as kiln_writer_NAME. */
typedef struct {
    /* Host memory of a worker that writes a chunk. */
    uint64_t (*ram)(const kiln_export *e);
    kiln_status (*begin)(const kiln_export *e, kiln_error *err);
    /* worker: *state is freed by close. m is its own read-only connection. */
    kiln_status (*open)(const kiln_export *e, kiln_manifest *m, void **state, kiln_error *err);
    kiln_status (*write)(void *state, uint32_t chunk, uint64_t first_row, kiln_error *err);
    void (*close)(void *state);
    kiln_status (*finish)(const kiln_export *e, kiln_error *err);
    void (*abandon)(const kiln_export *e);
    const char *last_file; /* in a folder: the file that is written last; NULL: it writes one file */
    /* Is all there that last_file speaks of? Sizes only. NULL: nothing else to look at. */
    bool (*complete)(const char *target);
} kiln_writer_functions;
#define WRITER(id, ...) extern const kiln_writer_functions kiln_writer_##id;
#include "stages/export/writers.def"
#undef WRITER

/* A row of writers.def. */
typedef struct {
    const char *name;
    const char *suffixes;
    const char *default_name;
    unsigned holds;
    const char *what;
    const kiln_writer_functions *functions;
} kiln_writer;

extern const kiln_writer kiln_writers[]; /* in the order of writers.def, ended by a row whose name is NULL */
const kiln_writer *kiln_writer_named(const char *name);
/* Prints the formats, one a line: name, suffixes or "(folder)", splats, points ("-": holds none), exact or rounded, what it is. */
void kiln_writers_list(void);
/* KILN_E_INPUT when the format cannot hold a layer of this kind of rows; the sentence names formats that can. */
kiln_status kiln_writer_check_kind(const kiln_writer *w, bool splats, kiln_error *err) KILN_MUST_CHECK;
/* The writer whose files have the suffix of `path` (-o), whatever its case; `wanted` where there is no suffix, or none that means a
 * format while a folder is wanted. KILN_E_USAGE when no writer has the suffix, or insists is set (--format was given) and
 * another one than `wanted` has it; the sentence lists what can be written. */
kiln_status kiln_writer_for(const char *path, const kiln_writer *wanted, bool insists, const kiln_writer **out,
                            kiln_error *err) KILN_MUST_CHECK;
/* The suffix of `path` that stands for a scene format, written here or not ("ply", "compressed.ply", "spz"); NULL: none does. */
const char *kiln_scene_suffix(const char *path);

/* Returns the first chosen chunk with rows; all chunks have its planes. NULL: no chunk has rows. */
const kiln_chunk *kiln_export_sample(const kiln_export *e);

#endif
