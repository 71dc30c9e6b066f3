/* bake_views -- the cameras of a bake with the pictures and tile tables of one profile: what kiln-info and kiln-report tell of
 * them. For one thread, as manifest.h. */
#ifndef KILN_STAGES_SURVEY_BAKE_VIEWS_H
#define KILN_STAGES_SURVEY_BAKE_VIEWS_H

#include "schema/manifest.h"

typedef struct {
    kiln_camera *cameras; /* sorted by name */
    kiln_image *images;
    kiln_tile_table *tables; /* without the segments of their arrays */
    uint32_t n_cameras, n_images, n_tables;
    /* Of the profile that most images have (the first of equals), else of the tables. "": there are neither. */
    char profile[32];
    bool antialiased;
    double near_m;
    /* Of the profile, and all cameras, sorted by name: what the functions below search. */
    const kiln_image **image_of;
    const kiln_tile_table **table_of;
    const kiln_camera **camera_of;
    uint32_t n_image_of, n_table_of;
} kiln_bake_views;

/* Reads them. The caller releases *out, after a failure too. */
kiln_status kiln_bake_views_get(kiln_manifest *m, kiln_bake_views *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_bake_views_release(kiln_bake_views *v);
/* The picture, and the table, of a camera under the profile, and the camera itself; NULL: there is none. O(log n). */
const kiln_image *kiln_bake_view_image(const kiln_bake_views *v, const char *camera);
const kiln_tile_table *kiln_bake_view_table(const kiln_bake_views *v, const char *camera);
const kiln_camera *kiln_bake_view_camera(const kiln_bake_views *v, const char *name);
/* Means over the cameras that have both numbers; trainers report those of the test split. False: there is none. */
bool kiln_bake_views_mean(const kiln_bake_views *v, bool test_only, double *psnr, double *ssim, uint64_t *n);
/* Pairs of all cameras: of the picture, or of the table where there is no picture. */
uint64_t kiln_bake_views_pairs(const kiln_bake_views *v);

#endif
