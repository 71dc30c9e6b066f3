/* How much host memory may be taken: the least of what the kernel calls available, what the limits
 * of this process's cgroups leave, up to the root of the tree, and what RLIMIT_AS and RLIMIT_DATA
 * leave.
 *
 * Pages of files in a cgroup count as free, because the kernel drops them when memory is needed.
 * Inside a container the path in /proc/self/cgroup may not exist under the mount. Then the folders
 * above it are tried, and at last the mount itself, which is the container's own group. */
#include "stages/engine/memory/ram_free.h"

#include "base/file.h"
#include "base/minmax.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { LINE = KILN_PATH_MAX + 128 };

/* Files of the two kinds of hierarchy: cgroup-v2.rst and cgroup-v1/memory.rst of the kernel's
 * documentation. */
typedef struct {
    const char *mount;
    const char *limits[2]; /* the second may be NULL */
    const char *usage;
    const char *files[2]; /* lines of memory.stat */
} hierarchy;
static const hierarchy v2 = {"/sys/fs/cgroup",
                             {"memory.max", "memory.high"},
                             "memory.current",
                             {"active_file", "inactive_file"}};
static const hierarchy v1 = {"/sys/fs/cgroup/memory",
                             {"memory.limit_in_bytes", NULL},
                             "memory.usage_in_bytes",
                             {"total_active_file", "total_inactive_file"}};

/* The number at the head of a file; false: no such file, or a word such as "max". */
static bool read_number(const char *folder, const char *name, uint64_t *out)
{
    char path[LINE];
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path) return false;
    FILE *f = fopen(path, "re");
    if (!f) return false;
    const bool got = fscanf(f, "%" SCNu64, out) == 1;
    (void)fclose(f);
    return got;
}

/* The number behind a word at the head of a line, as in memory.stat and /proc/meminfo. */
static uint64_t read_field(const char *path, const char *word, uint64_t otherwise)
{
    char line[256];
    const size_t n = strlen(word);
    FILE *f = fopen(path, "re");
    if (!f) return otherwise;
    while (fgets(line, sizeof line, f))
        if (!strncmp(line, word, n) && strchr(": \t", line[n])) {
            otherwise = strtoull(line + n + 1, NULL, 10);
            break;
        }
    (void)fclose(f);
    return otherwise;
}

/* What the limits of one group leave. */
static uint64_t group_leaves(const hierarchy *h, const char *folder)
{
    char stat[LINE];
    uint64_t limit = UINT64_MAX, used, one;
    for (size_t i = 0; i < 2; i++)
        if (h->limits[i] && read_number(folder, h->limits[i], &one))
            limit = kiln_min_u64(limit, one);
    if (limit == UINT64_MAX || !read_number(folder, h->usage, &used)) return UINT64_MAX;
    if ((size_t)snprintf(stat, sizeof stat, "%s/memory.stat", folder) < sizeof stat) {
        const uint64_t files = read_field(stat, h->files[0], 0) + read_field(stat, h->files[1], 0);
        used -= kiln_min_u64(used, files);
    }
    return limit > used ? limit - used : 0;
}

static uint64_t tree_leaves(const hierarchy *h, const char *root, const char *path)
{
    char folder[LINE];
    uint64_t leaves = UINT64_MAX;
    const size_t mount = strlen(root) + strlen(h->mount);
    if ((size_t)snprintf(folder, sizeof folder, "%s%s%s", root, h->mount, path) >= sizeof folder)
        return leaves;
    for (;;) {
        leaves = kiln_min_u64(leaves, group_leaves(h, folder));
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < mount) return leaves;
        *slash = '\0';
    }
}

/* "0::/user.slice" is of version 2, "4:memory:/docker/7f2c" of version 1, whose line may name
 * several controllers. */
static uint64_t cgroups_leave(const char *root)
{
    char line[LINE];
    uint64_t leaves = UINT64_MAX;
    if ((size_t)snprintf(line, sizeof line, "%s/proc/self/cgroup", root) >= sizeof line)
        return leaves;
    FILE *f = fopen(line, "re");
    if (!f) return leaves;
    while (fgets(line, sizeof line, f)) {
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path) continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        if (!strcmp(path, "/")) *path = '\0';
        if (controllers[1] == '\0')
            leaves = kiln_min_u64(leaves, tree_leaves(&v2, root, path));
        else if (strstr(controllers, "memory"))
            leaves = kiln_min_u64(leaves, tree_leaves(&v1, root, path));
    }
    (void)fclose(f);
    return leaves;
}

/* One of the process's own limits. */
static uint64_t limit_of(int kind)
{
    struct rlimit l;
    return getrlimit(kind, &l) == 0 && l.rlim_cur != RLIM_INFINITY ? l.rlim_cur : UINT64_MAX;
}

static uint64_t available_bytes(const char *root)
{
    char path[LINE];
    if ((size_t)snprintf(path, sizeof path, "%s/proc/meminfo", root) >= sizeof path)
        return UINT64_MAX;
    const uint64_t kib = read_field(path, "MemAvailable", UINT64_MAX);
    return kib < UINT64_MAX / 1024 ? 1024 * kib : UINT64_MAX;
}

uint64_t kiln_ram_free_by(const char *root, kiln_ram_bound *by)
{
    const struct {
        uint64_t bytes;
        kiln_ram_bound by;
    } bounds[] = {
        {available_bytes(root),
         {"the machine's free memory", "end other programs, or use a larger machine"}},
        {cgroups_leave(root),
         {"the cgroup's memory limit", "raise the limit of the container or job"}},
        {limit_of(RLIMIT_AS), {"the limit of 'ulimit -v'", "raise it"}},
        {limit_of(RLIMIT_DATA), {"the limit of 'ulimit -d'", "raise it"}},
    };
    size_t tightest = 0;
    for (size_t i = 1; i < sizeof bounds / sizeof *bounds; i++)
        if (bounds[i].bytes < bounds[tightest].bytes) tightest = i;
    *by = bounds[tightest].by;
    return bounds[tightest].bytes;
}

uint64_t kiln_ram_free(const char *root)
{
    kiln_ram_bound by;
    return kiln_ram_free_by(root, &by);
}
