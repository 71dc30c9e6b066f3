/* tile_parts -- see the header. */
#include "stages/formats/tiles/tile_parts.h"

#include "stages/formats/spz/spz_encode.h"

#include <math.h>

/* What whole steps of one unit reach, with room for the rounding of a middle to a float. */
static const double most_reach = 8388600;

bool kiln_tile_knows_core(const kiln_tile_core *core)
{
    return core->half > 0 && core->half <= most_reach;
}

static double core_reach(const kiln_tile_core *core)
{
    return kiln_tile_knows_core(core) ? fmin(KILN_TILE_REACH * core->half, most_reach) : most_reach;
}

bool kiln_tile_may_have_parts(const kiln_tile_core *core, const float lo[3], const float hi[3])
{
    const double reach = core_reach(core);
    bool may = false;
    for (int c = 0; c < 3; c++) {
        const double below = core->centre[c] - (double)lo[c],
                     above = (double)hi[c] - core->centre[c];
        may |= kiln_tile_knows_core(core) ? !(fmax(below, above) <= reach)
                                          : !((double)hi[c] - (double)lo[c] <= 2 * reach);
    }
    return may;
}

static bool is_far(const kiln_tile_core *core, const float *means, uint64_t n, uint64_t i)
{
    const double reach = core_reach(core);
    for (int c = 0; c < 3; c++)
        if (!(fabs((double)means[(uint64_t)c * n + i] - core->centre[c]) <= reach)) return true;
    return false;
}

/* Rows of work[from .. to), their longest side and its middle. */
typedef struct {
    uint32_t from, to;
} piece;

static double longest_side(const float *means, uint64_t n, const uint32_t *rows, const piece *p,
                           int *axis, double *middle)
{
    double longest = -1;
    for (int c = 0; c < 3; c++) {
        double lo = INFINITY, hi = -INFINITY;
        for (uint32_t i = p->from; i < p->to; i++) {
            const double v = (double)means[(uint64_t)c * n + rows[i]];
            lo = fmin(lo, v);
            hi = fmax(hi, v);
        }
        if (!(hi - lo > longest)) continue;
        longest = hi - lo;
        *axis = c;
        *middle = lo + (hi - lo) / 2;
    }
    return longest;
}

/* Rows up to the middle first, those on a side in their order. spare: room for the others. */
static uint32_t cut_piece(const float *values, double middle, uint32_t *rows, uint32_t *spare,
                          const piece *p)
{
    uint32_t border = p->from, behind = 0;
    for (uint32_t i = p->from; i < p->to; i++) {
        if ((double)values[rows[i]] <= middle)
            rows[border++] = rows[i];
        else
            spare[behind++] = rows[i];
    }
    for (uint32_t k = 0; k < behind; k++) rows[border + k] = spare[k];
    return border;
}

/* Cuts the piece whose side is longest, again and again. */
static uint32_t cut_pieces(double reach, const float *means, uint64_t n, uint32_t *rows,
                           uint32_t n_rows, uint32_t *spare, piece *pieces)
{
    uint32_t count = n_rows ? 1 : 0;
    pieces[0] = (piece){0, n_rows};
    while (count && count < KILN_TILE_PARTS) {
        int axis = 0, worst_axis = 0;
        double middle = 0, worst_middle = 0, worst = 2 * reach;
        uint32_t at = KILN_TILE_PARTS;
        for (uint32_t k = 0; k < count; k++) {
            const double side = longest_side(means, n, rows, &pieces[k], &axis, &middle);
            if (!(side > worst)) continue;
            worst = side;
            worst_axis = axis;
            worst_middle = middle;
            at = k;
        }
        if (at == KILN_TILE_PARTS) break; /* all are short enough */
        const uint32_t border =
            cut_piece(means + (uint64_t)worst_axis * n, worst_middle, rows, spare, &pieces[at]);
        /* two floats with no number between them */
        if (border == pieces[at].from || border == pieces[at].to) break;
        pieces[count++] = (piece){border, pieces[at].to};
        pieces[at].to = border;
    }
    return count;
}

/* Do the codes of one file hold the piece at all? */
static bool is_held(const float *means, uint64_t n, const uint32_t *rows, const piece *p)
{
    int axis;
    double middle;
    return longest_side(means, n, rows, p, &axis, &middle) <= 2 * most_reach;
}

/* The rows of piece `own` are the tile's; those of the others that are held become parts. */
static uint32_t number_parts(const float *means, uint64_t n, const uint32_t *rows,
                             const piece *pieces, uint32_t n_pieces, uint32_t own, uint8_t *part)
{
    uint32_t n_parts = 0;
    for (uint32_t k = 0; k < n_pieces; k++) {
        const bool held = k != own && is_held(means, n, rows, &pieces[k]);
        if (held) n_parts++;
        for (uint32_t i = pieces[k].from; i < pieces[k].to; i++)
            part[rows[i]] = k == own ? 0 : held ? (uint8_t)n_parts : KILN_TILE_LEFT_OUT;
    }
    return n_parts;
}

static uint32_t piece_of_most(const float *means, uint64_t n, const uint32_t *rows,
                              const piece *pieces, uint32_t n_pieces)
{
    uint32_t best = n_pieces, most = 0;
    for (uint32_t k = 0; k < n_pieces; k++) {
        const uint32_t count = pieces[k].to - pieces[k].from;
        if (count <= most || !is_held(means, n, rows, &pieces[k])) continue;
        best = k;
        most = count;
    }
    return best;
}

uint32_t kiln_tile_parts(const kiln_tile_core *core, uint32_t level, const float *means, uint64_t n,
                         uint8_t *part, uint32_t *work)
{
    piece pieces[KILN_TILE_PARTS + 1];
    const bool knows = kiln_tile_knows_core(core);
    uint32_t n_far = 0;
    for (uint64_t i = 0; i < n; i++) {
        const bool far = !knows || is_far(core, means, n, i);
        part[i] = far ? KILN_TILE_LEFT_OUT : 0;
        if (far) work[n_far++] = (uint32_t)i;
    }
    if (level > 0 && knows) return 0;
    const uint32_t n_pieces = cut_pieces(core_reach(core), means, n, work, n_far, work + n, pieces);
    const uint32_t own = knows ? n_pieces : piece_of_most(means, n, work, pieces, n_pieces);
    const uint32_t n_parts = number_parts(means, n, work, pieces, n_pieces, own, part);
    if (level == 0) return n_parts;
    for (uint64_t i = 0; i < n; i++) part[i] = part[i] ? KILN_TILE_LEFT_OUT : 0;
    return 0;
}
