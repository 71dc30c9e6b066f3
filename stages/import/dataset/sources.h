/* sources -- the files that an import depends on, and whether they are still what they were:
 * size, mtime and inode unchanged, else by their hash.
 */
#ifndef KILN_STAGES_IMPORT_SOURCES_H
#define KILN_STAGES_IMPORT_SOURCES_H

#include "stages/engine/engine.h"
#include "stages/import/dataset/dataset.h"

typedef struct {
    /* owned, but for the paths, which are the data set's; in order of path, unique */
    kiln_source_file *files;
    bool *is_rows; /* owned, [n]: rows come from this file */
    uint32_t n;
    bool touched; /* some file's size, mtime or inode differs from what is stored */
} kiln_sources;

/* The file of rows as it lies there now and all that the data set names as it lay there when it was
 * looked through; hashes zero. */
kiln_status kiln_sources_collect(const kiln_dataset *d, kiln_sources *out,
                                 kiln_error *err) KILN_MUST_CHECK;
void kiln_sources_release(kiln_sources *s);
/* Fills hashes: from the manifest (NULL: none) where nothing about a file changed, the others by a
 * unit in the worker; in a round over hosts by two that are stored, one of them for the files that
 * rows come from, because tasks look at no others. */
kiln_status kiln_sources_hash(kiln_sources *s, kiln_run *r, bool rehash,
                              kiln_error *err) KILN_MUST_CHECK;
/* KILN_E_INPUT when a file changed since it was collected: what was read may be of either state. */
kiln_status kiln_sources_unchanged(const kiln_sources *s, kiln_error *err) KILN_MUST_CHECK;
const kiln_source_file *kiln_sources_find(const kiln_sources *s, const char *path);

/* The unit: payload is the paths, each ended by NUL; output "hashes". */
kiln_status kiln_sources_unit(kiln_worker *w, const char *paths, size_t bytes,
                              kiln_error *err) KILN_MUST_CHECK;
#define KILN_HASH_UNIT "hashes of the sources"

#endif
