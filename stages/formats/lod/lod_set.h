/* lod_set -- one file of streamed SOG: a folder with meta.json and images, made in memory by one
 * unit. */
#ifndef KILN_STAGES_FORMATS_LOD_LOD_SET_H
#define KILN_STAGES_FORMATS_LOD_LOD_SET_H

#include "stages/formats/lod/lod_plan.h"

/* "LEVEL_NUMBER/NAME", the name of a file in the target; also what lod-meta.json calls it. */
void kiln_lod_set_name(const kiln_lod_file *f, const char *name, char out[64]);
/* Makes file `unit` of the plan in e->temporary. Counts what was clamped in x->counts[0].
 * KILN_E_INPUT: positions that SOG cannot hold. */
kiln_status kiln_lod_set_write(kiln_export_worker *x, uint64_t unit,
                               kiln_error *err) KILN_MUST_CHECK;
/* Host memory for n rows, of chunks of which one takes read_ram to read and has at most chunk_rows:
 * on one thread, and for each further one. */
uint64_t kiln_lod_set_ram(const kiln_export *e, uint64_t n, uint64_t chunk_rows, uint64_t read_ram);
uint64_t kiln_lod_set_ram_thread(const kiln_export *e, uint64_t n);

#endif
