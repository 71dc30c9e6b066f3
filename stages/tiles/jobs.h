/* jobs -- the cameras of one run of kiln-tiles on their way to tables: what they see, counted
 * before a list is allocated, and what that will take of the manifest and of memory. The parent's
 * side. */
#ifndef KILN_STAGES_TILES_JOBS_H
#define KILN_STAGES_TILES_JOBS_H

#include "stages/tiles/tile_units.h"

typedef struct {
    const kiln_camera *camera;
    uint32_t index; /* of the camera, for the group of its units */
    kiln_view_request request;
    uint64_t rows;           /* of the chunks that the table lists Gaussians of */
    uint64_t place;          /* of these */
    kiln_view_detail detail; /* of these; all 0 where the scene is listed in full */
    kiln_hash key;
    bool counted;   /* else its counting pass is quarantined and nothing below is known */
    bool wanted;    /* a table is to be made */
    bool has_table; /* and all its units are there */
    uint64_t visible, pairs, box_pairs;
    kiln_draw_size size;
    uint64_t bytes; /* of the table in the manifest before compression, about */
    uint64_t peak;  /* host memory of its largest unit, at most */
    uint64_t *row_pairs;
    uint32_t *band_starts, n_bands;
    uint64_t first_unit; /* of its planning unit; its bands follow */
} kiln_tiles_job;

typedef struct {
    kiln_scene scene;
    kiln_layer_kind kind;
    const char *level_text;  /* of --level; borrowed */
    kiln_level_wish wish;    /* the same */
    kiln_drawn drawn;        /* of that kind */
    const kiln_layer *layer; /* drawn.chunks */
    kiln_chunk_keys keys;    /* of these */
    kiln_camera *cameras;
    uint32_t n_cameras;
    uint64_t most_ram; /* of the largest unit of a table, were all visible that may be seen */
    uint64_t n_most;   /* units of all tables, at most */
    kiln_tiles_job *jobs;
    uint32_t n_jobs;
    kiln_unit *units; /* planning and band units of the wanted jobs */
    kiln_tiles_unit *payloads;
    uint64_t n_units;
} kiln_tiles_bake;

/* Above this many predicted bytes tables are made only when asked for, and pass through the page
 * cache. */
#define KILN_TILES_AUTO_BYTES ((uint64_t)4 << 30)

/* level: the text of --level. camera: NULL for all of them. */
kiln_status kiln_tiles_open(kiln_run *r, const kiln_view_options *request, const char *level,
                            const char *camera, kiln_tiles_bake *b,
                            kiln_error *err) KILN_MUST_CHECK;
/* Sets what the counting pass tells of each camera that it could look through. */
kiln_status kiln_tiles_count(kiln_run *r, kiln_tiles_bake *b, kiln_error *err) KILN_MUST_CHECK;
/* Does the manifest hold the counts of all cameras? Computes nothing. KILN_E_IO where one that is
 * stored cannot be used: a run that would have nothing to do says so as --predict does. */
kiln_status kiln_tiles_are_counted(kiln_run *r, const kiln_tiles_bake *b, bool *all,
                                   kiln_error *err) KILN_MUST_CHECK;
uint64_t kiln_tiles_band_pairs(const kiln_tiles_job *j, uint32_t band);
/* Makes the tables' units and has them computed; sets has_table. */
kiln_status kiln_tiles_make(kiln_run *r, kiln_tiles_bake *b, kiln_error *err) KILN_MUST_CHECK;
/* Report and, without --json, text on stdout. */
kiln_status kiln_tiles_report(kiln_run *r, const kiln_tiles_bake *b, const char *profile,
                              kiln_error *err) KILN_MUST_CHECK;
void kiln_tiles_release(kiln_tiles_bake *b);

#endif
