/* bake_views -- see the header. */
#include "stages/survey/bake_views.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool image_is_of(const kiln_image *i, const char *profile, bool antialiased, double near_m)
{
    return strcmp(i->profile, profile) == 0 && i->antialiased == antialiased && i->near_m == near_m;
}

static void choose_profile(kiln_bake_views *v)
{
    uint32_t most = 0;
    for (uint32_t i = 0; i < v->n_images; i++) {
        const kiln_image *a = &v->images[i];
        uint32_t n = 0;
        if (v->profile[0] && image_is_of(a, v->profile, v->antialiased, v->near_m)) continue;
        for (uint32_t k = 0; k < v->n_images; k++) n += image_is_of(&v->images[k], a->profile, a->antialiased, a->near_m);
        if (n <= most) continue;
        most = n;
        strcpy(v->profile, a->profile);
        v->antialiased = a->antialiased;
        v->near_m = a->near_m;
    }
    if (most || !v->n_tables) return;
    strcpy(v->profile, v->tables[0].profile);
    v->antialiased = v->tables[0].antialiased;
    v->near_m = v->tables[0].near_m;
}

kiln_status kiln_bake_views_get(kiln_manifest *m, kiln_bake_views *out, kiln_error *err)
{
    *out = (kiln_bake_views){.n_cameras = 0};
    KILN_TRY(kiln_cameras_get(m, &out->cameras, &out->n_cameras, err));
    KILN_TRY(kiln_images_get(m, &out->images, &out->n_images, err));
    KILN_TRY(kiln_tile_tables_get(m, false, &out->tables, &out->n_tables, err));
    choose_profile(out);
    return KILN_OK;
}

void kiln_bake_views_release(kiln_bake_views *v)
{
    free(v->cameras);
    free(v->images);
    kiln_tile_tables_free(v->tables, v->n_tables);
}

const kiln_image *kiln_bake_view_image(const kiln_bake_views *v, const char *camera)
{
    for (uint32_t i = 0; i < v->n_images; i++)
        if (strcmp(v->images[i].camera, camera) == 0 && image_is_of(&v->images[i], v->profile, v->antialiased, v->near_m))
            return &v->images[i];
    return NULL;
}

const kiln_tile_table *kiln_bake_view_table(const kiln_bake_views *v, const char *camera)
{
    for (uint32_t i = 0; i < v->n_tables; i++) {
        const kiln_tile_table *t = &v->tables[i];
        if (strcmp(t->camera, camera) == 0 && strcmp(t->profile, v->profile) == 0 && t->antialiased == v->antialiased &&
            t->near_m == v->near_m)
            return t;
    }
    return NULL;
}

bool kiln_bake_views_mean(const kiln_bake_views *v, bool test_only, double *psnr, double *ssim, uint64_t *n)
{
    *psnr = *ssim = 0;
    *n = 0;
    for (uint32_t i = 0; i < v->n_cameras; i++) {
        const kiln_image *image = kiln_bake_view_image(v, v->cameras[i].name);
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
        const kiln_image *image = kiln_bake_view_image(v, v->cameras[i].name);
        const kiln_tile_table *table = kiln_bake_view_table(v, v->cameras[i].name);
        pairs += image ? image->pairs : table ? table->pairs : 0;
    }
    return pairs;
}
