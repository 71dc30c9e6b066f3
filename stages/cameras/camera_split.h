/* camera_split -- which cameras are test views and which are training views. The rules and their
 * order: camera_set.h. */
#ifndef KILN_STAGES_CAMERAS_CAMERA_SPLIT_H
#define KILN_STAGES_CAMERAS_CAMERA_SPLIT_H

#include "base/status.h"

#include <stdint.h>

typedef enum {
    KILN_SPLIT_AUTO,
    KILN_SPLIT_EVERY,
    KILN_SPLIT_NAMES,
    KILN_SPLIT_ALL_TRAIN
} kiln_split_kind;

/* --split; all zero: auto. */
typedef struct {
    kiln_split_kind kind;
    uint32_t every;   /* KILN_SPLIT_EVERY: 1 or more */
    const char *file; /* KILN_SPLIT_NAMES: borrowed from the text */
} kiln_split;

/* Parses "auto", "every:N", "names:FILE" or "all-train". KILN_E_USAGE. */
kiln_status kiln_split_parse(const char *text, kiln_split *out, kiln_error *err) KILN_MUST_CHECK;

struct kiln_camera_set;
/* Gives every camera of the set, sorted by name, its split as set->split asks, and fills
 * set->split_rule. Adds the list of names that was used to the sources and findings, and a note
 * about names that fit no camera. KILN_E_INPUT: the list of --split cannot be read, or none of its
 * names is a camera's. */
kiln_status kiln_split_cameras(struct kiln_camera_set *set, kiln_error *err) KILN_MUST_CHECK;

#endif
