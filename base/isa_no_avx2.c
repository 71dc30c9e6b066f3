/* isa_no_avx2 -- see isa.h. */
#include "base/isa.h"

bool kiln_isa_avx2(void) { return false; }
