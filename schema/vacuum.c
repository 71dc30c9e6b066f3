/* vacuum -- gives the space of free pages back to the file system. */
#include "base/option.h"
#include "schema/gc.h"
#include "schema/manifest_internal.h"

#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>

enum {
    LOOK_OPERATIONS = 10000, /* of SQLite's machine, between two looks: some milliseconds */
    BUSY_MS = 1000,          /* for readers of an older state; who reads longer is not waited for */
};

kiln_status kiln_manifest_space(kiln_manifest *m, kiln_space *out, kiln_error *err)
{
    int64_t page, pages, free_pages;
    KILN_TRY(kiln_query_number(m, "PRAGMA page_size", &page, err));
    KILN_TRY(kiln_query_number(m, "PRAGMA page_count", &pages, err));
    KILN_TRY(kiln_query_number(m, "PRAGMA freelist_count", &free_pages, err));
    *out = (kiln_space){.file_bytes = (uint64_t)(pages * page),
                        .free_bytes = (uint64_t)(free_pages * page)};
    return KILN_OK;
}

typedef struct {
    kiln_vacuum_look_fn *look;
    void *context;
    kiln_status status; /* what the look said last */
    kiln_error error;
} looker;

static int look_now(void *context)
{
    looker *l = context;
    l->status = l->look ? l->look(l->context, &l->error) : KILN_OK;
    return l->status != KILN_OK;
}

/* Ends with a file of its new size, unless a reader looks at an older state: then the next writer's
 * end does it. */
static void write_back(kiln_manifest *m)
{
    (void)sqlite3_wal_checkpoint_v2(m->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

/* Free bytes of the file system that holds the path, for people. */
static const char *free_text(const char *path, char out[32])
{
    struct statvfs fs;
    if (statvfs(path, &fs) != 0) return "an unknown number of bytes";
    return kiln_size_text((uint64_t)fs.f_bavail * fs.f_frsize, out);
}

/* What has no room is one of two copies, and SQLite does not say which. */
static kiln_status fail_full(const kiln_manifest *m, const char *folder, kiln_error *err)
{
    char there[32], beside[32];
    return kiln_fail(err, KILN_E_IO,
                     "cannot vacuum '%s': %s; one copy of what is kept goes to '%s' (%s are free), "
                     "another beside '%s' ("
                     "%s are free); make room and run again",
                     m->path, sqlite3_errstr(SQLITE_FULL), folder, free_text(folder, there),
                     m->file, free_text(m->file, beside));
}

kiln_status kiln_manifest_vacuum(kiln_manifest *m, const char *folder, kiln_vacuum_look_fn *look,
                                 void *context, kiln_error *err)
{
    looker l = {.look = look, .context = context};
    (void)sqlite3_busy_timeout(m->db, BUSY_MS); /* fails only without a connection */
    write_back(m);                              /* so that -wal begins empty */
    sqlite3_temp_directory = sqlite3_mprintf("%s", folder);
    if (!sqlite3_temp_directory) return kiln_fail(err, KILN_E_NOMEM, "out of memory for a path");
    sqlite3_progress_handler(m->db, LOOK_OPERATIONS, look_now, &l);
    const int rc = sqlite3_exec(m->db, "VACUUM", NULL, NULL, NULL);
    kiln_guard_steps(m);
    kiln_status st = rc == SQLITE_OK              ? KILN_OK
                     : (rc & 0xff) == SQLITE_FULL ? fail_full(m, folder, err)
                                                  : kiln_sqlite_fail(m, rc, "vacuum", err);
    sqlite3_free(sqlite3_temp_directory);
    sqlite3_temp_directory = NULL;
    if ((rc & 0xff) == SQLITE_INTERRUPT && l.status != KILN_OK) {
        if (err) *err = l.error;
        st = l.status;
    }
    write_back(m);
    return st;
}
