/* gc_internal -- what the files of gc share: the plan. */
#ifndef KILN_SCHEMA_GC_INTERNAL_H
#define KILN_SCHEMA_GC_INTERNAL_H

#include "base/memory.h"
#include "schema/gc.h"
#include "schema/manifest_internal.h"

enum { KILN_GC_NO_STAGE = -1 };

typedef struct {
    char name[32];
    int64_t finished_ns;
    int64_t begun_ns; /* start of the run that made the output; INT64_MAX: not known */
    bool knows_units; /* its units are remembered */
} kiln_gc_stage;

typedef struct {
    int64_t id, finished_ns;
    kiln_hash key;
    int32_t stage; /* index into stages; KILN_GC_NO_STAGE: one that never finished */
    bool kept;
    /* where the stage does not know its units: */
    bool newest;    /* of its name */
    bool has_rows;  /* an output is called as planes or arrays of tables are */
    bool is_output; /* a current layer or table has one of its outputs */
} kiln_gc_unit;

typedef struct {
    int64_t id;
    char kind[16];
    bool kept;
} kiln_gc_layer;

typedef struct {
    int64_t id;
    uint64_t bytes; /* compressed */
} kiln_gc_blob;

typedef struct {
    int64_t id;
    char stage[32];
    uint64_t bytes; /* of its texts */
    bool kept;
} kiln_gc_run;

struct kiln_gc {
    kiln_manifest *m;
    bool keeps_runs;       /* kiln_gc_keep_runs was called */
    bool is_proof;         /* made when all was dropped: what there was to say has been said */
    kiln_gc_stage *stages; /* by name */
    kiln_gc_unit *units;   /* by id */
    kiln_gc_layer *layers; /* by id */
    kiln_gc_run *runs;     /* by id */
    kiln_gc_blob *blobs;   /* that are dropped, by id */
    uint64_t n_stages, n_units, n_layers, n_runs, n_blobs;
    uint64_t n_blobs_kept, bytes, bytes_done;
    int64_t data_version; /* SQLite's: another one means that another connection has written */
    uint64_t next_layer, next_unit, next_run, next_blob;
};

/* Calls add for every row; what it appends is the list. The buffer stays the caller's. */
typedef kiln_status kiln_gc_add_fn(kiln_query *q, kiln_buffer *list, kiln_error *err);
kiln_status kiln_gc_read_rows(kiln_manifest *m, const char *sql, kiln_gc_add_fn *add,
                              kiln_buffer *list, kiln_error *err) KILN_MUST_CHECK;
/* gc_units.c: stages, units and layers, and which of them are kept. */
kiln_status kiln_gc_find_rows(kiln_gc *g, kiln_error *err) KILN_MUST_CHECK;
/* gc_runs.c: the records of runs, and which of them are kept. */
kiln_status kiln_gc_find_runs(kiln_gc *g, kiln_error *err) KILN_MUST_CHECK;
/* gc_blobs.c: the blobs that nothing kept names. */
kiln_status kiln_gc_find_blobs(kiln_gc *g, kiln_error *err) KILN_MUST_CHECK;
/* Hashes of the blobs that current layers and tile tables name, appended to `out`. */
kiln_status kiln_gc_output_hashes(kiln_manifest *m, kiln_buffer *out,
                                  kiln_error *err) KILN_MUST_CHECK;

/* Sets of hashes are sorted buffers of them. */
void kiln_gc_sort_hashes(kiln_buffer *hashes);
bool kiln_gc_has_hash(const kiln_buffer *sorted, kiln_hash hash);
/* The first column of each row, appended. */
kiln_status kiln_gc_read_hashes(kiln_manifest *m, const char *sql, kiln_buffer *out,
                                kiln_error *err) KILN_MUST_CHECK;

#endif
