/* convert_inputs -- the target of a conversion is none of the files that it reads, by whatever
 * name. -w allows no such thing. */
#ifndef KILN_STAGES_CONVERT_CONVERT_INPUTS_H
#define KILN_STAGES_CONVERT_CONVERT_INPUTS_H

#include "base/status.h"

typedef enum {
    KILN_TARGET_FILE,
    KILN_TARGET_REPLACED, /* a file, with -w, for a run that leaves files out (plain_rows.h) */
    KILN_TARGET_FOLDER,
} kiln_target_kind;

/* KILN_E_USAGE where `target` is a file or folder that rows come from, is there and lies in such a
 * folder, or is a folder that holds one. A target of KILN_TARGET_REPLACED that an earlier run has
 * written is left out of a folder that has other files, and this is said. What cannot be read is
 * not looked into: the run says why. files: [n] as on the command line; "-" is passed over. */
kiln_status kiln_convert_spare_inputs(const char *const *files, unsigned n, const char *target,
                                      kiln_target_kind kind, kiln_error *err) KILN_MUST_CHECK;

#endif
