/* against -- --levels-against DIR: each level of detail beside the full scene, where it is meant to
 * be seen.
 *
 * Level k has about 1 / 2^k of the Gaussians, so it is for a camera so far away that a picture has
 * 2^(-k/2) of the width and height. Each test camera (all cameras where there is none) is drawn in
 * that size, of level k into DIR/level_k and in full into DIR/full_k: kiln-compare takes the two
 * folders. Photos are left out, since they are of another size. */
#ifndef KILN_STAGES_AGAINST_H
#define KILN_STAGES_AGAINST_H

#include "stages/render/render_plan.h"

/* Lists the pictures of the plan's cameras first .. first + n - 1: fills s->smaller, and camera and
 * level of s->jobs. The plan has its layers. KILN_E_NOMEM. */
kiln_status kiln_against_list(kiln_render_plan *s, uint32_t first, uint32_t n,
                              kiln_error *err) KILN_MUST_CHECK;
/* Sets the files and the rest of the payload of such a picture. format: as in the payload.
 * KILN_E_INPUT: a path is too long. */
kiln_status kiln_against_place(const kiln_render_plan *s, const kiln_render_job *j, uint32_t format,
                               kiln_render_unit *u, kiln_error *err) KILN_MUST_CHECK;

/* What is measured of the levels, by level. All 0 at first. */
typedef struct {
    struct {
        uint32_t n, equal;   /* views, and those whose two pictures are equal */
        double psnr, least;  /* of the others: the sum, and the least one */
        const char *worst;   /* camera of the least one */
        uint64_t rows, full; /* Gaussians */
    } of[KILN_LEVELS_MAX + 1];
} kiln_against_sums;

void kiln_against_add(kiln_against_sums *t, const kiln_render_job *j, double full_db);
/* Adds the table to the report, and prints it where `prints` says so. */
kiln_status kiln_against_report(const kiln_against_sums *t, json_t *report, bool prints,
                                kiln_error *err) KILN_MUST_CHECK;

#endif
