#include "stages/import/random_points.h"

#include "base/vec3.h"

/* splitmix64's finaliser (Vigna, public domain) over a counter: every value on its own */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* [0, 1) in steps of 2^-24 */
static double unit(uint64_t seed, uint64_t row, uint32_t column)
{
    return (double)(mix(mix(seed) + row * 8 + column) >> 40) * 0x1p-24;
}

void kiln_random_points(uint64_t seed, const double box[6], uint64_t first, uint64_t n,
                        kiln_rows *rows)
{
    rows->n = n;
    for (uint32_t c = 0; c < 3; c++)
        for (uint64_t i = 0; i < n; i++) {
            rows->means[c * n + i] =
                (double)(float)(box[c] + (box[c + 3] - box[c]) * unit(seed, first + i, c));
            rows->rgb[c * n + i] = (float)unit(seed, first + i, 3 + c);
        }
}

void kiln_random_box(const kiln_camera *cameras, uint32_t n, bool blender, double box[6])
{
    double longest = 0;
    for (uint32_t a = 0; a < 3; a++) {
        box[a] = -1.3;
        box[a + 3] = 1.3;
        for (uint32_t i = 0; i < n && !blender; i++) {
            double centre[3];
            kiln_pose_centre(cameras[i].r, cameras[i].t, centre);
            if (i == 0 || centre[a] < box[a]) box[a] = centre[a];
            if (i == 0 || centre[a] > box[a + 3]) box[a + 3] = centre[a];
        }
        longest = box[a + 3] - box[a] > longest ? box[a + 3] - box[a] : longest;
    }
    if (!(longest > 0)) longest = 1; /* one camera */
    for (uint32_t a = 0; a < 3; a++) {
        double missing = 0.1 * longest - (box[a + 3] - box[a]);
        if (missing <= 0) continue;
        box[a] -= missing / 2;
        box[a + 3] += missing / 2;
    }
}
