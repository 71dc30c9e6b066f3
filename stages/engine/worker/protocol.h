/* protocol -- the messages between parent and worker.
 *
 * Parent and worker share a pair of SOCK_SEQPACKET sockets, which carry messages of a fixed size.
 * Payloads and results are large; each travels beside its message as one memfd. So the socket never
 * fills up and no bulk is copied through it.
 *
 *   worker -> parent   HELLO   text: the device. If the worker cannot open its device, it sends
 *                              FAILED instead.
 *   parent -> worker   UNIT    unit, text: its name, flags, threads, ram, attempt, slot; memfd: the
 *                              payload, `bytes` long; no memfd if it has 0 bytes
 *   worker -> parent   BEGUN   unit: it is being computed while earlier units, whose deferred work
 *                              runs, are not answered yet
 *                      RESULT  unit, n_outputs, counters_bytes; memfd: the blobs, with holes
 *                              between them; at its end n_outputs kiln_wire_output and the counters
 *                              with their NUL
 *                      FAILED  unit, status, text: the sentence, flags. If the status is contained
 *                              (containment.h), the worker then ends; otherwise the failure comes
 *                              from the input and the parent ends the run.
 *
 * Between two stages of one process (worker_rest.c), when the worker has no unit:
 *   parent -> worker   REST    it frees what belongs to the stage, and keeps its device
 *   worker -> parent   RESTED  ram: host memory that it still has, without that of the CUDA runtime
 *   parent -> worker   PROGRAM text: the name of the stage; memfd: the arguments that a new worker
 *                      would have, each with its NUL.
 *                              The worker begins again, with HELLO
 *
 * RESULT and FAILED come in the order of the UNIT messages. End of file on the socket ends the
 * worker. Both ends are the same executable, so layouts cannot differ; the version detects an
 * executable that was replaced while it ran.
 */
#ifndef KILN_STAGES_ENGINE_WORKER_PROTOCOL_H
#define KILN_STAGES_ENGINE_WORKER_PROTOCOL_H

#include "base/status.h"
#include "schema/manifest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KILN_PROTOCOL_VERSION = 5 };

typedef enum {
    KILN_MSG_HELLO = 1,
    KILN_MSG_UNIT,
    KILN_MSG_RESULT,
    KILN_MSG_FAILED,
    KILN_MSG_BEGUN,
    KILN_MSG_REST,
    KILN_MSG_RESTED,
    KILN_MSG_PROGRAM
} kiln_message_kind;

enum {
    KILN_MSG_VOLATILE = 1, /* UNIT: the result comes back uncompressed, each output in one piece */
    KILN_MSG_ALONE = 4,    /* UNIT: no work of another unit may run at the same time */
    /* FAILED: the device is gone or broken, not only the context of this process */
    KILN_MSG_LOST = 2,
};

/* What a worker has taken since its start, in bytes. vram_...: of a GPU, else 0. */
typedef struct {
    uint64_t peak_rss;
    /* anonymous and shared memory of the CUDA runtime, measured right after the context was made */
    uint64_t ram_cuda;
    uint64_t vram_peak, vram_cap;
    /* number of operations that ran on the CPU because --vram is too small for them */
    uint64_t n_host;
} kiln_worker_use;

typedef struct {
    uint32_t version, kind;
    uint64_t unit;  /* index in the list of the kiln_run_units call */
    uint64_t bytes; /* size of the memfd that comes along; 0: none does */
    uint32_t flags;
    int32_t status; /* FAILED: a kiln_status */
    uint32_t n_outputs;
    uint32_t counters_bytes; /* with the NUL */
    uint64_t wall_ns;        /* RESULT: time that the unit took */
    /* UNIT: host memory in bytes that it may take, including what the worker keeps between units */
    uint64_t ram;
    uint32_t threads; /* UNIT: how many it may use */
    uint32_t attempt; /* UNIT: 1, or more if earlier attempts failed */
    /* UNIT: number of the GPU, or on the CPU of the worker (containment.h) */
    uint32_t slot;
    kiln_worker_use use;
    char text[1024];
} kiln_message;

typedef struct {
    kiln_unit_output head;
    uint64_t at;     /* offset in the memfd, or KILN_WIRE_STORED */
    uint64_t packed; /* bytes there: compressed, or raw for a volatile result */
} kiln_wire_output;
#define KILN_WIRE_STORED UINT64_MAX /* the manifest has the bytes: the output is only named */

/* Sends a message, and a memfd unless it is -1. The descriptor stays the caller's.
 * KILN_E_TERMINATED: the peer is gone. KILN_E_IO.
 */
kiln_status kiln_message_send(int fd, const kiln_message *m, int memfd,
                              kiln_error *err) KILN_MUST_CHECK;
/* Waits for a message. *memfd is -1 or a descriptor that the caller closes. *closed: the peer is
 * gone and no message was received. KILN_E_BUG: no message of this version. KILN_E_IO. */
kiln_status kiln_message_receive(int fd, kiln_message *m, int *memfd, bool *closed,
                                 kiln_error *err) KILN_MUST_CHECK;

#endif
