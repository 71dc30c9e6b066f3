/* cpu_import -- kiln-import on generated scenes: what the whole program takes of processor and
 * memory. The system says what it and its children took. It is started by a small process, which
 * the bench starts of itself: memory of whoever starts a program counts as the program's, until it
 * has more. */
#include "tests/bench/cpu_bench.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { RUNS = 3, PATH_ROOM = PATH_MAX };

typedef struct {
    cpu_time time;
    double peak_mib; /* resident, the largest of its processes */
} usage;

static double seconds(struct timeval t) { return (double)t.tv_sec + 1e-6 * (double)t.tv_usec; }

/* ---- in a process of its own ----------------------------------------------------------------- */
int cpu_usage_main(char **argv)
{
    pid_t pid;
    int status;
    struct rusage r;
    posix_spawn_file_actions_t quiet;
    const cpu_time from = cpu_now();
    (void)unsetenv("OMP_WAIT_POLICY"); /* the bench's own wish */
    if (posix_spawn_file_actions_init(&quiet) != 0 ||
        posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0) != 0 ||
        posix_spawn(&pid, argv[0], &quiet, NULL, argv, environ) != 0)
        return KILN_E_IO;
    while (wait4(pid, &status, 0, &r) < 0)
        if (errno != EINTR) return KILN_E_IO;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return KILN_E_IO;
    printf("%.6f %.6f %ld\n", cpu_now().wall_s - from.wall_s,
           seconds(r.ru_utime) + seconds(r.ru_stime), r.ru_maxrss);
    return KILN_OK;
}

/* ---- in the bench ---------------------------------------------------------------------------- */
/* Runs the program argv[2] in b->programs; argv[0] and [1] are for cpu_usage_main, what is told
 * goes through the file `said`. */
static kiln_status run(const cpu_bench *b, const char **argv, const char *said, usage *u,
                       kiln_error *err)
{
    char path[PATH_ROOM];
    pid_t pid;
    int status = 0;
    long kib;
    posix_spawn_file_actions_t to_file;
    snprintf(path, sizeof path, "%s/%s", b->programs, argv[2]);
    argv[0] = "cpu_bench";
    argv[1] = "--usage";
    argv[2] = path;
    int rc = posix_spawn_file_actions_init(&to_file);
    if (rc == 0)
        rc =
            posix_spawn_file_actions_addopen(&to_file, 1, said, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (rc == 0)
        rc = posix_spawn(&pid, "/proc/self/exe", &to_file, NULL, (char *const *)argv, environ);
    if (rc != 0) return kiln_fail(err, KILN_E_IO, "cannot run '%s': %s", path, strerror(rc));
    (void)posix_spawn_file_actions_destroy(&to_file); /* cannot fail */
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return kiln_fail(err, KILN_E_IO, "cannot wait for '%s': %s", path, strerror(errno));
    FILE *f = fopen(said, "r");
    const int n = f ? fscanf(f, "%lf %lf %ld", &u->time.wall_s, &u->time.cpu_s, &kib) : 0;
    if (f) (void)fclose(f); /* was read only */
    if (status != 0 || n != 3) return kiln_fail(err, KILN_E_IO, "'%s' failed", path);
    u->peak_mib = (double)kib / 1024;
    return KILN_OK;
}

static double bytes_of(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 ? (double)s.st_size : 0;
}

static kiln_status bench_scene(cpu_bench *b, uint64_t n, const char *folder, kiln_error *err)
{
    char count[24], size[24], scene[PATH_ROOM / 2], ply[PATH_ROOM], manifest[PATH_ROOM / 2],
        said[PATH_ROOM / 2];
    usage u[RUNS], made;
    double wall[RUNS], cpu[RUNS], mib = 0;
    snprintf(count, sizeof count, "%llu", (unsigned long long)n);
    snprintf(scene, sizeof scene, "%s/scene", folder);
    snprintf(manifest, sizeof manifest, "%s/scene.kiln", folder);
    snprintf(said, sizeof said, "%s/said", folder);
    snprintf(ply, sizeof ply, "%s/scene.ply", scene);
    cpu_size_name(n, size);
    KILN_TRY(run(b,
                 (const char *[]){"", "", "kiln-generate", "scene", scene, "-q", "-c", "1", "-n",
                                  count, NULL},
                 said, &made, err));
    for (int i = 0; i < RUNS; i++) {
        (void)unlink(manifest); /* the first time it is not there */
        KILN_TRY(run(b,
                     (const char *[]){"", "", "kiln-import", scene, manifest, "-q", "--devices",
                                      "cpu", NULL},
                     said, &u[i], err));
        wall[i] = u[i].time.wall_s;
        cpu[i] = u[i].time.cpu_s;
        mib = u[i].peak_mib > mib ? u[i].peak_mib : mib;
    }
    cpu_row r = {.threads = b->threads,
                 .items = n,
                 .ours = {cpu_median(wall, RUNS), cpu_median(cpu, RUNS)},
                 .least.bytes = bytes_of(ply) + bytes_of(manifest)};
    snprintf(r.what, sizeof r.what, "import SH 3 %s", size);
    cpu_keep_row(b, &r);
    cpu_figure peak = {.value = mib, .unit = "MiB resident"};
    snprintf(peak.what, sizeof peak.what, "import SH 3 %s: largest process", size);
    cpu_keep_figure(b, &peak);
    return KILN_OK;
}

static int remove_entry(const char *path, const struct stat *s, int flag, struct FTW *at)
{
    (void)s;
    (void)flag;
    (void)at;
    return remove(path);
}

kiln_status cpu_bench_import(cpu_bench *b, kiln_error *err)
{
    char folder[PATH_ROOM / 4];
    const char *parent = getenv("TMPDIR");
    const uint64_t small = b->quick ? 50000 : 1000000;
    cpu_print_section("import, a program of its own");
    if (!b->programs) {
        printf("left out: --programs says where kiln-import is\n");
        return KILN_OK;
    }
    snprintf(folder, sizeof folder, "%s/kiln-bench-XXXXXX", parent ? parent : "/tmp");
    if (!mkdtemp(folder))
        return kiln_fail(err, KILN_E_IO, "cannot make '%s': %s", folder, strerror(errno));
    kiln_status st = bench_scene(b, small, folder, err);
    if (st == KILN_OK && !b->quick) st = bench_scene(b, 4 * small, folder, err);
    if (nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0)
        printf("'%s' could not be removed\n", folder);
    return st;
}
