/* convert_rows -- rows of files as kiln-export gets them, without a manifest: a chunk is a block of the file, which is read and
 * sanitised again whenever a writer asks for it, so no row is held between two rounds. */
#ifndef KILN_STAGES_CONVERT_CONVERT_ROWS_H
#define KILN_STAGES_CONVERT_CONVERT_ROWS_H

#include "stages/formats/writer.h"
#include "stages/import/import_units.h"

/* What one conversion has read. Release it after a failure, too. */
typedef struct {
    kiln_import_result in;
    kiln_sources sources;
    uint64_t *offsets;
    kiln_unit *units; /* [in.scan.n_blocks] */
    kiln_block_request *requests;
    kiln_layer *layer;
    kiln_buffer from; /* kiln_export.from */
} kiln_convert_rows;

/* Finds the files, checks and measures them: all of `rows` and the only bake of *e, with kiln_export.from. out: where scratch may
 * lie beside. As kiln_run_units. */
kiln_status kiln_convert_rows_read(kiln_run *r, const char *const *files, unsigned n, const char *out, kiln_convert_rows *rows,
                                   kiln_export_bake *bake, kiln_export_from *from, kiln_error *err) KILN_MUST_CHECK;
void kiln_convert_rows_release(kiln_convert_rows *rows);

/* The worker's side. */
extern const kiln_export_planes kiln_convert_planes;

#endif
