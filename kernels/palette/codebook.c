/* codebook -- see codebook.h: splits, the exact dynamic program over groups of bins, then Lloyd's
 * passes over the bins.
 *
 * The values of a bin have one sign and one exponent, so their mean follows from the mean of their
 * keys' low bits. All sums are taken from the lowest bin up. The first cell is everything; the cell
 * with the largest error is split at its mean until there are 256. Lloyd's passes alone would stop
 * half a dB below the best codebook, because borders cannot move by less than a bin. So each cell
 * is cut into 16 groups, and the best 256 runs of groups are found. Optimal costs are monotone, so
 * each layer is solved by halves. That uses differences of sums, which say nothing about small
 * values beside huge ones: what the splits gave is kept where it is better.
 */
#include "kernels/palette/codebook.h"

#include "base/carve.h"
#include "kernels/math/real64.h"
#include "kernels/palette/palette.h"
#include "kernels/ranks/ranks.h"

#include <math.h>
#include <string.h>

enum {
    SMALL_BINS = 4096, /* below 2^-10 */
    SMALL_LOW = 16,    /* bits; one of them is 2^-38 */
    LOW = 11,          /* bits of a float that its bin does not say, to 2^16 */
    LARGE_LOW = 16,
    SMALL_END = 0x3a800000, /* bits of 2^-10 and 2^16 */
    LOW_END = 0x47800000,
    LARGE_BINS = SMALL_BINS + ((LOW_END - SMALL_END) >> LOW), /* the first of them */
    HALF = KILN_CODEBOOK_BINS / 2,                            /* the bin of 0 */
};
_Static_assert(LARGE_BINS + ((0x7f800000 - LOW_END) >> LARGE_LOW) <= HALF,
               "there is a bin for each finite value");

enum { LLOYD_PASSES = 256, CUTS = 16, GROUPS_MAX = KILN_CODEBOOK_VALUES * CUTS };

static float float_of(uint32_t bits)
{
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* The bin of a value, which is not -0, and its place within. */
static inline uint32_t bin_of(float v, uint32_t *low)
{
    uint32_t bits, bin;
    memcpy(&bits, &v, sizeof bits);
    const uint32_t size = bits & 0x7fffffff;
    if (size < SMALL_END) {
        const uint32_t fixed = (uint32_t)(float_of(size) * 0x1p38f);
        bin = fixed >> SMALL_LOW;
        *low = fixed & ((1u << SMALL_LOW) - 1);
    } else if (size < LOW_END) {
        bin = SMALL_BINS + ((size - SMALL_END) >> LOW);
        *low = size & ((1u << LOW) - 1);
    } else {
        bin = LARGE_BINS + ((size - LOW_END) >> LARGE_LOW);
        *low = size & ((1u << LARGE_LOW) - 1);
    }
    return bits >> 31 ? HALF - 1 - bin : HALF + bin;
}

/* The value at a place of a bin. */
static double value_at(uint32_t bin, double low)
{
    const uint32_t of_sign = bin < HALF ? HALF - 1 - bin : bin - HALF;
    double size;
    if (of_sign < SMALL_BINS) {
        size = ((double)(of_sign << SMALL_LOW) + low) * 0x1p-38;
    } else {
        const uint32_t bits = of_sign < LARGE_BINS
                                  ? SMALL_END + ((of_sign - SMALL_BINS) << LOW)
                                  : LOW_END + ((of_sign - LARGE_BINS) << LARGE_LOW);
        const double first = (double)float_of(bits);
        size = first + ((double)float_of(bits + 1) - first) * low;
    }
    return bin < HALF ? -size : size;
}

static void remember_key(kiln_codebook_counts *c, uint32_t key)
{
    uint32_t i = c->n_values;
    if (i > KILN_CODEBOOK_VALUES) return;
    while (i > 0 && c->keys[i - 1] > key) i--;
    if (i > 0 && c->keys[i - 1] == key) return;
    if (c->n_values++ == KILN_CODEBOOK_VALUES) return; /* too many from now on */
    memmove(c->keys + i + 1, c->keys + i, (c->n_values - 1 - i) * sizeof *c->keys);
    c->keys[i] = key;
}

void kiln_codebook_add(kiln_codebook_counts *c, const float *values, uint64_t n)
{
    uint32_t last = 0;
    for (uint64_t i = 0; i < n; i++) {
        const float v = values[i] + 0.0f; /* -0 becomes 0 */
        const uint32_t key = kiln_rank_key(v);
        uint32_t low;
        const uint32_t bin = bin_of(v, &low);
        c->count[bin]++;
        c->low[bin] += low;
        if (i > 0 && key == last) continue;
        remember_key(c, key);
        last = key;
    }
    c->n += n;
}

void kiln_codebook_merge_values(kiln_codebook_counts *to, uint64_t n, uint32_t n_values,
                                const uint32_t keys[KILN_CODEBOOK_VALUES])
{
    to->n += n;
    if (n_values > KILN_CODEBOOK_VALUES) to->n_values = KILN_CODEBOOK_VALUES + 1;
    for (uint32_t i = 0; i < n_values && n_values <= KILN_CODEBOOK_VALUES; i++)
        remember_key(to, keys[i]);
}

void kiln_codebook_merge(kiln_codebook_counts *to, const kiln_codebook_counts *from)
{
    for (uint32_t i = 0; i < KILN_CODEBOOK_BINS; i++) {
        to->count[i] += from->count[i];
        to->low[i] += from->low[i];
    }
    kiln_codebook_merge_values(to, from->n, from->n_values, from->keys);
}

/* ---- the codebook ---------------------------------------------------------------------------- */

/* What is counted, without what is empty: ascending. */
typedef struct {
    uint32_t n;
    double *values, *counts;
} points;

typedef struct {
    uint32_t begin, end; /* points */
    double mean, error;
} cell;

/* What the dynamic program needs: sums over the groups before each, the least error of the first
 * groups in one run less and in as many runs, and where the last run begins. */
typedef struct {
    double counts[GROUPS_MAX + 1], sums[GROUPS_MAX + 1], squares[GROUPS_MAX + 1];
    double values[GROUPS_MAX], group_counts[GROUPS_MAX];
    double least[2][GROUPS_MAX + 1];
    uint16_t begin[KILN_CODEBOOK_VALUES][GROUPS_MAX + 1];
    uint32_t n;
} program;

typedef struct {
    points points;
    program *program;
} codebook_work;

static codebook_work lay_work(kiln_carve *c)
{
    codebook_work r = {0};
    r.points.values = kiln_take(c, KILN_CODEBOOK_BINS, sizeof *r.points.values);
    r.points.counts = kiln_take(c, KILN_CODEBOOK_BINS, sizeof *r.points.counts);
    r.program = kiln_take(c, 1, sizeof *r.program);
    return r;
}

size_t kiln_codebook_work_bytes(void)
{
    kiln_carve c = {0};
    (void)lay_work(&c);
    return c.used;
}

static void fill_points(const kiln_codebook_counts *c, points *p)
{
    for (uint32_t bin = 0; bin < KILN_CODEBOOK_BINS; bin++) {
        if (c->count[bin] == 0) continue;
        p->counts[p->n] = (double)c->count[bin];
        p->values[p->n] = value_at(bin, (double)c->low[bin] / (double)c->count[bin]);
        p->n++;
    }
}

/* What a part of the range has in all becomes its cube root. */
static void even_out(points *p)
{
    enum { PARTS = 1024 };
    double sums[PARTS] = {0};
    const double low = p->values[0], wide = p->values[p->n - 1] - low;
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < p->n; i++) {
            const uint32_t part =
                wide > 0 ? (uint32_t)((p->values[i] - low) / wide * (PARTS - 1)) : 0;
            if (pass == 0)
                sums[part] += p->counts[i];
            else
                p->counts[i] *= kiln_exp_f64(-2.0 / 3 * kiln_log_f64(sums[part]));
        }
}

static cell cell_of(const points *p, uint32_t begin, uint32_t end)
{
    cell c = {.begin = begin, .end = end};
    double count = 0, sum = 0;
    for (uint32_t i = begin; i < end; i++) {
        count += p->counts[i];
        sum += p->counts[i] * p->values[i];
    }
    c.mean = sum / count;
    for (uint32_t i = begin; i < end; i++)
        c.error += p->counts[i] * ((p->values[i] - c.mean) * (p->values[i] - c.mean));
    return c;
}

/* Splits the worst cell at its mean; returns false when no cell has an error. */
static int split_worst(const points *p, cell *cells, uint32_t n)
{
    uint32_t worst = 0;
    for (uint32_t i = 1; i < n; i++) worst = cells[i].error > cells[worst].error ? i : worst;
    const cell c = cells[worst];
    uint32_t at = c.begin + 1; /* neither side is empty */
    if (c.end - c.begin < 2 || !(c.error > 0)) return 0;
    while (at + 1 < c.end && p->values[at] <= c.mean) at++;
    cells[worst] = cell_of(p, c.begin, at);
    cells[n] = cell_of(p, at, c.end);
    return 1;
}

static void sort_cells(cell *cells, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        const cell c = cells[i];
        uint32_t j = i;
        for (; j > 0 && cells[j - 1].begin > c.begin; j--) cells[j] = cells[j - 1];
        cells[j] = c;
    }
}

/* Groups: each cell cut into CUTS parts of one width. */
static void make_groups(const points *p, const cell *cells, uint32_t n, program *g)
{
    g->n = 0;
    for (uint32_t k = 0; k < n; k++) {
        const double first = p->values[cells[k].begin], width = p->values[cells[k].end - 1] - first;
        uint32_t i = cells[k].begin;
        for (int part = 1; part <= CUTS && i < cells[k].end; part++) {
            double count = 0, sum = 0;
            for (;
                 i < cells[k].end && (part == CUTS || p->values[i] - first <= width * part / CUTS);
                 i++) {
                count += p->counts[i];
                sum += p->counts[i] * p->values[i];
            }
            if (!(count > 0)) continue;
            g->group_counts[g->n] = count;
            g->values[g->n++] = sum / count;
        }
    }
    const double middle = g->values[g->n / 2]; /* smaller squares */
    g->counts[0] = g->sums[0] = g->squares[0] = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        const double v = g->values[i] - middle;
        g->counts[i + 1] = g->counts[i] + g->group_counts[i];
        g->sums[i + 1] = g->sums[i] + g->group_counts[i] * v;
        g->squares[i + 1] = g->squares[i] + g->group_counts[i] * (v * v);
    }
}

static inline double run_error(const program *g, uint32_t begin, uint32_t end)
{
    const double sum = g->sums[end] - g->sums[begin];
    return g->squares[end] - g->squares[begin] - sum * sum / (g->counts[end] - g->counts[begin]);
}

/* The best begin of the last of k + 1 runs, for the groups before each end of [lo, hi]; it is in
 * [from, to]. */
static void solve_layer(program *g, uint32_t k, uint32_t lo, uint32_t hi, uint32_t from,
                        uint32_t to)
{
    if (lo > hi) return;
    const uint32_t end = lo + (hi - lo) / 2;
    uint32_t best = from;
    double least = (double)INFINITY;
    for (uint32_t begin = from; begin <= to && begin < end; begin++) {
        const double error = g->least[(k - 1) % 2][begin] + run_error(g, begin, end);
        if (error < least) {
            least = error;
            best = begin;
        }
    }
    g->least[k % 2][end] = least;
    g->begin[k][end] = (uint16_t)best;
    if (end > lo) solve_layer(g, k, lo, end - 1, from, best);
    solve_layer(g, k, end + 1, hi, best, to);
}

/* The means of the best n runs of groups; n <= g->n. */
static void best_runs(program *g, uint32_t n, double *means)
{
    for (uint32_t end = 1; end <= g->n; end++) g->least[0][end] = run_error(g, 0, end);
    for (uint32_t k = 1; k < n; k++) solve_layer(g, k, k + 1, g->n, k, g->n - 1);
    uint32_t end = g->n;
    for (uint32_t k = n; k-- > 0;) {
        const uint32_t begin = k > 0 ? g->begin[k][end] : 0;
        double count = 0, sum = 0;
        for (uint32_t i = begin; i < end; i++) {
            count += g->group_counts[i];
            sum += g->group_counts[i] * g->values[i];
        }
        means[k] = sum / count;
        end = begin;
    }
}

/* One pass of Lloyd's; returns whether a mean has moved. */
static int move_means(const points *p, uint32_t n, double *means)
{
    uint32_t i = 0;
    int moved = 0;
    double next = means[0];
    for (uint32_t k = 0; k < n; k++) {
        const double mean = next;
        double count = 0, sum = 0;
        if (k + 1 < n) next = means[k + 1];
        for (; i < p->n && (k + 1 == n || p->values[i] <= (mean + next) / 2); i++) {
            count += p->counts[i];
            sum += p->counts[i] * p->values[i];
        }
        if (count > 0) means[k] = sum / count;
        moved |= means[k] != mean; /* what is not a number cannot be here */
    }
    return moved;
}

static double error_of(const points *p, uint32_t n, const double *means)
{
    double error = 0;
    uint32_t k = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        while (k + 1 < n && p->values[i] > (means[k] + means[k + 1]) / 2) k++;
        error += p->counts[i] * ((p->values[i] - means[k]) * (p->values[i] - means[k]));
    }
    return error;
}

/* Both starts end in passes; returns how many means there are, the better ones. */
static uint32_t make_means(const kiln_codebook_counts *c, kiln_codebook_aim aim, void *work,
                           double means[KILN_CODEBOOK_VALUES])
{
    kiln_carve carve = {work, 0};
    codebook_work r = lay_work(&carve);
    points *p = &r.points;
    cell cells[KILN_CODEBOOK_VALUES];
    double of_runs[KILN_CODEBOOK_VALUES];
    uint32_t n = 1;
    fill_points(c, p);
    if (aim == KILN_CODEBOOK_RARE) even_out(p);
    cells[0] = cell_of(p, 0, p->n);
    while (n < KILN_CODEBOOK_VALUES && split_worst(p, cells, n)) n++;
    sort_cells(cells, n);
    for (uint32_t k = 0; k < n; k++) means[k] = cells[k].mean;
    make_groups(p, cells, n, r.program);
    best_runs(r.program, n, of_runs);
    for (unsigned pass = 0; pass < LLOYD_PASSES && move_means(p, n, means); pass++) continue;
    for (unsigned pass = 0; pass < LLOYD_PASSES && move_means(p, n, of_runs); pass++) continue;
    if (error_of(p, n, of_runs) < error_of(p, n, means)) memcpy(means, of_runs, n * sizeof *means);
    return n;
}

void kiln_codebook_make(const kiln_codebook_counts *c, kiln_codebook_aim aim, void *work,
                        float codebook[KILN_CODEBOOK_VALUES])
{
    uint32_t n = 0;
    if (c->n == 0) {
        memset(codebook, 0, KILN_CODEBOOK_VALUES * sizeof *codebook);
        return;
    }
    if (c->n_values <= KILN_CODEBOOK_VALUES) {
        for (n = 0; n < c->n_values; n++) codebook[n] = kiln_rank_value(c->keys[n]);
    } else {
        double means[KILN_CODEBOOK_VALUES];
        n = make_means(c, aim, work, means);
        for (uint32_t k = 0; k < n; k++) codebook[k] = (float)means[k];
    }
    for (uint32_t k = n; k < KILN_CODEBOOK_VALUES; k++) codebook[k] = codebook[n - 1];
}

/* ---- using it -------------------------------------------------------------------------------- */

void kiln_codebook_codes(const float codebook[KILN_CODEBOOK_VALUES], const float *values,
                         uint64_t n, uint8_t *codes)
{
    /* a value above borders[k] is nearer to k + 1 than to k */
    double borders[KILN_CODEBOOK_VALUES];
    for (unsigned k = 0; k + 1 < KILN_CODEBOOK_VALUES; k++)
        borders[k] = ((double)codebook[k] + (double)codebook[k + 1]) / 2;
    borders[KILN_CODEBOOK_VALUES - 1] = (double)INFINITY;
    for (uint64_t i = 0; i < n; i++) {
        const double v = (double)values[i];
        unsigned below = 0; /* borders below v */
        for (unsigned step = KILN_CODEBOOK_VALUES / 2; step > 0; step /= 2)
            below += borders[below + step - 1] < v ? step : 0;
        codes[i] = (uint8_t)below;
    }
}

void kiln_codebook_levels(const float codebook[KILN_CODEBOOK_VALUES],
                          int16_t levels[KILN_CODEBOOK_VALUES])
{
    const double low = -(double)codebook[0], high = (double)codebook[KILN_CODEBOOK_VALUES - 1],
                 most = low > high ? low : high;
    for (unsigned k = 0; k < KILN_CODEBOOK_VALUES; k++) {
        const double v =
            most > 0 ? floor((double)codebook[k] / most * KILN_PALETTE_LIMIT + 0.5) : 0;
        levels[k] = (int16_t)v;
        if (k > 0 && codebook[k] > codebook[k - 1] && levels[k] <= levels[k - 1])
            levels[k] = (int16_t)(levels[k - 1] + 1);
        /* equal to one that was moved */
        if (k > 0 && levels[k] < levels[k - 1]) levels[k] = levels[k - 1];
    }
    int16_t most_level = KILN_PALETTE_LIMIT;
    for (unsigned k = KILN_CODEBOOK_VALUES; k-- > 0;) {
        if (levels[k] > most_level) levels[k] = most_level;
        if (k > 0 && codebook[k] > codebook[k - 1]) most_level = (int16_t)(levels[k] - 1);
    }
}
