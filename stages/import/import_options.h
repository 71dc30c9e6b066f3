/* import_options -- the options of kiln-import, and what they mean once paths are absolute. */
#ifndef KILN_STAGES_IMPORT_OPTIONS_H
#define KILN_STAGES_IMPORT_OPTIONS_H

#include "base/option.h"
#include "stages/import/dataset/dataset.h"

typedef struct {
    const char *cameras, *split, *photos, *add, *write_undistorted;
    uint64_t random_points, seed, max_inflated;
    uint32_t up, orbit_at, frame, lod, undistort_filter, extra;
    kiln_move move;
    bool list, list_formats, rehash, dataparser, parts, ignore_distortion, is_static, activated;
    double undistort_blank;
} kiln_import_options;
extern kiln_import_options kiln_import_given; /* what the command line and the manifest say */
extern const kiln_cli kiln_import_cli;

/* Makes the paths of options that the command line gives absolute: a later run may start in another
 * folder. Fills *split, whose file is borrowed from the options. Called before the manifest is
 * opened, and kiln_import_split once more behind that, as a stored rule may have come.
 * KILN_E_USAGE, KILN_E_INPUT. */
kiln_status kiln_import_arguments(kiln_split *split, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_import_split(kiln_split *split, kiln_error *err) KILN_MUST_CHECK;
/* Checks that the files of a stored --add are there; a message of one that is not says where its
 * name comes from. KILN_E_INPUT. */
kiln_status kiln_import_stored_added(kiln_error *err) KILN_MUST_CHECK;
/* The axis that --up names; NULL: auto. */
const char *kiln_import_given_up(void);

#endif
