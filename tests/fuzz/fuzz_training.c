/* fuzz_training -- files that trainers leave beside their Gaussians: INRIA's exposure.json,
 * gsplat's cfg.yml, nerfstudio's config.yml; and names as they are folded. What comes through is
 * sound, and the same a second time. */
#include "tests/fuzz/fuzz.h"

#include "stages/cameras/camera_file.h"
#include "stages/cameras/exposures.h"
#include "stages/files/name_fold.h"
#include "stages/import/dataset/training_marks.h"
#include "stages/import/dataset/training_steps.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void match_some(const kiln_exposures *e)
{
    static const char *const names[] = {"v0", "left/v0", "right/v0", "v1"};
    enum { N = sizeof names / sizeof *names };
    kiln_camera *cameras = calloc(N, sizeof *cameras);
    const kiln_exposure *of[N];
    kiln_error err = {0};
    HOLDS(cameras);
    for (size_t i = 0; i < N; i++) {
        cameras[i].name = names[i];
        snprintf(cameras[i].split, sizeof cameras[i].split, "%s", i == 1 ? "train" : "test");
    }
    HOLDS(kiln_exposures_match(e, cameras, N, of, &err) == KILN_OK);
    for (size_t i = 0; i < N; i++) HOLDS(!of[i] || (of[i] >= e->list && of[i] < e->list + e->n));
    free(cameras);
}

void kiln_fuzz_exposure(const void *argument, const uint8_t *data, size_t size)
{
    kiln_exposures a, b;
    kiln_error err = {0};
    const char *path = kiln_fuzz_path(data, size);
    (void)argument;
    const kiln_status st = kiln_exposures_read(path, &a, &err);
    if (st != KILN_OK) kiln_fuzz_refusal(st, &err);
    HOLDS(kiln_exposures_read(path, &b, &err) == st);
    for (uint32_t i = 0; st == KILN_OK && i < a.n; i++) {
        for (int k = 0; k < 12; k++) HOLDS(isfinite(a.list[i].m[k]));
        HOLDS(i == 0 || strcmp(a.list[i - 1].name, a.list[i].name) < 0);
        HOLDS(memcmp(a.list[i].m, b.list[i].m, sizeof a.list[i].m) == 0);
    }
    if (st == KILN_OK) match_some(&a);
    kiln_exposures_release(&a);
    kiln_exposures_release(&b);
}

/* argument: the file's name. */
void kiln_fuzz_training_marks(const void *argument, const uint8_t *data, size_t size)
{
    kiln_error err = {0};
    static const kiln_reader none;
    kiln_dataset *d = calloc(1, sizeof *d);
    char value[64];
    HOLDS(d);
    (void)kiln_fuzz_file("marks", argument, data, size);
    snprintf(d->set.root, sizeof d->set.root, "%s/marks", kiln_fuzz_folder());
    snprintf(d->rows_path, sizeof d->rows_path, "%s/marks/x.ply", kiln_fuzz_folder());
    d->reader = &none;
    d->rows_kind = KILN_SCENE_SPLATS;
    const kiln_status st = kiln_training_marks_read(d, &err);
    if (st != KILN_OK) kiln_fuzz_refusal(st, &err);
    HOLDS(!d->antialiased || d->set.n_sources == 1);
    if (kiln_yaml_scalar((const char *)data, size, "antialiased", false, value, sizeof value))
        HOLDS(value[0] || size > 0);
    kiln_dataset_release(d);
    free(d);
}

/* A fold of a fold is itself, whatever the bytes; a path has one step. */
void kiln_fuzz_name(const void *argument, const uint8_t *data, size_t size)
{
    char name[512], once[4096], twice[4096];
    kiln_step *step = calloc(1, sizeof *step);
    (void)argument;
    HOLDS(step);
    snprintf(name, sizeof name, "%.*s", (int)(size < 500 ? size : 500), (const char *)data);
    HOLDS(kiln_name_fold(name, strlen(name), once, sizeof once));
    HOLDS(kiln_name_fold(once, strlen(once), twice, sizeof twice) && strcmp(once, twice) == 0);
    HOLDS(!kiln_name_fold(name, strlen(name), twice, 1) || !name[0]);
    kiln_step_of(name, step);
    HOLDS(strlen(step->pattern) < sizeof step->pattern && (step->has_step || step->step == 0));
    free(step);
}
