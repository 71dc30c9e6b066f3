/* cpu_knn -- three nearest neighbours of points by knn and by nanoflann. */
#include "tests/bench/cpu_bench.h"

#include "base/memory.h"
#include "stages/generate/inputs.h"
#include "tests/bench/cpu_nanoflann.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 1, NEIGHBOURS = 3 };

typedef struct {
    uint64_t n;
    unsigned threads;
    float *planes, *points;  /* [3][n] for knn, [n][3] for nanoflann */
    float *spacing2, *other; /* answers */
} input;

static void input_release(input *in)
{
    free(in->planes);
    free(in->points);
    free(in->spacing2);
    free(in->other);
}

static kiln_status input_init(input *in, uint64_t n, bool clustered, kiln_error *err)
{
    *in = (input){.n = n};
    KILN_TRY(KILN_ALLOC(&in->planes, 3 * n, "points", err));
    KILN_TRY(KILN_ALLOC(&in->points, 3 * n, "points", err));
    KILN_TRY(KILN_ALLOC(&in->spacing2, n, "answers", err));
    KILN_TRY(KILN_ALLOC(&in->other, n, "answers", err));
#pragma omp parallel for
    for (int64_t i = 0; i < (int64_t)n; i++) {
        float *p = &in->points[3 * i];
        if (clustered)
            kg_clustered_point(SEED, (uint64_t)i, p);
        else
            kg_uniform_point(SEED, (uint64_t)i, p);
        for (uint64_t axis = 0; axis < 3; axis++) in->planes[axis * n + (uint64_t)i] = p[axis];
    }
    return KILN_OK;
}

static kiln_status run_nanoflann(void *context, kiln_error *err)
{
    const input *in = context;
    if (cpu_nanoflann(in->points, in->n, in->threads, in->other)) return KILN_OK;
    return kiln_fail(err, KILN_E_NOMEM, "nanoflann has no memory for %llu points",
                     (unsigned long long)in->n);
}

static uint64_t count_differing(const float *a, const float *b, uint64_t n)
{
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < n; i++) wrong += memcmp(&a[i], &b[i], sizeof *a) != 0;
    return wrong;
}

/* Points in, answers out, and a tree (19.4 B a point) written and read once; a comparison a level
 * of it, the distances of a point to its own leaf of 8 and what keeps the three smallest of
 * them. */
static cpu_cost least_work(uint64_t n)
{
    const double points = (double)n;
    return (cpu_cost){.bytes = points * (12 + 4 + 2 * 19.4),
                      .fp32 = points * (log2(points / 8) + 7 * (6 + 2 * NEIGHBOURS))};
}

/* With `threads`, then with all. */
static kiln_status bench_points(cpu_bench *b, uint64_t n, unsigned threads, bool clustered,
                                kiln_error *err)
{
    kiln_status st;
    input in;
    char size[24];
    cpu_op op = {.op = KILN_OP_knn};
    KILN_GO(input_init(&in, n, clustered, err));
    const kiln_knn_args args = {
        .n = n, .k = NEIGHBOURS, .means = in.planes, .spacing2 = in.spacing2};
    const bool alone = cpu_nanoflann_missing() != NULL;
    cpu_size_name(n, size);
    for (; threads > 0; threads = cpu_next_threads(b, threads)) {
        cpu_row r = {.threads = threads,
                     .items = n,
                     .least = least_work(n),
                     .peer = alone ? NULL : "nanoflann"};
        snprintf(r.what, sizeof r.what, "knn %s %s", clustered ? "clustered" : "uniform", size);
        op = (cpu_op){.op = KILN_OP_knn, .args = &args, .threads = in.threads = threads};
        KILN_GO(cpu_prepare_op(&op, err));
        KILN_GO(cpu_compare(b, &r, (cpu_work){cpu_run_op, &op},
                            (cpu_work){alone ? NULL : run_nanoflann, &in}, err));
        free(op.work);
        op.work = NULL;
        if (alone) continue;
        cpu_finding f = {.complaint = "means differ from nanoflann's",
                         .checked = n,
                         .wrong = count_differing(in.spacing2, in.other, n)};
        memcpy(f.what, r.what, sizeof f.what);
        cpu_keep_finding(b, &f);
    }
done:
    free(op.work);
    input_release(&in);
    return st;
}

/* The larger ones with all threads alone: nanoflann takes long. */
kiln_status cpu_bench_knn(cpu_bench *b, kiln_error *err)
{
    const uint64_t small = b->quick ? 50000 : 1000000;
    cpu_print_section("three nearest neighbours");
    if (cpu_nanoflann_missing()) printf("nanoflann is left out: %s\n", cpu_nanoflann_missing());
    for (int clustered = 0; clustered < 2; clustered++) {
        KILN_TRY(bench_points(b, small, 1, clustered != 0, err));
        if (!b->quick) KILN_TRY(bench_points(b, 4 * small, b->threads, clustered != 0, err));
    }
    return KILN_OK;
}
