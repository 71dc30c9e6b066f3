/* pages -- the partition of a layer along the curve (stages/spatial), cut into pages, with a record
 * of each: its box, and sums of its bytes. It lies in a scratch folder, perhaps of another host, so
 * what is read of it is compared with these sums, and the records are compared with a sum that the
 * parent has from who made them: damage is an error, never a wrong value. Files that an earlier run
 * has left are checked by their seals (stages/spatial/seal.h) before that sum is made of them.
 *
 * The file pages-ROWS of the folder, in the byte order of the machine, has for each page
 *
 *   f32 [6]  the lower and upper corner of its box
 *   u64 [2]  the first 8 bytes of the hashes of its means, and of its rows
 *
 * A handle belongs to one thread. KILN_E_IO: damaged, missing, or the disk is full. */
#ifndef KILN_STAGES_KNN_PAGES_H
#define KILN_STAGES_KNN_PAGES_H

#include "stages/knn/reach.h"
#include "stages/spatial/partition.h"

enum { KILN_KNN_PAGE_BYTES = 40 }; /* of a record, on the disk and in memory */

typedef struct {
    kiln_spatial_file places;
    uint32_t page_rows; /* of all pages but the last */
    uint64_t n_pages;
    kiln_knn_box *boxes; /* [n_pages] */
    uint64_t (*sums)[2]; /* [n_pages] of means, of rows */
    bool damaged;        /* something that was read is not what was written */
} kiln_knn_pages;

/* Makes the records of a partition of n places that is there; *sum is that of all records. Where
 * they are there and sound, only *sum is made. */
kiln_status kiln_knn_pages_make(const char *folder, uint64_t n, uint32_t page_rows, uint64_t *sum,
                                kiln_error *err) KILN_MUST_CHECK;
/* Removes the partition and the records, so that they are made again. */
void kiln_knn_pages_remove(const char *folder, uint32_t page_rows);
/* sum: of kiln_knn_pages_make. On failure there is nothing to close. */
kiln_status kiln_knn_pages_open(const char *folder, uint64_t n, uint32_t page_rows, uint64_t sum,
                                kiln_knn_pages *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_knn_pages_close(kiln_knn_pages *p); /* all zero: nothing */
/* Reads places [first, first + count), which are whole pages: means as [count][3], or rows. */
kiln_status kiln_knn_pages_means(kiln_knn_pages *p, uint64_t first, uint64_t count, float *xyz,
                                 kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_knn_pages_rows(kiln_knn_pages *p, uint64_t first, uint64_t count, uint32_t *rows,
                                kiln_error *err) KILN_MUST_CHECK;

#endif
