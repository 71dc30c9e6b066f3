/* turn -- see turn.h. A component of the basis is a polynomial of x, y, z; each is even or odd in
 * each of them. */
#include "stages/formats/turn.h"

#include "base/harmonics.h"

enum { X = 1, Y = 2, Z = 4 };
/* The axes in which the coefficient is odd: degrees 1 to 4, m = -l .. l. */
static const unsigned char odd[24] = {Y,     Z,         X,                         /* 1 */
                                      X | Y, Y | Z,     0,     X | Z, 0,           /* 2 */
                                      Y,     X | Y | Z, Y,     Z,     X, Z,     X, /* 3 */
                                      X | Y, Y | Z,     X | Y, Y | Z, 0, X | Z, 0,
                                      X | Z, 0}; /* 4: the last one is x^4 - 6 x^2 y^2 + y^4 */

static int sign_product(const int sign[3], unsigned axes)
{
    return (axes & X ? sign[0] : 1) * (axes & Y ? sign[1] : 1) * (axes & Z ? sign[2] : 1);
}

void kiln_turn_signs(const int sign[3], int quat[4], int sh[24])
{
    static const unsigned char of_quat[4] = {0, Y | Z, X | Z, X | Y}; /* w, x, y, z */
    for (int c = 0; c < 4; c++) quat[c] = sign_product(sign, of_quat[c]);
    for (int k = 0; k < 24; k++) sh[k] = sign_product(sign, odd[k]);
}

void kiln_rows_turn(kiln_rows *rows, uint32_t sh_degree, const int sign[3])
{
    const uint64_t n = rows->n;
    const uint32_t m = kiln_sh_coefficients(sh_degree);
    int quat[4], sh[24];
    kiln_turn_signs(sign, quat, sh);
    for (uint32_t c = 0; c < 3; c++)
        for (uint64_t i = 0; i < n && sign[c] < 0; i++)
            rows->means[c * n + i] = -rows->means[c * n + i];
    for (uint32_t c = 0; c < 4; c++)
        for (uint64_t i = 0; i < n && quat[c] < 0; i++)
            rows->quats[c * n + i] = -rows->quats[c * n + i];
    for (uint32_t k = 0; k < m; k++) {
        if (sh[k] > 0) continue;
        float *v = rows->shN + (uint64_t)3 * k * n;
        for (uint64_t i = 0; i < 3 * n; i++) v[i] = -v[i];
    }
}
