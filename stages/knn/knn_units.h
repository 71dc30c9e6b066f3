/* knn_units -- what kiln-knn computes in its worker: the spacing of a layer, whole or in ranges,
 * colours of COLMAP's colourless points, and Gaussians from the points of a block. */
#ifndef KILN_STAGES_KNN_UNITS_H
#define KILN_STAGES_KNN_UNITS_H

#include "stages/engine/engine.h"

typedef enum {
    KILN_KNN_SPACING, /* of the whole layer at once */
    KILN_KNN_PARTITION,
    KILN_KNN_RANGE,
    KILN_KNN_BACK,
    KILN_KNN_COLOURS,
    KILN_KNN_INITIAL,
    KILN_KNN_FITS_DEVICE /* whether the device has room for the whole layer */
} kiln_knn_unit_kind;

/* The spacing of a layer in ranges: a partition in scratch, ranges of its places, and the way back
 * to groups of source blocks. */
typedef struct {
    kiln_hash scratch; /* key of the scratch folder */
    double root_centre[3], root_half;
    uint64_t ram; /* partition: host memory that it may take */
    uint64_t sum; /* of the records of its pages (pages.h). partition: that of the plan, 0: any */
    uint64_t range_rows, batch_rows, group_rows;
    uint64_t range; /* range: its number; back: how many there are */
    uint32_t page_rows;
    uint32_t first_block; /* back: of the group */
    uint32_t high;        /* back: the bin of the median (kernels/ranks) */
    bool of_plan;         /* range: the partition was made by a plan, on another host perhaps */
} kiln_knn_ranges;

/* Payload of all kinds; of a `back` unit the keys of all ranges follow. */
typedef struct {
    kiln_knn_unit_kind kind;
    uint32_t neighbors;     /* spacing */
    uint32_t block;         /* initial: index in the source layer */
    float fallback2, most2; /* spacing: what is stored where the value is not at most most2 */
    float opacity;          /* initial */
    /* initial: no point of the cloud has a colour, so those that no photo colours are grey */
    bool grey;
    /* spacing: means and values are in device memory, the host's has no room for them */
    bool on_device;
    kiln_hash source; /* digest of the layer */
    /* initial: key of the unit whose output called as the block is its spacing */
    kiln_hash spacing;
    /* initial: key of the colours unit where it coloured points of this block, else zero */
    kiln_hash colours;
    kiln_knn_ranges ranges;
} kiln_knn_unit;

/* Outputs: spacing and back: one f32 array per block, called as the block. spacing: counters min2,
 * median2, max2, fallbacks. partition: files in scratch (spatial/partition.h, pages.h), and `sum`,
 * u64. range: for each group with rows in it KILN_KNN_TO: the rows, counted from the group's first,
 * u32[n] ascending, and their spacing2, f32[n]; `ranks`, u32[KILN_RANK_BINS], pass 0 of
 * kernels/ranks; counters min2, max2, fallbacks, batches, candidates, queries. back: `ranks`, pass
 * 1. colours: for each block with points that got a colour their rows in the block, increasing,
 * u32[n], and their colours, f32[3][n]; counters points (without colour), coloured, photos (looked
 * at). initial: log_scales, quats, opacity_logits, sh0, and bounds (a kiln_bounds). */
#define KILN_KNN_TO "to %08u"               /* output name, from the group's first block */
#define KILN_KNN_COLOURED_ROWS "%.80s rows" /* output names, from the block's */
#define KILN_KNN_COLOURED_RGB "%.80s rgb"
kiln_status kiln_knn_compute(kiln_worker *w, const char *name, const void *payload,
                             size_t payload_bytes, kiln_error *err);

/* The group of blocks from `first`: consecutive ones until they have at least group_rows rows.
 * Returns the block after the last. */
uint32_t kiln_knn_group_end(const kiln_layer *source, uint32_t first, uint64_t group_rows,
                            uint64_t *rows);

/* What a unit says of its values. */
typedef struct {
    float min2, max2;
    uint64_t fallbacks;
} kiln_knn_summary;
/* Puts the fallback where a value is missing or useless. n_all: points of the layer. */
kiln_knn_summary kiln_knn_finish(float *spacing2, uint64_t n, uint64_t n_all,
                                 const kiln_knn_unit *u);
/* The counters of a unit over the whole layer. */
kiln_status kiln_knn_put_summary(kiln_worker *w, const kiln_knn_summary *s, float median2,
                                 kiln_error *err) KILN_MUST_CHECK;

/* The units about spacing (spacing_units.c). keys: of a `back` unit's ranges. */
kiln_status kiln_knn_whole(kiln_worker *w, const kiln_layer *source, const kiln_knn_unit *u,
                           kiln_error *err) KILN_MUST_CHECK;
/* The same, in device memory: the host's has room for KILN_KNN_PIECE_ROWS values, a block, and the
 * packed outputs (kiln_knn_on_device_ram). KILN_E_CAP: the device has no room. kiln_knn_fits_device
 * says whether it has: output `fits`, a byte, 1 or 0.
 */
enum { KILN_KNN_PIECE_ROWS = 1 << 21 };
uint64_t kiln_knn_on_device_ram(const kiln_layer *source);
kiln_status kiln_knn_on_device(kiln_worker *w, const kiln_layer *source, const kiln_knn_unit *u,
                               kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_knn_fits_device(kiln_worker *w, const kiln_layer *source, const kiln_knn_unit *u,
                                 kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_knn_partition(kiln_worker *w, const kiln_layer *source, const kiln_knn_unit *u,
                               kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_knn_range(kiln_worker *w, const kiln_layer *source, const kiln_knn_unit *u,
                           kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_knn_back(kiln_worker *w, const kiln_layer *source, const kiln_knn_unit *u,
                          const kiln_hash *keys, kiln_error *err) KILN_MUST_CHECK;

/* The unit of colours (colours.c). */
/* Host memory: of what a point sums up; of a camera's photo and mask, which are decoded one after
 * the other. */
enum { KILN_KNN_SUM_RAM = 40 };
uint64_t kiln_knn_photo_ram(const kiln_camera *c);
kiln_status kiln_knn_colours(kiln_worker *w, const kiln_layer *source,
                             kiln_error *err) KILN_MUST_CHECK;

#endif
