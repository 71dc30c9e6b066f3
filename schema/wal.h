/* wal -- SQLite's write-ahead log and the index of it in shared memory, for a writer that is not
 * SQLite itself.
 *
 * The formats are SQLite's, documented and unchanged since 2010: sqlite.org/fileformat2.html
 * section 4 (the log) and sqlite.org/walformat.html (the index, the locks). What this file writes,
 * every SQLite reads; schema/direct.c uses it and says why.
 *
 * Functions return SQLite's codes. SQLITE_PROTOCOL: the index is not what this file knows, so the
 * caller leaves the work to SQLite. A kiln_wal belongs to one thread at a time. */
#ifndef KILN_SCHEMA_WAL_H
#define KILN_SCHEMA_WAL_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum { KILN_WAL_PAGE = 65536 }; /* the one page size that is known here: the manifest's */

/* The header of the index: the last commit. In shared memory it is there twice, in the machine's
 * byte order. */
typedef struct {
    uint32_t version, unused, change;
    uint8_t is_init, big_endian_sums;
    uint16_t page_size; /* 1: 65536 */
    uint32_t last_frame, n_pages;
    uint32_t frame_sum[2]; /* checksum of the log up to last_frame */
    unsigned char salt[8]; /* as in the log */
    uint32_t sum[2];       /* checksum of the fields before it */
} kiln_wal_header;

typedef struct {
    /* of SQLite's VFS "unix", which has the locks and the shared memory; borrowed */
    sqlite3_file *db;
    sqlite3_file *log; /* owned */
    volatile unsigned char **regions;
    uint32_t n_regions;
    bool locked;
    kiln_wal_header header; /* while locked: the last commit */
} kiln_wal;

typedef struct {
    uint32_t page; /* from 1 */
    unsigned char *data;
} kiln_wal_page;

/* Opens the log of a database that another connection of this process has opened in WAL mode.
 * log_name: sqlite3_filename_wal. */
int kiln_wal_open(kiln_wal *w, sqlite3_vfs *vfs, sqlite3_file *db, const char *log_name);
/* Unlocks and closes; accepts one that was never opened ({0}). */
void kiln_wal_close(kiln_wal *w);

/* Takes the locks of a writer and of a checkpoint, both or none, and reads the header. Until
 * kiln_wal_unlock no other connection can commit, run a checkpoint or restart the log; readers go
 * on. SQLITE_BUSY: another connection has one of the locks. */
int kiln_wal_lock(kiln_wal *w);
void kiln_wal_unlock(kiln_wal *w); /* accepts one that is not locked */

/* The functions below need the locks. */
/* Returns the last frame of a page, or 0 if the log has none. *rc: SQLITE_CORRUPT if the index has
 * a loop. */
uint32_t kiln_wal_find(const kiln_wal *w, uint32_t page, int *rc);
/* Reads n bytes at `offset` of the page in this frame. */
int kiln_wal_read(kiln_wal *w, uint32_t frame, void *out, int n, int offset);
/* Is all of the log in the database file? */
bool kiln_wal_is_backfilled(const kiln_wal *w);
/* Is there no reader at all, of any state? Looks once and does not wait. *none false if in
 * doubt. */
int kiln_wal_has_no_readers(kiln_wal *w, bool *none);
/* Begins the log anew if all of it is in the database file and no reader uses it. Before a
 * transaction that writes. SQLITE_BUSY: the caller tries again. */
int kiln_wal_prepare(kiln_wal *w);
/* Appends the pages and makes them, with all that was written outside the log, the new state of the
 * database, which has n_pages. The caller has synced what is outside. *visible: readers see the new
 * state; on a failure it says whether they do. */
int kiln_wal_commit(kiln_wal *w, const kiln_wal_page *pages, uint32_t n, uint32_t n_pages,
                    bool *visible);

#endif
