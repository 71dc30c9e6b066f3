/* chunks_index -- index.json of the format chunks: what it says, and which files it names. SCHEMA.md has its promise, and
 * schema/chunks.schema.json its shape. */
#ifndef KILN_STAGES_EXPORT_CHUNKS_INDEX_H
#define KILN_STAGES_EXPORT_CHUNKS_INDEX_H

#include "stages/export/export_views.h"

#include <jansson.h>

#define KILN_CHUNKS_FORMAT "splatkiln-chunks" /* member "format" of every index */

/* Name of an array's file: the blob's own hash, or of all its blobs' hashes where it has several. */
enum { KILN_CHUNKS_FILE_NAME = 40 };
void kiln_chunks_file_name(const kiln_array *a, char out[KILN_CHUNKS_FILE_NAME]);

/* NULL: memory is gone. with_tables: the tile tables of e->views are listed, too. json_decref. */
json_t *kiln_chunks_index(const kiln_export *e, bool with_tables);

/* Rows of the chunks that are written of the layer itself, without its levels. */
uint64_t kiln_chunks_rows(const kiln_export *e);

/* Calls fn for every file that an index names; false as soon as fn says so, or the index is not one. */
typedef bool kiln_chunks_file_fn(void *context, const char *name, uint64_t bytes);
bool kiln_chunks_each_file(const json_t *index, kiln_chunks_file_fn *fn, void *context);

/* Calls fn for the six kinds of arrays of a table; each band's in turn. name: "tile_count". */
typedef kiln_status kiln_chunks_array_fn(void *context, const char *name, const kiln_array *a, kiln_error *err);
kiln_status kiln_chunks_each_array(const kiln_tile_table *t, kiln_chunks_array_fn *fn, void *context, kiln_error *err);

#endif
