/* view_pictures -- the cameras that a page shows, with photo, picture, difference and tile heat map
 * as files of a page.
 *
 * Of many cameras the worst by PSNR, the best, and evenly chosen ones between. */
#ifndef KILN_STAGES_REPORT_VIEW_PICTURES_H
#define KILN_STAGES_REPORT_VIEW_PICTURES_H

#include "stages/image/image.h"
#include "stages/report/picture_pair.h"
#include "stages/survey/bake_facts.h"

enum { KILN_VIEWS_SHOWN = 24 };

typedef struct {
    const kiln_bake_camera *camera;
    const kiln_bake_image *image;
    kiln_report_pair pair;             /* left: the photo, right: the picture */
    const char *no_photo, *no_picture; /* why, static; NULL where there is one */
    kiln_buffer heat;                  /* WebP, a pixel a tile; empty: none */
    uint64_t heat_most, heat_median;   /* pairs of a tile */
    uint32_t tiles_x, tiles_y;
} kiln_view_pictures;

typedef struct {
    kiln_view_pictures views[KILN_VIEWS_SHOWN]; /* the worst first */
    uint32_t n, n_images;                       /* n_images: of which they were chosen */
    /* views whose pictures did not fit into the bytes of the page */
    uint32_t n_cut;
} kiln_picture_set;

/* Makes them, on so many threads, of at most `bytes` bytes. The caller releases *out, after a
 * failure too. As manifest.h. */
kiln_status kiln_picture_set_make(const kiln_bake_facts *b, uint64_t bytes, unsigned threads,
                                  kiln_picture_set *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_picture_set_release(kiln_picture_set *s);
/* Reads a camera's photo as its picture is compared with it: turned as EXIF says, and without its
 * lens. Rule and *why as kiln_foreign_photo. background: behind what is transparent of one with a
 * lens. */
kiln_status kiln_view_photo_read(const kiln_bake_camera *c, const double background[3],
                                 const kiln_source_file *sources, uint32_t n_sources,
                                 kiln_picture *p, const char **why,
                                 kiln_error *err) KILN_MUST_CHECK;
/* Makes the heat map of v->camera from its tile table of the profile, and the fields behind it.
 * v->heat stays empty: there is no table. */
kiln_status kiln_view_heat_make(kiln_manifest *m, const kiln_bake_views *views,
                                kiln_view_pictures *v, kiln_error *err) KILN_MUST_CHECK;
/* Images of the bake's profile, the worst PSNR first, those without last, by name. [*n] pointers,
 * free(*out). */
kiln_status kiln_images_sorted(const kiln_bake_views *v, const kiln_bake_image ***out, uint32_t *n,
                               kiln_error *err) KILN_MUST_CHECK;

#endif
