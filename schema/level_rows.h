/* level_rows -- the rows that a layer of levels has beside those of every layer: what it stands for
 * (level_origin), and the errors of its chunks (level_error). Of other layers nothing is written or
 * read. For layer.c. */
#ifndef KILN_SCHEMA_LEVEL_ROWS_H
#define KILN_SCHEMA_LEVEL_ROWS_H

#include "schema/manifest_internal.h"

/* Inside a transaction; layer and chunk are the ids of rows that were just inserted. */
kiln_status kiln_level_origin_put(kiln_manifest *m, int64_t layer, const kiln_layer *l,
                                  kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_level_errors_put(kiln_manifest *m, int64_t chunk, const kiln_chunk *c,
                                  kiln_error *err) KILN_MUST_CHECK;
/* Fills l->origin ..; leaves it as it is where there is no such row, which kiln_row_check_layer
 * refuses. */
kiln_status kiln_level_origin_get(kiln_manifest *m, int64_t layer, kiln_layer *l,
                                  kiln_error *err) KILN_MUST_CHECK;
/* Fills the errors of all chunks, which have been read. */
kiln_status kiln_level_errors_get(kiln_manifest *m, int64_t layer, kiln_layer *l,
                                  kiln_error *err) KILN_MUST_CHECK;

#endif
