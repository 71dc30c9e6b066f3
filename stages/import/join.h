/* join -- several files of rows as one scene, and rows that are moved.
 *
 * Each file keeps its own blocks: a block's rows are of one file, and source_row runs on from file
 * to file. What the rows of a scene have in common is decided here, once all files are scanned:
 *   SH degree    the largest; coefficients that a file lacks are 0
 *   antialiased  the same in all files of Gaussians, else refused
 *   kinds        Gaussians or points, else refused
 *   extras       all columns of unknown meaning; 0 where a file has none of that name; two types of
 *                one name are refused
 *   raw copies   (kiln_extra.raw) are left out where files are joined or rows moved: they would say
 *                what was
 * A scene of one file that is not moved is what its scan says.
 */
#ifndef KILN_STAGES_IMPORT_JOIN_H
#define KILN_STAGES_IMPORT_JOIN_H

#include "kernels/similarity/similarity.h"
#include "stages/formats/spool.h"
#include "stages/import/blocks.h"
#include "stages/import/dataset/dataset.h"
#include "stages/import/scan.h"

/* One file of rows of an import. */
typedef struct {
    const char *path; /* all three borrowed from the data set */
    const kiln_reader *reader;
    const kiln_path *members;
    uint32_t n_members;
    kiln_move own;          /* of --add */
    kiln_similarity move;   /* that, and what all rows are moved by */
    kiln_prepared prepared; /* the file as it is read, open while the import runs */
    /* after kiln_join: info of its rows as they are in the scene, keep of these extras */
    kiln_scan scan;
    const uint64_t *offsets; /* of its blocks, borrowed */
    uint64_t first_row;      /* in the scene */
    uint64_t first_block;    /* in the scene */
    uint32_t file_degree;    /* of SH, in the file */
    bool file_rgb;           /* the file has colours */
    uint32_t n_zeros;        /* extras that it lacks */
    kiln_zeros zeros[KILN_ZEROS_MAX];
} kiln_join_part;

/* The parts of a data set, not scanned yet, moved as a whole by `all`. free(*out) after
 * kiln_prepared_release of each. *n may be 0. */
kiln_status kiln_parts_make(const kiln_dataset *d, const kiln_move *all, kiln_join_part **out,
                            uint32_t *n, kiln_error *err) KILN_MUST_CHECK;
/* Completes the parts, which are scanned (scan, offsets of the first), and fills *out for all of
 * them. KILN_E_INPUT: they do not go together. n > 0. */
kiln_status kiln_join(kiln_join_part *parts, uint32_t n, const uint64_t *offsets, kiln_scan *out,
                      kiln_error *err) KILN_MUST_CHECK;
/* Says which columns are zeros. */
void kiln_join_say(const kiln_join_part *parts, uint32_t n);
/* Says what is moved: files by themselves, and all. */
void kiln_join_say_moves(const kiln_join_part *parts, uint32_t n, const kiln_move *all);
const kiln_join_part *kiln_part_of_block(const kiln_join_part *parts, uint32_t n, uint64_t block);

/* The scene's transforms, a JSON array, with what was done to rows and cameras behind it:
 * {"translate", "rotate", "scale"} of all, with "file" of one file alone: its place in the scene's
 * list of files. KILN_E_INPUT: there is no room for so many. */
kiln_status kiln_join_transforms(const kiln_join_part *parts, uint32_t n, const kiln_move *all,
                                 char *text, size_t capacity, kiln_error *err) KILN_MUST_CHECK;
/* [{"path", "format", "first_row", "rows", "sh_degree"}, ...]; without details: rows alone. NULL
 * when memory is gone. */
json_t *kiln_join_files(const kiln_join_part *parts, uint32_t n, bool details);

#endif
