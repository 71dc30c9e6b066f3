/* activation -- do the rows of a file look as if their values were activated already: scales as
 * lengths, opacities within 0..1?
 *
 * Trainers keep logarithms and logits, and a PLY is taken to hold those; a file of activated values
 * is drawn with Gaussians of e^scale. All opacities within 0..1 and all scales positive may be
 * chance in a small scene, so a third sign is asked for: all quaternions of length one, or all
 * colours within 0..1. It is told and never acted on; --activated does that.
 */
#ifndef KILN_STAGES_IMPORT_ACTIVATION_H
#define KILN_STAGES_IMPORT_ACTIVATION_H

#include "stages/formats/reader.h"

typedef struct {
    uint64_t n;
    /* least and largest so far; length: of quaternions */
    float opacity[2], scale[2], length[2], colour[2];
} kiln_activation;

void kiln_activation_begin(kiln_activation *a);
/* Adds rows as they were read. Values that are not finite do not count. */
void kiln_activation_add(const kiln_rows *rows, kiln_dialect dialect, kiln_activation *a);
bool kiln_activation_is_likely(const kiln_activation *a);
/* Where it is likely, appends the sentence with the numbers to info->notes. */
void kiln_activation_note(const kiln_activation *a, kiln_source_info *info);
/* That sentence in such notes, which it ends; NULL: it is not there. */
const char *kiln_activation_noted(const char *notes);

#endif
