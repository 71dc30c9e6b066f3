/* work -- how long stages take on the CPU, about, and whether opening a GPU is worth it: the rule
 * of --devices auto.
 *
 * Problem. Making a GPU's context takes 0.3 s and ending it 0.1 s. A small scene is baked on the
 * CPU in less. Which is faster depends on the scene, so `auto` has to guess.
 *
 * Rule. Work is a time on one thread of the CPU. If all threads together take less for it than the
 * GPU takes to be opened and closed, the CPU computes. A GPU that is open already, as in `kiln
 * pipeline`, only has to be handed the stage.
 *
 * The figures of knn, tiles and render are 1.4 to 3 times what was measured (DESIGN.md), those of
 * import and chunk follow from a bake of 50 million Gaussians, and prune's is an estimate. So a GPU
 * is passed over only if the CPU has ended before a GPU could have. render counts the pictures that
 * are due; the other stages count all of their work. A wrong guess costs time and nothing else:
 * results have the same keys and bits on both. Pictures have a kind of device in their keys, and
 * with `auto` one of either kind counts as made.
 *
 * Times are seconds of one thread. Numbers are doubles, because they come from manifests, which may
 * say anything. */
#ifndef KILN_STAGES_ENGINE_DEVICES_WORK_H
#define KILN_STAGES_ENGINE_DEVICES_WORK_H

#include <stdbool.h>

double kiln_work_import(double rows);
double kiln_work_knn(double rows);
/* views: cameras times the sizes whose pairs are counted. */
double kiln_work_prune(double rows, double views);
double kiln_work_chunk(double rows);
double kiln_work_tiles(double rows, double cameras);
/* A picture of `rows` Gaussians that the camera may see, of which `pairs` are listed in tiles,
 * without decoding them. */
double kiln_work_picture(double rows, double pixels, double pairs, bool photo);
/* Counts the pairs of views; rows: those that each view may see, of all views together. */
double kiln_work_count(double rows);
/* Decodes the planes of so many rows. Each worker that draws does this once. */
double kiln_work_decode(double rows);

/* What is known before there are chunks and pairs. */
typedef struct {
    double rows, cameras, pixels; /* pixels of all cameras together */
} kiln_work_scene;
/* Returns the work of tiles or of render in this scene, whichever is more. 0: there is none. */
double kiln_work_later(const kiln_work_scene *s);

/* Says whether a GPU is worth it for this work. open: it is open already. */
bool kiln_work_pays(double cpu_s, unsigned threads, bool open);
/* Says whether a list of planning units that takes so long is worth a round over hosts
 * (kiln_run_shares_planning): from 100 s on. A round costs some seconds of a scheduler, and each
 * task decodes its input again. It depends on nothing that differs from host to host; KILN_ROUND_S
 * of the environment, which tests set, is another number of seconds. */
bool kiln_work_is_round(double cpu_s);
/* Returns the seconds that the rule counts for the GPU: KILN_GPU_MS of the environment, which tests
 * set, else what was measured. */
double kiln_work_gpu_s(bool open);

#endif
