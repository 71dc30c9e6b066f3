/* What both siblings refuse. */
#include "kernels/knn/knn.h"

#include "kernels/sort/sort.h"

kiln_status kiln_knn_check(const kiln_knn_args *a, kiln_error *err)
{
    if (a->k == 0 || a->k > KILN_KNN_MAX)
        return kiln_fail(err, KILN_E_INPUT, "knn: %u neighbours; from 1 to %d are possible", a->k, KILN_KNN_MAX);
    return kiln_sort_check("knn", a->n, err);
}
