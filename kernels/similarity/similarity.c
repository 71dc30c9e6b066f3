/* similarity -- see the header. Matrices are small and made once; the loops over rows walk one
 * component at a time. */
#include "kernels/similarity/similarity.h"

#include "kernels/math/real64.h"
#include "kernels/project/sh_math.h"

#include <math.h>
#include <string.h>

static const double unit_matrix[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};

/* ---- making one ------------------------------------------------------------------------------ */

void kiln_similarity_identity(kiln_similarity *out)
{
    *out = (kiln_similarity){.scale = 1};
    memcpy(out->r, unit_matrix, sizeof out->r);
}

/* out may be a or b. + 0.0: a sum of products is never -0, so that equal rotations have equal
 * bits. */
static void multiply(const double a[9], const double b[9], double out[9])
{
    double p[9];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            p[3 * i + j] =
                a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j] + 0.0;
    memcpy(out, p, sizeof p);
}

static void apply(const double m[9], const double x[3], double out[3])
{
    double p[3];
    for (int i = 0; i < 3; i++) p[i] = m[3 * i] * x[0] + m[3 * i + 1] * x[1] + m[3 * i + 2] * x[2];
    memcpy(out, p, sizeof p);
}

/* About the axis, from the next axis towards the one behind that. */
static void about(int axis, double degrees, double r[9])
{
    const int a = (axis + 1) % 3, b = (axis + 2) % 3;
    double s, c;
    kiln_sincos_degrees(degrees, &s, &c);
    memcpy(r, unit_matrix, 9 * sizeof *r);
    r[3 * a + a] = r[3 * b + b] = c;
    r[3 * a + b] = 0.0 - s;
    r[3 * b + a] = s;
}

void kiln_similarity_of_degrees(const double translate[3], const double degrees[3], double scale,
                                kiln_similarity *out)
{
    double x[9], y[9], z[9];
    kiln_similarity_identity(out);
    about(0, degrees[0], x);
    about(1, degrees[1], y);
    about(2, degrees[2], z);
    multiply(y, x, out->r);
    multiply(z, out->r, out->r);
    memcpy(out->t, translate, sizeof out->t);
    out->scale = scale;
}

bool kiln_similarity_of_quat(const double translate[3], const double wxyz[4], double scale,
                             kiln_similarity *out)
{
    double q[4], largest = 0, length = 0;
    kiln_similarity_identity(out);
    for (int i = 0; i < 4; i++)
        largest = fabs(wxyz[i]) > largest || wxyz[i] != wxyz[i] ? fabs(wxyz[i]) : largest;
    if (!(largest > 0 && largest < HUGE_VAL)) return false;
    for (int i = 0; i < 4; i++) {
        q[i] = wxyz[i] / largest; /* its square neither overflows nor vanishes */
        length += q[i] * q[i];
    }
    const double two = 2 / length, w = q[0], x = q[1], y = q[2], z = q[3];
    const double r[9] = {
        1 - two * (y * y + z * z), two * (x * y - w * z),     two * (x * z + w * y),
        two * (x * y + w * z),     1 - two * (x * x + z * z), two * (y * z - w * x),
        two * (x * z - w * y),     two * (y * z + w * x),     1 - two * (x * x + y * y)};
    for (int i = 0; i < 9; i++) out->r[i] = r[i] + 0.0;
    memcpy(out->t, translate, sizeof out->t);
    out->scale = scale;
    return true;
}

static double determinant3(const double m[9])
{
    return m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6]) +
           m[2] * (m[3] * m[7] - m[4] * m[6]);
}

bool kiln_similarity_of_matrix(const double m[9], const double t[3], double tolerance,
                               kiln_similarity *out)
{
    double sum = 0, r[9];
    kiln_similarity_identity(out);
    for (int i = 0; i < 9; i++) sum += m[i] * m[i];
    const double scale = sqrt(sum / 3);
    if (!(scale > 0 && scale < HUGE_VAL)) return false;
    for (int i = 0; i < 9; i++) r[i] = m[i] / scale;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j <= i; j++) {
            const double dot = r[i] * r[j] + r[3 + i] * r[3 + j] + r[6 + i] * r[6 + j];
            if (!(fabs(dot - (i == j)) <= tolerance)) return false;
        }
    if (!(determinant3(r) > 0)) return false;
    /* The quaternion of a matrix that is nearly a rotation is of one that is. */
    kiln_similarity nearly = {.scale = 1};
    double q[4];
    memcpy(nearly.r, r, sizeof r);
    kiln_similarity_quat(&nearly, q);
    return kiln_similarity_of_quat(t, q, scale, out);
}

void kiln_similarity_compose(const kiln_similarity *then, const kiln_similarity *first,
                             kiln_similarity *out)
{
    kiln_similarity s;
    apply(then->r, first->t, s.t);
    for (int i = 0; i < 3; i++) s.t[i] = then->scale * s.t[i] + then->t[i];
    multiply(then->r, first->r, s.r);
    s.scale = then->scale * first->scale;
    *out = s;
}

static bool turns(const kiln_similarity *s)
{
    for (int i = 0; i < 9; i++)
        if (s->r[i] != unit_matrix[i]) return true;
    return false;
}

bool kiln_similarity_is_identity(const kiln_similarity *s)
{
    return s->scale == 1 && s->t[0] == 0 && s->t[1] == 0 && s->t[2] == 0 && !turns(s);
}

/* From the largest of the four (Shepperd), as the others are quotients by it. */
void kiln_similarity_quat(const kiln_similarity *s, double q[4])
{
    const double *r = s->r;
    const double four[4] = {1 + r[0] + r[4] + r[8], 1 + r[0] - r[4] - r[8], 1 - r[0] + r[4] - r[8],
                            1 - r[0] - r[4] + r[8]};
    const double differ[3] = {r[7] - r[5], r[2] - r[6], r[3] - r[1]},
                 add[3] = {r[5] + r[7], r[2] + r[6], r[1] + r[3]};
    int k = 0;
    for (int i = 1; i < 4; i++)
        if (four[i] > four[k]) k = i;
    q[k] = sqrt(four[k]) / 2;
    const double below = 4 * q[k];
    for (int i = 0; i < 4; i++) {
        if (i == k) continue;
        q[i] = (i == 0 ? differ[k - 1] : k == 0 ? differ[i - 1] : add[5 - i - k]) / below;
    }
    if (q[0] < 0)
        for (int i = 0; i < 4; i++) q[i] = 0.0 - q[i];
}

/* ---- turning spherical harmonics
 * --------------------------------------------------------------------------------------------
 * Ivanic and Ruedenberg, Rotation matrices for real spherical harmonics (J. Phys. Chem. 100, 1996;
 * corrected 102, 1998): the matrix of degree l from those of l - 1 and 1. Theirs has no sign
 * (-1)^m; ours is theirs with (-1)^(i + j). */

typedef struct {
    const double *one, *before; /* of degrees 1 and l - 1 */
    int l;
} recurrence;

static double one(const recurrence *r, int i, int j) { return r->one[3 * (i + 1) + j + 1]; }

static double before(const recurrence *r, int i, int j)
{
    const int l = r->l - 1;
    return r->before[(2 * l + 1) * (i + l) + j + l];
}

static double p(const recurrence *r, int i, int a, int b)
{
    const int l = r->l;
    if (b == l) return one(r, i, 1) * before(r, a, l - 1) - one(r, i, -1) * before(r, a, 1 - l);
    if (b == -l) return one(r, i, 1) * before(r, a, 1 - l) + one(r, i, -1) * before(r, a, l - 1);
    return one(r, i, 0) * before(r, a, b);
}

static double part_v(const recurrence *r, int m, int n)
{
    if (m == 0) return p(r, 1, 1, n) + p(r, -1, -1, n);
    if (m == 1) return sqrt(2.0) * p(r, 1, 0, n);
    if (m == -1) return sqrt(2.0) * p(r, -1, 0, n);
    return m > 0 ? p(r, 1, m - 1, n) - p(r, -1, 1 - m, n) : p(r, 1, m + 1, n) + p(r, -1, -m - 1, n);
}

static double part_w(const recurrence *r, int m, int n)
{
    return m > 0 ? p(r, 1, m + 1, n) + p(r, -1, -m - 1, n) : p(r, 1, m - 1, n) - p(r, -1, 1 - m, n);
}

/* A part whose factor is 0 would read beyond the matrix of l - 1. */
static double entry(const recurrence *r, int m, int n)
{
    const int l = r->l, size = m < 0 ? -m : m;
    const double below = n == l || n == -l ? 2.0 * l * (2 * l - 1) : (double)(l + n) * (l - n);
    double sum = 0;
    if (size < l) sum += sqrt((l + m) * (l - m) / below) * p(r, 0, m, n);
    const double v = 0.5 * sqrt((m == 0 ? 2.0 : 1.0) * (l + size - 1) * (l + size) / below);
    sum += (m == 0 ? -v : v) * part_v(r, m, n);
    if (m != 0 && size < l - 1)
        sum -= 0.5 * sqrt((l - size - 1) * (l - size) / below) * part_w(r, m, n);
    return sum;
}

static double settled(double v)
{
    if (fabs(v) < 1e-14) return 0.0;
    return fabs(v - 1) < 1e-14 ? 1.0 : fabs(v + 1) < 1e-14 ? -1.0 : v;
}

/* (-1)^(i + j) and what is nearly whole made whole: only at the end, as the recurrence has
 * neither. */
static void finish_harmonics(int l, double *m)
{
    for (int i = 0; i <= 2 * l; i++)
        for (int j = 0; j <= 2 * l; j++) {
            double *v = &m[(2 * l + 1) * i + j];
            *v = settled((i + j) % 2 ? 0.0 - *v : *v);
        }
}

void kiln_sh_turn_of(const double r[9], kiln_sh_turn *out)
{
    static const int axis[3] = {1, 2, 0}; /* order -1, 0, 1 is along y, z, x */
    double *m[5] = {NULL, out->m1, out->m2, out->m3, out->m4};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) out->m1[3 * i + j] = r[3 * axis[i] + axis[j]];
    for (int l = 2; l <= KILN_SH_DEGREE_MAX; l++) {
        const recurrence of = {.one = out->m1, .before = m[l - 1], .l = l};
        for (int i = -l; i <= l; i++)
            for (int j = -l; j <= l; j++) m[l][(2 * l + 1) * (i + l) + j + l] = entry(&of, i, j);
    }
    for (int l = 1; l <= KILN_SH_DEGREE_MAX; l++) finish_harmonics(l, m[l]);
}

/* ---- rows ------------------------------------------------------------------------------------ */

enum { PIECE = 256 }; /* rows at a time: sums of a degree stay in the first cache */

/* planes: of order -l, one colour; `stride` floats from order to order. Entries that are 0 are left
 * out. If a single entry is left and is 1 or -1, the bits stay except for the sign. */
static void turn_degree(int l, const double *m, uint64_t n, float *planes, uint64_t stride)
{
    const int size = 2 * l + 1;
    double sum[2 * KILN_SH_DEGREE_MAX + 1][PIECE];
    for (int i = 0; i < size; i++) {
        bool first = true;
        for (int j = 0; j < size; j++) {
            const double f = m[size * i + j];
            const float *from = planes + (uint64_t)j * stride;
            if (f == 0) continue;
            if (first)
                for (uint64_t k = 0; k < n; k++) sum[i][k] = f * (double)from[k];
            else
                for (uint64_t k = 0; k < n; k++) sum[i][k] += f * (double)from[k];
            first = false;
        }
    }
    for (int i = 0; i < size; i++)
        for (uint64_t k = 0; k < n; k++) planes[(uint64_t)i * stride + k] = (float)sum[i][k];
}

static void turn_sh(const kiln_sh_turn *turn, uint64_t n, uint64_t first, uint64_t rows,
                    uint32_t sh_degree, float *shN)
{
    const double *const m[5] = {NULL, turn->m1, turn->m2, turn->m3, turn->m4};
    for (uint64_t l = 1; l <= sh_degree; l++)
        for (uint64_t c = 0; c < 3; c++)
            turn_degree((int)l, m[l], rows, shN + (3 * (l * l - 1) + c) * n + first, 3 * n);
}

static void turn_quats(const double r[4], uint64_t n, uint64_t first, uint64_t rows, float *quats)
{
    for (uint64_t i = first; i < first + rows; i++) {
        const double w = (double)quats[i], x = (double)quats[n + i], y = (double)quats[2 * n + i],
                     z = (double)quats[3 * n + i];
        quats[i] = (float)(r[0] * w - r[1] * x - r[2] * y - r[3] * z);
        quats[n + i] = (float)(r[0] * x + r[1] * w + r[2] * z - r[3] * y);
        quats[2 * n + i] = (float)(r[0] * y - r[1] * z + r[2] * w + r[3] * x);
        quats[3 * n + i] = (float)(r[0] * z + r[1] * y - r[2] * x + r[3] * w);
    }
}

static void move_means(const double m[9], const double t[3], uint64_t n, uint64_t first,
                       uint64_t rows, double *means)
{
    for (uint64_t i = first; i < first + rows; i++) {
        const double x = means[i], y = means[n + i], z = means[2 * n + i];
        means[i] = m[0] * x + m[1] * y + m[2] * z + t[0];
        means[n + i] = m[3] * x + m[4] * y + m[5] * z + t[1];
        means[2 * n + i] = m[6] * x + m[7] * y + m[8] * z + t[2];
    }
}

static void add_log(double log_s, uint64_t n, uint64_t first, uint64_t rows, float *log_scales)
{
    for (uint64_t a = 0; a < 3; a++)
        for (uint64_t i = first; i < first + rows; i++)
            log_scales[a * n + i] = (float)((double)log_scales[a * n + i] + log_s);
}

void kiln_similarity_rows(const kiln_similarity *s, unsigned threads,
                          const kiln_similarity_planes *p)
{
    const uint64_t n = p->n;
    const bool is_turn = turns(s), moves = !kiln_similarity_is_identity(s);
    const double log_s = kiln_log_f64(s->scale);
    const int64_t pieces = (int64_t)((n + PIECE - 1) / PIECE);
    double m[9], q[4];
    kiln_sh_turn turn;
    for (int i = 0; i < 9; i++) m[i] = s->scale * s->r[i];
    kiln_similarity_quat(s, q);
    if (is_turn && p->shN && p->sh_degree) kiln_sh_turn_of(s->r, &turn);
#pragma omp parallel for num_threads(threads ? threads : 1) if (threads > 1 && pieces > 16)
    for (int64_t i = 0; i < pieces; i++) {
        const uint64_t first = (uint64_t)i * PIECE, rows = n - first < PIECE ? n - first : PIECE;
        if (p->means && moves) move_means(m, s->t, n, first, rows, p->means);
        if (p->log_scales && s->scale != 1) add_log(log_s, n, first, rows, p->log_scales);
        if (p->quats && is_turn) turn_quats(q, n, first, rows, p->quats);
        if (p->shN && is_turn) turn_sh(&turn, n, first, rows, p->sh_degree, p->shN);
    }
}

void kiln_similarity_normals(const kiln_similarity *s, uint64_t n, float *x, float *y, float *z)
{
    const double *r = s->r;
    if (memcmp(r, unit_matrix, sizeof unit_matrix) == 0) return;
    for (uint64_t i = 0; i < n; i++) {
        const double a = (double)x[i], b = (double)y[i], c = (double)z[i];
        x[i] = (float)(r[0] * a + r[1] * b + r[2] * c);
        y[i] = (float)(r[3] * a + r[4] * b + r[5] * c);
        z[i] = (float)(r[6] * a + r[7] * b + r[8] * c);
    }
}

void kiln_similarity_pose(const kiln_similarity *s, double r[9], double t[3])
{
    double back[9], at[3];
    if (kiln_similarity_is_identity(s)) return;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) back[3 * i + j] = s->r[3 * j + i];
    multiply(r, back, r);
    apply(r, s->t, at);
    for (int i = 0; i < 3; i++) t[i] = s->scale * t[i] - at[i];
}

void kiln_similarity_pose_back(const kiln_similarity *s, double r[9], double t[3])
{
    double at[3];
    if (kiln_similarity_is_identity(s)) return;
    apply(r, s->t, at);
    for (int i = 0; i < 3; i++) t[i] = (t[i] + at[i]) / s->scale;
    multiply(r, s->r, r);
}
