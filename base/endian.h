/* endian -- numbers of files, at any address: little-endian, and big-endian where the name says
 * _be. kiln_put_... returns the place behind what it wrote. Each of them is one load or store, so
 * that loops over rows may use them. */
#ifndef KILN_BASE_ENDIAN_H
#define KILN_BASE_ENDIAN_H

#include <stdint.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "numbers lie in memory as in files; elsewhere all of these turn them around");

static inline uint16_t kiln_get_u16(const void *at)
{
    uint16_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

static inline uint32_t kiln_get_u32(const void *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

static inline uint64_t kiln_get_u64(const void *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

static inline float kiln_get_f32(const void *at)
{
    float v;
    memcpy(&v, at, sizeof v);
    return v;
}

static inline double kiln_get_f64(const void *at)
{
    double v;
    memcpy(&v, at, sizeof v);
    return v;
}

/* v: the lowest 16 bits of it, or 32. */
static inline unsigned char *kiln_put_u16(void *at, uint32_t v)
{
    const uint16_t low = (uint16_t)v;
    memcpy(at, &low, sizeof low);
    return (unsigned char *)at + sizeof low;
}

static inline unsigned char *kiln_put_u32(void *at, uint64_t v)
{
    const uint32_t low = (uint32_t)v;
    memcpy(at, &low, sizeof low);
    return (unsigned char *)at + sizeof low;
}

static inline unsigned char *kiln_put_u64(void *at, uint64_t v)
{
    memcpy(at, &v, sizeof v);
    return (unsigned char *)at + sizeof v;
}

static inline unsigned char *kiln_put_f32(void *at, float v)
{
    memcpy(at, &v, sizeof v);
    return (unsigned char *)at + sizeof v;
}

static inline unsigned char *kiln_put_f64(void *at, double v)
{
    memcpy(at, &v, sizeof v);
    return (unsigned char *)at + sizeof v;
}

static inline uint32_t kiln_get_u32_be(const void *at)
{
    return __builtin_bswap32(kiln_get_u32(at));
}
static inline unsigned char *kiln_put_u32_be(void *at, uint32_t v)
{
    return kiln_put_u32(at, __builtin_bswap32(v));
}

#endif
