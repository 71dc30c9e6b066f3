/* rad_read -- the leaves of a RAD file that was just written, chunk by chunk, as its reader sees
 * them: for --report-loss.
 *
 * It reads the coding that rad.h draws, no other of RAD. Rows that have rows below stand for those
 * and are left out. For one thread. */
#ifndef KILN_STAGES_FORMATS_RAD_RAD_READ_H
#define KILN_STAGES_FORMATS_RAD_RAD_READ_H

#include "base/status.h"

#include <stdint.h>

typedef struct {
    char path[4096];
    int fd;
    uint32_t n_chunks, sh_degree;
    uint64_t *at; /* [n_chunks + 1] where each chunk begins */
} kiln_rad_file;

/* Planar, as in a manifest; shN NULL at degree 0. One allocation: free(store). */
typedef struct {
    uint64_t n, first; /* first: place in the file of the chunk's first row */
    float *means, *log_scales, *quats, *opacity_logits, *sh0, *shN;
    uint32_t *place; /* [n] in the file */
    float *store;
} kiln_rad_leaves;

/* KILN_E_INPUT: the file is not as rad_chunk.h writes it. */
kiln_status kiln_rad_open(const char *path, kiln_rad_file *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_rad_close(kiln_rad_file *f);
/* origin is subtracted from centres. */
kiln_status kiln_rad_read_leaves(const kiln_rad_file *f, uint32_t chunk, const double origin[3],
                                 kiln_rad_leaves *out, kiln_error *err) KILN_MUST_CHECK;

#endif
