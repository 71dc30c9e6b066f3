/* What all siblings refuse, and the mean that ends a search in parts. */
#include "kernels/knn/knn.h"

#include "kernels/sort/sort.h"

#include <math.h>

kiln_status kiln_knn_check(const char *op, uint64_t n, uint32_t k, kiln_error *err)
{
    if (k == 0 || k > KILN_KNN_MAX)
        return kiln_fail(err, KILN_E_INPUT, "%s: %u neighbours; from 1 to %d are possible", op, k,
                         KILN_KNN_MAX);
    return kiln_sort_check(op, n, err);
}

void kiln_knn_mean(const float *best, uint64_t n, uint32_t k, float *spacing2)
{
    for (uint64_t i = 0; i < n; i++) {
        float sum = 0.0f;
        for (uint32_t j = 0; j < k; j++) sum += best[j * n + i];
        spacing2[i] = sum / (float)k;
    }
}

/* Square roots and sums of doubles in one order: pinned. */
void kiln_knn_mean_distance(const float *best, uint64_t n, uint32_t k, float *distance)
{
    const double most = 0x1p60;
    for (uint64_t i = 0; i < n; i++) {
        double sum = 0;
        for (uint32_t j = 0; j < k; j++) sum += sqrt((double)best[j * n + i]);
        distance[i] = sum < k * most ? (float)(sum / k) : (float)most;
    }
}
