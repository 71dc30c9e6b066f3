/* draw_scene -- a small scene of random Gaussians in chunks and pictures of it, for tests of
 * kernels/draw on a device of host memory. */
#ifndef KILN_TESTS_DRAW_SCENE_H
#define KILN_TESTS_DRAW_SCENE_H

#include "kernels/draw/draw.h"
#include "tests/unit/fake_device.h"
#include "tests/unit/project_planes.h"

#include <string.h>

enum { CHUNKS = 3 };

static void *memory(uint64_t count, size_t elem)
{
    void *p = calloc(count + 1, elem);
    assert_non_null(p);
    return p;
}

typedef struct {
    kiln_view view;
    planes chunks[CHUNKS];
    uint32_t *rows;
    kiln_draw_scene draw;
    uint64_t seed;
    bool colourless;
    bool last_hidden; /* nothing of the last chunk can be seen */
    unsigned asked;   /* times that a chunk's arrays were */
} scene;

static kiln_status give_chunk(void *context, uint32_t index, kiln_draw_chunk *out, kiln_error *err)
{
    scene *s = context;
    const planes *p = &s->chunks[index];
    (void)err;
    s->asked++;
    if (s->last_hidden && index == CHUNKS - 1) {
        memset(out, 0, sizeof *out);
        return KILN_OK;
    }
    *out = (kiln_draw_chunk){.n = p->n,
                             .means = p->means,
                             .log_scales = p->log_scales,
                             .quats = p->quats,
                             .opacity_logits = p->opacity_logits,
                             .sh0 = s->colourless ? NULL : p->sh0,
                             .shN = s->colourless ? NULL : p->shN,
                             .source_rows = s->rows};
    return KILN_OK;
}

static kiln_status give_label(void *context, uint32_t index, kiln_draw_chunk_header *out,
                              kiln_error *err)
{
    const scene *s = context;
    const uint64_t key[2] = {s->seed, index};
    (void)err;
    *out = (kiln_draw_chunk_header){.n = s->chunks[index].n,
                                    .hidden = s->last_hidden && index == CHUNKS - 1,
                                    .colour = !s->colourless};
    memcpy(out->key, key, sizeof out->key);
    return KILN_OK;
}

/* The middle chunk is empty. */
static void scene_make(scene *s, uint32_t width, uint32_t height, kiln_profile_id profile,
                       uint64_t seed)
{
    static gaussian g[MOST];
    static const uint64_t n[CHUNKS] = {900, 0, 400};
    memset(s, 0, sizeof *s);
    view_of(&s->view);
    s->view.width = width;
    s->view.height = height;
    s->seed = seed;
    s->rows = memory(n[0], sizeof *s->rows);
    for (uint32_t i = 0; i < n[0]; i++) s->rows[i] = i;
    for (uint32_t k = 0; k < CHUNKS; k++) {
        random_gaussians(g, n[k], seed + k);
        s->chunks[k] = planes_of(g, n[k]);
    }
    s->draw = (kiln_draw_scene){.view = &s->view,
                                .profile = profile,
                                .antialiased = seed % 2 == 1,
                                .sh_degree = 4,
                                .n_chunks = CHUNKS,
                                .chunk = give_chunk,
                                .header = give_label,
                                .context = s};
}

static void scene_free(scene *s)
{
    for (uint32_t k = 0; k < CHUNKS; k++) free(s->chunks[k].data);
    free(s->rows);
}

typedef struct {
    kiln_drawing drawing;
    size_t pixels;
    uint64_t pairs;
    float *rgba, *depth;
} picture;

static kiln_status picture_draw(picture *p, kiln_runner *r, const scene *s, kiln_error *err)
{
    static const float background[3] = {0.1f, 0.5f, 2};
    memset(p, 0, sizeof *p);
    p->pixels = (size_t)s->view.width * s->view.height;
    p->rgba = memory(p->pixels, 4 * sizeof *p->rgba);
    p->depth = memory(p->pixels, sizeof *p->depth);
    KILN_TRY(kiln_draw_collect(r, &s->draw, &p->drawing, err));
    const kiln_draw_want want = {.background = background, .rgba = p->rgba, .depth = p->depth};
    kiln_draw_stats stats;
    KILN_TRY(kiln_draw_picture(r, &s->draw, &p->drawing, &want, &stats, err));
    p->pairs = stats.pairs;
    return kiln_drawing_fetch(&p->drawing, err);
}

static void picture_free(picture *p)
{
    kiln_drawing_release(&p->drawing);
    free(p->rgba);
    free(p->depth);
}

static inline void must_be_equal(const picture *a, const picture *b)
{
    assert_int_equal(a->drawing.n, b->drawing.n);
    assert_memory_equal(a->drawing.splats, b->drawing.splats,
                        a->drawing.n * sizeof *a->drawing.splats);
    assert_memory_equal(a->drawing.chunk, b->drawing.chunk,
                        a->drawing.n * sizeof *a->drawing.chunk);
    assert_int_equal(a->pairs, b->pairs);
    assert_memory_equal(a->rgba, b->rgba, a->pixels * 4 * sizeof *a->rgba);
    assert_memory_equal(a->depth, b->depth, a->pixels * sizeof *a->depth);
}

static void draw_on_cpu(picture *p, const scene *s)
{
    kiln_error err = {0};
    kiln_runner *r = fake_runner(KILN_RUNNER_CPU, 0);
    if (picture_draw(p, r, s, &err) != KILN_OK) fail_msg("%s", err.msg);
    assert_true(p->drawing.n > 10 && p->pairs > 100);
    kiln_runner_free(r);
}

#endif
