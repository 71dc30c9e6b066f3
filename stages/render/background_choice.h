/* background_choice -- the background where neither --background nor the scene names one: black,
 * unless the photos are white wherever nothing is drawn.
 *
 * Renders and masked captures have a plain background that no file names; over the wrong one they
 * measure 1 dB. It is decided once for a bake, by pictures of its cameras and their photos, which
 * are units of their own: so it is the same for one camera as for all, for every task of a round,
 * whatever the threads. Four cameras are looked at first. Only if these speak for white are all
 * others, at most 256 evenly spread ones; most captures are done with four, of which photos without
 * white are not even drawn.
 */
#ifndef KILN_STAGES_RENDER_BACKGROUND_CHOICE_H
#define KILN_STAGES_RENDER_BACKGROUND_CHOICE_H

#include "stages/render/render_plan.h"

/* Sets s->background, which is black, and s->background_chosen, once scene, chunks and cameras are
 * known. Cameras that are not the bake's own are drawn over what the bake's pictures have. Fails as
 * kiln_run_units. */
kiln_status kiln_render_background_choose(kiln_run *r, kiln_render_plan *s,
                                          kiln_error *err) KILN_MUST_CHECK;

#endif
