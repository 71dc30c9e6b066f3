/* bake_views -- the cameras of a bake with the pictures and tile tables of one profile: what
 * kiln-info, kiln-report and kiln-serve tell of them. For one thread, as manifest.h.
 *
 * Rows of manifest.h have room for the longest name, and those of pictures for the longest path:
 * some 8 KiB for a camera with its picture and table. These take what their texts need, less than
 * one KiB: 20,000 cameras are 20 MB. */
#ifndef KILN_STAGES_SURVEY_BAKE_VIEWS_H
#define KILN_STAGES_SURVEY_BAKE_VIEWS_H

#include "base/memory.h"
#include "schema/manifest.h"

/* As kiln_camera. */
typedef struct {
    const char *name, *photo, *mask;
    double r[9], t[3];
    double fx, fy, cx, cy;
    uint32_t width, height, photo_width, photo_height, mask_width, mask_height;
    char model[40], split[8];
    bool distorted, synthetic;
    uint32_t n_params;
    double params[KILN_CAMERA_PARAMS];
} kiln_bake_camera;

/* As kiln_image. */
typedef struct {
    const char *camera, *path;
    char profile[32], device_kind[16];
    bool antialiased;
    double near_m, background[3];
    uint32_t width, height;
    kiln_hash key;
    uint64_t visible, pairs;
    double psnr, ssim;
} kiln_bake_image;

/* As kiln_tile_table, without its arrays. */
typedef struct {
    const char *camera;
    char profile[32];
    bool antialiased;
    double near_m;
    uint64_t visible, pairs;
} kiln_bake_table;

typedef struct {
    kiln_bake_camera *cameras; /* sorted by name */
    kiln_bake_image *images;
    kiln_bake_table *tables;
    uint32_t n_cameras, n_images, n_tables;
    kiln_texts texts; /* what the rows point to */
    /* Of the profile that most images have (the first of equals), else of the tables. "": there are
     * neither. */
    char profile[32];
    bool antialiased;
    double near_m;
    /* Of the profile, sorted by name: what the functions below search. */
    const kiln_bake_image **image_of;
    const kiln_bake_table **table_of;
    uint32_t n_image_of, n_table_of;
} kiln_bake_views;

/* Reads them. The caller releases *out, after a failure too. */
kiln_status kiln_bake_views_get(kiln_manifest *m, kiln_bake_views *out,
                                kiln_error *err) KILN_MUST_CHECK;
void kiln_bake_views_release(kiln_bake_views *v);
/* The picture, and the table, of a camera under the profile, and the camera itself; NULL: there is
 * none. O(log n). */
const kiln_bake_image *kiln_bake_view_image(const kiln_bake_views *v, const char *camera);
const kiln_bake_table *kiln_bake_view_table(const kiln_bake_views *v, const char *camera);
const kiln_bake_camera *kiln_bake_view_camera(const kiln_bake_views *v, const char *name);
/* Fills *out with the whole row, for what takes one. Its texts are c's. */
void kiln_bake_camera_unpack(const kiln_bake_camera *c, kiln_camera *out);
/* Means over the cameras that have both numbers; trainers report those of the test split. False:
 * there is none. */
bool kiln_bake_views_mean(const kiln_bake_views *v, bool test_only, double *psnr, double *ssim,
                          uint64_t *n);
/* Pairs of all cameras: of the picture, or of the table where there is no picture. */
uint64_t kiln_bake_views_pairs(const kiln_bake_views *v);

#endif
