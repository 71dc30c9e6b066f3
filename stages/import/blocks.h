/* blocks -- the units of import: 65,536 source rows, read again, sanitised and put as planes; and
 * the root cube, which needs all of them. Requests travel to the worker as they lie in memory: it
 * is the same executable.
 */
#ifndef KILN_STAGES_IMPORT_BLOCKS_H
#define KILN_STAGES_IMPORT_BLOCKS_H

#include "base/file.h"
#include "kernels/similarity/similarity.h"
#include "stages/engine/engine.h"
#include "stages/formats/clean_rows.h"
#include "stages/formats/spool.h"

/* A column that joined files have and this one lacks. */
enum { KILN_ZEROS_MAX = 16 };
typedef struct {
    char name[64];
    kiln_type type;
} kiln_zeros;

typedef struct {
    kiln_place place; /* its path is "" with the reader "random" */
    /* as it was hashed: the unit's key says so, its bytes must be of that state */
    kiln_file_info file;
    char reader[32];
    uint64_t block, first, n, offset;
    double origin[3];
    uint8_t keep[KILN_EXTRAS_MAX];
    uint64_t seed; /* random points */
    double box[6];
    /* What files have in common that are joined, and how this one's rows are moved; see join.h. */
    uint64_t row; /* in the scene, of row `first` of the file */
    kiln_similarity move;
    uint32_t sh_degree; /* at least the file's */
    bool has_rgb;
    uint32_t n_zeros;
    kiln_zeros zeros[KILN_ZEROS_MAX]; /* behind the file's extras; keep counts them on */
} kiln_block_request;
#define KILN_RANDOM_READER "random"

/* Output "stats" of a block; the others are named as planes. Counters: rows, dropped, clamped,
 * dropped_rows (the first 100). */
typedef struct {
    uint64_t n;
    float box_min[3], box_max[3]; /* of means; 0 when n is */
    float max_log_scale, max_opacity_logit;
} kiln_block_stats;
/* Host memory that the unit takes: rows, reader (NULL: random points), outputs. */
uint64_t kiln_block_ram(const kiln_reader *reader, const kiln_source_info *info,
                        const uint8_t keep[KILN_EXTRAS_MAX]);
kiln_status kiln_block_unit(kiln_worker *w, const kiln_block_request *q,
                            kiln_error *err) KILN_MUST_CHECK;

/* Blocks outside of that unit: read again and sanitised, for whoever stores no planes. A reader is
 * of one file, which it keeps open. Its rows are those of the block that was read last. */
typedef struct kiln_block_reader kiln_block_reader;
kiln_status kiln_block_reader_open(const kiln_block_request *q, kiln_block_reader **out,
                                   kiln_error *err) KILN_MUST_CHECK;
/* The worker's, kept as its state. */
kiln_status kiln_block_reader_of(kiln_worker *w, const kiln_block_request *q,
                                 kiln_block_reader **out, kiln_error *err) KILN_MUST_CHECK;
void kiln_block_reader_free(kiln_block_reader *b); /* accepts NULL */
/* b may be NULL. */
bool kiln_block_reader_is_of(const kiln_block_reader *b, const kiln_block_request *q);
/* The rows of the file, as they are. KILN_E_INPUT: the file is not that of the plan. */
kiln_status kiln_block_read_raw(kiln_block_reader *b, const kiln_block_request *q,
                                kiln_error *err) KILN_MUST_CHECK;
/* borrowed */
void kiln_block_raw(const kiln_block_reader *b, const kiln_source_info **info,
                    const kiln_rows **rows);
/* Moved and sanitised; adds to counts. */
kiln_status kiln_block_read(kiln_block_reader *b, const kiln_block_request *q, unsigned threads,
                            kiln_row_counts *counts, kiln_error *err) KILN_MUST_CHECK;
void kiln_block_stats_of(const kiln_block_reader *b, kiln_block_stats *out);
/* Calls each for each plane that the layer gets of this block; data are the reader's, and change
 * with the next block. */
typedef kiln_status kiln_block_plane_fn(void *context, const char *name, const void *data,
                                        uint64_t bytes, uint32_t elem, kiln_error *err);
kiln_status kiln_block_planes(const kiln_block_reader *b, const kiln_block_request *q,
                              kiln_block_plane_fn *each, void *context,
                              kiln_error *err) KILN_MUST_CHECK;
/* The unit of a block whose planes are not stored: their names and the statistics alone. */
kiln_status kiln_block_measure(kiln_worker *w, const kiln_block_request *q,
                               kiln_error *err) KILN_MUST_CHECK;
#define KILN_BLOCK_UNIT "block "       /* begins the names of such units */
#define KILN_PLANE_NAMES "plane names" /* output: names, each ended by NUL */

/* Request of the cube unit: one of these per block. */
typedef struct {
    kiln_hash means;
    uint64_t n;
} kiln_cube_part;
typedef struct {
    double centre[3], half;
    float inner_lo[3], inner_hi[3]; /* central 96 %: what synthetic cameras frame */
} kiln_cube;
/* Host memory: counts, and the means of a block with what reading them takes. Each further thread
 * takes as much, and KILN_CONNECTION_RAM. */
uint64_t kiln_cube_ram(uint64_t largest_block);
/* Output "cube". */
kiln_status kiln_cube_unit(kiln_worker *w, const kiln_cube_part *parts, uint64_t n,
                           kiln_error *err) KILN_MUST_CHECK;

/* The root cube from the 0.1 % and 99.9 % nearest ranks of each axis. Half its edge is the least
 * power of two that is at least 1.01 times the largest half range, and 2^-20; its centre is the
 * middle of the ranks, rounded to 1/1024 of that. Means outside take the nearest border cell, so
 * one outlier costs nothing. */
void kiln_root_cube(const float lo[3], const float hi[3], double centre[3], double *half);

#endif
