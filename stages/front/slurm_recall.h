/* slurm_recall -- what a later `kiln slurm SCENE` remembers of the last one: its settings.
 *
 * It is in a file of the caller's own, $XDG_STATE_HOME/splatkiln/slurm/KEY or
 * ~/.local/state/splatkiln/slurm/KEY, KEY a hash of the real path of the bake's folder. The bake's
 * own folder may have been downloaded, and options of sbatch run commands (--wrap, --prolog of a
 * site): so nothing is remembered there. A file or folder of a link, of another user, or that
 * others may write to is not read; nor is one that lies in the bake or in the scene. */
#ifndef KILN_STAGES_FRONT_SLURM_RECALL_H
#define KILN_STAGES_FRONT_SLURM_RECALL_H

#include "stages/front/slurm_settings.h"

/* out: the folder of the bake, absolute and without links; scene: NULL or "" where there is none.
 * *known false: nothing is remembered. Where something is there that is not read, `why` (of 512
 * bytes) says why not, else it is "". KILN_E_NOMEM is the only failure. */
kiln_status kiln_slurm_recall_read(const char *out, const char *scene, kiln_slurm_settings *recall,
                                   bool *known, char *why, kiln_error *err) KILN_MUST_CHECK;
/* KILN_E_IO, KILN_E_INPUT: it is not remembered; the sentence says why. */
kiln_status kiln_slurm_recall_write(const char *out, const char *scene,
                                    const kiln_slurm_settings *recall,
                                    kiln_error *err) KILN_MUST_CHECK;

#endif
