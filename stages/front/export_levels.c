/* export_levels -- see the header. What is wrong with a command line or a bake is for the stage to
 * say, which runs in any case. */
#include "stages/front/export_levels.h"

#include "base/log.h"
#include "base/memory.h"
#include "schema/layers.h"
#include "stages/engine/parent/options.h"
#include "stages/engine/program.h"
#include "stages/export/level_cut.h"
#include "stages/front/words.h"

#include <stdlib.h>
#include <string.h>

/* A worker, or a question that the options answer: asked twice it would be answered twice. */
static bool is_no_export(int argc, char **argv)
{
    static const char *const questions[] = {"--help", "--version", "--man", "--list-", "--worker"};
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "-h") || !strcmp(argv[i], "-V")) return true;
        for (size_t k = 0; k < sizeof questions / sizeof *questions; k++)
            if (!strncmp(argv[i], questions[k], strlen(questions[k]))) return true;
    }
    return false;
}

/* Are there chunks, and no levels of them? */
static bool lacks_levels(const char *path)
{
    kiln_manifest *m;
    kiln_stage_row chunk, lod;
    kiln_error none;
    if (kiln_manifest_open(path, KILN_OPEN_READ, "export", kiln_engine_values.allow_network, &m,
                           &none) != KILN_OK)
        return false;
    const bool known =
        kiln_stage_get(m, kiln_layer_kinds[KILN_LAYER_baked].stage, &chunk, &none) == KILN_OK &&
        kiln_stage_get(m, kiln_layer_kinds[KILN_LAYER_levels].stage, &lod, &none) == KILN_OK;
    kiln_manifest_close(m);
    return known && chunk.state == KILN_STAGE_FRESH && lod.state != KILN_STAGE_FRESH;
}

/* What of the command line goes for kiln-lod, too. */
static kiln_status pass_common(const kiln_cli *cli, kiln_words *out, kiln_error *err)
{
    static const char *const names[] = {"devices",     "threads",          "ram",    "vram",
                                        "scratch-dir", "allow-network-fs", "verbose"};
    char *text;
    kiln_status st = KILN_OK;
    KILN_TRY(KILN_ALLOC(&text, KILN_OPT_TEXT_MAX, "the value of an option", err));
    for (const kiln_opt *row = cli->common; row->name; row++)
        for (size_t i = 0; i < sizeof names / sizeof *names && st == KILN_OK; i++)
            if (!strcmp(row->name, names[i]) && kiln_opt_given(cli, row->name))
                st = kiln_words_addf(out, err, "--%s=%s", row->name,
                                     kiln_opt_text(row, text, KILN_OPT_TEXT_MAX));
    free(text);
    return st;
}

/* *words stays empty where there is nothing to make. */
static kiln_status plan_levels(int argc, char **argv, kiln_words *words, kiln_error *err)
{
    kiln_cli cli;
    kiln_parsed parsed;
    kiln_words later = {0};
    /* for the stored options, too */
    KILN_TRY(kiln_program_check(&kiln_stage_export, argc, argv, KILN_CHECK_NAMES, err));
    const bool asked = kiln_cut_is_asked(&kiln_export_given);
    kiln_engine_options_forget();
    kiln_status st;
    KILN_GO(kiln_engine_options_merge(&kiln_stage_export, &cli, err));
    KILN_GO(kiln_cli_parse(&cli, argc, argv, &parsed, err));
    if (!asked || parsed.n_positional != 1 || !lacks_levels(parsed.positional[0])) goto done;
    kiln_log_init(kiln_export_cli.program,
                  kiln_common_values.quiet ? KILN_LOG_QUIET : KILN_LOG_NORMAL);
    kiln_say("'%s' has no levels of detail of its chunks: kiln-lod makes them now, and they stay "
             "in the bake",
             parsed.positional[0]);
    KILN_GO(kiln_words_add(&later, kiln_stage_lod.cli->program, err));
    KILN_GO(pass_common(&cli, &later, err));
    if (kiln_common_values.quiet || kiln_common_values.json)
        KILN_GO(kiln_words_add(&later, "--quiet", err));
    KILN_GO(kiln_words_add(&later, "--", err));
    KILN_GO(kiln_words_add(&later, parsed.positional[0], err));
    KILN_GO(kiln_words_add_all(words, &later, err));
done:
    kiln_words_release(&later);
    return st;
}

int kiln_front_export(int argc, char **argv)
{
    kiln_words words = {0};
    kiln_error none;
    int code = 0;
    if (!is_no_export(argc, argv) && plan_levels(argc, argv, &words, &none) == KILN_OK && words.n) {
        code = kiln_program_main(&kiln_stage_lod, (int)words.n, words.word);
        kiln_memory_trim();
    }
    kiln_words_release(&words);
    return code ? code : kiln_program_main(&kiln_stage_export, argc, argv);
}
