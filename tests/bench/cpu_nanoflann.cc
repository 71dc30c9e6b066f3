/* cpu_nanoflann -- see cpu_nanoflann.h. Leaves of 10 points, its own default. Its metric is
 * replaced by knn's pinned distance, which is no slower and makes the answers comparable bit for
 * bit. */
#include "tests/bench/cpu_nanoflann.h"

#include "kernels/knn/knn_math.h"

#include <exception>
#include <nanoflann.hpp>

namespace
{

struct cloud {
    const float *points;
    size_t n;
    size_t kdtree_get_point_count() const { return n; }
    float kdtree_get_pt(size_t i, size_t axis) const { return points[3 * i + axis]; }
    template <typename Box> bool kdtree_get_bbox(Box &) const { return false; }
};

/* As nanoflann::L2_Simple_Adaptor. */
struct pinned_distance {
    using ElementType = float;
    using DistanceType = float;
    const cloud &source;
    explicit pinned_distance(const cloud &c) : source(c) {}
    float evalMetric(const float *a, size_t i, size_t) const
    {
        const float *b = source.points + 3 * i;
        return kiln_knn_distance2(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
    }
    template <typename U, typename V> float accum_dist(U a, V b, size_t) const
    {
        return (a - b) * (a - b);
    }
};

using tree = nanoflann::KDTreeSingleIndexAdaptor<pinned_distance, cloud, 3, uint32_t>;
constexpr unsigned NEIGHBOURS = 3;

void query(const tree &t, const float *point, float *spacing2)
{
    uint32_t rows[NEIGHBOURS + 1];
    /* ascending; the first is the point itself, or one at the same place */
    float d[NEIGHBOURS + 1];
    t.knnSearch(point, NEIGHBOURS + 1, rows, d);
    *spacing2 = (d[1] + d[2] + d[3]) / NEIGHBOURS;
}

} // namespace

const char *cpu_nanoflann_missing(void) { return nullptr; }

bool cpu_nanoflann(const float *points, uint64_t n, unsigned threads, float *spacing2)
try {
    const cloud c = {points, n};
    tree t(3, c, nanoflann::KDTreeSingleIndexAdaptorParams(10));
    t.buildIndex();
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1024)
    for (int64_t i = 0; i < static_cast<int64_t>(n); i++) query(t, points + 3 * i, spacing2 + i);
    return true;
} catch (const std::exception &) {
    return false;
}
