/* drawn -- a whole frame by kernels/draw, as programs ask for it: planes stay on the device, the
 * picture comes to host memory, as floats and as RGBA bytes. */
#ifndef KILN_TESTS_BENCH_DRAWN_CUH
#define KILN_TESTS_BENCH_DRAWN_CUH

#include "tests/bench/bench.cuh"
#include "tests/bench/inputs.cuh"

namespace bench
{

/* By the clock: what frame does, and all around it that the host does, the picture's copy included.
 * `rgba` of the device: what it must be equal to. */
void bench_drawn(runner *b, const std::string &name, const scene &s, const kiln_view &view,
                 const float *rgba);

/* 64 pictures of 640x400 from the cameras of the orbit, to RGBA bytes in host memory, one after the
 * other; by the clock, of each.
 */
void bench_small(runner *b, const std::string &name, const scene &s);

} // namespace bench

#endif
