/* chosen_stages -- see the header. */
#include "stages/front/chosen_stages.h"

#include "schema/layers.h"
#include "stages/engine/stage_graph.h"
#include "stages/formats/writer.h"
#include "stages/frame/level_choice.h"

#include <string.h>

/* ---- by name --------------------------------------------------------------------------------- */

static size_t stage_index(const kiln_bake *b, const char *name)
{
    size_t s = 0;
    while (s < b->table->n_stages && strcmp(b->table->stage[s].stage, name) != 0) s++;
    return s;
}

bool kiln_bake_runs(const kiln_bake *b, const char *stage)
{
    return b->runs[stage_index(b, stage)];
}

static kiln_status choose_stage(const char *name, size_t length, kiln_bake *b, kiln_error *err)
{
    const char *nearest = NULL;
    size_t best = KILN_NAME_FAR;
    for (size_t s = 0; s < b->table->n_stages; s++) {
        const char *known = b->table->stage[s].stage;
        if (strlen(known) == length && !memcmp(known, name, length)) {
            b->runs[s] = true;
            return KILN_OK;
        }
        const size_t n = kiln_name_distance(name, length, known);
        if (n < best) {
            best = n;
            nearest = known;
        }
    }
    return kiln_fail(err, KILN_E_USAGE, "--stages: there is no stage '%.*s'%s%s%s See 'kiln help'",
                     (int)length, name, nearest ? ", did you mean '" : ".", nearest ? nearest : "",
                     nearest ? "'?" : "");
}

static kiln_status choose_stages(kiln_bake *b, kiln_error *err)
{
    for (size_t s = 0; !b->asked->stages && s < b->table->n_stages; s++)
        b->runs[s] = !kiln_stage_find(b->table->stage[s].stage)->asked;
    for (const char *at = b->asked->stages; at && *at;) {
        const size_t length = strcspn(at, ",");
        KILN_TRY(choose_stage(at, length, b, err));
        at += length + (at[length] == ',');
    }
    return KILN_OK;
}

/* ---- stages that wait to be asked for (stages.def) ------------------------------------------- */

/* The option of this stage's name; NULL: it has none. */
static const kiln_opt *option_of_stage(const kiln_bake *b, const char *name)
{
    for (const kiln_opt *row = b->own_rows; row->name; row++)
        if (row->kind == KILN_OPT_BOOL && !strcmp(row->name, name)) return row;
    return NULL;
}

/* A manifest that cannot be read is for the first stage to complain of. */
static bool has_run(const char *manifest, const char *stage)
{
    kiln_manifest *m;
    kiln_stage_row row = {.state = KILN_STAGE_MISSING};
    if (!kiln_is_file(manifest) ||
        kiln_manifest_open(manifest, KILN_OPEN_READ, stage, true, &m, NULL) != KILN_OK)
        return false;
    if (kiln_stage_get(m, stage, &row, NULL) != KILN_OK) row.state = KILN_STAGE_MISSING;
    kiln_manifest_close(m);
    return row.state != KILN_STAGE_MISSING;
}

const char *kiln_bake_option(const kiln_bake *b, const char *stage, const char *name, char *text,
                             size_t size)
{
    const kiln_stage_options *s = &b->table->stage[stage_index(b, stage)];
    for (size_t i = 0; i < s->n; i++) {
        const kiln_opt *row =
            strcmp(s->option[i].name, name) ? NULL : kiln_pipeline_given(b->cli, &s->option[i]);
        if (row) return kiln_opt_text(row, text, size);
    }
    return NULL;
}

/* The format that is to be exported and is made of levels; NULL: there is none. */
static const kiln_writer *format_of_levels(const kiln_bake *b)
{
    char format[KILN_PATH_MAX], output[KILN_PATH_MAX];
    const char *formats = kiln_bake_option(b, "export", "format", format, sizeof format);
    const char *path = kiln_bake_option(b, "export", "output", output, sizeof output);
    if (!kiln_bake_runs(b, "export") || (!formats && !path)) return NULL;
    return kiln_writers_need_levels(formats ? formats : "ply", path);
}

/* Says whether this stage is to draw levels; text: of --level. */
static bool draws_levels(const kiln_bake *b, const char *stage, char *text, size_t size)
{
    const char *level =
        kiln_bake_runs(b, stage) ? kiln_bake_option(b, stage, "level", text, size) : NULL;
    kiln_level_wish wish;
    kiln_error none; /* a text that is no level is refused later */
    return level && kiln_level_wish_parse(level, &wish, &none) == KILN_OK &&
           !kiln_level_wish_full(&wish);
}

enum { WHAT_MAX = 128 };

/* Says whether a part of the levels is to be exported; what: of the option. */
static bool exports_cut(const kiln_bake *b, char what[WHAT_MAX])
{
    static const char *const names[] = {"level", "count", "percent"}, *const off[] = {"0", "0",
                                                                                      "off"};
    char text[KILN_PATH_MAX];
    for (size_t i = 0; i < 3 && kiln_bake_runs(b, "export"); i++) {
        const char *value = kiln_bake_option(b, "export", names[i], text, sizeof text);
        if (!value || !strcmp(value, off[i])) continue;
        (void)snprintf(what, WHAT_MAX, "--export-%s %.80s", names[i], value);
        return true;
    }
    return false;
}

/* Says whether what is asked for is made of levels of detail, and what that is. */
static bool needs_levels(const kiln_bake *b, char what[WHAT_MAX])
{
    char level[KILN_PATH_MAX];
    const kiln_writer *writer = format_of_levels(b);
    const bool drawn = draws_levels(b, "tiles", level, sizeof level) ||
                       draws_levels(b, "render", level, sizeof level);
    if (writer)
        (void)snprintf(what, WHAT_MAX, "--export %s", writer->name);
    else if (drawn)
        (void)snprintf(what, WHAT_MAX, "--level %.80s", level);
    return writer || drawn || exports_cut(b, what);
}

static const char *maker_of_levels(void) { return kiln_layer_kinds[KILN_LAYER_levels].stage; }

/* What is made of levels needs the stage that makes them, in this run or before. */
static kiln_status check_levels(const kiln_bake *b, kiln_error *err)
{
    char what[WHAT_MAX];
    const char *maker = maker_of_levels();
    if (kiln_bake_runs(b, maker) || !needs_levels(b, what) || has_run(b->manifest, maker))
        return KILN_OK;
    return kiln_fail(
        err, KILN_E_USAGE,
        "%s needs levels of detail, but this run leaves out kiln-%s, which makes them; %s", what,
        maker, b->asked->stages ? "name it in --stages" : "leave out --no-lod");
}

static bool is_stage_wanted(const kiln_bake *b, const char *stage)
{
    const kiln_opt *row = option_of_stage(b, stage);
    if (row && kiln_opt_given(b->cli, row->name)) return *(const bool *)row->where;
    if (has_run(b->manifest, stage)) return true;
    char what[WHAT_MAX];
    if (strcmp(stage, maker_of_levels()) != 0 || !needs_levels(b, what)) return false;
    kiln_say("%s needs levels of detail: kiln-%s makes them", what, stage);
    return true;
}

static void choose_asked(kiln_bake *b)
{
    for (size_t s = 0; !b->asked->stages && s < b->table->n_stages; s++)
        if (!b->runs[s]) b->runs[s] = is_stage_wanted(b, b->table->stage[s].stage);
}

/* --lod beside --stages that leave the stage out would be dropped in silence. */
static kiln_status check_asked(const kiln_bake *b, kiln_error *err)
{
    for (size_t s = 0; b->asked->stages && s < b->table->n_stages; s++) {
        const kiln_opt *row = option_of_stage(b, b->table->stage[s].stage);
        if (row && !b->runs[s] && kiln_opt_given(b->cli, row->name) && *(const bool *)row->where)
            return kiln_fail(err, KILN_E_USAGE, "--%s needs a stage that --stages leaves out",
                             row->name);
    }
    return KILN_OK;
}

/* ---- options that would be dropped ----------------------------------------------------------- */

/* The first chosen stage that reads what this one makes; NULL: none. */
static const char *reader_of(const kiln_bake *b, const char *stage)
{
    for (size_t s = 0; s < b->table->n_stages; s++)
        if (b->runs[s] &&
            kiln_stage_needs(kiln_stage_find(b->table->stage[s].stage), kiln_stage_find(stage)))
            return b->table->stage[s].stage;
    return NULL;
}

static bool goes_to(const kiln_opt *row, const kiln_bake *b)
{
    for (size_t s = 0; s < b->table->n_stages; s++)
        for (size_t i = 0; b->runs[s] && i < b->table->stage[s].n; i++)
            if (b->table->stage[s].option[i].general == row ||
                b->table->stage[s].option[i].special == row)
                return true;
    return false;
}

/* An option that reaches no stage of this run must not be dropped in silence: something else would
 * be baked than was meant. */
static kiln_status check_reach(const kiln_bake *b, kiln_error *err)
{
    for (size_t s = 0; s < b->table->n_stages; s++)
        for (size_t i = 0; !b->runs[s] && i < b->table->stage[s].n; i++) {
            const kiln_opt *row = kiln_pipeline_given(b->cli, &b->table->stage[s].option[i]);
            if (row && !goes_to(row, b))
                return kiln_fail(
                    err, KILN_E_USAGE, "--%s is an option of %s, which does not run here%s%s",
                    row->name, b->table->stage[s].stage,
                    !b->asked->stages && option_of_stage(b, b->table->stage[s].stage) ? "; give --"
                                                                                      : "",
                    !b->asked->stages && option_of_stage(b, b->table->stage[s].stage)
                        ? b->table->stage[s].stage
                        : "");
        }
    return KILN_OK;
}

/* A stage that only looks (--dry-run) leaves nothing for the next one. */
static kiln_status check_once(const kiln_bake *b, kiln_error *err)
{
    for (size_t s = 0; s < b->table->n_stages; s++)
        for (size_t i = 0; b->runs[s] && i < b->table->stage[s].n; i++) {
            const char *stage = b->table->stage[s].stage, *reader = reader_of(b, stage);
            const kiln_opt *row = kiln_pipeline_given(b->cli, &b->table->stage[s].option[i]);
            if (row && reader && b->table->stage[s].option[i].once)
                return kiln_fail(err, KILN_E_USAGE,
                                 "with --%s, %s writes nothing that %s could read; run that stage "
                                 "by itself, see 'kiln %s --help'",
                                 row->name, stage, reader, stage);
        }
    return KILN_OK;
}

/* Nor does a part of a stage's units where nothing is baked yet: the next stage would end with
 * 4. */
static kiln_status check_parts(const kiln_bake *b, kiln_error *err)
{
    static const char *const names[] = {"shard", "units"};
    if (kiln_is_file(b->manifest)) return KILN_OK;
    for (size_t s = 0; s < b->table->n_stages; s++)
        for (size_t i = 0; b->runs[s] && i < b->table->stage[s].n; i++) {
            const char *stage = b->table->stage[s].stage, *reader = reader_of(b, stage);
            const kiln_opt *row =
                reader ? kiln_pipeline_given(b->cli, &b->table->stage[s].option[i]) : NULL;
            for (size_t k = 0; row && k < sizeof names / sizeof *names; k++)
                if (!strcmp(names[k], b->table->stage[s].option[i].name))
                    return kiln_fail(err, KILN_E_USAGE,
                                     "with --%s, %s does not finish, so %s would have nothing to "
                                     "read; end the run with that "
                                     "stage, for example with --stages %s",
                                     row->name, stage, reader, stage);
        }
    return KILN_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

kiln_status kiln_chosen_stages_begin(kiln_bake *b, kiln_error *err)
{
    KILN_TRY(choose_stages(b, err));
    return check_asked(b, err);
}

kiln_status kiln_chosen_stages_end(kiln_bake *b, kiln_error *err)
{
    choose_asked(b);
    KILN_TRY(check_levels(b, err));
    KILN_TRY(check_reach(b, err));
    KILN_TRY(check_once(b, err));
    return check_parts(b, err);
}
