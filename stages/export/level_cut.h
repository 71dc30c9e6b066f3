/* level_cut -- which rows stand for the scene in a flat file: --level, --count, --percent.
 *
 * Problem. A tree of levels of detail has as many rows as its levels happen to have, for all
 * Gaussians of a bake. A file is to have the number that somebody asks for, of what --chunks,
 * filters and --add leave.
 *
 * Shape. Rows are chosen first. A chunk that keeps all of its rows, and a cell all of whose chunks
 * do, have the stored levels. Of any other chunk the rows that are left are merged for this export
 * (made_levels.h). Which nodes have which level says frame/level_choice.h: by dB as for a picture,
 * but for the mean of some cameras; of a number of rows every node keeps the same share. Each of
 * several bakes is chosen by itself: of a count it gets its share.
 *
 * What must hold. The file depends on the chunks, the levels, the cameras and the options alone. */
#ifndef KILN_STAGES_EXPORT_LEVEL_CUT_H
#define KILN_STAGES_EXPORT_LEVEL_CUT_H

#include "stages/export/export_options.h"
#include "stages/formats/writer.h"

typedef struct kiln_cut_bakes kiln_cut_bakes;

/* Do the options ask for a cut? */
bool kiln_cut_is_asked(const kiln_export_options *o);
/* Refuses options that contradict each other, and formats of list[n] that hold all levels, with the
 * way out. KILN_E_USAGE. */
kiln_status kiln_cut_check(const kiln_export_options *o, const kiln_writer *const list[],
                           uint32_t n, kiln_error *err) KILN_MUST_CHECK;
/* Reads the levels of all bakes of e, which then own them, and what merging goes by. e->chunks are
 * chosen. KILN_E_STALE: a bake has no levels, or those of other chunks. Release also after a
 * failure. */
kiln_status kiln_cut_open(kiln_run *r, kiln_export *e, kiln_cut_bakes **out,
                          kiln_error *err) KILN_MUST_CHECK;
void kiln_cut_release(kiln_cut_bakes *c);
/* Adds what the file depends on beside the layers and the options. */
void kiln_cut_key(kiln_hasher *h, const kiln_export *e, const kiln_cut_bakes *c);
/* Chooses, merges what has to be merged, and makes e->chunks of it. w: a writer of the run. *fd:
 * the scratch file with the merged rows, -1 where there are none, to be closed behind the last
 * file. kiln_made_chunks_release(&e->made) also after a failure. As kiln_run_units. */
kiln_status kiln_cut_make(kiln_run *r, const kiln_writer *w, kiln_export *e, kiln_cut_bakes *c,
                          int *fd, kiln_error *err) KILN_MUST_CHECK;

#endif
