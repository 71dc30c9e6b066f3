/* lock -- one writer per manifest, across processes, and which file systems can be trusted with
 * that.
 *
 * An OFD lock (fcntl F_OFD_SETLK) on PATH.lock: it goes with the last descriptor, so a killed
 * process leaves none. Unlike a classic POSIX lock it does not vanish when another part of the
 * process closes the file. The file holds text for people: pid, host, stage, start. It is removed
 * on release; a process that waited on a removed file would hold a lock without effect. So after
 * locking, the path must still name the locked file; if not, the attempt starts again. */
#include "base/file.h"
#include "base/memory.h"
#include "schema/manifest_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

enum {
    ROUNDS = 100,    /* each lost round means that another process finished in between */
    HOLDER_MS = 200, /* for a holder to say who it is */
    ENDING_MS = 3000 /* for the children of a holder that was killed to end with it */
};

kiln_status kiln_folder_of(const char *path, char out[4096], kiln_error *err)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= 4096)
        return kiln_fail(err, KILN_E_INPUT, "path '%.200s...' is longer than 4095 bytes", path);
    memcpy(out, path, length);
    out[length] = '\0';
    if (length == 0) strcpy(out, slash ? "/" : ".");
    return KILN_OK;
}

bool kiln_magic_is_network(uint64_t f_type)
{
    /* linux/magic.h, and statfs(2) for those that it leaves out. Not FUSE: it may be a local
     * disk. */
    static const uint32_t network[] = {
        0x6969,     /* NFS */
        0x517B,     /* SMB */
        0xFF534D42, /* CIFS */
        0xFE534D42, /* SMB2 */
        0x5346414F, /* AFS */
        0x6B414653, /* kAFS */
        0x73757245, /* Coda */
        0x00C36400, /* Ceph */
        0x0BD00BD0, /* Lustre */
        0x47504653, /* GPFS */
        0x19830326, /* BeeGFS */
    };
    for (size_t i = 0; i < sizeof network / sizeof *network; i++)
        /* f_type is a signed word: CIFS arrives sign-extended */
        if ((uint32_t)f_type == network[i]) return true;
    return false;
}

/* Is the folder that KILN_NETWORK_FS names, or one below it? */
static bool is_declared(const char *folder)
{
    char real[PATH_MAX], declared[PATH_MAX];
    const char *const named = getenv("KILN_NETWORK_FS");
    if (!named || !*named || !realpath(named, declared) || !realpath(folder, real)) return false;
    const size_t n = strlen(declared);
    return strncmp(real, declared, n) == 0 && (real[n] == '/' || real[n] == '\0');
}

kiln_status kiln_manifest_is_remote(const char *path, bool *remote, kiln_error *err)
{
    char folder[4096];
    struct statfs fs;
    *remote = false;
    KILN_TRY(kiln_folder_of(path, folder, err));
    if (statfs(folder, &fs) != 0)
        return kiln_fail(err, KILN_E_INPUT, "cannot access folder '%s': %s", folder,
                         strerror(errno));
    *remote = kiln_magic_is_network((uint64_t)fs.f_type) || is_declared(folder);
    return KILN_OK;
}

kiln_status kiln_refuse_network(const char *path, kiln_error *err)
{
    bool remote;
    KILN_TRY(kiln_manifest_is_remote(path, &remote, err));
    if (!remote) return KILN_OK;
    return kiln_fail(err, KILN_E_IO,
                     "'%s' is on a network file system, where SQLite's locks cannot be trusted; "
                     "put it on a local disk, or give "
                     "--allow-network-fs when only this machine uses it",
                     path);
}

/* "pid 123, host h, stage knn, start T" from the lock file's lines. A holder writes them right
 * after it has the lock: who looks in between waits for it a moment. */
static void describe_holder(int fd, char *out, size_t size)
{
    char text[512];
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    for (int ms = 0; n == 0 && ms < HOLDER_MS; ms++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        n = pread(fd, text, sizeof text - 1, 0);
    }
    if (n <= 0) {
        snprintf(out, size, "another process");
        return;
    }
    text[n] = '\0';
    size_t end = strlen(text);
    while (end > 0 && text[end - 1] == '\n') text[--end] = '\0';
    size_t used = 0;
    for (const char *p = text; *p && used + 2 < size; p++) {
        if (*p == '\n') out[used++] = ',';
        out[used++] = (unsigned char)*p < 32 ? ' ' : *p;
    }
    out[used] = '\0';
}

static kiln_status write_holder(int fd, const char *path, const char *stage, kiln_error *err)
{
    char host[256] = "unknown", start[64] = "unknown", text[512];
    if (gethostname(host, sizeof host - 1) != 0) strcpy(host, "unknown");
    time_t now = time(NULL);
    struct tm utc;
    if (gmtime_r(&now, &utc)) strftime(start, sizeof start, "%Y-%m-%dT%H:%M:%SZ", &utc);
    int n = snprintf(text, sizeof text, "pid %ld\nhost %s\nstage %.64s\nstart %s\n", (long)getpid(),
                     host, stage ? stage : "?", start);
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text, (size_t)n, 0) != n)
        return kiln_fail(err, KILN_E_IO, "cannot write lock file '%s': %s", path, strerror(errno));
    return KILN_OK;
}

static bool still_names(const char *path, int fd)
{
    struct stat by_path, by_fd;
    return stat(path, &by_path) == 0 && fstat(fd, &by_fd) == 0 && by_path.st_dev == by_fd.st_dev &&
           by_path.st_ino == by_fd.st_ino;
}

/* Is the process that the lock file names gone from this host? */
static bool holder_is_gone(int fd)
{
    char text[512], host[256] = "", own[256] = "";
    long pid = 0;
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    if (n <= 0 || gethostname(own, sizeof own - 1) != 0) return false;
    text[n] = '\0';
    if (sscanf(text, "pid %ld\nhost %255s", &pid, host) != 2 || pid <= 0 || strcmp(host, own) != 0)
        return false;
    return kiln_process_ended(pid);
}

/* Takes the lock if it is free. A worker between its fork and its exec has the parent's descriptor:
 * if the parent was killed in that instant, only the end of the worker releases the lock. So the
 * lock of a process that has ended is waited for. */
static bool lock_file(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    for (int ms = 0;; ms += 10) {
        if (fcntl(fd, F_OFD_SETLK, &whole) == 0) return true;
        if ((errno != EAGAIN && errno != EACCES) || ms >= ENDING_MS) return false;
        if (!holder_is_gone(fd)) return errno = EAGAIN, false;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
}

/* *taken false: the file was removed under us, try again. */
static kiln_status try_lock(kiln_lock *l, const char *manifest_path, bool *taken, kiln_error *err)
{
    struct stat s;
    *taken = false;
    /* A link or pipe of this name came with a stranger's files: its target must not be written, nor
     * waited for. */
    l->fd = open(l->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (l->fd < 0 && errno == ELOOP)
        return kiln_fail(
            err, KILN_E_INPUT,
            "the lock file '%s' is a link, which a stage would write through: remove it", l->path);
    if (l->fd >= 0 && (fstat(l->fd, &s) != 0 || !S_ISREG(s.st_mode)))
        return kiln_fail(err, KILN_E_INPUT, "the lock file '%s' is not a regular file: remove it",
                         l->path);
    if (l->fd < 0)
        return kiln_fail(err, KILN_E_IO,
                         "cannot open lock file '%s': %s; a stage writes into the manifest's "
                         "folder: make that writable, or bake "
                         "elsewhere (kiln-info and kiln-verify only read)",
                         l->path, strerror(errno));
    if (!lock_file(l->fd)) {
        if (errno != EAGAIN && errno != EACCES)
            return kiln_fail(err, KILN_E_IO, "cannot lock '%s': %s", l->path, strerror(errno));
        char holder[600];
        describe_holder(l->fd, holder, sizeof holder);
        return kiln_fail(err, KILN_E_BUSY,
                         "'%s' is being written by another process (%s); wait until it is done",
                         manifest_path, holder);
    }
    *taken = still_names(l->path, l->fd);
    return KILN_OK;
}

kiln_status kiln_lock_take(const char *manifest_path, const char *stage, kiln_lock *out,
                           kiln_error *err)
{
    kiln_status st = KILN_OK;
    bool taken = false;
    char real[KILN_PATH_MAX];
    const char *const at =
        kiln_manifest_real_path(manifest_path, real, NULL) == KILN_OK ? real : manifest_path;
    const size_t capacity = strlen(at) + sizeof ".lock";
    *out = (kiln_lock){.fd = -1};
    KILN_TRY(KILN_ALLOC(&out->path, capacity, "the lock's path", err));
    snprintf(out->path, capacity, "%s.lock", at);
    for (int round = 0; !taken && round < ROUNDS; round++) {
        if (out->fd >= 0) close(out->fd);
        KILN_GO(try_lock(out, manifest_path, &taken, err));
    }
    if (!taken) {
        st = kiln_fail(err, KILN_E_BUSY,
                       "lock file '%s' keeps being removed by other processes; try again",
                       out->path);
        goto done;
    }
    KILN_GO(write_holder(out->fd, out->path, stage, err));
    return KILN_OK;
done:
    if (taken) (void)unlink(out->path);
    if (out->fd >= 0) close(out->fd);
    free(out->path);
    *out = (kiln_lock){.fd = -1};
    return st;
}

/* The lock file if somebody holds the lock, to be closed; -1: nobody does, or this process may not
 * know. */
static int open_held(const char *manifest_path)
{
    char path[4096 + 8], real[KILN_PATH_MAX];
    const char *const at =
        kiln_manifest_real_path(manifest_path, real, NULL) == KILN_OK ? real : manifest_path;
    struct flock whole = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    snprintf(path, sizeof path, "%.4095s.lock", at);
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || (fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type == F_WRLCK)) return fd;
    (void)close(fd); /* was only read */
    return -1;
}

kiln_status kiln_lock_look(const char *manifest_path, kiln_error *err)
{
    char holder[600];
    const int fd = open_held(manifest_path);
    if (fd < 0) return KILN_OK;
    describe_holder(fd, holder, sizeof holder);
    (void)close(fd); /* was only read */
    return kiln_fail(err, KILN_E_BUSY,
                     "'%s' is being written by another process (%s); wait until it is done",
                     manifest_path, holder);
}

bool kiln_manifest_is_written(const char *path, char stage[32])
{
    char text[512];
    const int fd = open_held(path);
    stage[0] = '\0';
    if (fd < 0) return false;
    const ssize_t n = pread(fd, text, sizeof text - 1, 0);
    (void)close(fd); /* was only read */
    text[n > 0 ? n : 0] = '\0';
    const char *line = strstr(text, "\nstage ");
    if (line) (void)sscanf(line, "\nstage %31[a-z]", stage);
    return true;
}

void kiln_lock_release(kiln_lock *l)
{
    if (l->fd >= 0) {
        /* while held: see above. A file that stays is harmless, the lock goes with the
         * descriptor */
        (void)unlink(l->path);
        close(l->fd);
    }
    free(l->path);
    *l = (kiln_lock){.fd = -1};
}
