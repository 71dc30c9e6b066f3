/* knn_select -- moves the records with the k smallest values of one axis to the front; private to
 * this folder. */
#ifndef KILN_KERNELS_KNN_SELECT_H
#define KILN_KERNELS_KNN_SELECT_H

#include "kernels/exec.h"

#include <stdint.h>

/* A point while the tree is being built; the bits of its row are in at[3], so that a record is four
 * floats. */
typedef struct {
    float at[4];
} knn_record;

/* 0 < k < n. Any order on both sides; what is not a number may be on either. */
/* kiln_knn_select_cpu, kiln_knn_select_cpu_avx2 */
void KILN_CPU(knn_select)(knn_record *r, uint64_t n, uint64_t k, int axis);

#endif
