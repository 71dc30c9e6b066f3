/* row_ranks -- where a row goes when rows are written in source order: its rank among the rows that are there.
 *
 * A bitmap of the source rows with a running count every 512 of them: rows / 7 bytes, so that 100 million rows take 14 MB.
 */
#ifndef KILN_STAGES_EXPORT_ROW_RANKS_H
#define KILN_STAGES_EXPORT_ROW_RANKS_H

#include "stages/export/writer.h"

typedef struct {
    uint64_t n_source_rows; /* every row is below */
    uint64_t n_words;
    uint64_t *bits;   /* [n_words] owned */
    uint64_t *before; /* [n_words / 8 + 1] owned: rows in front of each 512 */
} kiln_row_ranks;

/* Every row of the scene's layers came from a source row below *out. KILN_E_INPUT where the source layer's blocks have no numbers.
 */
kiln_status kiln_source_rows(kiln_manifest *m, const kiln_scene *s, uint64_t *out, kiln_error *err) KILN_MUST_CHECK;
/* Host memory of the table for source rows below this. */
uint64_t kiln_row_ranks_ram(uint64_t n_source_rows);
/* Reads source_row of every chosen chunk. KILN_E_INPUT when one is not below e->n_source_rows, KILN_E_IO when it occurs twice. */
kiln_status kiln_row_ranks_init(kiln_row_ranks *r, const kiln_export *e, kiln_manifest *m, kiln_error *err) KILN_MUST_CHECK;
void kiln_row_ranks_release(kiln_row_ranks *r);
uint64_t kiln_row_rank(const kiln_row_ranks *r, uint32_t source_row);

#endif
