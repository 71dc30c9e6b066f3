/* training_steps -- names by which trainers leave several states of one scene: splat_7000.ply and
 * splat_30000.ply, point_cloud_29999.ply, step-000029999.splat, iteration_7000/point_cloud.ply.
 *
 * A step is the last run of digits in a file's name that stands alone, between '_', '-', '.' or the
 * ends of the name without its suffix: none in lod0.ply or scan3d.ply. A name without one has that
 * of its folder where that is called iteration_N or step_N. What is left of the name is its
 * pattern, in which numbers of folders, such as dates of runs, do not count.
 */
#ifndef KILN_STAGES_IMPORT_TRAINING_STEPS_H
#define KILN_STAGES_IMPORT_TRAINING_STEPS_H

#include "base/file.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    bool has_step;
    uint64_t step;
    char pattern[KILN_PATH_MAX]; /* "ply/point_cloud_#.ply" */
} kiln_step;

/* path: relative to the data set's folder. */
void kiln_step_of(const char *path, kiln_step *out);

#endif
