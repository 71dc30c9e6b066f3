/* remote -- a writer of a manifest that lies on another machine's disk works on a copy of its own.
 *
 * Problem. SQLite in WAL mode needs memory that all readers and writers share, and locks that hold;
 * a network file system has neither. A writer that is killed there leaves a log that the next
 * program may or may not see whole.
 *
 * So the file there is never changed. Under its lock it is copied to a local disk and written there
 * like any manifest, also by workers. The copy is put back under another name, synced and renamed.
 * Whoever opens it sees the state before or the one after. DESIGN.md says what this costs, and what
 * was rejected.
 *
 * The copy's name follows from the manifest's real path, so that workers find it without being
 * told. The lock keeps two writers from one copy; what a killed one has left is removed before the
 * next begins. */
#include "base/endian.h"
#include "base/file.h"
#include "base/memory.h"
#include "schema/direct.h"
#include "schema/manifest_internal.h"
#include "schema/placing.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

kiln_status kiln_manifest_real_path(const char *path, char out[4096], kiln_error *err)
{
    char folder[4096], real[PATH_MAX];
    if (realpath(path, real)) return kiln_path_join(out, KILN_PATH_MAX, "/", real, err);
    KILN_TRY(kiln_folder_of(path, folder, err));
    if (!realpath(folder, real))
        return kiln_fail(err, KILN_E_IO, "cannot find where '%s' is: %s", path, strerror(errno));
    return kiln_path_join(out, KILN_PATH_MAX, real, kiln_path_base(path), err);
}

kiln_status kiln_manifest_copy_path(const char *path, const char *folder, char out[4096],
                                    kiln_error *err)
{
    char real[4096], name[NAME_MAX + 1], hex[33];
    KILN_TRY(kiln_manifest_real_path(path, real, err));
    (void)snprintf(name, sizeof name, "%.100s-%.16s.copy", kiln_path_base(real),
                   kiln_hash_hex(kiln_hash_of(real, strlen(real)), hex));
    return kiln_path_join(out, KILN_PATH_MAX, folder, name, err);
}

kiln_status kiln_copy_fetch(const kiln_manifest *m, bool exists, kiln_error *err)
{
    static const char *const left[] = {"", "-wal", "-shm", "-journal"};
    char name[4096 + 16], real[4096], folder[4096], mark[KILN_PATH_MAX + 8];
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        (void)snprintf(name, sizeof name, "%.4095s%s", m->file, left[i]);
        if (unlink(name) != 0 && errno != ENOENT)
            return kiln_fail(err, KILN_E_IO, "cannot remove '%s': %s", name, strerror(errno));
    }
    KILN_TRY(kiln_manifest_real_path(m->path, real, err));
    KILN_TRY(kiln_folder_of(real, folder, err));
    (void)snprintf(mark, sizeof mark, "%s.tmp.", kiln_path_base(real));
    kiln_place_leftovers_drop(folder, kiln_path_base(real), mark, false);
    (void)snprintf(mark, sizeof mark, "%s.tmp.", kiln_path_base(m->file));
    KILN_TRY(kiln_folder_of(m->file, folder, err));
    kiln_place_leftovers_drop(folder, kiln_path_base(m->file), mark, false);
    if (!exists) return KILN_OK;
    KILN_TRY(kiln_refuse_log(m->path, err));
    return kiln_place_file(real, m->file, 0, err);
}

static uint64_t commits_of(const kiln_manifest *m)
{
    const kiln_direct_state *s = kiln_bulk_state(m);
    return s ? s->commits : UINT64_MAX; /* unknown once it is closed */
}

kiln_status kiln_manifest_open_copy(const char *path, const char *copy, kiln_open_mode mode,
                                    const char *stage, kiln_manifest **out, kiln_error *err)
{
    *out = NULL;
    if (mode == KILN_OPEN_READ || mode == KILN_OPEN_FROZEN)
        return kiln_fail(err, KILN_E_BUG, "a reader of '%s' wants a copy", path);
    if (strlen(copy) >= 4096)
        return kiln_fail(err, KILN_E_INPUT, "the path '%.200s...' is longer than 4095 bytes", copy);
    KILN_TRY(kiln_manifest_open_file(path, copy, mode, stage, false, out, err));
    if ((*out)->created) return KILN_OK;
    (*out)->copy_changes = sqlite3_total_changes((*out)->db);
    (*out)->copy_commits = commits_of(*out);
    return KILN_OK;
}

/* By SQLite's own descriptor: closing another one would drop the locks that it has on the file
 * (fcntl(2)). */
static kiln_status read_database(void *source, uint64_t at, void *dst, size_t bytes,
                                 kiln_error *err)
{
    kiln_manifest *m = source;
    sqlite3_file *file = NULL;
    int rc = sqlite3_file_control(m->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (rc == SQLITE_OK) rc = file->pMethods->xRead(file, dst, (int)bytes, (sqlite3_int64)at);
    return rc == SQLITE_OK ? KILN_OK : kiln_sqlite_fail(m, rc, "read", err);
}

kiln_status kiln_manifest_changes(kiln_manifest *m, uint32_t *counter, kiln_error *err)
{
    enum { AT = 24 }; /* sqlite.org/fileformat2.html 1.3.7 */
    unsigned char p[4];
    KILN_TRY(read_database(m, AT, p, sizeof p, err));
    *counter = kiln_get_u32_be(p);
    return KILN_OK;
}

kiln_status kiln_manifest_publish(kiln_manifest *m, kiln_error *err)
{
    char real[4096], folder[4096];
    int64_t n_pages, page_bytes;
    struct stat s;
    if (!m->writer || m->is_part) return KILN_OK;
    if (strcmp(m->file, m->path) == 0) {
        kiln_checkpoint_if_free(m);
        return KILN_OK;
    }
    if (!sqlite3_get_autocommit(m->db))
        return kiln_fail(err, KILN_E_BUG, "a manifest is published inside a transaction");
    const int changes = sqlite3_total_changes(m->db);
    const uint64_t commits = commits_of(m);
    if (m->copy_changes == changes && m->copy_commits == commits) return KILN_OK;
    KILN_TRY(kiln_checkpoint_all(m, err));
    KILN_TRY(kiln_query_number(m, "PRAGMA page_count", &n_pages, err));
    KILN_TRY(kiln_query_number(m, "PRAGMA page_size", &page_bytes, err));
    KILN_TRY(kiln_manifest_real_path(m->path, real, err));
    KILN_TRY(kiln_folder_of(real, folder, err));
    const unsigned mode = stat(real, &s) == 0 ? s.st_mode & 07777 : 0;
    const kiln_place_from all = {.read = read_database,
                                 .source = m,
                                 .bytes = (uint64_t)(n_pages * page_bytes),
                                 .mode = mode};
    KILN_TRY(kiln_place_copy(&all, real, err));
    KILN_TRY(kiln_folder_sync(folder, err));
    m->copy_changes = changes;
    m->copy_commits = commits;
    return KILN_OK;
}
