/* ply_columns -- what the columns of a PLY file mean: the table of dialects.
 *
 * Columns are found by name; their order matters only for offsets. A file with scales and rotations
 * (or f_dc, or two of scale, rotation, opacity) holds Gaussians, any other a point cloud. Columns
 * that no row knows become extras.
 */
#ifndef KILN_STAGES_FORMATS_PLY_PLY_COLUMNS_H
#define KILN_STAGES_FORMATS_PLY_PLY_COLUMNS_H

#include "stages/formats/ply/ply_header.h"
#include "stages/formats/reader.h"

typedef enum {
    KILN_ROLE_NONE,
    KILN_ROLE_MEAN,
    KILN_ROLE_LOG_SCALE,
    KILN_ROLE_QUAT,
    KILN_ROLE_OPACITY,
    KILN_ROLE_SH0,
    KILN_ROLE_SHN,
    KILN_ROLE_RGB,
    KILN_ROLE_FILTER,
} kiln_role;

typedef struct {
    kiln_role role;
    uint32_t component; /* of that role's plane: shN in coefficient-major order */
    int extra;          /* index of the extra that takes the column as it is, -1 none */
} kiln_ply_use;

/* uses[h->n_columns]; options NULL: any file that was imported once, whatever with. Fills kind,
 * dialect, degree, colours, extras, layout, axis and flags of info. KILN_E_INPUT when a column is
 * missing, numbered with gaps, or the file is of a dialect that is not read. */
kiln_status kiln_ply_plan(const kiln_ply_header *h, const char *path,
                          const kiln_read_options *options, kiln_ply_use *uses,
                          kiln_source_info *info, kiln_error *err) KILN_MUST_CHECK;

/* Of a file of Gaussians, by the names that it has: one scale for all axes (scale_0 alone); no
 * third one (2DGS). */
typedef enum { KILN_SCALES_THREE, KILN_SCALES_FLAT, KILN_SCALES_ONE } kiln_ply_scales;
kiln_ply_scales kiln_ply_scales_of(const kiln_ply_use *uses, uint32_t n);

/* What comments say: writer, axis, antialiased, dialect. */
void kiln_ply_comments(const kiln_ply_header *h, kiln_source_info *info);

/* The role of a name in a file of that kind, for the writer: "f_rest_7" of degree 1 is component 19
 * or so of shN. */
kiln_ply_use kiln_ply_role(const char *name, kiln_scene_kind kind, bool has_f_dc,
                           uint32_t sh_degree);

/* The factor between a colour column of that type and 0..1: 255, 65535 or 1. */
float kiln_ply_colour_unit(kiln_type type);

#endif
