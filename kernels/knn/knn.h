/* knn -- mean squared distance from each point to its k nearest neighbours, exact.
 *
 *   means     [3][n] f32  in   scene units, finite, planar (all x, then y, then z)
 *   spacing2  [n]    f32  out  scene units squared; with k = 3 and n <= 3 as distCUDA2 gives it (KERNELS 1.1): a missing
 *                              neighbour counts FLT_MAX; the stage stores a fallback instead of what is infinite
 *
 * d = fma(dz,dz, fma(dx,dx, dy*dy)) with dx = candidate - query; the k smallest d, added ascending, divided by k.
 * Only these values matter, not which points gave them, so the result is the same for any exact search; a duplicate
 * counts at distance 0, a point is not its own neighbour.
 * work == NULL: writes the bytes needed to *work_bytes and does nothing else. Does not allocate, keeps no pointer.
 * Arrays and work are host memory for the CPU sibling, memory of x->device for CUDA, which only puts its launches on
 * x->stream and does not wait for them; kernels/runner.h calls either on host memory. work is aligned to 256 bytes, as
 * cudaMalloc and aligned_alloc(256, ...) give it; arrays to their element.
 *
 * KILN_E_INPUT  k is 0 or above KILN_KNN_MAX, n above 2^32 - 2
 * KILN_E_CAP    *work_bytes is less than needed
 * KILN_E_DEVICE a launch failed; names kernel, device, file and line
 *
 * Source: simple-knn (Inria, 2023) for the definition, k = 3; see DESIGN.md.
 */
#ifndef KILN_KERNELS_KNN_H
#define KILN_KERNELS_KNN_H

#include "base/extern_c.h"
#include "base/status.h"
#include "kernels/exec.h"

#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

enum { KILN_KNN_MAX = 32 };

typedef struct {
    uint64_t n;
    uint32_t k;
    const float *means;
    float *spacing2;
} kiln_knn_args;

typedef kiln_status kiln_knn_fn(const kiln_exec *x, const kiln_knn_args *a, void *work, size_t *work_bytes, kiln_error *err);

/* KILN_E_INPUT as above; for both siblings. */
kiln_status kiln_knn_check(const kiln_knn_args *a, kiln_error *err) KILN_MUST_CHECK;

/* What it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_knn(A) \
    A(IN, means, 3 * a->n) \
    A(OUT, spacing2, a->n)

KILN_C_END

#endif
