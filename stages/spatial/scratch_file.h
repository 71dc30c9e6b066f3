/* scratch_file -- files of a scratch folder (kiln_run_scratch): written as NAME.part, there as NAME
 * once whole and on the disk, so that a run which goes on after a kill finds only whole files. A
 * seal behind the bytes (seal.h) says what they were: a run that may write there asks
 * kiln_scratch_keep_sound before it takes a file that it has not made itself.
 *
 * What is large and soon read again need not go to the disk: a file that is `left_in_cache` has its
 * name once it is written, and nobody waits for the disk. A killed run leaves it whole, a power cut
 * does not, so its name must tell of which start of the system it is (kiln_scratch_boot). Nobody
 * hears of a disk that fails later; the seal tells.
 *
 * Room is taken when a file is made, so that a full disk is found before the work. Errors:
 * KILN_E_IO, of a full disk (or a limit of file sizes) with the numbers and what to do. Write and
 * read from any thread.
 */
#ifndef KILN_STAGES_SPATIAL_SCRATCH_FILE_H
#define KILN_STAGES_SPATIAL_SCRATCH_FILE_H

#include "base/status.h"
#include "stages/spatial/seal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int fd;
    bool is_new;        /* not whole yet */
    bool left_in_cache; /* set by who has created it, before anything is written */
    bool stays_unnamed; /* likewise: it is dropped by this run, so it needs no seal */
    uint64_t bytes;     /* without the seal */
    kiln_seal *seal;    /* owned; of one that is new */
    char path[4096];    /* its name when whole */
} kiln_scratch_file;

/* bytes: its size. Replaces a NAME.part that a kill left. On failure there is nothing to drop. */
kiln_status kiln_scratch_create(const char *folder, const char *name, uint64_t bytes,
                                kiln_scratch_file *out, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_scratch_write(const kiln_scratch_file *f, uint64_t at, const void *data,
                               size_t bytes, kiln_error *err) KILN_MUST_CHECK;
/* What was written, before it is finished or after kiln_scratch_open. */
kiln_status kiln_scratch_read(const kiln_scratch_file *f, uint64_t at, void *data, size_t bytes,
                              kiln_error *err) KILN_MUST_CHECK;
/* On the disk unless it is left in the cache, then renamed; closed in any case. */
kiln_status kiln_scratch_finish(kiln_scratch_file *f, kiln_error *err) KILN_MUST_CHECK;
/* Closes, and removes what is not whole. Nothing for one that was finished, dropped, or is all
 * zero. */
void kiln_scratch_drop(kiln_scratch_file *f);
/* What this start of the system is called: the same for all processes, another one after each
 * reboot. "": the system does not say.
 */
enum { KILN_SCRATCH_BOOT_MAX = 64 };
void kiln_scratch_boot(char out[KILN_SCRATCH_BOOT_MAX]);

/* Is there a file of this size with the seal of this folder and name? Looks at nothing else. */
bool kiln_scratch_is_whole(const char *folder, const char *name, uint64_t bytes);
/* Reads all of a file that an earlier run may have left. *kept: it is whole and each byte is as it
 * was written. Otherwise it is gone: a warning names it, and the caller makes it again. KILN_E_IO:
 * it cannot be removed; KILN_E_NOMEM. */
kiln_status kiln_scratch_keep_sound(const char *folder, const char *name, uint64_t bytes,
                                    bool *kept, kiln_error *err) KILN_MUST_CHECK;
/* A whole one, for reading; kiln_scratch_drop closes it. KILN_E_IO when missing, or as
 * kiln_scratch_is_whole. */
kiln_status kiln_scratch_open(const char *folder, const char *name, uint64_t bytes,
                              kiln_scratch_file *out, kiln_error *err) KILN_MUST_CHECK;
/* Memory that a run shares (kiln_run_share_memory) by its path, to read and to write;
 * kiln_scratch_drop closes it. KILN_E_IO. */
kiln_status kiln_scratch_open_shared(const char *path, uint64_t bytes, kiln_scratch_file *out,
                                     kiln_error *err) KILN_MUST_CHECK;

#endif
