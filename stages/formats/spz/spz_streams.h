/* spz_streams -- the zstd streams of a file of SPZ version 4 (spz.h). All sizes are known from the
 * header, so that a frame which gives more is a bomb and is refused at its first byte too many.
 */
#ifndef KILN_STAGES_FORMATS_SPZ_SPZ_STREAMS_H
#define KILN_STAGES_FORMATS_SPZ_SPZ_STREAMS_H

#include "stages/formats/spz/spz_rows.h"

#define KILN_SPZ_WINDOW_MAX (UINT64_C(128) << 20)

typedef struct {
    /* where the table of contents begins */
    uint64_t extensions_end;
    /* in the file; at[n]: behind the last one */
    uint64_t at[KILN_SPZ_PLANES + 1], bytes[KILN_SPZ_PLANES];
    /* the largest of a frame: what its decoder keeps in memory */
    uint64_t window;
} kiln_spz_streams;

/* Reads and checks the table of contents and the head of every frame. size: of the file; head_only:
 * no more than its first part is there, so that only its header is checked and `at`, `bytes`,
 * `window` are 0. */
kiln_status kiln_spz_streams_read(int fd, const char *name, uint64_t size, bool head_only,
                                  const kiln_spz_header *h, kiln_spz_streams *out,
                                  kiln_error *err) KILN_MUST_CHECK;

/* Host memory of kiln_spz_streams_spool for each thread. */
uint64_t kiln_spz_streams_ram(uint64_t window);
/* Unpacks the planes into `to`, one after the other from byte 0 on, on at most so many threads. */
kiln_status kiln_spz_streams_spool(const kiln_spz_streams *s, const kiln_spz_header *h, int fd,
                                   const char *name, int to, unsigned threads,
                                   kiln_error *err) KILN_MUST_CHECK;

#endif
