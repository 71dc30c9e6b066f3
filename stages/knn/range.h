/* range -- the spacing of a range of places of a cloud that is larger than memory, exact.
 *
 * The range's own points ask each other first (the operation knn). Then each knows how far it must
 * look at most, and pages of other places that come nearer than that are read, nearest first, in
 * batches of at most batch_rows points, and asked by the points that they may improve (knn_join),
 * until no page is left that may improve any. Usually that is one batch of the pages around the
 * range; a point far from everything costs one more, because the nearest pages shrink its bound.
 * Bits do not depend on ranges, pages or batches; how much is read does.
 */
#ifndef KILN_STAGES_KNN_RANGE_H
#define KILN_STAGES_KNN_RANGE_H

#include "kernels/runner.h"
#include "stages/knn/reach.h"

/* Places [first, first + count), which are whole pages, into xyz [count][3]. */
typedef kiln_status kiln_range_read_fn(void *context, uint64_t first, uint64_t count, float *xyz,
                                       kiln_error *err);

typedef struct {
    uint64_t n;          /* places of the cloud */
    uint64_t begin, end; /* of the range; begin is the first place of a page, end too or n */
    uint32_t k;
    uint32_t page_rows;
    uint64_t batch_rows;       /* at least page_rows */
    const kiln_knn_box *pages; /* [kiln_range_pages(n, page_rows)] */
    kiln_range_read_fn *read;
    void *context;
    kiln_runner *runner;
    unsigned threads;
    /* the answer is the mean distance (kiln_knn_mean_distance), not the mean squared one */
    bool distances;
} kiln_knn_span;

typedef struct {
    uint64_t batches, candidates, queries; /* queries: of all batches together */
} kiln_range_use;

uint64_t kiln_range_pages(uint64_t n, uint32_t page_rows);
/* Pages so small that the halo is thin, and so large that their boxes are few. */
uint32_t kiln_range_page_rows(uint64_t n, uint64_t range_rows);
/* Host memory that an answer takes at most, the operations' own included, `spacing2` not. */
uint64_t kiln_range_ram(uint64_t range_rows, uint64_t batch_rows, uint64_t n_pages, uint32_t k);
/* spacing2 [end - begin], in the order of places. */
kiln_status kiln_range_answer(const kiln_knn_span *g, float *spacing2, kiln_range_use *use,
                              kiln_error *err) KILN_MUST_CHECK;

#endif
