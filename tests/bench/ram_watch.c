/* ram_watch -- runs a command and says, from outside, how much host memory it and its children took
 * together at most.
 *
 *   ram_watch FILE COMMAND ...   writes one line to FILE: peak in bytes, of which anonymous, of
 *                                which shared, number of looks, milliseconds of the processor that
 *                                the command took
 *
 * The exit code is the command's. What counts is what --ram counts
 * (stages/engine/memory/ram_use.c): anonymous memory of all processes, and shared memory once. The
 * programs measure themselves too, every 50 ms and from RssAnon; this looks about every two
 * milliseconds, at smaps_rollup, whose numbers are exact: Pss_Anon, and Pss_Shmem, which shares each
 * page among those that map it. A memfd that is written through its descriptor and mapped by nobody
 * shows in no map: its blocks are added. One that is on its way through a socket shows nowhere;
 * that lasts microseconds.
 *
 * The kernel goes through all pages of a process for smaps_rollup, and the process waits meanwhile:
 * a third of the processor's time. So most looks are at a bound from above, of RssAnon, RssShmem
 * and all memfds, and only one that may be a new peak is looked at exactly. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PROCESSES_MAX = 256, MEMFDS_MAX = 1024, TEXT = 1 << 16, LOOK_NS = 2000000 };

typedef struct {
    uint64_t anon, shared;
} taken;

typedef struct {
    ino_t number;
    uint64_t bytes;
    bool mapped;
} memfd;

typedef struct {
    int pids[PROCESSES_MAX];
    unsigned n_pids;
    memfd memfds[MEMFDS_MAX];
    unsigned n_memfds;
} look;

/* The file of a process as text; false: it has ended. */
static bool read_text(int pid, const char *name, char *text, size_t capacity)
{
    char path[96];
    (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    size_t n = 0;
    for (ssize_t got; n + 1 < capacity && (got = read(fd, text + n, capacity - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = '\0';
    (void)close(fd);
    return n > 0;
}

static void add_process(look *l, int pid)
{
    char name[64], text[4096];
    if (l->n_pids == PROCESSES_MAX) return;
    l->pids[l->n_pids++] = pid;
    /* workers are forked by the main thread */
    (void)snprintf(name, sizeof name, "task/%d/children", pid);
    if (!read_text(pid, name, text, sizeof text)) return;
    for (char *at = text, *end; (pid = (int)strtol(at, &end, 10)) > 0; at = end)
        add_process(l, pid);
}

static uint64_t field_of(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? 1024 * strtoull(at + strlen(name), NULL, 10) : 0;
}

static void add_memfds(look *l, int pid)
{
    char path[64], target[64];
    struct stat s;
    (void)snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *d = opendir(path);
    if (!d) return;
    for (const struct dirent *e; (e = readdir(d));) {
        const ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof target);
        if (n < 7 || memcmp(target, "/memfd:", 7) != 0 || fstatat(dirfd(d), e->d_name, &s, 0) != 0)
            continue;
        bool known = false;
        for (unsigned i = 0; i < l->n_memfds; i++) known = known || l->memfds[i].number == s.st_ino;
        if (!known && l->n_memfds < MEMFDS_MAX)
            l->memfds[l->n_memfds++] = (memfd){s.st_ino, 512 * (uint64_t)s.st_blocks, false};
    }
    (void)closedir(d);
}

/* Those that are mapped count in Pss_Shmem already. A line of maps: "from-to rwxp offset device
 * inode /memfd:name". */
static void mark_mapped(look *l, int pid)
{
    char path[64], line[512];
    (void)snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *f = fopen(path, "re");
    if (!f) return;
    while (fgets(line, sizeof line, f)) {
        unsigned long number;
        if (!strstr(line, "/memfd:") || sscanf(line, "%*s %*s %*s %*s %lu", &number) != 1) continue;
        for (unsigned i = 0; i < l->n_memfds; i++)
            l->memfds[i].mapped = l->memfds[i].mapped || l->memfds[i].number == number;
    }
    (void)fclose(f);
}

/* Bytes that RssAnon and RssShmem of a process may lack: the kernel counts pages in batches, for
 * each processor (mm_counter, percpu_counter_batch), and before Linux 6.2 for each thread. */
static uint64_t uncounted(const char *status)
{
    enum { PAGE = 4096, COUNTERS = 2 };
    static uint64_t of_processors;
    static bool by_threads;
    if (of_processors == 0) {
        struct utsname u;
        unsigned major = 0, minor = 0;
        const uint64_t n = (uint64_t)sysconf(_SC_NPROCESSORS_CONF), batch = n > 16 ? 2 * n : 32;
        by_threads = uname(&u) != 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2 ||
                     major < 6 || (major == 6 && minor < 2);
        of_processors = COUNTERS * n * batch * PAGE;
    }
    const char *const threads = strstr(status, "Threads:");
    const uint64_t n = by_threads && threads ? strtoull(threads + 8, NULL, 10) : 0;
    return of_processors + n * COUNTERS * 64 * PAGE;
}

/* The processes and memfds of the command, and what they take at most: more than exactly where they
 * share memory. */
static uint64_t bound_from_above(look *l, int pid)
{
    static char text[TEXT];
    uint64_t bytes = 0;
    l->n_pids = l->n_memfds = 0;
    add_process(l, pid);
    for (unsigned i = 0; i < l->n_pids; i++) {
        if (!read_text(l->pids[i], "status", text, sizeof text)) continue;
        bytes += field_of(text, "RssAnon:") + field_of(text, "RssShmem:") + uncounted(text);
        add_memfds(l, l->pids[i]);
    }
    for (unsigned i = 0; i < l->n_memfds; i++) bytes += l->memfds[i].bytes;
    return bytes;
}

static taken look_exactly(look *l)
{
    static char text[TEXT];
    taken t = {0};
    for (unsigned i = 0; i < l->n_pids; i++) {
        if (!read_text(l->pids[i], "smaps_rollup", text, sizeof text)) continue;
        t.anon += field_of(text, "Pss_Anon:");
        t.shared += field_of(text, "Pss_Shmem:");
    }
    for (unsigned i = 0; i < l->n_pids && l->n_memfds > 0; i++) mark_mapped(l, l->pids[i]);
    for (unsigned i = 0; i < l->n_memfds; i++)
        if (!l->memfds[i].mapped) t.shared += l->memfds[i].bytes;
    return t;
}

/* Of all processes that have ended and were waited for. */
static unsigned long processor_ms(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_CHILDREN, &u) != 0) return 0;
    return 1000 * (unsigned long)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (unsigned long)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

static int start(char **command)
{
    const int pid = fork();
    if (pid != 0) return pid;
    (void)execvp(command[0], command);
    (void)fprintf(stderr, "ram_watch: cannot run '%s': %s\n", command[0], strerror(errno));
    _exit(127);
}

int main(int argc, char **argv)
{
    const struct timespec pause = {0, LOOK_NS};
    static look l;
    taken most = {0};
    unsigned long looks = 0;
    int status = 0;
    if (argc < 3) {
        (void)fprintf(stderr, "usage: ram_watch FILE COMMAND ...\n");
        return 2;
    }
    const int pid = start(argv + 2);
    if (pid < 0) return 1;
    for (; waitpid(pid, &status, WNOHANG) == 0; looks++) {
        if (bound_from_above(&l, pid) > most.anon + most.shared) {
            const taken now = look_exactly(&l);
            if (now.anon + now.shared > most.anon + most.shared) most = now;
        }
        (void)nanosleep(&pause, NULL);
    }
    FILE *f = fopen(argv[1], "w");
    const bool written =
        f && fprintf(f, "%llu %llu %llu %lu %lu\n", (unsigned long long)(most.anon + most.shared),
                     (unsigned long long)most.anon, (unsigned long long)most.shared, looks,
                     processor_ms()) > 0;
    if (!f || fclose(f) != 0 || !written) return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
