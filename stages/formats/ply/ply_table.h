/* ply_table -- which columns an exported PLY has, and how a chunk becomes rows.
 *
 * A layer whose source was a PLY is written with the columns, types and comments of that file
 * again; any other in INRIA's order. A source column that float32 or a dialect could not carry was
 * kept as extra/NAME: the kept value is written wherever it still means what the plane holds, else
 * the plane's value. So what no stage touched comes out bit by bit. A file with filter_3D gets its
 * raw columns back from the source layer only; from later layers the folded values are written,
 * without filter_3D, as mip-splatting's save_fused_ply does.
 */
#ifndef KILN_STAGES_FORMATS_PLY_PLY_TABLE_H
#define KILN_STAGES_FORMATS_PLY_PLY_TABLE_H

#include "base/memory.h"
#include "stages/formats/ply/ply_columns.h"
#include "stages/formats/rows.h"

typedef struct {
    char name[64];
    kiln_type type;
    uint32_t offset;
    char plane[96]; /* "" : zeros */
    uint32_t component;
    kiln_role role; /* KILN_ROLE_NONE: the plane's bytes as they are */
    char kept[96];  /* plane with the source's own value, "" none */
    kiln_type kept_type;
    bool kept_always;
} kiln_ply_column;

typedef struct {
    kiln_buffer header; /* text, up to and with end_header; owned */
    uint32_t row_bytes, n_columns;
    kiln_ply_column *columns; /* owned */
    double origin[3];         /* added to coordinates */
    bool splats;
} kiln_ply_table;

/* The parent plans for the header, each worker for the columns: the same from the same layer.
 * notes: sentences for the user, NULL when they are not wanted again. */
kiln_status kiln_ply_table_plan(const kiln_export *e, kiln_ply_table *out, kiln_buffer *notes,
                                kiln_error *err) KILN_MUST_CHECK;
void kiln_ply_table_release(kiln_ply_table *f);

/* Comments of a header that is ours: program, vertical axis, antialiased training. KILN_E_IO: the
 * axis is no line of text. */
kiln_status kiln_ply_put_comments(const kiln_export *e, kiln_buffer *header,
                                  kiln_error *err) KILN_MUST_CHECK;
/* With --keep-origin the origin, as a comment. */
kiln_status kiln_ply_put_origin(const kiln_export *e, kiln_buffer *header,
                                kiln_error *err) KILN_MUST_CHECK;

/* The planes that the columns are made of: KILN_ROWS_... */
unsigned kiln_ply_table_planes(const kiln_ply_table *f);

/* out [n][row_bytes]: the rows from `first` on of a chunk that was read with those planes.
 * KILN_E_INPUT: the chunk lacks one of them.
 */
kiln_status kiln_ply_encode(const kiln_ply_table *f, const kiln_export_rows *rows, uint64_t first,
                            uint64_t n, unsigned char *out, kiln_error *err) KILN_MUST_CHECK;

#endif
