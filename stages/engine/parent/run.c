/* What a stage asks its run: options, keys, stored parameters, and whether a stage is fresh. */
#include "stages/engine/parent/run.h"

#include "base/log.h"
#include "base/memory.h"
#include "stages/engine/interrupt.h"
#include "stages/engine/parent/stored_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

kiln_manifest *kiln_run_manifest(kiln_run *r) { return r->manifest; }
bool kiln_run_is_frozen(const kiln_run *r) { return r->hosts.frozen; }
kiln_manifest *kiln_run_store(const kiln_run *r)
{
    return r->hosts.part ? r->hosts.part : r->manifest;
}
void kiln_run_set_manifest(kiln_run *r, kiln_manifest *m) { r->manifest = m; }
const kiln_parsed *kiln_run_args(const kiln_run *r) { return &r->parsed; }
bool kiln_run_is_once(const kiln_run *r) { return kiln_opt_flag_given(&r->cli, KILN_ONCE); }
bool kiln_run_is_passing(const kiln_run *r) { return r->program->flags & KILN_PROGRAM_PASSING; }
bool kiln_run_force(const kiln_run *r) { return r->options->force; }

bool kiln_run_reset(const kiln_run *r) { return r->options->reset; }
bool kiln_run_allow_network(const kiln_run *r) { return r->options->allow_network; }
bool kiln_run_json(const kiln_run *r) { return r->common->json; }
bool kiln_run_prints(const kiln_run *r) { return !r->common->json && !r->common->quiet; }
bool kiln_run_prints_all(const kiln_run *r, bool only_looks)
{
    return kiln_run_prints(r) && (only_looks || r->common->verbose);
}
json_t *kiln_run_report(kiln_run *r) { return r->report.own; }
kiln_status kiln_run_interrupted(const kiln_run *r, kiln_error *err)
{
    (void)r; /* signals are the process's */
    return kiln_interrupt_check(err);
}

/* ---- keys ------------------------------------------------------------------------------------ */
kiln_hasher *kiln_run_key_bare(kiln_run *r, const char *what)
{
    kiln_hasher *h = kiln_key_begin(r->program->name, r->stage ? r->stage->version : 0);
    kiln_key_text(h, "what", what);
    return h;
}

kiln_hasher *kiln_run_key(kiln_run *r)
{
    char text[KILN_OPT_TEXT_MAX];
    kiln_hasher *h = kiln_key_begin(r->program->name, r->stage ? r->stage->version : 0);
    for (const kiln_opt *o = r->cli.options; o && o->name; o++) {
        if (!(o->flags & KILN_KEYED)) continue;
        (void)kiln_opt_text(o, text, sizeof text);
        const char *def = o->def ? o->def : o->kind == KILN_OPT_BOOL ? "no" : "";
        if (o->flags & KILN_LATER && !strcmp(text, def)) continue;
        kiln_key_text(h, o->name, text);
    }
    return h;
}

/* ---- parameters ------------------------------------------------------------------------------ */
#define FORGET "stored parameter (--reset forgets it)"

/* Sets an option, which has its default, to its stored value. A value that the option refuses is
 * bad input, not a mistake in the command line. *differs: that changes something. */
static kiln_status take_stored(kiln_run *r, const kiln_opt *row, const char *value, bool *differs,
                               kiln_error *err)
{
    char before[KILN_OPT_TEXT_MAX], text[KILN_OPT_TEXT_MAX];
    const size_t used = strlen(r->stored);
    (void)kiln_opt_text(row, before, sizeof before);
    kiln_status st =
        kiln_opt_set(&r->cli, row->name, kiln_stored_option_value(row, value), FORGET, err);
    (void)snprintf(r->stored + used, sizeof r->stored - used, "%s%s ", used ? "" : " ", row->name);
    if (st == KILN_E_USAGE && err) st = err->status = KILN_E_INPUT;
    if (st != KILN_OK) return st == KILN_E_USAGE ? KILN_E_INPUT : st;
    *differs = strcmp(before, kiln_opt_text(row, text, sizeof text)) != 0;
    return KILN_OK;
}

/* Tells of the options that change this run. rows: [n]; NULL where one changes nothing. */
static kiln_status tell_stored(const kiln_run *r, const kiln_opt *const *rows, uint32_t n,
                               kiln_error *err)
{
    char text[KILN_OPT_TEXT_MAX];
    kiln_buffer in_force = {0};
    kiln_status st = KILN_OK;
    for (uint32_t i = 0; i < n && st == KILN_OK; i++)
        if (rows[i] && !(r->program->ignores && r->program->ignores(rows[i]->name)))
            st = kiln_stored_option_put(rows[i], kiln_opt_text(rows[i], text, sizeof text),
                                        &in_force, err);
    if (st == KILN_OK && in_force.size)
        kiln_say("stored options in force until --reset: %s", (const char *)in_force.data);
    kiln_buffer_release(&in_force);
    return st;
}

/* Warns of all unknown parameters in one sentence. */
static kiln_status warn_of_unknown(const kiln_run *r, const kiln_parameter *stored, uint32_t n,
                                   kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_buffer names = {0};
    for (uint32_t i = 0; i < n; i++)
        if (!kiln_stored_option_row(&r->cli, stored[i].name))
            KILN_GO(
                kiln_buffer_printf(&names, err, "%s'%s'", names.size ? ", " : "", stored[i].name));
    if (names.size)
        kiln_warn("stored parameters are ignored, because they come from another version of this "
                  "program (--reset forgets them): %s",
                  (const char *)names.data);
done:
    kiln_buffer_release(&names);
    return st;
}

kiln_status kiln_run_load_parameters(kiln_run *r, kiln_error *err)
{
    kiln_parameter *stored = NULL;
    const kiln_opt **rows = NULL;
    uint32_t n = 0;
    kiln_status st = KILN_OK;
    if (!r->stage || !r->manifest || r->options->reset) return KILN_OK;
    KILN_TRY(kiln_parameters_get(r->manifest, r->stage->name, &stored, &n, err));
    KILN_GO(KILN_ALLOC(&rows, n, "stored options", err));
    KILN_GO(warn_of_unknown(r, stored, n, err));
    for (uint32_t i = 0; i < n; i++) {
        const kiln_opt *row = kiln_stored_option_row(&r->cli, stored[i].name);
        bool differs = false;
        if (!row || kiln_opt_given(&r->cli, row->name)) continue;
        KILN_GO(take_stored(r, row, stored[i].value, &differs, err));
        if (differs) rows[i] = row;
    }
    st = tell_stored(r, rows, n, err); /* now that all have their values */
done:
    free(rows);
    kiln_parameters_free(stored, n);
    return st;
}

/* Says whether the sentence names this option. */
static bool names(const char *sentence, const char *option)
{
    char word[80];
    const int n = snprintf(word, sizeof word, "--%s", option);
    const char *at = n < (int)sizeof word ? strstr(sentence, word) : NULL;
    return at && !(at[n] == '-' || (at[n] >= 'a' && at[n] <= 'z'));
}

bool kiln_run_has_stored(const kiln_run *r, const char *option)
{
    char word[80];
    (void)snprintf(word, sizeof word, " %s ", option);
    return strstr(r->stored, word) != NULL;
}

kiln_status kiln_run_blame_stored(const kiln_run *r, kiln_status st, kiln_error *err)
{
    bool is_stored = false;
    if (st != KILN_E_USAGE) return st;
    for (const kiln_opt *o = r->cli.options; o && o->name; o++) {
        if (!(o->flags & KILN_KEYED) || !names(err->msg, o->name)) continue;
        if (kiln_opt_given(&r->cli, o->name)) return st;
        is_stored |= kiln_run_has_stored(r, o->name);
    }
    if (!is_stored) return st;
    kiln_note(err, FORGET);
    return err->status = KILN_E_INPUT;
}

kiln_status kiln_run_store_parameters(kiln_run *r, kiln_error *err)
{
    char text[KILN_OPT_TEXT_MAX];
    if (!r->stage) return KILN_OK;
    if (r->options->reset) KILN_TRY(kiln_parameters_clear(r->manifest, r->stage->name, err));
    for (const kiln_opt *o = r->cli.options; o && o->name; o++)
        if (o->flags & KILN_KEYED && kiln_opt_given(&r->cli, o->name))
            KILN_TRY(kiln_parameter_put(r->manifest, r->stage->name, o->name,
                                        kiln_opt_text(o, text, sizeof text), err));
    return KILN_OK;
}

/* ---- what is fresh --------------------------------------------------------------------------- */
kiln_status kiln_run_need(kiln_run *r, const char *stage, kiln_error *err)
{
    return kiln_run_need_of(r, r->manifest, stage, err);
}

kiln_status kiln_run_need_of(kiln_run *r, kiln_manifest *m, const char *stage, kiln_error *err)
{
    const kiln_stage_info *info = kiln_stage_find(stage);
    kiln_stage_row row;
    if (!info || !m)
        return kiln_fail(err, KILN_E_BUG, "%s cannot need the stage '%s'", r->program->name, stage);
    KILN_TRY(kiln_stage_get(m, stage, &row, err));
    kiln_stage_state state = row.state;
    if (state != KILN_STAGE_MISSING && row.version != info->version) state = KILN_STAGE_STALE;
    if (state == KILN_STAGE_FRESH) return KILN_OK;
    /* what is made from it is partial too */
    if (state == KILN_STAGE_PARTIAL && r->options->allow_partial) {
        (void)snprintf(r->partial_input, sizeof r->partial_input, "%s", stage);
        return KILN_OK;
    }
    const char *what = state == KILN_STAGE_MISSING ? "has not run"
                       : state == KILN_STAGE_STALE ? "is stale"
                                                   : "finished partially";
    return kiln_fail(err, KILN_E_STALE, "%s %s for '%s'; run kiln-%s%s '%s' first%s", stage, what,
                     kiln_manifest_path(m), stage, strcmp(stage, "import") ? "" : " SCENE",
                     kiln_manifest_path(m),
                     state == KILN_STAGE_PARTIAL ? ", or give --allow-partial"
                     : state == KILN_STAGE_STALE
                         ? ", or kiln pipeline SCENE, which runs all stages that are due"
                         : "");
}

kiln_status kiln_run_is_fresh(kiln_run *r, kiln_hash input_key, bool *fresh, kiln_error *err)
{
    kiln_stage_row row;
    bool lost;
    *fresh = false;
    KILN_TRY(r->hosts.hooks->agree(r, input_key, err));
    if (!r->stage || !r->manifest)
        return kiln_fail(err, KILN_E_BUG, "%s is no stage", r->program->name);
    if (r->options->force || kiln_run_is_once(r)) return KILN_OK;
    KILN_TRY(kiln_stage_get(r->manifest, r->stage->name, &row, err));
    if (row.version != r->stage->version || !kiln_hash_equal(row.input_key, input_key))
        return KILN_OK;
    KILN_TRY(kiln_stage_lost_layer(r->manifest, r->stage->name, &lost, err));
    /* the stage makes it again from stored units */
    if (lost) return KILN_OK;
    /* what it reads changed and changed back, or came out as before */
    if (row.state == KILN_STAGE_STALE && !r->hosts.frozen) {
        row.state = KILN_STAGE_FRESH;
        KILN_TRY(kiln_manifest_begin(r->manifest, err));
        kiln_status st = kiln_stage_put(r->manifest, &row, err);
        if (st == KILN_OK) st = kiln_manifest_commit(r->manifest, err);
        if (st != KILN_OK) {
            kiln_manifest_rollback(r->manifest);
            return st;
        }
    }
    *fresh = row.state == KILN_STAGE_FRESH;
    return KILN_OK;
}
