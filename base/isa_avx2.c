/* isa_avx2 -- see isa.h. */
#include "base/isa.h"

bool kiln_isa_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
