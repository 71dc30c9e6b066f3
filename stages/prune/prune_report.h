/* prune_report -- what kiln-prune says: some lines or all tables on the terminal, the same numbers
 * in the run's record. */
#ifndef KILN_STAGES_PRUNE_REPORT_H
#define KILN_STAGES_PRUNE_REPORT_H

#include "stages/prune/rules.h"
#include "stages/prune/prune_tally.h"
#include "stages/prune/prune_units.h"

#include <jansson.h>

typedef struct {
    const char *camera;
    uint32_t width, height;
    kiln_prune_pairs count;
    bool missing;                         /* quarantined: the count is not known */
    const kiln_prune_weight *would_touch; /* of rules whose limit is auto; NULL: not known */
} kiln_prune_view;

/* Of the rules whose limit is auto. */
typedef struct {
    uint32_t rules; /* bit r: the limit of rule r is auto */
    bool act;
    uint64_t touched; /* rows that they would touch */
    /* dropped, clamped, of blocks that have such rows: what each rule would do */
    uint64_t counts[KILN_PRUNE_RULES][2];
    kiln_prune_weight *weights; /* [n_cameras]; NULL: no row would be touched */
    bool *weighed;              /* [n_cameras] the weight of this camera is known */
} kiln_prune_judgement;

typedef struct {
    const kiln_prune_options *given;   /* with limits that are `auto` */
    const kiln_prune_options *options; /* with what was chosen for them */
    const kiln_prune_judgement *judgement;
    bool of_points; /* kiln-knn has made the Gaussians of points */
    /* so many cameras on an orbit judged, as the scene has none; 0: the scene's own did */
    uint32_t synthetic;
    const kiln_prune_stats *stats;
    const kiln_tally *tally;
    const uint64_t *filtered; /* [KILN_FILTER_KINDS] dropped by filters; NULL: there are none */
    const kiln_tally *other;  /* of --against; NULL without */
    const char *against;
    /* the longest axis of any row: before, after, of the other bake; 0 without rows */
    double largest[3];
    const kiln_prune_view *views;
    uint32_t n_views;
    /* cameras that rules have asked what they see, and how many of their photos have masks */
    uint32_t looks, masks;
    const kiln_prune_curve *curve;          /* of a dry run with such rules; NULL: none */
    const kiln_prune_voxels_found *cluster; /* of --filter-cluster; NULL: it is off */
    bool dry_run;
    bool all; /* print all tables, not the summary alone */
} kiln_prune_report;

/* Bytes of tile lists: what gsplat's isect_tiles takes, 12 a pair, doubled by its sort
 * (nerfstudio-project/gsplat #464, #487). */
enum { KILN_PRUNE_LIST_BYTES = 24 };

kiln_status kiln_prune_report_json(const kiln_prune_report *r, json_t *out,
                                   kiln_error *err) KILN_MUST_CHECK;
/* stdout; the engine checks it at the end */
void kiln_prune_report_print(const kiln_prune_report *r);
/* Warnings to stderr: everything dropped, rows named that do not exist, a seed without a voxel,
 * rules of voxels that leave next to nothing,
 * scales far from those of the other bake. Each is also a meaning of `report`
 * (stages/engine/meaning.h). KILN_E_NOMEM. */
kiln_status kiln_prune_report_warn(const kiln_prune_report *r, uint64_t n_named, json_t *report,
                                   kiln_error *err) KILN_MUST_CHECK;

#endif
