/* cpu_fma -- float32 fused multiply-adds as fast as one core takes them. Built with AVX2 and
 * FMA. */
#ifndef KILN_TESTS_BENCH_CPU_FMA_H
#define KILN_TESTS_BENCH_CPU_FMA_H

#include <stdint.h>

enum { CPU_FMA_LANES = 8, CPU_FMA_CHAINS = 12 };

/* Does steps * CPU_FMA_CHAINS * CPU_FMA_LANES of them; returns a value that depends on all. */
float cpu_fma_chains(uint64_t steps);

#endif
