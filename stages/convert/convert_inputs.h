/* convert_inputs -- the target of a conversion is none of the files that it reads, by whatever name: -w allows no such thing. */
#ifndef KILN_STAGES_CONVERT_CONVERT_INPUTS_H
#define KILN_STAGES_CONVERT_CONVERT_INPUTS_H

#include "base/status.h"

#include <stdbool.h>

/* KILN_E_USAGE where `target` is a file or folder that rows come from, is there and lies in such a folder, or is a folder that
 * holds one. What
 * cannot be read is not looked into: the run says why. files: [n] as on the command line; "-" is passed over. */
kiln_status kiln_convert_spare_inputs(const char *const *files, unsigned n, const char *target, bool is_folder,
                                      kiln_error *err) KILN_MUST_CHECK;

#endif
