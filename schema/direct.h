/* direct -- a VFS of SQLite through which a connection writes new pages to their place in the file,
 * not to the log first. direct.c says how and why that is safe.
 *
 * A connection that is opened with it must use journal_mode = MEMORY and synchronous = FULL. The
 * same thread must also have the database open in WAL mode through SQLite's own VFS. Each of its
 * transactions, reading ones too, excludes other writers and checkpoints. After a COMMIT that fails
 * the caller has to close the connection: SQLite's cache is not of any state then. */
#ifndef KILN_SCHEMA_DIRECT_H
#define KILN_SCHEMA_DIRECT_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#define KILN_DIRECT_VFS "kiln-direct"

/* Pages that were there before and change in one transaction are kept in memory until its commit,
 * and once more in SQLite's journal in memory. A transaction that changes more fails with
 * SQLITE_FULL. */
enum { KILN_DIRECT_KEPT_MOST = 128 };

/* Counts of the connection's transactions, and why the last one failed. */
typedef struct kiln_direct_state {
    uint64_t commits;    /* made */
    uint64_t pages;      /* stored in their place */
    uint64_t logged;     /* stored through the log */
    uint32_t log_frames; /* in the log after the last commit */
    bool too_many;       /* the last transaction changed more than KILN_DIRECT_KEPT_MOST pages */
    /* the last one did not begin: behind the end of the database are pages that a checkpoint has to
     * cut off */
    bool garbage;
} kiln_direct_state;

/* Registers the VFS; further calls do no harm. SQLITE_NOTFOUND: SQLite's default VFS is not
 * "unix". */
int kiln_direct_register(void);
/* The state of a connection's file; NULL if it was not opened with this VFS. Valid until the
 * connection is closed. */
const kiln_direct_state *kiln_direct_state_of(sqlite3 *db);
/* Gives the connection a descriptor of the database file, opened by its path, through which new
 * pages are written; by a thread if `threaded`, and leave the page cache behind each commit if
 * `passes` (write_behind.h). Until then nothing can be written. It may be called again between two
 * transactions. False, and nothing has changed: the path names another file now, or out of memory.
 * The caller closes it after ALL connections of this process to the file: closing any descriptor of
 * a file drops the process's locks on it (fcntl(2)). */
bool kiln_direct_write_by(sqlite3 *db, int fd, bool threaded, bool passes);

#endif
