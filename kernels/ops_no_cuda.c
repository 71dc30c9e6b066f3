/* ops_no_cuda -- linked in a build without CUDA: absence is a file, not an #ifdef. */
#include "kernels/ops.h"

const kiln_ops *kiln_ops_cuda(void) { return NULL; }
