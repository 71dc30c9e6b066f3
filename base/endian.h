/* endian -- numbers of file headers, byte after byte. Each function returns the place behind what it wrote. */
#ifndef KILN_BASE_ENDIAN_H
#define KILN_BASE_ENDIAN_H

#include <stdint.h>

static inline unsigned char *kiln_put_u16(unsigned char *at, uint32_t v)
{
    at[0] = (unsigned char)v;
    at[1] = (unsigned char)(v >> 8);
    return at + 2;
}

static inline unsigned char *kiln_put_u32(unsigned char *at, uint64_t v)
{
    return kiln_put_u16(kiln_put_u16(at, (uint32_t)v & 0xffff), (uint32_t)(v >> 16) & 0xffff);
}

#endif
