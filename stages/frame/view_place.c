/* view_place -- see the header. Doubles are added in the order of the chunks, so that every host
 * comes to the same. */
#include "stages/frame/view_place.h"

#include "kernels/spatial_order/spatial_order_math.h"

uint64_t kiln_view_place(const kiln_scene *scene, const kiln_layer *chunks,
                         const kiln_view_chunks *seen)
{
    double sum[3] = {0};
    if (!scene->has_root || seen->rows == 0) return 0;
    for (uint32_t i = 0; i < seen->n; i++) {
        const kiln_chunk *c = &chunks->chunks[seen->numbers[i]];
        for (int a = 0; a < 3; a++)
            sum[a] += (double)c->count * 0.5 * ((double)c->box_min[a] + (double)c->box_max[a]);
    }
    const kiln_hilbert_cube cube = kiln_hilbert_cube_of(scene->root_centre, scene->root_half);
    const double rows = (double)seen->rows;
    return 1 + kiln_hilbert_code_of(&cube, (float)(sum[0] / rows), (float)(sum[1] / rows),
                                    (float)(sum[2] / rows));
}
