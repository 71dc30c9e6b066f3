/* `kiln pipeline` -- bakes a scene: the stages of pipelines/stages.def, one after the other, in this process (programs.h).
 *
 * The options of all stages are read and checked before the first stage starts, so that a slip in an option of the last stage is
 * reported at once. What a user did not give is not passed on: the stages have defaults and stored parameters, this has none.
 * A stage that runs in this process reads its own command line, after which nobody knows what was given to `kiln pipeline`: so the
 * command lines of all stages are made before the first runs.
 * `make pipeline` calls this with --make as the first word, and its variables as they were typed (MIN_OPACITY=0.02). */
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/quote.h"
#include "schema/layers.h"
#include "stages/engine/stage_graph.h"
#include "stages/export/writer.h"
#include "stages/front/front.h"
#include "stages/front/programs.h"
#include "stages/front/time_left.h"
#include "stages/import/packing.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NAME "kiln pipeline"
#define DEMO_FOLDER "kiln-demo"

static struct {
    const char *out, *stages, *scene;
    bool demo, lod, report, print_commands;
} o;

/* clang-format off */
#define OWN_ROWS                                                                                                               \
    {"out", 'o', KILN_OPT_PATH, &o.out, "DIR", NULL, NULL,                                                                     \
     "folder of the bake; else bake/ in a scene's folder, NAME.bake beside a scene's file", 0},                                \
    {"stages", 0, KILN_OPT_TEXT, &o.stages, "LIST", NULL, NULL,                                                                \
     "run only these stages, such as prune,chunk; the next run without it redoes what depends on them", 0},                   \
    {"demo", 0, KILN_OPT_BOOL, &o.demo, NULL, NULL, NULL,                                                                      \
     "make a demo scene and bake it; SCENE is then its folder, " DEMO_FOLDER " where none is given", 0},                                     \
    {"lod", 0, KILN_OPT_BOOL, &o.lod, NULL, NULL, NULL,                                                                        \
     "also make levels of detail (kiln-lod); a bake that has them keeps them up to date without this", 0},                     \
    {"report", 0, KILN_OPT_BOOL, &o.report, NULL, "yes", NULL,                                                                 \
     "write report.html, the bake as one page to look at, when all stages are done", 0},                                       \
    {"print-commands", 0, KILN_OPT_BOOL, &o.print_commands, NULL, NULL, NULL,                                                  \
     "print the command of each stage, quoted for a shell, and run none of them", 0}
/* clang-format on */

static const kiln_opt own_rows[] = {OWN_ROWS, {NULL, 0, KILN_OPT_END, NULL, NULL, NULL, NULL, NULL, 0}};
/* make has no positionals: SCENE is a variable, too */
static const kiln_opt make_rows[] = {
    OWN_ROWS,
    {"scene", 0, KILN_OPT_PATH, &o.scene, "PATH", NULL, NULL, "what to bake", 0},
    {NULL, 0, KILN_OPT_END, NULL, NULL, NULL, NULL, NULL, 0},
};

static kiln_pipeline_table table;
static kiln_cli cli;

/* What a stage is called with. */
typedef struct {
    const char **argv; /* NULL: it does not run */
    size_t first, n;   /* argv[first] to argv[n - 1] are ours */
    bool allows_partial;
    const char *devices; /* --devices */
} call;

typedef struct {
    const char *scene; /* NULL: none is needed */
    char out[KILN_PATH_MAX], manifest[KILN_PATH_MAX];
    bool runs[KILN_STAGES_MAX]; /* by index in the table */
    call call[KILN_STAGES_MAX];
    kiln_time_left left;
    kiln_log_level level;
    char partial[512]; /* stages that finished partially */
} bake;

/* ---- the table and its help -------------------------------------------------------------------------------------- */

static void help_section(const char *title, int section, FILE *out)
{
    kiln_opt *rows;
    size_t n = 0;
    if (KILN_ALLOC(&rows, table.n + 1, "a part of the help", NULL) != KILN_OK) return;
    for (size_t i = 0; i < table.n; i++)
        if (table.section[i] == section) rows[n++] = table.rows[i];
    kiln_cli_help_rows(title, rows, out);
    free(rows);
}

static void help(const kiln_cli *c, FILE *out)
{
    char title[80];
    (void)fprintf(out, "Usage: %s %s [options]\n\n", c->program, c->positionals);
    kiln_cli_wrap("Bakes a scene: a folder or a file with Gaussians or points, cameras and photos. The result is a folder with "
                  "manifest.db, report.html (the bake as a page), renders/ (a picture of each camera) and export/ (the scene for "
                  "other renderers). Run again, it "
                  "redoes only what has changed; killed, it goes on where it was.",
                  0, out);
    help_section("Options", KILN_SECTION_OWN, out);
    help_section("Options of several stages", KILN_SECTION_SHARED, out);
    for (size_t s = 0; s < table.n_stages; s++) {
        (void)snprintf(title, sizeof title, "Options of %.50s", table.stage[s].stage);
        help_section(title, (int)s, out);
    }
    (void)fputc('\n', out);
    kiln_cli_wrap("* What is given here is stored in the manifest and used by later runs too.", 2, out);
    kiln_cli_wrap("To give an option to one stage alone, put the stage's name in front: --prune-min-opacity, --render-threads.", 0,
                  out);
    kiln_cli_help_rows("Others", kiln_print_options, out);
}

static const char *const notes[] = {
    "The stages run one after the other. The first that fails ends the bake, and kiln pipeline ends with its exit code; the same "
    "command goes on from there.",
    "At the end kiln-report writes report.html into the folder of the bake, unless --stages or --no-report is given or nothing has "
    "changed since. A report that cannot be written is no failure of the bake.",
    "An option goes to each stage that has it. With the name of a stage in front, as in --prune-min-opacity, it goes to that stage "
    "alone. Options that mean different things to different stages have only such names: --render-format, --export-format.",
    NULL};

static kiln_status make_cli(bool from_make, kiln_cli *out, kiln_pipeline_table *t, kiln_error *err)
{
    KILN_TRY(kiln_pipeline_table_make(from_make ? make_rows : own_rows, t, err));
    *out = (kiln_cli){.program = NAME,
                      .summary = "bakes a scene: all stages, one after the other",
                      .positionals = "SCENE",
                      .n_optional = 1,
                      .tables_note = notes,
                      .options = t->rows,
                      .common = kiln_print_options,
                      .help = help,
                      .from_make = from_make};
    return KILN_OK;
}

kiln_status kiln_front_pipeline_cli(kiln_cli *out, kiln_pipeline_table *t, kiln_error *err) { return make_cli(false, out, t, err); }

/* ---- the command line -------------------------------------------------------------------------------------------- */

/* MIN_OPACITY=0.02, a variable of make, to --min-opacity=0.02; NULL for a variable without a value, which make's user did not set.
 * Other words stay. */
static kiln_status from_variable(char *word, char **out, kiln_error *err)
{
    char *equals = strchr(word, '=');
    *out = word;
    if (word[0] == '-' || !equals) return KILN_OK;
    *out = NULL;
    if (!equals[1]) return KILN_OK;
    const size_t n = strlen(word) + 3;
    KILN_TRY(KILN_ALLOC(out, n, "a variable of make", err)); /* kept: argv borrows it */
    (void)snprintf(*out, n, "--%s", word);
    for (char *c = *out + 2; *c != '='; c++) *c = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
    return KILN_OK;
}

static kiln_status read_variables(int *argc, char **argv, kiln_error *err)
{
    int n = 1;
    for (int i = 2; i < *argc; i++) {
        char *word;
        KILN_TRY(from_variable(argv[i], &word, err));
        if (word) argv[n++] = word;
    }
    argv[n] = NULL;
    *argc = n;
    return KILN_OK;
}

static kiln_status choose_stage(const char *name, size_t length, bake *b, kiln_error *err)
{
    const char *nearest = NULL;
    size_t best = KILN_NAME_NEAR(length) + 1;
    for (size_t s = 0; s < table.n_stages; s++) {
        const char *known = table.stage[s].stage;
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
    return kiln_fail(err, KILN_E_USAGE, "--stages: there is no stage '%.*s'%s%s%s See 'kiln help'", (int)length, name,
                     nearest ? ", did you mean '" : ".", nearest ? nearest : "", nearest ? "'?" : "");
}

static kiln_status choose_stages(bake *b, kiln_error *err)
{
    for (size_t s = 0; !o.stages && s < table.n_stages; s++) b->runs[s] = !kiln_stage_find(table.stage[s].stage)->asked;
    for (const char *at = o.stages; at && *at;) {
        const size_t length = strcspn(at, ",");
        KILN_TRY(choose_stage(at, length, b, err));
        at += length + (at[length] == ',');
    }
    return KILN_OK;
}

static size_t stage_index(const char *name)
{
    size_t s = 0;
    while (s < table.n_stages && strcmp(table.stage[s].stage, name) != 0) s++;
    return s;
}

/* ---- stages that wait to be asked for (stages.def) ---------------------------------------------------------------- */

/* The option of this stage's name; NULL: it has none. */
static const kiln_opt *row_of(const char *name)
{
    for (const kiln_opt *row = own_rows; row->name; row++)
        if (row->kind == KILN_OPT_BOOL && !strcmp(row->name, name)) return row;
    return NULL;
}

/* A manifest that cannot be read is for the first stage to complain of. */
static bool has_run(const char *manifest, const char *stage)
{
    kiln_manifest *m;
    kiln_stage_row row = {.state = KILN_STAGE_MISSING};
    if (!kiln_is_file(manifest) || kiln_manifest_open(manifest, KILN_OPEN_READ, stage, true, &m, NULL) != KILN_OK) return false;
    if (kiln_stage_get(m, stage, &row, NULL) != KILN_OK) row.state = KILN_STAGE_MISSING;
    kiln_manifest_close(m);
    return row.state != KILN_STAGE_MISSING;
}

/* The text of an option that is given for a stage; NULL: it is not. */
static const char *given_text(const char *stage, const char *name, char *text, size_t size)
{
    const kiln_stage_options *s = &table.stage[stage_index(stage)];
    for (size_t i = 0; i < s->n; i++) {
        const kiln_opt *row = strcmp(s->option[i].name, name) ? NULL : kiln_pipeline_given(&cli, &s->option[i]);
        if (row) return kiln_opt_text(row, text, size);
    }
    return NULL;
}

/* The format that is to be exported and is made of levels; NULL: there is none. */
static const kiln_writer *format_of_levels(const bake *b)
{
    char format[KILN_PATH_MAX], output[KILN_PATH_MAX];
    const char *formats = given_text("export", "format", format, sizeof format);
    const char *path = given_text("export", "output", output, sizeof output);
    if (!b->runs[stage_index("export")] || (!formats && !path)) return NULL;
    return kiln_writers_need_levels(formats ? formats : "ply", path);
}

/* Says whether this stage is to draw levels; text: of --level. */
static bool draws_levels(const bake *b, const char *stage, char *text, size_t size)
{
    const char *level = b->runs[stage_index(stage)] ? given_text(stage, "level", text, size) : NULL;
    return level && strcmp(level, "0") != 0;
}

/* Says whether what is asked for is made of levels of detail, and what that is. */
static bool needs_levels(const bake *b, const char *maker)
{
    char level[KILN_PATH_MAX];
    const kiln_writer *writer = format_of_levels(b);
    const bool drawn = draws_levels(b, "tiles", level, sizeof level) || draws_levels(b, "render", level, sizeof level);
    if (writer)
        kiln_say("--export %s needs levels of detail: kiln-%s makes them", writer->name, maker);
    else if (drawn)
        kiln_say("--level %s needs levels of detail: kiln-%s makes them", level, maker);
    return writer || drawn;
}

static bool is_wanted(const bake *b, const char *stage)
{
    const kiln_opt *row = row_of(stage);
    if (row && kiln_opt_given(&cli, row->name)) return *(const bool *)row->where;
    if (has_run(b->manifest, stage)) return true;
    return strcmp(stage, kiln_layer_kinds[KILN_LAYER_levels].stage) == 0 && needs_levels(b, stage);
}

static void choose_asked(bake *b)
{
    for (size_t s = 0; !o.stages && s < table.n_stages; s++)
        if (!b->runs[s]) b->runs[s] = is_wanted(b, table.stage[s].stage);
}

/* --lod beside --stages that leave the stage out would be dropped in silence. */
static kiln_status check_asked(const bake *b, kiln_error *err)
{
    for (size_t s = 0; o.stages && s < table.n_stages; s++) {
        const kiln_opt *row = row_of(table.stage[s].stage);
        if (row && !b->runs[s] && kiln_opt_given(&cli, row->name) && *(const bool *)row->where)
            return kiln_fail(err, KILN_E_USAGE, "--%s asks for a stage that --stages leaves out", row->name);
    }
    return KILN_OK;
}

/* The first chosen stage that reads what this one makes; NULL: none. */
static const char *reader_of(const bake *b, const char *stage)
{
    for (size_t s = 0; s < table.n_stages; s++)
        if (b->runs[s] && kiln_stage_needs(kiln_stage_find(table.stage[s].stage), kiln_stage_find(stage)))
            return table.stage[s].stage;
    return NULL;
}

static bool goes_to(const kiln_opt *row, const bake *b)
{
    for (size_t s = 0; s < table.n_stages; s++)
        for (size_t i = 0; b->runs[s] && i < table.stage[s].n; i++)
            if (table.stage[s].option[i].general == row || table.stage[s].option[i].special == row) return true;
    return false;
}

/* An option that reaches no stage of this run must not be dropped in silence: something else would be baked than was meant. */
static kiln_status check_reach(const bake *b, kiln_error *err)
{
    for (size_t s = 0; s < table.n_stages; s++)
        for (size_t i = 0; !b->runs[s] && i < table.stage[s].n; i++) {
            const kiln_opt *row = kiln_pipeline_given(&cli, &table.stage[s].option[i]);
            if (row && !goes_to(row, b))
                return kiln_fail(err, KILN_E_USAGE, "--%s is an option of %s, which does not run here%s%s", row->name,
                                 table.stage[s].stage, !o.stages && row_of(table.stage[s].stage) ? "; give --" : "",
                                 !o.stages && row_of(table.stage[s].stage) ? table.stage[s].stage : "");
        }
    return KILN_OK;
}

/* A stage that only looks (--dry-run) leaves nothing for the next one. */
static kiln_status check_once(const bake *b, kiln_error *err)
{
    for (size_t s = 0; s < table.n_stages; s++)
        for (size_t i = 0; b->runs[s] && i < table.stage[s].n; i++) {
            const char *stage = table.stage[s].stage, *reader = reader_of(b, stage);
            const kiln_opt *row = kiln_pipeline_given(&cli, &table.stage[s].option[i]);
            if (row && reader && table.stage[s].option[i].once)
                return kiln_fail(err, KILN_E_USAGE,
                                 "with --%s, %s writes nothing that %s could read; run that stage by itself, see 'kiln %s --help'",
                                 row->name, stage, reader, stage);
        }
    return KILN_OK;
}

/* Nor does a part of a stage's units where nothing is baked yet: the next stage would end with 4. */
static kiln_status check_parts(const bake *b, kiln_error *err)
{
    static const char *const names[] = {"shard", "units"};
    if (kiln_is_file(b->manifest)) return KILN_OK;
    for (size_t s = 0; s < table.n_stages; s++)
        for (size_t i = 0; b->runs[s] && i < table.stage[s].n; i++) {
            const char *stage = table.stage[s].stage, *reader = reader_of(b, stage);
            const kiln_opt *row = reader ? kiln_pipeline_given(&cli, &table.stage[s].option[i]) : NULL;
            for (size_t k = 0; row && k < sizeof names / sizeof *names; k++)
                if (!strcmp(names[k], table.stage[s].option[i].name))
                    return kiln_fail(err, KILN_E_USAGE,
                                     "with --%s, %s does not finish, so %s would have nothing to read: let the run end with that "
                                     "stage, as with --stages %s",
                                     row->name, stage, reader, stage);
        }
    return KILN_OK;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* A word that programs take for a path, not for an option. */
static kiln_status as_path(const char **word, kiln_error *err)
{
    char *copy;
    if ((*word)[0] != '-') return KILN_OK;
    const size_t n = strlen(*word) + 3;
    KILN_TRY(KILN_ALLOC(&copy, n, "a path", err));
    (void)snprintf(copy, n, "./%s", *word);
    *word = copy;
    return KILN_OK;
}

/* Length of a scene's file name without its suffix: of x.sog.gz and x.compressed.ply that of x. */
static size_t stem(const char *scene, char name[KILN_PATH_MAX])
{
    static const char compressed[] = ".compressed";
    const size_t more = sizeof compressed - 1;
    (void)snprintf(name, KILN_PATH_MAX, "%.*s", (int)kiln_packing_stem(scene), scene);
    const char *suffix = kiln_path_suffix(name);
    size_t n = strlen(name) - (*suffix ? strlen(suffix) + 1 : 0);
    const size_t base = (size_t)(kiln_path_base(name) - name);
    if (!strcasecmp(suffix, "ply") && n > base + more && !strncasecmp(name + n - more, compressed, more)) n -= more;
    return n > base ? n : strlen(name);
}

static kiln_status bake_of(const char *scene, size_t length, char *out, kiln_error *err)
{
    const int n = snprintf(out, KILN_PATH_MAX, "%.*s.bake", (int)length, scene);
    if (n < 0 || n >= KILN_PATH_MAX) return kiln_fail(err, KILN_E_INPUT, "the path '%.60s...' is too long", scene);
    return KILN_OK;
}

/* bake/ in a scene's folder; beside a scene's file FILE.bake, with the file's suffixes dropped. Where only the last one was dropped
 * before, a bake of that name goes on. */
static kiln_status default_out(const char *scene, char *out, kiln_error *err)
{
    if (kiln_is_dir(scene) || o.demo) return kiln_path_join(out, KILN_PATH_MAX, scene, "bake", err);
    char name[KILN_PATH_MAX];
    const char *suffix = kiln_path_suffix(scene);
    const size_t before = strlen(scene) - (*suffix ? strlen(suffix) + 1 : 0), length = stem(scene, name);
    KILN_TRY(bake_of(scene, before, out, err));
    return length == before || kiln_is_dir(out) ? KILN_OK : bake_of(scene, length, out, err);
}

static kiln_status refuse_slash(const char *scene, kiln_error *err)
{
    char file[KILN_PATH_MAX];
    size_t n = strlen(scene);
    if (scene[n - 1] != '/' || kiln_is_dir(scene)) return KILN_OK;
    while (n > 1 && scene[n - 1] == '/') n--;
    (void)snprintf(file, sizeof file, "%.*s", (int)n, scene);
    if (!kiln_is_file(file)) return KILN_OK; /* import says that it is not there */
    return kiln_fail(err, KILN_E_INPUT, "'%s' is a file and no folder; give it without the slash: '%s'", scene, file);
}

static kiln_status find_places(const kiln_parsed *parsed, bake *b, kiln_error *err)
{
    b->scene = parsed->n_positional ? parsed->positional[0] : o.scene ? o.scene : o.demo ? DEMO_FOLDER : NULL;
    const bool scene_needed = b->runs[stage_index("import")] || !o.out;
    if (!b->scene && scene_needed)
        return kiln_fail(err, KILN_E_USAGE,
                         "which scene? Give the folder or the file that holds it: " NAME " SCENE; or bake a demo: " NAME " --demo");
    if (b->scene && *b->scene) KILN_TRY(refuse_slash(b->scene, err));
    if (b->scene) KILN_TRY(as_path(&b->scene, err));
    if (o.out) KILN_TRY(as_path(&o.out, err));
    if (o.out)
        KILN_TRY(kiln_path_join(b->out, sizeof b->out, "", o.out, err));
    else
        KILN_TRY(default_out(b->scene, b->out, err));
    return kiln_path_join(b->manifest, sizeof b->manifest, b->out, "manifest.db", err);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* " (bad input)"; "" for a code that is none of ours. */
static const char *meaning_of(int code, char buf[160])
{
    char text[128];
    kiln_exit_text(code, text, sizeof text);
    (void)snprintf(buf, 160, *text ? " (%s)" : "%s", text);
    return buf;
}

/* Always said: make turns every exit code into 2, and its user finds the program's here. */
static void say_end(const char *program, int code, int signal)
{
    char meaning[160];
    if (signal)
        (void)fprintf(stderr, NAME ": kiln-%s was ended by signal %d (%s)\n", program, signal, strsignal(signal));
    else
        (void)fprintf(stderr, NAME ": kiln-%s ended with exit code %d%s\n", program, code, meaning_of(code, meaning));
}

static bool is_yes(const char *name)
{
    char text[KILN_PATH_MAX];
    for (size_t i = 0; i < table.n; i++)
        if (!strcmp(table.rows[i].name, name)) return !strcmp(kiln_opt_text(&table.rows[i], text, sizeof text), "yes");
    return false;
}

static bool allows_partial(const kiln_stage_options *s)
{
    char text[KILN_PATH_MAX];
    for (size_t i = 0; i < s->n; i++) {
        const kiln_opt *row = kiln_pipeline_given(&cli, &s->option[i]);
        if (row && !strcmp(s->option[i].name, "allow-partial")) return !strcmp(kiln_opt_text(row, text, sizeof text), "yes");
    }
    return false;
}

static const char *devices_of(const kiln_stage_options *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const kiln_opt *row = strcmp(s->option[i].name, "devices") ? NULL : kiln_pipeline_given(&cli, &s->option[i]);
        if (row) return *(const char *const *)row->where;
    }
    return "auto";
}

static kiln_status run_program(const char *name, const char **argv, bool quiet, int *code, kiln_error *err)
{
    int signal;
    if (kiln_log_get() == KILN_LOG_VERBOSE) {
        (void)fprintf(stderr, NAME ": kiln-%s", name);
        for (size_t i = 1; argv[i]; i++) (void)fprintf(stderr, " %s", argv[i]);
        (void)fputc('\n', stderr);
    }
    KILN_TRY(kiln_program_run(name, argv, quiet, code, &signal, err));
    if (*code) say_end(name, *code, signal);
    return KILN_OK;
}

/* Made under another name first: what stands under its own is whole, and is used as it is. */
static kiln_status make_demo(const char *dir, int *code, kiln_error *err)
{
    char unfinished[KILN_PATH_MAX];
    if (kiln_is_dir(dir)) return KILN_OK;
    if (snprintf(unfinished, sizeof unfinished, "%s.unfinished", dir) >= (int)sizeof unfinished)
        return kiln_fail(err, KILN_E_INPUT, "the path '%.60s...' is too long", dir);
    const char *argv[] = {NULL, "demo", unfinished, "--quiet", NULL};
    KILN_TRY(run_program("generate", argv, true, code, err));
    if (*code) return KILN_OK;
    if (rename(unfinished, dir) != 0)
        return kiln_fail(err, KILN_E_IO, "cannot rename '%s' to '%s': %s", unfinished, dir, strerror(errno));
    kiln_say("made a demo scene in %s", dir);
    return KILN_OK;
}

static kiln_status make_call(const kiln_stage_options *s, const bake *b, call *c, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&c->argv, kiln_pipeline_count(&cli, s) + 4, "the arguments of a stage", err));
    c->n = 1;
    if (!strcmp(s->stage, "import")) c->argv[c->n++] = b->scene; /* the one stage that reads something else than the manifest */
    c->argv[c->n++] = b->manifest;
    c->first = c->n;
    c->allows_partial = allows_partial(s);
    c->devices = devices_of(s);
    return kiln_pipeline_arguments(&cli, s, (char **)c->argv, &c->n, err);
}

static void print_quoted(const char *word)
{
    (void)putchar('\'');
    for (; *word; word++) (void)fputs(*word == '\'' ? "'\\''" : (char[]){*word, '\0'}, stdout);
    (void)putchar('\'');
}

/* A line a stage, so that a script can add words to one of them. */
static kiln_status print_commands(const bake *b, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    for (size_t s = 0; s < table.n_stages; s++) {
        const call *c = &b->call[s];
        if (!b->runs[s]) continue;
        for (size_t i = 1; i < c->n; i++)
            if (strchr(c->argv[i], '\n'))
                return kiln_fail(err, KILN_E_USAGE, "--print-commands prints a line for each stage, but '%.60s' has a line break",
                                 c->argv[i]);
        KILN_TRY(kiln_program_path(table.stage[s].stage, path, err));
        print_quoted(path);
        for (size_t i = 1; i < c->n; i++) {
            (void)putchar(' ');
            print_quoted(c->argv[i]);
        }
        (void)putchar('\n');
    }
    return KILN_OK;
}

static kiln_status make_calls(bake *b, kiln_error *err)
{
    for (size_t s = 0; s < table.n_stages; s++)
        if (b->runs[s]) KILN_TRY(make_call(&table.stage[s], b, &b->call[s], err));
    return KILN_OK;
}

static void release_calls(bake *b)
{
    for (size_t s = 0; s < KILN_STAGES_MAX; s++) {
        for (size_t i = b->call[s].first; i < b->call[s].n; i++) free((char *)b->call[s].argv[i]);
        free(b->call[s].argv);
    }
}

/* --devices of the last stage behind this one that computes where that says; NULL: there is none. Stages that pack, and those that
 * run many units at a time on the CPU, mostly do not. */
static const char *devices_behind(const bake *b, size_t s)
{
    const char *devices = NULL;
    while (++s < table.n_stages) {
        const kiln_stage_program *p = b->runs[s] ? kiln_stage_program_find(table.stage[s].stage) : NULL;
        if (p && p->unit && !p->packs && !p->serial) devices = b->call[s].devices;
    }
    return devices;
}

static bool runs_behind(const bake *b, size_t s)
{
    while (++s < table.n_stages)
        if (b->runs[s]) return true;
    return false;
}

/* Time left is told by each stage, beside its own progress. The report takes time, too. */
static void plan_time(bake *b)
{
    const char *names[KILN_STAGES_MAX + 1];
    bool runs[KILN_STAGES_MAX + 1];
    size_t n = 0;
    for (; n < table.n_stages; n++) {
        names[n] = table.stage[n].stage;
        runs[n] = b->runs[n];
    }
    names[n] = "report";
    runs[n++] = o.report && !o.stages;
    kiln_time_left_init(&b->left, n, names, runs, b->manifest);
}

static kiln_status run_stage(bake *b, size_t s, int *code, kiln_error *err)
{
    const bool tells = b->level != KILN_LOG_QUIET;
    KILN_TRY(kiln_program_stopped(err));
    kiln_program_keep_workers(runs_behind(b, s));
    kiln_program_expect(devices_behind(b, s));
    if (tells) kiln_time_left_begin(&b->left, s);
    const kiln_status st = run_program(table.stage[s].stage, b->call[s].argv, false, code, err);
    kiln_log_init(NAME, b->level);
    if (tells) kiln_time_left_end(&b->left, s);
    return st;
}

static kiln_status run_stages(bake *b, int *code, kiln_error *err)
{
    if (b->level != KILN_LOG_QUIET) plan_time(b);
    for (size_t s = 0; s < table.n_stages; s++) {
        const call *c = &b->call[s];
        if (!b->runs[s]) continue;
        KILN_TRY(run_stage(b, s, code, err));
        if (*code == 0) continue;
        if (*code != kiln_exit_code(KILN_E_PARTIAL) || !c->allows_partial) return KILN_OK;
        const size_t at = strlen(b->partial);
        (void)snprintf(b->partial + at, sizeof b->partial - at, " kiln-%s", table.stage[s].stage);
        *code = 0;
    }
    if (b->partial[0]) *code = kiln_exit_code(KILN_E_PARTIAL);
    return KILN_OK;
}

/* ---- the report ---------------------------------------------------------------------------------------------------- */

/* A bake in which nothing has changed since its report was written needs no other. */
static bool has_report(const bake *b, const char *path)
{
    kiln_file_info manifest, report;
    return kiln_is_file(path) && kiln_file_stat(path, &report, NULL) == KILN_OK &&
           kiln_file_stat(b->manifest, &manifest, NULL) == KILN_OK && report.mtime_ns >= manifest.mtime_ns;
}

/* The bake is whole without it: a failure is told, and changes no exit code. */
static kiln_status make_report(const bake *b, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    const char *argv[] = {NULL, b->manifest, "--quiet", is_yes("allow-network-fs") ? "--allow-network-fs" : NULL, NULL};
    int code = 0;
    if (!o.report || o.stages || !kiln_is_file(b->manifest)) return KILN_OK;
    KILN_TRY(kiln_path_join(path, sizeof path, b->out, "report.html", err));
    if (has_report(b, path)) return KILN_OK;
    KILN_TRY(kiln_program_stopped(err));
    const kiln_status st = run_program("report", argv, true, &code, err);
    if (st != KILN_OK) kiln_warn("%s", err->msg);
    if (st != KILN_OK || code)
        kiln_warn("the bake is whole, but there is no report of it; kiln report %s tries again", b->manifest);
    return kiln_program_stopped(err);
}

static void say_place(const bake *b, const char *what, const char *stage, const char *folder)
{
    char path[KILN_PATH_MAX];
    if (*stage && !b->runs[stage_index(stage)]) return;
    if (kiln_path_join(path, sizeof path, b->out, folder, NULL) == KILN_OK && (kiln_is_dir(path) || kiln_is_file(path)))
        kiln_print("%-9s %s", what, path);
}

/* stdout is for results: with --json those are the stages' documents, with --quiet there are none. */
static void say_places(const bake *b)
{
    if (is_yes("json") || is_yes("quiet")) return;
    say_place(b, "baked:", "", "manifest.db");
    if (!o.stages && o.report) say_place(b, "report:", "", "report.html");
    say_place(b, "pictures:", "render", "renders");
    say_place(b, "export:", "export", "export");
}

static kiln_status run_bake(const kiln_parsed *parsed, bake *b, int *code, kiln_error *err)
{
    b->level = is_yes("quiet") ? KILN_LOG_QUIET : is_yes("verbose") ? KILN_LOG_VERBOSE : KILN_LOG_NORMAL;
    kiln_log_init(NAME, b->level);
    KILN_TRY(choose_stages(b, err));
    KILN_TRY(check_asked(b, err));
    KILN_TRY(find_places(parsed, b, err));
    choose_asked(b);
    KILN_TRY(check_reach(b, err));
    KILN_TRY(check_once(b, err));
    KILN_TRY(check_parts(b, err));
    KILN_TRY(make_calls(b, err));
    if (o.demo) KILN_TRY(make_demo(b->scene, code, err));
    if (*code == 0 && o.print_commands) return print_commands(b, err);
    if (*code == 0) KILN_TRY(run_stages(b, code, err));
    if (*code == 0 || b->partial[0]) KILN_TRY(make_report(b, err));
    if (*code == 0) say_places(b);
    if (b->partial[0] && *code == kiln_exit_code(KILN_E_PARTIAL))
        return kiln_fail(err, KILN_E_PARTIAL,
                         "baked in part: %s lacks what%s gave up; the same command tries it again, "
                         "kiln info names it",
                         b->manifest, b->partial);
    return KILN_OK;
}

static kiln_status run(const kiln_parsed *parsed, int *code, kiln_error *err)
{
    static bake b; /* too big for the stack */
    const kiln_status st = run_bake(parsed, &b, code, err);
    kiln_program_stop_workers(); /* a last stage that ran has done so */
    release_calls(&b);
    return st;
}

static kiln_status parse_and_run(int argc, char **argv, int *code, kiln_error *err)
{
    kiln_parsed parsed;
    const bool from_make = argc > 1 && !strcmp(argv[1], "--make");
    KILN_TRY(make_cli(from_make, &cli, &table, err));
    if (from_make) KILN_TRY(read_variables(&argc, argv, err));
    KILN_TRY(kiln_cli_parse(&cli, argc, argv, &parsed, err));
    return parsed.done ? KILN_OK : run(&parsed, code, err);
}

kiln_status kiln_front_pipeline(int argc, char **argv, int *code, kiln_error *err)
{
    const kiln_status st = parse_and_run(argc, argv, code, err);
    kiln_pipeline_table_release(&table);
    return st;
}
