/* lod_tree -- lod-meta.json of streamed SOG (lod.h), checked: which rows of which files make up
 * each level of detail. */
#ifndef KILN_STAGES_FORMATS_LOD_LOD_TREE_H
#define KILN_STAGES_FORMATS_LOD_LOD_TREE_H

#include "base/status.h"

#include <stdint.h>

enum { KILN_LOD_LEVELS_MAX = 64 };

typedef struct {
    uint32_t level, file; /* of files[] */
    uint64_t first, n;    /* rows of the file; n > 0 */
} kiln_lod_range;

typedef struct {
    char **files; /* owned; safe relative names of meta.json files or archives */
    uint32_t n_files;
    char *environment; /* the same, of Gaussians that every level has; NULL none */
    uint32_t n_levels; /* 1..KILN_LOD_LEVELS_MAX */
    uint64_t counts[KILN_LOD_LEVELS_MAX];
    kiln_lod_range *ranges; /* owned; by level, file, first; no two overlap */
    uint32_t n_ranges;
} kiln_lod_tree;

/* path: what to read; name: for sentences. KILN_E_INPUT with what is wrong.
 * kiln_lod_tree_release(out) after a failure too. */
kiln_status kiln_lod_tree_read(const char *path, const char *name, kiln_lod_tree *out,
                               kiln_error *err) KILN_MUST_CHECK;
void kiln_lod_tree_release(kiln_lod_tree *t);

#endif
