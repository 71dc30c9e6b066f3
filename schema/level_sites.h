/* level_sites -- where the Gaussians of a node are, in a few places: from how far a camera sees
 * them, even where it stands among them.
 *
 * A box does not tell that: one chunk of a capture can hold an object of one unit, the cameras and
 * a background of a hundred units. A camera inside a box has distance 0 from it. So the rows of a
 * node's coarsest level, in their order along the curve, are cut into KILN_LEVEL_SITES runs of
 * about as many rows. A *site* is the row in the middle of a run's weight; its share is the run's
 * part of the weights (W v) of all. A row far out is one of many in its run.
 *
 * Pixels of what is seen go with 1 / distance^2. So the distance of a node from an eye is that of
 * the mean of 1 / distance^2 over sites, by share. A site is no nearer than the radius of a ball
 * with the surface of all that its run has, nor than the near plane. A picture has that part of a
 * node whose sites stand in it: a camera among the rows has most of them beside or behind it. A
 * site counts by how much of its run is on this side of the picture's edges.
 *
 * Pure functions of the layers: only + - * / and sqrt of doubles. Memory: 650 bytes a node, 24 a
 * camera. */
#ifndef KILN_SCHEMA_LEVEL_SITES_H
#define KILN_SCHEMA_LEVEL_SITES_H

#include "base/extern_c.h"
#include "schema/levels.h"

KILN_C_BEGIN

enum { KILN_LEVEL_SITES = 32 };

struct kiln_level_sites {
    uint32_t n; /* 0: nothing is known */
    struct {
        float at[3], share;
        float least; /* distance below which it is not seen: the radius of that ball */
        float reach; /* mean distance of the run's rows from it */
    } site[KILN_LEVEL_SITES];
    /* box of the rows without a sixteenth at each end of each axis */
    float core_min[3], core_max[3];
};

/* Rows [first, first + count) of planar arrays of n rows; weights and visibility may be NULL: all
 * rows are alike. */
void kiln_level_sites_make(const float *means, const float *weights, const float *visibility,
                           uint64_t n, uint64_t first, uint64_t count, kiln_level_sites *out);
/* The distance of all sites from an eye; eye as the means: the scene's origin subtracted. At least
 * near_m. n is not 0. */
double kiln_level_sites_distance(const kiln_level_sites *s, const double eye[3], double near_m);
/* A camera: where it stands, its axes (right, down, forward), and the edges of its picture at
 * distance 1. */
typedef struct {
    double at[3], axes[9], left, right, top, bottom, near_m;
} kiln_level_eye;
/* Of the sites in its picture: their distance, and their share of all, at least
 * KILN_LEVEL_SHARE_LEAST: what reaches into a picture may have its sites beside it. Where none is
 * in it, nothing tells how much reaches in: KILN_LEVEL_SHARE_UNKNOWN of all, from their distance.
 * (With the least, ten background rows right before a camera were counted at a hundredth of their
 * true error.) */
typedef struct {
    double distance, share;
} kiln_level_sight;
#define KILN_LEVEL_SHARE_LEAST (1.0 / 16)
#define KILN_LEVEL_SHARE_UNKNOWN 0.25
kiln_level_sight kiln_level_sites_seen(const kiln_level_sites *s, const kiln_level_eye *eye);
/* The same of rows, each for itself: sites are few, and one row more moves them. false: none is in
 * the picture. */
bool kiln_level_rows_seen(const float *means, const float *weights, const float *visibility,
                          uint64_t n, const kiln_level_eye *eye,
                          kiln_level_sight *out) KILN_MUST_CHECK;
/* Sets the core of n rows. KILN_E_NOMEM. */
kiln_status kiln_level_sites_core(const float *means, uint64_t n, kiln_level_sites *out,
                                  kiln_error *err) KILN_MUST_CHECK;
/* Does a camera stand among the sites, no farther from the middle of their box than its corners? n
 * is not 0. */
bool kiln_level_sites_around(const kiln_level_sites *s, const double (*eyes)[3], uint32_t n_eyes);
/* Sets the spread and the gap of t->eyes; the gap of up to KILN_LEVEL_GAPS of them, evenly
 * taken. */
enum { KILN_LEVEL_GAPS = 256 };
void kiln_level_tree_measure_eyes(kiln_level_tree *t);
/* Reads the sites of all nodes with levels, for nodes[].sites, and the places of the cameras that
 * errors are measured with: those for training, or all where there are none. After a failure the
 * tree has none. KILN_E_NOMEM, KILN_E_IO, KILN_E_INPUT. */
kiln_status kiln_level_tree_read_sites(kiln_manifest *m, kiln_level_tree *t,
                                       kiln_error *err) KILN_MUST_CHECK;

KILN_C_END

#endif
