#include "stages/import/origin.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = 65536 };

kiln_status kiln_origin_init(kiln_origin *o, kiln_error *err)
{
    memset(o, 0, sizeof *o);
    return KILN_ALLOC(&o->counts, 6 * (uint64_t)BINS, "ranks of the coordinates", err);
}

void kiln_origin_release(kiln_origin *o)
{
    free(o->counts);
    memset(o, 0, sizeof *o);
}

/* Orders as the double does. */
static uint64_t double_key(double v)
{
    uint64_t u;
    memcpy(&u, &v, sizeof u);
    return u >> 63 ? ~u : u | 1ull << 63;
}

static double double_of_key(uint64_t key)
{
    uint64_t u = key >> 63 ? key & ~(1ull << 63) : ~key;
    double v;
    memcpy(&v, &u, sizeof v);
    return v;
}

void kiln_origin_add(kiln_origin *o, const double *means, const unsigned char *skip, uint64_t n)
{
    unsigned shift = 48 - 16 * o->pass;
    for (uint32_t a = 0; a < 3; a++)
        for (uint64_t i = 0; i < n; i++) {
            double v = means[a * n + i];
            if (skip[i]) continue;
            uint64_t key = double_key(v);
            for (uint32_t t = a; t < 6; t += 3)
                if (o->pass == 0 || key >> (shift + 16) == o->prefix[t])
                    o->counts[t * BINS + (key >> shift & (BINS - 1))]++;
            if (o->pass == 0) {
                o->max_abs = fabs(v) > o->max_abs ? fabs(v) : o->max_abs;
                o->n += a == 0;
            }
        }
}

/* One more 16 bits of every rank's key. */
static void settle_key_bits(kiln_origin *o)
{
    for (uint32_t t = 0; t < 6; t++) {
        uint32_t bin = 0;
        if (o->pass == 0) /* ceil(n/100), ceil(99n/100) */
            o->rank[t] = (t < 3 ? o->n / 100 + (o->n % 100 != 0) : o->n - o->n / 100) - 1;
        while (bin < BINS - 1 && o->rank[t] >= o->counts[t * BINS + bin])
            o->rank[t] -= o->counts[t * BINS + bin++];
        o->prefix[t] = o->prefix[t] << 16 | bin;
    }
    memset(o->counts, 0, 6 * (size_t)BINS * sizeof *o->counts);
    o->pass++;
}

/* The diagonal from the nearest and the farthest that each rank can still be. */
static double diagonal(const kiln_origin *o, bool least)
{
    unsigned open = 64 - 16 * o->pass;
    uint64_t rest = open ? (1ull << open) - 1 : 0;
    double sum = 0;
    for (uint32_t a = 0; a < 3; a++) {
        uint64_t lo = open ? o->prefix[a] << open : o->prefix[a],
                 hi = open ? o->prefix[a + 3] << open : o->prefix[a + 3];
        double d = least ? double_of_key(hi) - double_of_key(lo | rest)
                         : double_of_key(hi | rest) - double_of_key(lo);
        if (!(d > 0)) d = least ? 0 : d == d ? 0 : HUGE_VAL;
        sum += d * d;
    }
    return sqrt(sum);
}

bool kiln_origin_next(kiln_origin *o, double origin[3])
{
    memset(origin, 0, 3 * sizeof *origin);
    if (o->n == 0) return false;
    settle_key_bits(o);
    double least = diagonal(o, true);
    if (least == least && o->max_abs <= 256 * least) return false;
    if (o->pass < 4) return true;
    for (uint32_t a = 0; a < 3; a++)
        origin[a] =
            floor((double_of_key(o->prefix[a]) + double_of_key(o->prefix[a + 3])) / 2 + 0.5);
    return false;
}
