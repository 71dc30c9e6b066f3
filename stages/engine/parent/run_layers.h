/* run_layers -- what several stages do with layers: build one from results of units and from planes
 * of another layer, find the layer to read, and read the means of a whole layer. */
#ifndef KILN_STAGES_ENGINE_PARENT_RUN_LAYERS_H
#define KILN_STAGES_ENGINE_PARENT_RUN_LAYERS_H

#include "kernels/bounds/bounds.h"
#include "schema/layers.h"
#include "stages/engine/engine.h"

/* Makes a layer of n_chunks chunks without planes. The caller releases it with kiln_layer_free. */
kiln_status kiln_layer_new(kiln_layer_kind kind, uint32_t sh_degree, uint32_t n_chunks,
                           kiln_layer **out, kiln_error *err) KILN_MUST_CHECK;
/* Stores a layer and makes it the current one of its kind, inside a kiln_commit_fn. The stage must
 * make this kind (layers.def). */
kiln_status kiln_run_put_layer(kiln_run *r, kiln_layer *l, kiln_error *err) KILN_MUST_CHECK;
/* Gives the kind of layer that this stage reads: of the kinds of at least this form that earlier
 * stages make, the last one in layers.def that exists. KILN_E_STALE: that stage is stale or
 * partial, as in kiln_run_need; or none has run, and the sentence names the first. */
kiln_status kiln_run_need_layer(kiln_run *r, kiln_layer_form least, kiln_layer_kind *kind,
                                kiln_error *err) KILN_MUST_CHECK;
/* Adds a plane that is stored already: its hashes are copied, its bytes are shared. */
kiln_status kiln_chunk_add_copy(kiln_chunk *c, const kiln_plane *plane,
                                kiln_error *err) KILN_MUST_CHECK;
/* Adds the output `output` of a unit as the plane `name`. c->count must be set. KILN_E_IO: the
 * output has another size. */
kiln_status kiln_chunk_add_output(kiln_chunk *c, const kiln_unit_result *r, const char *output,
                                  const char *name, kiln_type type, uint32_t components,
                                  kiln_error *err) KILN_MUST_CHECK;
/* Returns the first chunk that has rows, borrowed. It has every plane that any chunk has. NULL: the
 * layer has no rows. */
const kiln_chunk *kiln_layer_model(const kiln_layer *l);
/* Sets a chunk's bounds from the output "bounds" of the unit that made it. Fails as
 * kiln_unit_struct. */
kiln_status kiln_chunk_read_bounds(kiln_run *r, const kiln_unit *u, kiln_chunk *c,
                                   kiln_error *err) KILN_MUST_CHECK;
/* The same from an output of another name, of a unit that makes several chunks. */
kiln_status kiln_chunk_read_bounds_of(kiln_run *r, const kiln_unit *u, const char *output,
                                      kiln_chunk *c, kiln_error *err) KILN_MUST_CHECK;
/* Reads the means of all chunks in layer order into one new planar array [3][count]; free(*out). */
kiln_status kiln_layer_means(kiln_manifest *m, const kiln_layer *l, float **out,
                             kiln_error *err) KILN_MUST_CHECK;
/* Adds a chunk's name and count and, the plane's name and hashes to a key. A chunk without the
 * plane adds no hashes. */
void kiln_key_plane(kiln_hasher *h, const kiln_chunk *c, const char *plane);

/* The size of a layer's chunks, for kiln_unit.ram. */
typedef struct {
    uint64_t rows;   /* of the chunk with most rows */
    uint64_t planes; /* bytes of all planes of one chunk, the largest of all chunks */
    uint64_t plane;  /* bytes of the largest plane */
    uint64_t all;    /* bytes that all planes of all chunks take in a kiln_plane_cache */
} kiln_layer_size;
kiln_layer_size kiln_layer_size_of(const kiln_layer *l);

#endif
