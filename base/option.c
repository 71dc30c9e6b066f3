/* option -- the command line. A process has one, so what was given, and the copies of texts that
 * options point to, are kept here once; main fills them before any thread starts. */
#include "base/option_internal.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char kiln_version[] = "0.1.0";
kiln_common kiln_common_values;

static bool asked; /* storage of the rows that print something and end the program */

/* clang-format off */
#define PRINT_ROWS \
    KILN_OPTION_BOOL("version", &asked, "print the version and end", .flags = KILN_ALONE), \
    KILN_OPTION_BOOL("help", &asked, "print a line for each option and end", .letter = 'h', .flags = KILN_ALONE), \
    KILN_OPTION_BOOL("help-all", &asked, "print all options and end", .flags = KILN_ALONE), \
    KILN_OPTION_BOOL("help-json", &asked, "print the options as JSON and end", .flags = KILN_HIDDEN | KILN_ALONE), \
    KILN_OPTION_BOOL("man", &asked, "print the man page and end", .flags = KILN_HIDDEN | KILN_ALONE)
/* clang-format on */

const kiln_opt kiln_print_options[] = {PRINT_ROWS, KILN_OPTION_END};

const kiln_opt kiln_common_options[] = {
    KILN_OPTION_TEXT("devices", &kiln_common_values.devices, "LIST",
                     "which GPUs compute: auto (one, if the work is worth opening it), cpu (none), "
                     "cuda (the first), all, or a "
                     "list of numbers or UUIDs such as 0,2; stages that only pack, such as import "
                     "and chunk, always use the CPU",
                     .def = "auto", .flags = KILN_DEVICE),
    KILN_OPTION_TEXT("device", &kiln_common_values.devices, "LIST", "the same as --devices",
                     .def = "auto", .flags = KILN_HIDDEN | KILN_DEVICE),
    KILN_OPTION_TEXT("gpu", &kiln_common_values.devices, "LIST", "the same as --devices",
                     .def = "auto", .flags = KILN_HIDDEN | KILN_DEVICE),
    KILN_OPTION_NUMBER("threads", &kiln_common_values.threads, "N",
                       "CPU threads to use; 0: all cores", .def = "0", .range = "0..1024"),
    KILN_OPTION_NUMBER("jobs", &kiln_common_values.threads, "N", "the same as --threads",
                       .def = "0", .range = "0..1024", .flags = KILN_HIDDEN),
    KILN_OPTION_NUMBER("ram", &kiln_common_values.ram, "SIZE",
                       "most host memory that all processes of the run may take together: a size, "
                       "or a share of what is free (512M, 1.5G, 50%)",
                       .def = "80%", .flags = KILN_DEVICE),
    KILN_OPTION_NUMBER("vram", &kiln_common_values.vram, "SIZE",
                       "most memory to take of a GPU: a size, or a share of what is free; work "
                       "that needs more is done in parts, "
                       "or on the CPU",
                       .def = "80%", .flags = KILN_DEVICE),
    KILN_OPTION_BOOL("json", &kiln_common_values.json, "write the results to stdout as JSON"),
    KILN_OPTION_BOOL(
        "quiet", &kiln_common_values.quiet,
        "print errors only: no progress, no notes, no results; --json prints them anyway",
        .letter = 'q'),
    KILN_OPTION_BOOL("verbose", &kiln_common_values.verbose,
                     "say more: notes on stderr, a line for each camera and all tables of a stage",
                     .letter = 'v'),
    KILN_OPTION_BOOL("sync", &kiln_common_values.sync,
                     "wait for each kernel on a GPU, so that a failure names the kernel; slower",
                     .flags = KILN_DEVICE),
    PRINT_ROWS,
    KILN_OPTION_END,
};

static void print_help_of(const kiln_cli *cli, bool all, FILE *out)
{
    (cli->help ? cli->help : kiln_cli_help)(cli, all, out);
}

static void print_help(const kiln_cli *cli, FILE *out) { print_help_of(cli, false, out); }

static void print_help_all(const kiln_cli *cli, FILE *out) { print_help_of(cli, true, out); }

static void print_version(const kiln_cli *cli, FILE *out)
{
    (void)fprintf(out, "%s %s\n", cli->program, kiln_version);
}

static const struct {
    const char *option;
    void (*print)(const kiln_cli *cli, FILE *out);
} printers[] = {
    {"help", print_help},       {"help-all", print_help_all},
    {"version", print_version}, {"help-json", kiln_cli_help_json},
    {"man", kiln_cli_man},
};

/* ---- what the process remembers of its command line ------------------------------------------ */

/* distinct options; the longest table, of kiln pipeline, has half of it */
enum { GIVEN_MAX = 512 };
/* by storage, so that an alias counts as the option it stands for */
static const void *given[GIVEN_MAX];
static size_t n_given;

struct kept {
    struct kept *next;
    char text[];
};
static struct kept *kept; /* never freed: argv lives as long */

kiln_status kiln_opt_keep(const char *text, bool expand, const char **out, kiln_error *err)
{
    const char *home = getenv("HOME");
    bool tilde = expand && home && text[0] == '~' && (text[1] == '/' || text[1] == '\0');
    size_t head = tilde ? strlen(home) : 0, tail = strlen(text + tilde);
    struct kept *k;
    KILN_TRY(kiln_alloc((void **)&k, sizeof *k + head + tail + 1, 1, "an option", err));
    if (tilde) memcpy(k->text, home, head);
    memcpy(k->text + head, text + tilde, tail + 1);
    k->next = kept;
    kept = k;
    *out = k->text;
    return KILN_OK;
}

static bool is_given(const kiln_opt *o)
{
    for (size_t i = 0; i < n_given; i++)
        if (given[i] == o->where) return true;
    return false;
}

static kiln_status mark_given(const kiln_opt *o, kiln_error *err)
{
    if (is_given(o)) return KILN_OK;
    if (n_given == GIVEN_MAX) return kiln_fail(err, KILN_E_BUG, "more than %d options", GIVEN_MAX);
    given[n_given++] = o->where;
    return KILN_OK;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static const kiln_opt *first_of(const kiln_opt *table)
{
    return table && table->name ? table : NULL;
}

const kiln_opt *kiln_opt_next(const kiln_cli *cli, const kiln_opt *o)
{
    const kiln_opt *end = cli->common;
    if (!o && first_of(cli->options)) return cli->options;
    if (!o) return first_of(cli->common);
    if (o[1].name) return o + 1;
    while (end && end->name) end++;
    return o + 1 == end ? NULL : first_of(cli->common);
}

/* Names in tables have hyphens; an underscore that was typed stands for one. */
static char hyphen(char c) { return c == '_' ? '-' : c; }

static bool starts_with(const char *typed, size_t length, const char *start)
{
    for (; *start; start++, typed++, length--)
        if (length == 0 || hyphen(*typed) != *start) return false;
    return true;
}

const kiln_opt *kiln_opt_find(const kiln_cli *cli, const char *name, size_t length)
{
    for (const kiln_opt *o = NULL; (o = kiln_opt_next(cli, o));)
        if (strlen(o->name) == length && starts_with(name, length, o->name)) return o;
    return NULL;
}

static const kiln_opt *find_letter(const kiln_cli *cli, char letter)
{
    for (const kiln_opt *o = NULL; (o = kiln_opt_next(cli, o));)
        if (o->letter == letter) return o;
    return NULL;
}

bool kiln_opt_given(const kiln_cli *cli, const char *name)
{
    const kiln_opt *o = kiln_opt_find(cli, name, strlen(name));
    return o && is_given(o);
}

bool kiln_opt_flag_given(const kiln_cli *cli, unsigned flag)
{
    for (const kiln_opt *o = NULL; (o = kiln_opt_next(cli, o));)
        if (o->flags & flag && is_given(o)) return true;
    return false;
}

const kiln_opt_check *kiln_opt_check_of(const kiln_cli *cli, const kiln_opt *o)
{
    const kiln_opt_check *const tables[] = {cli->checks, cli->common_checks};
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const kiln_opt_check *c = tables[t]; c && c->name; c++) {
            const kiln_opt *row = kiln_opt_find(cli, c->name, strlen(c->name));
            if (row && row->where == o->where) return c;
        }
    return NULL;
}

/* A sentence that does not name the option is put behind its name. */
static kiln_status check_text(const kiln_opt_check *c, const char *text, kiln_error *err)
{
    char option[80];
    kiln_error why = {0};
    const kiln_status st = c->check(text, &why);
    if (st == KILN_OK) return KILN_OK;
    (void)snprintf(option, sizeof option, "--%s", c->name);
    if (!strstr(why.msg, option)) kiln_note(&why, "%s", option);
    if (err) *err = why;
    return st;
}

/* Looks at the value that was set. */
static kiln_status check_value(const kiln_cli *cli, const kiln_opt *o, kiln_error *err)
{
    const kiln_opt_check *c = kiln_opt_check_of(cli, o);
    const char *at = c ? *(const char *const *)o->where : NULL;
    char *item;
    kiln_status st = KILN_OK;
    if (!at) return KILN_OK;
    if (o->kind != KILN_OPT_LIST) return check_text(c, at, err);
    KILN_TRY(KILN_ALLOC(&item, KILN_OPT_TEXT_MAX, "a list", err));
    while (st == KILN_OK && kiln_opt_list_next(&at, item, KILN_OPT_TEXT_MAX))
        st = check_text(c, item, err);
    free(item);
    return st;
}

static kiln_status set_default(const kiln_opt *o, kiln_error *err)
{
    kiln_opt_value_none(o);
    if (!o->def) return KILN_OK;
    kiln_status st = kiln_opt_value_set(o, o->def, err);
    if (st == KILN_E_USAGE)
        return kiln_fail(err, KILN_E_BUG, "the default of --%s, '%s', is out of its range", o->name,
                         o->def);
    return st;
}

kiln_status kiln_opt_set(const kiln_cli *cli, const char *name, const char *text,
                         const char *origin, kiln_error *err)
{
    const kiln_opt *o = kiln_opt_find(cli, name, strlen(name));
    if (!o)
        return kiln_fail(err, KILN_E_USAGE, "%s: %s has no option --%s", origin, cli->program,
                         name);
    if (!text[0]) return set_default(o, err);
    kiln_status st = kiln_opt_value_set(o, text, err);
    if (st == KILN_OK) st = check_value(cli, o, err);
    if (st != KILN_OK) kiln_note(err, "%s", origin);
    return st;
}

kiln_status kiln_opt_give(const kiln_cli *cli, const char *name, const char *text, kiln_error *err)
{
    KILN_TRY(kiln_opt_set(cli, name, text, cli->program, err));
    return mark_given(kiln_opt_find(cli, name, strlen(name)), err);
}

/* ---- an unknown option ----------------------------------------------------------------------- */

enum { NAME_MAX_LETTERS = 63 }; /* a longer known name is near to nothing */

/* Counts the edits between two names: insert, drop or change a letter, or swap two neighbours. The
 * rows of the table that are needed are this one and the two before it. */
static size_t edits(const char *a, size_t n, const char *b, size_t m)
{
    size_t rows[3][NAME_MAX_LETTERS + 1];
    if (m > NAME_MAX_LETTERS) return SIZE_MAX;
    for (size_t j = 0; j <= m; j++) rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        const size_t *before = rows[(i + 2) % 3], *swapped = rows[(i + 1) % 3];
        size_t *row = rows[i % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            const char typed = hyphen(a[i - 1]);
            size_t best = before[j - 1] + (typed != b[j - 1]);
            if (before[j] + 1 < best) best = before[j] + 1;
            if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
            const bool is_swap =
                i > 1 && j > 1 && typed == b[j - 2] && hyphen(a[i - 2]) == b[j - 1];
            if (is_swap && swapped[j - 2] + 1 < best) best = swapped[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[n % 3][m];
}

/* A slip leaves two thirds of the letters alone: one in three, two in six. */
static size_t edits_of_slip(const char *typed, size_t length, const char *known, size_t n)
{
    enum { LETTERS_OF_EDIT = 3 };
    const size_t found = edits(typed, length, known, n), longer = length > n ? length : n;
    return found <= longer / LETTERS_OF_EDIT ? found : KILN_NAME_FAR;
}

size_t kiln_name_distance(const char *typed, size_t length, const char *known)
{
    const size_t n = strlen(known);
    if (length < 3 || n <= length) return edits_of_slip(typed, length, known, n);
    const char *tail = known + (n - length);
    /* "format" of "export-format" */
    if (tail[-1] == '-' && edits(typed, length, tail, length) == 0) return 0;
    if (edits(typed, length, known, length) == 0) return 1; /* an abbreviation */
    return edits_of_slip(typed, length, known, n);
}

/* "--min-opacity", or MIN_OPACITY where the option came as a variable of make. */
static int spell(const kiln_cli *cli, const char *name, size_t length, char *out, size_t size)
{
    if (!cli->from_make) return snprintf(out, size, "'--%.*s'", (int)length, name);
    size_t i = 0;
    for (; i < length && i + 1 < size; i++)
        out[i] = name[i] == '-' ? '_' : (char)toupper((unsigned char)name[i]);
    out[i] = '\0';
    return (int)i;
}

static size_t least_distance(const kiln_cli *cli, const char *name, size_t length)
{
    size_t best = KILN_NAME_FAR;
    for (const kiln_opt *o = NULL; (o = kiln_opt_next(cli, o));) {
        const size_t n =
            o->flags & KILN_HIDDEN ? KILN_NAME_FAR : kiln_name_distance(name, length, o->name);
        if (n < best) best = n;
    }
    return best;
}

/* Names the nearest options, up to four that are equally near. */
static kiln_status fail_unknown(const kiln_cli *cli, const char *name, size_t length,
                                kiln_error *err)
{
    char typed[128], near[512];
    unsigned found = 0;
    int at = 0;
    const size_t best = least_distance(cli, name, length);
    (void)spell(cli, name, length, typed, sizeof typed);
    for (const kiln_opt *o = NULL;
         best < KILN_NAME_FAR && found < 4 && (o = kiln_opt_next(cli, o));) {
        if (o->flags & KILN_HIDDEN || kiln_name_distance(name, length, o->name) != best) continue;
        at += snprintf(near + at, sizeof near - (size_t)at, "%s", found++ ? " or " : "");
        at += spell(cli, o->name, strlen(o->name), near + at, sizeof near - (size_t)at);
    }
    if (found)
        return kiln_fail(err, KILN_E_USAGE, "unknown option %s, did you mean %s? See '%s --help'",
                         typed, near, cli->program);
    return kiln_fail(err, KILN_E_USAGE, "unknown option %s, see '%s --help'", typed, cli->program);
}

/* ---- argv ------------------------------------------------------------------------------------ */

typedef struct {
    const kiln_cli *cli;
    int argc, next; /* next: the first element that is not read yet */
    char **argv;
    kiln_parsed *parsed;
} reader;

static kiln_status print_if_asked(reader *r, const kiln_opt *o, kiln_error *err)
{
    for (size_t i = 0; i < sizeof printers / sizeof *printers; i++) {
        if (o->where != &asked || strcmp(o->name, printers[i].option)) continue;
        printers[i].print(r->cli, stdout);
        if (fflush(stdout) || ferror(stdout))
            return kiln_fail(err, KILN_E_IO, "cannot write to stdout");
        r->parsed->done = true;
    }
    return KILN_OK;
}

/* value == NULL: it is the next element of argv, or, for a switch, "yes". */
static kiln_status take_option_value(reader *r, const kiln_opt *o, const char *value,
                                     kiln_error *err)
{
    if (!value && o->kind == KILN_OPT_BOOL) value = "yes";
    if (!value && r->next < r->argc) value = r->argv[r->next++];
    const bool is_list = o->kind == KILN_OPT_LIST;
    if (!value || (!value[0] && !is_list))
        return kiln_fail(err, KILN_E_USAGE, "--%s needs a value%s%s; see '%s --help'", o->name,
                         o->arg ? ", " : "", o->arg ? o->arg : "", r->cli->program);
    if (is_list && !is_given(o)) kiln_opt_value_none(o); /* what is typed replaces the default */
    if (is_list && !r->cli->from_make)
        KILN_TRY(kiln_opt_list_add(o, value, err));
    else
        KILN_TRY(kiln_opt_value_set(o, value, err));
    KILN_TRY(check_value(r->cli, o, err));
    KILN_TRY(mark_given(o, err));
    return print_if_asked(r, o, err);
}

/* What --no-NAME sets: of a switch "no", of a choice "off" where it has that; NULL: there is no
 * such option. */
static const char *negative_of(const kiln_opt *o)
{
    if (!o || o->where == &asked) return NULL;
    if (o->kind == KILN_OPT_BOOL) return "no";
    return o->kind == KILN_OPT_ENUM && kiln_opt_is_choice(o->range, "off", 3) ? "off" : NULL;
}

static kiln_status take_long(reader *r, const char *name, kiln_error *err)
{
    const char *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    const kiln_opt *o = kiln_opt_find(r->cli, name, length);
    if (o) return take_option_value(r, o, equals ? equals + 1 : NULL, err);
    if (length > 3 && starts_with(name, length, "no-")) {
        o = kiln_opt_find(r->cli, name + 3, length - 3);
        const char *negative = negative_of(o);
        if (negative && equals)
            return kiln_fail(err, KILN_E_USAGE, "--%.*s takes no value", (int)length, name);
        if (negative) return take_option_value(r, o, negative, err);
    }
    return fail_unknown(r->cli, name, length, err);
}

/* "-o FILE", "-oFILE", "-qv". */
static kiln_status take_letters(reader *r, const char *letters, kiln_error *err)
{
    for (const char *at = letters; *at && !r->parsed->done; at++) {
        const kiln_opt *o = find_letter(r->cli, *at);
        if (!o)
            return kiln_fail(err, KILN_E_USAGE, "unknown option '-%c', see '%s --help'", *at,
                             r->cli->program);
        if (o->kind != KILN_OPT_BOOL) return take_option_value(r, o, at[1] ? at + 1 : NULL, err);
        KILN_TRY(take_option_value(r, o, NULL, err));
    }
    return KILN_OK;
}

static kiln_status take_positional(reader *r, const char *text, kiln_error *err)
{
    unsigned max = sizeof r->parsed->positional / sizeof *r->parsed->positional;
    const unsigned most = r->cli->n_positionals + r->cli->n_optional;
    if (r->parsed->n_positional == most || r->parsed->n_positional == max)
        return kiln_fail(err, KILN_E_USAGE,
                         "'%.80s' is one argument too many, %s takes %s; see '%s --help'", text,
                         r->cli->program, most ? r->cli->positionals : "none", r->cli->program);
    if (!text[0])
        return kiln_fail(err, KILN_E_USAGE, "an argument is empty, %s takes %s", r->cli->program,
                         r->cli->positionals);
    return kiln_opt_keep(text, true, &r->parsed->positional[r->parsed->n_positional++], err);
}

static bool is_alone(const kiln_cli *cli)
{
    for (const kiln_opt *o = NULL; (o = kiln_opt_next(cli, o));)
        if (o->flags & KILN_ALONE && *(const bool *)o->where) return true;
    return false;
}

kiln_status kiln_cli_parse(const kiln_cli *cli, int argc, char **argv, kiln_parsed *parsed,
                           kiln_error *err)
{
    reader r = {.cli = cli, .argc = argc, .next = 1, .argv = argv, .parsed = parsed};
    bool options_end = false;
    *parsed = (kiln_parsed){0};
    n_given = 0;
    for (const kiln_opt *o = NULL; (o = kiln_opt_next(cli, o));) KILN_TRY(set_default(o, err));
    while (r.next < argc && !parsed->done) {
        const char *word = argv[r.next++];
        if (options_end || word[0] != '-' || !word[1])
            KILN_TRY(take_positional(&r, word, err));
        else if (word[1] != '-')
            KILN_TRY(take_letters(&r, word + 1, err));
        else if (word[2])
            KILN_TRY(take_long(&r, word + 2, err));
        else
            options_end = true;
    }
    if (!parsed->done && parsed->n_positional < cli->n_positionals && !is_alone(cli))
        return kiln_fail(err, KILN_E_USAGE, "an argument is missing, %s takes %s; see '%s --help'",
                         cli->program, cli->positionals, cli->program);
    return KILN_OK;
}
