/* export_records -- what a bake remembers of its exports: keys, what each written file looked like,
 * and the list of what was written at default places. In the parent.
 *
 * Each format is a unit of its own without outputs. Its key names all that decides what is in the
 * file, and its counters are the file's size, time and inode when it was written. */
#ifndef KILN_STAGES_EXPORT_EXPORT_RECORDS_H
#define KILN_STAGES_EXPORT_EXPORT_RECORDS_H

#include "stages/export/export_targets.h"
#include "stages/export/level_cut.h"
#include "stages/formats/export_views.h"
#include "stages/formats/writer.h"

/* One format. */
typedef struct {
    kiln_export_target to;
    /* of the unit that remembers the written file: of all that decides what is in it */
    kiln_hash record;
    bool unchanged; /* it lies there as this export wrote it */
    bool intact;    /* so it need not be written */
    bool levels;    /* it gets the levels of e.bakes[0] */
} kiln_export_file;

/* A run of kiln-export. */
typedef struct {
    kiln_export e;
    /* what --level, --count and --percent choose from; NULL: they are not given */
    kiln_cut_bakes *cut;
    int made;                /* kiln_export.made_path; -1: there is none */
    kiln_export_views views; /* read where a format asks for them */
    kiln_export_file *files; /* [n_files] */
    uint32_t n_files;
} kiln_export_job;

/* The stage's key, of all files. */
kiln_hash kiln_export_input_key(kiln_run *r, const kiln_export_job *j);
/* Fills f->record. KILN_E_INPUT: what the format reads beside the bake is not there. */
kiln_status kiln_export_record_key(kiln_run *r, const kiln_export_job *j, kiln_export_file *f,
                                   kiln_error *err) KILN_MUST_CHECK;
/* Looks at what lies in the file's place: fills f->unchanged, f->to.known and f->to.own by
 * f->record. KILN_E_IO. */
kiln_status kiln_export_record_look(kiln_run *r, kiln_export_file *f,
                                    kiln_error *err) KILN_MUST_CHECK;
/* Stores what a written file looks like. At once: if the next format fails, this one need not be
 * written again. KILN_E_IO. */
kiln_status kiln_export_record_put(kiln_run *r, const kiln_export_file *f,
                                   kiln_error *err) KILN_MUST_CHECK;
/* Lists the files that are about to be written, before the first is. KILN_E_IO. */
kiln_status kiln_export_records_begin(kiln_run *r, const kiln_export_job *j,
                                      kiln_error *err) KILN_MUST_CHECK;
/* For kiln_run_commit, with the job as context: all files are the current output. */
kiln_status kiln_export_records_commit(kiln_run *r, kiln_manifest *m, void *context,
                                       kiln_error *err) KILN_MUST_CHECK;

#endif
