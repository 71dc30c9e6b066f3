/* placing -- puts a file whole into a folder that several hosts share. Private to this folder.
 *
 * The bytes go to a file of another name beside it, NAME.tmp.HOST.PID.RESTARTS, which is synced and
 * renamed: whoever sees NAME sees all of it, or what was there before. HOST is where PID means one
 * process (kiln_process_space): two containers of one host may both have a process 7. */
#ifndef KILN_SCHEMA_PLACING_H
#define KILN_SCHEMA_PLACING_H

#include "base/extern_c.h"
#include "base/file.h"

KILN_C_BEGIN

/* Gives `bytes` bytes of the source from `at` on. */
typedef kiln_status kiln_place_read_fn(void *source, uint64_t at, void *dst, size_t bytes,
                                       kiln_error *err);
typedef struct {
    kiln_place_read_fn *read;
    void *source;
    uint64_t bytes;
    /* how often a scheduler has begun this task anew: part of the temporary name */
    uint32_t restarts;
    unsigned mode; /* of the new file; 0: what new files have here */
} kiln_place_from;

/* TO.tmp.HOST.PID.RESTARTS of this process. KILN_E_USAGE: too long a path. */
kiln_status kiln_place_temporary(const char *to, uint32_t restarts, char out[KILN_PATH_MAX],
                                 kiln_error *err) KILN_MUST_CHECK;
/* Makes or replaces `to`. After a failure nothing is left of it and `to` is as it was. KILN_E_IO.
 * KILN_E_USAGE: too long a path. */
kiln_status kiln_place_copy(const kiln_place_from *from, const char *to,
                            kiln_error *err) KILN_MUST_CHECK;
/* The same from a file that no SQLite connection of this process has open, since closing it drops
 * their locks (fcntl(2)). */
kiln_status kiln_place_file(const char *from, const char *to, uint32_t restarts,
                            kiln_error *err) KILN_MUST_CHECK;
/* Removes temporary files that killed processes have left: names that begin with `begin` and have
 * `mark`, which ends in ".tmp.", in front of HOST.PID.RESTARTS. Those of this host whose process
 * has ended, none where that is not known; with all_hosts every one. What cannot be removed stays.
 */
void kiln_place_leftovers_drop(const char *folder, const char *begin, const char *mark,
                               bool all_hosts);

KILN_C_END

#endif
