/* lod_rows -- the Gaussians of a node in memory, as kernels/coarsen wants them: read from chunks
 * and from results, put as outputs.
 *
 * A level has the planes of planes.def that draw (means, log_scales, quats, opacity_logits, sh0,
 * shN) and those that only levels have (weights, visibility, source_row, source_last,
 * source_count). All arrays of a kiln_lod_rows lie in one allocation. Functions belong to the
 * thread of the unit. */
#ifndef KILN_STAGES_LOD_ROWS_H
#define KILN_STAGES_LOD_ROWS_H

#include "kernels/coarsen/coarsen.h"
#include "stages/engine/engine.h"

enum { KILN_LOD_PLANES = 12, KILN_LOD_DRAWN = 6 };

/* A plane of a level: where kiln_coarsen_rows has it. */
typedef struct {
    const char *name;
    kiln_type type;
    uint32_t components; /* 0: of shN, by degree */
    size_t at;           /* of the pointer in kiln_coarsen_rows */
    bool weighted;       /* there only with visibility */
} kiln_lod_plane;
/* The first KILN_LOD_DRAWN are those that draw. */
extern const kiln_lod_plane kiln_lod_planes[KILN_LOD_PLANES];
/* Components of a plane in levels of this degree, with or without visibility; 0: they lack it. */
uint32_t kiln_lod_components(const kiln_lod_plane *p, uint32_t sh_degree, bool weighted);
/* Writes "K NAME", the name of an output of level K. */
enum { KILN_LOD_OUTPUT_NAME = 96 };
void kiln_lod_output_name(uint32_t level, const char *plane, char name[KILN_LOD_OUTPUT_NAME]);

typedef struct {
    kiln_coarsen_rows rows;
    char *store;
} kiln_lod_rows;
/* Bytes of n rows. */
uint64_t kiln_lod_rows_bytes(uint64_t n, uint32_t sh_degree, bool weighted);
/* Makes arrays for n rows, unset. KILN_E_NOMEM. */
kiln_status kiln_lod_rows_make(uint64_t n, uint32_t sh_degree, bool weighted, kiln_lod_rows *out,
                               kiln_error *err) KILN_MUST_CHECK;
void kiln_lod_rows_release(kiln_lod_rows *r);
/* The array of a plane; NULL where the rows lack it. */
void *kiln_lod_rows_plane(const kiln_coarsen_rows *r, const kiln_lod_plane *p);

/* Fills rows of level 0 from a chunk of `baked`: its planes, weights, ancestry of one row each,
 * visibility from the chunk `seen` of the layer `visibility`, or 1. KILN_E_INPUT, KILN_E_IO: the
 * chunk cannot be read. */
kiln_status kiln_lod_rows_read(kiln_manifest *m, const kiln_chunk *c, const kiln_array *visibility,
                               const kiln_array *prominence, kiln_lod_rows *rows,
                               kiln_error *err) KILN_MUST_CHECK;
/* Reads a level of a stored unit's result, `count` rows, into rows [first, first + count).
 * KILN_E_IO, KILN_E_INPUT. */
kiln_status kiln_lod_rows_read_level(kiln_manifest *m, const kiln_unit_result *result,
                                     uint32_t level, uint64_t first, uint64_t count,
                                     kiln_lod_rows *rows, kiln_error *err) KILN_MUST_CHECK;
/* Checks that a result has all planes of a level, in their sizes. KILN_E_IO, KILN_E_STALE: it has
 * not. */
kiln_status kiln_lod_level_check(const kiln_unit_result *result, uint32_t level, uint64_t count,
                                 uint32_t sh_degree, bool weighted,
                                 kiln_error *err) KILN_MUST_CHECK;
/* Puts a level's planes and bounds as outputs of the unit. */
kiln_status kiln_lod_rows_put(kiln_worker *w, uint32_t level, const kiln_coarsen_rows *rows,
                              kiln_error *err) KILN_MUST_CHECK;

#endif
