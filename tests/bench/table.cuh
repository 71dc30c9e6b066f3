/* table -- what was measured: printed as it comes, kept for the JSON file. Times in ms; below 0
 * where there is none. */
#ifndef KILN_TESTS_BENCH_TABLE_CUH
#define KILN_TESTS_BENCH_TABLE_CUH

#include "kernels/device.h"
#include "tests/bench/ceilings.cuh"

#include <stdio.h>
#include <string>

namespace bench
{

struct row {
    std::string what;
    uint64_t items = 0;
    double gpu = -1, gpu_least = -1, limit = -1;
    cost least_work;
    uint64_t memory = 0; /* bytes of device memory beside the input; 0: not counted */
};

/* Something that must be exact: of so many, so many were not, "floats differ from ...". */
struct finding {
    std::string what, complaint;
    uint64_t checked, wrong;
};

/* What figures.h asks of a row, in ms and bytes an item; below 0 where it asks nothing. */
struct goal {
    double bar = -1, aim = -1, bytes_each = -1;
};

/* What the figures are of. */
struct run_facts {
    kiln_device_info device;
    int warm_up, runs;
    const char *commit;
};

class table
{
  public:
    void head(const run_facts &f);
    /* sorts: items and bits of their keys; scans: items. */
    void ceilings_of(class ceilings *c, const std::vector<std::pair<uint64_t, int>> &sorts,
                     const std::vector<uint64_t> &scans);
    void section(const char *title) const;
    void add(const row &r);
    void add(const finding &f);
    /* How many findings have something wrong. */
    unsigned wrong() const;
    /* How many findings are exact and goals reached, and which are not. */
    void summary() const;
    void write_json(const char *path) const;

  private:
    /* A line of the first part: what the machine can do. */
    struct ceiling {
        std::string what;
        double value;
        const char *unit;
    };
    void add(const ceiling &c);
    goal goal_of(const row &r) const;
    void json_row(FILE *f, const row &r) const;

    run_facts facts_ = {};
    std::vector<ceiling> ceilings_;
    std::vector<row> rows_;
    std::vector<finding> findings_;
};

/* "1M", "250k". */
std::string size_name(uint64_t n);

} // namespace bench

#endif
