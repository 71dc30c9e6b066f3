/* bake_views -- see the header. */
#include "stages/survey/bake_views.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows ------------------------------------------------------------------------------------ */
/* Room for row n of an array that grows row by row. */
static kiln_status reserve_rows(void **rows, uint32_t n, size_t size, const char *what,
                                kiln_error *err)
{
    /* as many as the next power of two; what is not used yet takes no memory */
    if (n & (n - 1)) return KILN_OK;
    void *more = n > UINT32_MAX / 2 ? NULL : realloc(*rows, (n ? 2 * (size_t)n : 1) * size);
    if (!more) return kiln_fail(err, KILN_E_NOMEM, "out of memory for %u %s", n + 1, what);
    *rows = more;
    return KILN_OK;
}

static kiln_status add_camera(void *context, const kiln_camera *c, kiln_error *err)
{
    kiln_bake_views *v = context;
    KILN_TRY(reserve_rows((void **)&v->cameras, v->n_cameras, sizeof *v->cameras, "cameras", err));
    kiln_bake_camera *to = &v->cameras[v->n_cameras++];
    memset(to, 0, sizeof *to);
    memcpy(to->r, c->r, sizeof to->r);
    memcpy(to->t, c->t, sizeof to->t);
    memcpy(to->params, c->params, sizeof to->params);
    memcpy(to->model, c->model, sizeof to->model);
    memcpy(to->split, c->split, sizeof to->split);
    to->fx = c->fx;
    to->fy = c->fy;
    to->cx = c->cx;
    to->cy = c->cy;
    to->width = c->width;
    to->height = c->height;
    to->photo_width = c->photo_width;
    to->photo_height = c->photo_height;
    to->mask_width = c->mask_width;
    to->mask_height = c->mask_height;
    to->distorted = c->distorted;
    to->synthetic = c->synthetic;
    to->n_params = c->n_params;
    KILN_TRY(kiln_texts_add(&v->texts, c->photo, &to->photo, err));
    KILN_TRY(kiln_texts_add(&v->texts, c->mask, &to->mask, err));
    return kiln_texts_add(&v->texts, c->name, &to->name, err);
}

void kiln_bake_camera_unpack(const kiln_bake_camera *c, kiln_camera *out)
{
    memset(out, 0, sizeof *out);
    memcpy(out->r, c->r, sizeof out->r);
    memcpy(out->t, c->t, sizeof out->t);
    memcpy(out->params, c->params, sizeof out->params);
    memcpy(out->model, c->model, sizeof out->model);
    memcpy(out->split, c->split, sizeof out->split);
    out->fx = c->fx;
    out->fy = c->fy;
    out->cx = c->cx;
    out->cy = c->cy;
    out->width = c->width;
    out->height = c->height;
    out->photo_width = c->photo_width;
    out->photo_height = c->photo_height;
    out->mask_width = c->mask_width;
    out->mask_height = c->mask_height;
    out->distorted = c->distorted;
    out->synthetic = c->synthetic;
    out->n_params = c->n_params;
    out->name = c->name;
    out->photo = c->photo;
    out->mask = c->mask;
}

static kiln_status add_image(void *context, const kiln_image *i, kiln_error *err)
{
    kiln_bake_views *v = context;
    KILN_TRY(reserve_rows((void **)&v->images, v->n_images, sizeof *v->images, "images", err));
    kiln_bake_image *to = &v->images[v->n_images++];
    memset(to, 0, sizeof *to);
    memcpy(to->profile, i->profile, sizeof to->profile);
    memcpy(to->device_kind, i->device_kind, sizeof to->device_kind);
    memcpy(to->background, i->background, sizeof to->background);
    to->antialiased = i->antialiased;
    to->near_m = i->near_m;
    to->width = i->width;
    to->height = i->height;
    to->key = i->key;
    to->visible = i->visible;
    to->pairs = i->pairs;
    to->psnr = i->psnr;
    to->ssim = i->ssim;
    KILN_TRY(kiln_texts_add(&v->texts, i->path, &to->path, err));
    return kiln_texts_add(&v->texts, i->camera, &to->camera, err);
}

static kiln_status add_table(void *context, const kiln_tile_table *t, kiln_error *err)
{
    kiln_bake_views *v = context;
    KILN_TRY(reserve_rows((void **)&v->tables, v->n_tables, sizeof *v->tables, "tile tables", err));
    kiln_bake_table *to = &v->tables[v->n_tables++];
    memset(to, 0, sizeof *to);
    memcpy(to->profile, t->profile, sizeof to->profile);
    to->antialiased = t->antialiased;
    to->near_m = t->near_m;
    to->visible = t->visible;
    to->pairs = t->pairs;
    return kiln_texts_add(&v->texts, t->camera, &to->camera, err);
}

/* ---- the profile ----------------------------------------------------------------------------- */
static int by_profile(const kiln_bake_image *x, const kiln_bake_image *y)
{
    const int order = strcmp(x->profile, y->profile);
    if (order) return order;
    if (x->antialiased != y->antialiased) return x->antialiased ? 1 : -1;
    return x->near_m < y->near_m ? -1 : x->near_m > y->near_m;
}

/* Equal profiles in the order in which they are stored. */
static int by_profile_and_place(const void *a, const void *b)
{
    const kiln_bake_image *x = *(const kiln_bake_image *const *)a,
                          *y = *(const kiln_bake_image *const *)b;
    const int order = by_profile(x, y);
    return order ? order : x < y ? -1 : x > y;
}

/* The longest run of one profile; of equal ones that whose first image is stored first. sorted: by
 * profile. */
static const kiln_bake_image *find_most(const kiln_bake_image **sorted, uint32_t n)
{
    const kiln_bake_image *best = NULL;
    uint32_t most = 0;
    for (uint32_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && by_profile(sorted[first], sorted[end]) == 0; end++)
            continue;
        if (end - first < most || (end - first == most && best && sorted[first] > best)) continue;
        most = end - first;
        best = sorted[first];
    }
    return best;
}

static kiln_status choose_profile(kiln_bake_views *v, kiln_error *err)
{
    const kiln_bake_image **sorted;
    KILN_TRY(KILN_ALLOC(&sorted, v->n_images, "pictures", err));
    for (uint32_t i = 0; i < v->n_images; i++) sorted[i] = &v->images[i];
    if (v->n_images) qsort(sorted, v->n_images, sizeof *sorted, by_profile_and_place);
    const kiln_bake_image *most = find_most(sorted, v->n_images);
    free(sorted);
    if (!most && !v->n_tables) return KILN_OK;
    strcpy(v->profile, most ? most->profile : v->tables[0].profile);
    v->antialiased = most ? most->antialiased : v->tables[0].antialiased;
    v->near_m = most ? most->near_m : v->tables[0].near_m;
    return KILN_OK;
}

static bool is_chosen(const kiln_bake_views *v, const char *profile, bool antialiased,
                      double near_m)
{
    return strcmp(profile, v->profile) == 0 && antialiased == v->antialiased && near_m == v->near_m;
}

/* ---- by name --------------------------------------------------------------------------------- */
static int image_by_name(const void *a, const void *b)
{
    return strcmp((*(const kiln_bake_image *const *)a)->camera,
                  (*(const kiln_bake_image *const *)b)->camera);
}

static int table_by_name(const void *a, const void *b)
{
    return strcmp((*(const kiln_bake_table *const *)a)->camera,
                  (*(const kiln_bake_table *const *)b)->camera);
}

static kiln_status sort_by_name(kiln_bake_views *v, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&v->image_of, v->n_images, "pictures", err));
    KILN_TRY(KILN_ALLOC(&v->table_of, v->n_tables, "tile tables", err));
    for (uint32_t i = 0; i < v->n_images; i++)
        if (is_chosen(v, v->images[i].profile, v->images[i].antialiased, v->images[i].near_m))
            v->image_of[v->n_image_of++] = &v->images[i];
    for (uint32_t i = 0; i < v->n_tables; i++)
        if (is_chosen(v, v->tables[i].profile, v->tables[i].antialiased, v->tables[i].near_m))
            v->table_of[v->n_table_of++] = &v->tables[i];
    if (v->n_image_of) qsort(v->image_of, v->n_image_of, sizeof *v->image_of, image_by_name);
    if (v->n_table_of) qsort(v->table_of, v->n_table_of, sizeof *v->table_of, table_by_name);
    return KILN_OK;
}

static int name_of_image(const void *name, const void *image)
{
    return strcmp(name, (*(const kiln_bake_image *const *)image)->camera);
}

static int name_of_table(const void *name, const void *table)
{
    return strcmp(name, (*(const kiln_bake_table *const *)table)->camera);
}

static int name_of_camera(const void *name, const void *camera)
{
    return strcmp(name, ((const kiln_bake_camera *)camera)->name);
}

const kiln_bake_image *kiln_bake_view_image(const kiln_bake_views *v, const char *camera)
{
    const kiln_bake_image **at = v->n_image_of ? bsearch(camera, v->image_of, v->n_image_of,
                                                         sizeof *v->image_of, name_of_image)
                                               : NULL;
    return at ? *at : NULL;
}

const kiln_bake_table *kiln_bake_view_table(const kiln_bake_views *v, const char *camera)
{
    const kiln_bake_table **at = v->n_table_of ? bsearch(camera, v->table_of, v->n_table_of,
                                                         sizeof *v->table_of, name_of_table)
                                               : NULL;
    return at ? *at : NULL;
}

const kiln_bake_camera *kiln_bake_view_camera(const kiln_bake_views *v, const char *name)
{
    return v->n_cameras
               ? bsearch(name, v->cameras, v->n_cameras, sizeof *v->cameras, name_of_camera)
               : NULL;
}

/* ---- all ------------------------------------------------------------------------------------- */
kiln_status kiln_bake_views_get(kiln_manifest *m, kiln_bake_views *out, kiln_error *err)
{
    *out = (kiln_bake_views){.n_cameras = 0};
    KILN_TRY(kiln_cameras_each(m, add_camera, out, err));
    KILN_TRY(kiln_images_each(m, add_image, out, err));
    KILN_TRY(kiln_tile_tables_each(m, false, add_table, out, err));
    KILN_TRY(choose_profile(out, err));
    return sort_by_name(out, err);
}

void kiln_bake_views_release(kiln_bake_views *v)
{
    free(v->table_of);
    free(v->image_of);
    free(v->cameras);
    free(v->images);
    free(v->tables);
    kiln_texts_release(&v->texts);
}

bool kiln_bake_views_mean(const kiln_bake_views *v, bool test_only, double *psnr, double *ssim,
                          uint64_t *n)
{
    *psnr = *ssim = 0;
    *n = 0;
    for (uint32_t i = 0; i < v->n_cameras; i++) {
        const kiln_bake_image *image = kiln_bake_view_image(v, v->cameras[i].name);
        if (!image || !isfinite(image->psnr) || !isfinite(image->ssim)) continue;
        if (test_only && strcmp(v->cameras[i].split, "test") != 0) continue;
        *psnr += image->psnr;
        *ssim += image->ssim;
        ++*n;
    }
    *psnr /= (double)*n;
    *ssim /= (double)*n;
    return *n > 0;
}

uint64_t kiln_bake_views_pairs(const kiln_bake_views *v)
{
    uint64_t pairs = 0;
    for (uint32_t i = 0; i < v->n_cameras; i++) {
        const kiln_bake_image *image = kiln_bake_view_image(v, v->cameras[i].name);
        const kiln_bake_table *table = kiln_bake_view_table(v, v->cameras[i].name);
        pairs += image ? image->pairs : table ? table->pairs : 0;
    }
    return pairs;
}
