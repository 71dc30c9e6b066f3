/* exec -- where and how an operation runs. Comes with every call; nothing about it is global.
 *
 * The CPU siblings are compiled twice from one file: for any x86-64, and with AVX2 and FMA. Both give the same bits
 * (no contraction, fmaf where the header says so); ops_cpu.c picks one at start. A CPU file names its entry points
 * with KILN_CPU(op).
 */
#ifndef KILN_KERNELS_EXEC_H
#define KILN_KERNELS_EXEC_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    int device;                 /* CUDA ordinal of this process; -1: the CPU */
    struct CUstream_st *stream; /* CUDA only; never NULL, which is the legacy stream that waits for all others */
    struct CUstream_st *side; /* CUDA only: another of the same device, for what can run beside `stream`. Who puts work there makes
                                 `stream` wait for it: outside of an operation it has none of its own. NULL: there is none */
    unsigned threads;         /* CPU only, at least 1; results do not depend on it */
    bool sync;                /* wait after every launch and name the kernel that failed */
    uint64_t *violation;      /* CUDA only: device memory, KILN_VIOLATION_NONE before the call (violation.h); NULL: not asked for */
} kiln_exec;

#ifndef KILN_CPU_ISA
#define KILN_CPU_ISA
#endif
#define KILN_CPU_PASTE_(op, isa) kiln_##op##_cpu##isa
#define KILN_CPU_PASTE(op, isa) KILN_CPU_PASTE_(op, isa)
#define KILN_CPU(op) KILN_CPU_PASTE(op, KILN_CPU_ISA)

#endif
