/* import_scene -- what an import commits besides its blocks: the scene row, the source layer's
 * description, the report.
 */
#ifndef KILN_STAGES_IMPORT_SCENE_H
#define KILN_STAGES_IMPORT_SCENE_H

#include "stages/engine/engine.h"
#include "stages/formats/clean_rows.h"
#include "stages/import/blocks.h"
#include "stages/import/dataset/dataset.h"
#include "stages/import/join.h"
#include "stages/import/scan.h"

/* All that one import found out. */
typedef struct {
    kiln_dataset data;
    kiln_move move;        /* --translate, --rotate, --scale: of all rows and cameras */
    kiln_join_part *parts; /* owned: the files of rows */
    uint32_t n_parts;      /* 0: there is none */
    uint64_t scan_ram;     /* what checking them takes, as headers say; 0: not known */
    kiln_scan scan;        /* of all of them; info.kind KILN_SCENE_NONE: no rows */
    bool random;           /* rows are random points */
    kiln_row_counts counts;
    uint64_t n_missing;    /* blocks that are quarantined: the layer is without them, counts too */
    uint64_t rows_missing; /* of the source, in them */
    json_t *dropped_rows;  /* the first 100, owned */
    bool has_background;
    double background[3];
    kiln_cube cube;
    kiln_camera *cameras; /* borrowed from data, or the orbit below */
    uint32_t n_cameras;
    kiln_camera *orbit; /* owned */
    const char *up;     /* axis of --up; NULL: as the files say */
} kiln_import_result;

/* The axis that points up in the scene: of --up, else of the file of rows, else of the camera
 * files, as these are moved; "" unknown. */
typedef struct {
    char text[64];
} kiln_axis;
kiln_axis kiln_import_up(const kiln_import_result *i);

kiln_status kiln_import_scene(const kiln_import_result *i, kiln_scene *out,
                              kiln_error *err) KILN_MUST_CHECK;
/* Names and types of the planes that the blocks have, in one chunk after the other. Of volatile
 * units they have no data. kiln_layer_free(*out). */
kiln_status kiln_import_layer(const kiln_import_result *i, kiln_run *r, const kiln_unit *blocks,
                              kiln_layer **out, kiln_error *err) KILN_MUST_CHECK;
/* The same before blocks are read: all rows of the parts (scan), with all planes that they have. */
kiln_status kiln_import_layer_expected(const kiln_import_result *i, kiln_layer **out,
                                       kiln_error *err) KILN_MUST_CHECK;
/* rows_read, rows_dropped, dropped {reason: count}, frames_read, ...; also to stderr as
 * sentences. */
kiln_status kiln_import_report(const kiln_import_result *i, json_t *report,
                               kiln_error *err) KILN_MUST_CHECK;

#endif
