/* level_choice -- chooses which levels of detail a view is drawn of.
 *
 * A cut is a set of nodes of a tree of levels (schema/levels.h), each with one of its levels, that
 * stands for every baked row exactly once. Level 0 of a leaf is the baked chunk itself.
 *
 * --level has three forms (kiln_level_wish):
 *   K      0 .. 32: each node at level K, or at its coarsest level if that is finer. A cell above
 *          the chunks whose first level is above K is left to its children. 0 is the full scene and
 *          needs no tree.
 *   dB:X   0 <= X <= 200: the fewest Gaussians whose picture is at least X dB (PSNR) from the full
 *          scene's, as far as the errors that kiln-lod measured tell.
 *   auto   dB:35
 *
 * dB:X. Errors of nodes are energies: squared differences, summed over pixels, as mean of three
 * colours. They are stored in scene units squared for a row of footprints (the width of a pixel
 * where the node is, in scene units). What a node costs in this view is its error at its footprint
 * here divided by the footprint squared, in pixels. Costs of nodes are added; the budget is
 * 10^(-X/10) times the number of pixels. A node costs what the others let through of it
 * (level_hiding.h), and as much of it as the picture has, and more where no camera of the bake
 * stood (level_margin.h); one that the view cannot see costs nothing. Nodes without measured errors
 * (kiln-lod had no cameras) are drawn at the coarsest level whose largest Gaussian is below a pixel
 * across.
 *
 * From the full scene on, the step that costs least for each row that it saves is taken, as long as
 * the sum stays within the budget: optimal tree pruning (Chou, Lookabaugh, Gray 1989), which finds
 * the lower convex hull of (rows, cost); what is left of the budget is then filled by the next
 * steps that fit.
 *
 * A file is for no view in particular (kiln_level_aim): there a node costs the mean over some
 * cameras, as a share of their pixels. Instead of dB it may have a number of rows. Its nodes are
 * those of level K, the coarsest of which there are no fewer rows. Each has a level of its own, of
 * the same share of these rows.
 *
 * All arithmetic is of doubles, by + - * / and sqrt, in an order that depends on the tree alone:
 * the same cut on every machine. Time: O(n log n) for n nodes of bounded depth. Memory: 200 bytes
 * for each node, 4 KiB for each leaf, 4 more for one in the picture. Threads: none; a tree may be
 * shared.
 */
#ifndef KILN_STAGES_LEVEL_CHOICE_H
#define KILN_STAGES_LEVEL_CHOICE_H

#include "schema/levels.h"
#include "stages/frame/view_request.h"

typedef enum { KILN_LEVEL_AT, KILN_LEVEL_DB } kiln_level_form;
typedef struct {
    kiln_level_form form;
    uint32_t level; /* of KILN_LEVEL_AT; 0: the full scene */
    double db;      /* of KILN_LEVEL_DB */
} kiln_level_wish;

/* Reads the text of --level. KILN_E_USAGE says what it may be. */
kiln_status kiln_level_wish_parse(const char *text, kiln_level_wish *out,
                                  kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_level_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
/* Does it ask for the full scene, for which no tree is needed? */
static inline bool kiln_level_wish_full(const kiln_level_wish *w)
{
    return w->form == KILN_LEVEL_AT && w->level == 0;
}

typedef struct {
    uint32_t node;  /* of the tree */
    uint32_t level; /* 0: the baked chunk */
    uint32_t chunk; /* index into the chunks of `baked` followed by those of `levels` */
    /* of a file: as many as are wanted of the chunk, at least 1 and at most what is left of it;
     * else its count */
    uint64_t rows;
} kiln_level_pick;

typedef struct {
    uint32_t n;
    kiln_level_pick *picks; /* [n] nodes ascending, so in baked order */
    uint64_t rows;          /* of all picks, also of those that the view cannot see */
    double cost;            /* of KILN_LEVEL_DB: the sum of costs, pixels; else 0 */
} kiln_level_cut;

/* Chooses a cut for a view. s is not read for KILN_LEVEL_AT and may be NULL then. Release *out also
 * after a failure. KILN_E_NOMEM. */
kiln_status kiln_level_choose(const kiln_level_tree *t, const kiln_level_wish *w,
                              const kiln_view_request *s, kiln_level_cut *out,
                              kiln_error *err) KILN_MUST_CHECK;
/* What a file is to have. */
typedef struct {
    kiln_level_wish wish;           /* not read where `rows` is set */
    uint64_t rows;                  /* so many of them; 0: as `wish` says */
    const kiln_view_request *views; /* [n_views] whose pictures count; not read for a fixed level */
    uint32_t n_views;
    /* [n_nodes] of leaves, how many of their rows are left; cells are not read. Of a leaf that has
     * lost some, and of cells above it, stored levels cannot be used: level k of such a leaf is
     * left / 2^k rows of its chunk, and the cells are left to their children. A leaf that has lost
     * all is not in the cut. NULL: all are there. */
    const uint64_t *left;
} kiln_level_aim;
/* Chooses a cut for a file. With aim->rows the cut has that many, or all that are left if they are
 * fewer. It has more only where every node has one row. Release *out also after a failure.
 * KILN_E_NOMEM. */
kiln_status kiln_level_choose_file(const kiln_level_tree *t, const kiln_level_aim *aim,
                                   kiln_level_cut *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_level_cut_release(kiln_level_cut *c);

#endif
