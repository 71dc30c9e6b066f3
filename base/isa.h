/* isa -- what this processor can do beyond what every one of its architecture can.
 *
 * NAME_avx2.c is a file for x86-64 alone, where the CPU files of kernels are compiled twice
 * (kernels/exec.h). Elsewhere the Makefile takes NAME_no_avx2.c in its place. Both give the same
 * bits. */
#ifndef KILN_BASE_ISA_H
#define KILN_BASE_ISA_H

#include <stdbool.h>

/* Returns whether it has AVX2 and FMA; false on any machine that is not x86-64. Any thread. */
bool kiln_isa_avx2(void);

#endif
