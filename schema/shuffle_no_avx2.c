/* shuffle_no_avx2 -- see base/isa.h. */
#include "schema/shuffle.h"

const kiln_shuffle *kiln_shuffle_best(void) { return kiln_shuffle_baseline(); }
