/* stored_pictures -- what a picture is made of, as a key; which pictures are stored and still lie
 * in their files; and which are due. In the parent. */
#ifndef KILN_STAGES_RENDER_STORED_PICTURES_H
#define KILN_STAGES_RENDER_STORED_PICTURES_H

#include "stages/render/render_plan.h"

/* The source of a photo or mask; NULL: the bake has none of this path, as of "". Sources come in
 * the order of their paths. */
const kiln_source_file *kiln_render_source_at(const kiln_render_plan *s, const char *path);
/* Adds what a comparison with the photo depends on to a key. */
void kiln_render_photo_key(kiln_hasher *h, const kiln_render_plan *s, const kiln_camera *c);
/* The key of all pictures. Without the device: a picture of either kind is good unless --devices
 * names one. */
kiln_hash kiln_pictures_key(kiln_run *r, const kiln_render_plan *s);
/* Sets any_key of a job, which is what the key of all pictures has of it, and first_key. Call it
 * while the texts of the job are there. */
void kiln_pictures_key_job(kiln_run *r, kiln_render_job *j);
/* Says whether the last run had this key and all its files are as they were written. */
kiln_status kiln_pictures_are_fresh(kiln_run *r, kiln_render_plan *s, kiln_hash key, bool *fresh,
                                    kiln_error *err) KILN_MUST_CHECK;
/* Fills in the units and says which are due, on which kind of device; drops stored pictures that
 * have lost their files, unless the manifest is frozen. KILN_E_DEVICE: --fast, and there is no
 * GPU. */
kiln_status kiln_pictures_choose(kiln_run *r, kiln_render_plan *s, kiln_error *err) KILN_MUST_CHECK;
/* Has --gather look whether the files are there that a task has written. It waits for them, because
 * a network file system may show them some seconds later: 10 s in all, or as KILN_FILES_MS says. */
void kiln_pictures_wait_for_files(kiln_run *r);

#endif
