/* stats -- what kiln-stats finds out of a file of rows or of a layer, and tells.
 *
 * Rows are those of a file as its reader gives them, before anything is sanitised, so what is not
 * finite is counted; or the planes of a layer. Pairs are counted of sanitised rows. Moments are of
 * a block and added in the order of blocks, counts are whole numbers, so the numbers do not depend
 * on threads. Quantiles are exact (tally.h). Rejected: a histogram between the extremes, as
 * splat-transform has it, in which one Gaussian at 10^7 hides all others; of 1,000 its fill ratio
 * is 122.87, exact is 123.03. */
#ifndef KILN_STAGES_STATS_H
#define KILN_STAGES_STATS_H

#include "stages/import/plain_rows.h"
#include "stages/stats/stats_units.h"

enum { KILN_STATS_VIEWS = 4096 };

typedef struct {
    const char *pairs, *cameras; /* NULL: not given */
    const char *orbit;           /* the name of an option of the orbit that is given, or NULL */
    kiln_view_options view;
    uint32_t layer;
} kiln_stats_options;
extern kiln_stats_options kiln_stats_given;

/* Of one column, over all rows. */
typedef struct {
    kiln_stats_moments moments;
    kiln_stats_search search;
    uint64_t bars[KILN_STATS_BARS];
} kiln_stats_of_column;

typedef struct {
    bool of_layer;
    kiln_plain_rows rows; /* of a file */
    kiln_layer *layer;    /* of a manifest */
    kiln_scene scene;
    char format[32];
    uint64_t n_rows, n_blocks;
    kiln_stats_columns columns;
    kiln_stats_of_column *of; /* [columns.n] */
    /* Areas of all ellipses at one standard deviation over the mean area of the three faces of the
     * box of the central 98 % of the positions: about how many layers are drawn over each other. As
     * splat-transform has it. NAN: no Gaussians. */
    double fill_ratio;
    kiln_view_request *views; /* [n_views] of --pairs */
    const kiln_camera *cameras;
    kiln_camera *own_cameras;
    char (*names)[64]; /* of views */
    kiln_stats_pairs *pairs;
    uint32_t n_views;
} kiln_stats;

/* Opens the rows and makes all passes over them. As kiln_run_units. Release after a failure,
 * too. */
kiln_status kiln_stats_make(kiln_run *r, const char *path, kiln_stats *s,
                            kiln_error *err) KILN_MUST_CHECK;
void kiln_stats_release(kiln_stats *s);
/* Text on stdout, or with --json the report. */
kiln_status kiln_stats_tell(kiln_run *r, const kiln_stats *s, kiln_error *err) KILN_MUST_CHECK;
/* "WIDTHxHEIGHT", or "own", for which both are 0. KILN_E_USAGE. */
kiln_status kiln_stats_size(const char *text, uint32_t size[2], kiln_error *err) KILN_MUST_CHECK;

#endif
