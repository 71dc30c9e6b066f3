/* camera_looks -- the training cameras that rules ask what they see, and what is computed of them:
 * their views as they are drawn, the masks of their photos.
 *
 * Cameras are those of the split "train", or all where there are none. They draw in their own size,
 * by the arithmetic of profile inria, antialiased if the scene says so; a camera with a lens is its
 * pinhole, as everywhere. For the parent's main thread. */
#ifndef KILN_STAGES_PRUNE_CAMERA_LOOKS_H
#define KILN_STAGES_PRUNE_CAMERA_LOOKS_H

#include "stages/prune/pruning.h"

/* Makes p->looks and p->masks where rules ask for them. KILN_E_INPUT: the scene has no cameras of
 * its own, with the way out. */
kiln_status kiln_pruning_take_looks(kiln_run *r, kiln_pruning *p, kiln_error *err) KILN_MUST_CHECK;
/* Adds what results of such rules depend on besides the input and the options. Nothing where no
 * rule asks. */
void kiln_pruning_key_looks(const kiln_pruning *p, kiln_hasher *h);
void kiln_pruning_key_look(const kiln_pruning *p, uint32_t look, kiln_hasher *h);
/* A unit of some looks: what it takes, what it costs. Few enough that units are spread over
 * devices; what a block shows is stored for each unit. */
enum { KILN_LOOKS_OF_UNIT_MOST = 4 };
typedef struct {
    uint32_t first, n; /* n: at most KILN_LOOKS_OF_UNIT_MOST */
    bool alphas;       /* of a unit of SCORES: it gives these, too */
    bool colour;       /* of CURVE, which draws pictures instead */
} kiln_looks_of_unit;
/* Units of SCORES, and of CURVE, which is drawn in a dry run alone; how many, and number i. */
uint32_t kiln_pruning_score_units(const kiln_pruning *p);
kiln_looks_of_unit kiln_pruning_score_unit(const kiln_pruning *p, uint32_t i);
uint32_t kiln_pruning_curve_units(const kiln_pruning *p);
kiln_looks_of_unit kiln_pruning_curve_unit(const kiln_pruning *p, uint32_t i);
/* Announces what the units take, before the first unit runs. *least: what a unit and its list take
 * at least; 0: there is none. */
void kiln_pruning_foresee_looks(kiln_run *r, const kiln_pruning *p, uint64_t *least);
/* Sets head->ram and head->room: whole pictures if a unit may take so much, else the largest slabs
 * for which there is room. */
void kiln_pruning_size_looks(kiln_run *r, const kiln_pruning *p, const kiln_looks_of_unit *u,
                             kiln_prune_unit *head);
/* Seconds of one thread, about. */
double kiln_pruning_looks_s(const kiln_pruning *p, const kiln_looks_of_unit *u);
/* Makes the payload of a unit, whose lists are in `shared`, its name set. head: but for what stands
 * here. */
kiln_status kiln_pruning_plan_looks(kiln_run *r, const kiln_pruning *p,
                                    const kiln_looks_of_unit *of, kiln_prune_unit *head,
                                    const kiln_buffer *shared, kiln_unit *u,
                                    kiln_error *err) KILN_MUST_CHECK;
/* Could one of the looks see a row of this block? */
bool kiln_pruning_looks_may_see(const kiln_pruning *p, const kiln_looks_of_unit *u, uint32_t block);

#endif
