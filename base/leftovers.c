/* leftovers -- NAME.tmp.kiln-HOST-PID of processes that were killed while they wrote NAME.
 *
 * Folders such as /tmp are shared with other programs, users and hosts, and .tmp.PID is a name that
 * others make, too. So a leftover is known by a mark of ours. It has a hash of the host's name, its
 * boot and the PID namespace, as the number of a process means something only there: containers and
 * virtual machines share names of hosts. A leftover must be of our own user, too. A file is kept
 * when some process has its number: better one that stays than one lost under its writer. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MARK_TEXT = 32 };

/* FNV-1a of the bytes behind what `hash` has seen. */
static uint32_t hash_on(uint32_t hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) hash = (hash ^ ((const unsigned char *)bytes)[i]) * 16777619u;
    return hash;
}

/* Where numbers of processes mean the same: the boot of a machine, and its PID namespace. */
static bool read_process_space(char boot[64], uint64_t *space)
{
    struct stat s;
    size_t n = 0;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f) n = fread(boot, 1, 63, f);
    if (f) (void)fclose(f);
    boot[n] = '\0';
    if (n == 0 || stat("/proc/self/ns/pid", &s) != 0) return false;
    *space = s.st_ino;
    return true;
}

bool kiln_process_space(char out[KILN_PROCESS_SPACE_MAX])
{
    char host[256] = "", boot[64] = "";
    uint64_t space = 0;
    const bool known = gethostname(host, sizeof host - 1) == 0 && read_process_space(boot, &space);
    uint32_t hash = hash_on(2166136261u, host, strlen(host));
    hash = hash_on(hash, boot, strlen(boot));
    hash = hash_on(hash, &space, sizeof space);
    (void)snprintf(out, KILN_PROCESS_SPACE_MAX, "kiln-%08" PRIx32, hash);
    return known;
}

/* ".tmp.kiln-HOST-". False: nothing may be removed. */
static bool write_mark(char out[MARK_TEXT])
{
    char space[KILN_PROCESS_SPACE_MAX];
    const bool known = kiln_process_space(space);
    (void)snprintf(out, MARK_TEXT, ".tmp.%s-", space);
    return known;
}

/* Of a name, before the mark. File systems take names of 255 bytes, some that encrypt them 143. */
enum { STEM_MAX = 100 };

/* A name of up to STEM_MAX bytes for `name`, with its suffix, by which leftovers are known, and no
 * half character at the cut. */
static void shorten(const char *name, char out[STEM_MAX + 1])
{
    const char *suffix = kiln_path_suffix(name);
    const size_t n = strlen(name);
    size_t end = *suffix ? strlen(suffix) + 1 : 0; /* with its dot */
    if (end > STEM_MAX / 2) end = 0;
    size_t cut = n <= STEM_MAX ? n - end : STEM_MAX - end;
    while (n > STEM_MAX && cut && ((unsigned char)name[cut] & 0xc0) == 0x80) cut--; /* UTF-8 */
    (void)snprintf(out, STEM_MAX + 1, "%.*s%s", (int)cut, name, name + n - end);
}

/* PATH with the mark and PID, or PID-N for N > 0. */
static kiln_status name_temporary(const char *path, unsigned n, char out[KILN_PATH_MAX],
                                  kiln_error *err)
{
    char stem[STEM_MAX + 1], mark[MARK_TEXT], number[16] = "";
    const char *const base = kiln_path_base(path);
    shorten(base, stem);
    (void)write_mark(mark); /* any mark will do for a name */
    if (n > 0) (void)snprintf(number, sizeof number, "-%u", n);
    if (snprintf(out, KILN_PATH_MAX, "%.*s%s%s%ld%s", (int)(base - path), path, stem, mark,
                 (long)getpid(), number) < KILN_PATH_MAX)
        return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE, "the path '%.60s...' is too long", path);
}

/* The name that the file gets in the end: it would be refused when all is written. */
static kiln_status check_name(const char *path, kiln_error *err)
{
    struct stat s;
    if (strlen(kiln_path_base(path)) > NAME_MAX || (lstat(path, &s) != 0 && errno == ENAMETOOLONG))
        return kiln_file_write_failed(path, ENAMETOOLONG, err);
    return KILN_OK;
}

enum { NAMES = 1000 };

kiln_status kiln_temporary_path(const char *path, char out[KILN_PATH_MAX], kiln_error *err)
{
    struct stat s;
    KILN_TRY(check_name(path, err));
    for (unsigned n = 0; n < NAMES; n++) {
        KILN_TRY(name_temporary(path, n, out, err));
        if (lstat(out, &s) != 0) return KILN_OK;
    }
    return kiln_file_write_failed(path, EEXIST, err);
}

kiln_status kiln_temporary_create(const char *path, char out[KILN_PATH_MAX], int *fd,
                                  kiln_error *err)
{
    *fd = -1;
    KILN_TRY(check_name(path, err));
    for (unsigned n = 0; n < NAMES; n++) {
        KILN_TRY(name_temporary(path, n, out, err));
        *fd = open(out, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (*fd >= 0) return KILN_OK;
        if (errno != EEXIST) return kiln_file_write_failed(path, errno, err);
    }
    return kiln_file_write_failed(path, EEXIST, err);
}

bool kiln_process_ended(long pid)
{
    char path[64], text[512];
    if (kill((pid_t)pid, 0) != 0) return errno == ESRCH; /* EPERM: somebody else's, and there */
    /* proc(5): "PID (NAME) STATE ...", where the name may hold anything. Z: it ended, and its
     * parent has not asked how yet. */
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "re");
    if (!f) return false;
    const size_t n = fread(text, 1, sizeof text - 1, f);
    (void)fclose(f);
    text[n] = '\0';
    const char *const name_end = strrchr(text, ')');
    return name_end && name_end[1] == ' ' && (name_end[2] == 'Z' || name_end[2] == 'X');
}

/* True for the number of a process that has ended, PID or PID-N. */
static bool is_gone(const char *digits)
{
    static const char decimal[] = "0123456789";
    char *end;
    const size_t n = strspn(digits, decimal);
    const char *const rest = digits + n + (digits[n] == '-');
    if (n == 0 || strspn(rest, decimal) != strlen(rest) || (digits[n] == '-' && !*rest))
        return false;
    errno = 0;
    const long pid = strtol(digits, &end, 10);
    return errno == 0 && pid > 0 && kiln_process_ended(pid);
}

/* True for STEM, the mark and PID when there is no process PID. */
static bool is_leftover_of(const char *name, const char *stem, const char *mark)
{
    const size_t n = strlen(stem), m = strlen(mark);
    return strncmp(name, stem, n) == 0 && strncmp(name + n, mark, m) == 0 && is_gone(name + n + m);
}

/* True for STEM.SUFFIX, the mark and PID when there is no process PID. */
static bool is_leftover(const char *name, const char *suffix, const char *mark)
{
    const char *at = strstr(name, mark);
    const size_t n = strlen(suffix);
    if (!at || (size_t)(at - name) <= n || at[-(ptrdiff_t)n - 1] != '.' ||
        strncmp(at - n, suffix, n) != 0)
        return false;
    return is_gone(at + strlen(mark));
}

/* Is it a file, or a folder, of this user? No link is. */
static bool is_own(const char *path, mode_t type)
{
    struct stat s;
    return lstat(path, &s) == 0 && (s.st_mode & S_IFMT) == type && s.st_uid == geteuid();
}

void kiln_leftovers_drop(const char *path)
{
    char folder[KILN_PATH_MAX], name[KILN_PATH_MAX], stem[STEM_MAX + 1], mark[MARK_TEXT];
    const char *suffix = kiln_path_suffix(path), *base = kiln_path_base(path);
    const size_t length = (size_t)(base - path);
    if (length >= sizeof folder) return;
    if (!write_mark(mark)) return;
    shorten(base, stem);
    memcpy(folder, path, length);
    folder[length] = '\0';
    DIR *d = opendir(length ? folder : ".");
    if (!d) return; /* not there yet */
    for (const struct dirent *e = readdir(d); e; e = readdir(d))
        if ((*suffix ? is_leftover(e->d_name, suffix, mark)
                     : is_leftover_of(e->d_name, stem, mark)) &&
            kiln_path_join(name, sizeof name, length ? folder : ".", e->d_name, NULL) == KILN_OK &&
            is_own(name, S_IFREG))
            (void)unlink(name); /* one that stays does no harm */
    (void)closedir(d);
}

static int drop_entry(const char *path, const struct stat *s, int type, struct FTW *where)
{
    (void)s, (void)type, (void)where;
    (void)remove(path); /* one that stays does no harm */
    return 0;
}

void kiln_folder_drop(const char *path)
{
    enum { DESCRIPTORS = 16 };
    (void)nftw(path, drop_entry, DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
}

void kiln_leftover_folders_drop(const char *path)
{
    char parent[KILN_PATH_MAX], folder[KILN_PATH_MAX], stem[STEM_MAX + 1], mark[MARK_TEXT];
    const char *name = kiln_path_base(path);
    if (!write_mark(mark)) return;
    shorten(name, stem);
    (void)snprintf(parent, sizeof parent, "%.*s", (int)(name - path), path);
    DIR *d = opendir(*parent ? parent : ".");
    if (!d) return; /* not there yet */
    for (const struct dirent *e = readdir(d); e; e = readdir(d))
        if (is_leftover_of(e->d_name, stem, mark) &&
            kiln_path_join(folder, sizeof folder, *parent ? parent : ".", e->d_name, NULL) ==
                KILN_OK &&
            is_own(folder, S_IFDIR))
            kiln_folder_drop(folder);
    (void)closedir(d);
}
