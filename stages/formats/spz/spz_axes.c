/* spz_axes -- see the header. Exchanging y and z is a mirror, like a single sign; it is done first,
 * then the signs (turn.h).
 *
 * A rotation R of a Gaussian becomes P R P with P the exchange, so that local y and z change places
 * too, with their scales; that the axis is mirrored turns the angle around: (x, y, z) of the
 * quaternion become (-x, -z, -y).
 */
#include "stages/formats/spz/spz_axes.h"

#include "base/harmonics.h"
#include "stages/formats/turn.h"

static const char names[KILN_SPZ_SYSTEMS + 1][4] = {"",    "LDB", "RDB", "LUB", "RUB", "LDF",
                                                    "RDF", "LUF", "RUF", "LFD", "RFD", "LFU",
                                                    "RFU", "LBD", "RBD", "LBU", "RBU"};

const char *kiln_spz_system_name(uint32_t system) { return names[system]; }

static bool is_exchanged(uint32_t system)
{
    return names[system][1] == 'F' || names[system][1] == 'B';
}

/* Of x, y and z of RDF. */
static void signs_of(uint32_t system, int sign[3])
{
    const char *name = names[system];
    const int y = is_exchanged(system) ? 2 : 1, z = 3 - y;
    sign[0] = name[0] == 'R' ? 1 : -1;
    sign[1] = name[y] == 'D' ? 1 : -1;
    sign[2] = name[z] == 'F' ? 1 : -1;
}

bool kiln_spz_system_is_mirrored(uint32_t system)
{
    int sign[3];
    signs_of(system, sign);
    return (sign[0] * sign[1] * sign[2] < 0) != is_exchanged(system);
}

/* ---- y and z exchanged ----------------------------------------------------------------------- */

/* A function with the coefficients v is, as one of (x, z, y), a function with the coefficients M v,
 * degree by degree. M is its own inverse; its terms row by row, `first` the first coefficient of
 * the degree. Found by evaluating the basis, and exact: squares are fractions. */
typedef struct {
    unsigned char to, from; /* coefficient behind that of degree 0: 0 to 23 */
    double factor;
} term;
#define R3_4 0.86602540378443864676 /* square roots of fractions */
#define R3_8 0.61237243569579452455
#define R5_8 0.79056941504209483300
#define R15_16 0.96824583655185422130
#define R7_8 0.93541434669348534640
#define R1_8 0.35355339059327376220
#define R7_16 0.66143782776614764763
#define R5_16 0.55901699437494742410
#define R35_64 0.73950997288745200532
static const term terms[] = {
    /* degree 1 */
    {0, 1, -1},
    {1, 0, -1},
    {2, 2, 1},
    /* degree 2 */
    {3, 6, -1},
    {4, 4, 1},
    {5, 5, -0.5},
    {5, 7, -R3_4},
    {6, 3, -1},
    {7, 5, -R3_4},
    {7, 7, 0.5},
    /* degree 3 */
    {8, 11, R5_8},
    {8, 13, -R3_8},
    {9, 9, 1},
    {10, 11, R3_8},
    {10, 13, R5_8},
    {11, 8, R5_8},
    {11, 10, R3_8},
    {12, 12, -0.25},
    {12, 14, -R15_16},
    {13, 8, -R3_8},
    {13, 10, R5_8},
    {14, 12, -R15_16},
    {14, 14, 0.25},
    /* degree 4 */
    {15, 20, R7_8},
    {15, 22, -R1_8},
    {16, 16, 0.75},
    {16, 18, -R7_16},
    {17, 20, R1_8},
    {17, 22, R7_8},
    {18, 16, -R7_16},
    {18, 18, -0.75},
    {19, 19, 0.375},
    {19, 21, R5_16},
    {19, 23, R35_64},
    {20, 15, R7_8},
    {20, 17, R1_8},
    {21, 19, R5_16},
    {21, 21, 0.5},
    {21, 23, -R7_16},
    {22, 15, -R1_8},
    {22, 17, R7_8},
    {23, 19, R35_64},
    {23, 21, -R7_16},
    {23, 23, 0.125},
};
enum { N_TERMS = sizeof terms / sizeof *terms, M_MAX = 24 };

static void exchange_sh(float *sh, uint64_t stride, uint32_t m)
{
    double sum[M_MAX] = {0};
    for (int k = 0; k < N_TERMS && terms[k].to < m; k++)
        sum[terms[k].to] += terms[k].factor * (double)sh[3 * stride * terms[k].from];
    for (uint64_t k = 0; k < m; k++) sh[3 * stride * k] = (float)sum[k];
}

static void exchange_rows(kiln_rows *r, uint32_t sh_degree)
{
    const uint64_t n = r->n;
    const uint32_t m = kiln_sh_coefficients(sh_degree);
    for (uint64_t i = 0; i < n; i++) {
        const double y = r->means[n + i];
        r->means[n + i] = r->means[2 * n + i];
        r->means[2 * n + i] = y;
        const float scale = r->log_scales[n + i], qy = r->quats[2 * n + i];
        r->log_scales[n + i] = r->log_scales[2 * n + i];
        r->log_scales[2 * n + i] = scale;
        r->quats[n + i] = -r->quats[n + i];
        r->quats[2 * n + i] = -r->quats[3 * n + i];
        r->quats[3 * n + i] = -qy;
    }
    for (uint64_t c = 0; c < 3; c++)
        for (uint64_t i = 0; i < n; i++) exchange_sh(r->shN + c * n + i, n, m);
}

void kiln_spz_rows_turn(kiln_rows *rows, uint32_t sh_degree, uint32_t system)
{
    int sign[3];
    signs_of(system, sign);
    if (is_exchanged(system)) exchange_rows(rows, sh_degree);
    kiln_rows_turn(rows, sh_degree, sign);
}
