/* curve_unit -- how much a camera's picture changes when only the rows with the highest scores are
 * drawn: against the picture of all rows that the other rules leave. For people: nothing that is
 * stored depends on it. */
#include "base/memory.h"
#include "stages/prune/pruned_scene.h"

#include <stdlib.h>

static kiln_status draw_colours(kiln_worker *w, kiln_pruned_scene *s, uint64_t capacity,
                                float *rgba, kiln_error *err)
{
    kiln_draw_scene scene;
    kiln_pruned_scene_of(s, &scene);
    const kiln_draw_want want = {.ways = capacity > 0
                                             ? KILN_DRAW_SLABS
                                             : KILN_DRAW_DEVICE | KILN_DRAW_SLABS | KILN_DRAW_HOST,
                                 .capacity = capacity,
                                 .rgba = rgba};
    const kiln_status st = kiln_draw(kiln_worker_runner(w), &scene, &want, NULL, err);
    kiln_pruned_scene_release(s);
    return st;
}

/* Colours as a PNG would have them: not above 1. */
static double difference(const float *a, const float *b, const uint8_t *mask, uint64_t pixels)
{
    double sum = 0;
    for (uint64_t i = 0; i < pixels; i++)
        for (uint64_t c = 0; c < 3 && (!mask || mask[i]); c++) {
            const double x = (double)a[4 * i + c], y = (double)b[4 * i + c],
                         d = (x < 1 ? x : 1) - (y < 1 ? y : 1);
            sum += d * d;
        }
    return sum;
}

static kiln_status compare_points(kiln_worker *w, kiln_prune_input *in, const kiln_prune_request *q,
                                  float *all, float *some, kiln_prune_curve *out, kiln_error *err)
{
    const kiln_view *view = &q->looks[0].request.view;
    const uint64_t pixels = (uint64_t)view->width * view->height, capacity = q->head->capacity;
    const uint64_t marks = q->head->mark_bytes / 2;
    kiln_prune_unit unmarked = *q->head, marked = *q->head;
    kiln_prune_request without = *q, with = *q;
    uint8_t *mask = NULL;
    kiln_status st;
    unmarked.mark_bytes = 0;
    marked.mark_bytes = marks;
    without.head = &unmarked;
    with.head = &marked;
    kiln_pruned_scene s = {
        .w = w, .in = in, .q = &without, .view = &q->looks[0].request, .colour = true, .number = 1};
    KILN_GO(kiln_prune_mask_read(w, q, &q->looks[0], &mask, err));
    KILN_GO(draw_colours(w, &s, capacity, all, err));
    for (unsigned k = 0; k < KILN_PRUNE_CURVE_POINTS; k++) {
        s.q = k == 0 ? &with : &without;
        s.classes = k == 0 ? NULL : q->marks + marks;
        s.least = k;
        s.number = 2 + k;
        KILN_GO(draw_colours(w, &s, capacity, some, err));
        out->squares[k] = difference(all, some, mask, pixels);
    }
    for (uint64_t i = 0; i < pixels; i++) out->values += !mask || mask[i] ? 3 : 0;
done:
    free(mask);
    return st;
}

kiln_status kiln_prune_curve_unit(kiln_worker *w, const kiln_prune_request *q, kiln_error *err)
{
    kiln_prune_input *in;
    kiln_prune_curve curve = {0};
    float *pictures = NULL;
    kiln_status st;
    if (q->head->n_looks != 1) return kiln_fail(err, KILN_E_BUG, "a curve is of one camera");
    KILN_TRY(kiln_prune_input_get_drawn(w, q->head, &in, err));
    const kiln_view *view = &q->looks[0].request.view;
    const uint64_t floats = 4 * (uint64_t)view->width * view->height;
    KILN_GO(KILN_ALLOC_UNSET(&pictures, 2 * floats, "two pictures", err));
    KILN_GO(compare_points(w, in, q, pictures, pictures + floats, &curve, err));
    KILN_GO(kiln_worker_put(w, "curve", &curve, sizeof curve, 8, err));
done:
    free(pictures);
    return st;
}
