/* chunks_index -- index.json of the format chunks: what it says, and which files it names.
 * SCHEMA.md has its promise, and schema/chunks.schema.json its shape. Cameras and tile tables, of
 * which there may be many, are written and read one by one. */
#ifndef KILN_STAGES_FORMATS_CHUNKS_CHUNKS_INDEX_H
#define KILN_STAGES_FORMATS_CHUNKS_CHUNKS_INDEX_H

#include "stages/formats/export_views.h"
#include "stages/formats/text_sink.h"

#include <jansson.h>

#define KILN_CHUNKS_FORMAT "splatkiln-chunks" /* member "format" of every index */

/* Name of an array's file: the blob's own hash, or of all its blobs' hashes where it has
 * several. */
enum { KILN_CHUNKS_FILE_NAME = 40 };
void kiln_chunks_file_name(const kiln_array *a, char out[KILN_CHUNKS_FILE_NAME]);

/* Gives the text of the index to `sink` piece by piece. with_tables: the tile tables of e->views
 * are listed, too. indented: a member a line, else without blanks. As kiln_tile_tables_each. */
kiln_status kiln_chunks_index_write(const kiln_export *e, bool with_tables, bool indented,
                                    kiln_text_sink_fn *sink, void *context,
                                    kiln_error *err) KILN_MUST_CHECK;

/* Rows of the chunks that are written of the layer itself, without its levels. */
uint64_t kiln_chunks_rows(const kiln_export *e);

/* Is told each file that an index names; false ends it. */
typedef bool kiln_chunks_file_fn(void *context, const char *name, uint64_t bytes);
/* Of the index that is written, with what kiln_chunks_index_write lists. KILN_E_NOMEM: fn has ended
 * it. As kiln_tile_tables_each.
 */
kiln_status kiln_chunks_index_files(const kiln_export *e, bool with_tables, kiln_chunks_file_fn *fn,
                                    void *context, kiln_error *err) KILN_MUST_CHECK;

/* What an index that lies in a folder is. */
typedef enum {
    /* there is no such file, or it is no JSON, or names files that are none of an index */
    KILN_CHUNKS_NO_INDEX,
    KILN_CHUNKS_OTHERS, /* JSON of another program */
    KILN_CHUNKS_OURS,
} kiln_chunks_index_kind;
/* Reads the index at `path` piece by piece; fn may be NULL. An index of which fn has ended the
 * reading is none. */
kiln_chunks_index_kind kiln_chunks_index_read(const char *path, kiln_chunks_file_fn *fn,
                                              void *context);

/* Calls fn for the six kinds of arrays of a table; each band's in turn. name: "tile_count". */
typedef kiln_status kiln_chunks_array_fn(void *context, const char *name, const kiln_array *a,
                                         kiln_error *err);
kiln_status kiln_chunks_each_array(const kiln_tile_table *t, kiln_chunks_array_fn *fn,
                                   void *context, kiln_error *err);

#endif
