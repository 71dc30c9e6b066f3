/* What both operations and siblings ask of their arguments. */
#include "kernels/ssim3d/ssim3d.h"

#define SIDE_MOST ((uint32_t)1 << 20)
#define VALUES_MOST ((uint64_t)1 << 40)

kiln_status kiln_ssim3d_check(uint64_t planes, uint32_t width, uint32_t height, uint32_t depth,
                              kiln_error *err)
{
    if (width == 0 || height == 0 || depth == 0 || width > SIDE_MOST || height > SIDE_MOST ||
        depth > SIDE_MOST)
        return kiln_fail(
            err, KILN_E_INPUT,
            "ssim3d: a volume of %u x %u x %u voxels; 1 to %u each way can be measured", width,
            height, depth, SIDE_MOST);
    const uint64_t voxels = (uint64_t)width * height * depth; /* up to 2^60 */
    if (planes == 0 || planes > VALUES_MOST / voxels)
        return kiln_fail(err, KILN_E_INPUT,
                         "ssim3d: %llu planes of %u x %u x %u voxels; above 0 and up to %llu "
                         "values can be measured",
                         (unsigned long long)planes, width, height, depth,
                         (unsigned long long)VALUES_MOST);
    return KILN_OK;
}
