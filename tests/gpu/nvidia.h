/* nvidia -- what the tests ask the CUDA driver and NVML beside the product's own functions: which
 * context is current, who has one on a device, how much of its memory is taken. Both libraries are
 * loaded when asked for. A device is an ordinal of this process. */
#ifndef KILN_TESTS_GPU_NVIDIA_H
#define KILN_TESTS_GPU_NVIDIA_H

#include <stdbool.h>
#include <stdint.h>

typedef struct CUctx_st *nv_context;

/* Number of devices; 0 where there is none, or no driver. Makes no context. */
int nv_open(void);

nv_context nv_current(void); /* of this thread */
void nv_make_current(nv_context c);
/* The context that the CUDA runtime uses, kept until nv_primary_release; and one that it does not
 * know of. */
nv_context nv_primary(int device);
void nv_primary_release(int device);
nv_context nv_foreign(int device);
void nv_foreign_free(nv_context c);

/* By NVML: all memory in use, and whether this process has a context there. */
uint64_t nv_used_bytes(int device);
bool nv_has_this_process(int device);

#endif
