/* cpu_plain -- the raster as one writes it down: a pixel after the other, a Gaussian after the other, until the pixel stops. What
 * vectors, culling and the order of loops gain is measured against it, and the pictures are the same. */
#ifndef KILN_TESTS_BENCH_CPU_PLAIN_H
#define KILN_TESTS_BENCH_CPU_PLAIN_H

#include "kernels/raster/raster.h"

typedef struct {
    uint64_t evaluated; /* combinations of pixel and listed Gaussian before the pixel stops */
    uint64_t drawn;     /* of them, those that change the pixel */
} cpu_plain_counts;

/* starts: where each tile's list begins in a->ranks. No depth. Built with AVX2 and FMA, as the sibling that it is timed beside. */
cpu_plain_counts cpu_plain_raster(const kiln_raster_args *a, const uint64_t *starts, unsigned threads);

#endif
