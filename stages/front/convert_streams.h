/* convert_streams -- standard input and output of `kiln convert`: files are read and written in any
 * order, so a stream is a file first and last. */
#ifndef KILN_STAGES_FRONT_CONVERT_STREAMS_H
#define KILN_STAGES_FRONT_CONVERT_STREAMS_H

#include "base/status.h"

/* Writes standard input to a new file. KILN_E_INPUT: there is none. KILN_E_IO. KILN_E_INTERRUPTED,
 * KILN_E_TERMINATED, KILN_E_HANGUP: a signal. */
kiln_status kiln_convert_take_input(const char *path, kiln_error *err) KILN_MUST_CHECK;
/* Writes a file to standard output, likewise. */
kiln_status kiln_convert_give_output(const char *path, kiln_error *err) KILN_MUST_CHECK;

#endif
