/* kernels_bench -- how long each kernel takes, beside what the machine allows and what other
 * programs take on the same inputs, and whether what it computes is exact. Never fails by a time;
 * exit code 1 where something was not exact.
 *
 *   kernels_bench [--device N] [--only OP,...] [--scenes NAME,...] [--quick] [--shared DIR] [--json
 *       FILE]
 *
 *   --only    knn, knn_join, spatial_order, frame, project, visible, lists, raster, palette,
 *             metrics, rows
 *   --scenes  1m, 6m, exploded, 4k (with 1m or 6m), real (with --shared, the folder of reference
 *             data); 100m: 3-NN of 100 million points, where there is memory
 *   --quick   5 runs instead of 20, no large inputs unless --scenes names them: seconds
 *
 * Operations by events around one call on arrays of the device; their CPU siblings are cpu_bench's.
 * A frame is what a camera costs with everything on the device (frame.cuh); "drawn" is one by
 * kernels/draw, brought to host memory (drawn.cuh). It is run alone so that the figures are
 * comparable: nothing overlaps. */
#include "tests/bench/suites.cuh"

#include <stdio.h>
#include <stdlib.h>

extern "C" const char kiln_bench_commit[];

namespace
{

const char *const ops[] = {"knn",   "knn_join", "spatial_order", "frame",   "project", "visible",
                           "lists", "raster",   "palette",       "metrics", "rows"};
const char *const scenes[] = {"1m", "6m", "exploded", "4k", "real", "100m"};

[[noreturn]] void usage()
{
    bench::die(2, "usage: kernels_bench [--device N] [--only OP,...] [--scenes NAME,...] [--quick] "
                  "[--shared DIR] [--json FILE]");
}

/* "a,b" into a set of known names. */
template <size_t N>
std::set<std::string> read_names(std::string list, const char *const (&known)[N])
{
    std::set<std::string> names;
    while (!list.empty()) {
        const size_t comma = std::min(list.find(','), list.size());
        const std::string name = list.substr(0, comma);
        if (std::find(std::begin(known), std::end(known), name) == std::end(known)) usage();
        names.insert(name);
        list.erase(0, comma + 1);
    }
    return names;
}

/* An option with a value; false: it is none of them. */
bool read_value(const char *option, const char *value, bench::options *o)
{
    if (!strcmp(option, "--device"))
        o->device = atoi(value);
    else if (!strcmp(option, "--only"))
        o->only = read_names(value, ops);
    else if (!strcmp(option, "--scenes"))
        o->scenes = read_names(value, scenes);
    else if (!strcmp(option, "--shared"))
        o->shared = value;
    else if (!strcmp(option, "--json"))
        o->json = value;
    else
        return false;
    return true;
}

void read_options(int argc, char **argv, bench::options *o)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--quick"))
            o->quick = true;
        else if (i + 1 < argc && read_value(argv[i], argv[i + 1], o))
            i++;
        else
            usage();
    }
}

/* Of sizes that matter: depths and points by 32 bits, pairs by the 13 of 8,160 tiles. */
void show_ceilings(bench::runner *b, const bench::options &o)
{
    std::vector<std::pair<uint64_t, int>> sorts = {{1000000, 32}};
    std::vector<uint64_t> scans = {1000000};
    if (!o.quick) {
        sorts.insert(sorts.end(), {{100000, 32}, {10000000, 32}, {4000000, 13}, {10000000, 13}});
        scans.push_back(6000000);
    }
    if (b->wants_scene("100m") && b->wants("knn")) sorts.emplace_back(100000000, 32);
    b->table()->ceilings_of(b->ceilings(), sorts, scans);
}

} // namespace

int main(int argc, char **argv)
{
    bench::options o;
    read_options(argc, argv, &o);
    bench::runner b(o, kiln_bench_commit);
    show_ceilings(&b, o);
    bench::frame_suite(&b, o.shared);
    bench::knn_suite(&b);
    bench::palette_suite(&b, o.shared);
    bench::pass_suite(&b);
    b.table()->summary();
    if (o.json) b.table()->write_json(o.json);
    return b.table()->wrong() > 0;
}
