/* call_checks -- see the header. */
#include "stages/front/call_checks.h"

#include "stages/engine/engine.h"
#include "stages/engine/program.h"
#include "stages/front/chosen_stages.h"
#include "stages/front/programs.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Appends text as far as there is room. */
static void append_call_text(char *out, size_t size, const char *text, size_t n)
{
    const size_t used = strlen(out);
    (void)snprintf(out + used, size - used, "%.*s", (int)n, text);
}

/* "--near", or NEAR where the options came as variables of make. */
static void append_option(char *out, size_t size, const char *name, bool from_make)
{
    if (!from_make) append_call_text(out, size, "--", 2);
    for (; *name; name++) {
        const char c = !from_make     ? *name
                       : *name == '-' ? '_'
                                      : (char)toupper((unsigned char)*name);
        append_call_text(out, size, &c, 1);
    }
}

static const char *typed_name(const kiln_bake *b, size_t stage, const char *option, size_t n)
{
    const kiln_stage_options *s = &b->table->stage[stage];
    for (size_t i = 0; i < s->n; i++)
        if (strlen(s->option[i].name) == n && !memcmp(s->option[i].name, option, n))
            return b->call[stage].typed[i];
    return NULL;
}

/* The sentence of a stage names --background; what was typed may be --render-background. */
static void name_as_typed(const kiln_bake *b, size_t stage, kiln_error *err)
{
    char out[sizeof err->msg] = "";
    const char *at = err->msg;
    for (const char *dashes; (dashes = strstr(at, "--"));) {
        const size_t n = strspn(dashes + 2, "abcdefghijklmnopqrstuvwxyz0123456789-");
        const bool begins_word = dashes == err->msg || !isalnum((unsigned char)dashes[-1]);
        const char *typed = begins_word ? typed_name(b, stage, dashes + 2, n) : NULL;
        append_call_text(out, sizeof out, at, (size_t)(dashes - at));
        if (typed)
            append_option(out, sizeof out, typed, b->cli->from_make);
        else
            append_call_text(out, sizeof out, dashes, n + 2);
        at = dashes + n + 2;
    }
    append_call_text(out, sizeof out, at, strlen(at));
    (void)snprintf(err->msg, sizeof err->msg, "%s", out);
}

/* The stage from which the names come that options of another stage may have: cameras and the
 * scene's kind, chunks. */
static const struct {
    const char *stage, *from;
} names[] = {{"chunk", "import"}, {"tiles", "import"}, {"render", "import"}, {"export", "chunk"}};

static const char *names_from(const char *stage)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(stage, names[i].stage)) return names[i].from;
    return NULL;
}

static kiln_status check_call(const kiln_bake *b, size_t stage, kiln_check_scope scope,
                              kiln_error *err)
{
    const kiln_stage_call *c = &b->call[stage];
    const kiln_stage_program *p = kiln_program_own(b->table->stage[stage].stage);
    kiln_error why = {0};
    /* a wrapper, or another version: it may take other texts, and checks them itself */
    if (!p) return KILN_OK;
    c->argv[0] = p->cli->program;
    const kiln_status st = kiln_program_check(p, (int)c->n, (char **)c->argv, scope, &why);
    if (st == KILN_OK) return KILN_OK;
    name_as_typed(b, stage, &why);
    return kiln_fail(err, st, "%s", why.msg);
}

kiln_status kiln_stage_calls_check(const kiln_bake *b, kiln_error *err)
{
    for (size_t s = 0; s < b->table->n_stages; s++) {
        const char *from = names_from(b->table->stage[s].stage);
        const kiln_check_scope here =
            from && kiln_bake_runs(b, from) ? KILN_CHECK_HERE : KILN_CHECK_NAMES;
        if (b->runs[s])
            KILN_TRY(check_call(b, s, b->asked->print_commands ? KILN_CHECK_TEXTS : here, err));
    }
    return KILN_OK;
}

kiln_status kiln_stage_names_check(const kiln_bake *b, const char *done, kiln_error *err)
{
    for (size_t s = 0; s < b->table->n_stages; s++) {
        const char *from = b->runs[s] && b->call[s].n > b->call[s].first
                               ? names_from(b->table->stage[s].stage)
                               : NULL;
        if (from && !strcmp(from, done)) KILN_TRY(check_call(b, s, KILN_CHECK_NAMES, err));
    }
    return KILN_OK;
}
