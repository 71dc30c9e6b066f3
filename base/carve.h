/* carve -- lays out several pieces in one block of memory. With base == NULL it only measures, so
 * that size and layout cannot disagree. Pieces start at multiples of 256 bytes. used == SIZE_MAX
 * after an overflow.
 *
 * Under AddressSanitizer (make asan) the KILN_RED_ZONE bytes behind each piece are poisoned: an
 * operation that writes or reads beyond one of its arrays ends there, though the next array of its
 * workspace follows in the same allocation. Carving a block again makes its new pieces usable. */
#ifndef KILN_BASE_CARVE_H
#define KILN_BASE_CARVE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KILN_ADDRESS_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define KILN_ADDRESS_SANITIZER 1
#endif

#ifdef KILN_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#define KILN_RED_ZONE ((size_t)256)
#define KILN_POISON(at, bytes) __asan_poison_memory_region(at, bytes)
#define KILN_UNPOISON(at, bytes) __asan_unpoison_memory_region(at, bytes)
#else
#define KILN_RED_ZONE ((size_t)0)
#define KILN_POISON(at, bytes) ((void)(at), (void)(bytes))
#define KILN_UNPOISON(at, bytes) ((void)(at), (void)(bytes))
#endif

typedef struct {
    char *base;
    size_t used; /* bytes so far; SIZE_MAX after an overflow */
} kiln_carve;

/* Takes the next piece: count * elem bytes. Returns NULL while measuring and after an overflow. */
static inline void *kiln_take(kiln_carve *c, uint64_t count, size_t elem)
{
    size_t at = c->used;
    assert(elem > 0);
    if (at > SIZE_MAX - 511 - KILN_RED_ZONE ||
        (elem && count > (SIZE_MAX - 511 - KILN_RED_ZONE - at) / elem)) {
        c->used = SIZE_MAX;
        return NULL;
    }
    at = (at + 255) & ~(size_t)255;
    const size_t bytes = (size_t)count * elem;
    c->used = at + bytes + KILN_RED_ZONE;
    assert(c->used >= at);
    if (!c->base) return NULL;
    KILN_UNPOISON(c->base + at, bytes);
    KILN_POISON(c->base + at + bytes, KILN_RED_ZONE);
    return c->base + at;
}

#endif
