/* sqlite -- SQLite as the harnesses want it: memory that costs little, and small pages.
 *
 * Opening a file parses its SQL, in tens of thousands of small allocations, for which the sanitizer
 * takes half of the time, and takes a megabyte for pages of 64 KiB, which the sanitizer asks the
 * system for each time. SQLite's code is not instrumented, so that it loses nothing by glibc's
 * memory; what our code reads of SQLite's buffers is watched in manifest-rows, which leaves the
 * sanitizer's in place. SQLite takes such settings before its first use in a process alone, and
 * refuses them in a replay of several harnesses. */
#include "tests/fuzz/fuzz.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/* A block begins with its size. */
#ifdef __GLIBC__
enum { HEAD = 16 };
void *__libc_malloc(size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void __libc_free(void *p);

static void *with_size(char *p, int bytes)
{
    if (!p) return NULL;
    memcpy(p, &bytes, sizeof bytes);
    return p + HEAD;
}

static void *plain_malloc(int bytes)
{
    return with_size(__libc_malloc((size_t)bytes + HEAD), bytes);
}
/* never NULL (sqlite3.h, sqlite3_mem_methods) */
static void plain_free(void *p) { __libc_free((char *)p - HEAD); }
static void *plain_realloc(void *p, int bytes)
{
    return with_size(__libc_realloc((char *)p - HEAD, (size_t)bytes + HEAD), bytes);
}
static int plain_round(int bytes) { return (bytes + 7) & ~7; }
static int plain_init(void *context) { return (void)context, SQLITE_OK; }
static void plain_end(void *context) { (void)context; }

static int plain_size(void *p)
{
    int bytes;
    memcpy(&bytes, (char *)p - HEAD, sizeof bytes);
    return bytes;
}

void kiln_fuzz_plain_sqlite_memory(void)
{
    static const sqlite3_mem_methods plain = {plain_malloc, plain_free, plain_realloc, plain_size,
                                              plain_round,  plain_init, plain_end,     NULL};
    (void)sqlite3_config(SQLITE_CONFIG_MALLOC, &plain);
}
#else
void kiln_fuzz_plain_sqlite_memory(void) {}
#endif

void kiln_fuzz_keep_sqlite_pages(size_t page_bytes, unsigned n)
{
    int head = 0;
    (void)sqlite3_config(SQLITE_CONFIG_PCACHE_HDRSZ, &head);
    const size_t each = page_bytes + (size_t)head;
    void *memory = malloc(n * each); /* SQLite's from here on */
    if (memory && sqlite3_config(SQLITE_CONFIG_PAGECACHE, memory, (int)each, (int)n) != SQLITE_OK)
        free(memory);
}

void kiln_fuzz_small_pages(const char *path)
{
    sqlite3 *db = NULL;
    HOLDS(sqlite3_open(path, &db) == SQLITE_OK);
    HOLDS(sqlite3_exec(db, "PRAGMA journal_mode = DELETE; PRAGMA page_size = 512; VACUUM", NULL,
                       NULL, NULL) == SQLITE_OK);
    HOLDS(sqlite3_close(db) == SQLITE_OK);
}
