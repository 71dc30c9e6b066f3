/* truth_scene -- the scenes that shared/truth was drawn from, as planes, for tests of kernels: a
 * reader for just the PLY files there (binary little-endian, all float, SH degree 3), apart from
 * the product's own reader on purpose. */
#ifndef KILN_TESTS_TRUTH_SCENE_H
#define KILN_TESTS_TRUTH_SCENE_H

#include "base/file.h"
#include "kernels/project/project.h"
#include "stages/generate/inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    char name[32];
    uint64_t n;
    float *data; /* 59 planes of n: means, log_scales, quats, opacity_logits, sh0, shN */
    float *means, *log_scales, *quats, *opacity_logits, *sh0, *shN;
} truth_scene;

enum { TRUTH_PLANES = 3 + 3 + 4 + 1 + 3 + 45 };

static inline void truth_scene_release(truth_scene *s)
{
    free(s->data);
    *s = (truth_scene){0};
}

static inline kiln_status truth_scene_init(truth_scene *s, const char *name, uint64_t n,
                                           kiln_error *err)
{
    *s = (truth_scene){.n = n};
    snprintf(s->name, sizeof s->name, "%s", name);
    KILN_TRY(KILN_ALLOC(&s->data, n * TRUTH_PLANES, "truth scene", err));
    s->means = s->data;
    s->log_scales = s->means + 3 * n;
    s->quats = s->log_scales + 3 * n;
    s->opacity_logits = s->quats + 4 * n;
    s->sh0 = s->opacity_logits + n;
    s->shN = s->sh0 + 3 * n;
    return KILN_OK;
}

/* One vertex in the PLY's own terms (channel-major f_rest) to row i. */
static inline void truth_scene_set(truth_scene *s, uint64_t i, const kg_splat *g)
{
    for (uint64_t c = 0; c < 3; c++) {
        s->means[c * s->n + i] = g->pos[c];
        s->log_scales[c * s->n + i] = g->scale[c];
        s->sh0[c * s->n + i] = g->f_dc[c];
        for (uint64_t k = 0; k < 15; k++) s->shN[(3 * k + c) * s->n + i] = g->f_rest[15 * c + k];
    }
    for (uint64_t c = 0; c < 4; c++) s->quats[c * s->n + i] = g->rot[c];
    s->opacity_logits[i] = g->opacity;
}

static inline kiln_status truth_scene_synthetic(truth_scene *s, uint64_t n, kiln_error *err)
{
    kg_scene scene;
    KILN_TRY(truth_scene_init(s, "synthetic50k", n, err));
    kg_scene_init(&scene, n, 1);
    for (uint64_t i = 0; i < n; i++) {
        kg_splat g;
        kg_splat_at(&scene, i, &g);
        truth_scene_set(s, i, &g);
    }
    return KILN_OK;
}

/* Where property `name` of a vertex goes in a kg_splat; NULL: nowhere. */
static inline float *truth_field(kg_splat *g, const char *name)
{
    unsigned i;
    if (strcmp(name, "x") == 0) return &g->pos[0];
    if (strcmp(name, "y") == 0) return &g->pos[1];
    if (strcmp(name, "z") == 0) return &g->pos[2];
    if (strcmp(name, "opacity") == 0) return &g->opacity;
    if (sscanf(name, "f_dc_%u", &i) == 1 && i < 3) return &g->f_dc[i];
    if (sscanf(name, "f_rest_%u", &i) == 1 && i < 45) return &g->f_rest[i];
    if (sscanf(name, "scale_%u", &i) == 1 && i < 3) return &g->scale[i];
    if (sscanf(name, "rot_%u", &i) == 1 && i < 4) return &g->rot[i];
    return NULL;
}

static inline kiln_status truth_scene_ply(truth_scene *s, const char *name, const char *path,
                                          kiln_error *err)
{
    unsigned char *data = NULL;
    size_t size = 0;
    kiln_status st;
    kg_splat g = {0};
    float *field[128], unread;
    unsigned fields = 0;
    unsigned long long n = 0;
    *s = (truth_scene){0};
    KILN_GO(kiln_file_read(path, (uint64_t)1 << 28, &data, &size, err));
    const char *line = (const char *)data, *end;
    for (; (end = strchr(line, '\n')) && strncmp(line, "end_header", 10) != 0; line = end + 1) {
        char property[64];
        if (sscanf(line, "element vertex %llu", &n) == 1) continue;
        if (sscanf(line, "property float %63s", property) != 1 || fields == 128) continue;
        float *f = truth_field(&g, property);
        field[fields++] = f ? f : &unread;
    }
    const size_t row = fields * sizeof(float),
                 head = end ? (size_t)(end + 1 - (const char *)data) : size;
    if (n == 0 || row == 0 || (size - head) / row != n) {
        st = kiln_fail(err, KILN_E_INPUT, "'%s': %llu vertices of %zu bytes do not fill the file",
                       path, n, row);
        goto done;
    }
    KILN_GO(truth_scene_init(s, name, n, err));
    for (uint64_t i = 0; i < n; i++) {
        for (unsigned k = 0; k < fields; k++)
            memcpy(field[k], data + head + i * row + k * sizeof(float), sizeof(float));
        truth_scene_set(s, i, &g);
    }
done:
    free(data);
    return st;
}

#endif
