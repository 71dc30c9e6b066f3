/* scratch -- the folder for data that memory has no room for (scratch.c says where it is). Sizes
 * are bytes. For the parent's main thread, but for kiln_scratch_folder_path, which workers ask
 * too. */
#ifndef KILN_STAGES_ENGINE_MEMORY_SCRATCH_H
#define KILN_STAGES_ENGINE_MEMORY_SCRATCH_H

#include "base/file.h"
#include "stages/engine/engine.h"
#include "stages/engine/engine_options.h"

/* The scratch folder of a run. What it points to is borrowed. */
typedef struct {
    const kiln_engine_options *options;
    const char *stage;
    const char *manifest;     /* its path; NULL: it is not open */
    kiln_scratch_use use;     /* KILN_SCRATCH_OWN, unless hosts share it */
    char path[KILN_PATH_MAX]; /* of the folder that this run has made; "": none */
} kiln_scratch_folder;

/* Checks that --scratch-dir and --shared-dir are folders that exist, because a mistyped name would
 * be made and filled. KILN_E_USAGE. */
kiln_status kiln_scratch_check(const kiln_engine_options *o, kiln_error *err) KILN_MUST_CHECK;
/* Makes the folder and gives its path (kiln_run_scratch). path: KILN_PATH_MAX bytes. KILN_E_INPUT:
 * a link in the path leads elsewhere. KILN_E_IO. */
kiln_status kiln_scratch_folder_make(kiln_scratch_folder *s, kiln_hash key, char *path,
                                     kiln_error *err) KILN_MUST_CHECK;
/* Checks that the disk has room for need_bytes, of which the folder may hold some. KILN_E_IO with
 * the numbers. */
kiln_status kiln_scratch_folder_check(const kiln_scratch_folder *s, uint64_t need_bytes,
                                      kiln_error *err) KILN_MUST_CHECK;
/* Gives the path of the folder that a run has made, or would make. path: KILN_PATH_MAX bytes. */
kiln_status kiln_scratch_folder_path(const kiln_engine_options *o, const char *manifest,
                                     const char *stage, kiln_hash key, char *path,
                                     kiln_error *err) KILN_MUST_CHECK;
/* Removes all scratch folders of this stage: of runs on one host and of plans. */
void kiln_scratch_folder_drop(kiln_scratch_folder *s);
/* Removes what a plan of `stage` has made for its tasks. While the manifest's lock is held. */
void kiln_scratch_drop_shared(const kiln_engine_options *o, const char *manifest,
                              const char *stage);
/* Makes the names in this run's folder last: a claim follows that sends tasks there. KILN_E_IO. */
kiln_status kiln_scratch_folder_sync(const kiln_scratch_folder *s, kiln_error *err) KILN_MUST_CHECK;
/* Removes the folder of this run if it is empty, because the run failed early. */
void kiln_scratch_folder_tidy(const kiln_scratch_folder *s);

#endif
