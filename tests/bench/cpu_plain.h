/* cpu_plain -- the operations of a frame as one writes them down: a Gaussian, a tile, a pixel after
 * the other, and qsort. What vectors, bounds and the order of loops gain is measured against it,
 * and the results are the same. All are built with AVX2 and FMA, as the siblings that they are
 * timed beside, and use `threads`, qsort excepted. */
#ifndef KILN_TESTS_BENCH_CPU_PLAIN_H
#define KILN_TESTS_BENCH_CPU_PLAIN_H

#include "kernels/depth_order/depth_order.h"
#include "kernels/raster/raster.h"
#include "kernels/tile_pairs/tile_pairs.h"

typedef struct {
    uint64_t evaluated; /* combinations of pixel and listed Gaussian before the pixel stops */
    uint64_t drawn;     /* of them, those that change the pixel */
} cpu_plain_counts;

/* Fills a->splats and *a->n_visible. No halves, no other outputs. seen [n]: work. */
void cpu_plain_project(const kiln_project_args *a, unsigned threads, uint8_t *seen);

/* One to be sorted. */
typedef struct {
    uint64_t key;
    uint32_t at;
} cpu_plain_item;
/* items [n]: work. */
void cpu_plain_order(const kiln_depth_order_args *a, cpu_plain_item *items);

void cpu_plain_count(const kiln_tile_pairs_count_args *a, unsigned threads);
/* row_pairs: as cpu_plain_count gives them. columns [a->capacity], mine [a->capacity]: work. */
void cpu_plain_emit(const kiln_tile_pairs_emit_args *a, const uint64_t *row_pairs, unsigned threads,
                    uint32_t *columns, uint32_t *mine);

/* starts: where each tile's list begins in a->ranks. No depth. */
cpu_plain_counts cpu_plain_raster(const kiln_raster_args *a, const uint64_t *starts,
                                  unsigned threads);

#endif
