/* leftovers -- NAME.tmp.PID of processes that were killed while they wrote NAME. The number is the only trace of the writer, so a
 * file is kept when some process has it: better one that stays than one lost under its writer. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char mark[] = ".tmp.";

/* True for the number of a process that is not there. */
static bool is_gone(const char *digits)
{
    char *end;
    if (!*digits || strspn(digits, "0123456789") != strlen(digits)) return false;
    errno = 0;
    const long pid = strtol(digits, &end, 10);
    return errno == 0 && pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* True for STEM.tmp.PID when there is no process PID. */
static bool is_leftover_of(const char *name, const char *stem)
{
    const size_t n = strlen(stem);
    return strncmp(name, stem, n) == 0 && strncmp(name + n, mark, sizeof mark - 1) == 0 && is_gone(name + n + sizeof mark - 1);
}

/* True for STEM.SUFFIX.tmp.PID when there is no process PID. */
static bool is_leftover(const char *name, const char *suffix)
{
    const char *at = strstr(name, mark);
    const size_t n = strlen(suffix);
    if (!at || (size_t)(at - name) <= n || at[-(ptrdiff_t)n - 1] != '.' || strncmp(at - n, suffix, n) != 0) return false;
    return is_gone(at + sizeof mark - 1);
}

void kiln_leftovers_drop(const char *path)
{
    char folder[KILN_PATH_MAX], name[KILN_PATH_MAX];
    const char *suffix = kiln_path_suffix(path), *base = kiln_path_base(path);
    const size_t length = (size_t)(base - path);
    if (length >= sizeof folder) return;
    memcpy(folder, path, length);
    folder[length] = '\0';
    DIR *d = opendir(length ? folder : ".");
    if (!d) return; /* not there yet */
    for (const struct dirent *e = readdir(d); e; e = readdir(d))
        if ((*suffix ? is_leftover(e->d_name, suffix) : is_leftover_of(e->d_name, base)) &&
            kiln_path_join(name, sizeof name, length ? folder : ".", e->d_name, NULL) == KILN_OK)
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
    char parent[KILN_PATH_MAX], folder[KILN_PATH_MAX];
    const char *name = kiln_path_base(path);
    (void)snprintf(parent, sizeof parent, "%.*s", (int)(name - path), path);
    DIR *d = opendir(*parent ? parent : ".");
    if (!d) return; /* not there yet */
    for (const struct dirent *e = readdir(d); e; e = readdir(d))
        if (is_leftover_of(e->d_name, name) &&
            kiln_path_join(folder, sizeof folder, *parent ? parent : ".", e->d_name, NULL) == KILN_OK)
            kiln_folder_drop(folder);
    (void)closedir(d);
}
