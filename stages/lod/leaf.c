/* The unit of a leaf: reads a chunk of `baked`, merges its levels, measures them. */
#include "stages/lod/lod_state.h"
#include "stages/lod/node.h"

kiln_status kiln_lod_leaf_unit(kiln_worker *w, const kiln_lod_unit *u, kiln_error *err)
{
    kiln_lod_node node;
    kiln_hash of_visibility = u->visibility, of_prominence = u->prominence;
    const kiln_array visibility = {
        .raw_bytes = u->rows * sizeof(float), .n_segments = 1, .segments = &of_visibility};
    const kiln_array prominence = {
        .raw_bytes = u->rows * sizeof(float), .n_segments = 1, .segments = &of_prominence};
    const bool seen = !kiln_hash_is_zero(u->visibility);
    const kiln_layer *baked;
    kiln_manifest *m;
    kiln_status st;
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    KILN_TRY(kiln_lod_state_baked(w, u->baked, &baked, err));
    if (u->chunk >= baked->n_chunks || baked->chunks[u->chunk].count != u->rows)
        return kiln_fail(err, KILN_E_BUG, "the layer 'baked' has no chunk %u of %llu rows",
                         u->chunk, (unsigned long long)u->rows);
    KILN_GO(kiln_lod_node_open(u, &node, err));
    KILN_GO(kiln_lod_rows_read(m, &baked->chunks[u->chunk], seen ? &visibility : NULL,
                               seen ? &prominence : NULL, &node.from, err));
    if (u->prior.radius > 0) kiln_distance_prior_fill(&u->prior, &node.from.rows);
    KILN_GO(kiln_lod_node_merge(w, &node, err));
done:
    kiln_lod_node_release(&node);
    return st;
}
