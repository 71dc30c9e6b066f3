/* writer -- a format that a layer can be written to: one file and one row of writers[] in writers.c.
 *
 * Adding one: write stages/export/NAME_writer.c, add its row; the suffix that -o takes and the sentences that list the formats come
 * of it. --format and --help have the names in the option table of export.c.
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

typedef struct {
    const char *name;         /* "ply" */
    const char *suffix;       /* of its files, without the dot: -o NAME.SUFFIX chooses the format; "" when the target is a folder */
    const char *default_name; /* below export/, beside the manifest */
    const char *summary;
    const char *last_file; /* in a folder: the file that is written last, "" when the target is a file */
    /* Host memory of a worker that writes a chunk. */
    uint64_t (*ram)(const kiln_export *e);
    kiln_status (*begin)(const kiln_export *e, kiln_error *err);
    /* worker: *state is freed by close. m is its own read-only connection. */
    kiln_status (*open)(const kiln_export *e, kiln_manifest *m, void **state, kiln_error *err);
    kiln_status (*write)(void *state, uint32_t chunk, uint64_t first_row, kiln_error *err);
    void (*close)(void *state);
    kiln_status (*finish)(const kiln_export *e, kiln_error *err);
    void (*abandon)(const kiln_export *e);
    /* Is all there that last_file speaks of? Sizes only. NULL: nothing else to look at. */
    bool (*complete)(const char *target);
} kiln_writer;

extern const kiln_writer *const kiln_writers[]; /* NULL-terminated */
const kiln_writer *kiln_writer_named(const char *name);
/* The writer whose files have the suffix of `path` (-o), whatever its case; `wanted` where there is no suffix, or none that means a
 * format while a folder is wanted. KILN_E_USAGE when no writer has the suffix, or insists is set (--format was given) and
 * another one than `wanted` has it; the sentence lists what can be written. */
kiln_status kiln_writer_for(const char *path, const kiln_writer *wanted, bool insists, const kiln_writer **out,
                            kiln_error *err) KILN_MUST_CHECK;
/* The suffix of `path` that stands for a scene format, written here or not ("ply", "compressed.ply", "spz"); NULL: none does. */
const char *kiln_scene_suffix(const char *path);

/* The first chosen chunk with rows: what planes there are can be seen there. NULL when there is none. */
const kiln_chunk *kiln_export_sample(const kiln_export *e);

#endif
