/* knn_select_cpu -- selection without branches on the values: which side a record belongs to cannot
 * be foreseen, and a wrong guess costs as much as moving it several times.
 *
 * Large sets are partitioned around values of a sample that lie a little beyond the wanted rank.
 * After one pass over all values and one over half of them, the rank lies in a small rest; up to 64
 * records are counted against each other. Equal values are spread as it happens. What is not a
 * number compares as false: the result is then in no order, but has every record, and no loop goes
 * on for it.
 */
#include "kernels/knn/knn_select.h"

#include <math.h>
#include <string.h>

enum { COUNTED = 64, SAMPLE_MAX = 127 };

/* n <= COUNTED. */
static void select_few(knn_record *r, uint32_t n, uint32_t k, int axis)
{
    float v[COUNTED], last = -INFINITY;
    int32_t smaller[COUNTED];
    knn_record from[COUNTED];
    uint32_t n_smaller = 0;
    const uint32_t lanes = (n + 7) & ~7u;
    memcpy(from, r, n * sizeof *r);
    for (uint32_t i = 0; i < lanes; i++) {
        v[i] = i < n ? r[i].at[axis] : INFINITY;
        smaller[i] = 0;
    }
    for (uint32_t j = 0; j < n; j++) {
        const float x = v[j];
#pragma omp simd
        for (uint32_t i = 0; i < lanes; i++) smaller[i] += x < v[i];
    }
    /* the largest to go left */
    for (uint32_t i = 0; i < n; i++) last = (uint32_t)smaller[i] < k && v[i] > last ? v[i] : last;
    for (uint32_t i = 0; i < n; i++) n_smaller += v[i] < last;
    /* where the next one goes on the right, on the left */
    uint32_t place[2] = {k, 0}, ties = k > n_smaller ? k - n_smaller : 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t tie = (v[i] == last) & (ties > 0);
        uint32_t left = (v[i] < last) | tie;
        left = place[0] == n ? 1 : place[1] == k ? 0 : left; /* acts only on what is not a number */
        ties -= tie;
        r[place[left]++] = from[i];
    }
}

/* Moves what is below the pivot, and with `equal` what equals it, to the front; returns how
 * many. */
static inline uint64_t split_at_pivot(knn_record *r, uint64_t n, int axis, float pivot, int equal)
{
    uint64_t left = 0;
    for (uint64_t i = 0; i < n; i++) {
        const knn_record x = r[i];
        r[i] = r[left];
        r[left] = x;
        left += equal ? x.at[axis] <= pivot : x.at[axis] < pivot;
    }
    return left;
}

/* A value a little beyond rank k of n, on the side with more room, by a sample at pseudo-random
 * places: no order of the input misleads it. */
static float choose_pivot(const knn_record *r, uint64_t n, uint64_t k, int axis, uint64_t *seed)
{
    float v[SAMPLE_MAX];
    const uint32_t size = n > 32768  ? SAMPLE_MAX
                          : n > 1024 ? 31
                                     : 9,
                   beyond = n > 32768  ? 6
                            : n > 1024 ? 3
                                       : 1;
    for (uint32_t i = 0; i < size; i++) {
        *seed = *seed * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX */
        const float x = r[(*seed >> 32) % n].at[axis];
        uint32_t j = i;
        for (; j > 0 && v[j - 1] > x; j--) v[j] = v[j - 1];
        v[j] = x;
    }
    const uint32_t at = (uint32_t)(k * size / n);
    if (2 * k < n) return v[at + beyond < size ? at + beyond : size - 1];
    return v[at > beyond ? at - beyond : 0];
}

/* kiln_knn_select_cpu, kiln_knn_select_cpu_avx2 */
void KILN_CPU(knn_select)(knn_record *r, uint64_t n, uint64_t k, int axis)
{
    uint64_t seed = n;
    while (n > COUNTED) {
        const float pivot = choose_pivot(r, n, k, axis, &seed);
        uint64_t left = split_at_pivot(r, n, axis, pivot, 0);
        if (k < left) {
            n = left;
            continue;
        }
        if (left == 0) { /* the pivot is the least: take all that are equal to it from the front */
            left = split_at_pivot(r, n, axis, pivot, 1);
            if (k <= left || left == 0) return;
        }
        r += left;
        n -= left;
        k -= left;
        if (k == 0) return;
    }
    select_few(r, (uint32_t)n, (uint32_t)k, axis);
}
