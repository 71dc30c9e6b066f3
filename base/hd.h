/* hd -- qualifiers of arithmetic that is compiled twice: as C for the CPU sibling and as CUDA C++
 * for the device. */
#ifndef KILN_BASE_HD_H
#define KILN_BASE_HD_H

#ifdef __CUDACC__
#define KILN_HD __host__ __device__
#else
#define KILN_HD
#endif

#endif
