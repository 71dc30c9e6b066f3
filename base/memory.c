/* memory -- the only way that stages and schema allocate: by count, the product checked. */
#include "base/memory.h"
#include "base/checked.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ALIGNMENT = 64 }; /* a cache line, and two AVX registers */

/* Large pages, because making fresh pages of 4 KiB takes up to half of a stage's time
 * (tests/bench/RESULTS.md). The kernel uses a large page only where all of it was requested, so a
 * process holds no more than its arrays have. The range has all of the array's small pages, or
 * realloc could not move it (mremap takes no range of two kinds). */
void kiln_memory_use_large_pages(void *data, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    enum { PAGE = 4096, LEAST = 4 << 20 };
    const uintptr_t first = (uintptr_t)data / PAGE * PAGE,
                    end = ((uintptr_t)data + bytes + PAGE - 1) / PAGE * PAGE;
    if (bytes < LEAST) return;
    const int before = errno;
    (void)madvise((void *)first, end - first, MADV_HUGEPAGE);
    errno = before; /* a kernel without large pages makes small ones */
#else
    (void)data, (void)bytes;
#endif
}

/* *rounded: what was allocated, a multiple of ALIGNMENT. */
static kiln_status allocate_aligned(void **out, uint64_t count, size_t elem, const char *what,
                                    size_t *rounded, kiln_error *err)
{
    uint64_t bytes;
    *out = NULL;
    if (!kiln_mul(count, elem, &bytes) || bytes > (uint64_t)PTRDIFF_MAX - ALIGNMENT)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for %s: %llu times %zu bytes", what,
                         (unsigned long long)count, elem);
    *rounded = kiln_div_up(bytes ? bytes : 1, ALIGNMENT) * ALIGNMENT;
    *out = aligned_alloc(ALIGNMENT, *rounded);
    if (!*out)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for %s: %llu bytes", what,
                         (unsigned long long)bytes);
    kiln_memory_use_large_pages(*out, *rounded);
    return KILN_OK;
}

kiln_status kiln_alloc(void **out, uint64_t count, size_t elem, const char *what, kiln_error *err)
{
    size_t bytes = 0; /* gcc does not see that it is set where it is used */
    KILN_TRY(allocate_aligned(out, count, elem, what, &bytes, err));
    kiln_memory_populate(*out, bytes);
    memset(*out, 0, bytes);
    return KILN_OK;
}

kiln_status kiln_alloc_unset(void **out, uint64_t count, size_t elem, const char *what,
                             kiln_error *err)
{
    size_t bytes;
    return allocate_aligned(out, count, elem, what, &bytes, err);
}

kiln_status kiln_grow(void **array, uint32_t n, size_t elem, const char *what, kiln_error *err)
{
    if (n & (n - 1)) return KILN_OK;
    const size_t capacity = n ? (size_t)n * 2 : 1;
    void *p = n > UINT32_MAX / 2 ? NULL : realloc(*array, capacity * elem);
    if (!p) return kiln_fail(err, KILN_E_NOMEM, "out of memory for %zu %s", capacity, what);
    *array = p;
    return KILN_OK;
}

/* Populating pages in one call saves a trap for each page. Fresh processes, such as tasks of a
 * round, spend a third of their time in these traps on some virtual machines
 * (tests/bench/RESULTS.md). */
void kiln_memory_populate(void *data, size_t bytes)
{
#ifdef MADV_POPULATE_WRITE /* Linux 5.14 */
    enum { PAGE = 4096, LEAST = 128 << 10 };
    unsigned char *const first = (unsigned char *)((uintptr_t)data / PAGE * PAGE + PAGE);
    if (bytes < LEAST) return;
    const int before = errno;
    (void)madvise(first, (bytes - (size_t)(first - (unsigned char *)data)) / PAGE * PAGE,
                  MADV_POPULATE_WRITE);
    errno = before; /* what fails leaves pages to be made when they are written */
#else
    (void)data, (void)bytes;
#endif
}

uint64_t kiln_memory_tidies_from(uint64_t share)
{
    enum { PARTS = 1024 };
    const uint64_t least = 128 << 10, most = 32 << 20, part = share / PARTS;
    return part < least ? least : part > most ? most : part;
}

/* Problem. glibc's own threshold rises to 32 MiB with the sizes that are freed, and each thread
 * gets an arena. An arena returns memory only from its end, so planes that come and go leave holes
 * between those that stay. With a threshold of 1/64 of the share these holes break the cap
 * (tests/bench/RESULTS.md). With 1/1024 every large array has pages of its own, and only small
 * things leave holes. The kernel zeroes new pages, which costs time, so ample shares keep a higher
 * threshold. Other C libraries keep their allocator unchanged. */
void kiln_memory_tidy(uint64_t share)
{
#ifdef __GLIBC__
    enum { ARENAS = 2 };
    const int bytes = (int)kiln_memory_tidies_from(share);
    (void)mallopt(M_MMAP_THRESHOLD, bytes); /* what fails leaves only more in use */
    (void)mallopt(M_TRIM_THRESHOLD, bytes);
    (void)mallopt(M_ARENA_MAX, ARENAS);
#else
    (void)share;
#endif
}

/* Measured with blobs of 11 MB, which are taken with a second array of that size and freed at once:
 * without this, half of all page faults of kiln-chunk and a fifth of its system time. glibc allows
 * no threshold above 32 MiB. */
void kiln_memory_keep(uint64_t bytes)
{
#ifdef __GLIBC__
    enum { MOST = 32 << 20 };
    (void)mallopt(M_MMAP_THRESHOLD, bytes < MOST ? (int)bytes : MOST);
    (void)mallopt(M_TRIM_THRESHOLD, bytes < INT32_MAX ? (int)bytes : INT32_MAX);
#else
    (void)bytes;
#endif
}

void kiln_memory_trim(void)
{
#ifdef __GLIBC__
    (void)malloc_trim(0); /* tells whether there was any */
#endif
}

/* Room for `bytes` more, by doubling: n appends cost O(n) together. */
static kiln_status reserve(kiln_buffer *b, size_t bytes, kiln_error *err)
{
    if (bytes <= b->capacity - b->size) return KILN_OK;
    uint64_t need;
    if (!kiln_add(b->size, bytes, &need) || need > PTRDIFF_MAX / 2)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for a buffer of %zu and %zu bytes more",
                         b->size, bytes);
    size_t capacity = b->capacity ? b->capacity : 256;
    while (capacity < need) capacity *= 2;
    unsigned char *data = realloc(b->data, capacity);
    if (!data)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for a buffer of %zu bytes", capacity);
    b->data = data;
    b->capacity = capacity;
    return KILN_OK;
}

kiln_status kiln_buffer_put(kiln_buffer *b, const void *data, size_t bytes, kiln_error *err)
{
    if (!bytes) return KILN_OK;
    KILN_TRY(reserve(b, bytes, err));
    if (data)
        memcpy(b->data + b->size, data, bytes);
    else
        memset(b->data + b->size, 0, bytes);
    b->size += bytes;
    return KILN_OK;
}

kiln_status kiln_buffer_printf(kiln_buffer *b, kiln_error *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0) return kiln_fail(err, KILN_E_BUG, "cannot format '%s'", fmt);
    KILN_TRY(reserve(b, (size_t)n + 1, err)); /* vsnprintf ends with a NUL, which is not counted */
    va_start(ap, fmt);
    n = vsnprintf((char *)b->data + b->size, (size_t)n + 1, fmt, ap);
    va_end(ap);
    if (n < 0) return kiln_fail(err, KILN_E_BUG, "cannot format '%s'", fmt);
    b->size += (size_t)n;
    return KILN_OK;
}

void kiln_buffer_release(kiln_buffer *b)
{
    free(b->data);
    *b = (kiln_buffer){0};
}

struct kiln_text_block {
    struct kiln_text_block *before; /* owned */
    size_t used, capacity;
    char text[];
};

static kiln_status add_block(kiln_texts *t, size_t bytes, kiln_error *err)
{
    enum { CAPACITY = 64 << 10 };
    const size_t capacity = bytes > CAPACITY ? bytes : CAPACITY;
    struct kiln_text_block *b = malloc(sizeof *b + capacity);
    if (!b) return kiln_fail(err, KILN_E_NOMEM, "out of memory for %zu bytes of text", capacity);
    *b = (struct kiln_text_block){.before = t->last, .capacity = capacity};
    t->last = b;
    return KILN_OK;
}

kiln_status kiln_texts_add(kiln_texts *t, const char *text, const char **out, kiln_error *err)
{
    const size_t bytes = text ? strlen(text) + 1 : 1;
    *out = "";
    if (bytes == 1) return KILN_OK;
    if (!t->last || t->last->capacity - t->last->used < bytes) KILN_TRY(add_block(t, bytes, err));
    *out = memcpy(t->last->text + t->last->used, text, bytes);
    t->last->used += bytes;
    return KILN_OK;
}

void kiln_texts_clear(kiln_texts *t)
{
    struct kiln_text_block *kept = t->last;
    if (!kept) return;
    kiln_texts before = {kept->before};
    kiln_texts_release(&before);
    kept->before = NULL;
    kept->used = 0;
}

void kiln_texts_release(kiln_texts *t)
{
    for (struct kiln_text_block *b = t->last, *before; b; b = before) {
        before = b->before;
        free(b);
    }
    *t = (kiln_texts){0};
}
