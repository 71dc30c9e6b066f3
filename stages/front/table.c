/* The options of `kiln pipeline`. Rows are made once, in one array: own rows, then stage by stage,
 * then those of several stages. Rows of one option share their storage, as an alias does in any
 * program's table. */
#include "stages/front/table.h"

#include "base/file.h"
#include "base/memory.h"
#include "stages/engine/stage_graph.h"
#include "stages/front/programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef union {
    bool yes;
    uint32_t u32;
    uint64_t u64;
    double f64, triple[3];
    kiln_size size;
    const char *text;
} value;

typedef struct {
    json_t *options[KILN_STAGES_MAX]; /* of each stage; borrowed texts point into them */
    value *values;
    size_t n_values, capacity;
    kiln_pipeline_table *table;
} maker;

static const char *text_of(const json_t *row, const char *field)
{
    return json_string_value(json_object_get(row, field));
}
static bool flag_of(const json_t *row, const char *field)
{
    return json_is_true(json_object_get(row, field));
}
/* What `kiln pipeline` does not have. */
static bool is_left_out(const json_t *row) { return flag_of(row, "alone") || flag_of(row, "step"); }

static kiln_opt_kind kind_of_option(const json_t *row)
{
    static const struct {
        const char *word;
        kiln_opt_kind kind;
    } kinds[] = {{"bool", KILN_OPT_BOOL}, {"u32", KILN_OPT_U32},   {"u64", KILN_OPT_U64},
                 {"f64", KILN_OPT_F64},   {"size", KILN_OPT_SIZE}, {"text", KILN_OPT_TEXT},
                 {"path", KILN_OPT_PATH}, {"enum", KILN_OPT_ENUM}, {"f64x3", KILN_OPT_F64X3},
                 {"list", KILN_OPT_LIST}};
    const char *word = text_of(row, "kind");
    for (size_t i = 0; word && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(word, kinds[i].word)) return kinds[i].kind;
    return KILN_OPT_END;
}

/* ---- which options are one ------------------------------------------------------------------- */

static const json_t *find_option_row(const json_t *options, const char *name)
{
    const json_t *row;
    size_t i;
    json_array_foreach(options, i, row)
    {
        const char *has = text_of(row, "name");
        if (has && !strcmp(has, name) && !is_left_out(row)) return row;
    }
    return NULL;
}

static bool same_text(const json_t *a, const json_t *b, const char *field)
{
    const char *x = text_of(a, field), *y = text_of(b, field);
    return x && y ? !strcmp(x, y) : x == y;
}

static bool same_option(const json_t *a, const json_t *b)
{
    return same_text(a, b, "kind") && same_text(a, b, "range") && same_text(a, b, "default") &&
           same_text(a, b, "help");
}

/* How many stages have it without wanting to be named; *ambiguous: they describe it differently, or
 * it wants to be named, or only one of several does not. One that wants to be named takes nothing
 * away from others that share the name: --level of tiles and render. */
static unsigned count_holders(const maker *m, const json_t *row, bool *ambiguous)
{
    unsigned n = 0;
    bool some_named = false;
    *ambiguous = flag_of(row, "named");
    for (size_t s = 0; s < m->table->n_stages; s++) {
        const json_t *other = find_option_row(m->options[s], text_of(row, "name"));
        if (!other) continue;
        if (flag_of(other, "named")) {
            some_named = true;
            continue;
        }
        n++;
        if (!same_option(row, other)) *ambiguous = true;
    }
    if (some_named && n < 2) *ambiguous = true;
    return n;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static kiln_opt *new_row(maker *m, const json_t *from, const char *name, void *where,
                         unsigned flags, int section)
{
    kiln_pipeline_table *t = m->table;
    kiln_opt *o = &t->rows[t->n];
    t->section[t->n++] = section;
    *o = (kiln_opt){.name = name,
                    .kind = kind_of_option(from),
                    .where = where,
                    .arg = text_of(from, "arg"),
                    .def = text_of(from, "default"),
                    .range = text_of(from, "range"),
                    .help = text_of(from, "help"),
                    .flags = flags | (flag_of(from, "stored") ? KILN_KEYED : 0) |
                             (flag_of(from, "once") ? KILN_ONCE : 0)};
    return o;
}

static kiln_status prefixed(maker *m, const char *stage, const char *name, char **out,
                            kiln_error *err)
{
    const size_t n = strlen(stage) + strlen(name) + 2;
    KILN_TRY(KILN_ALLOC(out, n, "the name of an option", err));
    (void)snprintf(*out, n, "%s-%s", stage, name);
    m->table->name[m->table->n_names++] = *out;
    return KILN_OK;
}

static const kiln_opt *find_row(const kiln_pipeline_table *t, const char *name)
{
    for (size_t i = 0; i < t->n; i++)
        if (!strcmp(t->rows[i].name, name)) return &t->rows[i];
    return NULL;
}

static void add_aliases(maker *m, const json_t *from, void *where, int section)
{
    const json_t *alias;
    size_t i;
    json_array_foreach(json_object_get(from, "aliases"), i,
                       alias) if (!find_row(m->table, json_string_value(alias)))
        new_row(m, from, json_string_value(alias), where, KILN_HIDDEN, section);
}

static bool letter_is_free(const kiln_pipeline_table *t, char letter)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->rows[i].letter == letter) return false;
    return true;
}

/* The row by which an option goes to every stage that has it. */
static const kiln_opt *general_row(maker *m, const json_t *from, int section)
{
    const char *name = text_of(from, "name"), *letter = text_of(from, "letter");
    const kiln_opt *there = find_row(m->table, name);
    if (there) return there;
    value *v = &m->values[m->n_values++];
    kiln_opt *o = new_row(m, from, name, v, 0, section);
    if (letter && letter_is_free(m->table, *letter)) o->letter = *letter;
    add_aliases(m, from, v, section);
    return o;
}

static kiln_status special_rows(maker *m, const json_t *from, const char *stage, bool ambiguous,
                                int section, const kiln_opt **out, kiln_error *err)
{
    const json_t *alias;
    size_t i;
    char *name;
    value *v = &m->values[m->n_values++];
    const bool title = flag_of(from, "title");
    KILN_TRY(prefixed(m, stage, text_of(from, "name"), &name, err));
    if (title) new_row(m, from, stage, v, 0, section);
    kiln_opt *row = new_row(m, from, name, v, ambiguous ? 0 : KILN_HIDDEN, section);
    if (title) row->help = "the same, by the name that the stage's program has for it";
    *out = row;
    json_array_foreach(json_object_get(from, "aliases"), i, alias)
    {
        KILN_TRY(prefixed(m, stage, json_string_value(alias), &name, err));
        new_row(m, from, name, v, KILN_HIDDEN, section);
    }
    return KILN_OK;
}

/* ---- stages ---------------------------------------------------------------------------------- */

/* shared: only the options that several stages have, else only the others. */
static kiln_status add_options(maker *m, size_t s, bool shared, kiln_error *err)
{
    kiln_stage_options *stage = &m->table->stage[s];
    const json_t *row;
    size_t i;
    json_array_foreach(m->options[s], i, row)
    {
        bool ambiguous;
        if (is_left_out(row) || kind_of_option(row) == KILN_OPT_END) continue;
        const bool several = count_holders(m, row, &ambiguous) > 1 && !ambiguous;
        if (several != shared) continue;
        const int section = several ? KILN_SECTION_SHARED : (int)s;
        kiln_stage_option *o = &stage->option[stage->n++];
        *o = (kiln_stage_option){.name = text_of(row, "name"), .once = flag_of(row, "once")};
        if (!ambiguous) o->general = general_row(m, row, section);
        KILN_TRY(special_rows(m, row, stage->stage, ambiguous, section, &o->special, err));
    }
    return KILN_OK;
}

static size_t count_option_rows(const json_t *options)
{
    const json_t *row;
    size_t i, n = 0;
    json_array_foreach(options, i, row) n += 2 + json_array_size(json_object_get(row, "aliases"));
    return n;
}

static kiln_status reserve_table(maker *m, size_t own, kiln_error *err)
{
    kiln_pipeline_table *t = m->table;
    size_t n = own + 1;
    for (size_t s = 0; s < t->n_stages; s++) {
        n += 2 * count_option_rows(m->options[s]);
        KILN_TRY(KILN_ALLOC(&t->stage[s].option, json_array_size(m->options[s]) + 1,
                            "the options of a stage", err));
    }
    KILN_TRY(KILN_ALLOC(&t->rows, n, "the options of all stages", err));
    KILN_TRY(KILN_ALLOC(&t->section, n, "the options of all stages", err));
    KILN_TRY(KILN_ALLOC(&t->name, n, "the names of all options", err));
    KILN_TRY(KILN_ALLOC(&m->values, n, "the values of all options", err));
    t->values = m->values;
    return KILN_OK;
}

static kiln_status ask_stages(maker *m, kiln_error *err)
{
    kiln_pipeline_table *t = m->table;
    for (const kiln_stage_info *s = kiln_stage_graph; s->name; s++) {
        if (t->n_stages == KILN_STAGES_MAX)
            return kiln_fail(err, KILN_E_BUG, "more than %d stages", KILN_STAGES_MAX);
        KILN_TRY(kiln_program_ask(s->name, &t->doc[t->n_stages], err));
        m->options[t->n_stages] = json_object_get(t->doc[t->n_stages], "options");
        t->stage[t->n_stages++].stage = s->name;
    }
    return KILN_OK;
}

kiln_status kiln_pipeline_table_make(const kiln_opt *own, kiln_pipeline_table *out, kiln_error *err)
{
    maker m = {.table = out};
    size_t n_own = 0;
    *out = (kiln_pipeline_table){0};
    while (own[n_own].name) n_own++;
    KILN_TRY(ask_stages(&m, err));
    KILN_TRY(reserve_table(&m, n_own, err));
    for (; out->n < n_own; out->n++) {
        out->rows[out->n] = own[out->n];
        out->section[out->n] = KILN_SECTION_OWN;
    }
    for (int shared = 0; shared < 2; shared++)
        for (size_t s = 0; s < out->n_stages; s++) KILN_TRY(add_options(&m, s, shared, err));
    return KILN_OK;
}

void kiln_pipeline_table_release(kiln_pipeline_table *t)
{
    for (size_t i = 0; i < t->n_names; i++) free(t->name[i]);
    for (size_t s = 0; s < KILN_STAGES_MAX; s++) {
        free(t->stage[s].option);
        json_decref(t->doc[s]);
    }
    free(t->name);
    free(t->values);
    free(t->rows);
    free(t->section);
    *t = (kiln_pipeline_table){0};
}

/* ---- what was given -------------------------------------------------------------------------- */

const kiln_opt *kiln_pipeline_given(const kiln_cli *cli, const kiln_stage_option *o)
{
    if (kiln_opt_given(cli, o->special->name)) return o->special;
    return o->general && kiln_opt_given(cli, o->general->name) ? o->general : NULL;
}

size_t kiln_pipeline_count(const kiln_cli *cli, const kiln_stage_options *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        const kiln_opt *o = kiln_pipeline_given(cli, &s->option[i]);
        const char *list = o && o->kind == KILN_OPT_LIST ? *(const char *const *)o->where : NULL;
        n += 1 + (list ? strlen(list) : 0); /* more than it has items */
    }
    return n;
}

static kiln_status append_word(char **argv, size_t *n, const char *name, const char *text,
                               kiln_error *err)
{
    kiln_buffer word = {0};
    KILN_TRY(kiln_buffer_printf(&word, err, "--%s=%s", name, text));
    argv[(*n)++] = (char *)word.data;
    return KILN_OK;
}

/* Item by item; that there is none is said, too. */
static kiln_status append_list(const kiln_opt *o, const char *name, char **argv, size_t *n,
                               char text[KILN_OPT_TEXT_MAX], kiln_error *err)
{
    const char *at = *(const char *const *)o->where;
    if (!at) return append_word(argv, n, name, "", err);
    while (kiln_opt_list_next(&at, text, KILN_OPT_TEXT_MAX))
        KILN_TRY(append_word(argv, n, name, text, err));
    return KILN_OK;
}

kiln_status kiln_pipeline_arguments(const kiln_cli *cli, const kiln_stage_options *s, char **argv,
                                    size_t *n, kiln_error *err)
{
    char text[KILN_OPT_TEXT_MAX];
    for (size_t i = 0; i < s->n; i++) {
        const kiln_opt *o = kiln_pipeline_given(cli, &s->option[i]);
        if (!o) continue;
        if (o->kind == KILN_OPT_LIST)
            KILN_TRY(append_list(o, s->option[i].name, argv, n, text, err));
        else
            KILN_TRY(
                append_word(argv, n, s->option[i].name, kiln_opt_text(o, text, sizeof text), err));
    }
    return KILN_OK;
}
