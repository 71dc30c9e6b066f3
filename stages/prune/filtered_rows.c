/* filtered_rows -- the rows of a block that --filter-box, --filter-sphere and --filter-value drop.
 *
 * They are marked before the rules run, as rows that the user names are, so that no rule counts or
 * clamps what is not there. What each kind of filter drops is counted here; a row counts for the
 * first kind that drops it. Filters see survivors of merges as they are after merging, as the crops
 * do. */
#include "stages/prune/prune_units.h"

#include <stdlib.h>
#include <string.h>

static const void *copied(const kiln_pruned_rows *r, const char *plane)
{
    if (strcmp(plane, "means") == 0) return r->means;
    if (strcmp(plane, "log_scales") == 0) return r->log_scales;
    if (strcmp(plane, "quats") == 0) return r->quats;
    if (strcmp(plane, "opacity_logits") == 0) return r->opacity_logits;
    if (strcmp(plane, "spacing2") == 0) return r->spacing2;
    return NULL;
}

static void mark_kind(const kiln_prune_filters *f, int kind, const void *const planes[],
                      uint8_t *keep, kiln_pruned_rows *r)
{
    kiln_filters some = f->filters;
    some.n = 0;
    for (uint32_t i = 0; i < f->filters.n; i++)
        if (f->filters.filters[i].kind == (kiln_filter_kind)kind)
            some.filters[some.n++] = f->filters.filters[i];
    if (some.n == 0) return;
    (void)kiln_filters_keep(&some, r->n, f->origin, planes, keep);
    for (uint64_t i = 0; i < r->n; i++) {
        if (keep[i] || r->mark[i] != KILN_PRUNE_STAY) continue;
        r->mark[i] = KILN_PRUNE_NAMED;
        r->filtered[kind]++;
    }
}

kiln_status kiln_prune_mark_filtered(kiln_worker *w, kiln_prune_input *in,
                                     const kiln_prune_request *q, uint32_t block,
                                     kiln_pruned_rows *r, kiln_error *err)
{
    kiln_prune_filters f;
    const void *planes[KILN_FILTERS_MAX];
    uint8_t *keep;
    kiln_status st = KILN_OK;
    if (q->head->text_bytes != sizeof f || r->n == 0) return KILN_OK;
    memcpy(&f, q->text, sizeof f);
    for (uint32_t k = 0; k < f.filters.n_planes; k++) {
        planes[k] = copied(r, f.filters.planes[k].name);
        if (!planes[k])
            KILN_TRY(kiln_prune_plane(w, in, block, f.filters.planes[k].name, &planes[k], err));
    }
    KILN_TRY(KILN_ALLOC(&keep, r->n, "filtered rows", err));
    for (int kind = 0; kind < KILN_FILTER_KINDS; kind++) mark_kind(&f, kind, planes, keep, r);
    free(keep);
    return st;
}
