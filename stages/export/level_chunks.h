/* level_chunks -- levels of detail as what is exported: chunks behind those of the layer, and the
 * tree that they are nodes of. */
#ifndef KILN_STAGES_EXPORT_LEVEL_CHUNKS_H
#define KILN_STAGES_EXPORT_LEVEL_CHUNKS_H

#include "stages/formats/writer.h"

/* Refuses choices that leave no whole tree, for the sentence's format: --add, filters, --chunks,
 * another layer than `baked`. KILN_E_USAGE. */
kiln_status kiln_export_check_levels(const kiln_export *e, const char *format,
                                     kiln_error *err) KILN_MUST_CHECK;
/* Gives the only bake its levels, which it then owns, unless it has them. KILN_E_STALE: the bake
 * has none, or those of other chunks.
 */
kiln_status kiln_export_load_levels(kiln_manifest *m, kiln_export_bake *bake,
                                    kiln_error *err) KILN_MUST_CHECK;
/* Adds the chunks of the levels to e->chunks, which the caller allocated by malloc, and sets
 * e->tree to *tree, which it fills. kiln_level_tree_release also after a failure. */
kiln_status kiln_export_add_levels(kiln_export *e, kiln_level_tree *tree,
                                   kiln_error *err) KILN_MUST_CHECK;
/* The same where the chunks are there: makes the tree, and says of each chunk which node and level
 * it is. */
kiln_status kiln_export_bind_levels(kiln_export *e, kiln_level_tree *tree,
                                    kiln_error *err) KILN_MUST_CHECK;

#endif
