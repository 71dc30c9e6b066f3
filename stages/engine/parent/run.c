/* What a stage asks its run: options, devices, keys, stored parameters, and whether a stage is fresh. */
#include "stages/engine/engine_internal.h"
#include "stages/engine/parent/stored_options.h"
#include "stages/engine/devices/work.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

kiln_manifest *kiln_run_manifest(kiln_run *r) { return r->manifest; }
bool kiln_run_is_frozen(const kiln_run *r) { return r->hosts.frozen; }
kiln_manifest *kiln_run_store(const kiln_run *r) { return r->hosts.part ? r->hosts.part : r->manifest; }
void kiln_run_set_manifest(kiln_run *r, kiln_manifest *m) { r->manifest = m; }
const kiln_parsed *kiln_run_args(const kiln_run *r) { return &r->parsed; }
bool kiln_run_is_once(const kiln_run *r) { return kiln_opt_flag_given(&r->cli, KILN_ONCE); }
bool kiln_run_force(const kiln_run *r)
{
    (void)r; /* options are the process's, the signature leaves that open */
    return kiln_engine_values.force;
}

bool kiln_run_reset(const kiln_run *r)
{
    (void)r;
    return kiln_engine_values.reset;
}
bool kiln_run_allow_network(const kiln_run *r)
{
    (void)r;
    return kiln_engine_values.allow_network;
}
bool kiln_run_json(const kiln_run *r)
{
    (void)r;
    return kiln_common_values.json;
}
bool kiln_run_prints(const kiln_run *r)
{
    (void)r;
    return !kiln_common_values.json && !kiln_common_values.quiet;
}
bool kiln_run_prints_all(const kiln_run *r, bool only_looks)
{
    return kiln_run_prints(r) && (only_looks || kiln_common_values.verbose);
}
json_t *kiln_run_report(kiln_run *r) { return r->report; }
kiln_status kiln_run_interrupted(const kiln_run *r, kiln_error *err)
{
    (void)r; /* signals are the process's */
    return kiln_interrupt_check(err);
}

/* ---- devices -------------------------------------------------------------------------------------------------------------- */
const char *kiln_run_named_kind(const kiln_run *r)
{
    return r->program->cpu_only ? "cpu" : kiln_devices_named_kind(kiln_common_values.devices);
}

/* Why a list is on the CPU. NO_REASON: it is where --devices says. */
typedef enum { NO_REASON, CPU_ALONE, PACKS, LITTLE_WORK } cpu_reason;

/* --devices says which GPUs may be used, and takes nothing from the CPU: a GPU has one worker, so what packs is on the CPU, where
 * every thread has one. What computes is on the GPUs that are named, whatever its size; `auto` opens none for a little work
 * (work.h). */
static cpu_reason why_cpu(const kiln_run *r)
{
    if (r->program->cpu_only || r->on_cpu) return CPU_ALONE;
    if (r->program->packs && !r->computes) return PACKS;
    if (kiln_devices_named_kind(kiln_common_values.devices)) return NO_REASON;
    if (kiln_device_built_version() == 0) return NO_REASON; /* which is said in the place of this */
    return r->work_s > 0 && !kiln_run_gpu_pays(r->work_s) ? LITTLE_WORK : NO_REASON;
}

bool kiln_run_gpu_pays(double cpu_s)
{
    return kiln_work_pays(cpu_s, kiln_devices_threads(kiln_common_values.threads), kiln_rest_has_gpu());
}

void kiln_run_expect_work(kiln_run *r, double cpu_s) { r->work_s = cpu_s; }
void kiln_run_expect_later(kiln_run *r, double cpu_s) { r->later_s = cpu_s; }

/* Writes the sentence about the choice of auto; nothing if there was none to make. */
static void say_choice(const kiln_run *r, cpu_reason reason, kiln_device_list *d)
{
    const unsigned threads = kiln_devices_threads(kiln_common_values.threads);
    const bool open = kiln_rest_has_gpu(), gpu = d->items[0].kind == KILN_DEVICE_CUDA;
    if (reason == PACKS) (void)snprintf(d->note, sizeof d->note, "%s packs more than it computes", r->program->name);
    if (r->work_s <= 0 || (reason != LITTLE_WORK && (!gpu || d->note[0] || kiln_devices_named_kind(kiln_common_values.devices))))
        return;
    (void)snprintf(d->note, sizeof d->note, "%s has about %.2g s of work for %u thread%s, %s than %s a GPU takes (%g s)",
                   r->program->name, r->work_s / threads, threads, threads == 1 ? "" : "s", gpu ? "more" : "less",
                   open ? "going on with" : "opening", kiln_work_gpu_s(open));
}

/* GPUs that are named must be there, although this list is on the CPU: a run whose later lists could not be computed ends before it
 * has computed the first. */
static kiln_status find_named(kiln_run *r, kiln_error *err)
{
    kiln_device_list *found;
    const char *kind = kiln_run_named_kind(r);
    if (r->found_named || !kind || strcmp(kind, "cuda") != 0) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&found, 1, "devices", err));
    const kiln_status st = kiln_devices_resolve(kiln_common_values.devices, found, err);
    r->found_named = st == KILN_OK;
    free(found);
    return st;
}

static void tell_choice(const kiln_run *r, cpu_reason reason, kiln_device_list *d)
{
    say_choice(r, reason, d);
    const char *where = d->items[0].kind == KILN_DEVICE_CUDA ? "" : "computing on the CPU: ";
    if (d->passed_over)
        kiln_warn("%s%s", where, d->note);
    else if (d->note[0])
        kiln_chat("%s%s", where, d->note);
}

kiln_status kiln_run_find_devices(kiln_run *r, kiln_error *err)
{
    kiln_device_list *const d = &r->home->devices;
    if (d->n) return KILN_OK;
    const cpu_reason reason = why_cpu(r);
    if (reason == PACKS) KILN_TRY(find_named(r, err));
    KILN_TRY(kiln_devices_resolve(reason == NO_REASON ? kiln_common_values.devices : "cpu", d, err));
    tell_choice(r, reason, d);
    return KILN_OK;
}

static bool is_cpu(const kiln_device_list *d) { return d->n == 1 && d->items[0].kind == KILN_DEVICE_CPU; }

static kiln_home *other_home(kiln_run *r) { return &r->homes[r->home == r->homes]; }

/* Ends all workers, or lets them rest for a later stage, unless a list goes on beside those that follow. The next list is on the
 * other home, whose slots are as its last list left them. What was left is looked for again when its turn comes. */
static void leave_home(kiln_run *r)
{
    kiln_home *const left = r->home;
    r->home = other_home(r);
    r->home->ahead = false;
    r->ram.ahead = 0; /* they are in the plan of the next list */
    if (kiln_run_is_beside(r, left)) return;
    kiln_workers_dismiss(left->workers, left->n_workers);
    kiln_rest_wait();
    kiln_workers_stop(left->workers, left->n_workers);
    for (unsigned i = 0; i < KILN_SLOTS_MAX; i++)
        left->workers[i].device = NULL; /* the next process is the first again, so that one that rests will do */
    left->devices.n = 0;
}

static bool has_gpu(void)
{
    kiln_error none;
    kiln_device_list *found;
    if (KILN_ALLOC(&found, 1, "devices", &none) != KILN_OK) return true;
    const kiln_status st = kiln_devices_resolve(kiln_common_values.devices, found, &none);
    const bool gpu = st != KILN_OK || !is_cpu(found) || found->passed_over; /* what is wrong is said before the next list */
    free(found);
    return gpu;
}

/* Call it when what decides about the next lists has changed. Workers on the CPU keep what they have decoded where it stays the
 * CPU's turn, or there is no GPU to take their place. GPUs that were opened ahead are taken even if no list had work before them,
 * and so no device was looked for: looked for on this home, they would be opened twice. */
static void change_home(kiln_run *r)
{
    const bool to_cpu = why_cpu(r) != NO_REASON, found = r->home->devices.n > 0;
    if (!found && !to_cpu && other_home(r)->ahead) leave_home(r);
    if (!found || is_cpu(&r->home->devices) == to_cpu) return;
    if (to_cpu || has_gpu()) leave_home(r);
}

void kiln_run_on_cpu(kiln_run *r, bool on)
{
    r->on_cpu = on;
    change_home(r);
}

void kiln_run_computes(kiln_run *r, bool on)
{
    r->computes = on;
    change_home(r);
}

/* A GPU that cannot be opened, or is not there, is told of by the list that wants it. */
bool kiln_run_open_ahead(kiln_run *r)
{
    kiln_home *const h = other_home(r);
    const unsigned asked = kiln_engine_values.workers;
    const bool on_cpu = r->on_cpu;
    if (!on_cpu || kiln_devices_threads(kiln_common_values.threads) < 2) return false;
    if (h->devices.n) return true;
    r->on_cpu = false;
    const cpu_reason reason = why_cpu(r);
    r->on_cpu = on_cpu;
    if (reason != NO_REASON || kiln_devices_resolve(kiln_common_values.devices, &h->devices, NULL) != KILN_OK ||
        is_cpu(&h->devices) || !kiln_rest_has_room(r, h->devices.n)) {
        h->devices.n = 0;
        return false;
    }
    tell_choice(r, reason, &h->devices);
    h->ahead = true;
    for (unsigned i = 0; i < h->devices.n && (!asked || i < asked); i++) {
        if (h->workers[i].retired || h->workers[i].pid > 0) continue;
        if (kiln_worker_start(r, &h->devices.items[i], 0, &h->workers[i], NULL) != KILN_OK) continue;
        if (h->n_workers <= i) h->n_workers = i + 1;
        r->ram.ahead += kiln_rest_start_bytes();
    }
    return true;
}

void kiln_run_serial(kiln_run *r, bool on) { r->serial = on; }

kiln_status kiln_run_device_kind(kiln_run *r, const char **kind, kiln_error *err)
{
    *kind = kiln_run_named_kind(r);
    if (*kind) return KILN_OK;
    KILN_TRY(kiln_run_find_devices(r, err));
    *kind = r->home->devices.items[0].kind == KILN_DEVICE_CUDA ? "cuda" : "cpu";
    return KILN_OK;
}

kiln_status kiln_run_worker_count(kiln_run *r, unsigned *n, kiln_error *err)
{
    KILN_TRY(kiln_run_find_devices(r, err));
    *n = r->home->devices.n;
    return KILN_OK;
}

/* ---- keys ----------------------------------------------------------------------------------------------------------------- */
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

/* ---- parameters ----------------------------------------------------------------------------------------------------------- */
#define FORGET "stored parameter (--reset forgets it)"

/* Sets an option, which has its default, to its stored value. A value that the option refuses is bad input, not a mistake in the
 * command line. in_force: gets the option, if that changes something. */
static kiln_status take_stored(kiln_run *r, const kiln_opt *row, const char *value, kiln_buffer *in_force, kiln_error *err)
{
    char before[KILN_OPT_TEXT_MAX], text[KILN_OPT_TEXT_MAX];
    const size_t used = strlen(r->stored);
    (void)kiln_opt_text(row, before, sizeof before);
    kiln_status st = kiln_opt_set(&r->cli, row->name, value, FORGET, err);
    (void)snprintf(r->stored + used, sizeof r->stored - used, "%s%s ", used ? "" : " ", row->name);
    if (st == KILN_E_USAGE && err) st = err->status = KILN_E_INPUT;
    if (st != KILN_OK) return st == KILN_E_USAGE ? KILN_E_INPUT : st;
    return strcmp(before, kiln_opt_text(row, text, sizeof text)) ? kiln_stored_option_put(row, text, in_force, err) : KILN_OK;
}

/* Warns of all unknown parameters in one sentence. */
static kiln_status warn_of_unknown(const kiln_run *r, const kiln_parameter *stored, uint32_t n, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_buffer names = {0};
    for (uint32_t i = 0; i < n; i++)
        if (!kiln_stored_option_row(&r->cli, stored[i].name))
            KILN_GO(kiln_buffer_printf(&names, err, "%s'%s'", names.size ? ", " : "", stored[i].name));
    if (names.size)
        kiln_warn("stored parameters of another version of this program are not used (--reset forgets them): %s",
                  (const char *)names.data);
done:
    kiln_buffer_release(&names);
    return st;
}

kiln_status kiln_run_load_parameters(kiln_run *r, kiln_error *err)
{
    kiln_parameter *stored = NULL;
    uint32_t n = 0;
    if (!r->stage || !r->manifest || kiln_engine_values.reset) return KILN_OK;
    KILN_TRY(kiln_parameters_get(r->manifest, r->stage->name, &stored, &n, err));
    kiln_buffer in_force = {0};
    kiln_status st = warn_of_unknown(r, stored, n, err);
    for (uint32_t i = 0; i < n && st == KILN_OK; i++) {
        const kiln_opt *row = kiln_stored_option_row(&r->cli, stored[i].name);
        if (row && !kiln_opt_given(&r->cli, row->name)) st = take_stored(r, row, stored[i].value, &in_force, err);
    }
    if (st == KILN_OK && in_force.size) kiln_say("stored options in force until --reset: %s", (const char *)in_force.data);
    kiln_buffer_release(&in_force);
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

kiln_status kiln_run_blame_stored(const kiln_run *r, kiln_status st, kiln_error *err)
{
    char word[80];
    bool is_stored = false;
    if (st != KILN_E_USAGE) return st;
    for (const kiln_opt *o = r->cli.options; o && o->name; o++) {
        if (!(o->flags & KILN_KEYED) || !names(err->msg, o->name)) continue;
        if (kiln_opt_given(&r->cli, o->name)) return st;
        (void)snprintf(word, sizeof word, " %s ", o->name);
        is_stored |= strstr(r->stored, word) != NULL;
    }
    if (!is_stored) return st;
    kiln_note(err, FORGET);
    return err->status = KILN_E_INPUT;
}

kiln_status kiln_run_store_parameters(kiln_run *r, kiln_error *err)
{
    char text[KILN_OPT_TEXT_MAX];
    if (!r->stage) return KILN_OK;
    if (kiln_engine_values.reset) KILN_TRY(kiln_parameters_clear(r->manifest, r->stage->name, err));
    for (const kiln_opt *o = r->cli.options; o && o->name; o++)
        if (o->flags & KILN_KEYED && kiln_opt_given(&r->cli, o->name))
            KILN_TRY(kiln_parameter_put(r->manifest, r->stage->name, o->name, kiln_opt_text(o, text, sizeof text), err));
    return KILN_OK;
}

/* ---- what is fresh -------------------------------------------------------------------------------------------------------- */
kiln_status kiln_run_need(kiln_run *r, const char *stage, kiln_error *err) { return kiln_run_need_of(r, r->manifest, stage, err); }

kiln_status kiln_run_need_of(kiln_run *r, kiln_manifest *m, const char *stage, kiln_error *err)
{
    const kiln_stage_info *info = kiln_stage_find(stage);
    kiln_stage_row row;
    if (!info || !m) return kiln_fail(err, KILN_E_BUG, "%s cannot need the stage '%s'", r->program->name, stage);
    KILN_TRY(kiln_stage_get(m, stage, &row, err));
    kiln_stage_state state = row.state;
    if (state != KILN_STAGE_MISSING && row.version != info->version) state = KILN_STAGE_STALE;
    if (state == KILN_STAGE_FRESH) return KILN_OK;
    if (state == KILN_STAGE_PARTIAL && kiln_engine_values.allow_partial) { /* what is made from it is partial too */
        (void)snprintf(r->partial_input, sizeof r->partial_input, "%s", stage);
        return KILN_OK;
    }
    const char *what = state == KILN_STAGE_MISSING ? "has not run" : state == KILN_STAGE_STALE ? "is stale" : "finished partially";
    return kiln_fail(err, KILN_E_STALE, "%s %s for '%s'; run kiln-%s%s '%s' first%s", stage, what, kiln_manifest_path(m), stage,
                     strcmp(stage, "import") ? "" : " SCENE", kiln_manifest_path(m),
                     state == KILN_STAGE_PARTIAL ? ", or give --allow-partial" : "");
}

kiln_status kiln_run_is_fresh(kiln_run *r, kiln_hash input_key, bool *fresh, kiln_error *err)
{
    kiln_stage_row row;
    bool lost;
    *fresh = false;
    KILN_TRY(r->hosts.hooks->agree(r, input_key, err));
    if (!r->stage || !r->manifest) return kiln_fail(err, KILN_E_BUG, "%s is no stage", r->program->name);
    if (kiln_engine_values.force || kiln_run_is_once(r)) return KILN_OK;
    KILN_TRY(kiln_stage_get(r->manifest, r->stage->name, &row, err));
    if (row.version != r->stage->version || !kiln_hash_equal(row.input_key, input_key)) return KILN_OK;
    KILN_TRY(kiln_stage_lost_layer(r->manifest, r->stage->name, &lost, err));
    if (lost) return KILN_OK;                                /* the stage makes it again from stored units */
    if (row.state == KILN_STAGE_STALE && !r->hosts.frozen) { /* what it reads changed and changed back, or came out as before */
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
