/* leftovers -- NAME.tmp.PID of processes that were killed while they wrote NAME. The number is the only trace of the writer, so a
 * file is kept when some process has it: better one that stays than one lost under its writer. */
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* True for STEM.SUFFIX.tmp.PID when there is no process PID. */
static bool is_leftover(const char *name, const char *suffix)
{
    static const char mark[] = ".tmp.";
    const char *at = strstr(name, mark), *digits = at ? at + sizeof mark - 1 : "";
    const size_t n = strlen(suffix);
    char *end;
    if (!*digits || strspn(digits, "0123456789") != strlen(digits)) return false;
    if ((size_t)(at - name) <= n || at[-(ptrdiff_t)n - 1] != '.' || strncmp(at - n, suffix, n) != 0) return false;
    errno = 0;
    const long pid = strtol(digits, &end, 10);
    return errno == 0 && pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

void kiln_leftovers_drop(const char *path)
{
    char folder[KILN_PATH_MAX], name[KILN_PATH_MAX];
    const char *suffix = kiln_path_suffix(path);
    const size_t length = (size_t)(kiln_path_base(path) - path);
    if (!*suffix || length >= sizeof folder) return;
    memcpy(folder, path, length);
    folder[length] = '\0';
    DIR *d = opendir(length ? folder : ".");
    if (!d) return; /* not there yet */
    for (const struct dirent *e = readdir(d); e; e = readdir(d))
        if (is_leftover(e->d_name, suffix) && kiln_path_join(name, sizeof name, length ? folder : ".", e->d_name, NULL) == KILN_OK)
            (void)unlink(name); /* one that stays does no harm */
    (void)closedir(d);
}
