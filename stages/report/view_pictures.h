/* view_pictures -- the cameras that a page shows, with photo, picture, difference and tile heat map as files of a page.
 *
 * Of many cameras the worst by PSNR, the best, and evenly chosen ones between. */
#ifndef KILN_STAGES_REPORT_VIEW_PICTURES_H
#define KILN_STAGES_REPORT_VIEW_PICTURES_H

#include "base/memory.h"
#include "stages/survey/bake_facts.h"

enum { KILN_VIEWS_SHOWN = 24 };

typedef struct {
    const kiln_camera *camera;
    const kiln_image *image;
    uint32_t width, height;                 /* of the files of photo, picture, difference */
    kiln_buffer photo, picture, difference; /* JPEG; empty: none */
    const char *no_photo, *no_picture;      /* why, static; NULL where there is one */
    kiln_buffer heat;                       /* WebP, a pixel a tile; empty: none */
    uint64_t heat_most, heat_median;        /* pairs of a tile */
    uint32_t tiles_x, tiles_y;
} kiln_view_pictures;

typedef struct {
    kiln_view_pictures views[KILN_VIEWS_SHOWN]; /* the worst first */
    uint32_t n, n_images;                       /* n_images: of which they were chosen */
    uint32_t n_cut;                             /* views whose pictures did not fit into the bytes of the page */
} kiln_picture_set;

/* Makes them, on so many threads, of at most `bytes` bytes. The caller releases *out, after a failure too. As manifest.h. */
kiln_status kiln_picture_set_make(const kiln_bake_facts *b, uint64_t bytes, unsigned threads, kiln_picture_set *out,
                                  kiln_error *err) KILN_MUST_CHECK;
void kiln_picture_set_release(kiln_picture_set *s);
/* Images of the bake's profile, the worst PSNR first, those without last, by name. [*n] pointers, free(*out). */
kiln_status kiln_images_sorted(const kiln_bake_views *v, const kiln_image ***out, uint32_t *n, kiln_error *err) KILN_MUST_CHECK;

#endif
