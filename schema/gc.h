/* gc -- what no current output needs: which layers, units, records of runs and blobs that is,
 * dropping them, and giving back their space.
 *
 *   kiln_gc *g;
 *   KILN_TRY(kiln_gc_plan(m, &g, err));          looks; a reader may, too
 *   while (more) KILN_TRY(kiln_gc_step(g, &more, err));
 *   KILN_TRY(kiln_manifest_vacuum(m, folder, NULL, NULL, err));
 *
 * Kept are: the layers that stage_output names, all tile tables, images, parameters and what is in
 * quarantine; of the records of runs, for each stage, the last one that made its output, those of
 * the tasks that computed units for it or since then, and the newest (gc_runs.c); of units
 *   - those that the run asked for which made its stage's current output (kiln_units_used_put),
 *   - those of images, whose key is their unit's,
 *   - those of a stage that never finished, and those done after their stage's output: work that a
 *     later run goes on with,
 *   - of a stage whose output is of a version that did not remember its units: those done since the
 *     run that made it began; of those that make planes or arrays of tables the ones that a current
 *     layer or table has, of others the newest of each name;
 * and all blobs that any of these name. */
#ifndef KILN_SCHEMA_GC_H
#define KILN_SCHEMA_GC_H

#include "base/extern_c.h"
#include "schema/manifest.h"

KILN_C_BEGIN

typedef struct kiln_gc kiln_gc;

typedef struct {
    uint64_t dropped, kept;
} kiln_gc_count;

/* Looks at one state of the manifest and changes nothing. Takes time and memory in proportion to
 * the rows: some 100 bytes for a unit or layer, 16 for each blob that an output names. KILN_E_IO
 * when an output names a blob that is not there, and when a stage's output lacks the layer that it
 * must name: that layer would be dropped. A list of units that cannot be read is warned of and
 * counts as not remembered. kiln_gc_free. */
kiln_status kiln_gc_plan(kiln_manifest *m, kiln_gc **out, kiln_error *err) KILN_MUST_CHECK;
/* Has the plan keep the records of all runs. */
void kiln_gc_keep_runs(kiln_gc *g);
/* Drops the next part of what the plan found in one transaction. A part is at most the rows of a
 * layer, 4096 units or runs, or 64 MiB of blobs. *more false: all of it is dropped. A kill between
 * or in steps leaves rows that nothing needs, and the next plan finds them. KILN_E_BUSY when
 * another program than this one has written since the plan was made. */
kiln_status kiln_gc_step(kiln_gc *g, bool *more, kiln_error *err) KILN_MUST_CHECK;
void kiln_gc_free(kiln_gc *g); /* accepts NULL */

/* What the plan found; name NULL: of all kinds, of all stages. */
kiln_gc_count kiln_gc_layers(const kiln_gc *g, const char *kind);
kiln_gc_count kiln_gc_units(const kiln_gc *g, const char *stage);
kiln_gc_count kiln_gc_runs(const kiln_gc *g, const char *stage);
kiln_gc_count kiln_gc_blobs(const kiln_gc *g);
/* Bytes of the texts of the runs that are dropped. */
uint64_t kiln_gc_run_bytes(const kiln_gc *g);
/* Compressed bytes of the blobs that are dropped; of these, those that the steps so far have
 * dropped. */
uint64_t kiln_gc_bytes(const kiln_gc *g);
uint64_t kiln_gc_bytes_done(const kiln_gc *g);

typedef struct {
    uint64_t file_bytes; /* of all pages */
    /* of pages that hold nothing: later runs use them, vacuum gives them back */
    uint64_t free_bytes;
} kiln_space;
kiln_status kiln_manifest_space(kiln_manifest *m, kiln_space *out, kiln_error *err) KILN_MUST_CHECK;

/* Asked now and then while VACUUM runs; anything but KILN_OK ends it, and is what it returns.
 * Nothing is changed then. */
typedef kiln_status kiln_vacuum_look_fn(void *context, kiln_error *err);
/* SQLite's VACUUM: a copy of all pages that hold something, in a file without a name in `folder`,
 * then once more in the -wal file, then over the manifest. Both are gone at the end. Readers go on;
 * while one looks at an older state the file keeps its size and -wal stays, until the next program
 * that writes closes it. For a process with no other thread in SQLite (the folder is SQLite's
 * global). */
kiln_status kiln_manifest_vacuum(kiln_manifest *m, const char *folder, kiln_vacuum_look_fn *look,
                                 void *context, kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
