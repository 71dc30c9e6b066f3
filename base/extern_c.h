/* extern_c -- lets C++ (CUDA files, other programs) use the C headers: put between the includes and
 * the last #endif. */
#ifndef KILN_BASE_EXTERN_C_H
#define KILN_BASE_EXTERN_C_H

#ifdef __cplusplus
#define KILN_C_BEGIN extern "C" {
#define KILN_C_END }
#else
#define KILN_C_BEGIN
#define KILN_C_END
#endif

#endif
