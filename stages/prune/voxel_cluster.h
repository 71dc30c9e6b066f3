/* voxel_cluster -- of --filter-cluster: which solid voxels hang together with the one at the seed.
 *
 * Voxels hang together through faces. If the seed's own voxel is not solid, the nearest one stands
 * for it: the one with the least largest offset along an axis; of those the one with the least z,
 * then the largest y, then the largest x. That is the first that splat-transform 3.7.0 meets, which
 * turns a PLY by 180 degrees about z. For one thread. */
#ifndef KILN_STAGES_PRUNE_VOXEL_CLUSTER_H
#define KILN_STAGES_PRUNE_VOXEL_CLUSTER_H

#include "stages/prune/voxel_table.h"

/* Memory of kiln_voxel_cluster for a table of so many blocks. */
uint64_t kiln_voxel_cluster_bytes(uint64_t n);
/* Says which voxel is nearest to `seed`, a voxel's coordinates. False: no voxel is solid. */
bool kiln_voxel_nearest(const kiln_voxel_table *t, const int32_t seed[3], int32_t out[3]);
/* Leaves only the solid voxels of the cluster of a solid voxel solid. *whole: each block with solid
 * voxels has some of the cluster. KILN_E_NOMEM. */
kiln_status kiln_voxel_cluster(kiln_voxel_table *t, const int32_t seed[3], bool *whole,
                               kiln_error *err) KILN_MUST_CHECK;

#endif
