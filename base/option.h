/* option -- one table of options per program. Parsing, range checks, --help, the man page, the
 * options of `kiln pipeline`, shell completion and stored parameters all use it. Each row of a
 * table is written with a KILN_OPTION_... macro (below).
 *
 * Syntax: GNU long options (--name value or --name=value, no prefixes) and short letters where
 * given. A KILN_OPT_BOOL also takes --no-NAME and --NAME=yes|no; --no-NAME of a KILN_OPT_ENUM is
 * --NAME off. "--" ends options; options and positionals may mix. An underscore in a typed name
 * stands for a hyphen. Every value lives in the program's own struct; its canonical text
 * (kiln_opt_text) is what is stored, keyed and handed to workers.
 */
#ifndef KILN_BASE_OPTION_H
#define KILN_BASE_OPTION_H

#include "base/extern_c.h"
#include "base/memory.h"
#include "base/status.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

KILN_C_BEGIN

typedef enum {
    KILN_OPT_END = 0,
    KILN_OPT_BOOL, /* bool *: no argument; --no-NAME unsets */
    /* uint32_t *: range "lo..hi"; the word "off" (0) is allowed as of KILN_OPT_F64 */
    KILN_OPT_U32,
    KILN_OPT_U64, /* uint64_t *: likewise */
    /* double *: a number such as 0.5, 1e-3 or 1/255. Range "lo..hi"; either end may be left out.
     * The words "off" (NAN) and "auto" (KILN_OPT_AUTO) are allowed where one of them is the
     * default, or where the range ends with them: "lo..hi|off|auto". */
    KILN_OPT_F64,
    KILN_OPT_SIZE, /* kiln_size *: 512M, 1.5G, 50% */
    /* const char **: anything; NULL when not given and without a default. With a range "a|b|c": one
     * of these words, or several of them with commas between them. */
    KILN_OPT_TEXT,
    KILN_OPT_PATH,  /* const char **: a leading ~ is expanded */
    KILN_OPT_ENUM,  /* uint32_t *: range "a|b|c": the index */
    KILN_OPT_F64X3, /* double *[3]: X,Y,Z; the range is that of each, as of KILN_OPT_F64 */
    /* const char **: may be repeated, and the order stays. What is given replaces what is stored;
     * '' empties it. A leading ~ of an item is expanded. The canonical text has '|' between items,
     * and '\\' in front of a '|' or a '\\' of an item; a variable of make holds the same text. NULL
     * when there are no items. */
    KILN_OPT_LIST,
} kiln_opt_kind;

/* A number that the program chooses. No text of a number gives it. */
#define KILN_OPT_AUTO ((double)INFINITY)
static inline bool kiln_opt_is_auto(double value) { return isinf(value) && value > 0; }

/* bytes of the text of any option, with its NUL; but for lists KILN_PATH_MAX is enough */
enum { KILN_OPT_TEXT_MAX = 65536 };

typedef struct {
    uint64_t bytes; /* as given, when percent < 0 */
    double percent; /* 0..100, else -1 */
} kiln_size;

enum {
    /* Changes the result: stored as a parameter, in the key of the stage (kiln_run_key). Keys of
     * units are made by hand: without the value in them, units that are stored count as they are
     * and are not computed again. */
    KILN_KEYED = 1,
    KILN_HIDDEN = 2, /* not in --help (for the engine and for tests) */
    /* a run that has it uses the stored parameters, stores none and changes no state (-o, --camera,
     * --dry-run) */
    KILN_ONCE = 4,
    KILN_DEVICE = 8, /* about where units compute: only in the tables of programs that have some */
    /* of a keyed option that came after the first bakes: its default is in no key, so keys of older
     * bakes hold */
    KILN_LATER = 32,
    /* `kiln pipeline` and make have it only with the stage's name in front: it would mean another
     * thing to another stage, or be done twice */
    KILN_NAMED = 64,
    /* `kiln pipeline` and make have it under the stage's name alone, too: --export is
     * --export-format */
    KILN_TITLE = 128,
    /* of a switch: a run that has it does that alone; it needs no positionals, and `kiln pipeline`
     * has it not */
    KILN_ALONE = 16,
    /* a step of a bake over hosts, or what `kiln pipeline` itself tells a stage: it and make have
     * it not */
    KILN_STEP = 256,
    /* of a KILN_OPT_F64 that is a share in percent: a % may stand behind the number */
    KILN_PERCENT = 512,
};

/* A row of a table; the macros below fill it. */
typedef struct {
    const char *name; /* "min-opacity"; NULL in the last row */
    char letter;      /* 0 for none */
    kiln_opt_kind kind;
    void *where; /* storage of the program, type by kind */
    /* name of the argument in --help: "N", "SIZE", "FILE"; NULL for a KILN_OPT_BOOL */
    const char *arg;
    /* default as text, as a user would type it; NULL: none (NULL pointer, 0, NAN, false), whose
     * text is "" */
    const char *def;
    const char *range; /* "1..32", "a|b|c" or NULL */
    const char *help;  /* a sentence without a full stop */
    /* the line of --help, where the first clause of `help` is none; NULL: that clause */
    const char *brief;
    /* of the first row of a section of --help: its title; NULL: the row is of the section of the
     * row before */
    const char *group;
    unsigned flags;
} kiln_opt;

/* One row of a table. A search for KILN_OPTION_ finds them all:
 *
 *   static const kiln_opt options[] = {
 *       KILN_OPTION_NUMBER("neighbors", &o.neighbors, "N", "neighbours averaged per point", .letter = 'k', .def = "3",
 *                          .range = "1..32", .flags = KILN_KEYED),
 *       KILN_OPTION_BOOL("dry-run", &o.dry_run, "write nothing", .flags = KILN_ONCE),
 *       KILN_OPTION_END,
 *   };
 *
 * Arguments are what every such row has: name, storage, name of its value, text of help; for ENUM
 * also the words "a|b|c". Fields that only some rows have follow by name, in this order: .letter,
 * .def, .range, .brief, .group, .flags. A macro that makes rows cannot have parameters of these
 * names, as they would be replaced in the fields too.
 *
 * The kind comes from the type of the storage, so storage of a wrong type does not compile. A list
 * is a kind and no flag of a text: code asks for the kind before it reads a value, and a list's
 * text has to be taken apart first (kiln_opt_list_next). */
/* clang-format off */
/* .kind stands last: a value without a name behind it would be the next field's, `where`, and
 * -Woverride-init refuses it. */
#define KILN_OPTION_BOOL(NAME, WHERE, HELP, ...) \
    {.name = (NAME), .where = (WHERE), .help = (HELP), .kind = _Generic((WHERE), bool *: KILN_OPT_BOOL), __VA_ARGS__}
/* Three numbers are given as &o.xyz. The name alone becomes a double * here, which sizeof tells
 * from the address of one number. */
#define KILN_OPTION_NUMBER(NAME, WHERE, ARG, HELP, ...) \
    {.name = (NAME), .where = (WHERE), .arg = (ARG), .help = (HELP), \
     .kind = _Generic((WHERE), \
         uint32_t *: KILN_OPT_U32, \
         uint64_t *: KILN_OPT_U64, \
         double *: sizeof(WHERE) == sizeof(double[3]) ? KILN_OPT_F64X3 : KILN_OPT_F64, \
         double (*)[3]: KILN_OPT_F64X3, \
         kiln_size *: KILN_OPT_SIZE), __VA_ARGS__}
#define KILN_OPTION_ENUM(NAME, WHERE, ARG, WORDS, HELP, ...) \
    {.name = (NAME), .where = (WHERE), .arg = (ARG), .range = (WORDS), .help = (HELP), \
     .kind = _Generic((WHERE), uint32_t *: KILN_OPT_ENUM), __VA_ARGS__}
#define KILN_OPTION_TEXT(NAME, WHERE, ARG, HELP, ...) \
    {.name = (NAME), .where = (WHERE), .arg = (ARG), .help = (HELP), \
     .kind = _Generic((WHERE), const char **: KILN_OPT_TEXT), __VA_ARGS__}
#define KILN_OPTION_LIST(NAME, WHERE, ARG, HELP, ...) \
    {.name = (NAME), .where = (WHERE), .arg = (ARG), .help = (HELP), \
     .kind = _Generic((WHERE), const char **: KILN_OPT_LIST), __VA_ARGS__}
#define KILN_OPTION_PATH(NAME, WHERE, ARG, HELP, ...) \
    {.name = (NAME), .where = (WHERE), .arg = (ARG), .help = (HELP), \
     .kind = _Generic((WHERE), const char **: KILN_OPT_PATH), __VA_ARGS__}
#define KILN_OPTION_END {.name = NULL}
/* clang-format on */

/* What a text may say, for options whose kind takes any text: the parser that the program uses
 * later, called when the value is set. Of a list each item. KILN_E_USAGE with a sentence that names
 * the option. */
typedef struct {
    const char *name; /* of the option; NULL in the last row */
    kiln_status (*check)(const char *text, kiln_error *err);
} kiln_opt_check;

typedef struct kiln_cli {
    const char *program;     /* "kiln-knn" */
    const char *summary;     /* one line: what it does */
    const char *positionals; /* "MANIFEST", "SCENE MANIFEST", "A B" */
    unsigned n_positionals;  /* so many are needed, */
    unsigned n_optional;     /* and so many more may follow */
    /* paragraphs of prose for the man page; NULL-terminated; may be NULL */
    const char *const *tables_note;
    /* the program's own table, ended by a row with name NULL */
    const kiln_opt *options;
    const kiln_opt *common;              /* the shared rows (kiln_common_options) or NULL */
    const kiln_opt_check *checks;        /* of rows of `options`; NULL: none */
    const kiln_opt_check *common_checks; /* likewise of `common` */
    /* Prints --help and, with all, --help-all; NULL: kiln_cli_help does. */
    void (*help)(const struct kiln_cli *cli, bool all, FILE *out);
    /* Options were typed as variables of make: the sentence about an unknown one spells names like
     * that. */
    bool from_make;
} kiln_cli;

/* Shared by every program. */
typedef struct {
    /* --devices, aliases --device and --gpu: "auto", "cpu", "cuda", "all" or a list */
    const char *devices;
    uint32_t threads; /* 0: all cores */
    kiln_size ram, vram;
    bool json, quiet, verbose, sync;
} kiln_common;
extern kiln_common kiln_common_values;
extern const kiln_opt kiln_common_options[];
/* The rows that print something and end: --version, --help, --help-all, --help-json, --man. */
extern const kiln_opt kiln_print_options[];

enum { KILN_POSITIONALS_MAX = 256 };

typedef struct {
    /* --help, --help-all, --version, --help-json, --man printed: end with 0 */
    bool done;
    /* borrowed from argv, ~ expanded (then owned by the process) */
    const char *positional[KILN_POSITIONALS_MAX];
    unsigned n_positional;
} kiln_parsed;

/* Sets every default, then argv. KILN_E_USAGE with a sentence that names the option and what it
 * takes; an unknown option suggests the nearest known one. Prints --help etc. to stdout itself
 * (*parsed).done = true. */
kiln_status kiln_cli_parse(const kiln_cli *cli, int argc, char **argv, kiln_parsed *parsed,
                           kiln_error *err) KILN_MUST_CHECK;
/* Says whether this option was given on the command line, not by default and not stored. */
bool kiln_opt_given(const kiln_cli *cli, const char *name);
/* Says whether any option with this flag was given. */
bool kiln_opt_flag_given(const kiln_cli *cli, unsigned flag);
/* Sets one option from text, with the same checks as argv; `origin` is put in the message ("stored
 * parameter"). "" sets the default again, as it is the text of a value that is not there. The text
 * is copied. */
kiln_status kiln_opt_set(const kiln_cli *cli, const char *name, const char *text,
                         const char *origin, kiln_error *err) KILN_MUST_CHECK;
/* The same, and from now on the option counts as given, as if it had been typed. */
kiln_status kiln_opt_give(const kiln_cli *cli, const char *name, const char *text,
                          kiln_error *err) KILN_MUST_CHECK;
/* Canonical text of the present value (numbers by shortest round-trip, sizes in bytes or percent);
 * "" when none. Written into buf, which is returned; KILN_OPT_TEXT_MAX bytes hold every text,
 * longer values are refused when set. */
const char *kiln_opt_text(const kiln_opt *opt, char *buf, size_t size);
/* The next item of a list's text, without escapes, into item[size], which KILN_OPT_TEXT_MAX is
 * enough for; *at is moved behind it. Returns false at the end. text may be NULL. */
bool kiln_opt_list_next(const char **at, char *item, size_t size);
/* Appends an item to the storage of a list, as `--name item` does; "" empties it. Unlike there, the
 * option does not count as given. */
kiln_status kiln_opt_list_add(const kiln_opt *opt, const char *item,
                              kiln_error *err) KILN_MUST_CHECK;

/* Print what --help, --help-all, --man and --help-json show. The caller checks the stream. help:
 * "Usage: kiln-knn MANIFEST [options]" and a line for each option of the program's own, in 80
 * columns; all: whole texts, and the common options; man: roff man(7), section 1; hidden rows are
 * left out. help-json: each visible row with "stored" (KILN_KEYED), "later", "once", "alone",
 * "named", "checked" (it has a kiln_opt_check), and "aliases": hidden rows of the same storage.
 */
void kiln_cli_help(const kiln_cli *cli, bool all, FILE *out);
void kiln_cli_man(const kiln_cli *cli, FILE *out);
void kiln_cli_help_json(const kiln_cli *cli, FILE *out);
/* Prints a part of --help: the visible rows of a table, under the title and those of their groups;
 * nothing when there are none. */
void kiln_cli_help_rows(const char *title, const kiln_opt *table, bool all, FILE *out);
/* Prints the line of an option in --help: its brief text, which is one line (unit/help). */
void kiln_cli_help_line(const kiln_opt *o, FILE *out);
/* Prints text in lines of at most 80 columns; every line but the first is indented. _from: the
 * first begins at `column`. */
void kiln_cli_wrap(const char *text, unsigned indent, FILE *out);
void kiln_cli_wrap_from(const char *text, unsigned column, unsigned indent, FILE *out);

/* Returns the distance of a typed name from a known one in edits; two swapped letters are one edit.
 * It is less if the typed name begins the known one or follows a hyphen in it. KILN_NAME_FAR: it is
 * another word, not a slip. */
size_t kiln_name_distance(const char *typed, size_t length, const char *known);
#define KILN_NAME_FAR SIZE_MAX

/* "512M" "1.5G" "50%" "64KiB" "1000" -> size. */
kiln_status kiln_size_parse(const char *text, kiln_size *out, kiln_error *err) KILN_MUST_CHECK;
uint64_t kiln_size_resolve(kiln_size s, uint64_t whole);  /* bytes; percent of whole */
const char *kiln_size_text(uint64_t bytes, char buf[32]); /* "912 MiB" for people */
extern const char kiln_version[];                         /* "0.1.0" */

KILN_C_END

#endif
