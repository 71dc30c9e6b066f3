/* stage_calls -- see the header. */
#include "stages/front/stage_calls.h"

#include "base/memory.h"
#include "stages/front/programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool allows_partial(const kiln_bake *b, const kiln_stage_options *s)
{
    char text[KILN_PATH_MAX];
    for (size_t i = 0; i < s->n; i++) {
        const kiln_opt *row = kiln_pipeline_given(b->cli, &s->option[i]);
        if (row && !strcmp(s->option[i].name, "allow-partial"))
            return !strcmp(kiln_opt_text(row, text, sizeof text), "yes");
    }
    return false;
}

static const char *devices_of(const kiln_bake *b, const kiln_stage_options *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const kiln_opt *row = strcmp(s->option[i].name, "devices")
                                  ? NULL
                                  : kiln_pipeline_given(b->cli, &s->option[i]);
        if (row) return *(const char *const *)row->where;
    }
    return "auto";
}

/* --export is --export-format by a second name, and both are one value: the words tell. */
static bool was_typed(const kiln_bake *b, const char *name)
{
    const size_t n = strlen(name);
    for (char *const *word = b->words; *word && strcmp(*word, "--") != 0; word++)
        if (!strncmp(*word, "--", 2) && !strncmp(*word + 2, name, n) &&
            (!(*word)[n + 2] || (*word)[n + 2] == '='))
            return true;
    return false;
}

static kiln_status note_names(const kiln_stage_options *s, const kiln_bake *b, kiln_stage_call *c,
                              kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&c->typed, s->n + 1, "the names of options", err));
    for (size_t i = 0; i < s->n; i++) {
        const kiln_stage_option *o = &s->option[i];
        const kiln_opt *row = kiln_pipeline_given(b->cli, o);
        c->typed[i] = row ? row->name : o->general ? o->general->name : o->special->name;
        for (size_t k = 0; row == o->special && k < b->table->n; k++)
            if (b->table->rows[k].where == row->where && was_typed(b, b->table->rows[k].name))
                c->typed[i] = b->table->rows[k].name;
    }
    return KILN_OK;
}

/* What is made for any viewer differs from what kiln-export makes by itself, and the command says
 * it: whoever runs it, whenever. */
static kiln_status add_for_viewers(kiln_stage_call *c, kiln_error *err)
{
    kiln_buffer word = {0};
    KILN_TRY(kiln_buffer_printf(&word, err, "--for-viewers"));
    c->argv[c->n++] = (char *)word.data;
    return KILN_OK;
}

static kiln_status make_call(const kiln_stage_options *s, const kiln_bake *b, kiln_stage_call *c,
                             kiln_error *err)
{
    KILN_TRY(
        KILN_ALLOC(&c->argv, kiln_pipeline_count(b->cli, s) + 5, "the arguments of a stage", err));
    c->n = 1;
    /* the one stage that reads something else than the manifest */
    if (!strcmp(s->stage, "import")) c->argv[c->n++] = b->scene;
    c->argv[c->n++] = b->manifest;
    c->first = c->n;
    c->allows_partial = allows_partial(b, s);
    c->devices = devices_of(b, s);
    KILN_TRY(note_names(s, b, c, err));
    if (!strcmp(s->stage, "export")) KILN_TRY(add_for_viewers(c, err));
    return kiln_pipeline_arguments(b->cli, s, (char **)c->argv, &c->n, err);
}

static void print_quoted(const char *word)
{
    (void)putchar('\'');
    for (; *word; word++) (void)fputs(*word == '\'' ? "'\\''" : (char[]){*word, '\0'}, stdout);
    (void)putchar('\'');
}

/* A line a stage, so that a script can add words to one of them. */
kiln_status kiln_stage_calls_print(const kiln_bake *b, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    for (size_t s = 0; s < b->table->n_stages; s++) {
        const kiln_stage_call *c = &b->call[s];
        if (!b->runs[s]) continue;
        for (size_t i = 1; i < c->n; i++)
            if (strchr(c->argv[i], '\n'))
                return kiln_fail(
                    err, KILN_E_USAGE,
                    "--print-commands prints a line for each stage, but '%.60s' has a line break",
                    c->argv[i]);
        KILN_TRY(kiln_program_path(b->table->stage[s].stage, path, err));
        print_quoted(path);
        for (size_t i = 1; i < c->n; i++) {
            (void)putchar(' ');
            print_quoted(c->argv[i]);
        }
        (void)putchar('\n');
    }
    return KILN_OK;
}

kiln_status kiln_stage_calls_make(kiln_bake *b, kiln_error *err)
{
    for (size_t s = 0; s < b->table->n_stages; s++)
        if (b->runs[s]) KILN_TRY(make_call(&b->table->stage[s], b, &b->call[s], err));
    return KILN_OK;
}

void kiln_stage_calls_release(kiln_bake *b)
{
    for (size_t s = 0; s < KILN_STAGES_MAX; s++) {
        for (size_t i = b->call[s].first; i < b->call[s].n; i++) free((char *)b->call[s].argv[i]);
        free(b->call[s].argv);
        free(b->call[s].typed);
    }
}
