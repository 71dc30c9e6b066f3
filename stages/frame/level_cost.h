/* level_cost -- what it costs a view to be drawn of a level of a node instead of the full scene:
 * level_choice.h says in which unit.
 */
#ifndef KILN_STAGES_LEVEL_COST_H
#define KILN_STAGES_LEVEL_COST_H

#include "schema/level_sites.h"
#include "kernels/view.h"

/* More than any budget, and small enough that the sum over 2^32 nodes is finite. */
#define KILN_LEVEL_TOO_COSTLY 1e200

/* Returns the width of a pixel, in scene units, for a box: that at the geometric mean of its
 * nearest and farthest depth. The nearest counts as no nearer than the near plane, and the farthest
 * as no farther than twice the nearest. Why: pixels go with 1 / depth^2, whose mean over a range of
 * depths is 1 / (nearest farthest). So an error that is spread evenly over the box costs what it
 * costs at this depth. A box that reaches farther is no longer filled evenly as a rule. */
double kiln_level_footprint(const kiln_view *v, const float box_min[3], const float box_max[3]);

/* Returns the width of a pixel, in scene units, where those of a node's rows are that the picture
 * has (schema/level_sites.h), and their share of all; where no sites were read, for its box, and
 * 1. */
double kiln_level_node_footprint(const kiln_view *v, const kiln_level_node *node, double *share);

/* Returns the stored error of a level at a footprint, in scene units squared: linear between the
 * steps. Below the first it follows the line through the first two, and above the last the line
 * through the last two, if these rise that way; it is constant if not. c has errors. */
double kiln_level_error_at(const kiln_chunk *c, double footprint);

/* Returns the cost of drawing the level c of a node, in pixels: at most all pixels of the view.
 * Without errors: 0 if its largest Gaussian is below a pixel across, else KILN_LEVEL_TOO_COSTLY. */
double kiln_level_cost(const kiln_view *v, const kiln_level_node *node, const kiln_chunk *c);

/* The camera of a view. */
kiln_level_eye kiln_level_eye_of(const kiln_view *v);

#endif
