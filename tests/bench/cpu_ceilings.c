/* cpu_ceilings -- what a thread of this machine reaches, alone and beside the others. The best of
 * some tries: others may be using the same cores, and a ceiling is what can be had. */
#include "tests/bench/cpu_bench.h"

#include "base/memory.h"
#include "tests/bench/cpu_fma.h"

#include <stdlib.h>
#include <string.h>

enum { TRIES = 5 };
static const uint64_t steps = 4000000, array_bytes = 128u << 20;
static volatile float kept; /* so that nothing is left out */

/* Processor seconds of one thread, least of the tries. */
static double time_fma(unsigned threads)
{
    double least = 0;
    for (int t = 0; t < TRIES; t++) {
        const cpu_time from = cpu_now();
#pragma omp parallel num_threads(threads)
        kept = cpu_fma_chains(steps);
        const double s = (cpu_now().cpu_s - from.cpu_s) / threads;
        least = t == 0 || s < least ? s : least;
    }
    return least;
}

static double time_copy(unsigned threads, unsigned char *to, const unsigned char *from)
{
    double least = 0;
    const uint64_t part = array_bytes / threads;
    for (int t = 0; t < TRIES; t++) {
        const cpu_time start = cpu_now();
#pragma omp parallel for num_threads(threads) schedule(static, 1)
        for (unsigned i = 0; i < threads; i++) memcpy(to + i * part, from + i * part, part);
        const double s = (cpu_now().cpu_s - start.cpu_s) / threads;
        least = t == 0 || s < least ? s : least;
    }
    return least;
}

kiln_status cpu_measure_ceilings(cpu_bench *b, kiln_error *err)
{
    kiln_status st;
    unsigned char *from = NULL, *to = NULL;
    cpu_ceiling *const both[2] = {&b->one, &b->all};
    const unsigned threads[2] = {1, b->threads};
    KILN_GO(KILN_ALLOC(&from, array_bytes, "an array", err));
    KILN_GO(KILN_ALLOC(&to, array_bytes, "an array", err));
    for (int i = 0; i < 2; i++) {
        const uint64_t moved = 2 * (array_bytes / threads[i]);
        *both[i] = (cpu_ceiling){.threads = threads[i],
                                 .fp32 = (double)(steps * CPU_FMA_CHAINS * CPU_FMA_LANES) /
                                         time_fma(threads[i]),
                                 .copy_bytes = (double)moved / time_copy(threads[i], to, from)};
    }
done:
    free(to);
    free(from);
    return st;
}
