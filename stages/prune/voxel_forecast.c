/* voxel_forecast -- the refusal of a search that would take too long, and the size that would do.
 *
 * Two counts bound a search:
 *
 *   asked     blocks that rows ask for in first passes. What one round asks for at most is foretold
 *             before any pass.
 *   meetings  wanted blocks that boxes of rows meet in second passes. Of a cluster they are most of
 *             the time, as all of a block is wanted, and they are foretold from a sample of blocks.
 *             Of floaters nothing foretells them.
 *
 * Both may be so many a row on average, or what a small scene may have in all. Neither depends on
 * parts or threads, because each block is in one part. What a cluster may be foretold is what takes
 * as long as the most that floaters may ask for. */
#include "stages/prune/voxel_search.h"

#include "stages/prune/rules.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASKED_OF_ROW 0x1p7
#define ASKED_OF_SCENE 0x1p24
#define MEETINGS_OF_ROW 0x1p12
#define MEETINGS_OF_SCENE 0x1p29
#define FORETOLD_OF_ROW 0x1p10
#define FORETOLD_OF_SCENE 0x1p27

enum { SAMPLE = 512 }; /* blocks at most */

typedef struct {
    const kiln_voxel_search *s;
    kiln_voxel_grid grid;
    kiln_voxel_table sample; /* one of 2^thinned of the blocks that rows meet */
    int thinned;
} forecast;

/* ---- counts ---------------------------------------------------------------------------------- */
static double asked_of_row(forecast *f, const kiln_voxel_row *row)
{
    (void)f;
    return (double)kiln_voxel_box_count(&row->meets);
}

static double touched_of_row(forecast *f, const kiln_voxel_row *row)
{
    (void)f;
    return (double)kiln_voxel_box_count(&row->touches);
}

static bool is_in_sample(const forecast *f, uint64_t key)
{
    /* the finalizer of MurmurHash3: keys of neighbours have nothing in common afterwards */
    key = (key ^ key >> 33) * 0xff51afd7ed558ccdu;
    key = (key ^ key >> 33) * 0xc4ceb9fe1a85ec53u;
    key ^= key >> 33;
    return (key & ((1ull << f->thinned) - 1)) == 0;
}

static double take_in_sample(forecast *f, const kiln_voxel_row *row)
{
    const kiln_voxel_box *box = &row->meets;
    int32_t at[3];
    for (at[2] = box->lo[2]; at[2] <= box->hi[2]; at[2]++)
        for (at[1] = box->lo[1]; at[1] <= box->hi[1]; at[1]++)
            for (at[0] = box->lo[0]; at[0] <= box->hi[0]; at[0]++) {
                const uint64_t key = kiln_voxel_key(at);
                if (is_in_sample(f, key)) (void)kiln_voxel_table_take(&f->sample, key);
            }
    return 0;
}

static double met_of_row(forecast *f, const kiln_voxel_row *row)
{
    const kiln_voxel_box *box = &row->touches;
    double met = 0;
    int32_t at[3];
    if (kiln_voxel_box_count(box) > f->sample.n) {
        for (uint32_t i = 0; i < f->sample.n; i++) {
            kiln_voxel_unkey(f->sample.blocks[i], at);
            met += kiln_voxel_box_has(box, at) ? 1 : 0;
        }
        return met;
    }
    for (at[2] = box->lo[2]; at[2] <= box->hi[2]; at[2]++)
        for (at[1] = box->lo[1]; at[1] <= box->hi[1]; at[1]++)
            for (at[0] = box->lo[0]; at[0] <= box->hi[0]; at[0]++) {
                const uint64_t key = kiln_voxel_key(at);
                if (is_in_sample(f, key) &&
                    kiln_voxel_table_find(&f->sample, key) != KILN_VOXEL_NONE)
                    met++;
            }
    return met;
}

/* Counts are whole, and exact where a limit lies, so the order of threads changes nothing. */
static kiln_status sum_of_rows(forecast *f, double (*fn)(forecast *f, const kiln_voxel_row *row),
                               double *out, kiln_error *err)
{
    const kiln_voxel_search *s = f->s;
    double sum = 0;
    for (uint32_t b = 0; b < s->in->layer->n_chunks; b++) {
        kiln_geometry rows;
        if (s->in->layer->chunks[b].count == 0) continue;
        KILN_TRY(kiln_prune_geometry(s->w, s->in, b, &rows, err));
#pragma omp parallel for num_threads(s->threads) schedule(dynamic, KILN_VOXEL_ROWS_AT_A_TIME) \
    reduction(+ : sum)
        for (uint64_t i = 0; i < rows.n; i++) {
            kiln_voxel_row row;
            if (kiln_voxel_table_is_full(&f->sample)) continue; /* it is begun again */
            kiln_voxel_row_get(&f->grid, &rows, i, &row);
            if (row.inside) sum += fn(f, &row);
        }
    }
    *out = sum;
    return KILN_OK;
}

/* ---- too much work --------------------------------------------------------------------------- */
static double most_of(const kiln_voxel_search *s, double of_scene, double of_row)
{
    return fmax(of_scene, of_row * (double)s->in->layer->count);
}

static bool asks_too_much(const kiln_voxel_search *s, double asked)
{
    return asked > most_of(s, ASKED_OF_SCENE, ASKED_OF_ROW);
}

bool kiln_voxel_search_meets_too_often(kiln_voxel_search *s)
{
    uint64_t meetings;
#pragma omp atomic read
    meetings = s->meetings;
    return (double)meetings > most_of(s, MEETINGS_OF_SCENE, MEETINGS_OF_ROW);
}

/* Blocks are sampled by their key alone, the more thinly the more there are. */
static kiln_status foretell_meetings(forecast *f, double *out, kiln_error *err)
{
    double none, met;
    KILN_TRY(kiln_voxel_table_make(SAMPLE, false, &f->sample, err));
    for (f->thinned = 0;; f->thinned++) {
        kiln_voxel_table_clear(&f->sample);
        KILN_TRY(sum_of_rows(f, take_in_sample, &none, err));
        if (!kiln_voxel_table_is_full(&f->sample)) break;
    }
    KILN_TRY(sum_of_rows(f, met_of_row, &met, err));
    *out = ldexp(met, f->thinned);
    return KILN_OK;
}

/* Would a search in voxels of this size be too much work? */
static kiln_status is_too_small(const kiln_voxel_search *s, double size, bool *out, kiln_error *err)
{
    const double most = most_of(s, FORETOLD_OF_SCENE, FORETOLD_OF_ROW);
    forecast f = {.s = s, .grid = kiln_voxel_grid_of(size, s->o.origin, s->middle)};
    double sum;
    kiln_status st;
    KILN_GO(sum_of_rows(&f, asked_of_row, &sum, err));
    *out = asks_too_much(s, sum);
    if (*out || !s->o.cluster) goto done;
    KILN_GO(sum_of_rows(&f, touched_of_row, &sum, err)); /* no more are met */
    if (sum > most) KILN_GO(foretell_meetings(&f, &sum, err));
    *out = sum > most;
done:
    kiln_voxel_table_release(&f.sample);
    return st;
}

/* ---- the size that would do ------------------------------------------------------------------ */
/* Sizes of two digits by number: 10e-11, 11e-11, ... 99e-11, 10e-10, ... */
enum { SIZES_OF_DECADE = 90, LEAST_DECADE = -11 };

static double size_of_number(int number)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%de%d", 10 + number % SIZES_OF_DECADE,
                   LEAST_DECADE + number / SIZES_OF_DECADE);
    return strtod(text, NULL);
}

/* The first that is not below `least`, which is 1e-9 or more. */
static int number_of_size(double least)
{
    int number = SIZES_OF_DECADE * ((int)floor(log10(least)) - 2 - LEAST_DECADE);
    while (size_of_number(number) < least) number++;
    return number;
}

/* The smallest size of two digits that would do and is not below `least`. It is looked for from
 * powers of ten on, so that it is the same whatever was asked. */
static kiln_status find_size(const kiln_voxel_search *s, double least, double *out, kiln_error *err)
{
    const int first = number_of_size(least);
    int lo = (first - 1) / SIZES_OF_DECADE * SIZES_OF_DECADE, hi = lo;
    bool small = true;
    while (small) {
        lo = hi;
        hi += SIZES_OF_DECADE;
        KILN_TRY(is_too_small(s, size_of_number(hi), &small, err));
    }
    while (hi - lo > 1) {
        const int mid = lo + (hi - lo) / 2;
        KILN_TRY(is_too_small(s, size_of_number(mid), &small, err));
        *(small ? &lo : &hi) = mid;
    }
    for (small = hi < first; small;) {
        hi = hi < first ? first : hi + 1;
        KILN_TRY(is_too_small(s, size_of_number(hi), &small, err));
    }
    *out = size_of_number(hi);
    return KILN_OK;
}

/* As few digits as give x back. */
static void add_number(char *to, size_t bytes, double x)
{
    char text[32] = "";
    const size_t used = strlen(to);
    for (int digits = 1; digits <= 17 && (digits == 1 || strtod(text, NULL) != x); digits++)
        (void)snprintf(text, sizeof text, "%.*g", digits, x);
    (void)snprintf(to + used, bytes - used, ",%s", text);
}

/* The OPACITY and MIN that are not the option's own. */
static kiln_status name_rest(const kiln_voxel_search *s, char *out, size_t bytes, kiln_error *err)
{
    kiln_voxel_rule own;
    KILN_TRY(
        (s->o.cluster ? kiln_filter_cluster_parse : kiln_filter_floaters_parse)("on", &own, err));
    *out = '\0';
    if (s->o.opacity != own.opacity || s->o.min != own.min) add_number(out, bytes, s->o.opacity);
    if (s->o.min != own.min) add_number(out, bytes, s->o.min);
    return KILN_OK;
}

static kiln_status refuse_size(const kiln_voxel_search *s, double least, kiln_error *err)
{
    const char *option = s->o.cluster ? "cluster" : "floaters";
    char rest[80];
    double size;
    KILN_TRY(name_rest(s, rest, sizeof rest, err));
    KILN_TRY(find_size(s, least, &size, err));
    return kiln_fail(err, KILN_E_INPUT,
                     "--filter-%s: voxels of %g are so small for the scene's Gaussians that the "
                     "search would take too long; take --filter-%s %g%s",
                     option, s->o.size, option, size, rest);
}

kiln_status kiln_voxel_search_check_size(const kiln_voxel_search *s, kiln_error *err)
{
    bool small;
    KILN_TRY(is_too_small(s, s->o.size, &small, err));
    return small ? refuse_size(s, s->o.size * (1 + 1e-9), err) : KILN_OK;
}

kiln_status kiln_voxel_search_check_work(kiln_voxel_search *s, kiln_error *err)
{
    if (!asks_too_much(s, (double)s->asked) && !kiln_voxel_search_meets_too_often(s))
        return KILN_OK;
    return refuse_size(s, 2 * s->o.size, err);
}
