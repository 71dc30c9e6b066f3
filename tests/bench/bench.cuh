/* bench -- runs an operation, times it, and looks at what it wrote. */
#ifndef KILN_TESTS_BENCH_BENCH_CUH
#define KILN_TESTS_BENCH_BENCH_CUH

#include "kernels/arrays.h"
#include "tests/bench/table.cuh"

#include <functional>
#include <memory>
#include <set>
#include <string.h>

namespace bench
{

struct options {
    int device = 0;
    bool quick = false;
    std::set<std::string> only, scenes; /* empty: all */
    const char *json = nullptr, *shared = nullptr;
};

/* Which operation is timed, under which name. */
struct subject {
    std::string what;
    uint64_t items;
    kiln_op_id op;
    const void *args; /* arrays of the device */
    cost least_work;
};

class runner
{
  public:
    runner(const options &o, const char *commit);
    ~runner();
    runner(const runner &) = delete;
    runner &operator=(const runner &) = delete;

    /* Is an operation, or a scene, wanted? */
    bool wants(const char *op) const { return o_.only.empty() || o_.only.count(op) > 0; }
    bool wants_scene(const char *name) const
    {
        return o_.scenes.empty() ? !o_.quick || !strcmp(name, "1m") : o_.scenes.count(name) > 0;
    }
    bool quick() const { return o_.quick; }

    /* The CUDA sibling by events, after it has shown that it writes all of its output, and the same
     * over any poison. */
    row measure(const subject &s);
    void operation(const subject &s) { table_.add(measure(s)); }
    /* Any work put on the stream; sum() is of what it wrote, poison(byte) before each of two
     * runs. */
    template <typename Work, typename Poison, typename Sum>
    row measure(const std::string &what, uint64_t items, const cost &least, Work work,
                Poison poison, Sum sum)
    {
        uint64_t sums[2];
        for (int i = 0; i < 2; i++) {
            poison(i == 0 ? 0xA5 : 0x5A);
            work();
            wait();
            sums[i] = sum();
        }
        const times t = timer_->time(work);
        wait();
        return row_of(what, items, least, t, sums[0] == sums[1] && sum() == sums[0]);
    }

    /* Work that is done when it returns, by the clock. It has no limit: the host is part of it. */
    row measure_host(const std::string &what, uint64_t items,
                     const std::function<void()> &work) const;

    /* Workspace for an operation, before the clock starts; its bytes. */
    uint64_t prepare(kiln_op_id op, const void *args);
    /* The CUDA sibling, put on the stream and not waited for. Prepared before. */
    void start(kiln_op_id op, const void *args);
    /* Until the stream is idle, with what the operations have found wrong in their input. */
    void wait();

    const kiln_exec *exec() const { return &x_; }
    class ceilings *ceilings() { return ceilings_.get(); }
    bench::table *table() { return &table_; }

  private:
    row row_of(const std::string &what, uint64_t items, const cost &least, const times &t,
               bool same);

    const options &o_;
    kiln_exec x_ = {};
    void *work_ = nullptr;
    size_t work_bytes_ = 0;
    bench::table table_;
    std::unique_ptr<timer> timer_;
    std::unique_ptr<class ceilings> ceilings_;
};

} // namespace bench

#endif
