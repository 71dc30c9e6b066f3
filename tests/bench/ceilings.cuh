/* ceilings -- what this device can do at most, measured in the same run as what is compared with
 * it: bytes copied, multiplications and additions fused, CUB's sort and scan. From these the
 * physical limit of an operation whose least work is known. */
#ifndef KILN_TESTS_BENCH_CEILINGS_CUH
#define KILN_TESTS_BENCH_CEILINGS_CUH

#include "tests/bench/timer.cuh"

#include <map>
#include <utility>

namespace bench
{

/* What no algorithm can do without: each input read and each output written once, and the
 * arithmetic of the definition. */
struct cost {
    /* of device memory, read and written; without what the sort itself moves */
    double bytes = 0;
    double fp32 = 0; /* float32 instructions; a fused multiplication and addition is one */
    /* items that must come into the order of 32-bit keys, with a 32-bit value each */
    uint64_t sorted = 0;
};

class ceilings
{
  public:
    explicit ceilings(const timer *t);

    /* Per second. */
    double copy_bytes() const { return copy_bytes_; }
    double fp32() const { return fp32_; }
    /* CUB, ms. Keys of 16 bits for at most 16, else of 32; measured where it was not yet. */
    double sort_ms(uint64_t n, int key_bits);
    double scan_ms(uint64_t n) const;
    /* So many kernels that do nothing, one behind the other, from event to event. */
    double launches_ms(int n) const;
    /* The sort, and the longest of the others: they overlap at best. */
    double limit_ms(const cost &c);

  private:
    double fused() const;

    const timer *timer_;
    double copy_bytes_, fp32_;
    std::map<std::pair<uint64_t, int>, double> sorts_;
};

} // namespace bench

#endif
