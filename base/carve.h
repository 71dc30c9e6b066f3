/* carve -- lays out pieces in one block of memory; with base == NULL it only measures, so that size and layout
 * cannot disagree. Pieces start at multiples of 256 bytes. used == SIZE_MAX after an overflow. */
#ifndef KILN_BASE_CARVE_H
#define KILN_BASE_CARVE_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    char *base;
    size_t used;
} kiln_carve;

static inline void *kiln_take(kiln_carve *c, uint64_t count, size_t elem)
{
    size_t at = c->used;
    if (at > SIZE_MAX - 255 || (elem && count > (SIZE_MAX - 511 - at) / elem)) {
        c->used = SIZE_MAX;
        return NULL;
    }
    at = (at + 255) & ~(size_t)255;
    c->used = at + (size_t)count * elem;
    return c->base ? c->base + at : NULL;
}

#endif
