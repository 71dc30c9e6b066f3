/* outputs -- what a call of an operation writes on the device, by kernels/arrays.h: to be poisoned
 * beforehand, and summed up afterwards. An operation that wrote the same over two kinds of poison
 * has written every element of its output. */
#ifndef KILN_TESTS_BENCH_OUTPUTS_CUH
#define KILN_TESTS_BENCH_OUTPUTS_CUH

#include "kernels/arrays.h"
#include "tests/bench/timer.cuh"

#include <memory>

namespace bench
{

/* Order-free sum of hashes of (position, 4 bytes): differs where any byte does, but for chance.
 * Bytes behind the last whole word count, too. Waits. */
uint64_t sum_of(const void *device, uint64_t bytes);

class outputs
{
  public:
    /* args stay the caller's; what is read and written in place is kept as it is now. */
    outputs(kiln_op_id op, const void *args);
    void poison(int byte) const; /* what is output alone */
    void restore() const;        /* what is read and written in place */
    uint64_t sum() const;        /* of all that is written, as far as it is in use */

  private:
    char *at(const kiln_op_array &a) const;

    const char *args_;
    kiln_op_array arrays_[KILN_OP_ARRAYS_MAX];
    unsigned n_;
    /* one for each array that is read and written */
    std::vector<std::unique_ptr<array<char>>> kept_;
};

} // namespace bench

#endif
