/* level_hiding -- how much of each node of a tree of levels a view sees behind the others.
 *
 * Problem. Errors are of nodes that were drawn alone. In the scene chunks hide one another: of a
 * capture in many chunks pictures come out 5 to 13 dB better than their errors add up to, and too
 * much is drawn. Which node hides which depends on where the camera stands, so no number that is
 * stored with a node can say it.
 *
 * The sites of the leaves (schema/level_sites.h), each as wide as its run and as thick as the
 * Gaussians of its run cover, are laid on a picture of KILN_HIDING_SIDE x KILN_HIDING_SIDE cells,
 * from front to back. Of a site that part is seen that all sites of other leaves let through which
 * lie before it as a whole: of one surface none hides its neighbour. An inner node has the mean of
 * the leaves below, as heavy as they are in the picture. A node that was drawn alone stood before
 * black; to a camera within a scene that fills its picture, what shows through looks more like it.
 * Both count by how much of the picture is of other nodes: the root, which is all of it, counts in
 * full.
 *
 * Pure: doubles of + - * / and sqrt, in an order that depends on the tree and the view alone.
 * Memory: 130 bytes a site, 4 KiB a leaf in the picture.
 */
#ifndef KILN_STAGES_LEVEL_HIDING_H
#define KILN_STAGES_LEVEL_HIDING_H

#include "schema/level_sites.h"
#include "stages/frame/view_request.h"

enum { KILN_HIDING_SIDE = 32 };

/* Writes open[n_nodes], between KILN_HIDING_LEAST and 1: what an error of the node counts in this
 * view. 1 where there are no sites. KILN_E_NOMEM. The least: coarse rows reach before what hides
 * those that they were made of (at 0.05 a view of tests/e2e/far.py in many chunks had 25 dB for
 * 30). */
#define KILN_HIDING_LEAST 0.125
kiln_status kiln_level_hiding(const kiln_level_tree *t, const kiln_view_request *s, double *open,
                              kiln_error *err) KILN_MUST_CHECK;

#endif
