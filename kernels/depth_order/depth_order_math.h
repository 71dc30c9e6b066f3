/* depth_order_math -- the key whose order is the drawing order. */
#ifndef KILN_KERNELS_DEPTH_ORDER_MATH_H
#define KILN_KERNELS_DEPTH_ORDER_MATH_H

#include "base/hd.h"

#include <stdint.h>
#include <string.h>

/* A depth is above 0, so that its bits order as it does. */
static inline KILN_HD uint64_t kiln_depth_key(float depth, uint32_t source_row)
{
    uint32_t bits;
    memcpy(&bits, &depth, sizeof bits);
    return (uint64_t)bits << 32 | source_row;
}

#endif
