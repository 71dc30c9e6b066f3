/* keep_curve -- see the header. */
#include "stages/prune/keep_curve.h"

#include "base/memory.h"
#include "base/minmax.h"
#include "stages/engine/devices/devices.h"
#include "stages/prune/camera_looks.h"

#include <stdio.h>
#include <stdlib.h>

static kiln_status plan_curve(kiln_run *r, const kiln_pruning *p, const kiln_looks_of_unit *of,
                              const kiln_buffer *shared, kiln_unit *u, kiln_error *err)
{
    kiln_prune_unit head = kiln_pruning_head(p, KILN_PRUNE_CURVE);
    head.n_merges = p->n_merges;
    head.n_rows = p->n_rows;
    head.stray_bytes = p->stray_bytes;
    head.mark_bytes = 2 * kiln_pruning_mark_bytes(p);
    if (p->filters.filters.n) head.text_bytes = sizeof p->filters;
    (void)snprintf(u->name, sizeof u->name, "view %u", of->first + 1);
    u->volatile_result = true;
    u->n_outputs = 1;
    return kiln_pruning_plan_looks(r, p, of, &head, shared, u, err);
}

kiln_status kiln_pruning_draw_curve(kiln_run *r, kiln_pruning *p, kiln_error *err)
{
    const uint32_t n = kiln_pruning_curve_units(p);
    kiln_prune_unit head = {
        .n_merges = p->n_merges, .n_rows = p->n_rows, .stray_bytes = p->stray_bytes};
    kiln_buffer shared = {0};
    kiln_unit *units = NULL;
    double cpu_s = 0;
    kiln_status st;
    if (n == 0) return KILN_OK;
    head.mark_bytes = 2 * kiln_pruning_mark_bytes(p);
    if (p->filters.filters.n) head.text_bytes = sizeof p->filters;
    const kiln_prune_request lists = {.head = &head,
                                      .merges = p->merges,
                                      .rows = p->rows,
                                      .marks = p->marks,
                                      .strays = p->strays,
                                      .text = (const char *)&p->filters};
    KILN_GO(KILN_ALLOC(&units, n, "views", err));
    KILN_GO(kiln_pruning_put_lists(&lists, &shared, err));
    for (uint32_t i = 0; i < n; i++) {
        const kiln_looks_of_unit of = kiln_pruning_curve_unit(p, i);
        KILN_GO(plan_curve(r, p, &of, &shared, &units[i], err));
        cpu_s += (1 + KILN_PRUNE_CURVE_POINTS) * kiln_pruning_looks_s(p, &of);
    }
    kiln_run_computes(r, kiln_run_named_kind(r) || kiln_run_gpu_pays(cpu_s));
    KILN_GO(kiln_run_units(r, "drawing fewer rows", units, n, err));
    for (uint32_t i = 0; i < n; i++) {
        kiln_prune_curve c;
        KILN_GO(kiln_unit_struct(r, &units[i], "curve", &c, sizeof c, err));
        for (int k = 0; k < KILN_PRUNE_CURVE_POINTS; k++) p->curve.squares[k] += c.squares[k];
        p->curve.values += c.values;
    }
done:
    kiln_pruning_units_free(units, n);
    kiln_buffer_release(&shared);
    return st;
}
