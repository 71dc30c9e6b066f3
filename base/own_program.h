/* own_program -- the file of the running program, beside which its other files lie. */
#ifndef KILN_BASE_OWN_PROGRAM_H
#define KILN_BASE_OWN_PROGRAM_H

#include "base/file.h"
#include "base/status.h"

KILN_C_BEGIN

/* The absolute path without links, also if the program was started by another name. Safe from any
 * thread. KILN_E_IO: /proc is not there, or the path is longer than KILN_PATH_MAX - 1. */
kiln_status kiln_own_program(char out[KILN_PATH_MAX], kiln_error *err) KILN_MUST_CHECK;
/* The folder in which it lies. */
kiln_status kiln_own_folder(char out[KILN_PATH_MAX], kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
