/* bake_times -- what a manifest says of the times and the size of its bake. What is missing, or is
 * no sensible number, stays as it is in *t: a stranger's manifest may say anything. For
 * time_left.c. */
#ifndef KILN_STAGES_FRONT_BAKE_TIMES_H
#define KILN_STAGES_FRONT_BAKE_TIMES_H

#include "stages/front/time_left.h"

/* Before the first stage: reads what each stage took in earlier bakes, and the size. */
void kiln_bake_times_read(kiln_time_left *t);
/* After stage s, which took so long in this bake: reads whether all its units were due, and the
 * size. */
void kiln_bake_times_learn(kiln_time_left *t, size_t s, double took_s);

#endif
