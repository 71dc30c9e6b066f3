/* compare -- parts of kiln-compare: how alike two pictures are, and which pictures of two folders
 * belong together. */
#ifndef KILN_STAGES_COMPARE_COMPARE_H
#define KILN_STAGES_COMPARE_COMPARE_H

#include "base/status.h"
#include "kernels/ops.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint32_t x, y, width, height;
} kiln_compare_rect;

typedef struct {
    uint32_t width, height; /* of what was compared */
    /* psnr is infinite for equal pictures; ssim_valid NAN below 11 pixels */
    kiln_metrics colour;
    bool has_alpha;
    double psnr_rgba;
    uint32_t n_a, n_b; /* channels in the means */
    double mean_a[4], mean_b[4];
} kiln_comparison;

/* Compares two pictures, or the part of A with B; rect may be NULL. B is then the part, or as large
 * as A. KILN_E_INPUT: a file is no picture, or the sizes do not fit; KILN_E_USAGE: the part does
 * not lie in A. */
kiln_status kiln_compare_pictures(const char *path_a, const char *path_b,
                                  const kiln_compare_rect *rect, unsigned threads,
                                  kiln_comparison *out, kiln_error *err) KILN_MUST_CHECK;

/* A picture of two folders by its name in them, "train/r_0.png"; NULL on the side where there is
 * none. */
typedef struct {
    char *a, *b;
} kiln_compare_pair;
typedef struct {
    kiln_compare_pair *pair; /* owned; in the order of the names */
    size_t n;
} kiln_picture_pairs;

/* Finds the pictures (.png, .jpg, .jpeg, .npy) of two folders and the folders in them. Two of the
 * same name are a pair; so are two of the same name but for the suffix, where each folder has just
 * one of them left. KILN_E_IO: a folder cannot be read. */
kiln_status kiln_compare_folders(const char *a, const char *b, kiln_picture_pairs *out,
                                 kiln_error *err) KILN_MUST_CHECK;
void kiln_picture_pairs_release(kiln_picture_pairs *p);

#endif
