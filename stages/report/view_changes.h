/* view_changes -- cameras that two bakes have pictures of, by how much their PSNR changed, and the
 * pictures that changed most. */
#ifndef KILN_STAGES_REPORT_VIEW_CHANGES_H
#define KILN_STAGES_REPORT_VIEW_CHANGES_H

#include "stages/survey/bake_facts.h"
#include "stages/report/picture_pair.h"

typedef struct {
    const kiln_bake_image *now, *then;
    double change; /* of PSNR, dB */
} kiln_view_change;

/* The most that became worse first, by name where equal; of cameras without a photo in either bake
 * there is none. [*n], the caller frees *out. KILN_E_NOMEM. */
kiln_status kiln_view_changes_get(const kiln_bake_views *now, const kiln_bake_views *then,
                                  kiln_view_change **out, uint32_t *n,
                                  kiln_error *err) KILN_MUST_CHECK;

enum { KILN_CHANGES_SHOWN = 4 };
typedef struct {
    struct {
        kiln_view_change of;
        kiln_report_pair pair;             /* left: the other bake's, right: this one's */
        const char *no_picture, *no_other; /* why, static; NULL where there is one */
    } views[KILN_CHANGES_SHOWN];           /* the largest change first, up or down */
    uint32_t n;
    /* both bakes write the same files, so that only one of them has its pictures there: none are
     * shown */
    bool one_folder;
} kiln_change_pictures;

/* Reads and shrinks them, of at most `bytes` bytes of the page. The caller releases *out, after a
 * failure too. As kiln_foreign_render. */
kiln_status kiln_change_pictures_make(const kiln_bake_facts *now, const kiln_bake_facts *then,
                                      uint64_t bytes, kiln_change_pictures *out,
                                      kiln_error *err) KILN_MUST_CHECK;
uint64_t kiln_change_pictures_bytes(const kiln_change_pictures *p); /* of the page */
void kiln_change_pictures_release(kiln_change_pictures *p);

#endif
