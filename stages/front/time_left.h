/* time_left -- how long a bake will still take, said beside the progress of its stages.
 *
 * A stage that comes is expected to take what it took in an earlier bake of this manifest, as if
 * all its units were due, in proportion to the rows (of stages about cameras: the cameras) of then
 * and now. Where it has not run, what was measured once for each row, view and pair. Both times how
 * much slower than that the stages of this bake have been. Nothing is known before there is either:
 * then no time is said. What is shown moves towards new estimates instead of jumping to them.
 *
 * For one thread. The manifest is read between stages, when nothing else of this process has it
 * open; what cannot be read is not known, and no failure. */
#ifndef KILN_STAGES_FRONT_TIME_LEFT_H
#define KILN_STAGES_FRONT_TIME_LEFT_H

#include "base/log.h"
#include "stages/front/table.h"

#include <stdbool.h>
#include <stddef.h>

/* How much there is to do; NAN: not known. */
typedef struct {
    /* the last three of all views together; photo_pixels: of those with a photo */
    double rows, views, pixels, photo_pixels, pairs;
} kiln_bake_size;

typedef struct {
    /* of stages.def, or a program behind the stages, which is not counted among them; borrowed */
    const char *name;
    bool runs;          /* in this bake */
    double stored_s;    /* what it took before, as if all units were due; NAN: it has not run */
    double rows, views; /* of that run; NAN: not known */
    /* in this bake, as if all units were due; NAN: not yet, or nothing was due */
    double took_s;
} kiln_timed_stage;

typedef struct {
    kiln_timed_stage stage[KILN_STAGES_MAX];
    size_t n, now; /* stages; the one in work */
    kiln_bake_size size;
    const char *manifest; /* borrowed */
    int64_t bake_ns;      /* when this bake began, since 1970 */
    uint64_t stage_ns;    /* when the stage in work began, monotonic */
    double shown_s;       /* what was said last, at shown_ns; NAN: nothing */
    uint64_t shown_ns;
    kiln_progress_whole whole;
} kiln_time_left;

/* Before the first stage: names and which of them run, n of each (at most KILN_STAGES_MAX).
 * manifest need not be there yet. */
void kiln_time_left_init(kiln_time_left *t, size_t n, const char *const names[], const bool runs[],
                         const char *manifest);
/* Stage s begins: its progress tells of the whole from now on (kiln_progress_within). *t stays
 * where it is until it ends. */
void kiln_time_left_begin(kiln_time_left *t, size_t s);
/* It has ended: learns from it. */
void kiln_time_left_end(kiln_time_left *t, size_t s);

/* ---- for those above, and for tests ---------------------------------------------------------- */
/* Seconds that all of a stage should take; NAN: not known. */
double kiln_time_left_of_stage(const kiln_time_left *t, size_t s);
/* Seconds left of the whole as it looks now, never below 0; NAN: not known. stage_s: since the
 * stage began. list_s, share: since the list of units in work began, and how much of it is done
 * (0..1). */
double kiln_time_left_now(const kiln_time_left *t, double stage_s, double list_s, double share);
/* The same, made steady: what is to be shown at now_ns. */
double kiln_time_left_show(kiln_time_left *t, double seconds, uint64_t now_ns);

#endif
