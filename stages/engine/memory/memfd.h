/* memfd -- files in memory that travel between parent and worker as descriptors, and carry the bulk
 * that no socket should. Sizes and offsets are bytes. Any thread may call these functions. */
#ifndef KILN_STAGES_ENGINE_MEMORY_MEMFD_H
#define KILN_STAGES_ENGINE_MEMORY_MEMFD_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* Fails with KILN_E_IO and the limit on open files, for EMFILE and ENFILE. Every unit would fail of
 * it, so it is not a failure that is tried again. what: "make a file". */
kiln_status kiln_no_descriptor(const char *what, kiln_error *err) KILN_MUST_CHECK;
/* Makes an empty memfd; the caller closes *fd. KILN_E_IO: no descriptor is left. KILN_E_NOMEM. */
kiln_status kiln_memfd_new(int *fd, kiln_error *err) KILN_MUST_CHECK;
/* Writes at this offset. Several threads may write at the same time. KILN_E_NOMEM. KILN_E_IO:
 * beyond ulimit -f. */
kiln_status kiln_memfd_write(int fd, uint64_t at, const void *data, size_t bytes,
                             kiln_error *err) KILN_MUST_CHECK;
/* Returns the memory that a memfd takes, without its holes; 0 if it cannot be asked. */
uint64_t kiln_memfd_holds(int fd);
/* Fixes the size, so that the process that maps it cannot be killed by a truncation on the other
 * side. */
kiln_status kiln_memfd_seal(int fd, kiln_error *err) KILN_MUST_CHECK;
/* Maps it read-only. bytes is above 0. The caller calls munmap(*data, bytes). KILN_E_BUG: it is not
 * exactly `bytes` long. */
kiln_status kiln_memfd_map(int fd, uint64_t bytes, void **data, kiln_error *err) KILN_MUST_CHECK;
/* Copies it into memory of the caller's, who frees *data; otherwise the same. */
kiln_status kiln_memfd_copy(int fd, uint64_t bytes, void **data, kiln_error *err) KILN_MUST_CHECK;

#endif
