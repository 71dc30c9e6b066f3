/* level_pictures -- levels of detail drawn beside the full scene, in the size that each is for
 * (kiln_camera_for_level).
 *
 * Drawn here, on the CPU, with the profile of the bake's pictures, so that the page needs nothing
 * but the manifest. That is bounded (about a second of one thread): at most KILN_LEVEL_SIDE pixels
 * a side, of larger pictures the middle; at most KILN_LEVEL_ROWS Gaussians in all pictures
 * together, those of coarser levels left out first; of one or two cameras: the one for which errors
 * that kiln-lod measured foretell the worst picture, and where there is room for all of its
 * pictures, too, one in the middle. From test cameras, if there are any. */
#ifndef KILN_STAGES_REPORT_LEVEL_PICTURES_H
#define KILN_STAGES_REPORT_LEVEL_PICTURES_H

#include "stages/survey/bake_facts.h"
#include "stages/report/picture_pair.h"
#include "stages/engine/memory/plane_cache.h"

enum {
    KILN_LEVEL_SIDE = 480,
    KILN_LEVEL_ROWS = 3000000,
    KILN_LEVEL_PICTURES = 2 * KILN_LEVELS_MAX
};

typedef struct {
    const kiln_bake_camera *camera;
    uint32_t level;
    uint32_t width, height; /* of the picture whose middle the pair shows, or all of it */
    kiln_report_pair pair;  /* left: the full scene, right: the level */
    double psnr, mse, ssim; /* between the two; psnr INFINITY: they are equal */
    uint64_t rows, full;    /* Gaussians that the view draws of the level, and of the full scene */
} kiln_level_picture;

typedef struct {
    kiln_level_picture of[KILN_LEVEL_PICTURES]; /* by camera, then by level */
    uint32_t n;
    /* pictures of the first camera that are left out, because of KILN_LEVEL_ROWS or the bytes of
     * the page */
    uint32_t n_cut;
} kiln_level_pictures;

/* Draws them, of at most `bytes` bytes of the page; none where the bake has no levels of what it
 * draws, or no cameras. The caller releases *out, after a failure too. Fails as
 * kiln_plane_cache_get and kiln_draw. */
kiln_status kiln_level_pictures_make(const kiln_bake_facts *b, uint64_t bytes,
                                     kiln_level_pictures *out, kiln_error *err) KILN_MUST_CHECK;
uint64_t kiln_level_pictures_bytes(const kiln_level_pictures *p); /* of the page */
void kiln_level_pictures_release(kiln_level_pictures *p);

#endif
