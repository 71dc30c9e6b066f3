/* prune_units -- what a worker of kiln-prune computes: statistics of the input, which rows are
 * near-duplicates, which rows of a block limits that are `auto` would touch and what they hold of a
 * camera's pairs, the pruned planes of a block, pairs of a camera before and after, the scales of
 * another bake. */
#ifndef KILN_STAGES_PRUNE_UNITS_H
#define KILN_STAGES_PRUNE_UNITS_H

#include "base/file.h"
#include "kernels/undistort/undistort.h"
#include "stages/engine/parent/run_layers.h"
#include "stages/frame/ahead.h"
#include "stages/frame/frame.h"
#include "stages/prune/rules.h"
#include "stages/select/filters.h"
#include "stages/engine/memory/plane_cache.h"

typedef enum {
    KILN_PRUNE_STATS,  /* out: "statistics", a kiln_prune_stats */
    KILN_PRUNE_MERGES, /* out: "merges", kiln_merged_row [] */
    /* out: "tally" (kiln_tally), with filters "filtered" (u64 [KILN_FILTER_KINDS]: rows dropped);
     * with planes also "bounds" (kiln_bounds) and every plane by its name */
    KILN_PRUNE_BLOCK,
    KILN_PRUNE_PAIRS,  /* out: "pairs" (kiln_prune_pairs) */
    KILN_PRUNE_SCALES, /* out: "tally" of the rows of another manifest */
    /* of a block; out: "marked" (kiln_prune_marked), "marks" (kiln_prune_marks_bytes): a bit a row,
     * from the lowest of the first byte, 1: rules whose limit is auto would touch the row; then
     * likewise: another rule drops it */
    KILN_PRUNE_MARKS,
    KILN_PRUNE_WEIGHT, /* of a camera; out: "weight" (kiln_prune_weight) */
    /* of a block; out: "left": a bit a row, from the lowest of the first byte, 1: all rules but
     * those that ask cameras leave it */
    KILN_PRUNE_LEFT,
    /* of some cameras; out: of each block that one of them may see, by the block's name: what the
     * cameras see of its rows (kiln_prune_seen_bytes), of those that the other rules leave */
    KILN_PRUNE_SCORES,
    KILN_PRUNE_CURVE, /* of a camera; out: "curve" (kiln_prune_curve) */
    /* of the layer; out: "strays": of each block kiln_prune_stray_bytes, a bit a row, from the
     * lowest of the first byte, 1: --outlier-sor drops it */
    KILN_PRUNE_STRAYS,
    /* of the layer; out: "strays" likewise, of --filter-floaters or --filter-cluster; "voxels"
     * (kiln_prune_voxels_found) */
    KILN_PRUNE_VOXELS,
} kiln_prune_unit_kind;

/* A row that goes into another; (block, row in the block). Rows of one group follow each other,
 * groups are ordered by their survivor, rows in a group by place. */
typedef struct {
    uint32_t into_block, into_row, block, row;
} kiln_merged_row;

typedef struct {
    uint64_t pairs[2], visible[2]; /* before, after */
    /* pairs and visible Gaussians before, of rows that rules drop or change, if they can show */
    uint64_t touched[2];
} kiln_prune_pairs;

/* What rules whose limit is auto would do to a block. */
typedef struct {
    uint64_t rows;                        /* that they would touch */
    uint64_t counts[KILN_PRUNE_RULES][2]; /* dropped, clamped; of other rules, too */
} kiln_prune_marked;
/* Bytes of the two lists of bits of any block; largest: rows of the layer's largest block. */
static inline uint64_t kiln_prune_marks_bytes(uint64_t largest) { return 2 * ((largest + 7) / 8); }

/* What the rows that such rules would touch are to a camera. All Gaussians count as the input has
 * them. */
typedef struct {
    uint64_t pairs, visible; /* of those rows */
    /* 1: these are more pairs than all others have that no other rule drops */
    uint64_t holds_most;
} kiln_prune_weight;

/* A camera that rules ask what it sees. */
typedef struct {
    kiln_view_request request;
    uint64_t mask; /* of its photo: in the masks of the payload, or KILN_PRUNE_NO_MASK */
} kiln_prune_look;
#define KILN_PRUNE_NO_MASK UINT64_MAX

/* The mask of a camera's photo. All bytes are defined. */
typedef struct {
    kiln_lens lens; /* of the photo; width 0: none */
    kiln_pinhole target;
    uint32_t width, height; /* of the photo */
    kiln_file_info file;    /* as it was imported */
    kiln_hash hash;
    char path[KILN_PATH_MAX];
} kiln_prune_mask;

/* What a unit of SCORES gives of rows, in the units of blend_weights: array after array, alphas
 * only where they are asked for. */
typedef struct {
    uint64_t *weights, *alphas; /* sums over pixels of alpha T; of alpha */
    uint32_t *peaks;            /* the largest alpha T of a pixel */
} kiln_prune_seen;
static inline uint64_t kiln_prune_seen_bytes(uint64_t rows, bool alphas)
{
    return rows * (alphas ? 8 + 8 + 4 : 8 + 4);
}
/* bytes: aligned as u64 */
kiln_prune_seen kiln_prune_seen_at(void *bytes, uint64_t rows, bool alphas);

/* Marks of a block's rows: two bits a row, from the lowest of the first byte. Bytes of those of any
 * block; largest: rows of the layer's largest block. */
static inline uint64_t kiln_prune_pairs_of_bits_bytes(uint64_t largest)
{
    return (largest + 3) / 4;
}
static inline unsigned kiln_prune_two_bits(const uint8_t *bits, uint64_t row)
{
    return bits[row >> 2] >> 2 * (row & 3) & 3u;
}
static inline void kiln_prune_set_two_bits(uint8_t *bits, uint64_t row, unsigned value)
{
    bits[row >> 2] = (uint8_t)((bits[row >> 2] & ~(3u << 2 * (row & 3))) | value << 2 * (row & 3));
}

/* How much a picture of fewer rows differs: from the picture of all that the other rules leave. Of
 * the rows that are kept, then of the half, the quarter and the eighth with the highest scores. */
enum { KILN_PRUNE_CURVE_POINTS = 4 };
typedef struct {
    double squares[KILN_PRUNE_CURVE_POINTS]; /* sums over pixels and channels */
    /* of pixels that the mask lets count, and their channels */
    uint64_t values;
} kiln_prune_curve;

/* Which pass over the whole input drops a row, as two bits. */
typedef enum {
    KILN_STRAY_NOT,
    KILN_STRAY_OUTLIER_SOR,
    KILN_STRAY_FILTER_FLOATERS,
    KILN_STRAY_FILTER_CLUSTER
} kiln_stray;

/* Bits of the rows of any block that such a pass drops, in bytes; largest: rows of the layer's
 * largest block. */
static inline uint64_t kiln_prune_stray_bytes(uint64_t largest) { return (largest + 7) / 8; }

/* What a unit of STRAYS asks. range_rows 0: the whole layer is in memory. */
typedef struct {
    double sigmas;
    uint64_t range_rows;              /* else so many at a time (stages/knn/range.h) */
    double root_centre[3], root_half; /* of the curve along which ranges lie */
    kiln_hash scratch;                /* key of the folder for them */
    uint32_t neighbors, page_rows;
} kiln_prune_sor;

/* What a unit of VOXELS asks (voxel_math.h). */
typedef struct {
    double size, opacity, min;
    double seed[3], origin[3]; /* of a cluster, in scene units; of the layer's means */
    uint32_t capacity;         /* blocks of voxels whose sums are in memory at a time; 2 or more */
    uint32_t cluster;          /* 1: --filter-cluster; 0: --filter-floaters */
} kiln_prune_voxels;

/* What it finds: solid voxels, those of the cluster, the middle of the one where the cluster
 * begins, and whether that is not the seed's own. */
typedef struct {
    uint64_t solid, kept;
    double seed[3];
    uint64_t moved;
} kiln_prune_voxels_found;

typedef struct {
    kiln_filters filters; /* bound */
    double origin[3];
} kiln_prune_filters;

/* The payload begins with this and n_looks kiln_prune_look, n_masks kiln_prune_mask; then, in the
 * shared payload of a camera, n_merges kiln_merged_row, n_rows u32 (source rows to drop,
 * ascending), n_kept u32 (PAIRS: what became of each block, then how many of its rows are touched;
 * WEIGHT: which of the marks in the text are those of each block, or KILN_PRUNE_NO_BLOCK),
 * mark_bytes of marks, stray_bytes of strays (a kiln_stray of two bits a row, as marks), text_bytes
 * of text: of SCALES the other manifest's path with its NUL, of WEIGHT marks, of STRAYS a
 * kiln_prune_sor, of VOXELS a kiln_prune_voxels, of blocks and other cameras a kiln_prune_filters
 * where there are filters. A block gets the rows, merges, marks
 * and strays that concern it, a camera all. Marks are two bits a row: 0, or which of the rules that
 * ask cameras drops it (1: min-contribution, 2: min-visibility, 3: keep). Of CURVE those of all
 * blocks follow, in which half, quarter, eighth (1, 2, 3) of the scores a row is. */
typedef struct {
    kiln_prune_unit_kind kind;
    uint32_t block;
    bool planes;
    uint64_t ram, ram_thread; /* host memory that the unit takes, and for each further thread */
    kiln_layer_kind layer_kind;
    kiln_hash layer, spacing; /* spacing zero: the layer has spacing2 itself */
    kiln_prune_rules rules;
    kiln_prune_stats stats; /* MERGES */
    float merge_distance;   /* MERGES: scene units */
    /* MARKS: bit r: the limit of rule r is auto; `rules` has what that stands for */
    uint32_t auto_rules;
    kiln_view_request request; /* PAIRS, WEIGHT, CURVE */
    bool alphas;               /* SCORES: they are asked for */
    /* SCORES, CURVE: 0, or the most Gaussians that a picture has in memory: it is drawn in slabs */
    uint64_t capacity;
    uint64_t n_looks, n_masks, n_merges, n_rows, n_kept, mark_bytes, stray_bytes, text_bytes;
} kiln_prune_unit;

/* What a camera knows of a block besides how many of its rows stay. No result depends on it, only
 * the time that it takes. */
#define KILN_PRUNE_UNTOUCHED UINT32_MAX     /* the rules leave the block as it is */
#define KILN_PRUNE_UNKNOWN (UINT32_MAX - 1) /* its unit has no result */

kiln_status kiln_prune_compute(kiln_worker *w, const char *name, const void *payload,
                               size_t payload_bytes, kiln_error *err);

/* ---- between the files of the worker's side -------------------------------------------------- */
typedef struct {
    const kiln_prune_unit *head;
    const kiln_prune_look *looks;
    const kiln_prune_mask *masks;
    const kiln_merged_row *merges;
    const uint32_t *rows;
    /* [n_kept] of a camera of PAIRS: rows that stay of each of the layer's blocks, or one of the
     * values above; then of each the rows that rules touch and that can show */
    const uint32_t *kept;
    const uint8_t *marks;  /* NULL or empty: no row is marked */
    const uint8_t *strays; /* likewise */
    const char *text;
} kiln_prune_request;

/* Could a row that the rules leave of this block be visible? Survivors of merges and raised axes
 * may be larger than any row of the input. */
bool kiln_prune_may_see(const kiln_prune_unit *head, const kiln_view_request *request,
                        const kiln_chunk *c);

#define KILN_PRUNE_NO_BLOCK UINT32_MAX
/* Block of the layer that holds these names: index by the name; KILN_PRUNE_NO_BLOCK: none. Blocks
 * ascend by name. */
uint32_t kiln_prune_find_block(const kiln_layer *l, const char *name);

/* The worker's state: the layer, its spacing, decoded planes. */
typedef struct {
    kiln_layer *layer, *spacing; /* spacing NULL: in the layer */
    /* [layer->n_chunks] with spacing: its block of the same name, or KILN_PRUNE_NO_BLOCK */
    uint32_t *spacing_of;
    kiln_plane_cache *planes;
    uint64_t largest; /* rows of the largest block */
    kiln_ahead ahead;
    /* for cameras: */
    kiln_draw_store *store; /* of the worker's runner */
    /* applies the rules on the CPU while the worker's runner is in use; NULL: it is the worker's */
    kiln_runner *host;
    kiln_hash *keys; /* [layer->n_chunks] of the geometry of each block */
} kiln_prune_input;
/* The cache of planes gets what the unit leaves of the worker's share. */
kiln_status kiln_prune_input_get(kiln_worker *w, const kiln_prune_unit *u, kiln_prune_input **out,
                                 kiln_error *err) KILN_MUST_CHECK;
/* The threads of a unit with ram_thread, as far as the worker's share has room. */
unsigned kiln_prune_threads(const kiln_worker *w, const kiln_prune_unit *u);
/* kiln_prune_input_get with readers that decode ahead, if there is room. *budget: what the cache
 * got. */
kiln_status kiln_prune_input_get_ahead(kiln_worker *w, const kiln_prune_unit *u,
                                       kiln_prune_input **out, uint64_t *budget,
                                       kiln_error *err) KILN_MUST_CHECK;
/* The same with what a camera needs besides. */
kiln_status kiln_prune_input_get_drawn(kiln_worker *w, const kiln_prune_unit *u,
                                       kiln_prune_input **out, kiln_error *err) KILN_MUST_CHECK;
/* Has it all that pruning reads? Not where kiln-knn finished partially. */
bool kiln_prune_has_block(const kiln_prune_input *in, uint32_t block);
/* Is this one of the planes that are worth keeping decoded? Several units read it. */
bool kiln_prune_keeps(const char *plane);
/* The chunk that has this plane of a block: the layer's, or of spacing2 that of the layer
 * 'spacing'. The block has spacing. */
const kiln_chunk *kiln_prune_plane_chunk(const kiln_prune_input *in, uint32_t block,
                                         const char *plane);
/* A plane of a block, spacing2 from wherever it is. Borrowed as kiln_plane_cache_get says. */
kiln_status kiln_prune_plane(kiln_worker *w, kiln_prune_input *in, uint32_t block, const char *name,
                             const void **out, kiln_error *err) KILN_MUST_CHECK;

/* What rows are but for colours: planar planes of n rows, borrowed. */
typedef struct {
    uint64_t n;
    const float *means, *log_scales, *quats, *opacity_logits;
} kiln_geometry;
/* That of a block as the input has it; borrowed as kiln_prune_plane says. */
kiln_status kiln_prune_geometry(kiln_worker *w, kiln_prune_input *in, uint32_t block,
                                kiln_geometry *out, kiln_error *err) KILN_MUST_CHECK;

/* A block with the rules applied. The planes here are copies, merged rows already in them. */
typedef struct {
    uint64_t n, kept;
    /* as they came, survivors of merges replaced */
    float *means, *log_scales, *quats, *opacity_logits;
    float *spacing2, *log_scales_after;
    /* kiln_prune_mark; 1: stays; 1: replaced by what it and others were merged into */
    uint8_t *mark, *keep, *merged;
    uint64_t counts[KILN_PRUNE_RULES][2];
    uint64_t filtered[KILN_FILTER_KINDS]; /* rows that filters drop: in no count of a rule */
    char *store;                          /* all of the above */
} kiln_pruned_rows;
enum { KILN_PRUNED_ROW_BYTES = 64 }; /* of store, a row: 15 floats, 3 bytes and what aligns them */
kiln_status kiln_pruned_rows_make(kiln_worker *w, kiln_prune_input *in, const kiln_prune_request *q,
                                  uint32_t block, kiln_pruned_rows *out,
                                  kiln_error *err) KILN_MUST_CHECK;
void kiln_pruned_rows_release(kiln_pruned_rows *r);
/* Did the rules change no scale? Bit by bit, as the stored plane is compared. */
bool kiln_pruned_rows_keep_scales(const kiln_pruned_rows *r);
/* Does the row stay as the input has it? source_scales: the plane of the input. */
bool kiln_pruned_rows_is_same(const kiln_pruned_rows *r, const float *source_scales, uint64_t row);
/* Do the rules drop or change the row, and could it show before, because its opacity is enough?
 * Such rows are the share of the pictures that pruning touches. */
bool kiln_pruned_rows_is_touched(const kiln_pruned_rows *r, const float *source_scales,
                                 uint64_t row);
/* Marks what the request's filters drop, KILN_PRUNE_NAMED, and counts it. */
kiln_status kiln_prune_mark_filtered(kiln_worker *w, kiln_prune_input *in,
                                     const kiln_prune_request *q, uint32_t block,
                                     kiln_pruned_rows *r, kiln_error *err) KILN_MUST_CHECK;

/* Puts the survivors of merges into the copies of r, and what they become of another plane (sh0,
 * shN) into data. */
kiln_status kiln_prune_merge_geometry(kiln_worker *w, kiln_prune_input *in,
                                      const kiln_prune_request *q, uint32_t block,
                                      kiln_pruned_rows *r, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_prune_merge_plane(kiln_worker *w, kiln_prune_input *in,
                                   const kiln_prune_request *q, uint32_t block,
                                   const kiln_plane *plane, float *data,
                                   kiln_error *err) KILN_MUST_CHECK;

/* Which pass over the whole input drops the row. block: the only one whose strays the request has,
 * or any where it has all. */
kiln_stray kiln_prune_stray_of(const kiln_prune_input *in, const kiln_prune_request *q,
                               uint32_t block, uint64_t row);

/* Which blocks a pass over a camera's scene counts (pair_scenes.c). */
typedef enum {
    KILN_PRUNE_SAME,
    KILN_PRUNE_BEFORE,
    KILN_PRUNE_AFTER,
    KILN_PRUNE_TOUCHED,
    KILN_PRUNE_NO_PASS
} kiln_prune_pass;
/* Counts the visible Gaussians and the pairs of one pass. */
kiln_status kiln_prune_count_pass(kiln_worker *w, kiln_prune_input *in, const kiln_prune_request *q,
                                  kiln_prune_pass pass, uint64_t *visible, uint64_t *pairs,
                                  kiln_error *err) KILN_MUST_CHECK;

kiln_status kiln_prune_stats_unit(kiln_worker *w, const kiln_prune_request *q,
                                  kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_prune_merges_unit(kiln_worker *w, const kiln_prune_request *q,
                                   kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_prune_block_unit(kiln_worker *w, const kiln_prune_request *q,
                                  kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_prune_pairs_unit(kiln_worker *w, const kiln_prune_request *q,
                                  kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_prune_marks_unit(kiln_worker *w, const kiln_prune_request *q,
                                  kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_prune_weight_unit(kiln_worker *w, const kiln_prune_request *q,
                                   kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_prune_scales_unit(kiln_worker *w, const kiln_prune_request *q,
                                   kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_prune_left_unit(kiln_worker *w, const kiln_prune_request *q,
                                 kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_prune_strays_unit(kiln_worker *w, const kiln_prune_request *q,
                                   kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_prune_voxels_unit(kiln_worker *w, const kiln_prune_request *q,
                                   kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_prune_scores_unit(kiln_worker *w, const kiln_prune_request *q,
                                   kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_prune_curve_unit(kiln_worker *w, const kiln_prune_request *q,
                                  kiln_error *err) KILN_MUST_CHECK;

/* ---- host memory of the units, the decoded planes of one block included ---------------------- */
typedef struct {
    uint64_t rows;          /* of the layer */
    kiln_layer_size blocks; /* spacing2 counted in */
} kiln_prune_size;
uint64_t kiln_prune_stats_ram(const kiln_prune_size *s);
uint64_t kiln_prune_stats_ram_thread(const kiln_prune_size *s);
uint64_t kiln_prune_merges_ram(const kiln_prune_size *s);
/* Of STRAYS over l, whose largest block has so many rows; range_rows as kiln_prune_sor has it.
 * held: what of it is bits and pieces.
 */
uint64_t kiln_prune_strays_ram(const kiln_layer *l, uint64_t largest, uint32_t neighbors,
                               uint64_t range_rows);
uint64_t kiln_prune_strays_held(uint32_t n_blocks, uint64_t largest);
/* Of VOXELS with sums of so many blocks in memory; and these sums alone. */
uint64_t kiln_prune_voxels_ram(const kiln_layer *l, uint64_t largest, uint64_t capacity);
uint64_t kiln_prune_voxels_table_bytes(uint64_t capacity);
uint64_t kiln_prune_block_ram(const kiln_prune_size *s, bool merges);
uint64_t kiln_prune_pairs_ram(const kiln_prune_size *s, uint32_t tiles_y);
/* to decode ahead, at most, if there is room */
uint64_t kiln_prune_ahead_ram(const kiln_layer *input);
uint64_t kiln_prune_scales_ram(const kiln_prune_size *s);

#endif
