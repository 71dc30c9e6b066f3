/* knn -- computes the mean squared distance from each point to its k nearest neighbours, exactly.
 *
 *   means     [3][n] f32  in   scene units, finite, planar (all x, then y, then z)
 *   spacing2  [n]    f32  out  scene units squared; may be NULL. With k = 3 and n <= 3 as distCUDA2
 *                              gives it (DESIGN.md): a missing neighbour counts as FLT_MAX. The
 *                              stage stores a fallback for values that become infinite
 *   best      [k][n] f32  out  the k squared distances themselves, ascending; may be NULL
 *
 * d = fma(dz,dz, fma(dx,dx, dy*dy)) with dx = candidate - query. The k smallest d are added in
 * ascending order and divided by k. Only these values matter, not which points gave them, so any
 * exact search gives the same result. A duplicate counts at distance 0; a point is not its own
 * neighbour.
 *
 * knn_join -- does the same for a set that arrives in parts: offers candidates to queries and keeps
 * the k best.
 *
 *   means     [3][n]          f32  in      candidates, none of them a query itself
 *   queries   [3][n_queries]  f32  in      in any order, but slow unless adjacent queries are near
 *                                          each other
 *   best      [k][n_queries]  f32  in out  ascending; FLT_MAX where no neighbour was found yet
 *
 * The k smallest of a union are the k smallest among the k smallest of its parts. So the result
 * does not depend on the order and number of parts. kiln_knn_mean turns best into spacing2.
 *
 * For both operations, and for all others that refer to this header:
 *   Work space   If work is NULL, the function writes the bytes that it needs to *work_bytes and
 *                does nothing else. work is aligned to 256 bytes, as cudaMalloc and
 *                aligned_alloc(256, ...) give it; arrays to their elements.
 *   Ownership    Nothing is allocated and no pointer is kept.
 *   Memory       Arrays and work are host memory for the CPU sibling, memory of x->device for CUDA.
 *                kernels/runner.h calls either on host memory.
 *   Waiting      The CPU sibling is done when it returns. CUDA puts its launches on x->stream and
 *                does not wait.
 *
 * KILN_E_INPUT  k is 0 or above KILN_KNN_MAX, n above 2^32 - 2
 * KILN_E_CAP    *work_bytes is less than needed
 * KILN_E_DEVICE a launch failed; the message names kernel, device, file and line
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
    float *spacing2, *best;
} kiln_knn_args;

typedef struct {
    uint64_t n, n_queries;
    uint32_t k;
    const float *means, *queries;
    float *best;
} kiln_knn_join_args;

typedef kiln_status kiln_knn_fn(const kiln_exec *x, const kiln_knn_args *a, void *work,
                                size_t *work_bytes, kiln_error *err);
typedef kiln_status kiln_knn_join_fn(const kiln_exec *x, const kiln_knn_join_args *a, void *work,
                                     size_t *work_bytes, kiln_error *err);

/* Checks n and k for both siblings; KILN_E_INPUT as above. */
kiln_status kiln_knn_check(const char *op, uint64_t n, uint32_t k, kiln_error *err) KILN_MUST_CHECK;

/* Computes spacing2 [n] from best [k][n], on the host. */
void kiln_knn_mean(const float *best, uint64_t n, uint32_t k, float *spacing2);
/* Computes the mean of the distances themselves, not of their squares, on the host. At most 2^60,
 * where a square is infinite or no neighbour was found. */
void kiln_knn_mean_distance(const float *best, uint64_t n, uint32_t k, float *distance);

/* The arrays that they read and write, for kernels/arrays.h. */
#define KILN_ARRAYS_knn(A) \
    A(IN, means, 3 * a->n) \
    A(OUT, spacing2, a->n) \
    A(OUT, best, a->k * a->n)

#define KILN_ARRAYS_knn_join(A)      \
    A(IN, means, 3 * a->n)           \
    A(IN, queries, 3 * a->n_queries) \
    A(INOUT, best, a->k * a->n_queries)

KILN_C_END

#endif
