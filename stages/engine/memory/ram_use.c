/* What is really taken: RssAnon of parent and workers from /proc/PID/status, and each memfd once.
 *
 * A memfd is found through the descriptors of the processes. The parent counts those by itself that
 * it has mapped and closed. Mapped memfds also show as RssShmem, so the larger of the two sums is
 * taken. The CUDA runtime's share is subtracted: each worker on a GPU reports what it had right
 * after its context was made. */
#include "stages/engine/memory/ram_use.h"

#include "base/file.h"
#include "base/log.h"
#include "base/minmax.h"
#include "stages/engine/devices/containment.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK_NS = 50 * 1000000, LOOK_PART = 20, MEMFDS_MAX = 4 * KILN_SLOTS_MAX };

typedef struct {
    uint64_t anon, shared, file;
} mapped;

typedef struct {
    ino_t counted[MEMFDS_MAX]; /* memfds all live in one file system, so the number is enough */
    unsigned n;
    uint64_t bytes;
} memfds;

static void read_status(const char *process, mapped *out)
{
    char path[64], line[128];
    unsigned long long kib;
    (void)snprintf(path, sizeof path, "/proc/%s/status", process);
    FILE *f = fopen(path, "re");
    if (!f) return; /* it has ended */
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "RssAnon: %llu", &kib) == 1) out->anon += 1024 * (uint64_t)kib;
        if (sscanf(line, "RssFile: %llu", &kib) == 1) out->file += 1024 * (uint64_t)kib;
        if (sscanf(line, "RssShmem: %llu", &kib) == 1) out->shared += 1024 * (uint64_t)kib;
    }
    (void)fclose(f);
}

static void count_memfd(int folder, const char *name, memfds *all)
{
    char target[64];
    struct stat s;
    const ssize_t n = readlinkat(folder, name, target, sizeof target - 1);
    if (n < 7 || memcmp(target, "/memfd:", 7) != 0 || fstatat(folder, name, &s, 0) != 0) return;
    for (unsigned i = 0; i < all->n; i++)
        if (all->counted[i] == s.st_ino) return;
    if (all->n < MEMFDS_MAX) all->counted[all->n++] = s.st_ino;
    all->bytes += 512 * (uint64_t)s.st_blocks;
}

static void find_memfds(const char *process, memfds *all)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%s/fd", process);
    DIR *d = opendir(path);
    if (!d) return;
    for (const struct dirent *e = readdir(d); e; e = readdir(d))
        if (e->d_name[0] != '.') count_memfd(dirfd(d), e->d_name, all);
    (void)closedir(d);
}

uint64_t kiln_ram_mapped(void)
{
    mapped m = {0};
    read_status("self", &m);
    return m.anon + m.shared;
}

uint64_t kiln_ram_mapped_most(void)
{
    mapped m = {0};
    const uint64_t most = kiln_peak_rss();
    read_status("self", &m);
    return most > m.file ? most - m.file : 0;
}

bool kiln_ram_look_is_due(const kiln_ram_use *u)
{
    return kiln_now_ns() - u->last_ns >= kiln_max_u64(LOOK_NS, LOOK_PART * u->look_ns);
}

void kiln_ram_look(kiln_ram_use *u, const kiln_ram_process *processes, unsigned n)
{
    const uint64_t ns = kiln_now_ns();
    mapped all = {0};
    memfds shared = {.bytes = u->held};
    uint64_t cuda = 0;
    (void)kiln_ram_cap(u);
    read_status("self", &all);
    find_memfds("self", &shared);
    for (unsigned i = 0; i < n; i++) {
        char process[16];
        (void)snprintf(process, sizeof process, "%d", (int)processes[i].pid);
        read_status(process, &all);
        find_memfds(process, &shared);
        cuda += processes[i].cuda;
        u->cuda = kiln_max_u64(u->cuda, processes[i].cuda);
    }
    const uint64_t sum = all.anon + (all.shared > shared.bytes ? all.shared : shared.bytes);
    const uint64_t ours = sum > cuda ? sum - cuda : 0;
    if (ours > u->peak) u->peak = ours;
    u->last_ns = ns;
    u->look_ns = kiln_now_ns() - ns;
}

int kiln_ram_report(const kiln_ram_use *u, json_t *summary)
{
    if (json_object_set_new(summary, "ram_cap_bytes", json_integer((json_int_t)u->cap)) != 0)
        return -1;
    if (json_object_set_new(summary, "ram_predicted_bytes",
                            json_integer((json_int_t)u->predicted)) != 0)
        return -1;
    if (json_object_set_new(summary, "ram_peak_bytes", json_integer((json_int_t)u->peak)) != 0)
        return -1;
    if (u->cuda == 0) return 0;
    return json_object_set_new(summary, "ram_cuda_bytes", json_integer((json_int_t)u->cuda));
}

void kiln_ram_judge(const kiln_ram_use *u)
{
    char peak[32], cap[32], predicted[32];
    /* nothing was to be computed: what the program is by itself, no plan keeps below a cap */
    if (u->predicted == 0) return;
    if (u->cap == 0 || u->peak <= u->cap) return;
    kiln_warn("the run took %s of host memory, but --ram allows %s and %s were predicted; the "
              "result is right, but please report this",
              kiln_size_text(u->peak, peak), kiln_size_text(u->cap, cap),
              kiln_size_text(u->predicted, predicted));
}
