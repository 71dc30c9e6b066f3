/* part -- writes a part and puts it into the shared folder whole.
 *
 * The file lies in local scratch while it grows: a shared folder is slow, and SQLite's locks cannot be trusted there. What the
 * shared folder gets is one sequential copy. The name of a part appears when all of it is on the disk, by a rename within the
 * folder, so that whoever sees the name sees a whole part; a writer that is killed leaves a file of another name. */
#include "schema/part.h"

#include "base/file.h"
#include "base/memory.h"
#include "schema/part_internal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_BYTES = 4 << 20, HOST_MAX = 64 };
static const char mark[] = ".part.tmp.";

/* Name of this host as a part of a file's name. */
static void host_word(char out[HOST_MAX])
{
    if (gethostname(out, HOST_MAX) != 0) strcpy(out, "host");
    out[HOST_MAX - 1] = '\0';
    for (char *p = out; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '-') *p = '_';
    if (!*out) strcpy(out, "host");
}

kiln_status kiln_part_name(const kiln_part_info *info, char out[KILN_PART_NAME_MAX], kiln_error *err)
{
    char hex[33];
    kiln_part_info known = *info;
    known.version = KILN_SCHEMA_VERSION; /* is not in the name */
    *out = '\0';
    KILN_TRY(kiln_part_check_info(&known, KILN_E_USAGE, err));
    (void)snprintf(out, KILN_PART_NAME_MAX, "%s-%s-%" PRIu32 "-of-%" PRIu32 ".part", info->stage, kiln_hash_hex(info->plan, hex),
                   info->shard, info->shards); /* 31 + 32 + 7 + 7 bytes and what is between them fit */
    return KILN_OK;
}

/* ---- create ------------------------------------------------------------------------------------------------------ */
static kiln_status put_info(kiln_manifest *m, const kiln_part_info *info, kiln_error *err)
{
    char host[sizeof info->host] = "";
    kiln_query q;
    if (!info->host[0] && gethostname(host, sizeof host - 1) != 0) *host = '\0';
    KILN_TRY(kiln_query_open(m, &q, "INSERT INTO part (id, stage, plan, shard, shards, host, version) VALUES (1, ?, ?, ?, ?, ?, ?)",
                             err));
    kiln_bind_text(&q, info->stage);
    kiln_bind_hash(&q, info->plan);
    kiln_bind_i64(&q, info->shard);
    kiln_bind_i64(&q, info->shards);
    kiln_bind_text(&q, info->host[0] ? info->host : host);
    kiln_bind_i64(&q, KILN_SCHEMA_VERSION);
    return kiln_query_run(&q, err);
}

kiln_status kiln_part_create(const char *path, const kiln_part_info *info, kiln_manifest *base, kiln_manifest **out,
                             kiln_error *err)
{
    char name[KILN_PART_NAME_MAX];
    *out = NULL;
    KILN_TRY(kiln_part_name(info, name, err));
    KILN_TRY(kiln_part_connect(path, true, out, err));
    const kiln_status st = put_info(*out, info, err);
    if (st == KILN_OK) {
        (*out)->base = base;
        return st;
    }
    kiln_manifest_discard(*out);
    *out = NULL;
    return st;
}

/* ---- finish ------------------------------------------------------------------------------------------------------ */
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

/* Some network file systems cannot sync a folder; their renames are on the server's disk then when they return. */
static kiln_status sync_folder(const char *folder, kiln_error *err)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return kiln_fail(err, KILN_E_IO, "cannot open folder '%s': %s", folder, strerror(errno));
    const int error = fsync(fd) == 0 || errno == EINVAL || errno == ENOTSUP ? 0 : errno;
    (void)close(fd);
    return error ? kiln_fail(err, KILN_E_IO, "cannot sync folder '%s': %s", folder, strerror(error)) : KILN_OK;
}

static kiln_status copy_bytes(int from, const char *from_path, int to, const char *to_path, kiln_error *err)
{
    unsigned char *data = NULL;
    struct stat s;
    kiln_status st = KILN_OK;
    if (fstat(from, &s) != 0) return kiln_fail(err, KILN_E_IO, "cannot look at '%s': %s", from_path, strerror(errno));
    KILN_TRY(KILN_ALLOC_UNSET(&data, COPY_BYTES, "a copy", err));
    for (uint64_t at = 0, left = (uint64_t)s.st_size; left > 0;) {
        const size_t n = left < COPY_BYTES ? (size_t)left : COPY_BYTES;
        KILN_GO(kiln_file_read_at(from, from_path, at, data, n, err));
        KILN_GO(kiln_file_write_at(to, to_path, at, data, n, err));
        at += n;
        left -= n;
    }
    if (fsync(to) != 0) st = kiln_file_write_failed(to_path, errno, err);
done:
    free(data);
    return st;
}

/* Copies to a name beside `to`, then renames. */
static kiln_status copy_over(const char *from, const char *to, uint32_t restarts, kiln_error *err)
{
    char tmp[KILN_PATH_MAX], host[HOST_MAX];
    int in = -1, out = -1;
    host_word(host);
    const int n = snprintf(tmp, sizeof tmp, "%s.tmp.%s.%ld.%" PRIu32, to, host, (long)getpid(), restarts);
    if (n < 0 || (size_t)n >= sizeof tmp) return kiln_fail(err, KILN_E_USAGE, "the path '%.60s...' is too long", to);
    KILN_TRY(kiln_file_open(from, &in, err));
    kiln_status st = kiln_file_create(tmp, &out, err);
    if (st == KILN_OK) st = copy_bytes(in, from, out, tmp, err);
    (void)close(in); /* was only read */
    if (out >= 0 && close(out) != 0 && st == KILN_OK) st = kiln_file_write_failed(to, errno, err);
    if (st == KILN_OK && rename(tmp, to) != 0) st = kiln_file_write_failed(to, errno, err);
    if (st != KILN_OK && out >= 0) (void)unlink(tmp); /* the first reason is the one to tell */
    return st;
}

static kiln_status sync_file(const char *path, kiln_error *err)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return kiln_file_write_failed(path, errno, err);
    const kiln_status st = fsync(fd) == 0 ? KILN_OK : kiln_file_write_failed(path, errno, err);
    (void)close(fd); /* is synced, or has failed */
    return st;
}

static kiln_status place(const char *from, const kiln_part_info *info, const char *folder, uint32_t restarts, kiln_error *err)
{
    char name[KILN_PART_NAME_MAX], to[KILN_PATH_MAX];
    KILN_TRY(kiln_part_name(info, name, err));
    KILN_TRY(kiln_path_join(to, sizeof to, folder, name, err));
    KILN_TRY(kiln_file_replaceable(to, err));
    KILN_TRY(sync_file(from, err));
    if (rename(from, to) == 0) return sync_folder(folder, err);
    if (errno != EXDEV) return kiln_file_write_failed(to, errno, err);
    KILN_TRY(copy_over(from, to, restarts, err));
    return sync_folder(folder, err);
}

kiln_status kiln_part_finish(kiln_manifest *m, const char *folder, uint32_t restarts, kiln_error *err)
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
    st = place(path, &info, folder, restarts, err);
    (void)unlink(path); /* a copy is there, or the failure is told; after a rename there is none */
    free(path);
    return st;
}

/* ---- what was left ----------------------------------------------------------------------------------------------- */
/* Is `rest` HOST.PID.RESTARTS of a process of this host that has ended? */
static bool is_ended(const char *rest, const char *host)
{
    const size_t n = strlen(host);
    long pid;
    uint32_t restarts;
    char end;
    if (strncmp(rest, host, n) != 0 || rest[n] != '.') return false;
    return sscanf(rest + n + 1, "%ld.%" SCNu32 "%c", &pid, &restarts, &end) == 2 && pid > 0 && kiln_process_ended(pid);
}

void kiln_part_leftovers_drop(const char *folder, const char *of, bool all_hosts)
{
    char host[HOST_MAX], path[KILN_PATH_MAX];
    const size_t n = strlen(of);
    DIR *d = opendir(folder);
    if (!d) return;
    host_word(host);
    for (const struct dirent *e = readdir(d); e; e = readdir(d)) {
        const char *const at = strstr(e->d_name, mark);
        if (!at || strncmp(e->d_name, of, n) != 0 || e->d_name[n] != '-') continue;
        if (!all_hosts && !is_ended(at + sizeof mark - 1, host)) continue;
        if (kiln_path_join(path, sizeof path, folder, e->d_name, NULL) == KILN_OK) (void)unlink(path);
    }
    (void)closedir(d);
}
