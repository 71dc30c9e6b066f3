/* sh_halves -- converts spherical harmonics of degree 1 and above to half precision, as project
 * reads them for fast pictures: half the bytes, and all values of a Gaussian in one place.
 *
 *   shN [columns][rows]    in     as in project.h, 3K columns; only rows [first, first + n) are
 *                                 read
 *   halves [rows][words]   inout  the same rows are written; words is kiln_sh_words(columns). Word
 *                                 i has column 2i of shN in its low half and column 2i + 1 in its
 *                                 high half, 0 for columns beyond the last
 *                                 (kernels/math/half_math.h)
 *
 * Both siblings give the same bits. Pointers, threads: as in knn.h; no work space is needed.
 * KILN_E_INPUT: rows beyond the last; halves not aligned to 16 bytes.
 */
#ifndef KILN_KERNELS_SH_HALVES_H
#define KILN_KERNELS_SH_HALVES_H

#include "base/extern_c.h"
#include "base/hd.h"
#include "base/status.h"
#include "kernels/exec.h"

#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

typedef struct {
    uint64_t rows, first, n;
    uint32_t columns;
    const float *shN;
    uint32_t *halves;
} kiln_sh_halves_args;

typedef kiln_status kiln_sh_halves_fn(const kiln_exec *x, const kiln_sh_halves_args *a, void *work,
                                      size_t *work_bytes, kiln_error *err);

/* Checks the arguments for both siblings. */
kiln_status kiln_sh_halves_check(const kiln_sh_halves_args *a, kiln_error *err) KILN_MUST_CHECK;

/* Returns the words of a row with so many columns, a multiple of 16 bytes. */
static inline KILN_HD uint32_t kiln_sh_words(uint32_t columns) { return (columns + 7) / 8 * 4; }

/* The arrays that it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_sh_halves(A)     \
    A(IN, shN, a->columns * a->rows) \
    A(INOUT, halves, kiln_sh_words(a->columns) * a->rows)

KILN_C_END

#endif
