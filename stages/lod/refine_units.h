/* refine_units -- what the parent of kiln-lod asks its workers for when levels are refined
 * (refine.h). */
#ifndef KILN_STAGES_LOD_REFINE_UNITS_H
#define KILN_STAGES_LOD_REFINE_UNITS_H

#include "stages/lod/lod_units.h"

enum {
    KILN_REFINE_VERSION = 4, /* raised when units of the same input fit otherwise: in their keys */
    KILN_REFINE_VIEWS = 48,
    /* views that stand where cameras do; the others stand between them */
    KILN_REFINE_CAMERAS = 28,
    KILN_REFINE_CANDIDATES = 48, /* cameras that the parent offers */
    KILN_REFINE_LEFT_OUT = 2,    /* one view between cameras in so many */
    KILN_REFINE_NEIGHBOURS = 12,
    KILN_REFINE_WINDOW = 256,
    KILN_REFINE_POINTS = 2048,  /* rows that say where a chunk is in a picture */
    KILN_REFINE_LEVELS = 8,     /* most levels of a leaf */
    KILN_REFINE_PAIRS = 1 << 22 /* a view that lists more pairs is left out */
};

/* Share of the squared error in the views left out that a refined level must take away to be kept:
 * views that gain less say nothing about others (DESIGN.md, where refining made views worse). */
#define KILN_REFINE_LEAST_GAIN 0.05

/* A camera that may see the chunk: scene units, origin subtracted. */
typedef struct {
    double r[9], centre[3]; /* rows: right, down, forward */
    double fx, fy, cx, cy, width, height;
} kiln_refine_camera;

/* A chunk: the one that is refined, or a neighbour. */
typedef struct {
    kiln_hash unit; /* key of its merged levels */
    uint32_t chunk; /* of `baked` */
    uint32_t zero;
    uint64_t rows;
} kiln_refine_chunk;

/* Payload. No bytes are undefined. */
typedef struct {
    kiln_lod_unit_kind unit; /* KILN_LOD_REFINE */
    uint32_t steps;
    uint32_t n_chunks; /* the refined one is the first */
    uint32_t n_cameras;
    uint32_t n_levels; /* 1 .. n_levels */
    uint32_t sh_degree;
    uint32_t weighted;
    uint32_t profile;
    uint32_t antialiased;
    uint32_t zero;
    double near_m;
    kiln_hash baked;
    /* of the refined chunk, as in kiln_lod_unit: errors count what cameras see */
    kiln_hash visibility;
    kiln_lod_error_request errors;
    uint64_t counts[KILN_REFINE_LEVELS]; /* of the chunk's levels */
    kiln_refine_chunk chunks[1 + KILN_REFINE_NEIGHBOURS];
    kiln_refine_camera cameras[KILN_REFINE_CANDIDATES];
} kiln_refine_unit;

#endif
