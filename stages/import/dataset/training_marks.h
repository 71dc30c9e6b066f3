/* training_marks -- what the settings of a training say of its Gaussians, wherever they lie:
 * nerfstudio's config.yml (rasterize_mode: antialiased), gsplat's cfg.yml (antialiased: true),
 * INRIA's cfg_args (antialiasing=True, cfg_args.c).
 *
 * The files are YAML, of which one scalar is wanted. It is read as it stands on its line: "key:
 * value", with quotes and comments, never evaluated; nerfstudio's has tags of Python objects, which
 * a YAML parser must refuse or trust.
 */
#ifndef KILN_STAGES_IMPORT_TRAINING_MARKS_H
#define KILN_STAGES_IMPORT_TRAINING_MARKS_H

#include "stages/import/dataset/dataset.h"

/* The first scalar of this key in a block mapping; top: of the outermost one alone. False: there is
 * none, or it does not fit, or its value is no plain or quoted scalar on the same line. text[n] may
 * hold any bytes. */
bool kiln_yaml_scalar(const char *text, size_t n, const char *key, bool top, char *out,
                      size_t capacity);

/* Looks beside the Gaussians, in the folders above them as far as these are the data set's or a
 * trainer's (ply, point_cloud/iteration_N, exports/ splat), and in the data set's; where none of
 * these has any, in the data set's outputs/NAME/ METHOD/DATE, where all that are there must agree.
 * Fills d->antialiased and adds a finding and a source. A file that cannot be read is a note. */
kiln_status kiln_training_marks_read(kiln_dataset *d, kiln_error *err) KILN_MUST_CHECK;

#endif
