/* protocol -- what parent and worker say to each other.
 *
 * A SOCK_SEQPACKET pair carries fixed-size messages; bulk (payloads, results) travels beside a message as one memfd, so
 * that the socket never fills up and nothing is copied through it.
 *
 *   worker -> parent   HELLO   text: the device; or FAILED in its place
 *   parent -> worker   UNIT    unit, text: its name, flags, threads, ram, attempt, slot; memfd: the payload (bytes of it;
 *                              none when 0)
 *   worker -> parent   RESULT  unit, n_outputs, counters_bytes; memfd: the blobs, holes between them, at its end
 *                              n_outputs kiln_wire_output and the counters with their NUL
 *                      BEGUN   unit: it is in work beside tails of those before, whose RESULTs follow
 *                      FAILED  unit, status, text: the sentence, flags; then the worker ends, unless the unit's input is
 *                              at fault (containment.h)
 * End of file on the socket ends the worker. Both ends are one executable, so layouts cannot differ; the version
 * catches an executable that was replaced while it ran.
 */
#ifndef KILN_STAGES_PROTOCOL_H
#define KILN_STAGES_PROTOCOL_H

#include "base/status.h"
#include "schema/manifest.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KILN_PROTOCOL_VERSION = 4 };

typedef enum { KILN_MSG_HELLO = 1, KILN_MSG_UNIT, KILN_MSG_RESULT, KILN_MSG_FAILED, KILN_MSG_BEGUN } kiln_message_kind;

enum {
    KILN_MSG_VOLATILE = 1, /* UNIT: the result comes back raw, in one piece per output */
    KILN_MSG_ALONE = 4,    /* UNIT: nothing of another unit runs beside it */
    KILN_MSG_LOST = 2,     /* FAILED: the device itself is gone or ill, not this process's context alone */
};

/* What a worker has taken so far; vram: of a GPU, else 0. */
typedef struct {
    uint64_t peak_rss;
    uint64_t ram_cuda; /* anonymous and shared memory of the CUDA runtime, right after its context was made */
    uint64_t vram_peak, vram_cap;
    uint64_t n_host; /* operations that ran on the CPU because --vram is too small for them */
} kiln_worker_use;

typedef struct {
    uint32_t version, kind;
    uint64_t unit;  /* index in the list of the kiln_run_units call */
    uint64_t bytes; /* size of the memfd that comes along; 0: none does */
    uint32_t flags;
    int32_t status; /* FAILED: a kiln_status */
    uint32_t n_outputs;
    uint32_t counters_bytes; /* with the NUL */
    uint64_t wall_ns;        /* RESULT: what the unit took */
    uint64_t ram;            /* UNIT: host memory that it may take, what the worker keeps between units included */
    uint32_t threads;        /* UNIT: for its computing */
    uint32_t attempt;        /* UNIT: 1, 2, ...: those before it failed */
    uint32_t slot;           /* UNIT: number of the device, on the CPU of the worker (containment.h) */
    kiln_worker_use use;
    char text[1024];
} kiln_message;

typedef struct {
    kiln_unit_output head;
    uint64_t at;     /* offset in the memfd */
    uint64_t packed; /* bytes there: compressed, or raw for a volatile result */
} kiln_wire_output;

/* memfd -1: none. The descriptor stays the caller's. KILN_E_TERMINATED: the peer is gone. */
kiln_status kiln_message_send(int fd, const kiln_message *m, int memfd, kiln_error *err) KILN_MUST_CHECK;
/* *memfd -1 or a descriptor that the caller closes. *closed: the peer is gone and nothing was received. */
kiln_status kiln_message_receive(int fd, kiln_message *m, int *memfd, bool *closed, kiln_error *err) KILN_MUST_CHECK;

/* EMFILE, ENFILE: KILN_E_IO with the limit; not of the unit, so that nobody tries it again. what: "make a file". */
kiln_status kiln_no_descriptor(const char *what, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_memfd_new(int *fd, kiln_error *err) KILN_MUST_CHECK;
/* At this offset, from any thread. */
kiln_status kiln_memfd_write(int fd, uint64_t at, const void *data, size_t bytes, kiln_error *err) KILN_MUST_CHECK;
uint64_t kiln_memfd_holds(int fd); /* bytes of memory, without holes; 0 when it cannot be asked */
/* Its size stays after this: whoever maps it cannot be killed by a truncation on the other side. */
kiln_status kiln_memfd_seal(int fd, kiln_error *err) KILN_MUST_CHECK;
/* Maps it read-only; KILN_E_BUG when it is not exactly `bytes` long. munmap(*data, bytes). bytes > 0. */
kiln_status kiln_memfd_map(int fd, uint64_t bytes, void **data, kiln_error *err) KILN_MUST_CHECK;

#endif
