/* slurm_status_json -- see the header. A part that has no memory is NULL, and json_pack fails with
 * it. */
#include "stages/front/slurm_status_json.h"

#include "stages/engine/json_text.h"
#include "stages/front/open_round.h"
#include "stages/front/slurm_calls.h"
#include "stages/front/slurm_last_job.h"
#include "stages/front/slurm_state.h"

#include <stdio.h>
#include <stdlib.h>

static json_t *json_or_null(const char *text)
{
    return *text ? kiln_json_string(text) : json_null();
}

/* Appends an element that may be NULL; a list that lacks one becomes NULL. */
static void append_or_drop(json_t **list, json_t *element)
{
    if (json_array_append_new(*list, element) == 0) return;
    json_decref(*list);
    *list = NULL;
}

static json_t *stages_json(const kiln_slurm_bake *b, const json_t *info)
{
    json_t *list = json_array();
    for (size_t i = 0; i < b->commands.n; i++) {
        const char *stage = b->commands.stage[i].stage;
        append_or_drop(&list, json_pack("{s:s, s:s}", "name", stage, "state",
                                        kiln_slurm_stage_state(info, stage)));
    }
    return list;
}

static kiln_status round_json(const kiln_slurm_bake *b, json_t **out, kiln_error *err)
{
    kiln_open_round open;
    kiln_task_list missing;
    *out = json_null();
    KILN_TRY(kiln_open_round_read(b->folder.manifest, &open, err));
    if (!open.there) return KILN_OK;
    KILN_TRY(kiln_open_round_missing(&open, b->folder.parts_fd, b->folder.parts, &missing, err));
    json_t *list = json_array();
    for (uint32_t i = 0; i < missing.n; i++) append_or_drop(&list, json_integer(missing.task[i]));
    kiln_task_list_release(&missing);
    *out = json_pack("{s:s, s:s, s:o, s:I, s:I, s:I, s:o}", "stage", open.stage, "plan", open.key,
                     "what", kiln_json_string(open.what), "units", (json_int_t)open.units, "due",
                     (json_int_t)open.due, "tasks", (json_int_t)open.tasks, "missing", list);
    return KILN_OK;
}

static json_t *jobs_json(const kiln_slurm_jobs *jobs)
{
    json_t *list = json_array();
    for (size_t i = 0; i < jobs->n; i++) {
        const kiln_slurm_job *job = &jobs->job[i];
        append_or_drop(
            &list, json_pack("{s:o, s:o, s:s, s:o, s:o}", "id", kiln_json_string(job->id), "state",
                             kiln_json_string(job->state), "kind", job->is_task ? "task" : "round",
                             "stage", kiln_json_string(job->stage), "reason",
                             kiln_json_string(job->reason)));
    }
    return list;
}

static kiln_status notes_json(const kiln_slurm_bake *b, const kiln_slurm_jobs *jobs, json_t **out,
                              kiln_error *err)
{
    char chain[64] = "", lost[300] = "", why[KILN_SLURM_WHY_MAX] = "";
    bool there;
    kiln_slurm_end end;
    KILN_TRY(kiln_slurm_note_read(&b->folder, "chain", chain, sizeof chain, &there, err));
    KILN_TRY(kiln_slurm_note_read(&b->folder, "lost", lost, sizeof lost, &there, err));
    KILN_TRY(kiln_slurm_end_read(&b->folder, &end, err));
    if (!end.there && jobs->n == 0) KILN_TRY(kiln_slurm_last_job_text(&b->folder, jobs, why, err));
    json_t *ended = end.there
                        ? json_pack("{s:i, s:o, s:o}", "code", end.code, "stage",
                                    kiln_json_string(end.stage), "why", kiln_json_string(end.why))
                        : json_null();
    *out = json_pack("{s:o, s:o, s:o, s:o}", "chain", json_or_null(chain), "lost",
                     json_or_null(lost), "ended", ended, "last_job", json_or_null(why));
    return KILN_OK;
}

static kiln_status print_document(json_t *doc, kiln_error *err)
{
    char *text = kiln_json_text(doc, JSON_INDENT(2));
    json_decref(doc);
    if (!text) return kiln_fail(err, KILN_E_NOMEM, "out of memory for the state of the bake");
    (void)puts(text); /* main checks stdout */
    free(text);
    return KILN_OK;
}

kiln_status kiln_slurm_status_json(const kiln_slurm_bake *b, kiln_error *err)
{
    kiln_slurm_jobs jobs = {0};
    json_t *info, *round = NULL, *notes = NULL, *doc = NULL;
    KILN_TRY(kiln_slurm_ask_info(b, &info, err));
    kiln_status st = round_json(b, &round, err);
    if (st == KILN_OK) st = kiln_slurm_jobs_now(b->folder.path, &jobs, err);
    if (st == KILN_OK) st = notes_json(b, &jobs, &notes, err);
    if (st == KILN_OK) {
        doc = json_pack("{s:i, s:o, s:o, s:O, s:o}", "version", 1, "folder",
                        kiln_json_string(b->folder.path), "stages", stages_json(b, info), "round",
                        round, "jobs", jobs_json(&jobs));
        if (doc && json_object_update(doc, notes) != 0) { /* which notes NULL fails, too */
            json_decref(doc);
            doc = NULL;
        }
        st = print_document(doc, err);
    }
    json_decref(notes);
    json_decref(round);
    json_decref(info);
    kiln_slurm_jobs_release(&jobs);
    return st;
}
