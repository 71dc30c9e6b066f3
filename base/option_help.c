/* option_help -- everything that is printed about a program's options, from the same table that
 * parses them. */
#include "base/option_internal.h"

#include <ctype.h>
#include <string.h>

enum { WIDTH = 80, HELP_COLUMN = 28 };

/* Prints words from `column` on, breaking before WIDTH and starting new lines at `indent`; ends the
 * line. */
static void wrap(FILE *out, const char *text, int column, int indent)
{
    bool first = true;
    while (*text) {
        int n = (int)strcspn(text, " ");
        if (!first && column + 1 + n >= WIDTH) {
            (void)fprintf(out, "\n%*s", indent, "");
            column = indent;
            first = true;
        }
        (void)fprintf(out, "%s%.*s", first ? "" : " ", n, text);
        column += n + !first;
        first = false;
        text += n;
        text += strspn(text, " ");
    }
    (void)fputc('\n', out);
}

static const char *arg_of(const kiln_opt *o)
{
    if (o->kind == KILN_OPT_BOOL) return NULL;
    return o->arg ? o->arg : o->kind == KILN_OPT_ENUM ? "WORD" : "VALUE";
}

static bool default_yes(const kiln_opt *o)
{
    return o->kind == KILN_OPT_BOOL && o->def && !strcmp(o->def, "yes");
}

/* "neighbours averaged per point (1 to 32; default 3)" */
static void describe_option(const kiln_opt *o, char *buf, size_t size)
{
    char bounds[256], notes[400];
    if (o->kind == KILN_OPT_ENUM)
        (void)kiln_opt_takes(o, bounds, sizeof bounds);
    else
        (void)kiln_opt_bounds(o, bounds, sizeof bounds);
    bool with_default = o->def && (o->kind != KILN_OPT_BOOL || default_yes(o));
    (void)snprintf(notes, sizeof notes, "%s%s%s%s", bounds, bounds[0] && with_default ? "; " : "",
                   with_default ? "default " : "", with_default ? o->def : "");
    if (o->kind == KILN_OPT_LIST)
        (void)snprintf(notes, sizeof notes, "may be repeated; '' for none");
    (void)snprintf(buf, size, notes[0] ? "%s (%s)" : "%s%s", o->help, notes);
}

/* "* -k, --neighbors K" */
static void left_of(const kiln_opt *o, char left[128])
{
    char letter[8] = "    ";
    const char *arg = arg_of(o);
    if (o->letter) (void)snprintf(letter, sizeof letter, "-%c, ", o->letter);
    (void)snprintf(left, 128, "%s %s--%s%s%s%s", o->flags & KILN_KEYED ? "*" : " ", letter,
                   default_yes(o) ? "[no-]" : "", o->name, arg ? " " : "", arg ? arg : "");
}

static void help_row(FILE *out, const kiln_opt *o)
{
    char text[1024], left[128];
    left_of(o, left);
    describe_option(o, text, sizeof text);
    if ((int)strlen(left) > HELP_COLUMN - 2)
        (void)fprintf(out, "%s\n%*s", left, HELP_COLUMN, "");
    else
        (void)fprintf(out, "%-*s", HELP_COLUMN, left);
    wrap(out, text, HELP_COLUMN, HELP_COLUMN);
}

void kiln_cli_wrap(const char *text, unsigned indent, FILE *out)
{
    wrap(out, text, 0, (int)indent);
}

void kiln_cli_wrap_from(const char *text, unsigned column, unsigned indent, FILE *out)
{
    wrap(out, text, (int)column, (int)indent);
}

/* The first clause of a text, and where it ends. */
static size_t first_clause(const char *text)
{
    static const char *const ends[] = {"; ", ": ", " (", ", such as "};
    size_t n = strlen(text);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const char *at = strstr(text, ends[i]);
        if (at && (size_t)(at - text) < n) n = (size_t)(at - text);
    }
    return n;
}

void kiln_cli_help_line(const kiln_opt *o, FILE *out)
{
    const char *text = o->brief ? o->brief : o->help;
    char left[128];
    const int n = (int)(o->brief ? strlen(text) : first_clause(text));
    left_of(o, left);
    (void)fprintf(out, (int)strlen(left) > HELP_COLUMN - 2 ? "%s  %.*s\n" : "%-28s%.*s\n", left, n,
                  text);
}

void kiln_cli_help_rows(const char *title, const kiln_opt *table, bool all, FILE *out)
{
    const char *due = title;
    for (const kiln_opt *o = table; o && o->name; o++) {
        if (o->group) due = o->group;
        if (o->flags & KILN_HIDDEN) continue;
        if (due) (void)fprintf(out, "\n%s:\n", due);
        due = NULL;
        if (all)
            help_row(out, o);
        else
            kiln_cli_help_line(o, out);
    }
}

static bool has_positionals(const kiln_cli *cli)
{
    return cli->n_positionals + cli->n_optional > 0;
}

static bool any_flag(const kiln_cli *cli, unsigned flag)
{
    for (const kiln_opt *o = NULL; (o = kiln_opt_next(cli, o));)
        if (o->flags & flag && !(o->flags & KILN_HIDDEN)) return true;
    return false;
}

/* "-o, --dry-run" */
static void once_options(const kiln_cli *cli, char *out, size_t size)
{
    size_t n = 0;
    for (const kiln_opt *o = NULL; (o = kiln_opt_next(cli, o)) && n < size;) {
        if (!(o->flags & KILN_ONCE) || o->flags & KILN_HIDDEN) continue;
        n += (size_t)snprintf(out + n, size - n, "%s--%s", n ? ", " : "", o->name);
    }
}

/* Which values later runs know: those of options with a star, but of no run that has an option
 * which leaves the state as it is. */
static void help_stored(const kiln_cli *cli, FILE *out)
{
    char once[256] = "", text[400];
    if (!any_flag(cli, KILN_KEYED)) return;
    once_options(cli, once, sizeof once);
    (void)snprintf(text, sizeof text,
                   "* Stored in the manifest when the run ends with 0 or 7, for later runs, until "
                   "--reset%s%s%s. All others "
                   "hold for this run alone.",
                   *once ? "; not by a run with " : "", once, "");
    (void)fputc('\n', out);
    wrap(out, text, 0, 2);
}

static void help_more(const kiln_cli *cli, bool all, FILE *out)
{
    char line[256];
    if (all || !cli->common)
        (void)snprintf(line, sizeof line, "The manual, with the exit codes: %s --man | man -l -",
                       cli->program);
    else
        (void)snprintf(
            line, sizeof line,
            "More: --help-all, also of the options that all programs have (%s); the manual: --man",
            any_flag(cli, KILN_DEVICE) ? "--ram, --threads, --devices, --json, -q"
                                       : "--threads, --json, -q");
    (void)fputc('\n', out);
    wrap(out, line, 0, 0);
}

void kiln_cli_help(const kiln_cli *cli, bool all, FILE *out)
{
    (void)fprintf(out, "Usage: %s%s%s [options]\n\n", cli->program, has_positionals(cli) ? " " : "",
                  has_positionals(cli) ? cli->positionals : "");
    wrap(out, cli->summary, 0, 0);
    kiln_cli_help_rows("Options", cli->options, all, out);
    if (all) kiln_cli_help_rows("Common options", cli->common, all, out);
    help_stored(cli, out);
    help_more(cli, all, out);
}

/* ---- man(7) ---------------------------------------------------------------------------------- */

/* A dash is a hyphen to roff unless escaped, a backslash starts a command, and so does a dot or
 * quote in column one. */
static void roff(FILE *out, const char *text)
{
    if (*text == '.' || *text == '\'') (void)fputs("\\&", out);
    for (; *text; text++) {
        if (*text == '\\')
            (void)fputs("\\e", out);
        else if (*text == '-')
            (void)fputs("\\-", out);
        else
            (void)fputc(*text, out);
    }
}

static void roff_line(FILE *out, const char *before, const char *text, const char *after)
{
    (void)fputs(before, out);
    roff(out, text);
    (void)fputs(after, out);
}

static void man_row(FILE *out, const kiln_opt *o)
{
    char text[1024];
    const char *arg = arg_of(o);
    (void)fputs(".TP\n", out);
    if (o->letter) (void)fprintf(out, "\\fB\\-%c\\fR, ", o->letter);
    roff_line(out, default_yes(o) ? "\\fB\\-\\-[no\\-]" : "\\fB\\-\\-", o->name, "\\fR");
    if (arg) roff_line(out, " \\fI", arg, "\\fR");
    describe_option(o, text, sizeof text);
    roff_line(out, "\n", text, ".\n");
    if (o->flags & KILN_KEYED) (void)fputs("Stored in the manifest.\n", out);
}

static void man_exit_status(FILE *out)
{
    static const int codes[] = {
#define X(name, code, text) code,
        KILN_STATUS_MAP(X)
#undef X
    };
    (void)fputs(".SH EXIT STATUS\n", out);
    /* rows of one code stand together */
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        char text[128];
        if (i > 0 && codes[i - 1] == codes[i]) continue;
        kiln_exit_text(codes[i], text, sizeof text);
        (void)fprintf(out, ".TP\n\\fB%d\\fR\n%s.\n", codes[i], text);
    }
}

static void man_environment(FILE *out)
{
    static const char *const rows[][2] = {
        {"CUDA_VISIBLE_DEVICES", "The GPUs that SplatKiln may use, by number or UUID, as for any "
                                 "CUDA program; numbers of --devices count these"},
        {"CUDA_DEVICE_ORDER", "With PCI_BUS_ID, numbers in CUDA_VISIBLE_DEVICES count by PCI "
                              "address, as in nvidia-smi; without it, CUDA may "
                              "count the fastest GPU first"},
        {"KILN_FAULT", "Makes units fail on purpose, for tests: unit=NUMBER-OR-NAME:ACTION, "
                       "several separated by ';'. ACTION: exit, "
                       "kill, hang, illegal, abort, enospc, nomem, device, lost; then perhaps "
                       ",times=N and ,device=N. NUMBER: the position in "
                       "each list of units that the stage works on, "
                       "from 0"},
        {"KILN_FILES_MS", "Milliseconds that kiln-render --gather waits in total for pictures of "
                          "other hosts to appear"},
        {"KILN_GPU_MS", "Milliseconds that --devices auto assumes for opening and closing a GPU; "
                        "shorter work is done on the CPU. "
                        "0: the GPU does all work"},
        {"KILN_ISA", "baseline or avx2: the code for the CPU; both give the same bits"},
        {"KILN_NETWORK_FS", "A folder that is treated as one on a network file system, for tests"},
        {"KILN_NVML", "The library that lists the GPUs, instead of libnvidia-ml.so.1"},
        {"KILN_ROUND_S",
         "Seconds of work; --plan leaves longer forecasts to the tasks. 0: all forecasts"},
    };
    (void)fputs(".SH ENVIRONMENT\n", out);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)fprintf(out, ".TP\n\\fB%s\\fR\n", rows[i][0]);
        roff_line(out, "", rows[i][1], ".\n");
    }
}

void kiln_cli_man(const kiln_cli *cli, FILE *out)
{
    char page[64]; /* the page of "kiln pipeline" is kiln-pipeline, as git's are named */
    size_t n = 0;
    for (const char *c = cli->program; *c && n + 1 < sizeof page; c++)
        page[n++] = *c == ' ' ? '-' : *c;
    page[n] = '\0';
    (void)fputs(".TH ", out);
    for (const char *c = page; *c; c++)
        (void)fprintf(out, *c == '-' ? "\\-" : "%c", toupper((unsigned char)*c));
    (void)fprintf(out, " 1 \"\" \"SplatKiln %s\" \"SplatKiln\"\n", kiln_version);
    roff_line(out, ".SH NAME\n", page, " \\- ");
    roff_line(out, "", cli->summary, "\n");
    roff_line(out, ".SH SYNOPSIS\n\\fB", cli->program, "\\fR");
    if (has_positionals(cli)) roff_line(out, " \\fI", cli->positionals, "\\fR");
    roff_line(out, " [options]\n.SH DESCRIPTION\n", cli->program, ": ");
    roff_line(out, "", cli->summary, ".\n");
    for (const char *const *note = cli->tables_note; note && *note; note++)
        roff_line(out, ".PP\n", *note, "\n");
    if (any_flag(cli, KILN_KEYED))
        (void)fputs(".PP\nOptions that change the result are stored in the manifest and used by "
                    "later runs too.\n",
                    out);
    (void)fputs(".SH OPTIONS\n", out);
    for (const kiln_opt *o = NULL; (o = kiln_opt_next(cli, o));)
        if (!(o->flags & KILN_HIDDEN)) man_row(out, o);
    man_environment(out);
    man_exit_status(out);
}

/* ---- for programs ---------------------------------------------------------------------------- */

static void json_text(FILE *out, const char *text)
{
    if (!text) {
        (void)fputs("null", out);
        return;
    }
    (void)fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            (void)fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < 0x20)
            (void)fprintf(out, "\\u%04x", (unsigned)(unsigned char)*text);
        else
            (void)fputc(*text, out);
    }
    (void)fputc('"', out);
}

static void json_field(FILE *out, const char *name, const char *value)
{
    (void)fprintf(out, "\"%s\": ", name);
    json_text(out, value);
    (void)fputs(", ", out);
}

static void json_aliases(const kiln_cli *cli, const kiln_opt *of, FILE *out)
{
    const char *separator = "";
    (void)fputs("\"aliases\": [", out);
    for (const kiln_opt *o = NULL; (o = kiln_opt_next(cli, o));) {
        if (!(o->flags & KILN_HIDDEN) || o->where != of->where || of->flags & KILN_ALONE) continue;
        (void)fputs(separator, out);
        json_text(out, o->name);
        separator = ", ";
    }
    (void)fputs("], ", out);
}

static const char *json_flag(const kiln_opt *o, unsigned flag)
{
    return o->flags & flag ? "true" : "false";
}

void kiln_cli_help_json(const kiln_cli *cli, FILE *out)
{
    static const char *const kinds[] = {
        [KILN_OPT_BOOL] = "bool", [KILN_OPT_U32] = "u32",   [KILN_OPT_U64] = "u64",
        [KILN_OPT_F64] = "f64",   [KILN_OPT_SIZE] = "size", [KILN_OPT_TEXT] = "text",
        [KILN_OPT_PATH] = "path", [KILN_OPT_ENUM] = "enum", [KILN_OPT_F64X3] = "f64x3",
        [KILN_OPT_LIST] = "list"};
    const char *separator = "\n";
    (void)fputs("{\"version\": 1, ", out);
    json_field(out, "program", cli->program);
    json_field(out, "summary", cli->summary);
    json_field(out, "positionals", has_positionals(cli) ? cli->positionals : "");
    (void)fputs("\"options\": [", out);
    for (const kiln_opt *o = NULL; (o = kiln_opt_next(cli, o));) {
        char letter[2] = {o->letter, '\0'};
        if (o->flags & KILN_HIDDEN) continue;
        (void)fprintf(out, "%s  {", separator);
        json_field(out, "name", o->name);
        json_field(out, "letter", o->letter ? letter : NULL);
        json_field(out, "kind", kinds[o->kind]);
        json_field(out, "arg", arg_of(o));
        json_field(out, "default", o->def);
        json_field(out, "range", o->range);
        json_field(out, "help", o->help);
        (void)fprintf(out, "\"checked\": %s, ", kiln_opt_check_of(cli, o) ? "true" : "false");
        json_aliases(cli, o, out);
        (void)fprintf(out,
                      "\"stored\": %s, \"later\": %s, \"once\": %s, \"alone\": %s, \"step\": %s, "
                      "\"named\": %s, \"title\": %s}",
                      json_flag(o, KILN_KEYED), json_flag(o, KILN_LATER), json_flag(o, KILN_ONCE),
                      json_flag(o, KILN_ALONE), json_flag(o, KILN_STEP), json_flag(o, KILN_NAMED),
                      json_flag(o, KILN_TITLE));
        separator = ",\n";
    }
    (void)fputs("\n]}\n", out);
}
