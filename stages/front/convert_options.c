/* convert_options -- see the header. A value is parsed into the storage of its stage, which the
 * stage's own start overwrites: so all are turned into words before the first stage runs. */
#include "stages/front/convert_options.h"

#include "stages/engine/parent/options.h"
#include "stages/formats/reader.h"
#include "stages/front/front.h"
#include "stages/front/programs.h"

#include <stdio.h>
#include <string.h>

kiln_convert_options kiln_convert_given;

enum { FOR_IMPORT = 1, FOR_EXPORT = 2, FOR_BOTH = FOR_IMPORT | FOR_EXPORT, FOR_ALL = 7 };

/* Which options it has, of whose table. `as`: its name here, where both stages have one of that
 * name in another sense. letter: as splat-transform has it, where it means the same there. */
typedef struct {
    unsigned stages;
    const char *name, *as;
    char letter;
    const char *group, *brief, *help; /* as in base/option.h; NULL: the stage's */
    const char *def;                  /* NULL: the stage's */
} taken;

#define WRITER(id, name, ...) " " name
static const char format_help[] = "write OUT in this format where its suffix names none, and to "
                                  "standard output; kiln-export --list-formats describes them:"
#include "stages/formats/writers.def"
    ;
#undef WRITER

#define TAKE(STAGES, NAME, ...)                         \
    {                                                   \
        .stages = (STAGES), .name = (NAME), __VA_ARGS__ \
    }
/* clang-format off */
static const taken list[] = {
    TAKE(FOR_EXPORT, "format", .group = "What is written", .brief = "write this format where the suffix of OUT names none",
     .help = format_help),
    TAKE(FOR_EXPORT, "spz-version"),
    TAKE(FOR_EXPORT, "sh-degree", .letter = 'H'),
    TAKE(FOR_EXPORT, "order", .brief = "write rows of a PLY in the order of the source",
     .help = "write rows of a PLY in the order of the source, the only one here; baked is that of chunks, which take a bake"),
    TAKE(FOR_EXPORT, "columns"),
    TAKE(FOR_EXPORT, "no-normals"),
    TAKE(FOR_EXPORT, "keep-origin"),
    TAKE(FOR_EXPORT, "frame", .as = "export-frame",
     .help = "turn SPZ and GLB to the axes that their specifications name (SPZ right, up, back; GLB left, up, forward); as-is "
             "leaves the numbers of a PLY"),
    TAKE(FOR_EXPORT, "overwrite",
     .brief = "replace an OUT that is there",
     .help = "replace an OUT that is there, whoever wrote it; never a file that is read"),
    TAKE(FOR_EXPORT, "filter-box", .group = "Which rows, and where they lie"),
    TAKE(FOR_EXPORT, "filter-sphere"),
    TAKE(FOR_EXPORT, "filter-value", .letter = 'V'),
    TAKE(FOR_EXPORT, "level"),
    TAKE(FOR_EXPORT, "count"),
    TAKE(FOR_EXPORT, "percent"),
    TAKE(FOR_EXPORT, "scale", .letter = 's'),
    TAKE(FOR_EXPORT, "rotate"),
    TAKE(FOR_EXPORT, "translate"),
    TAKE(FOR_IMPORT, "frame", .as = "import-frame", .group = "How files are read"),
    TAKE(FOR_IMPORT, "orbit-at"),
    TAKE(FOR_IMPORT, "lod"),
    TAKE(FOR_IMPORT, "static"),
    TAKE(FOR_IMPORT, "activated"),
    TAKE(FOR_IMPORT, "extra", .help = "keep columns of a PLY whose meaning is not known, at most 256, for a PLY that is written; none "
                                  "leaves them out, but not normals"),
    TAKE(FOR_IMPORT, "parts", .brief = "join the files of the folder IN, which are one scene",
     .help = "join the files of the folder IN, which are one scene, in the order of their names"),
    TAKE(FOR_IMPORT, "max-inflated"),
};

/* Of the rows that all stages have. */
static const taken shared[] = {
    TAKE(FOR_BOTH, "devices"),
    TAKE(FOR_BOTH, "device"),
    TAKE(FOR_BOTH, "gpu"),
    TAKE(FOR_BOTH, "threads"),
    TAKE(FOR_BOTH, "jobs"),
    TAKE(FOR_BOTH, "ram", .def = "200M",
     .help = "most host memory that all processes may take together: a size, or a share of what is free (512M, 1.5G, 50%); "
             "without this option it is more where more is needed, up to half of what is free"),
    TAKE(FOR_BOTH, "vram"),
    TAKE(FOR_BOTH, "allow-network-fs",
     .help = "keep the rows of a format with cameras on a network file system, too, while they are converted"),
    TAKE(FOR_EXPORT, "json"),
    TAKE(FOR_BOTH, "quiet"),
    TAKE(FOR_BOTH, "verbose"),
};
/* clang-format on */

/* Formats whose scenes are one file. */
static kiln_status check_import_format(const char *text, kiln_error *err)
{
    const kiln_reader *const r = kiln_reader_named(text);
    char names[256] = "";
    size_t n = 0;
    if (r && !r->members) return KILN_OK;
    for (const kiln_reader *const *one = kiln_readers; *one && n < sizeof names; one++)
        if (!(*one)->members)
            n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "", (*one)->name);
    return kiln_fail(err, KILN_E_USAGE,
                     "--import-format takes a format of one file (%s), not '%.80s'", names, text);
}

static const kiln_opt own[] = {
    KILN_OPTION_TEXT("import-format", &kiln_convert_given.import_format, "FORMAT",
                     "what standard input, '-', is, where its bytes do not say it, as those of a "
                     ".splat; kiln-import --list-formats names the formats",
                     .brief = "what standard input is, such as splat", .group = "Others"),
    KILN_OPTION_BOOL("filter-nan", &kiln_convert_given.filter_nan,
                     "leave out rows with numbers that are not finite, which is done in any case",
                     .letter = 'N', .brief = "accepted for splat-transform's scripts; always done"),
    KILN_OPTION_PATH("scratch-dir", &kiln_convert_given.scratch_dir, "DIR",
                     "keep streams on their way in this folder, and the rows of a format with "
                     "cameras; else they lie beside OUT; they "
                     "take as much room as a PLY",
                     .brief = "put temporary files here instead of beside OUT"),
};

#define N_ROWS(table) (sizeof(table) / sizeof *(table))
enum { ROWS = N_ROWS(list) + N_ROWS(own), SHARED_ROWS = N_ROWS(shared) + 8, CHECKS = 16 };

static struct {
    kiln_opt rows[ROWS + 1], common[SHARED_ROWS + 1];
    kiln_opt_check checks[CHECKS + 1];
    unsigned n_checks;
} table;

static const kiln_opt *row_named(const kiln_opt *rows, const char *name)
{
    for (; rows->name; rows++)
        if (!strcmp(rows->name, name)) return rows;
    return NULL;
}

static const kiln_stage_program *stage_of(const taken *t)
{
    return t->stages & FOR_EXPORT ? &kiln_stage_export : &kiln_stage_import;
}

/* Nothing of it is stored. */
static void take_option_row(const kiln_opt *from, const taken *t, kiln_opt *out)
{
    *out = *from;
    out->flags &= KILN_HIDDEN | KILN_ALONE | KILN_DEVICE | KILN_PERCENT;
    if (t->as) out->name = t->as;
    if (t->letter) out->letter = t->letter;
    if (t->brief) out->brief = t->brief;
    if (t->help) out->help = t->help;
    if (t->def) out->def = t->def;
    out->group = t->group;
}

static kiln_status take_check(const kiln_cli *of, const taken *t, kiln_error *err)
{
    for (const kiln_opt_check *c = of->checks; c && c->name; c++) {
        if (strcmp(c->name, t->name) != 0) continue;
        if (table.n_checks == CHECKS)
            return kiln_fail(err, KILN_E_BUG, "more than %d checks of options", CHECKS);
        table.checks[table.n_checks++] = (kiln_opt_check){t->as ? t->as : t->name, c->check};
    }
    return KILN_OK;
}

static kiln_status take_rows(kiln_error *err)
{
    unsigned n = 0;
    table.n_checks = 0;
    for (size_t i = 0; i < N_ROWS(list); i++) {
        const kiln_cli *of = stage_of(&list[i])->cli;
        const kiln_opt *from = row_named(of->options, list[i].name);
        if (!from)
            return kiln_fail(err, KILN_E_BUG, "%s has no option --%s", of->program, list[i].name);
        take_option_row(from, &list[i], &table.rows[n++]);
        KILN_TRY(take_check(of, &list[i], err));
    }
    for (size_t i = 0; i < N_ROWS(own); i++) table.rows[n++] = own[i];
    if (table.n_checks == CHECKS)
        return kiln_fail(err, KILN_E_BUG, "more than %d checks of options", CHECKS);
    table.checks[table.n_checks++] = (kiln_opt_check){"import-format", check_import_format};
    return KILN_OK;
}

static kiln_status take_shared(const kiln_cli *merged, kiln_error *err)
{
    unsigned n = 0;
    for (size_t i = 0; i < N_ROWS(shared); i++) {
        const kiln_opt *from = row_named(merged->common, shared[i].name);
        if (!from) return kiln_fail(err, KILN_E_BUG, "no stage has an option --%s", shared[i].name);
        take_option_row(from, &shared[i], &table.common[n++]);
    }
    for (const kiln_opt *o = kiln_print_options; o->name && n < SHARED_ROWS; o++)
        table.common[n++] = *o;
    return KILN_OK;
}

static const char *const notes[] = {
    "The rows are read as kiln-import reads them and written as kiln-export writes the layer "
    "source: the bytes are the same. Rows "
    "with "
    "numbers that are not finite are left out and counted. Nothing is kept of the way.",
    "--level, --count and --percent take levels of detail. They are made in a bake beside OUT, or "
    "in --scratch-dir, which is removed "
    "afterwards: three times as large as a PLY of the rows. --ram is then 512M by default.",
    "The default of --ram grows to what a conversion needs, up to half of what is free, and "
    "convert says so.",
    "Several files become one, in this order. Filters look at the coordinates of the files, before "
    "any move; a move scales, turns, "
    "then "
    "translates.",
    "- is standard input, or standard output, which takes the format from --format (ply) and is "
    "written when the file is whole. --import-format names the format of a standard input whose "
    "bytes do not.",
    "-t, -r, -B and -S of splat-transform count in a frame that is turned by 180 degrees about z. "
    "--translate, --rotate, "
    "--filter-box and --filter-sphere count in the numbers of a PLY. So x and y of a move have the "
    "other sign here, and turns "
    "about x and y go the other way. -s is the same.",
    NULL};

kiln_status kiln_convert_cli(kiln_cli *out, kiln_error *err)
{
    kiln_cli merged;
    KILN_TRY(kiln_engine_options_merge(&kiln_stage_export, &merged, err));
    KILN_TRY(take_rows(err));
    KILN_TRY(take_shared(&merged, err));
    *out = (kiln_cli){.program = KILN_CONVERT,
                      .summary = "turns a scene of any format that is read into any that is "
                                 "written, and leaves no manifest",
                      .positionals = "IN [IN...] OUT",
                      .n_positionals = 2,
                      .n_optional = KILN_POSITIONALS_MAX - 2,
                      .tables_note = notes,
                      .options = table.rows,
                      .common = table.common,
                      .checks = table.checks,
                      .common_checks = merged.common_checks};
    return KILN_OK;
}

static kiln_status pass_row(const kiln_opt *o, const char *name, kiln_words *out, kiln_error *err)
{
    char *text;
    KILN_TRY(KILN_ALLOC(&text, KILN_OPT_TEXT_MAX, "the value of an option", err));
    kiln_status st = KILN_OK;
    if (o->kind == KILN_OPT_LIST)
        for (const char *at = *(const char *const *)o->where;
             st == KILN_OK && kiln_opt_list_next(&at, text, KILN_OPT_TEXT_MAX);)
            st = kiln_words_addf(out, err, "--%s=%s", name, text);
    else
        st = kiln_words_addf(out, err, "--%s=%s", name, kiln_opt_text(o, text, KILN_OPT_TEXT_MAX));
    free(text);
    return st;
}

static kiln_status pass_rows(const kiln_cli *cli, const kiln_opt *rows, const taken *from, size_t n,
                             unsigned stage, kiln_words *out, kiln_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (from[i].stages & stage && !(rows[i].flags & KILN_HIDDEN) &&
            (from[i].def || kiln_opt_given(cli, rows[i].name)))
            KILN_TRY(pass_row(&rows[i], stage == FOR_ALL ? rows[i].name : from[i].name, out, err));
    return KILN_OK;
}

kiln_status kiln_convert_pass(const kiln_cli *cli, const kiln_stage_program *stage, kiln_words *out,
                              kiln_error *err)
{
    const unsigned for_stage = !stage                        ? FOR_ALL
                               : stage == &kiln_stage_export ? FOR_EXPORT
                                                             : FOR_IMPORT;
    if (!stage || stage == &kiln_stage_import || stage == &kiln_stage_export)
        KILN_TRY(pass_rows(cli, table.rows, list, N_ROWS(list), for_stage, out, err));
    return pass_rows(cli, table.common, shared, N_ROWS(shared), for_stage, out, err);
}
