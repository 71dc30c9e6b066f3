/* tile_units -- what a worker of kiln-tiles computes: the counting pass of a camera, its planning
 * unit, and its bands. */
#ifndef KILN_STAGES_TILES_UNITS_H
#define KILN_STAGES_TILES_UNITS_H

#include "stages/frame/frame.h"

typedef enum {
    KILN_TILES_COUNT, /* kiln_frame_count */
    KILN_TILES_PLAN,  /* out: "chunks", "visible_slot", "visible_row" */
    KILN_TILES_BAND,  /* out: "tile_count", "tile_bytes", "rank_delta" of tile rows [row0, row1) */
} kiln_tiles_unit_kind;

typedef struct {
    kiln_tiles_unit_kind kind;
    kiln_view_request request;
    kiln_drawn_name drawn;
    uint32_t row0, row1; /* band */
    uint64_t pairs;      /* band: what the counting pass said */
    uint64_t ram;        /* kiln_unit.ram */
    /* Of all tables of the run, the same in each of their units: the largest `ram`, and the most
     * that a unit holds of it once its lists are made, until its outputs are packed. */
    uint64_t most_ram, most_listed;
} kiln_tiles_unit;

kiln_status kiln_tiles_compute(kiln_worker *w, const char *name, const void *payload,
                               size_t payload_bytes, kiln_error *err);

#endif
