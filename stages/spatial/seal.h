/* seal -- what stands behind the bytes of a scratch file, so that a later run can tell whether they
 * are still those that were written.
 *
 * Problem. A killed run leaves scratch to the next one. Meanwhile a disk may change a byte, a power
 * cut may leave zeros, and a person may copy a file from one folder into another. What is read of
 * such a file would pass for data.
 *
 * Layout, in the byte order of the machine:
 *
 *   the file's own bytes   [bytes]
 *   pieces                 [n] { u64 at, u64 bytes, hash }: what each write has put where, in the
 *                          order of `at`, without gaps
 *   end                    "kilnseal", u64 layout, u64 bytes, u64 n, hash of the place, hash of
 *                          pieces and end
 *
 * The place is the name of the folder, which has the key that the folder is made for, and the name
 * of the file. So a file of another plan is no better than a damaged one. Writers come from several
 * threads and in any order: each hashes its own piece.
 */
#ifndef KILN_STAGES_SPATIAL_SEAL_H
#define KILN_STAGES_SPATIAL_SEAL_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct kiln_seal kiln_seal;

/* Returns a seal without pieces; NULL: memory is gone. */
kiln_seal *kiln_seal_new(void);
void kiln_seal_free(kiln_seal *s);         /* accepts NULL */
uint64_t kiln_seal_ram(uint64_t n_writes); /* the most bytes that it takes after so many writes */
/* Notes what a write has put at `at`. From any thread. KILN_E_NOMEM. */
kiln_status kiln_seal_note(kiln_seal *s, uint64_t at, const void *data, size_t bytes,
                           kiln_error *err) KILN_MUST_CHECK;
/* Writes pieces and end behind the file's own bytes. path: its name when whole. *why: errno of a
 * write that failed, then the status is KILN_E_IO. KILN_E_BUG: some byte was written twice, or not
 * at all. */
kiln_status kiln_seal_write(kiln_seal *s, int fd, const char *path, uint64_t bytes, int *why,
                            kiln_error *err) KILN_MUST_CHECK;

/* Has the file of this path and descriptor so many bytes of its own, and the end of a seal that was
 * made for this place? Reads the seal alone. */
bool kiln_seal_fits(int fd, const char *path, uint64_t bytes);
/* Reads the whole file. *sound: it fits, and each byte is as it was written. A disk that cannot
 * read a byte makes it unsound. KILN_E_NOMEM. */
kiln_status kiln_seal_check(int fd, const char *path, uint64_t bytes, bool *sound,
                            kiln_error *err) KILN_MUST_CHECK;

#endif
