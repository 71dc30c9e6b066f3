/* exposure -- see the header. */
#include "stages/render/exposure.h"

#include "base/log.h"
#include "stages/engine/json_text.h"
#include "stages/engine/meaning.h"
#include "stages/files/hash_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const kiln_source_file *source_of(const kiln_render_plan *s)
{
    for (uint32_t i = 0; i < s->n_sources; i++)
        if (strcmp(s->sources[i].role, KILN_EXPOSURE_ROLE) == 0) return &s->sources[i];
    return NULL;
}

/* What import noted of cfg_args. */
static kiln_status read_notes(kiln_render_plan *s, kiln_error *err)
{
    json_t *notes; /* NULL: they are no JSON */
    KILN_TRY(kiln_json_parse(s->scene.notes, strlen(s->scene.notes), 0, "the scene's notes", &notes,
                             NULL, err));
    s->trained_left =
        json_is_true(json_object_get(json_object_get(notes, "cfg_args"), "train_test_exp"));
    json_decref(notes);
    return KILN_OK;
}

static kiln_status check_unchanged_source(const kiln_source_file *f, kiln_error *err)
{
    kiln_file_info now;
    kiln_hash hash;
    KILN_TRY(kiln_file_stat(f->path, &now, err));
    if (now.size == f->size && now.mtime_ns == f->mtime_ns && now.inode == f->inode) return KILN_OK;
    KILN_TRY(kiln_hash_file(f->path, &hash, err));
    return kiln_hash_equal(hash, f->hash)
               ? KILN_OK
               : kiln_fail(err, KILN_E_INPUT, "'%s' changed since import", f->path);
}

kiln_status kiln_render_exposures_get(kiln_render_plan *s, kiln_error *err)
{
    kiln_error why = {0};
    KILN_TRY(read_notes(s, err));
    s->exposure_file = s->o->exposure == KILN_EXPOSURE_OFF ? NULL : source_of(s);
    if (!s->exposure_file) return KILN_OK;
    kiln_status st = check_unchanged_source(s->exposure_file, &why);
    if (st == KILN_OK) st = kiln_exposures_read(s->exposure_file->path, &s->exposures, &why);
    if (st == KILN_OK) return KILN_OK;
    if (st != KILN_E_INPUT && st != KILN_E_IO) return kiln_fail(err, st, "%s", why.msg);
    (void)snprintf(s->exposures_lost, sizeof s->exposures_lost, "%s", why.msg);
    return KILN_OK;
}

kiln_status kiln_render_exposures_match(kiln_render_plan *s, kiln_error *err)
{
    if (!s->exposure_file) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&s->exposure_of, s->n_cameras, "exposures", err));
    return kiln_exposures_match(&s->exposures, s->cameras, s->n_cameras, s->exposure_of, err);
}

/* Of the plan's cameras, and of no smaller copy of one. */
static const kiln_exposure *exposure_of(const kiln_render_plan *s, const kiln_render_job *j)
{
    const bool known = s->exposure_of && !s->against && j->camera >= s->cameras &&
                       j->camera < s->cameras + s->n_cameras;
    const kiln_exposure *e = known ? s->exposure_of[j->camera - s->cameras] : NULL;
    return e && !kiln_exposure_is_identity(e->m) ? e : NULL;
}

static bool is_test(const kiln_render_job *j) { return strcmp(j->camera->split, "test") == 0; }

void kiln_render_exposure_set(const kiln_render_plan *s, const kiln_render_job *j,
                              kiln_render_unit *u)
{
    const kiln_exposure *e = exposure_of(s, j);
    u->may_expose = s->exposure_file != NULL;
    u->exposure = e ? s->o->exposure : KILN_EXPOSURE_OFF;
    if (e) memcpy(u->exposure_matrix, e->m, sizeof u->exposure_matrix);
    u->exposure_lost = s->exposures_lost[0] != '\0';
    u->right_half = s->trained_left && is_test(j);
}

kiln_status kiln_render_exposures_check(const kiln_render_plan *s, kiln_error *err)
{
    bool due = false;
    for (uint32_t i = 0; i < s->n_jobs; i++) due |= s->jobs[i].due;
    if (!due || !s->exposures_lost[0]) return KILN_OK;
    if (s->o->exposure == KILN_EXPOSURE_ON)
        return kiln_fail(err, KILN_E_INPUT,
                         "--exposure on needs exposures: %s; import again, or give --no-exposure",
                         s->exposures_lost);
    kiln_warn("pictures are not measured, because photos need the exposures: %s; import again, or "
              "give --no-exposure",
              s->exposures_lost);
    return KILN_OK;
}

void kiln_render_exposure_key(kiln_hasher *h, const kiln_render_plan *s, const kiln_render_job *j)
{
    if (j->camera->photo[0] && s->trained_left && is_test(j)) kiln_key_u64(h, "right half", 1);
    if (!s->exposure_file || !(j->camera->photo[0] || s->o->exposure == KILN_EXPOSURE_ON)) return;
    kiln_key_u64(h, "exposure", s->o->exposure);
    kiln_key_hash(h, "exposures", s->exposure_file->hash);
}

static kiln_status tell_exposure(json_t *out, const char *sentence, kiln_error *err)
{
    kiln_say("%s", sentence);
    return kiln_meaning_put(out, err, "%s", sentence);
}

kiln_status kiln_render_exposures_report(const kiln_render_plan *s, json_t *out, kiln_error *err)
{
    uint32_t n = 0, n_measured = 0, n_half = 0;
    for (uint32_t i = 0; i < s->n_jobs; i++) {
        const kiln_render_job *j = &s->jobs[i];
        const bool measured = j->camera->photo[0] != '\0';
        n += exposure_of(s, j) != NULL;
        n_measured += exposure_of(s, j) && measured;
        n_half += s->trained_left && is_test(j) && measured;
    }
    char sentence[400] = "";
    if (n > 0 && s->o->exposure == KILN_EXPOSURE_ON)
        (void)snprintf(sentence, sizeof sentence,
                       "%u of %u pictures are drawn as " KILN_EXPOSURE_FILE
                       " says that their photos were exposed (--no-exposure: as they "
                       "are)",
                       n, s->n_jobs);
    else if (n_measured > 0)
        (void)snprintf(sentence, sizeof sentence,
                       "%u of %u pictures are compared as " KILN_EXPOSURE_FILE
                       " says that their photos were exposed (--no-exposure: as "
                       "they are; --exposure on: draw them so)",
                       n_measured, s->n_jobs);
    if (sentence[0]) KILN_TRY(tell_exposure(out, sentence, err));
    (void)snprintf(sentence, sizeof sentence,
                   "%u test view%s measured in the right half alone, as in INRIA's render.py, "
                   "because cfg_args says train_test_exp=True: "
                   "the left half was trained on",
                   n_half, n_half == 1 ? " is" : "s are");
    if (n_half > 0) KILN_TRY(tell_exposure(out, sentence, err));
    if (n + n_half == 0) return KILN_OK;
    json_t *v = json_pack("{s:s, s:i, s:i, s:i}", "file", KILN_EXPOSURE_FILE, "drawn",
                          (int)(s->o->exposure == KILN_EXPOSURE_ON ? n : 0), "compared",
                          (int)n_measured, "right_halves", (int)n_half);
    if (!v || json_object_set_new(out, "exposure", v) != 0)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for the report");
    return KILN_OK;
}

void kiln_exposure_apply(const double m[12], const float *in, uint64_t n, float *out,
                         uint32_t out_step)
{
    float e[12];
    for (int i = 0; i < 12; i++) e[i] = (float)m[i];
    for (uint64_t i = 0; i < n; i++) {
        const float p[3] = {in[4 * i], in[4 * i + 1], in[4 * i + 2]};
        for (int c = 0; c < 3; c++)
            out[out_step * i + (uint64_t)c] =
                p[0] * e[c] + p[1] * e[4 + c] + p[2] * e[8 + c] + e[4 * c + 3];
    }
}
