/* bake_views -- see the header. */
#include "stages/survey/bake_views.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the profile -------------------------------------------------------------------------------------------------------- */
static int by_profile(const kiln_image *x, const kiln_image *y)
{
    const int order = strcmp(x->profile, y->profile);
    if (order) return order;
    if (x->antialiased != y->antialiased) return x->antialiased ? 1 : -1;
    return x->near_m < y->near_m ? -1 : x->near_m > y->near_m;
}

/* Equal profiles in the order in which they are stored. */
static int by_profile_and_place(const void *a, const void *b)
{
    const kiln_image *x = *(const kiln_image *const *)a, *y = *(const kiln_image *const *)b;
    const int order = by_profile(x, y);
    return order ? order : x < y ? -1 : x > y;
}

/* The longest run of one profile; of equal ones that whose first image is stored first. sorted: by profile. */
static const kiln_image *find_most(const kiln_image **sorted, uint32_t n)
{
    const kiln_image *best = NULL;
    uint32_t most = 0;
    for (uint32_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && by_profile(sorted[first], sorted[end]) == 0; end++) continue;
        if (end - first < most || (end - first == most && best && sorted[first] > best)) continue;
        most = end - first;
        best = sorted[first];
    }
    return best;
}

static kiln_status choose_profile(kiln_bake_views *v, kiln_error *err)
{
    const kiln_image **sorted;
    KILN_TRY(KILN_ALLOC(&sorted, v->n_images, "pictures", err));
    for (uint32_t i = 0; i < v->n_images; i++) sorted[i] = &v->images[i];
    if (v->n_images) qsort(sorted, v->n_images, sizeof *sorted, by_profile_and_place);
    const kiln_image *most = find_most(sorted, v->n_images);
    free(sorted);
    if (!most && !v->n_tables) return KILN_OK;
    strcpy(v->profile, most ? most->profile : v->tables[0].profile);
    v->antialiased = most ? most->antialiased : v->tables[0].antialiased;
    v->near_m = most ? most->near_m : v->tables[0].near_m;
    return KILN_OK;
}

static bool is_chosen(const kiln_bake_views *v, const char *profile, bool antialiased, double near_m)
{
    return strcmp(profile, v->profile) == 0 && antialiased == v->antialiased && near_m == v->near_m;
}

/* ---- by name ------------------------------------------------------------------------------------------------------------- */
static int image_by_name(const void *a, const void *b)
{
    return strcmp((*(const kiln_image *const *)a)->camera, (*(const kiln_image *const *)b)->camera);
}

static int table_by_name(const void *a, const void *b)
{
    return strcmp((*(const kiln_tile_table *const *)a)->camera, (*(const kiln_tile_table *const *)b)->camera);
}

static int camera_by_name(const void *a, const void *b)
{
    return strcmp((*(const kiln_camera *const *)a)->name, (*(const kiln_camera *const *)b)->name);
}

static kiln_status sort_by_name(kiln_bake_views *v, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&v->image_of, v->n_images, "pictures", err));
    KILN_TRY(KILN_ALLOC(&v->table_of, v->n_tables, "tile tables", err));
    KILN_TRY(KILN_ALLOC(&v->camera_of, v->n_cameras, "cameras", err));
    for (uint32_t i = 0; i < v->n_images; i++)
        if (is_chosen(v, v->images[i].profile, v->images[i].antialiased, v->images[i].near_m))
            v->image_of[v->n_image_of++] = &v->images[i];
    for (uint32_t i = 0; i < v->n_tables; i++)
        if (is_chosen(v, v->tables[i].profile, v->tables[i].antialiased, v->tables[i].near_m))
            v->table_of[v->n_table_of++] = &v->tables[i];
    for (uint32_t i = 0; i < v->n_cameras; i++) v->camera_of[i] = &v->cameras[i];
    if (v->n_image_of) qsort(v->image_of, v->n_image_of, sizeof *v->image_of, image_by_name);
    if (v->n_table_of) qsort(v->table_of, v->n_table_of, sizeof *v->table_of, table_by_name);
    if (v->n_cameras) qsort(v->camera_of, v->n_cameras, sizeof *v->camera_of, camera_by_name);
    return KILN_OK;
}

static int name_of_image(const void *name, const void *image) { return strcmp(name, (*(const kiln_image *const *)image)->camera); }

static int name_of_table(const void *name, const void *table)
{
    return strcmp(name, (*(const kiln_tile_table *const *)table)->camera);
}

static int name_of_camera(const void *name, const void *camera)
{
    return strcmp(name, (*(const kiln_camera *const *)camera)->name);
}

const kiln_image *kiln_bake_view_image(const kiln_bake_views *v, const char *camera)
{
    const kiln_image **at = v->n_image_of ? bsearch(camera, v->image_of, v->n_image_of, sizeof *v->image_of, name_of_image) : NULL;
    return at ? *at : NULL;
}

const kiln_tile_table *kiln_bake_view_table(const kiln_bake_views *v, const char *camera)
{
    const kiln_tile_table **at =
        v->n_table_of ? bsearch(camera, v->table_of, v->n_table_of, sizeof *v->table_of, name_of_table) : NULL;
    return at ? *at : NULL;
}

const kiln_camera *kiln_bake_view_camera(const kiln_bake_views *v, const char *name)
{
    const kiln_camera **at = v->n_cameras ? bsearch(name, v->camera_of, v->n_cameras, sizeof *v->camera_of, name_of_camera) : NULL;
    return at ? *at : NULL;
}

/* ---- all ------------------------------------------------------------------------------------------------------------------ */
kiln_status kiln_bake_views_get(kiln_manifest *m, kiln_bake_views *out, kiln_error *err)
{
    *out = (kiln_bake_views){.n_cameras = 0};
    KILN_TRY(kiln_cameras_get(m, &out->cameras, &out->n_cameras, err));
    KILN_TRY(kiln_images_get(m, &out->images, &out->n_images, err));
    KILN_TRY(kiln_tile_tables_get(m, false, &out->tables, &out->n_tables, err));
    KILN_TRY(choose_profile(out, err));
    return sort_by_name(out, err);
}

void kiln_bake_views_release(kiln_bake_views *v)
{
    free(v->camera_of);
    free(v->table_of);
    free(v->image_of);
    free(v->cameras);
    free(v->images);
    kiln_tile_tables_free(v->tables, v->n_tables);
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
