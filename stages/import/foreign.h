/* foreign -- splat formats of other programs that import does not read yet: a file is named as what it is, with what reads it. */
#ifndef KILN_STAGES_IMPORT_FOREIGN_H
#define KILN_STAGES_IMPORT_FOREIGN_H

#include "base/file.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KILN_FOREIGN_NAME = 160 };

/* What a file is, for "'PATH' is ..."; by its first bytes (head[len]), else by its suffix. Returns how sure that is, as a reader's
 * probe does; 0, and what is "": none of these formats. Reads nothing. */
int kiln_foreign_format(const char *path, const unsigned char *head, size_t len, char what[KILN_FOREIGN_NAME]);
/* Has a file name a suffix that only Gaussians of such a format have? */
bool kiln_foreign_suffix(const char *name);
/* KILN_E_INPUT with the sentence about such a file. */
kiln_status kiln_foreign_refuse(const char *path, const char *what, kiln_error *err) KILN_MUST_CHECK;

#endif
