/* view_keys -- keys of tile tables and pictures. They are made here and nowhere else. So
 * kiln-render can compute the key of the table that it needs, and use the table that kiln-tiles
 * made from the same inputs. */
#ifndef KILN_STAGES_VIEW_KEYS_H
#define KILN_STAGES_VIEW_KEYS_H

#include "stages/frame/drawn.h"

/* Hashes of everything that a view depends on in each chunk, made once for all views of a layer. */
typedef struct {
    const kiln_layer *layer; /* borrowed */
    kiln_hash *geometry;     /* [n_chunks] of the chunk's name and geometry planes */
    kiln_hash *colour;       /* [n_chunks] of these and the colour planes */
} kiln_chunk_keys;

/* Makes the hashes. The layer must outlive them. Release also after a failure. KILN_E_NOMEM. */
kiln_status kiln_chunk_keys_make(const kiln_layer *layer, kiln_chunk_keys *out,
                                 kiln_error *err) KILN_MUST_CHECK;
void kiln_chunk_keys_release(kiln_chunk_keys *k);
/* Return the key of a tile table, and of a picture, which depends on the colour planes too: of the
 * chunks c that the view draws, and of no others. How they came to be chosen is in no key. The
 * algorithm versions of the stages tiles and render are part of them. device_kind: "cpu", "cuda" or
 * "cuda-fast". */
kiln_hash kiln_view_request_table_key(const kiln_view_request *s, const kiln_chunk_keys *k,
                                      const kiln_view_chunks *c);
kiln_hash kiln_view_request_picture_key(const kiln_view_request *s, const kiln_chunk_keys *k,
                                        const kiln_view_chunks *c, const double background[3],
                                        const char *device_kind);

#endif
