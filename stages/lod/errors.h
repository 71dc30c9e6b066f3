/* errors -- what a unit is told about measuring the errors of its levels. None are measured yet. */
#ifndef KILN_STAGES_LOD_ERRORS_H
#define KILN_STAGES_LOD_ERRORS_H

#include <stdint.h>

typedef struct {
    uint32_t n_views; /* that errors are measured by; 0: none */
    uint32_t zero;
} kiln_lod_error_request;

#endif
