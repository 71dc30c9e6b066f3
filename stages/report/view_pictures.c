/* view_pictures -- see the header. */
#include "stages/report/view_pictures.h"

#include "kernels/runner.h"
#include "kernels/undistort/undistort.h"
#include "stages/cameras/pinholes.h"
#include "stages/image/webp_encode.h"
#include "stages/report/foreign_picture.h"
#include "stages/report/thumbnail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HEAT_SIDE_MAX = 2048 };

/* ---- which ----------------------------------------------------------------------------------- */
static int worst_image_first(const void *a, const void *b)
{
    const kiln_bake_image *x = *(const kiln_bake_image *const *)a,
                          *y = *(const kiln_bake_image *const *)b;
    const int without = isnan(x->psnr) - isnan(y->psnr);
    if (without) return without;
    if (!isnan(x->psnr) && x->psnr != y->psnr) return x->psnr < y->psnr ? -1 : 1;
    return strcmp(x->camera, y->camera);
}

kiln_status kiln_images_sorted(const kiln_bake_views *v, const kiln_bake_image ***out, uint32_t *n,
                               kiln_error *err)
{
    *n = 0;
    KILN_TRY(KILN_ALLOC(out, v->n_cameras, "pictures", err));
    for (uint32_t i = 0; i < v->n_cameras; i++) {
        const kiln_bake_image *image = kiln_bake_view_image(v, v->cameras[i].name);
        if (image) (*out)[(*n)++] = image;
    }
    qsort(*out, *n, sizeof **out, worst_image_first);
    return KILN_OK;
}

/* Place k of the page: the first third are the worst, the last sixth the best, the others evenly
 * between. */
static uint32_t rank_of_place(uint32_t k, uint32_t n)
{
    enum {
        WORST = KILN_VIEWS_SHOWN / 3,
        BEST = KILN_VIEWS_SHOWN / 6,
        BETWEEN = KILN_VIEWS_SHOWN - WORST - BEST
    };
    if (n <= KILN_VIEWS_SHOWN || k < WORST) return k;
    if (k >= KILN_VIEWS_SHOWN - BEST) return n - KILN_VIEWS_SHOWN + k;
    return WORST + (uint32_t)((uint64_t)(k - WORST) * (n - WORST - BEST) / BETWEEN);
}

static kiln_status choose_view_images(const kiln_bake_facts *b, kiln_picture_set *s,
                                      kiln_error *err)
{
    const kiln_bake_image **sorted;
    KILN_TRY(kiln_images_sorted(&b->views, &sorted, &s->n_images, err));
    const uint32_t shown = s->n_images < KILN_VIEWS_SHOWN ? s->n_images : KILN_VIEWS_SHOWN;
    for (uint32_t k = 0; k < shown; k++) {
        const kiln_bake_image *image = sorted[rank_of_place(k, s->n_images)];
        s->views[s->n++] = (kiln_view_pictures){
            .camera = kiln_bake_view_camera(&b->views, image->camera), .image = image};
    }
    free(sorted);
    return KILN_OK;
}

/* ---- photo, picture, difference -------------------------------------------------------------- */
/* The warp wants three channels; what is transparent shows the background, as where it is
 * measured. */
static kiln_status as_pinhole(const kiln_bake_camera *c, const double background[3],
                              kiln_picture *p, const char **why, kiln_error *err)
{
    kiln_undistort_args a = {.target = {c->fx, c->fy, c->cx, c->cy, c->width, c->height},
                             .channels = 3};
    kiln_thumbnail rgb = {.width = p->width, .height = p->height};
    kiln_runner *runner = NULL;
    kiln_error bad = {0};
    const uint64_t pixels = (uint64_t)c->width * c->height;
    *why = "The distortion of the photo's lens cannot be undone.";
    kiln_camera *whole;
    KILN_TRY(KILN_ALLOC(&whole, 1, "a camera", err));
    kiln_bake_camera_unpack(c, whole);
    kiln_status st = kiln_pinhole_lens(whole, &a.lens, &bad);
    free(whole);
    if (st != KILN_OK || a.lens.width != p->width || a.lens.height != p->height ||
        pixels > KILN_FOREIGN_PIXELS)
        return KILN_OK;
    KILN_GO(kiln_thumbnail_make(p, background, &rgb, err));
    a.photo = rgb.rgb;
    KILN_GO(KILN_ALLOC_UNSET(&a.out, 3 * pixels, "undistorted photo", err));
    KILN_GO(KILN_ALLOC_UNSET(&a.mask, pixels, "mask of a photo", err));
    KILN_GO(kiln_runner_new(&(kiln_runner_options){.device = KILN_RUNNER_CPU, .threads = 1},
                            &runner, err));
    KILN_GO(kiln_runner_run(runner, KILN_OP_undistort, &a, err));
    kiln_picture_release(p);
    *p = (kiln_picture){.width = c->width, .height = c->height, .channels = 3, .data = a.out};
    a.out = NULL;
    *why = NULL;
done:
    kiln_runner_free(runner);
    kiln_thumbnail_release(&rgb);
    free(a.out);
    free(a.mask);
    return st;
}

kiln_status kiln_view_photo_read(const kiln_bake_camera *c, const double background[3],
                                 const kiln_source_file *sources, uint32_t n_sources,
                                 kiln_picture *p, const char **why, kiln_error *err)
{
    KILN_TRY(kiln_foreign_photo(c->photo, sources, n_sources, p, why, err));
    if (*why) return KILN_OK;
    if (kiln_picture_turns_to(p, c->photo_width, c->photo_height))
        KILN_TRY(kiln_picture_turn_to(p, c->photo_width, c->photo_height, err));
    return c->distorted ? as_pinhole(c, background, p, why, err) : KILN_OK;
}

/* why: there is no picture. */
static kiln_status shrink(const kiln_view_pictures *v, const kiln_picture *p, const char *why,
                          kiln_thumbnail *t, kiln_error *err)
{
    *t = (kiln_thumbnail){.width = v->pair.width, .height = v->pair.height};
    return why ? KILN_OK : kiln_thumbnail_make(p, v->image->background, t, err);
}

static kiln_status make_view(const kiln_bake_facts *b, kiln_view_pictures *v, kiln_error *err)
{
    kiln_picture p = {0};
    kiln_thumbnail photo = {0}, picture = {0};
    kiln_status st;
    kiln_thumbnail_size(v->image->width, v->image->height, &v->pair.width, &v->pair.height);
    KILN_GO(kiln_foreign_render(kiln_manifest_path(b->m), v->image->path, &p, &v->no_picture, err));
    KILN_GO(shrink(v, &p, v->no_picture, &picture, err));
    kiln_picture_release(&p);
    KILN_GO(kiln_view_photo_read(v->camera, v->image->background, b->sources, b->n_sources, &p,
                                 &v->no_photo, err));
    KILN_GO(shrink(v, &p, v->no_photo, &photo, err));
    KILN_GO(kiln_picture_pair_make(&photo, &picture, &v->pair, err));
done:
    kiln_picture_release(&p);
    kiln_thumbnail_release(&photo);
    kiln_thumbnail_release(&picture);
    return st;
}

static kiln_status make_views(const kiln_bake_facts *b, unsigned threads, kiln_picture_set *s,
                              kiln_error *err)
{
    kiln_status first = KILN_OK;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (uint32_t i = 0; i < s->n; i++) {
        kiln_error why = {0};
        const kiln_status st = make_view(b, &s->views[i], &why);
#pragma omp critical(kiln_report_views)
        if (st != KILN_OK && first == KILN_OK) first = kiln_fail(err, st, "%s", why.msg);
    }
    return first;
}

/* ---- tiles ----------------------------------------------------------------------------------- */
static int by_count(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static kiln_status read_counts(kiln_manifest *m, const kiln_tile_table *t, uint32_t *counts,
                               bool *whole, kiln_error *err)
{
    uint64_t at = 0;
    *whole = false;
    for (uint32_t i = 0; i < t->n_bands; i++) {
        const kiln_tile_band *band = &t->bands[i];
        const uint64_t n = (uint64_t)(band->row1 - band->row0) * t->tiles_x;
        if (band->row1 <= band->row0 || (uint64_t)band->row0 * t->tiles_x != at ||
            band->row1 > t->tiles_y || band->tile_count.raw_bytes != n * sizeof *counts)
            return KILN_OK; /* kiln-verify says what is wrong with it */
        KILN_TRY(kiln_manifest_read_array(m, &band->tile_count, counts + at, err));
        at += n;
    }
    *whole = at == (uint64_t)t->tiles_x * t->tiles_y;
    return KILN_OK;
}

static kiln_status paint(kiln_view_pictures *v, const kiln_tile_table *t, uint32_t *counts,
                         kiln_error *err)
{
    const uint64_t n = (uint64_t)t->tiles_x * t->tiles_y;
    uint32_t *argb;
    KILN_TRY(KILN_ALLOC(&argb, n, "a heat map", err));
    for (uint64_t i = 0; i < n; i++)
        if (counts[i] > v->heat_most) v->heat_most = counts[i];
    for (uint64_t i = 0; i < n; i++) {
        float c[3];
        kiln_heat_colour(v->heat_most ? (float)counts[i] / (float)v->heat_most : 0, c);
        argb[i] = 0xff000000u | (uint32_t)(c[0] * 255 + 0.5f) << 16 |
                  (uint32_t)(c[1] * 255 + 0.5f) << 8 | (uint32_t)(c[2] * 255 + 0.5f);
    }
    const kiln_status st = kiln_webp_encode(argb, t->tiles_x, t->tiles_y, &v->heat, err);
    free(argb);
    qsort(counts, n, sizeof *counts, by_count);
    v->heat_median = counts[n / 2];
    v->tiles_x = t->tiles_x;
    v->tiles_y = t->tiles_y;
    return st;
}

kiln_status kiln_view_heat_make(kiln_manifest *m, const kiln_bake_views *views,
                                kiln_view_pictures *v, kiln_error *err)
{
    kiln_tile_table *t = NULL;
    uint32_t *counts = NULL;
    bool whole = false;
    kiln_status st;
    KILN_GO(kiln_tile_table_get(m, v->camera->name, views->profile, views->antialiased,
                                views->near_m, &t, err));
    if (!t || t->tiles_x < 1 || t->tiles_y < 1 || t->tiles_x > HEAT_SIDE_MAX ||
        t->tiles_y > HEAT_SIDE_MAX)
        goto done;
    KILN_GO(KILN_ALLOC(&counts, (uint64_t)t->tiles_x * t->tiles_y, "a heat map", err));
    KILN_GO(read_counts(m, t, counts, &whole, err));
    if (whole) st = paint(v, t, counts, err);
done:
    free(counts);
    if (t) kiln_tile_tables_free(t, 1);
    return st;
}

/* ---- all ------------------------------------------------------------------------------------- */
static void drop_view_pictures(kiln_view_pictures *v)
{
    kiln_picture_pair_release(&v->pair);
    kiln_buffer_release(&v->heat);
}

/* In the order of the page, but for the best, which come before those between: they say more. */
static void fit(kiln_picture_set *s, uint64_t bytes)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const uint32_t worst = s->n / 3, best = s->n / 6;
        kiln_view_pictures *v = &s->views[i < worst          ? i
                                          : i < worst + best ? s->n - 1 - (i - worst)
                                                             : i - best];
        const uint64_t size = kiln_picture_pair_bytes(&v->pair) + v->heat.size / 3 * 4;
        if (size == 0) continue;
        if (sum + size <= bytes) {
            sum += size;
            continue;
        }
        drop_view_pictures(v);
        s->n_cut++;
    }
}

kiln_status kiln_picture_set_make(const kiln_bake_facts *b, uint64_t bytes, unsigned threads,
                                  kiln_picture_set *out, kiln_error *err)
{
    *out = (kiln_picture_set){.n = 0};
    KILN_TRY(choose_view_images(b, out, err));
    KILN_TRY(make_views(b, threads ? threads : 1, out, err));
    for (uint32_t i = 0; i < out->n; i++)
        KILN_TRY(kiln_view_heat_make(b->m, &b->views, &out->views[i], err));
    fit(out, bytes);
    return KILN_OK;
}

void kiln_picture_set_release(kiln_picture_set *s)
{
    for (uint32_t i = 0; i < s->n; i++) drop_view_pictures(&s->views[i]);
}
