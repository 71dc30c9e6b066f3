/* scene_box -- see the header. */
#include "stages/frame/scene_box.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

static int by_double(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

kiln_status kiln_scene_box(const kiln_scene *scene, const kiln_layer *layer, double lo[3],
                           double hi[3], kiln_error *err)
{
    double *sides;
    const uint32_t n = layer->n_chunks, skip = n / 100;
    KILN_TRY(KILN_ALLOC(&sides, 2 * (uint64_t)n, "boxes of chunks", err));
    for (int a = 0; a < 3; a++) {
        uint32_t used = 0;
        for (uint32_t i = 0; i < n; i++) {
            if (layer->chunks[i].count == 0) continue;
            sides[used] = (double)layer->chunks[i].box_min[a];
            sides[n + used++] = (double)layer->chunks[i].box_max[a];
        }
        if (used) qsort(sides, used, sizeof *sides, by_double);
        if (used) qsort(sides + n, used, sizeof *sides, by_double);
        lo[a] = used > 2 * skip ? sides[skip] : 0;
        hi[a] = used > 2 * skip ? sides[n + used - 1 - skip] : 0;
        if (scene->has_root) lo[a] = fmax(lo[a], scene->root_centre[a] - scene->root_half);
        if (scene->has_root) hi[a] = fmin(hi[a], scene->root_centre[a] + scene->root_half);
        lo[a] += scene->origin[a];
        hi[a] += scene->origin[a];
    }
    free(sides);
    return KILN_OK;
}
