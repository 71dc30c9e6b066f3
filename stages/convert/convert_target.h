/* convert_target -- where the file or folder of a conversion goes, as OUT names it. */
#ifndef KILN_STAGES_CONVERT_CONVERT_TARGET_H
#define KILN_STAGES_CONVERT_CONVERT_TARGET_H

#include "stages/formats/writer.h"

/* Says whether OUT names a folder: one that is there, or a name with a slash behind it. */
bool kiln_convert_is_folder(const char *out);
/* The file or folder of `out`. Where that is a folder and the format a file, it is a file in it
 * with the name of `first` (guitar.splat: guitar.ply), as of cp. first: the first file or folder
 * that is read, "-": scene.ply. */
kiln_status kiln_convert_target(const char *out, const char *first, const kiln_writer *w,
                                char target[4096], kiln_error *err) KILN_MUST_CHECK;
/* KILN_E_USAGE where `out` is a folder that holds a scene: a name was forgotten, which the sentence
 * gives. target: of kiln_convert_target. */
kiln_status kiln_convert_refuse_scene(const char *out, const char *target, const kiln_writer *w,
                                      kiln_error *err) KILN_MUST_CHECK;

#endif
