/* similarity -- moves, turns and scales Gaussians, points and camera poses without changing what is
 * seen:
 *
 *   x' = s R x + t        s > 0, R a proper rotation (a mirror image is none)
 *
 * Plain functions, not operations: they run once, where rows are read. Arithmetic in double with
 * functions of our own (kernels/math/real64.h), so the bits are the same on every machine; each
 * stored number is rounded to float32 once.
 *
 * Spherical harmonics are those of kernels/project/sh_math.h: real, with the sign (-1)^m,
 * coefficient l^2 + l + m of degree l and order m. Each degree is turned by its own orthogonal
 * matrix: exact but for rounding, no refit.
 */
#ifndef KILN_KERNELS_SIMILARITY_H
#define KILN_KERNELS_SIMILARITY_H

#include "base/extern_c.h"

#include <stdbool.h>
#include <stdint.h>

KILN_C_BEGIN

typedef struct {
    double scale;
    double r[9]; /* rotation, row-major */
    double t[3];
} kiln_similarity;

void kiln_similarity_identity(kiln_similarity *out);
/* R = Rz Ry Rx from degrees about x, y and z: first about x, then about the fixed y, then about the
 * fixed z. All numbers finite, scale > 0. Multiples of 90 degrees give a matrix of 0, 1 and -1. */
void kiln_similarity_of_degrees(const double translate[3], const double degrees[3], double scale,
                                kiln_similarity *out);
/* The rotation of a quaternion w, x, y, z of any length. False, and *out is the identity: its
 * length is 0 or not finite. */
bool kiln_similarity_of_quat(const double translate[3], const double wxyz[4], double scale,
                             kiln_similarity *out);
/* From x' = m x + t, m row-major. False, and *out is the identity: m mirrors, shears, scales the
 * axes differently by more than `tolerance` of the scale (1e-4 is usual for matrices of floats), is
 * singular or not finite. */
bool kiln_similarity_of_matrix(const double m[9], const double t[3], double tolerance,
                               kiln_similarity *out);
/* First `first`, then `then`: x' = then(first(x)). *out may be one of them. */
void kiln_similarity_compose(const kiln_similarity *then, const kiln_similarity *first,
                             kiln_similarity *out);
bool kiln_similarity_is_identity(const kiln_similarity *s);
/* Unit quaternion w, x, y, z of the rotation, w >= 0 where it is not 0. */
void kiln_similarity_quat(const kiln_similarity *s, double wxyz[4]);

/* Rows that are moved, component c of row i at c * n + i. NULL: there is no such plane. */
typedef struct {
    uint64_t n;
    double *means;     /* [3][n]  in out   s R x + t */
    float *log_scales; /* [3][n]  in out   + ln s; -Inf stays */
    float *quats;      /* [4][n]  in out   r q, w x y z; the length stays what it is */
    /* [3K][n] in out   coefficient-major: component 3 k + c, k = 0 is the first of degree 1 */
    float *shN;
    uint32_t sh_degree; /* of shN: 0 to 4 */
} kiln_similarity_planes;
/* Moves rows. A part of the similarity that does nothing (t 0, scale 1, R the identity) leaves its
 * planes unchanged, bit by bit. Values that are not finite make others of their row not finite; the
 * caller sanitises afterwards. threads: 0 counts as 1. */
void kiln_similarity_rows(const kiln_similarity *s, unsigned threads,
                          const kiln_similarity_planes *p);
/* Turns normals, [n] each. A similarity that turns nothing leaves them untouched, bit by bit. */
void kiln_similarity_normals(const kiln_similarity *s, uint64_t n, float *x, float *y, float *z);
/* A pose x_cam = r x + t of the world that is moved: the camera moves along, and what it sees at
 * depth z is then at s z. */
void kiln_similarity_pose(const kiln_similarity *s, double r[9], double t[3]);
/* Back again: a pose of the moved world becomes that of the world before. Rounding apart, the two
 * undo each other; the identity changes no bit. */
void kiln_similarity_pose_back(const kiln_similarity *s, double r[9], double t[3]);

/* The matrices that turn the coefficients of degrees 1 to 4: c'_i = sum over j of m_l[i * (2 l + 1)
 * + j] c_j, i and j from order -l to l. Entries within 1e-14 of 0, 1 and -1 are rounded to them. So
 * a rotation that only permutes axes and their signs only permutes coefficients and their signs. */
typedef struct {
    double m1[9], m2[25], m3[49], m4[81];
} kiln_sh_turn;
void kiln_sh_turn_of(const double r[9], kiln_sh_turn *out);

KILN_C_END

#endif
