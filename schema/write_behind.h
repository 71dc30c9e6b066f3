/* write_behind -- writes to a file that threads do, neighbours at once, while the caller goes on.
 *
 * A write may fail after kiln_behind_write has returned: the next _write, _wait or _end tells.
 * Functions return SQLite's codes as its "unix" VFS has them: SQLITE_FULL if no room was left,
 * SQLITE_IOERR_WRITE for other failures. A kiln_behind belongs to one thread at a time. Between
 * kiln_behind_end and the next write it has no threads of its own, so a child of fork needs
 * none. */
#ifndef KILN_SCHEMA_WRITE_BEHIND_H
#define KILN_SCHEMA_WRITE_BEHIND_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct kiln_behind kiln_behind;

/* Memory of one with threads, taken from the first write on. */
enum {
    KILN_BEHIND_BLOCK = 256 << 10,
    KILN_BEHIND_BLOCKS = 16,
    KILN_BEHIND_RAM = KILN_BEHIND_BLOCK * KILN_BEHIND_BLOCKS
};

/* fd: of a regular file, borrowed. threaded: by threads, where they can be made; else each write is
 * done as it comes. passes: what is on the disk leaves the page cache, because nobody reads it
 * soon. NULL: out of memory. */
kiln_behind *kiln_behind_new(int fd, bool threaded, bool passes);
/* Ends (kiln_behind_end) and frees it; accepts NULL. */
void kiln_behind_free(kiln_behind *b);

/* Takes n bytes, at most KILN_BEHIND_BLOCK, for this place of the file. Writes are done in the
 * order of these calls. */
int kiln_behind_write(kiln_behind *b, const void *data, size_t n, sqlite3_int64 at);
/* Waits until all that was taken is in the file: before it is read there. */
int kiln_behind_wait(kiln_behind *b);
/* The same, and ends the threads: before the file is synced or cut. The failure that it tells is
 * forgotten then. */
int kiln_behind_end(kiln_behind *b);
/* Says that this part of the file is on the disk. Between kiln_behind_end and the next write. */
void kiln_behind_synced(kiln_behind *b, sqlite3_int64 from, sqlite3_int64 to);

#endif
