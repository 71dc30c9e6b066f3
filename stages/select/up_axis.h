/* up_axis -- the axis that points up, as options and scene.up_axis name it: "y", "-z", "0 0.5 1";
 * "" unknown.
 *
 * Pure functions; any thread may call them. */
#ifndef KILN_STAGES_SELECT_UP_AXIS_H
#define KILN_STAGES_SELECT_UP_AXIS_H

#include "kernels/similarity/similarity.h"

#include <stddef.h>

/* The unit vector of such a text; of "" that of -y, because x right, y down, z forward is what
 * trainers store. */
void kiln_up_vector(const char *up, double out[3]);
/* Turns such a text: a letter where the turned axis is one, else three numbers. "" stays. */
void kiln_turn_axis(const kiln_similarity *s, char *axis, size_t capacity);

#endif
