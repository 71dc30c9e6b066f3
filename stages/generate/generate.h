/* generate -- scene directories from a seed: the benchmark scenes of inputs.h, and a demo that
 * looks like something. */
#ifndef KILN_STAGES_GENERATE_H
#define KILN_STAGES_GENERATE_H

#include "base/status.h"
#include "base/file.h"
#include "kernels/ops.h"
#include "stages/generate/inputs.h"
#include "stages/products/product_place.h"

#include <stdint.h>
#include <stdio.h>

typedef struct {
    uint64_t gaussians, seed;
    uint32_t cameras, width, height;
    uint32_t explode_per_mille; /* share of the rows whose log scales grow ... */
    double explode_by;          /* ... by this much in every axis */
    unsigned threads;
    bool overwrite; /* files that are there are replaced; else nothing is written if there is one */
} kiln_generate_options;

/* DIR/scene.ply (INRIA columns, the bytes of kg_write_ply) and DIR/cameras.json (R, t as kg_camera
 * gives them), in constant memory. */
kiln_status kiln_generate_scene(const char *dir, const kiln_generate_options *o,
                                kiln_error *err) KILN_MUST_CHECK;
/* DIR/scene.ply, DIR/cameras.json and DIR/images/view_NN.png: a potter's yard with a brick kiln.
 * The photos are drawn at three times the sampling and averaged, so that PSNR against them means
 * something. */
kiln_status kiln_generate_demo(const char *dir, const kiln_generate_options *o,
                               kiln_error *err) KILN_MUST_CHECK;

/* DIR/points.ply: so many points, uniform in the unit cube (kg_uniform_point), x y z as float and
 * nothing else, in constant memory. */
kiln_status kiln_generate_points(const char *dir, const kiln_generate_options *o,
                                 kiln_error *err) KILN_MUST_CHECK;

/* ---- for the files above --------------------------------------------------------------------- */
/* A file of the scene: it lies beside its name until it is whole. */
typedef struct {
    char path[KILN_PATH_MAX], temporary[KILN_PATH_MAX];
    kiln_product_seen seen;
    FILE *f;
} kiln_generated;
/* Asks whether DIR/NAME may be written; all files are asked for before the first is made.
 * KILN_E_USAGE: it is there. */
kiln_status kiln_generated_check(const char *dir, const char *name, const kiln_generate_options *o,
                                 kiln_generated *out, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_generated_open(kiln_generated *g, kiln_error *err) KILN_MUST_CHECK;
/* Closes what was written, and gives it its name; st: how writing went. KILN_E_IO where not all of
 * it is on the disk. */
kiln_status kiln_generated_close(kiln_generated *g, kiln_status st,
                                 kiln_error *err) KILN_MUST_CHECK;
/* Row i of whatever is generated, in PLY terms. Any thread. */
typedef void kiln_splat_source(const void *context, uint64_t i, kg_splat *out);
/* Writes the PLY block by block: made on `threads` threads, written in order. */
kiln_status kiln_write_splats(kiln_generated *to, uint64_t n, kiln_splat_source *source,
                              const void *context, unsigned threads,
                              kiln_error *err) KILN_MUST_CHECK;
/* A JSON list of camera objects; names[i] becomes "name" (NULL: camN). */
kiln_status kiln_write_cameras(const kiln_generated *to, const kg_cam *cameras,
                               const char *const *names, uint32_t n,
                               kiln_error *err) KILN_MUST_CHECK;
/* Draws the Gaussians through a camera of three times the size and averages 3 x 3 pixels: rgb
 * [height][width][3], owned by the caller. */
kiln_status kiln_photograph(const kg_splat *splats, uint64_t n, const kg_cam *camera,
                            unsigned threads, float **rgb, kiln_error *err) KILN_MUST_CHECK;

#endif
