/* dataset_search -- the three questions about a directory, each answered in a file of its own. */
#ifndef KILN_STAGES_IMPORT_DATASET_SEARCH_H
#define KILN_STAGES_IMPORT_DATASET_SEARCH_H

#include "base/file.h"
#include "stages/import/dataset/dataset.h"
#include "stages/import/dataset/training_steps.h"

#include <stdbool.h>

/* A splat or point file that was looked at. */
typedef struct {
    char path[KILN_PATH_MAX];
    const kiln_reader *reader; /* NULL: it cannot be read */
    bool has_none;             /* because it is sound and holds something else */
    kiln_scene_kind kind;
    uint64_t n_rows;
    /* how many rows: it is packed, and only when it is unpacked that shows; n_rows is 0 */
    bool is_unknown;
    uint64_t iteration; /* of point_cloud/iteration_N, else 0 */
    /* which of several states of a training it is, by its path in the data set's folder */
    kiln_step state;
    int64_t mtime_ns;
    bool below;       /* it lies in a folder of the directory, and not in point_cloud */
    kiln_error why;   /* when it cannot be read */
    char notes[1600]; /* of kiln_finding */
} kiln_candidate;

typedef struct {
    kiln_dataset *d;
    const char *avoid;
    const kiln_read_options *options;
    const char *add;       /* --add */
    const char *stays;     /* kiln_dataset_wishes */
    const char *leave_out; /* kiln_dataset_wishes */
    uint32_t first_added;  /* in d->more, of those files */
    bool parts;            /* --parts */
    bool rows_alone;       /* kiln_dataset_wishes */
    bool has_point_cloud;  /* there is a point_cloud folder, so that splats are expected in it */
    /* owned: the last iteration first, then the directory's own by name, then those below */
    kiln_candidate *files;
    uint32_t n_files;
    bool trained; /* files[0] is that iteration */
    /* what the cameras bring along */
    const char *camera_kind;    /* NULL: no cameras */
    char points[KILN_PATH_MAX]; /* point file that belongs to the cameras, "" none */
} kiln_search;

/* dataset_below.c: appends the paths of files of Gaussians in folders of the directory, at most
 * three down; those that hold other things are dropped later. */
kiln_status kiln_search_below(kiln_search *s, kiln_error *err) KILN_MUST_CHECK;
/* dataset_files.c: may a file of this name hold Gaussians or points? */
bool kiln_search_is_candidate(const char *name);
kiln_status kiln_search_add_file(kiln_search *s, const char *path, uint64_t iteration,
                                 kiln_error *err) KILN_MUST_CHECK;
/* A file of Gaussians that counts: it can be read and is not the packed copy of another. */
bool kiln_search_competes(const kiln_search *s, const kiln_candidate *c);
/* The last state of the training that c is an earlier state of; NULL: c is the last. */
const kiln_candidate *kiln_search_later_state(const kiln_search *s, const kiln_candidate *c);
/* dataset_files.c: probes the splat and point files of the directory; or one file, whatever it is
 * called: *out is in s->files, valid until the next search. */
kiln_status kiln_search_files(kiln_search *s, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_search_file(kiln_search *s, const char *path, const kiln_candidate **out,
                             kiln_error *err) KILN_MUST_CHECK;
/* dataset_cameras.c: reads the cameras; file: --cameras or NULL. */
kiln_status kiln_search_cameras(kiln_search *s, const char *file, kiln_error *err) KILN_MUST_CHECK;

/* dataset_foreign.c: what lies there that is not read. Behind the rest: KILN_E_INPUT with what
 * helps where nothing else was found, else findings. */
kiln_status kiln_search_foreign(kiln_search *s, kiln_error *err) KILN_MUST_CHECK;
/* Of s->files from `first` on, those that are parts of another file of the directory (GLBs of a
 * tileset) give their place to it. */
kiln_status kiln_search_drop_parts(kiln_search *s, uint32_t first, kiln_error *err) KILN_MUST_CHECK;

#endif
