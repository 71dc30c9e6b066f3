/* generate_scene -- writes generated Gaussians and cameras as a scene directory, streaming. */
#include "stages/generate/generate.h"

#include "base/file.h"
#include "base/memory.h"
#include "stages/products/product_guard.h"

#include <errno.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 16384, ROW_FLOATS = 62 };

static void fill_splat_row(const kg_splat *g, float v[ROW_FLOATS])
{
    float *p = v;
    memcpy(p, g->pos, sizeof g->pos), p += 3;
    memset(p, 0, 3 * sizeof *p), p += 3; /* normals */
    memcpy(p, g->f_dc, sizeof g->f_dc), p += 3;
    memcpy(p, g->f_rest, sizeof g->f_rest), p += 45;
    *p++ = g->opacity;
    memcpy(p, g->scale, sizeof g->scale), p += 3;
    memcpy(p, g->rot, sizeof g->rot);
}

static void write_header(FILE *f, uint64_t n)
{
    fprintf(f, "ply\nformat binary_little_endian 1.0\nelement vertex %llu\n",
            (unsigned long long)n);
    for (const char *c = "x\0y\0z\0nx\0ny\0nz\0"; *c; c += strlen(c) + 1)
        fprintf(f, "property float %s\n", c);
    for (int i = 0; i < 3; i++) fprintf(f, "property float f_dc_%d\n", i);
    for (int i = 0; i < 45; i++) fprintf(f, "property float f_rest_%d\n", i);
    fprintf(f, "property float opacity\n");
    for (int i = 0; i < 3; i++) fprintf(f, "property float scale_%d\n", i);
    for (int i = 0; i < 4; i++) fprintf(f, "property float rot_%d\n", i);
    fprintf(f, "end_header\n");
}

kiln_status kiln_generated_check(const char *dir, const char *name, const kiln_generate_options *o,
                                 kiln_generated *out, kiln_error *err)
{
    kiln_product_guard *g;
    *out = (kiln_generated){0};
    KILN_TRY(kiln_path_join(out->path, sizeof out->path, dir, name, err));
    KILN_TRY(kiln_product_guard_open(NULL, o->overwrite, &g, err));
    kiln_product_guard_keep_ours(g); /* a bake may have been made of it */
    const kiln_status st = kiln_product_guard_check(g, out->path, &out->seen, err);
    kiln_product_guard_close(g);
    return st;
}

kiln_status kiln_generated_open(kiln_generated *g, kiln_error *err)
{
    int fd;
    KILN_TRY(kiln_make_parents(g->path, err));
    kiln_leftovers_drop(g->path);
    KILN_TRY(kiln_temporary_create(g->path, g->temporary, &fd, err));
    g->f = fdopen(fd, "wb");
    if (g->f) return KILN_OK;
    const kiln_status st = kiln_file_write_failed(g->path, errno, err);
    (void)close(fd);
    (void)unlink(g->temporary);
    return st;
}

kiln_status kiln_generated_close(kiln_generated *g, kiln_status st, kiln_error *err)
{
    int bad = fflush(g->f) != 0 || ferror(g->f) || fsync(fileno(g->f)) != 0;
    int why = errno;
    if (fclose(g->f) != 0) bad = 1;
    if (st == KILN_OK && bad)
        st = kiln_fail(err, KILN_E_IO, "cannot write '%s': %s", g->path, strerror(why));
    if (st == KILN_OK) st = kiln_product_put(g->temporary, g->path, &g->seen, err);
    if (st != KILN_OK) (void)unlink(g->temporary); /* the first reason is the one to tell */
    return st;
}

kiln_status kiln_write_splats(kiln_generated *to, uint64_t n, kiln_splat_source *source,
                              const void *context, unsigned threads, kiln_error *err)
{
    float(*rows)[ROW_FLOATS];
    KILN_TRY(kiln_generated_open(to, err));
    write_header(to->f, n);
    kiln_status st = kiln_alloc((void **)&rows, BLOCK, sizeof *rows, "rows", err);
    for (uint64_t first = 0; st == KILN_OK && first < n; first += BLOCK) {
        int64_t count = (int64_t)(n - first < BLOCK ? n - first : BLOCK);
#pragma omp parallel for num_threads((int)threads) schedule(dynamic, 256)
        for (int64_t i = 0; i < count; i++) {
            kg_splat g;
            source(context, first + (uint64_t)i, &g);
            fill_splat_row(&g, rows[i]);
        }
        if (fwrite(rows, sizeof *rows, (size_t)count, to->f) != (size_t)count)
            st = kiln_fail(err, KILN_E_IO, "cannot write '%s': %s", to->path, strerror(errno));
    }
    if (st == KILN_OK) free(rows);
    return kiln_generated_close(to, st, err);
}

kiln_status kiln_write_cameras(const kiln_generated *to, const kg_cam *cameras,
                               const char *const *names, uint32_t n, kiln_error *err)
{
    kiln_buffer b = {0};
    kiln_status st = kiln_buffer_printf(&b, err, "[\n");
    for (uint32_t i = 0; st == KILN_OK && i < n; i++) {
        const kg_cam *c = &cameras[i];
        KILN_GO(kiln_buffer_printf(&b, err, "{\"name\": \"%s", names ? names[i] : "cam"));
        if (!names) KILN_GO(kiln_buffer_printf(&b, err, "%u", i));
        KILN_GO(kiln_buffer_printf(&b, err, "\", \"R\": ["));
        for (int k = 0; k < 9; k++)
            KILN_GO(kiln_buffer_printf(&b, err, "%s%.9g", k ? ", " : "", (double)c->R[k]));
        KILN_GO(kiln_buffer_printf(&b, err, "], \"t\": [%.9g, %.9g, %.9g], ", (double)c->t[0],
                                   (double)c->t[1], (double)c->t[2]));
        KILN_GO(kiln_buffer_printf(&b, err,
                                   "\"fx\": %.9g, \"fy\": %.9g, \"cx\": %.9g, \"cy\": %.9g, "
                                   "\"width\": %d, \"height\": %d}%s\n",
                                   (double)c->fx, (double)c->fy, (double)c->cx, (double)c->cy,
                                   c->width, c->height, i + 1 < n ? "," : ""));
    }
    KILN_GO(kiln_buffer_printf(&b, err, "]\n"));
    KILN_GO(kiln_product_write(to->path, b.data, b.size, &to->seen, err));
done:
    kiln_buffer_release(&b);
    return st;
}

typedef struct {
    kg_scene scene;
    const kiln_generate_options *o;
} bench_scene;

static void bench_row(const void *context, uint64_t i, kg_splat *g)
{
    const bench_scene *b = context;
    const kiln_generate_options *o = b->o;
    kg_splat_at(&b->scene, i, g);
    if (!o->explode_per_mille) return;
    if (o->explode_by == 4.0) {
        kg_explode(&b->scene, i, o->explode_per_mille, g);
        return;
    }
    kg_splat picked = *g; /* the same rows as kg_explode picks, another size */
    kg_explode(&b->scene, i, o->explode_per_mille, &picked);
    if (memcmp(picked.scale, g->scale, sizeof g->scale) == 0) return;
    for (int a = 0; a < 3; a++) g->scale[a] = (float)((double)g->scale[a] + o->explode_by);
}

kiln_status kiln_generate_scene(const char *dir, const kiln_generate_options *o, kiln_error *err)
{
    kiln_generated ply, list;
    kg_cam *cameras;
    bench_scene b = {.o = o};
    KILN_TRY(kiln_generated_check(dir, "scene.ply", o, &ply, err));
    KILN_TRY(kiln_generated_check(dir, "cameras.json", o, &list, err));
    kg_scene_init(&b.scene, o->gaussians, o->seed);
    KILN_TRY(kiln_write_splats(&ply, o->gaussians, bench_row, &b, o->threads, err));
    KILN_TRY(KILN_ALLOC(&cameras, o->cameras, "cameras", err));
    for (uint32_t k = 0; k < o->cameras; k++)
        kg_camera((int)k, (int)o->cameras, (int)o->width, (int)o->height, &cameras[k]);
    const kiln_status st = kiln_write_cameras(&list, cameras, NULL, o->cameras, err);
    free(cameras);
    return st;
}
