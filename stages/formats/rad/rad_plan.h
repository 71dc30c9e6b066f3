/* rad_plan -- the order of rows in a RAD file of Spark (rad.h), and what its rounds hand to one
 * another.
 *
 * RAD holds a tree of rows: each row but the first has a row above that stands for it and its
 * siblings, which lie behind each other (child_start, child_count). Here the row above is what a
 * row was merged into, one level up (rad_relate.h). The rows of the root's coarsest level have rows
 * above that only RAD has: of eight each, of eight of those, ..., up to one.
 *
 * A *segment* is a set of rows that lie together: all rows below one chunk of levels, that is, the
 * next finer level of the same node, or the coarsest levels of its children. Within it rows are
 * sorted by the row above. Segments follow in the order of the levels above them, coarse to fine,
 * those of a level in the tree's order. So a view from afar needs the first chunks of the file
 * alone, and one from nearby, of each level the few chunks where it looks.
 *
 * The plan is plain bytes. */
#ifndef KILN_STAGES_FORMATS_RAD_RAD_PLAN_H
#define KILN_STAGES_FORMATS_RAD_RAD_PLAN_H

#include "stages/formats/rad/rad.h"
#include "stages/formats/writer.h"

enum { KILN_RAD_FAN = 8, KILN_RAD_TOPS = 12 /* 8^12 rows and more */ };
#define KILN_RAD_NO_CHUNK UINT32_MAX

typedef struct {
    uint64_t base; /* place of its first row in the file */
    uint64_t n;    /* rows */
    /* e->chunks: the rows above; KILN_RAD_NO_CHUNK: those that only RAD has */
    uint32_t parent;
    uint32_t first, n_chunks; /* its chunks in the list of members */
} kiln_rad_segment;

/* How values are coded, of all chunks alike. */
typedef struct {
    /* what Spark's codes of 8 bits reach; the file has finer ones */
    float rgb_lo, rgb_hi, scale_lo, scale_hi;
    float sh_max[KILN_RAD_DEGREE_MAX]; /* by degree: codes -127 .. 127 */
} kiln_rad_coding;

/* Counts of values in equal steps, from which the coding is chosen. */
enum { KILN_RAD_BINS = 1024 };
typedef struct {
    uint64_t rgb[KILN_RAD_BINS], scales[KILN_RAD_BINS], sh[KILN_RAD_DEGREE_MAX][KILN_RAD_BINS];
} kiln_rad_counts;

typedef struct {
    uint64_t rows; /* of the file */
    /* [0]: rows of the root's coarsest level; above: those that stand for eight, up to 1 */
    uint64_t n_top[KILN_RAD_TOPS];
    uint32_t n_tops; /* how many of these sizes there are */
    uint32_t n_segments, n_members;
    kiln_rad_coding coding;
    kiln_rad_counts counts;
    uint64_t segments; /* offset of kiln_rad_segment[n_segments] */
    uint64_t members;  /* u32[n_members]: e->chunks */
    uint64_t sizes;    /* u64[chunks of the file]: bytes of each, behind round 3 */
} kiln_rad_head;

#define KILN_RAD_AT(plan, type, offset) ((type *)(void *)((char *)(uintptr_t)(plan) + (offset)))

kiln_status kiln_rad_plan_begin(const kiln_export *e, kiln_buffer *plan,
                                kiln_error *err) KILN_MUST_CHECK;
/* Place in the file of the first row of top size t; 0: of the first segment. */
uint64_t kiln_rad_top_base(const kiln_rad_head *h, uint32_t t);
static inline uint64_t kiln_rad_chunks(const kiln_rad_head *h)
{
    return (h->rows + KILN_RAD_CHUNK - 1) / KILN_RAD_CHUNK;
}

/* Adds values: rgb in -1.5 .. 2.5, logs of scales in -24 .. 16, sizes of coefficients in 0 .. 2;
 * what is beyond counts at the end.
 */
void kiln_rad_count_rgb(kiln_rad_counts *c, double v);
void kiln_rad_count_scale(kiln_rad_counts *c, double v);
void kiln_rad_count_sh(kiln_rad_counts *c, uint32_t degree, double v);
void kiln_rad_choose(const kiln_rad_counts *c, kiln_rad_coding *out);

#endif
