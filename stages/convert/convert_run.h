/* convert_run -- kiln convert without a manifest: kiln-import's reading and kiln-export's writing
 * in one run.
 *
 * Readers, sanitising, writers and sentences are those of the stages. Each block is read once for
 * its count and bounds, which writers lay files out by; then a worker that wants the planes of a
 * chunk reads and sanitises its block again. So the bytes are those of the two stages, and no row
 * is held between two rounds of a writer. Rejected: a manifest that does not stay. 1M Gaussians of
 * degree 3, PLY to PLY, CPU seconds on two busy cores (2026-11-30): 2.28 with it, 0.76 without;
 * splat-transform 3.7.0 took 1.28.
 *
 * Memory is 200 MiB by default (convert_options.c): 1M Gaussians with 16 threads took 674 MiB
 * without a cap, 89 with it. What needs more gets it (kiln_ram_default_grows).
 *
 * Formats that also hold cameras (html, chunks) take the two stages and a manifest
 * (stages/front/convert.c), because cameras on an orbit come of ranks over all positions, and
 * writers read cameras from a manifest. */
#ifndef KILN_STAGES_CONVERT_CONVERT_RUN_H
#define KILN_STAGES_CONVERT_CONVERT_RUN_H

#include "stages/engine/engine.h"
#include "stages/formats/writer.h"

/* The two halves of a kiln_stage_program. Positionals are the files, then the target, as
 * kiln_convert_target gives it; options are those of kiln_import_given and kiln_export_given. */
kiln_status kiln_convert_run(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_convert_unit(kiln_worker *w, const char *name, const void *payload, size_t bytes,
                              kiln_error *err) KILN_MUST_CHECK;

/* The format of `out` by the options. KILN_E_USAGE: there is none, or several. */
kiln_status kiln_convert_writer(const char *out, const kiln_writer **writer,
                                kiln_error *err) KILN_MUST_CHECK;
/* May it be written? Without -w nothing that is there is replaced, ours neither. bakes: a bake of
 * its own reads the files, not kiln_convert_run. KILN_E_USAGE. */
kiln_status kiln_convert_guard(const char *const *files, unsigned n, const char *out, bool bakes,
                               kiln_error *err) KILN_MUST_CHECK;

#endif
