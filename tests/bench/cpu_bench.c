/* cpu_bench -- how long the work of CPU cores takes: nearest neighbours beside nanoflann, the
 * operations of a frame beside a plain loop, blobs beside zstd, an import. Fails by wrong results
 * alone, never by time. Needs AVX2 and FMA, as what it compares is built with them. */
#include "tests/bench/cpu_bench.h"

#include "stages/engine/devices/cpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const char kiln_bench_commit[];

typedef struct {
    const char *only, *json;
} options;

static kiln_status read_options(int argc, char **argv, cpu_bench *b, options *o, kiln_error *err)
{
    for (int i = 1; i < argc; i++) {
        const char *const value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--quick") == 0) {
            b->quick = true;
            continue;
        }
        if (value && strcmp(argv[i], "--only") == 0)
            o->only = value;
        else if (value && strcmp(argv[i], "--json") == 0)
            o->json = value;
        else if (value && strcmp(argv[i], "--programs") == 0)
            b->programs = value;
        else if (value && strcmp(argv[i], "--threads") == 0 && atoi(value) > 0)
            b->threads = (unsigned)atoi(value);
        else
            return kiln_fail(err, KILN_E_USAGE,
                             "usage: cpu_bench [--quick] [--only knn,frame,codec,import] "
                             "[--programs DIR] [--threads N] [--json FILE]");
        i++;
    }
    return KILN_OK;
}

static kiln_status measure(cpu_bench *b, const options *o, kiln_error *err)
{
    static const struct {
        const char *name;
        kiln_status (*run)(cpu_bench *b, kiln_error *err);
    } parts[] = {{"knn", cpu_bench_knn},
                 {"frame", cpu_bench_frame},
                 {"codec", cpu_bench_codec},
                 {"import", cpu_bench_import}};
    KILN_TRY(cpu_measure_ceilings(b, err));
    cpu_print_head(b, kiln_bench_commit);
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!o->only || strstr(o->only, parts[i].name)) KILN_TRY(parts[i].run(b, err));
    if (o->json) KILN_TRY(cpu_write_json(b, o->json, kiln_bench_commit, err));
    for (unsigned i = 0; i < b->n_findings; i++)
        if (b->findings[i].wrong > 0)
            return kiln_fail(err, KILN_E_BUG, "%s: %s", b->findings[i].what,
                             b->findings[i].complaint);
    return KILN_OK;
}

/* Threads of OpenMP that wait for the next loop spin, and would count as work of whatever runs
 * meanwhile. Its library reads the environment before main: so the program starts again. */
static void wait_without_spinning(char **argv)
{
    if (getenv("OMP_WAIT_POLICY") || setenv("OMP_WAIT_POLICY", "passive", 1) != 0) return;
    /* comes back when it fails: then times of the processor are larger */
    (void)execv("/proc/self/exe", argv);
}

int main(int argc, char **argv)
{
    static cpu_bench b; /* large for a stack */
    options o = {0};
    kiln_error err = {0};
    if (argc > 2 && strcmp(argv[1], "--usage") == 0) return cpu_usage_main(argv + 2);
    wait_without_spinning(argv);
    b.threads = kiln_cpus_count();
    kiln_status st = read_options(argc, argv, &b, &o, &err);
    __builtin_cpu_init();
    if (st == KILN_OK && (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))) {
        printf("the CPU part of the bench did not run: no AVX2 and FMA here\n");
        return 0;
    }
    if (st == KILN_OK) st = measure(&b, &o, &err);
    if (st != KILN_OK) fprintf(stderr, "cpu_bench: %s\n", err.msg);
    return kiln_exit_code(st);
}
