/* run_layers -- what stages do with layers again and again: putting one together from the results of units and from planes
 * that stay as they are, and reading the means of a whole one. */
#ifndef KILN_STAGES_LAYERS_H
#define KILN_STAGES_LAYERS_H

#include "kernels/bounds/bounds.h"
#include "schema/layers.h"
#include "stages/engine/engine.h"

/* An empty layer of n_chunks chunks without planes; kiln_layer_free. */
kiln_status kiln_layer_new(kiln_layer_kind kind, uint32_t sh_degree, uint32_t n_chunks, kiln_layer **out,
                           kiln_error *err) KILN_MUST_CHECK;
/* In a commit: stores a layer and makes it the current one of its kind, which r's stage must make (layers.def). */
kiln_status kiln_run_put_layer(kiln_run *r, kiln_layer *l, kiln_error *err) KILN_MUST_CHECK;
/* The newest kind of layers of at least this form that a finished stage before this one has made: what r reads. KILN_E_STALE when
 * that stage is stale or partial, as kiln_run_need; when none has run, the sentence names the first. */
kiln_status kiln_run_need_layer(kiln_run *r, kiln_layer_form least, kiln_layer_kind *kind, kiln_error *err) KILN_MUST_CHECK;
/* Adds a plane that exists already (its bytes are not copied, only their hashes). */
kiln_status kiln_chunk_add_copy(kiln_chunk *c, const kiln_plane *plane, kiln_error *err) KILN_MUST_CHECK;
/* Adds the output `output` of a unit as the plane `name`. c->count is set. KILN_E_IO where the output has another size. */
kiln_status kiln_chunk_add_output(kiln_chunk *c, const kiln_unit_result *r, const char *output, const char *name, kiln_type type,
                                  uint32_t components, kiln_error *err) KILN_MUST_CHECK;
/* The first chunk that has rows: it has every plane that any chunk has. NULL where the layer has no rows. */
const kiln_chunk *kiln_layer_model(const kiln_layer *l);
/* Sets a chunk's bounds from the output "bounds" of the unit that made it. */
kiln_status kiln_chunk_read_bounds(kiln_run *r, const kiln_unit *u, kiln_chunk *c, kiln_error *err) KILN_MUST_CHECK;
/* The means of all chunks in layer order as one planar array [3][count]; free(*out). */
kiln_status kiln_layer_means(kiln_manifest *m, const kiln_layer *l, float **out, kiln_error *err) KILN_MUST_CHECK;
/* Adds a chunk's name, count and the hashes of its plane to a key; nothing of the plane where the chunk has none. */
void kiln_key_plane(kiln_hasher *h, const kiln_chunk *c, const char *plane);

/* How large a layer's chunks are, for the ram of units. */
typedef struct {
    uint64_t rows;   /* most of one chunk */
    uint64_t planes; /* bytes of all planes of one chunk, at most */
    uint64_t plane;  /* bytes of one plane, at most */
    uint64_t all;    /* what all planes of all chunks take in a kiln_plane_cache */
} kiln_layer_size;
kiln_layer_size kiln_layer_size_of(const kiln_layer *l);

#endif
