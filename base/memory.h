/* memory -- allocation by count with the overflow checked, and a growing byte buffer. */
#ifndef KILN_BASE_MEMORY_H
#define KILN_BASE_MEMORY_H

#include "base/extern_c.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

KILN_C_BEGIN

/* Allocates count * elem bytes, zeroed and 64-byte aligned; the caller frees *out with free().
 * count == 0 gives a valid pointer. KILN_E_NOMEM: the message names `what` and the size. */
kiln_status kiln_alloc(void **out, uint64_t count, size_t elem, const char *what,
                       kiln_error *err) KILN_MUST_CHECK;
#define KILN_ALLOC(ptr, count, what, err) \
    kiln_alloc((void **)(ptr), (count), sizeof **(ptr), (what), (err))
/* The same without zeroing, for large arrays that are written before they are read: a page is made
 * when it is first written, by the thread that writes it. */
kiln_status kiln_alloc_unset(void **out, uint64_t count, size_t elem, const char *what,
                             kiln_error *err) KILN_MUST_CHECK;
#define KILN_ALLOC_UNSET(ptr, count, what, err) \
    kiln_alloc_unset((void **)(ptr), (count), sizeof **(ptr), (what), (err))

/* Room for one element more behind n: an array whose room is the next power of two of its count.
 * *array is owned by the caller and freed with free. */
kiln_status kiln_grow(void **array, uint32_t n, size_t elem, const char *what,
                      kiln_error *err) KILN_MUST_CHECK;

/* Asks for large pages inside a large array, as kiln_alloc does for its own. Call it before the
 * array is written. */
void kiln_memory_use_large_pages(void *data, size_t bytes);
/* Makes the pages of a large array at once, which is cheaper than one by one as they are written.
 * For arrays of which each byte is written soon, by few threads. Does nothing where the kernel
 * cannot. */
void kiln_memory_populate(void *data, size_t bytes);

/* Sets from which size on freed memory goes back to the system at once instead of staying in
 * malloc's arenas. share: bytes that this process may take. Call it between two pieces of work,
 * while no other thread runs. */
void kiln_memory_tidy(uint64_t share);
/* Returns the size from which on kiln_memory_tidy(share) gives freed memory back at once. */
uint64_t kiln_memory_tidies_from(uint64_t share);
/* Lets malloc keep freed arrays of up to so many bytes each, and as much free memory behind the
 * last array, until the next kiln_memory_tidy. For work that takes and frees large arrays again and
 * again; the caller counts these bytes in its memory throughout. Call it where kiln_memory_tidy may
 * be called. */
void kiln_memory_keep(uint64_t bytes);
/* Gives free memory of malloc back to the system. */
void kiln_memory_trim(void);

typedef struct {
    unsigned char *data; /* owned; NULL while empty */
    size_t size, capacity;
} kiln_buffer;

/* Appends bytes; data NULL: zeros. */
kiln_status kiln_buffer_put(kiln_buffer *b, const void *data, size_t bytes,
                            kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_buffer_printf(kiln_buffer *b, kiln_error *err, const char *fmt, ...)
    KILN_PRINTF(3, 4) KILN_MUST_CHECK;
void kiln_buffer_release(kiln_buffer *b);

/* Texts that stay where they are until all of them are released: for rows that point to them. */
typedef struct {
    struct kiln_text_block *last; /* owned; NULL: there is no text */
} kiln_texts;

/* Copies a text. *out is "" for one without characters, and for NULL. */
kiln_status kiln_texts_add(kiln_texts *t, const char *text, const char **out,
                           kiln_error *err) KILN_MUST_CHECK;
/* Forgets the texts and keeps room for the next. */
void kiln_texts_clear(kiln_texts *t);
void kiln_texts_release(kiln_texts *t);

KILN_C_END

#endif
