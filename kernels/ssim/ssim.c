/* What both operations and siblings ask of their arguments. */
#include "kernels/ssim/ssim.h"

#define SIDE_MOST ((uint32_t)1 << 20)
#define VALUES_MOST ((uint64_t)1 << 40)

kiln_status kiln_ssim_check(uint64_t planes, uint32_t width, uint32_t height, kiln_error *err)
{
    if (width == 0 || height == 0 || width > SIDE_MOST || height > SIDE_MOST)
        return kiln_fail(err, KILN_E_INPUT,
                         "ssim: a picture of %u x %u pixels; 1 to %u each way can be measured",
                         width, height, SIDE_MOST);
    if (planes == 0 || planes > VALUES_MOST / ((uint64_t)width * height))
        return kiln_fail(err, KILN_E_INPUT,
                         "ssim: %llu planes of %u x %u pixels; 1 to %llu can be measured",
                         (unsigned long long)planes, width, height,
                         (unsigned long long)(VALUES_MOST / ((uint64_t)width * height)));
    return KILN_OK;
}
