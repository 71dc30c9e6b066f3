/* stored_options -- see the header. */
#include "stages/engine/parent/stored_options.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 40 }; /* bytes of a value; so an option fits a line */

const kiln_opt *kiln_stored_option_row(const kiln_cli *cli, const char *name)
{
    for (const kiln_opt *o = cli->options; o && o->name; o++)
        if (o->flags & KILN_KEYED && !strcmp(o->name, name)) return o;
    return NULL;
}

/* A whole number that is 0 has the text "off" where the option takes that word. */
const char *kiln_stored_option_value(const kiln_opt *row, const char *value)
{
    const bool whole = row->kind == KILN_OPT_U32 || row->kind == KILN_OPT_U64;
    return whole && row->range && strstr(row->range, "|off") && !strcmp(value, "0") ? "off" : value;
}

kiln_status kiln_stored_option_put(const kiln_opt *row, const char *text, kiln_buffer *out,
                                   kiln_error *err)
{
    const char *gap = out->size ? " " : "";
    if (row->kind == KILN_OPT_BOOL)
        return kiln_buffer_printf(out, err, "%s--%s%s", gap, strcmp(text, "no") ? "" : "no-",
                                  row->name);
    if (!*text) return kiln_buffer_printf(out, err, "%s--%s ''", gap, row->name);
    return kiln_buffer_printf(out, err, "%s--%s %.*s%s", gap, row->name, SHOWN, text,
                              strlen(text) > SHOWN ? "..." : "");
}

/* Sets the option to the text, "" to its default, and writes its canonical value. False: it refuses
 * it. */
static bool canonical(const kiln_cli *cli, const char *name, const char *text,
                      char out[KILN_OPT_TEXT_MAX])
{
    if (kiln_opt_set(cli, name, text, "stored", NULL) != KILN_OK) return false;
    (void)kiln_opt_text(kiln_stored_option_row(cli, name), out, KILN_OPT_TEXT_MAX);
    return true;
}

static kiln_status tell_if_changed(const kiln_cli *cli, const kiln_parameter *p,
                                   kiln_stored_option_fn *tell, void *context, kiln_error *err)
{
    char unset[KILN_OPT_TEXT_MAX], text[KILN_OPT_TEXT_MAX];
    const kiln_opt *row = kiln_stored_option_row(cli, p->name);
    if (!row || !canonical(cli, p->name, "", unset) ||
        !canonical(cli, p->name, kiln_stored_option_value(row, p->value), text))
        return KILN_OK;
    return strcmp(unset, text) ? tell(context, row, text, err) : KILN_OK;
}

kiln_status kiln_stored_options_each(kiln_manifest *m, const kiln_stage_program *stage,
                                     kiln_stored_option_fn *tell, void *context, kiln_error *err)
{
    kiln_parameter *stored = NULL;
    uint32_t n = 0;
    KILN_TRY(kiln_parameters_get(m, stage->name, &stored, &n, err));
    kiln_status st = KILN_OK;
    for (uint32_t i = 0; i < n && st == KILN_OK; i++)
        st = tell_if_changed(stage->cli, &stored[i], tell, context, err);
    kiln_parameters_free(stored, n);
    return st;
}
