/* listing -- see listing.cuh. */
#include "tests/bench/listing.cuh"

namespace bench
{

listing::listing(const kiln_project_args &project, uint64_t visible, uint64_t pairs)
    : tile_counts_(uint64_t(kiln_view_tiles_x(project.view)) * kiln_view_tiles_y(project.view)),
      ids_(pairs), order_(tile_counts_.size()), stats_(3), ends_(tile_counts_.size())
{
    args_.n = visible;
    args_.n_visible = project.n_visible;
    args_.splats = project.splats;
    args_.depths = project.depths;
    args_.source_rows = project.rows;
    args_.view = project.view;
    args_.row1 = kiln_view_tiles_y(project.view);
    args_.capacity = pairs;
    args_.tile_counts = tile_counts_.get();
    args_.ids = ids_.get();
    args_.stats = stats_.get();
    args_.plan = {ends_.get(), order_.get(), 1};
}

} // namespace bench
