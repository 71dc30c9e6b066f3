/* coarsen_bench -- what merging the chunks of a bake takes, and how far pictures of its levels are
 * from the full scene's.
 *
 *   coarsen_bench MANIFEST [whole] [seen] [aa] [cameras N]
 *
 * First CPU time and memory of a row, by one thread, then for each level rows and PSNR over black
 * at 2^(-k/2) of the cameras' size, the mean over N test cameras (where there are fewer than three,
 * of all). whole: all chunks as one. seen: weighted by the layer `visibility`. aa: antialiased. For
 * trying changes of the rule: make bench-lod compares whole programs. */
#include "base/memory.h"
#include "kernels/coarsen/coarsen.h"
#include "kernels/draw/plain.h"
#include "schema/manifest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LEVELS = 4, CAMERAS = 64 };

typedef struct {
    uint64_t n;
    uint32_t n_chunks;
    kiln_coarsen_rows *chunks;
} rows_in_chunks;

typedef struct {
    const char *path;
    bool whole, seen, antialiased;
    uint32_t most_cameras;
    kiln_scene scene;
    const kiln_camera *cameras[CAMERAS];
    uint32_t n_cameras;
} bench;

static void check(kiln_status st, const kiln_error *err)
{
    if (st == KILN_OK) return;
    fprintf(stderr, "coarsen_bench: %s\n", err->msg);
    exit(1);
}

static void *capacity(uint64_t n, size_t each)
{
    void *p;
    kiln_error err = {0};
    check(kiln_alloc_unset(&p, n ? n : 1, each, "rows", &err), &err);
    return p;
}

static uint64_t harmonics(uint32_t degree)
{
    return 3 * ((uint64_t)(degree + 1) * (degree + 1) - 1);
}

static kiln_coarsen_rows rows_of(uint64_t n, uint32_t degree, bool seen)
{
    const size_t f = sizeof(float);
    return (kiln_coarsen_rows){.n = n,
                               .sh_degree = degree,
                               .means = capacity(3 * n, f),
                               .log_scales = capacity(3 * n, f),
                               .quats = capacity(4 * n, f),
                               .opacity_logits = capacity(n, f),
                               .sh0 = capacity(3 * n, f),
                               .shN = capacity(harmonics(degree) * n, f),
                               .weights = capacity(n, f),
                               .visibility = capacity(n, f),
                               .prominence = seen ? capacity(n, f) : NULL,
                               .source_first = capacity(n, f),
                               .source_last = capacity(n, f),
                               .source_count = capacity(n, f)};
}

static void release(rows_in_chunks *s)
{
    for (uint32_t i = 0; i < s->n_chunks; i++) {
        kiln_coarsen_rows *r = &s->chunks[i];
        free(r->means), free(r->log_scales), free(r->quats), free(r->opacity_logits), free(r->sh0),
            free(r->shN);
        free(r->weights), free(r->visibility), free(r->prominence), free(r->source_first),
            free(r->source_last), free(r->source_count);
    }
    free(s->chunks);
}

/* ---- the scene ------------------------------------------------------------------------------- */
static void read_plane(kiln_manifest *m, const kiln_chunk *c, const char *name, float *to,
                       uint64_t components)
{
    kiln_error err = {0};
    check(kiln_plane_read(m, c, name, to, c->count * components * sizeof *to, &err), &err);
}

static kiln_coarsen_rows read_chunk(kiln_manifest *m, const kiln_chunk *c, uint32_t degree,
                                    uint64_t first, bool seen)
{
    const kiln_coarsen_rows r = rows_of(c->count, degree, seen);
    read_plane(m, c, "means", r.means, 3);
    read_plane(m, c, "log_scales", r.log_scales, 3);
    read_plane(m, c, "quats", r.quats, 4);
    read_plane(m, c, "opacity_logits", r.opacity_logits, 1);
    read_plane(m, c, "sh0", r.sh0, 3);
    if (degree > 0) read_plane(m, c, "shN", r.shN, harmonics(degree));
    for (uint64_t i = 0; i < r.n; i++) {
        r.source_first[i] = r.source_last[i] = (uint32_t)(first + i);
        r.source_count[i] = 1;
        r.visibility[i] = 1;
    }
    return r;
}

static void choose_cameras(bench *b, const kiln_camera *all, uint32_t n)
{
    uint32_t tests = 0;
    for (uint32_t i = 0; i < n; i++) tests += strcmp(all[i].split, "test") == 0;
    for (uint32_t i = 0; i < n && b->n_cameras < b->most_cameras; i++)
        if (tests < 3 || strcmp(all[i].split, "test") == 0) b->cameras[b->n_cameras++] = &all[i];
}

static rows_in_chunks read_scene(bench *b, kiln_camera **cameras)
{
    kiln_error err = {0};
    kiln_manifest *m;
    kiln_layer *baked, *seen = NULL;
    uint32_t n_cameras;
    check(kiln_manifest_open(b->path, KILN_OPEN_READ, "bench", true, &m, &err), &err);
    check(kiln_scene_get(m, &b->scene, &err), &err);
    check(kiln_cameras_get(m, cameras, &n_cameras, &err), &err);
    check(kiln_layer_get_drawn(m, &baked, &err), &err);
    if (b->seen) check(kiln_layer_get(m, "visibility", &seen, &err), &err);
    choose_cameras(b, *cameras, n_cameras);
    rows_in_chunks s = {0, baked->n_chunks, capacity(baked->n_chunks, sizeof(kiln_coarsen_rows))};
    for (uint32_t i = 0; i < s.n_chunks; i++) {
        s.chunks[i] = read_chunk(m, &baked->chunks[i], baked->sh_degree, s.n, seen != NULL);
        if (seen) read_plane(m, &seen->chunks[i], "visibility", s.chunks[i].visibility, 1);
        if (seen) read_plane(m, &seen->chunks[i], "prominence", s.chunks[i].prominence, 1);
        s.n += s.chunks[i].n;
    }
    kiln_layer_free(baked);
    kiln_layer_free(seen);
    kiln_manifest_close(m);
    return s;
}

static void append(void *to, uint64_t n_to, uint64_t at, const void *from, uint64_t n,
                   uint64_t components)
{
    for (uint64_t c = 0; c < components; c++)
        memcpy((float *)to + c * n_to + at, (const float *)from + c * n, n * sizeof(float));
}

static rows_in_chunks joined(const rows_in_chunks *s)
{
    const uint32_t degree = s->chunks[0].sh_degree;
    rows_in_chunks all = {s->n, 1, capacity(1, sizeof(kiln_coarsen_rows))};
    const kiln_coarsen_rows to = all.chunks[0] =
        rows_of(s->n, degree, s->chunks[0].prominence != NULL);
    for (uint64_t i = 0, at = 0; i < s->n_chunks; at += s->chunks[i++].n) {
        const kiln_coarsen_rows *r = &s->chunks[i];
        append(to.means, s->n, at, r->means, r->n, 3);
        append(to.log_scales, s->n, at, r->log_scales, r->n, 3);
        append(to.quats, s->n, at, r->quats, r->n, 4);
        append(to.opacity_logits, s->n, at, r->opacity_logits, r->n, 1);
        append(to.sh0, s->n, at, r->sh0, r->n, 3);
        append(to.shN, s->n, at, r->shN, r->n, harmonics(degree));
        append(to.visibility, s->n, at, r->visibility, r->n, 1);
        if (r->prominence) append(to.prominence, s->n, at, r->prominence, r->n, 1);
        append(to.source_first, s->n, at, r->source_first, r->n, 1);
        append(to.source_last, s->n, at, r->source_last, r->n, 1);
        append(to.source_count, s->n, at, r->source_count, r->n, 1);
    }
    return all;
}

/* ---- merging --------------------------------------------------------------------------------- */
static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static size_t coarsen_chunk(const kiln_coarsen_rows *in, kiln_coarsen_rows out[LEVELS],
                            double *spent)
{
    uint64_t counts[LEVELS];
    const size_t bytes = kiln_coarsen_bytes(in->n, in->sh_degree, LEVELS);
    void *work = capacity(bytes, 1);
    kiln_error err = {0};
    for (uint32_t k = 0; k < LEVELS; k++) {
        counts[k] = in->n >> (k + 1) ? in->n >> (k + 1) : 1;
        out[k] = rows_of(counts[k], in->sh_degree, in->prominence != NULL);
    }
    const double start = cpu_seconds();
    kiln_coarsen_weights(in);
    check(kiln_coarsen(in, &(kiln_coarsen_levels){LEVELS, counts, out}, work, bytes, 1, &err),
          &err);
    *spent += cpu_seconds() - start;
    free(work);
    return bytes;
}

static void coarsen(const rows_in_chunks *s, bool antialiased, rows_in_chunks levels[LEVELS])
{
    double spent = 0, work = 0;
    uint64_t most = 0;
    for (uint32_t k = 0; k < LEVELS; k++)
        levels[k] =
            (rows_in_chunks){0, s->n_chunks, capacity(s->n_chunks, sizeof(kiln_coarsen_rows))};
    for (uint32_t i = 0; i < s->n_chunks; i++) {
        kiln_coarsen_rows out[LEVELS];
        s->chunks[i].antialiased = antialiased;
        const size_t bytes = coarsen_chunk(&s->chunks[i], out, &spent);
        if (s->chunks[i].n > most) {
            most = s->chunks[i].n;
            work = (double)bytes / (double)most;
        }
        for (uint32_t k = 0; k < LEVELS; k++) {
            levels[k].chunks[i] = out[k];
            levels[k].n += out[k].n;
        }
    }
    const double row = 4.0 * (double)(14 + 5 + harmonics(s->chunks[0].sh_degree));
    printf("%llu rows, %u chunks: %.1f us a row; %.0f B of work for a row of the largest, %.0f B "
           "in and out\n",
           (unsigned long long)s->n, s->n_chunks, 1e6 * spent / (double)s->n, work,
           row * (2 - exp2(-LEVELS)));
}

/* ---- pictures -------------------------------------------------------------------------------- */
/* [height][width][4]; free(). */
static float *draw(const bench *b, const rows_in_chunks *s, const kiln_camera *c, uint32_t width,
                   uint32_t height)
{
    const double scale = (double)width / c->width;
    const float background[3] = {0, 0, 0};
    const double intrinsics[4] = {c->fx * scale, c->fy * scale, c->cx * scale, c->cy * scale};
    double pose[12];
    const void **planes = capacity((uint64_t)s->n_chunks * KILN_PLAIN_PLANES, sizeof *planes);
    uint64_t *rows = capacity(s->n_chunks, sizeof *rows), at = 0;
    uint32_t *order = capacity(s->n, sizeof *order);
    float *rgba = capacity(4 * (uint64_t)width * height, sizeof *rgba);
    memcpy(pose, c->r, sizeof c->r);
    memcpy(pose + 9, c->t, sizeof c->t);
    for (uint64_t i = 0; i < s->n; i++) order[i] = (uint32_t)i;
    for (uint32_t i = 0; i < s->n_chunks; at += s->chunks[i++].n) {
        const kiln_coarsen_rows *r = &s->chunks[i];
        const void *of[KILN_PLAIN_PLANES] = {r->means, r->log_scales, r->quats,  r->opacity_logits,
                                             r->sh0,   r->shN,        order + at};
        memcpy(planes + (uint64_t)i * KILN_PLAIN_PLANES, of, sizeof of);
        rows[i] = r->n;
    }
    kiln_plain *painter = kiln_plain_new(-1, 1);
    if (!painter ||
        kiln_plain_scene(painter, b->scene.origin, s->chunks[0].sh_degree, s->n_chunks, rows,
                         planes) != 0 ||
        kiln_plain_renderer(painter, "inria", b->antialiased, 0) != 0 ||
        kiln_plain_camera(painter, pose, intrinsics, width, height) != 0 ||
        kiln_plain_draw(painter, background, rgba, NULL) != 0) {
        fprintf(stderr, "coarsen_bench: %s\n",
                painter ? kiln_plain_message(painter) : "out of memory");
        exit(1);
    }
    kiln_plain_free(painter);
    free(planes);
    free(rows);
    free(order);
    return rgba;
}

static double psnr(const float *a, const float *b, uint64_t pixels)
{
    double sum = 0;
    for (uint64_t i = 0; i < 4 * pixels; i++) {
        const double x = fmin(fmax((double)a[i], 0), 1), y = fmin(fmax((double)b[i], 0), 1);
        if (i % 4 != 3) sum += (x - y) * (x - y);
    }
    return sum > 0 ? 10 * log10(3 * (double)pixels / sum) : 100;
}

static double compare(const bench *b, const rows_in_chunks *full, const rows_in_chunks *level,
                      double scale)
{
    double sum = 0;
    for (uint32_t i = 0; i < b->n_cameras; i++) {
        const uint32_t w = (uint32_t)lround(b->cameras[i]->width * scale),
                       h = (uint32_t)lround(b->cameras[i]->height * scale);
        float *x = draw(b, full, b->cameras[i], w, h), *y = draw(b, level, b->cameras[i], w, h);
        sum += psnr(x, y, (uint64_t)w * h);
        free(x);
        free(y);
    }
    return sum / b->n_cameras;
}

int main(int argc, char **argv)
{
    static bench b = {.most_cameras = 8};
    kiln_camera *cameras;
    rows_in_chunks levels[LEVELS], one;
    if (argc < 2) return 2;
    b.path = argv[1];
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "whole") == 0) b.whole = true;
        if (strcmp(argv[i], "seen") == 0) b.seen = true;
        if (strcmp(argv[i], "aa") == 0) b.antialiased = true;
        if (strcmp(argv[i], "cameras") == 0 && i + 1 < argc)
            b.most_cameras = (uint32_t)atoi(argv[++i]) % (CAMERAS + 1);
    }
    rows_in_chunks full = read_scene(&b, &cameras);
    if (b.whole) one = joined(&full);
    coarsen(b.whole ? &one : &full, b.antialiased, levels);
    for (uint32_t k = 1; k <= LEVELS && b.n_cameras > 0; k++)
        printf("  k = %u: %9llu rows %6.2f dB\n", k, (unsigned long long)levels[k - 1].n,
               compare(&b, &full, &levels[k - 1], exp2(-0.5 * k)));
    for (uint32_t k = 0; k < LEVELS; k++) release(&levels[k]);
    if (b.whole) release(&one);
    release(&full);
    free(cameras);
    return 0;
}
