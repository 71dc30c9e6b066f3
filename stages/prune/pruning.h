/* pruning -- a run of kiln-prune in the parent: what its steps find out one after the other, and
 * what they share to make units. stages/prune.c has the order of the steps. For one thread. */
#ifndef KILN_STAGES_PRUNE_PRUNING_H
#define KILN_STAGES_PRUNE_PRUNING_H

#include "base/memory.h"
#include "stages/engine/engine.h"
#include "stages/prune/prune_report.h"
#include "stages/prune/prune_units.h"

#include <math.h>

enum { KILN_PRUNE_SIZES_MAX = 8, KILN_PRUNE_CAMERAS_USUAL = 32 };

/* Values of the options, whose rows are in stages/prune.c. */
typedef struct {
    kiln_prune_options rules;
    bool dry_run, all_cameras;
    const char *sizes, *against;
    uint64_t outlier_range; /* rows of a range of --outlier-sor; 0: as memory has room */
    /* blocks of voxels of --filter-floaters and --filter-cluster in memory; 0: as memory has
     * room */
    uint32_t voxel_blocks;
    const char *filter_boxes, *filter_spheres, *filter_values;
} kiln_prune_values;

typedef struct {
    const kiln_prune_values *o; /* borrowed */
    kiln_scene scene;
    kiln_layer *input, *spacing; /* spacing: only where the input has no such plane itself */
    /* [input->n_chunks] its block for each of the input's; NULL with the plane in the input */
    uint32_t *spacing_of;
    kiln_prune_size size;
    uint64_t cache; /* what a worker keeps decoded, at most */
    uint32_t *rows; /* --drop-row */
    uint64_t n_rows;
    kiln_prune_filters filters;
    uint64_t filtered[KILN_FILTER_KINDS]; /* rows that they drop */
    kiln_prune_stats stats;
    kiln_prune_judgement judgement;
    kiln_prune_options chosen; /* the options, with a limit or off for `auto` */
    kiln_prune_rules rules;
    kiln_merged_row *merges;
    uint64_t n_merges;
    kiln_prune_look *looks; /* [n_looks] training cameras, where rules ask what they see */
    kiln_prune_mask *masks; /* [n_masks] of their photos */
    uint32_t n_looks, n_masks;
    /* NULL: none; of all blocks, as kiln_prune_unit says; those of a curve behind them */
    uint8_t *marks;
    uint8_t *strays;                 /* NULL: none; of all blocks, as kiln_prune_unit says */
    uint64_t stray_bytes;            /* of these; 0: none */
    kiln_prune_voxels_found cluster; /* of --filter-cluster, where it is on */
    uint64_t n_left;                 /* rows that the other rules leave */
    kiln_prune_curve curve;          /* sum over cameras; of a dry run */
    kiln_unit *blocks;               /* [n_blocks], of the input's those that have spacing */
    uint32_t *block_of;              /* [n_blocks] which of the input's it is */
    uint32_t n_blocks;
    /* [2 * input->n_chunks] what became of each block, as kiln_prune_request has it */
    uint32_t *kept;
    kiln_tally tally, other;
    double largest[3];       /* as in kiln_prune_report */
    kiln_camera *cameras;    /* [n_cameras] that are held */
    kiln_texts camera_names; /* of those */
    uint32_t n_cameras, n_views;
    kiln_prune_view *views;
    kiln_view_request *requests; /* [n_views] */
    kiln_chunk_keys keys;        /* of the input */
} kiln_pruning;

void kiln_pruning_release(kiln_pruning *p);
/* Of units whose payloads are their own; accepts NULL. */
void kiln_pruning_units_free(kiln_unit *units, uint64_t n);

/* Of `all` cameras: how many pairs are counted for; and how many are held, which are all where a
 * limit is `auto`. */
uint32_t kiln_pruning_forecast_cameras(const kiln_prune_values *o, uint32_t all);
uint32_t kiln_pruning_held_cameras(const kiln_prune_values *o, uint32_t all);
/* Makes p->cameras, once: those that are held, evenly chosen, without photos and masks. As
 * kiln_cameras_each. */
kiln_status kiln_pruning_read_cameras(kiln_run *r, kiln_pruning *p,
                                      kiln_error *err) KILN_MUST_CHECK;

/* Says whether a block of the input has all that pruning reads: kiln-knn leaves blocks out when it
 * finishes partially. */
bool kiln_pruning_has_block(const kiln_pruning *p, uint32_t block);
/* The block of spacing that belongs to a block of the input; NULL: the input has the plane itself,
 * or there is none. */
const kiln_chunk *kiln_pruning_spacing_block(const kiln_pruning *p, uint32_t block);
/* What filters read beside the copies that a block has of its geometry, in bytes. */
uint64_t kiln_pruning_filters_ram(const kiln_pruning *p);
/* Of the marks of all blocks; those of a curve take as much again. */
static inline uint64_t kiln_pruning_mark_bytes(const kiln_pruning *p)
{
    return p->input->n_chunks * kiln_prune_pairs_of_bits_bytes(p->size.blocks.rows);
}
/* Of these, where rules ask cameras. */
static inline uint64_t kiln_pruning_asked_bytes(const kiln_pruning *p)
{
    return p->n_looks > 0 ? kiln_pruning_mark_bytes(p) : 0;
}
/* Of the strays of all blocks: those of all passes together, where one is on; and what a pass
 * gives. */
static inline uint64_t kiln_pruning_strays_bytes(const kiln_pruning *p)
{
    return kiln_prune_finds_strays(&p->o->rules) ? kiln_pruning_mark_bytes(p) : 0;
}
static inline uint64_t kiln_pruning_stray_bytes(const kiln_pruning *p)
{
    return p->input->n_chunks * kiln_prune_stray_bytes(p->size.blocks.rows);
}
/* Adds what a pass has found, the output "strays" of its unit, to p->strays. A row that an earlier
 * pass drops stays of that one. Fails as kiln_unit_refuse. */
kiln_status kiln_pruning_take_strays(kiln_run *r, kiln_pruning *p, kiln_stray pass,
                                     const kiln_unit *u, kiln_error *err) KILN_MUST_CHECK;
/* The larger of a length and exp(log_scale), which is 0 of a block without rows, whose log_scale is
 * -infinity. */
static inline double kiln_pruning_larger(double a, double log_scale)
{
    return fmax(a, exp(log_scale));
}

/* Adds planes of a block, or the filters, to a key. Nothing where there are no filters: keys stay
 * what they were before those. */
void kiln_pruning_key_planes(kiln_hasher *h, const kiln_pruning *p, uint32_t block,
                             const char *const *names, size_t n);
void kiln_pruning_key_filters(kiln_hasher *h, const kiln_pruning *p);
/* What all payloads of a kind begin with. */
kiln_prune_unit kiln_pruning_head(const kiln_pruning *p, kiln_prune_unit_kind kind);
/* Make parts of a payload: the head with looks and masks, which are a unit's own, and the lists
 * behind them, which cameras share; as much of each as the head says. KILN_E_NOMEM. */
kiln_status kiln_pruning_put_own(const kiln_prune_request *q, kiln_buffer *b,
                                 kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_pruning_put_lists(const kiln_prune_request *q, kiln_buffer *b,
                                   kiln_error *err) KILN_MUST_CHECK;
/* Makes the payload of a unit: its own part, and with `lists` the other, too. KILN_E_NOMEM. */
kiln_status kiln_pruning_set_payload(kiln_unit *unit, const kiln_prune_request *q, bool lists,
                                     kiln_error *err) KILN_MUST_CHECK;

#endif
