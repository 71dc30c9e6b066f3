/* dropped_columns -- columns of unknown meaning that an exported file has no place for: they are
 * counted and named. */
#ifndef KILN_STAGES_FORMATS_PLY_DROPPED_COLUMNS_H
#define KILN_STAGES_FORMATS_PLY_DROPPED_COLUMNS_H

#include "base/memory.h"
#include "stages/formats/writer.h"

/* Appends "3 columns of unknown meaning are left out: a, b, c" of what the layer keeps of a PLY and
 * no format but PLY and chunks writes; *n 0: nothing. Normals do not count. */
kiln_status kiln_dropped_columns(const kiln_export *e, kiln_buffer *text, uint32_t *n,
                                 kiln_error *err) KILN_MUST_CHECK;

#endif
