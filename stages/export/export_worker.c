/* export_worker -- the worker's side of a writer: units of rounds, and the survey of the rows. */
#include "stages/export/export_rounds.h"
#include "stages/export/export_shared.h"
#include "stages/export/loss.h"
#include "stages/export/made_levels.h"
#include "stages/export/survey.h"
#include "stages/formats/rows.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    kiln_export_worker x;
    kiln_export_copy copy;
    uint32_t serial;
} worker_state;

static void free_state(void *state)
{
    worker_state *s = state;
    if (!s) return;
    const kiln_writer *writer = s->copy.places.writer;
    if (s->x.planes) s->x.planes->close(s->x.planes_own);
    kiln_runner_drop(kiln_worker_runner(s->x.w), s->x.own);
    if (s->x.own) (writer->functions->close ? writer->functions->close : free)(s->x.own);
    if (s->x.fd >= 0) close(s->x.fd); /* every write was checked; the parent syncs */
    for (int i = 0; i < KILN_SCRATCH_FILES; i++)
        if (s->x.scratch[i] >= 0) close(s->x.scratch[i]);
    if (s->x.made >= 0) close(s->x.made);
    for (uint32_t i = 0; i < KILN_EXPORT_BAKES; i++)
        if (s->x.others[i]) kiln_manifest_close(s->x.others[i]);
    for (unsigned i = 0; i < KILN_KEPT_ALL; i++) free(s->x.kept[i].data);
    kiln_export_copy_release(&s->copy);
    free(s);
}

static kiln_status open_export_file(const char *path, int *fd, kiln_error *err)
{
    *fd = open(path, O_RDWR | O_CLOEXEC);
    return *fd >= 0 ? KILN_OK
                    : kiln_fail(err, KILN_E_IO, "cannot open '%s': %s", path, strerror(errno));
}

static kiln_status open_state(worker_state *s, kiln_worker *w, const kiln_export_request *q,
                              const void *shared, size_t bytes, kiln_error *err)
{
    kiln_manifest *m = NULL;
    const kiln_export_planes *planes = s->x.planes;
    s->serial = q->serial;
    s->x = (kiln_export_worker){
        .e = &s->copy.e, .w = w, .fd = -1, .made = -1, .round = q->round, .planes = planes};
    for (int i = 0; i < KILN_SCRATCH_FILES; i++) s->x.scratch[i] = -1;
    if (!planes) KILN_TRY(kiln_worker_manifest(w, &m, err));
    KILN_TRY(kiln_export_unpack(shared, bytes, m, &s->copy, err));
    if (planes) KILN_TRY(planes->open(s->x.e, w, &s->x.planes_own, err));
    if (q->round >= KILN_ROUND_SURVEY) return KILN_OK;
    if (s->copy.places.writer->functions->place == KILN_PLACE_FILE)
        KILN_TRY(open_export_file(s->copy.temporary, &s->x.fd, err));
    for (int i = 0; i < KILN_SCRATCH_FILES; i++)
        if (s->copy.places.scratch[i][0])
            KILN_TRY(open_export_file(s->copy.places.scratch[i], &s->x.scratch[i], err));
    return KILN_OK;
}

static kiln_status give_counts(const worker_state *s, kiln_worker *w, kiln_error *err)
{
    const kiln_export_count *counts = s->copy.places.writer->functions->counts;
    json_t *list = json_array();
    for (uint32_t i = 0; counts && counts[i].more && list; i++)
        if (json_array_append_new(list, json_integer((json_int_t)s->x.counts[i])) != 0) {
            json_decref(list);
            list = NULL;
        }
    json_t *counters = json_pack("{s:o}", "counts", list);
    if (!counters) return kiln_fail(err, KILN_E_NOMEM, "out of memory while counting");
    const kiln_status st = kiln_worker_counters(w, counters, err);
    json_decref(counters);
    return st;
}

static kiln_status run_unit(worker_state *s, const kiln_export_request *q, kiln_worker *w,
                            kiln_error *err)
{
    const kiln_writer_functions *f = s->copy.places.writer->functions;
    memset(s->x.counts, 0, sizeof s->x.counts);
    s->x.w = w;
    if (q->round == KILN_ROUND_SURVEY) return kiln_survey_chunk(&s->x, f->survey, q->unit, err);
    if (q->round == KILN_ROUND_COUNT) return kiln_survey_chunk(&s->x, 0, q->unit, err);
    if (q->round == KILN_ROUND_MAKE) return kiln_made_unit(&s->x, q->unit, err);
    if (q->round == KILN_ROUND_LOSS) return kiln_loss_measure(&s->x, err);
    if (q->round >= f->n_rounds)
        return kiln_fail(err, KILN_E_BUG, "there is no round %u", q->round);
    KILN_TRY(f->rounds[q->round].run(&s->x, q->unit, err));
    return give_counts(s, w, err);
}

kiln_status kiln_export_unit_of(kiln_worker *w, const kiln_export_planes *planes,
                                const void *payload, size_t bytes, kiln_error *err)
{
    kiln_export_request q;
    worker_state *s = kiln_worker_state(w);
    if (bytes < sizeof q)
        return kiln_fail(err, KILN_E_BUG, "an export request of %zu bytes", bytes);
    memcpy(&q, payload, sizeof q);
    if (!s || s->serial != q.serial) {
        kiln_worker_set_state(w, NULL, NULL); /* the round before is over: its memory goes first */
        KILN_TRY(KILN_ALLOC(&s, 1, "export", err));
        s->x.planes = planes;
        const kiln_status st =
            open_state(s, w, &q, (const char *)payload + sizeof q, bytes - sizeof q, err);
        if (st != KILN_OK) {
            free_state(s);
            return st;
        }
        kiln_worker_set_state(w, s, free_state);
    }
    return run_unit(s, &q, w, err);
}

kiln_status kiln_export_unit(kiln_worker *w, const char *name, const void *payload, size_t bytes,
                             kiln_error *err)
{
    (void)name;
    return kiln_export_unit_of(w, NULL, payload, bytes, err);
}
