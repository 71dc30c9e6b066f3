/* outputs -- what a unit gives: collected, compressed and laid out in one memfd by the worker, read
 * by the parent.
 *
 * Sizes and offsets are bytes. One thread at a time may use a kiln_outputs; it compresses on
 * threads of its own. */
#ifndef KILN_STAGES_ENGINE_WORKER_OUTPUTS_H
#define KILN_STAGES_ENGINE_WORKER_OUTPUTS_H

#include "schema/manifest.h"
#include "stages/engine/worker/protocol.h"

/* The outputs of the unit in work. */
typedef struct kiln_output kiln_output;
typedef struct {
    kiln_output *items;
    uint32_t n, capacity;   /* outputs; those that `items` has room for */
    uint32_t n_packed;      /* the first n_packed are in the memfd, the others wait */
    uint64_t waiting_bytes; /* of copies of outputs that wait */
    /* upper bound of waiting_bytes, at most KILN_OUTPUTS_WAIT; set before the first output */
    uint64_t wait_most;
    uint64_t end;          /* offset behind the last region in the memfd */
    int memfd;             /* -1: none yet */
    unsigned threads;      /* that compress */
    unsigned n_packers;    /* length of packers[], one for each thread that has packed */
    kiln_packer **packers; /* NULL: that thread has none yet */
    bool keep_raw;         /* of a volatile unit: outputs are neither cut nor compressed */
} kiln_outputs;
enum { KILN_OUTPUTS_WAIT = 64 << 20 };
void kiln_outputs_init(kiln_outputs *o, unsigned threads);
typedef enum { KILN_PUT_COPY, KILN_PUT_LEND } kiln_put; /* kiln_worker_put, kiln_worker_lend */
/* Adds an output, as kiln_worker_put and kiln_worker_lend say. */
kiln_status kiln_outputs_put(kiln_outputs *o, const char *name, const void *raw, size_t bytes,
                             uint32_t elem, kiln_put put, kiln_error *err) KILN_MUST_CHECK;
/* Adds an output whose bytes are stored under this hash; at most KILN_BLOB_MAX. Not for a volatile
 * unit. */
kiln_status kiln_outputs_name(kiln_outputs *o, const char *name, kiln_hash hash, uint64_t bytes,
                              uint32_t elem, kiln_error *err) KILN_MUST_CHECK;
/* Compresses the outputs that wait and ends the result (protocol.h). Sets the counts and sizes in
 * *m. *memfd is sealed; the caller closes it. KILN_E_BUG: two outputs have the same name. */
kiln_status kiln_outputs_finish(kiln_outputs *o, const char *counters, kiln_message *m, int *memfd,
                                kiln_error *err) KILN_MUST_CHECK;
/* For the parent: reads the table at the end of a RESULT's memfd, which is mapped whole at `map`.
 * blobs[m->n_outputs] then point into the map; `packed` of an output that was named is NULL.
 * Release *out also after a failure. KILN_E_BUG: sizes that do not fit.
 */
kiln_status kiln_outputs_read(const kiln_message *m, const void *map, kiln_unit_result *out,
                              kiln_blob *blobs, kiln_error *err) KILN_MUST_CHECK;
void kiln_outputs_clear(kiln_outputs *o);   /* drops all outputs, for the next unit */
void kiln_outputs_release(kiln_outputs *o); /* and frees the memory */

#endif
