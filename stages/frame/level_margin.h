/* level_margin -- how much more an error counts to a view from where no camera of the bake stood.
 *
 * Problem. Where cameras stand among the rows of a node, its errors are what they see from there:
 * rows that they hardly see count less, and merging has spent the node's rows on what they see.
 * From farther out the rest is in the picture, and nearer: captures in one chunk came out 8 to 11
 * dB worse than asked from 4 and 8 times the distance.
 *
 * d is the distance of a view from the nearest camera, gap that of a camera from its nearest other
 * one, spread the distance from their middle (root mean squares; of spread at least a sixteenth of
 * what the node's sites are away, where one camera is alone). An error counts 1 + 4 (d - gap) /
 * spread times, where that is more than once. At most that is KILN_MARGIN_PART for a node that is a
 * small part of the scene and KILN_MARGIN_WHOLE for the root: of many nodes errors are wrong in
 * either direction, one node is wrong as a whole.
 *
 * A node that all cameras see from outside was measured as a whole and has no margin. Pure: doubles
 * of + - * / and sqrt.
 */
#ifndef KILN_STAGES_LEVEL_MARGIN_H
#define KILN_STAGES_LEVEL_MARGIN_H

#include "schema/levels.h"
#include "stages/frame/view_request.h"

#define KILN_MARGIN_PART 5.0
#define KILN_MARGIN_WHOLE 16.0
/* Multiplies counts[n_nodes], what an error of each node counts in this view. A tree without
 * cameras or sites stays as it is. */
void kiln_level_margin(const kiln_level_tree *t, const kiln_view *v, double *counts);

#endif
