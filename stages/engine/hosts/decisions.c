/* What a plan has decided for all hosts, and what a stage says of the lists that it shares out. */
#include "stages/engine/hosts/decisions.h"

#include "base/memory.h"
#include "stages/engine/hosts/round.h"
#include "stages/engine/parent/run.h"

#include <stdlib.h>
#include <string.h>

static bool planned_value(const kiln_round *round, const char *name, uint64_t *value)
{
    for (uint32_t i = 0; round->has_claim && i < round->claim.n_decisions; i++) {
        if (strcmp(round->claim.decisions[i].name, name)) continue;
        *value = round->claim.decisions[i].value;
        return true;
    }
    return false;
}

static kiln_status remember(kiln_round *round, const char *name, uint64_t value, kiln_error *err)
{
    kiln_decision d = {.value = value}, *more;
    const size_t n = strlen(name);
    if (n == 0 || n >= sizeof d.name ||
        strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != n ||
        round->n_decisions == KILN_DECISIONS_MAX)
        return kiln_fail(err, KILN_E_BUG, "a plan cannot decide '%.40s'", name);
    memcpy(d.name, name, n);
    for (uint32_t i = 0; i < round->n_decisions; i++)
        if (!strcmp(round->decisions[i].name, name))
            return kiln_fail(err, KILN_E_BUG, "'%s' is decided twice", name);
    KILN_TRY(KILN_ALLOC(&more, round->n_decisions + 1, "a decision", err));
    if (round->n_decisions) memcpy(more, round->decisions, round->n_decisions * sizeof *more);
    more[round->n_decisions++] = d;
    free(round->decisions);
    round->decisions = more;
    return KILN_OK;
}

/* In front of the list of the claim, each decision is the plan's. Behind it they are the gather's,
 * which plans the next round. */
kiln_status kiln_run_decide(kiln_run *r, const char *name, uint64_t *value, kiln_error *err)
{
    kiln_round *round = r->hosts.round;
    if (round->mode == KILN_ROUND_NONE) return KILN_OK;
    if (!planned_value(round, name, value) && round->has_claim && !round->met)
        return kiln_fail(
            err, KILN_E_STALE,
            "the plan was made by another version or with other options: it has not decided '%s'",
            name);
    return remember(round, name, *value, err);
}

/* A plan that stands is not asked twice: `devices` is of this call of the program alone, and
 * workers get it as text. */
kiln_status kiln_run_decide_kind(kiln_run *r, bool wanted, const char **kind, kiln_error *err)
{
    static const char name[] = "gpu";
    static const char *const kinds[] = {"cpu", "cuda"};
    const kiln_round *round = r->hosts.round;
    const char *const named = kiln_run_named_kind(r);
    uint64_t gpu = 0;
    *kind = NULL;
    if (!round->has_claim && !wanted && round->mode != KILN_ROUND_NONE) return KILN_OK;
    if (!planned_value(round, name, &gpu)) {
        KILN_TRY(kiln_run_device_kind(r, kind, err));
        gpu = strcmp(*kind, kinds[1]) == 0;
    }
    KILN_TRY(kiln_run_decide(r, name, &gpu, err));
    if (gpu > 1)
        return kiln_fail(err, KILN_E_INPUT, "the plan names the unknown kind of devices %llu",
                         (unsigned long long)gpu);
    *kind = kinds[gpu];
    if (named && strcmp(named, *kind) != 0)
        return kiln_fail(err, KILN_E_STALE,
                         "the plan was made for --devices %s, but --devices names another kind",
                         *kind);
    if (!named && round->mode != KILN_ROUND_NONE) kiln_common_values.devices = *kind;
    return KILN_OK;
}

kiln_status kiln_round_check_agreed(const kiln_run *r, kiln_error *err)
{
    const kiln_claim *c = &r->hosts.round->claim;
    if (r->hosts.round->mode == KILN_ROUND_NONE || !r->hosts.round->has_claim ||
        r->hosts.round->agrees)
        return KILN_OK;
    return kiln_fail(
        err, KILN_E_STALE,
        "the options or the input differ from those of the plan of '%s' (%s, host %s, %s): give "
        "the same options as --plan "
        "was given, with unchanged input files, or plan anew with --plan --break-claim",
        kiln_manifest_path(r->manifest), c->what, c->host, c->start);
}

kiln_status kiln_run_agree(kiln_run *r, const char *name, kiln_hash of, kiln_error *err)
{
    uint64_t mine, planned;
    memcpy(&mine, of.bytes, sizeof mine);
    planned = mine;
    KILN_TRY(kiln_run_decide(r, name, &planned, err));
    r->hosts.round->agrees = planned == mine;
    return kiln_round_check_agreed(r, err);
}

/* Unless the stage knows better. */
kiln_status kiln_round_agree(kiln_run *r, kiln_hash input_key, kiln_error *err)
{
    return r->hosts.round->agrees ? KILN_OK : kiln_run_agree(r, "options", input_key, err);
}

void kiln_run_checks_files(kiln_run *r, kiln_unit_check_fn *check)
{
    r->hosts.round->check = check;
}

void kiln_run_shares_planning(kiln_run *r, bool on) { r->hosts.round->shares_planning = on; }
void kiln_run_shares_nothing(kiln_run *r, bool on) { r->hosts.round->shares_nothing = on; }
void kiln_run_costs_each_task(kiln_run *r, uint64_t cost) { r->hosts.round->once = cost; }
bool kiln_run_is_round(const kiln_run *r) { return r->hosts.round->mode != KILN_ROUND_NONE; }
bool kiln_run_begins_rounds(const kiln_run *r)
{
    return r->hosts.round->mode == KILN_ROUND_PLAN && !r->hosts.round->has_claim;
}

uint32_t kiln_run_tasks(const kiln_run *r)
{
    const kiln_round *round = r->hosts.round;
    if (round->mode == KILN_ROUND_NONE) return 0;
    if (r->options->tasks) return r->options->tasks;
    return round->has_claim ? round->claim.tasks : 1;
}
