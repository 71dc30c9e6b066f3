/* fast -- see fast.cuh. */
#include "tests/bench/fast.cuh"

#include <math.h>

namespace bench
{

namespace
{

constexpr double LEAST_DB = 60;

double clamped(float v) { return std::min(std::max(static_cast<double>(v), 0.0), 1.0); }

/* Of red, green and blue, as metrics has it. */
double distance_db(const std::vector<float> &a, const std::vector<float> &b)
{
    double sum = 0;
    for (size_t i = 0; i < a.size(); i++) {
        const double d = i % 4 < 3 ? clamped(a[i]) - clamped(b[i]) : 0;
        sum += d * d;
    }
    return -10 * log10(sum / (0.75 * static_cast<double>(a.size())));
}

finding far_enough(const std::string &what, double db)
{
    char complaint[96];
    snprintf(complaint, sizeof complaint,
             "pictures are less than %.0f dB from the exact one (%.1f)", LEAST_DB, db);
    return {what, complaint, 1, !(db >= LEAST_DB)};
}

} // namespace

void bench_fast(runner *b, const std::string &name, at_once *f, uint64_t pairs,
                const cost &project_least, const cost &raster_least, const cost &frame_least)
{
    const std::vector<float> exact = f->picture();
    f->set_fast(true);
    if (b->wants("project")) {
        kiln_project_args alone = f->project(); /* as the row without --fast has it */
        alone.source_rows = nullptr;
        alone.depths = nullptr;
        alone.rows = nullptr;
        b->operation(
            {"project " + name + " --fast", f->rows(), KILN_OP_project, &alone, project_least});
    }
    if (b->wants("raster"))
        b->operation(
            {"raster " + name + " --fast", pairs, KILN_OP_raster, &f->raster(), raster_least});
    f->run();
    b->wait();
    const double db = distance_db(f->picture(), exact);
    if (b->wants("frame")) {
        row r = b->measure(
            "frame " + name + " --fast", f->rows(), frame_least, [&] { f->run(); },
            [&](int byte) { f->poison(byte); }, [&] { return f->sum(); });
        r.memory = f->memory();
        b->table()->add(r);
    }
    b->table()->add(far_enough(name + " --fast", db));
    f->set_fast(false);
}

} // namespace bench
