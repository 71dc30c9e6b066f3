/* project_backward_cpu -- row by row: the definition. */
#include "kernels/project_backward/project_backward.h"

#include "kernels/project_backward/project_backward_math.h"

#include <string.h>

kiln_project_backward_fn KILN_CPU(project_backward);

/* kiln_project_backward_cpu, kiln_project_backward_cpu_avx2 */
kiln_status KILN_CPU(project_backward)(const kiln_exec *x, const kiln_project_backward_args *a,
                                       void *work, size_t *work_bytes, kiln_error *err)
{
    KILN_TRY(kiln_project_backward_check(a, err));
    if (!work) {
        *work_bytes = 0;
        return KILN_OK;
    }
    kiln_projection lens;
    kiln_project_projection(&lens, a->view, &a->cut, a->profile, a->antialiased);
    memset(a->gradients, 0, kiln_gradient_planes(a->sh_degree) * a->n * sizeof *a->gradients);
#pragma omp parallel for num_threads(x->threads) schedule(static, 256)
    for (int64_t i = 0; i < (int64_t)a->n_splats; i++)
        if (a->splats[i].row < a->n) kiln_project_backward_row(a, &lens, &a->splats[i]);
    return KILN_OK;
}
