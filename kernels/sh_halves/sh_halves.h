/* sh_halves -- spherical harmonics of degree 1 and above in half precision, as project reads them for fast pictures: half the
 * bytes, and all of a Gaussian's in one place.
 *
 *   shN [columns][rows]    in     as in project.h, 3K columns; looked at are rows [first, first + n)
 *   halves [rows][words]   inout  those rows; words: kiln_sh_words(columns); column 2i of shN in the low half of word i, 2i + 1
 *                                 in the high one, 0 where there is none (kernels/math/half_math.h)
 *
 * Both siblings give the same bits. work as in knn.h: none.
 * KILN_E_INPUT: rows that are not there; halves that are not aligned to 16 bytes.
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

typedef kiln_status kiln_sh_halves_fn(const kiln_exec *x, const kiln_sh_halves_args *a, void *work, size_t *work_bytes,
                                      kiln_error *err);

/* What both siblings ask of their arguments. */
kiln_status kiln_sh_halves_check(const kiln_sh_halves_args *a, kiln_error *err) KILN_MUST_CHECK;

/* Words of a row with so many columns: whole pieces of 16 bytes. */
static inline KILN_HD uint32_t kiln_sh_words(uint32_t columns) { return (columns + 7) / 8 * 4; }

/* What it reads and writes, for kernels/arrays.h. */
#define KILN_ARRAYS_sh_halves(A)     \
    A(IN, shN, a->columns * a->rows) \
    A(INOUT, halves, kiln_sh_words(a->columns) * a->rows)

KILN_C_END

#endif
