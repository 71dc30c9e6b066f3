/* part -- writes a part and puts it into the shared folder whole.
 *
 * The file lies in local scratch while it grows: a shared folder is slow, and SQLite's locks cannot
 * be trusted there. What the shared folder gets is one sequential copy. The name of a part appears
 * by a rename within the folder once all of it is on the disk. So a process that sees the name sees
 * a whole part; a writer that is killed leaves a file of another name. */
#include "schema/part.h"

#include "base/file.h"
#include "base/memory.h"
#include "schema/part_internal.h"
#include "schema/placing.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

kiln_status kiln_part_name(const kiln_part_info *info, char out[KILN_PART_NAME_MAX],
                           kiln_error *err)
{
    char hex[33];
    kiln_part_info known = *info;
    known.version = KILN_SCHEMA_VERSION; /* is not in the name */
    *out = '\0';
    KILN_TRY(kiln_part_check_info(&known, KILN_E_USAGE, err));
    (void)snprintf(out, KILN_PART_NAME_MAX, "%s-%s-%" PRIu32 "-of-%" PRIu32 ".part", info->stage,
                   kiln_hash_hex(info->plan, hex),
                   /* 31 + 32 + 7 + 7 bytes and what is between them fit */
                   info->shard, info->shards);
    return KILN_OK;
}

kiln_status kiln_part_draft_path(const kiln_part_info *info, const char *folder, uint32_t restarts,
                                 char out[4096], kiln_error *err)
{
    char name[KILN_PART_NAME_MAX], whole[KILN_PATH_MAX];
    KILN_TRY(kiln_part_name(info, name, err));
    KILN_TRY(kiln_path_join(whole, sizeof whole, folder, name, err));
    return kiln_place_temporary(whole, restarts, out, err);
}

/* ---- create ---------------------------------------------------------------------------------- */
static kiln_status put_info(kiln_manifest *m, const kiln_part_info *info, kiln_error *err)
{
    char host[sizeof info->host] = "";
    kiln_query q;
    if (!info->host[0] && gethostname(host, sizeof host - 1) != 0) *host = '\0';
    KILN_TRY(kiln_query_open(m, &q,
                             "INSERT INTO part (id, stage, plan, shard, shards, host, version) "
                             "VALUES (1, ?, ?, ?, ?, ?, ?)",
                             err));
    kiln_bind_text(&q, info->stage);
    kiln_bind_hash(&q, info->plan);
    kiln_bind_i64(&q, info->shard);
    kiln_bind_i64(&q, info->shards);
    kiln_bind_text(&q, info->host[0] ? info->host : host);
    kiln_bind_i64(&q, KILN_SCHEMA_VERSION);
    return kiln_query_run(&q, err);
}

kiln_status kiln_part_create(const char *path, const kiln_part_info *info, kiln_manifest *base,
                             kiln_manifest **out, kiln_error *err)
{
    char name[KILN_PART_NAME_MAX];
    *out = NULL;
    KILN_TRY(kiln_part_name(info, name, err));
    KILN_TRY(kiln_part_connect(path, true, NULL, out, err));
    const kiln_status st = put_info(*out, info, err);
    if (st == KILN_OK) {
        (*out)->base = base;
        return st;
    }
    kiln_manifest_discard(*out);
    *out = NULL;
    return st;
}

/* ---- finish ---------------------------------------------------------------------------------- */
static kiln_status put_seal(kiln_manifest *m, kiln_part_info *info, kiln_error *err)
{
    kiln_hash seal;
    kiln_query q;
    KILN_TRY(kiln_part_read_info(m, info, &seal, err));
    KILN_TRY(kiln_part_seal(m, &seal, err));
    KILN_TRY(kiln_query_open(m, &q, "UPDATE part SET seal = ? WHERE id = 1", err));
    kiln_bind_hash(&q, seal);
    return kiln_query_run(&q, err);
}

static kiln_status sync_file(const char *path, kiln_error *err)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return kiln_file_write_failed(path, errno, err);
    const kiln_status st = fsync(fd) == 0 ? KILN_OK : kiln_file_write_failed(path, errno, err);
    (void)close(fd); /* is synced, or has failed */
    return st;
}

static kiln_status place_part(const char *from, const kiln_part_info *info, const char *folder,
                              uint32_t restarts, kiln_error *err)
{
    char name[KILN_PART_NAME_MAX], to[KILN_PATH_MAX];
    KILN_TRY(kiln_part_name(info, name, err));
    KILN_TRY(kiln_path_join(to, sizeof to, folder, name, err));
    KILN_TRY(kiln_file_replaceable(to, err));
    KILN_TRY(sync_file(from, err));
    if (rename(from, to) == 0) return kiln_folder_sync(folder, err);
    if (errno != EXDEV) return kiln_file_write_failed(to, errno, err);
    KILN_TRY(kiln_place_file(from, to, restarts, err));
    return kiln_folder_sync(folder, err);
}

kiln_status kiln_part_finish(kiln_manifest *m, const char *folder, uint32_t restarts,
                             kiln_error *err)
{
    char *path = NULL;
    kiln_part_info info;
    kiln_status st = KILN_ALLOC(&path, strlen(kiln_manifest_path(m)) + 1, "a path", err);
    if (st == KILN_OK) strcpy(path, kiln_manifest_path(m));
    if (st == KILN_OK) st = put_seal(m, &info, err);
    if (st != KILN_OK) {
        kiln_manifest_discard(m);
        free(path);
        return st;
    }
    kiln_manifest_close(m); /* every commit has written its pages to the file */
    st = place_part(path, &info, folder, restarts, err);
    (void)unlink(path); /* a copy is there, or the failure is told; after a rename there is none */
    free(path);
    return st;
}

void kiln_part_leftovers_drop(const char *folder, const char *of, bool all_hosts)
{
    char begin[KILN_PART_NAME_MAX + 1];
    (void)snprintf(begin, sizeof begin, "%s-", of);
    kiln_place_leftovers_drop(folder, begin, ".part.tmp.", all_hosts);
}
