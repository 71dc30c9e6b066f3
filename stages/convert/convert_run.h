/* convert_run -- kiln convert without a manifest: kiln-import's reading and kiln-export's writing in one run. */
#ifndef KILN_STAGES_CONVERT_CONVERT_RUN_H
#define KILN_STAGES_CONVERT_CONVERT_RUN_H

#include "stages/engine/engine.h"
#include "stages/formats/writer.h"

/* The two halves of a kiln_stage_program. Positionals are the files, then the target; options are those of kiln_import_given and
 * kiln_export_given. */
kiln_status kiln_convert_run(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_convert_unit(kiln_worker *w, const char *name, const void *payload, size_t bytes, kiln_error *err) KILN_MUST_CHECK;

/* The format of `out` by the options. KILN_E_USAGE: there is none, or several. */
kiln_status kiln_convert_writer(const char *out, const kiln_writer **writer, kiln_error *err) KILN_MUST_CHECK;
/* The file or folder of `out`: where that is a folder and the format a file, one in it. */
kiln_status kiln_convert_target(const char *out, const kiln_writer *w, char target[4096], kiln_error *err) KILN_MUST_CHECK;
/* May it be written? KILN_E_USAGE. */
kiln_status kiln_convert_guard(const char *const *files, unsigned n, const char *target, kiln_error *err) KILN_MUST_CHECK;

#endif
