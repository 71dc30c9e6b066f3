/* bake_stored -- see the header. */
#include "stages/front/bake_stored.h"

#include "stages/engine/parent/stored_options.h"
#include "stages/front/programs.h"

#include <string.h>

typedef struct {
    kiln_bake *b;
    const kiln_stage_options *stage;
    kiln_buffer options; /* of this stage */
} collecting;

static const kiln_opt *given(const kiln_bake *b, const kiln_stage_options *stage, const char *name)
{
    for (size_t i = 0; i < stage->n; i++)
        if (!strcmp(stage->option[i].name, name))
            return kiln_pipeline_given(b->cli, &stage->option[i]);
    return NULL;
}

static bool is_reset(const kiln_bake *b, const kiln_stage_options *stage)
{
    const kiln_opt *row = given(b, stage, "reset");
    return row && *(const bool *)row->where;
}

static kiln_status add_option(void *context, const kiln_opt *row, const char *text, kiln_error *err)
{
    collecting *c = context;
    return given(c->b, c->stage, row->name) ? KILN_OK
                                            : kiln_stored_option_put(row, text, &c->options, err);
}

static kiln_status add_stage(kiln_bake *b, kiln_manifest *m, const kiln_stage_options *stage,
                             kiln_error *err)
{
    const kiln_stage_program *p = kiln_stage_program_find(stage->stage);
    collecting c = {.b = b, .stage = stage};
    if (!p || is_reset(b, stage)) return KILN_OK;
    kiln_status st = kiln_stored_options_each(m, p, add_option, &c, err);
    if (st == KILN_OK && c.options.size)
        st = kiln_buffer_printf(&b->stored, err, "%s%s %s", b->stored.size ? ", " : "", p->name,
                                (const char *)c.options.data);
    kiln_buffer_release(&c.options);
    return st;
}

kiln_status kiln_bake_stored(kiln_bake *b, kiln_error *err)
{
    kiln_manifest *m;
    kiln_status st = KILN_OK;
    if (b->level == KILN_LOG_QUIET || !kiln_is_file(b->manifest)) return KILN_OK;
    if (kiln_manifest_open(b->manifest, KILN_OPEN_READ, "pipeline", true, &m, NULL) != KILN_OK)
        return KILN_OK;
    for (size_t s = 0; s < b->table->n_stages && st == KILN_OK; s++)
        if (b->runs[s]) st = add_stage(b, m, &b->table->stage[s], err);
    kiln_manifest_close(m);
    return st == KILN_E_NOMEM ? st : KILN_OK;
}
