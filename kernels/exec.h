/* exec -- where and how an operation runs: device, streams, threads. It is an argument of every
 * call; none of it is global.
 *
 * On x86-64 each CPU file is compiled twice: for any machine, and with AVX2 and FMA. Both give the
 * same bits (no contraction, fmaf where the header says so); ops_avx2.c picks one at start. A CPU
 * file writes its function names with KILN_CPU(op), because the two builds need different ones:
 * KILN_CPU(knn) is kiln_knn_cpu in the first build and kiln_knn_cpu_avx2 in the second. Each file
 * spells its names out in a comment, so that grep finds them.
 */
#ifndef KILN_KERNELS_EXEC_H
#define KILN_KERNELS_EXEC_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int device; /* CUDA ordinal of this process; -1: the CPU */
    /* CUDA only; never NULL, because NULL is the legacy stream, which waits for all others */
    struct CUstream_st *stream;
    /* CUDA only: a second stream of the same device, for work that can run beside `stream`; NULL:
     * there is none. An operation that uses it makes `stream` wait for that work, so outside of
     * operations it is empty. */
    struct CUstream_st *side;
    unsigned threads; /* CPU only, at least 1; results do not depend on it */
    bool sync;        /* wait after every launch and name the kernel that failed */
    /* CUDA only: a word in device memory, KILN_VIOLATION_NONE before the call (violation.h); NULL:
     * not wanted. */
    uint64_t *violation;
} kiln_exec;

#ifndef KILN_CPU_ISA
#define KILN_CPU_ISA
#endif
#define KILN_CPU_PASTE_(op, isa) kiln_##op##_cpu##isa
#define KILN_CPU_PASTE(op, isa) KILN_CPU_PASTE_(op, isa)
#define KILN_CPU(op) KILN_CPU_PASTE(op, KILN_CPU_ISA)

#endif
