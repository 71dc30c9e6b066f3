/* rad_relate_test -- the row above each row: of levels that kiln_coarsen makes, and of merges made
 * by hand. */
#include "kernels/coarsen/coarsen.h"
#include "stages/formats/rad/rad_relate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 3000, LEVELS = 4 };

static uint64_t state = 7;
static float next(void) /* -1 .. 1 */
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)(int32_t)(state >> 32) * 0x1p-31f;
}

static void *capacity(uint64_t n)
{
    void *p = calloc(n, 4);
    assert_non_null(p);
    return p;
}

static kiln_coarsen_rows new_rows(uint64_t n)
{
    return (kiln_coarsen_rows){.n = n,
                               .means = capacity(3 * n),
                               .log_scales = capacity(3 * n),
                               .quats = capacity(4 * n),
                               .opacity_logits = capacity(n),
                               .sh0 = capacity(3 * n),
                               .weights = capacity(n),
                               .source_first = capacity(n),
                               .source_last = capacity(n),
                               .source_count = capacity(n)};
}

static void free_rows(kiln_coarsen_rows *r)
{
    free(r->means);
    free(r->log_scales);
    free(r->quats);
    free(r->opacity_logits);
    free(r->sh0);
    free(r->weights);
    free(r->source_first);
    free(r->source_last);
    free(r->source_count);
}

/* Sources in an order that has nothing to do with places. */
static void fill(kiln_coarsen_rows *r)
{
    for (uint64_t i = 0; i < r->n; i++) {
        for (uint64_t c = 0; c < 3; c++) {
            r->means[c * r->n + i] = next();
            r->log_scales[c * r->n + i] = -4 + next();
            r->sh0[c * r->n + i] = next();
        }
        for (uint64_t c = 0; c < 4; c++) r->quats[c * r->n + i] = next();
        r->opacity_logits[i] = 3 * next();
        r->source_first[i] = r->source_last[i] = (uint32_t)(i * 1789 % ROWS);
        r->source_count[i] = 1;
    }
    kiln_coarsen_weights(r);
}

/* means as rad_relate has them; the rest is borrowed. */
static kiln_rad_level level_of(const kiln_coarsen_rows *r)
{
    kiln_rad_level l = {.n = r->n,
                        .means = capacity(3 * r->n),
                        .weights = r->weights,
                        .first = r->source_first,
                        .last = r->source_last,
                        .count = r->source_count};
    for (uint64_t i = 0; i < r->n; i++)
        for (uint64_t c = 0; c < 3; c++) l.means[3 * i + c] = r->means[c * r->n + i];
    return l;
}

/* Rows above of which count and weight are those of the rows below; of these all must have the ends
 * among them. */
static uint64_t whole(const kiln_rad_level *fine, const kiln_rad_level *coarse,
                      const uint32_t *parent)
{
    uint64_t n = 0;
    for (uint64_t k = 0; k < coarse->n; k++) {
        uint32_t count = 0, first = UINT32_MAX, last = 0;
        double weight = 0;
        for (uint64_t i = 0; i < fine->n; i++) {
            if (parent[i] != k) continue;
            count += fine->count[i];
            weight += (double)fine->weights[i];
            first = fine->first[i] < first ? fine->first[i] : first;
            last = fine->last[i] > last ? fine->last[i] : last;
        }
        assert_true(count > 0);
        n += count == coarse->count[k] && first == coarse->first[k] && last == coarse->last[k] &&
             fabs(weight - (double)coarse->weights[k]) < 1e-4 * weight;
    }
    return n;
}

static void levels_are_related_as_they_were_merged(void **unused)
{
    (void)unused;
    const uint64_t counts[LEVELS] = {ROWS / 2, ROWS / 4, ROWS / 8, ROWS / 16};
    kiln_coarsen_rows rows[LEVELS + 1] = {new_rows(ROWS)};
    const size_t bytes = kiln_coarsen_bytes(ROWS, 0, LEVELS);
    void *work = malloc(bytes);
    assert_non_null(work);
    fill(&rows[0]);
    for (int k = 0; k < LEVELS; k++) rows[k + 1] = new_rows(counts[k]);
    assert_int_equal(kiln_coarsen(&rows[0], &(kiln_coarsen_levels){LEVELS, counts, rows + 1}, work,
                                  bytes, 1, NULL),
                     KILN_OK);
    for (int k = 0; k < LEVELS; k++) {
        kiln_rad_level fine = level_of(&rows[k]), coarse = level_of(&rows[k + 1]);
        uint32_t *parent = capacity(fine.n);
        assert_int_equal(kiln_rad_relate(&fine, &coarse, parent, NULL), KILN_OK);
        const uint64_t n = whole(&fine, &coarse, parent);
        print_message("level %d: %llu of %llu\n", k + 1, (unsigned long long)n,
                      (unsigned long long)coarse.n);
        assert_true(n >= coarse.n - coarse.n / 100);
        free(parent);
        free(fine.means);
        free(coarse.means);
    }
    for (int k = 0; k <= LEVELS; k++) free_rows(&rows[k]);
    free(work);
}

/* Rows 1 and 2 lie between the ends of both merges, each nearer to the wrong one: their weights
 * tell. */
static void a_row_between_is_known_by_its_weight(void **unused)
{
    (void)unused;
    float fine_means[18] = {0, 0, 0, 9, 0, 0, 1, 0, 0, 2, 0, 0, 10, 0, 0, 12, 0, 0},
          coarse_means[6] = {1, 0, 0, 10, 0, 0};
    float fine_weights[6] = {1, 2, 5, 1, 1, 1}, coarse_weights[2] = {4, 7};
    uint32_t first[6] = {0, 10, 11, 20, 1, 21}, one[6] = {1, 1, 1, 1, 1, 1}, parent[6];
    uint32_t coarse_first[2] = {0, 1}, coarse_last[2] = {20, 21}, coarse_count[2] = {3, 3};
    const kiln_rad_level fine = {6, fine_means, fine_weights, first, first, one};
    const kiln_rad_level coarse = {2,           coarse_means, coarse_weights, coarse_first,
                                   coarse_last, coarse_count};
    const uint32_t expected[6] = {0, 0, 1, 0, 1, 1};
    assert_int_equal(kiln_rad_relate(&fine, &coarse, parent, NULL), KILN_OK);
    assert_memory_equal(parent, expected, sizeof expected);
}

/* What no levels of ours have: every row still gets a row above. */
static void rows_that_fit_nowhere_go_to_the_nearest(void **unused)
{
    (void)unused;
    float fine_means[9] = {5, 0, 0, 0, 0, 0, 4.9f, 0, 0}, coarse_means[6] = {0, 0, 0, 5, 0, 0},
          weights[3] = {1, 1, 1};
    uint32_t first[3] = {7, 8, 9}, count[3] = {1, 1, 1}, other[2] = {100, 200}, one[2] = {1, 1},
             parent[3];
    const kiln_rad_level fine = {3, fine_means, weights, first, first, count};
    const kiln_rad_level coarse = {2, coarse_means, weights, other, other, one};
    const uint32_t expected[3] = {1, 0, 1};
    assert_int_equal(kiln_rad_relate(&fine, &coarse, parent, NULL), KILN_OK);
    assert_memory_equal(parent, expected, sizeof expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_are_related_as_they_were_merged),
        cmocka_unit_test(a_row_between_is_known_by_its_weight),
        cmocka_unit_test(rows_that_fit_nowhere_go_to_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
