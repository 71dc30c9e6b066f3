/* `kiln help` -- lists the commands for a newcomer. The list is made from the stage graph and the
 * programs beside `kiln`. */
#include "base/memory.h"
#include "stages/engine/stage_graph.h"
#include "stages/front/front.h"
#include "stages/front/programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const kiln_front_row kiln_front_rows[] = {
    {"pipeline", "bakes a scene: all stages, one after the other", "SCENE", kiln_front_pipeline},
    {"convert", "turns a scene file into another format, without levels of detail",
     "IN [IN...] OUT", kiln_front_convert},
    {"slurm", "bakes a scene over the hosts of a Slurm cluster", "SCENE", kiln_front_slurm},
    {"claim", "prints the open round of a bake over hosts, checked, for scripts", "MANIFEST",
     kiln_front_claim},
    {"help", "prints this overview, or the help of a command", "[COMMAND]", kiln_front_help},
    {"completion", "prints a completion script for a shell", "bash|zsh", kiln_front_completion},
    {NULL, NULL, NULL, NULL},
};

static const char intro[] = "SplatKiln bakes 3D Gaussian Splatting scenes: it reads what trainers "
                            "and photogrammetry write, repairs and "
                            "prunes it, cuts it into chunks, draws it and measures against photos. "
                            "One SQLite file, the manifest, "
                            "holds the whole bake.";

static const char *const examples[][2] = {
    {"kiln pipeline --demo", "bakes a demo scene, to see what comes out"},
    {"kiln pipeline SCENE", "bakes your scene: a folder into SCENE/bake, a file into NAME.bake"},
    {"kiln import SCENE x.db --list", "says what is found in a scene, and imports nothing"},
    {"kiln info SCENE/bake/manifest.db", "says what a bake holds"},
    {"kiln doctor", "says what this machine has for baking, and what is wrong"},
};

/* What a program says of itself, into what[256]; false: it does not answer, so it is none of
 * ours. */
static bool summary_of(const kiln_program_entry *e, char *what)
{
    json_t *doc = NULL;
    const kiln_stage_info *stage = kiln_stage_find(e->name);
    if (stage) (void)snprintf(what, 256, "%s", stage->what);
    if (stage) return true;
    if (kiln_program_ask(e->name, &doc, NULL) != KILN_OK) return false;
    const char *summary = json_string_value(json_object_get(doc, "summary"));
    (void)snprintf(what, 256, "%s", summary ? summary : "");
    json_decref(doc);
    return true;
}

static void command_row(FILE *out, const char *name, const char *what)
{
    (void)fprintf(out, "  %-11s", name);
    kiln_cli_wrap_from(what, 13, 13, out);
}

static void print_overview(const kiln_program_list *programs, FILE *out)
{
    char what[256];
    (void)fputs("Usage: kiln COMMAND [arguments]\n\n", out);
    kiln_cli_wrap(intro, 0, out);
    (void)fputs("\nTo begin with:\n", out);
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        (void)fprintf(out, "  %s\n%6s", examples[i][0], "");
        kiln_cli_wrap_from(examples[i][1], 6, 6, out);
    }
    (void)fputs("\nCommands:\n", out);
    for (const kiln_front_row *r = kiln_front_rows; r->name; r++)
        command_row(out, r->name, r->what);
    for (int stages = 1; stages >= 0; stages--) {
        (void)fputs(stages ? "\nStages, in the order of kiln pipeline:\n" : "\nOther programs:\n",
                    out);
        for (unsigned i = 0; i < programs->n; i++)
            if (programs->entry[i].is_stage == stages && summary_of(&programs->entry[i], what))
                command_row(out, programs->entry[i].name, what);
    }
    (void)fputc('\n', out);
    kiln_cli_wrap("Each command has its own --help, also as kiln help COMMAND. kiln prune is the "
                  "program kiln-prune: its manual, with "
                  "the exit codes, is man kiln-prune.",
                  0, out);
}

/* ---- the manual page ------------------------------------------------------------------------- */

enum { NOTES_MAX = KILN_PROGRAMS_MAX + 16, NOTE_SIZE = 480 };

static kiln_status print_man(const kiln_program_list *programs, FILE *out, kiln_error *err)
{
    static char text[NOTES_MAX][NOTE_SIZE];
    const char *notes[NOTES_MAX + 2] = {intro};
    char what[256];
    unsigned n = 0;
    for (const kiln_front_row *r = kiln_front_rows; r->name; r++)
        (void)snprintf(text[n++], NOTE_SIZE, "kiln %s %s: %s.", r->name, r->positionals, r->what);
    for (unsigned i = 0; i < programs->n; i++)
        if (summary_of(&programs->entry[i], what))
            (void)snprintf(text[n++], NOTE_SIZE, "kiln %.64s, which is kiln-%.64s(1): %s.",
                           programs->entry[i].name, programs->entry[i].name, what);
    for (unsigned i = 0; i < n; i++) notes[i + 1] = text[i];
    const kiln_cli cli = {.program = "kiln",
                          .summary = "bakes 3D Gaussian Splatting scenes",
                          .positionals = "COMMAND [ARGUMENTS]",
                          .n_positionals = 1,
                          .tables_note = notes,
                          .options = kiln_print_options};
    (void)err;
    kiln_cli_man(&cli, out);
    return KILN_OK;
}

kiln_status kiln_front_overview(bool man, FILE *out, kiln_error *err)
{
    static kiln_program_list programs; /* too big for the stack */
    KILN_TRY(kiln_programs_list(&programs, err));
    if (man) return print_man(&programs, out, err);
    print_overview(&programs, out);
    return KILN_OK;
}

/* ---- commands -------------------------------------------------------------------------------- */

kiln_status kiln_front_unknown(const char *name, kiln_error *err)
{
    static kiln_program_list programs;
    const size_t length = strlen(name);
    const char *nearest = NULL;
    size_t best = KILN_NAME_FAR;
    KILN_TRY(kiln_programs_list(&programs, err));
    for (const kiln_front_row *r = kiln_front_rows; r->name; r++)
        if (kiln_name_distance(name, length, r->name) < best)
            best = kiln_name_distance(name, length, nearest = r->name);
    for (unsigned i = 0; i < programs.n; i++)
        if (kiln_name_distance(name, length, programs.entry[i].name) < best)
            best = kiln_name_distance(name, length, nearest = programs.entry[i].name);
    if (nearest)
        return kiln_fail(err, KILN_E_USAGE,
                         "there is no command '%.80s', did you mean '%s'? See 'kiln help'", name,
                         nearest);
    return kiln_fail(err, KILN_E_USAGE, "there is no command '%.80s', see 'kiln help'", name);
}

/* `kiln help prune` is `kiln prune --help`. */
kiln_status kiln_front_help(int argc, char **argv, int *code, kiln_error *err)
{
    static kiln_program_list programs;
    char *asked[] = {argv[0], (char[]){"--help"}, NULL};
    if (argc < 2) return kiln_front_overview(false, stdout, err);
    if (argc > 2) return kiln_fail(err, KILN_E_USAGE, "kiln help takes one COMMAND");
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))
        return kiln_front_overview(false, stdout, err);
    for (const kiln_front_row *r = kiln_front_rows; r->name; r++)
        if (!strcmp(argv[1], r->name))
            return r->run == kiln_front_help ? kiln_front_overview(false, stdout, err)
                                             : r->run(2, asked, code, err);
    KILN_TRY(kiln_programs_list(&programs, err));
    for (unsigned i = 0; i < programs.n; i++)
        if (!strcmp(argv[1], programs.entry[i].name))
            return kiln_program_become(argv[1], asked, err);
    return kiln_front_unknown(argv[1], err);
}
