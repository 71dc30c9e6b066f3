/* Change of frame by signs: Gaussians that were turned look from a turned direction as they looked
 * before, and cover what they covered. */
#include "stages/formats/turn.h"

#include "kernels/project/sh_math.h"
#include "tests/unit/manifest_fixture.h"

#include <math.h>

enum { ROWS = 3, DEGREE = 4, COEFFICIENTS = 24 };

typedef struct {
    double means[3 * ROWS];
    float log_scales[3 * ROWS], quats[4 * ROWS], opacity[ROWS], sh0[3 * ROWS],
        shN[3 * COEFFICIENTS * ROWS];
} arrays;

static kiln_rows rows_of(arrays *a)
{
    return (kiln_rows){.n = ROWS,
                       .means = a->means,
                       .log_scales = a->log_scales,
                       .quats = a->quats,
                       .opacity_logits = a->opacity,
                       .sh0 = a->sh0,
                       .shN = a->shN};
}

static float any(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(int)(*seed >> 8) / (float)(1 << 23) - 1.0f;
}

static void fill(arrays *a)
{
    unsigned seed = 7;
    for (int i = 0; i < 3 * ROWS; i++) a->means[i] = (double)any(&seed);
    for (int i = 0; i < 4 * ROWS; i++) a->quats[i] = any(&seed);
    for (int i = 0; i < 3 * COEFFICIENTS * ROWS; i++) a->shN[i] = any(&seed);
    for (int i = 0; i < 3 * ROWS; i++) a->log_scales[i] = any(&seed);
}

static double colour(const arrays *a, int row, int channel, float x, float y, float z)
{
    float b[COEFFICIENTS];
    double sum = 0;
    kiln_sh_basis1(x, y, z, b);
    kiln_sh_basis2(x, y, z, b + 3);
    kiln_sh_basis3(x, y, z, b + 8);
    kiln_sh_basis4(x, y, z, b + 15);
    for (int k = 0; k < COEFFICIENTS; k++)
        sum += (double)b[k] * (double)a->shN[(3 * k + channel) * ROWS + row];
    return sum;
}

/* Row-major covariance for scales exp(log_scales) along the axes of the quaternion. */
static void covariance(const arrays *a, int row, double out[9])
{
    double q[4], length = 0, r[9];
    for (int c = 0; c < 4; c++)
        length += (double)a->quats[c * ROWS + row] * (double)a->quats[c * ROWS + row];
    for (int c = 0; c < 4; c++) q[c] = (double)a->quats[c * ROWS + row] / sqrt(length);
    const double w = q[0], x = q[1], y = q[2], z = q[3];
    const double m[9] = {1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),
                         2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                         2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 3; i++)
            r[3 * i + c] = m[3 * i + c] * exp((double)a->log_scales[c * ROWS + row]);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            out[3 * i + j] =
                r[3 * i] * r[3 * j] + r[3 * i + 1] * r[3 * j + 1] + r[3 * i + 2] * r[3 * j + 2];
}

static void check(const int sign[3])
{
    arrays before, after;
    fill(&before);
    after = before;
    kiln_rows rows = rows_of(&after);
    unsigned seed = 99;
    kiln_rows_turn(&rows, DEGREE, sign);
    for (int row = 0; row < ROWS; row++) {
        double was[9], is[9];
        covariance(&before, row, was);
        covariance(&after, row, is);
        for (int i = 0; i < 9; i++)
            assert_true(fabs(is[i] - sign[i / 3] * sign[i % 3] * was[i]) < 1e-12);
        for (int c = 0; c < 3; c++)
            assert_true(after.means[c * ROWS + row] == sign[c] * before.means[c * ROWS + row]);
        for (int k = 0; k < 20; k++) {
            const double x = any(&seed), y = any(&seed), z = any(&seed),
                         l = sqrt(x * x + y * y + z * z);
            const float d[3] = {(float)(x / l), (float)(y / l), (float)(z / l)};
            const double seen = colour(&after, row, k % 3, (float)sign[0] * d[0],
                                       (float)sign[1] * d[1], (float)sign[2] * d[2]);
            assert_true(fabs(seen - colour(&before, row, k % 3, d[0], d[1], d[2])) < 1e-5);
        }
    }
}

static void signs(void **state)
{
    static const int all[][3] = {{1, 1, 1}, {1, -1, -1}, {-1, -1, 1}, {-1, 1, -1}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) check(all[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(signs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
