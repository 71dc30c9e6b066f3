/* judgement -- whether rules whose limit is `auto` act.
 *
 * Problem. An axis far above the local spacing is what explodes tile lists. It is also what a far
 * background is made of: a trained capture holds opaque Gaussians of ten units a hundred units
 * away, and without them pictures lose decibels. A scale alone does not tell the two apart.
 *
 * Rule. What such rules would touch counts as exploded only where it holds more than half of the
 * predicted pairs of some camera, at the camera's own size, profile inria without antialiasing;
 * Gaussians that other rules drop count for neither side. Then all of these rules act, with the
 * limits of rules.def; else none does. A scene without cameras has the eight on an orbit that
 * import makes.
 *
 * Layout. Blocks whose largest scale is below all limits hold no such row, so a sound scene costs
 * nothing. Each other block is a unit that marks its rows (marks_unit.c); if there are any, each
 * camera is a unit that counts (weight_unit.c): a few cameras first, because one decides where a
 * scene exploded. The answer is of integers, so it is the same on every device and host. */
#ifndef KILN_STAGES_PRUNE_JUDGEMENT_H
#define KILN_STAGES_PRUNE_JUDGEMENT_H

#include "stages/prune/pruning.h"

/* When statistics and merges are known: sets p->judgement, p->chosen and p->rules. Fails as
 * kiln_run_units. */
kiln_status kiln_pruning_judge(kiln_run *r, kiln_pruning *p, kiln_error *err) KILN_MUST_CHECK;
/* Adds what the judgement depends on besides the input and the options: the views of all cameras.
 * Nothing where no limit is auto.
 */
kiln_status kiln_pruning_key_judges(kiln_run *r, kiln_pruning *p, kiln_hasher *h,
                                    kiln_error *err) KILN_MUST_CHECK;

#endif
