/* `kiln completion bash|zsh` -- a script from the option tables of all programs. It holds
 * everything that it offers, so that no program runs while somebody types.
 *
 * What a value is: a list of words a|b|c, or one of
 *   @path  @dir  @manifest (*.db and folders)  @command (a command of kiln)  @text (nothing to
 * offer) */
#include "base/file.h"
#include "base/memory.h"
#include "stages/front/convert_options.h"
#include "stages/front/front.h"
#include "stages/front/programs.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    const char *name, *arg, *range, *help;
    char letter;
    kiln_opt_kind kind;
    bool stored;
} offer;

typedef struct {
    const char *name, *what, *positionals;
    bool is_program; /* kiln-NAME is there, too */
    offer *options;
    size_t n;
    json_t *doc; /* of a program; texts point into it */
} command;

typedef struct {
    command command[KILN_PROGRAMS_MAX + 8];
    size_t n;
    kiln_pipeline_table pipeline; /* texts of its options point into it */
} command_list;

/* ---- what there is --------------------------------------------------------------------------- */

static const char *text_of(const json_t *row, const char *field)
{
    return json_string_value(json_object_get(row, field));
}

static kiln_opt_kind kind_of_offer(const json_t *row)
{
    const char *word = text_of(row, "kind");
    return !word || !strcmp(word, "text") ? KILN_OPT_TEXT
           : !strcmp(word, "bool")        ? KILN_OPT_BOOL
           : !strcmp(word, "path")        ? KILN_OPT_PATH
           : !strcmp(word, "enum")        ? KILN_OPT_ENUM
           : !strcmp(word, "list")        ? KILN_OPT_LIST
                                          : KILN_OPT_TEXT; /* numbers and sizes: nothing to offer */
}

/* A program that does not answer is none of ours and is left out. */
static kiln_status add_program(command_list *list, const kiln_program_entry *e, kiln_error *err)
{
    json_t *doc, *row;
    size_t i;
    if (kiln_program_ask(e->name, &doc, err) != KILN_OK) return e->is_stage ? err->status : KILN_OK;
    command *c = &list->command[list->n++];
    const json_t *options = json_object_get(doc, "options");
    *c = (command){.name = e->name,
                   .what = text_of(doc, "summary"),
                   .positionals = text_of(doc, "positionals"),
                   .is_program = true,
                   .doc = doc};
    KILN_TRY(
        KILN_ALLOC(&c->options, json_array_size(options) + 1, "the options of a program", err));
    json_array_foreach(options, i, row)
    {
        const char *letter = text_of(row, "letter");
        c->options[c->n++] = (offer){.name = text_of(row, "name"),
                                     .arg = text_of(row, "arg"),
                                     .range = text_of(row, "range"),
                                     .help = text_of(row, "help"),
                                     .letter = letter ? *letter : '\0',
                                     .kind = kind_of_offer(row),
                                     .stored = json_is_true(json_object_get(row, "stored"))};
    }
    return KILN_OK;
}

/* passes: of an option's name, whether the command has it; NULL: it has all. */
static void add_offers(command *c, const kiln_opt *rows, bool (*passes)(const char *name))
{
    for (; rows->name; rows++)
        if (!(rows->flags & KILN_HIDDEN) && (!passes || passes(rows->name)))
            c->options[c->n++] = (offer){rows->name,
                                         rows->arg,
                                         rows->range,
                                         rows->help,
                                         rows->letter,
                                         rows->kind,
                                         rows->flags & KILN_KEYED};
}

static kiln_status add_own(command_list *list, const kiln_front_row *row, kiln_error *err)
{
    kiln_cli cli;
    const kiln_pipeline_table *table = &list->pipeline;
    const bool is_pipeline = row->run == kiln_front_pipeline,
               is_slurm = row->run == kiln_front_slurm;
    command *c = &list->command[list->n++];
    *c = (command){.name = row->name, .what = row->what, .positionals = row->positionals};
    if (is_pipeline) KILN_TRY(kiln_front_pipeline_cli(&cli, &list->pipeline, err));
    KILN_TRY(KILN_ALLOC(&c->options, table->n + 64, "the options of a command", err));
    if (is_slurm) add_offers(c, kiln_front_slurm_cli.options, NULL);
    if (row->run == kiln_front_claim) add_offers(c, kiln_front_claim_cli.options, NULL);
    if (row->run == kiln_front_claim) add_offers(c, kiln_print_options, NULL);
    if (row->run == kiln_front_convert) {
        KILN_TRY(kiln_convert_cli(&cli, err));
        add_offers(c, cli.options, NULL);
        add_offers(c, cli.common, NULL);
    }
    if (!is_pipeline && !is_slurm) return KILN_OK;
    /* pipeline is the row before */
    add_offers(c, table->rows, is_slurm ? kiln_front_slurm_passes : NULL);
    add_offers(c, kiln_print_options, NULL);
    return KILN_OK;
}

static kiln_status list_commands(command_list *list, kiln_error *err)
{
    static kiln_program_list programs; /* names are borrowed */
    KILN_TRY(kiln_programs_list(&programs, err));
    for (const kiln_front_row *row = kiln_front_rows; row->name; row++)
        KILN_TRY(add_own(list, row, err));
    for (unsigned i = 0; i < programs.n; i++) KILN_TRY(add_program(list, &programs.entry[i], err));
    return KILN_OK;
}

/* ---- what a word can be ---------------------------------------------------------------------- */

static const char *value_of_offer(const offer *o)
{
    if (o->kind == KILN_OPT_ENUM && o->range) return o->range;
    if (o->kind == KILN_OPT_LIST && o->arg && !strcmp(o->arg, "FILE")) return "@path";
    if (o->kind != KILN_OPT_PATH) return "@text";
    return o->arg && !strcmp(o->arg, "DIR")        ? "@dir"
           : o->arg && !strcmp(o->arg, "MANIFEST") ? "@manifest"
                                                   : "@path";
}

/* "SCENE MANIFEST": the next one into name[64], without brackets, and what it is. NULL at the
 * end. */
static const char *next_positional(const char **at, char name[64])
{
    const char *begin = *at + strspn(*at, " [");
    const size_t length = strcspn(begin, " ]");
    *at = begin + length + strspn(begin + length, " ]");
    if (length == 0 || length > 63) return NULL;
    (void)snprintf(name, 64, "%.*s", (int)length, begin);
    if (strchr(name, '|')) return name;
    if (!strcmp(name, "MANIFEST")) return "@manifest";
    if (!strcmp(name, "DIR")) return "@dir";
    return !strcmp(name, "COMMAND") ? "@command" : "@path";
}

/* ---- bash ------------------------------------------------------------------------------------ */

static const char bash_code[] =
    "_kiln_offer() # what a word can be, what is typed of it\n"
    "{\n"
    "    case $1 in\n"
    "    @path) mapfile -t COMPREPLY < <(compgen -f -- \"$2\") ;;\n"
    "    @dir) mapfile -t COMPREPLY < <(compgen -d -- \"$2\") ;;\n"
    "    @manifest) mapfile -t COMPREPLY < <(compgen -f -X '!*.db' -- \"$2\"; compgen -d -- "
    "\"$2\") ;;\n"
    "    @command) mapfile -t COMPREPLY < <(compgen -W \"$_kiln_commands\" -- \"$2\") ;;\n"
    "    @text | '') ;;\n"
    "    *) mapfile -t COMPREPLY < <(compgen -W \"${1//|/ }\" -- \"$2\") ;;\n"
    "    esac\n"
    "    case $1 in @path | @dir | @manifest) compopt -o filenames 2>/dev/null ;; esac\n"
    "}\n"
    "\n"
    "_kiln_value() # option: sets takes to what its value can be; empty: it has none\n"
    "{\n"
    "    local word name=${1//_/-}\n"
    "    takes=\n"
    "    for word in $options; do\n"
    "        [[ $word != \"$name\"=* ]] || takes=${word#*=}\n"
    "    done\n"
    "}\n"
    "\n"
    "_kiln()\n"
    "{\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[0]##*/} first=1 n=0 ended='' "
    "takes='' options='' positionals='' "
    "word i\n"
    "    COMPREPLY=()\n"
    "    if [ \"$command\" = kiln ]; then\n"
    "        if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
    "            case $cur in -*) _kiln_offer '--help|--version' \"$cur\" ;; *) _kiln_offer "
    "@command \"$cur\" ;; esac\n"
    "            return\n"
    "        fi\n"
    "        command=${COMP_WORDS[1]} first=2\n"
    "    fi\n"
    "    _kiln_table \"${command#kiln-}\" || return\n"
    "    [ \"$cur\" != = ] || cur=\n"
    "    for ((i = first; i < COMP_CWORD; i++)); do\n"
    "        word=${COMP_WORDS[i]}\n"
    "        if [ -n \"$takes\" ]; then # the value of the option in front, perhaps behind a =, "
    "which bash makes a word of its "
    "own\n"
    "            [ \"$word\" = = ] || takes=\n"
    "        elif [ \"$word\" = = ]; then\n"
    "            takes=@text\n"
    "        elif [ \"$word\" = -- ]; then\n"
    "            ended=yes\n"
    "        elif [[ -z $ended && $word == -?* ]]; then\n"
    "            _kiln_value \"$word\"\n"
    "        else\n"
    "            n=$((n + 1))\n"
    "        fi\n"
    "    done\n"
    "    if [ -n \"$takes\" ]; then\n"
    "        _kiln_offer \"$takes\" \"$cur\"\n"
    "    elif [[ -z $ended && $cur == -*=* ]]; then # where = is no word break\n"
    "        _kiln_value \"${cur%%=*}\"\n"
    "        _kiln_offer \"$takes\" \"${cur#*=}\"\n"
    "        COMPREPLY=(\"${COMPREPLY[@]/#/${cur%%=*}=}\")\n"
    "    elif [[ -z $ended && $cur == -* ]]; then\n"
    "        local names=\n"
    "        for word in $options; do [[ $word != --* ]] || names+=\" ${word%%=*}\"; done\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$names\" -- \"${cur//_/-}\")\n"
    "    else\n"
    "        # shellcheck disable=SC2086 # words\n"
    "        set -- $positionals\n"
    "        shift \"$n\" 2>/dev/null || set --\n"
    "        _kiln_offer \"${1:-}\" \"$cur\"\n"
    "    fi\n"
    "}\n";

static void bash_table(const command *c, FILE *out)
{
    char name[64];
    const char *at = c->positionals ? c->positionals : "", *kind;
    (void)fprintf(out, "    %s)\n        positionals='", c->name);
    for (const char *space = ""; (kind = next_positional(&at, name)); space = " ")
        (void)fprintf(out, "%s%s", space, kind);
    (void)fputs("'\n        options='", out);
    for (size_t i = 0; i < c->n; i++) {
        const offer *o = &c->options[i];
        const char *value = o->kind == KILN_OPT_BOOL ? "" : value_of_offer(o),
                   *equals = *value ? "=" : "";
        (void)fprintf(out, "%s--%s%s%s", i ? " " : "", o->name, equals, value);
        if (o->letter) (void)fprintf(out, " -%c%s%s", o->letter, equals, value);
        if (o->kind == KILN_OPT_BOOL && o->stored) (void)fprintf(out, " --no-%s", o->name);
    }
    (void)fputs("' ;;\n", out);
}

static void print_bash(const command_list *list, FILE *out)
{
    (void)fputs("# bash completion for kiln and its programs; made by `kiln completion bash` from "
                "their option tables.\n"
                "_kiln_commands='",
                out);
    for (size_t i = 0; i < list->n; i++)
        (void)fprintf(out, "%s%s", i ? " " : "", list->command[i].name);
    (void)fputs("'\n\n_kiln_table() # command: sets positionals and options\n{\n    case $1 in\n",
                out);
    for (size_t i = 0; i < list->n; i++) bash_table(&list->command[i], out);
    (void)fprintf(out, "    *) return 1 ;;\n    esac\n}\n\n%s\ncomplete -F _kiln kiln", bash_code);
    for (size_t i = 0; i < list->n; i++)
        if (list->command[i].is_program) (void)fprintf(out, " kiln-%s", list->command[i].name);
    (void)fputc('\n', out);
}

/* ---- zsh ------------------------------------------------------------------------------------- */

/* Inside single quotes, with what _arguments and _describe take for syntax escaped. */
static void zsh_text(const char *text, FILE *out)
{
    for (; text && *text; text++) {
        if (*text == '\'')
            (void)fputs("'\\''", out);
        else
            (void)fprintf(out, strchr("[]:\\", *text) ? "\\%c" : "%c", *text);
    }
}

static void zsh_value(const char *what, const char *kind, FILE *out)
{
    (void)fputc(':', out);
    zsh_text(what, out);
    if (!strcmp(kind, "@text"))
        (void)fputs(": ", out);
    else if (!strcmp(kind, "@path"))
        (void)fputs(":_files", out);
    else if (!strcmp(kind, "@dir"))
        (void)fputs(":_files -/", out);
    else if (!strcmp(kind, "@manifest"))
        (void)fputs(":_files -g \"*.db\"", out);
    else if (!strcmp(kind, "@command"))
        (void)fputs(":($_kiln_commands)", out);
    else {
        (void)fputs(":(", out);
        for (; *kind; kind++) (void)fputc(*kind == '|' ? ' ' : *kind, out);
        (void)fputc(')', out);
    }
}

static void zsh_option(const offer *o, FILE *out)
{
    const bool has_value = o->kind != KILN_OPT_BOOL;
    if (o->letter)
        (void)fprintf(out, " \\\n        '(-%c --%s)'{-%c%s,--%s%s}'[", o->letter, o->name,
                      o->letter, has_value ? "+" : "", o->name, has_value ? "=" : "");
    else
        (void)fprintf(out, " \\\n        '%s--%s%s[", o->kind == KILN_OPT_LIST ? "*" : "", o->name,
                      has_value ? "=" : "");
    zsh_text(o->help, out);
    (void)fputc(']', out);
    if (has_value) zsh_value(o->arg ? o->arg : "VALUE", value_of_offer(o), out);
    (void)fputc('\'', out);
    if (o->kind != KILN_OPT_BOOL || !o->stored) return;
    (void)fprintf(out, " \\\n        '--no-%s[not\\: ", o->name);
    zsh_text(o->help, out);
    (void)fputs("]'", out);
}

static void zsh_function(const command *c, FILE *out)
{
    char name[64];
    const char *at = c->positionals ? c->positionals : "", *kind;
    unsigned n = 0;
    (void)fprintf(out, "\n_kiln_%s() {\n    _arguments -s", c->name);
    for (size_t i = 0; i < c->n; i++) zsh_option(&c->options[i], out);
    while ((kind = next_positional(&at, name))) {
        (void)fprintf(out, " \\\n        %s%u", !strcmp(kind, "@command") ? "\"" : "'", ++n);
        zsh_value(strchr(name, '|') ? "what" : name, kind, out);
        (void)fputs(!strcmp(kind, "@command") ? "\"" : "'", out);
    }
    (void)fputs("\n}\n", out);
}

static const char zsh_code[] =
    "\n_kiln() {\n"
    "    local command=${service#kiln-}\n"
    "    if [[ $service == kiln ]]; then\n"
    "        if (( CURRENT == 2 )); then\n"
    "            _describe -t commands 'command of kiln' _kiln_described\n"
    "            return\n"
    "        fi\n"
    "        command=$words[2]\n"
    "        shift words\n"
    "        (( CURRENT-- ))\n"
    "    fi\n"
    "    (( $+functions[_kiln_$command] )) && _kiln_$command\n"
    "}\n\n"
    "_kiln \"$@\"\n";

static void print_zsh(const command_list *list, FILE *out)
{
    (void)fputs("#compdef kiln", out);
    for (size_t i = 0; i < list->n; i++)
        if (list->command[i].is_program) (void)fprintf(out, " kiln-%s", list->command[i].name);
    (void)fputs("\n# zsh completion for kiln and its programs; made by `kiln completion zsh` from "
                "their option tables.\n"
                "typeset -g _kiln_commands='",
                out);
    for (size_t i = 0; i < list->n; i++)
        (void)fprintf(out, "%s%s", i ? " " : "", list->command[i].name);
    (void)fputs("'\ntypeset -ga _kiln_described=(\n", out);
    for (size_t i = 0; i < list->n; i++) {
        (void)fprintf(out, "    '%s:", list->command[i].name);
        zsh_text(list->command[i].what, out);
        (void)fputs("'\n", out);
    }
    (void)fputs(")\n", out);
    for (size_t i = 0; i < list->n; i++) zsh_function(&list->command[i], out);
    (void)fputs(zsh_code, out);
}

/* ---- the command ----------------------------------------------------------------------------- */

static void release_commands(command_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->command[i].options);
        json_decref(list->command[i].doc);
    }
    kiln_pipeline_table_release(&list->pipeline);
}

static const char usage[] = "Usage: kiln completion bash|zsh\n\n"
                            "Prints a completion script. For this shell alone:\n"
                            "  source <(kiln completion bash)\n"
                            "For good, in zsh, in a folder of fpath:\n"
                            "  kiln completion zsh > FOLDER/_kiln";

kiln_status kiln_front_completion(int argc, char **argv, int *code, kiln_error *err)
{
    static command_list list; /* too big for the stack */
    const char *shell = argc == 2 ? argv[1] : "";
    const bool bash = !strcmp(shell, "bash");
    (void)code;
    if (!strcmp(shell, "--help") || !strcmp(shell, "-h")) {
        (void)puts(usage);
        return KILN_OK;
    }
    if (!bash && strcmp(shell, "zsh") != 0)
        return kiln_fail(err, KILN_E_USAGE, "kiln completion takes bash or zsh");
    const kiln_status st = list_commands(&list, err);
    if (st == KILN_OK && bash) print_bash(&list, stdout);
    if (st == KILN_OK && !bash) print_zsh(&list, stdout);
    release_commands(&list);
    return st;
}
