/* part_pipeline -- reads, checks and stores the batches of a gather at the same time, in bounded
 * memory (part_gather.c).
 *
 * One thread at a time reads batches in order. All threads unpack and hash their blobs. The
 * caller's thread stores whole batches in order; a transaction stores several of them, a group. At
 * most KILN_PART_BATCHES exist. */
#ifndef KILN_SCHEMA_PART_PIPELINE_H
#define KILN_SCHEMA_PART_PIPELINE_H

#include "schema/part.h"

enum { KILN_PART_BATCH_UNITS = 512, KILN_PART_BATCH_BLOBS = 2048 };

typedef struct kiln_part_group kiln_part_group;

typedef struct {
    kiln_blob blob; /* packed points into the batch's data, from the end of reading on */
    size_t at;      /* in the batch's data */
    bool damaged;   /* from the end of checking on */
} kiln_part_blob;

typedef struct {
    kiln_hash key;
    char name[160];
    kiln_unit_result result;
    int64_t wall_ns;
    kiln_status fault; /* not KILN_OK: its rows cannot be gathered */
} kiln_part_unit;

typedef struct {
    unsigned char *data; /* packed bytes */
    size_t used, capacity;
    size_t limit;          /* of packed bytes */
    bool is_full;          /* more blobs follow */
    size_t row_bytes;      /* of units, about */
    kiln_part_blob *blobs; /* [KILN_PART_BATCH_BLOBS] */
    kiln_part_unit *units; /* [KILN_PART_BATCH_UNITS]; their results are owned */
    uint32_t n_blobs, n_units;
    kiln_error fault;  /* of the first unit that has one */
    kiln_error damage; /* of the first damaged blob, first_damaged; n_blobs: none is */
    uint32_t first_damaged;
    uint32_t next, checked; /* the pipeline's: the next blob to check, how many are checked */
} kiln_part_batch;

typedef struct {
    void *context;
    unsigned threads;          /* the caller's among them; 0 and 1: the caller's alone */
    kiln_part_memory **memory; /* part.h; NULL: none is kept */
    /* Fills an empty batch; one that stays empty is the end. Called by one thread at a time, any.
     * Blobs are put with kiln_part_batch_blob. */
    kiln_status (*read)(void *context, kiln_part_batch *b, kiln_error *err);
    /* Stores the batches of a group, which has at least one. Called by the caller's thread. */
    kiln_status (*store)(void *context, kiln_part_group *group, kiln_error *err);
} kiln_part_stages;

/* Calls read and store until there is no batch left, or one of them fails: then its status. */
kiln_status kiln_part_pipeline(const kiln_part_stages *s, kiln_error *err) KILN_MUST_CHECK;
/* For `store`: batch number i of the group, from 0, whose blobs are checked; it waits for it. NULL:
 * the group ends before it. The batches that it has given stay until `store` returns, so it may be
 * asked for them again. */
kiln_part_batch *kiln_part_group_batch(kiln_part_group *group, uint32_t i);
/* For `read`: has the batch room for one more blob of so many packed bytes? An empty one has room
 * for any. */
bool kiln_part_batch_fits(const kiln_part_batch *b, size_t packed_bytes);
/* For `read`: adds a blob that fits; *packed is where its b.packed_bytes bytes are to be written. A
 * call that is followed by kiln_part_batch_take_back leaves nothing. */
kiln_status kiln_part_batch_blob(kiln_part_batch *b, const kiln_blob *blob, unsigned char **packed,
                                 kiln_error *err) KILN_MUST_CHECK;
void kiln_part_batch_take_back(kiln_part_batch *b);

#endif
