/* stats_units -- what workers do for kiln-stats: passes over blocks of a file, or chunks of a
 * layer. */
#ifndef KILN_STAGES_STATS_STATS_UNITS_H
#define KILN_STAGES_STATS_STATS_UNITS_H

#include "schema/layers.h"
#include "stages/frame/view_request.h"
#include "stages/engine/engine.h"
#include "stages/stats/tally.h"

/* Further passes: where rows of a file lie, for an orbit around them; and pairs. */
enum { KILN_STATS_PLACES = KILN_STATS_PASSES, KILN_STATS_PAIRS };

typedef struct {
    uint32_t first, n; /* blocks */
    uint64_t row;      /* the first row of these, in the file */
} kiln_stats_request;

/* What all units of a pass know. Behind it: a kiln_stats_search for each column (passes 1 and 2),
 * or n_views of kiln_view_request; then what the rows are read by (plain_rows.h), or nothing, where
 * they are a layer of the manifest. */
typedef struct {
    uint32_t pass, n_columns, n_views;
    bool of_layer;
    kiln_layer_kind kind;
    uint32_t unused; /* what follows is aligned to 8 bytes */
    double origin[3];
    uint64_t stride; /* of places: every such row */
} kiln_stats_shared;

/* Of a view. */
typedef struct {
    uint64_t visible, pairs, box_pairs;
} kiln_stats_pairs;

/* Outputs of a unit. */
#define KILN_STATS_MOMENTS "moments" /* pass 0: [n][n_columns] kiln_stats_moments */
/* pass 0: [n] double, of each block the sum of the ellipses' areas; see kiln_stats.fill_ratio */
#define KILN_STATS_AREAS "areas"
#define KILN_STATS_COUNTS "counts"   /* [n_columns][kiln_stats_counters(pass)] u32 */
#define KILN_STATS_BAR_COUNTS "bars" /* pass 1: [n_columns][KILN_STATS_BARS] u64 */
#define KILN_STATS_PAIR_COUNTS "pairs"
/* of places, sanitised: float [2][3] the box of the means, lo above hi if there are none; and float
 * [][4], as kiln_scene_core_of takes them */
#define KILN_STATS_BOX "box"
#define KILN_STATS_SAMPLE "sample"
kiln_status kiln_stats_unit(kiln_worker *w, const char *name, const void *payload, size_t bytes,
                            kiln_error *err) KILN_MUST_CHECK;
/* Host memory of the unit beside reading a block of so many rows. */
uint64_t kiln_stats_unit_ram(const kiln_stats_shared *s, uint32_t n_blocks, uint64_t rows);

#endif
