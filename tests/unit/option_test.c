/* option -- the command line of a made-up program with one option of each kind. */
#include "base/file.h"
#include "base/option.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct {
    bool merge, dry;
    uint32_t k, format, none32;
    uint64_t rows, most;
    double share, opacity, ceiling, floor, limit, free;
    kiln_size cache;
    const char *camera, *out, *add;
    const char *kinds;
    double move[3], bounded[3];
} o;

static const kiln_opt options[] = {
    KILN_OPTION_NUMBER("neighbors", &o.k, "K", "neighbours averaged per point", .letter = 'k',
                       .def = "3", .range = "1..32", .flags = KILN_KEYED),
    KILN_OPTION_NUMBER("rows", &o.rows, "N", "rows to keep", .def = "0", .range = "0..",
                       .flags = KILN_KEYED),
    KILN_OPTION_NUMBER("min-opacity", &o.opacity, "X", "drop what is fainter", .def = "1/255",
                       .range = "0..1", .flags = KILN_KEYED),
    KILN_OPTION_NUMBER("ceiling", &o.ceiling, "X", "largest scale", .def = "off", .range = "0..",
                       .flags = KILN_KEYED),
    KILN_OPTION_NUMBER("floor", &o.floor, "X", "smallest scale", .def = "0.5", .range = "0..1|off",
                       .flags = KILN_KEYED),
    KILN_OPTION_NUMBER("limit", &o.limit, "X", "greatest length", .def = "auto",
                       .range = "1e-6..|off|auto", .flags = KILN_KEYED),
    KILN_OPTION_NUMBER("most", &o.most, "N", "at most so many", .def = "off", .range = "1..|off"),
    KILN_OPTION_NUMBER("share", &o.share, "P", "so much of all", .def = "off",
                       .range = "1e-9..100|off", .flags = KILN_PERCENT),
    KILN_OPTION_NUMBER("free", &o.free, "X", "any number"),
    KILN_OPTION_NUMBER("cache", &o.cache, "SIZE", "room for decoded planes", .def = "25%"),
    KILN_OPTION_ENUM("format", &o.format, "NAME", "png|png16|npy", "what to write", .def = "png",
                     .flags = KILN_KEYED),
    KILN_OPTION_TEXT("camera", &o.camera, "NAME", "one camera", .flags = KILN_ONCE),
    KILN_OPTION_TEXT("kinds", &o.kinds, "LIST", "words of a list", .def = "a", .range = "a|b|c-d",
                     .flags = KILN_KEYED | KILN_TITLE),
    KILN_OPTION_PATH("out", &o.out, "FILE", "where to write", .letter = 'o', .flags = KILN_ONCE),
    KILN_OPTION_BOOL("merge", &o.merge, "merge near-duplicates", .letter = 'm', .def = "yes",
                     .flags = KILN_KEYED),
    KILN_OPTION_BOOL("dry-run", &o.dry, "write nothing", .letter = 'n', .flags = KILN_ONCE),
    KILN_OPTION_LIST("add", &o.add, "FILE", "another file", .letter = 'a', .flags = KILN_KEYED),
    KILN_OPTION_NUMBER("move", &o.move, "X,Y,Z", "where to", .def = "0,0,0",
                       .flags = KILN_KEYED | KILN_NAMED),
    KILN_OPTION_NUMBER("bounded", &o.bounded, "X,Y,Z", "a colour", .range = "0..1"),
    KILN_OPTION_NUMBER("secret", &o.none32, "N", "for tests", .flags = KILN_HIDDEN),
    KILN_OPTION_END,
};

static const char *const notes[] = {".leading dot and a \\ backslash", NULL};
static const kiln_cli cli = {.program = "kiln-try",
                             .summary = "tries things",
                             .positionals = "MANIFEST",
                             .n_positionals = 1,
                             .tables_note = notes,
                             .options = options,
                             .common = kiln_common_options};

static kiln_parsed parsed;
static kiln_error err;

/* Words split at blanks, "kiln-try" in front. */
static kiln_status parse(const char *line)
{
    static char copy[8192];
    char *argv[32] = {(char[]){"kiln-try"}};
    int argc = 1;
    (void)snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) argv[argc++] = word;
    return kiln_cli_parse(&cli, argc, argv, &parsed, &err);
}

static const kiln_opt *row(const char *name)
{
    for (const kiln_opt *at = options; at->name; at++)
        if (!strcmp(at->name, name)) return at;
    return NULL;
}

static const char *text_of(const char *name)
{
    static char buf[KILN_PATH_MAX];
    return kiln_opt_text(row(name), buf, sizeof buf);
}

static void assert_refused(const char *line, const char *part)
{
    assert_int_equal(parse(line), KILN_E_USAGE);
    if (!strstr(err.msg, part)) fail_msg("'%s' gives '%s', without '%s'", line, err.msg, part);
}

static void whole_numbers_may_be_off_and_shares_have_a_sign(void **state)
{
    (void)state;
    assert_int_equal(parse("m.db"), KILN_OK);
    assert_true(o.most == 0 && isnan(o.share));
    assert_string_equal(text_of("most"), "off");
    assert_int_equal(parse("m.db --most 7 --share 12.5%"), KILN_OK);
    assert_true(o.most == 7 && o.share == 12.5);
    assert_string_equal(text_of("most"), "7");
    assert_string_equal(text_of("share"), "12.5");
    assert_int_equal(parse("m.db --most off --share off"), KILN_OK);
    assert_true(o.most == 0 && isnan(o.share));
    assert_refused("m.db --most 0", "--most takes a whole number of at least 1 or off, not '0'");
    assert_refused("m.db --rows off", "--rows takes");
    assert_refused("m.db --share 0%", "1e-9 to 100 or off");
    assert_refused("m.db --share %", "--share takes");
    assert_refused("m.db --share 1%%", "--share takes");
    assert_refused("m.db --floor 1%", "--floor takes");
}

static void defaults_come_from_the_table(void **state)
{
    (void)state;
    memset(&o, 0xa5, sizeof o);
    assert_int_equal(parse("m.db"), KILN_OK);
    assert_int_equal(o.k, 3);
    assert_true(o.opacity == 1.0 / 255);
    assert_true(isnan(o.ceiling) && isnan(o.free));
    assert_true(o.cache.percent == 25);
    assert_true(o.merge && !o.dry);
    assert_null(o.camera);
    assert_int_equal(o.none32, 0);
    assert_string_equal(kiln_common_values.devices, "auto");
    assert_string_equal(parsed.positional[0], "m.db");
    assert_false(kiln_opt_given(&cli, "neighbors"));
}

static void every_spelling_of_an_option_is_read(void **state)
{
    (void)state;
    assert_int_equal(parse("-k5 --format=npy m.db --rows 18446744073709551615 -o x -mn --no-merge"),
                     KILN_OK);
    assert_int_equal(o.k, 5);
    assert_int_equal(o.format, 2);
    assert_true(o.rows == UINT64_MAX);
    assert_string_equal(o.out, "x");
    assert_true(o.dry && !o.merge);
    assert_int_equal(parse("--dry-run=no --merge=0 -k 7 -- --odd-name"), KILN_OK);
    assert_true(!o.dry && !o.merge);
    assert_string_equal(parsed.positional[0], "--odd-name");
    assert_int_equal(parse("-"), KILN_OK);
}

static void values_out_of_range_are_refused_with_what_is_taken(void **state)
{
    (void)state;
    assert_refused("m --neighbors 33", "--neighbors takes a whole number from 1 to 32, not '33'");
    assert_refused("m --neighbors 0", "from 1 to 32");
    assert_refused("m --neighbors -1", "not '-1'");
    assert_refused("m --neighbors 3x", "not '3x'");
    assert_refused("m --rows 18446744073709551616", "whole number of at least 0");
    assert_refused("m --min-opacity 1.01", "a number from 0 to 1");
    assert_refused("m --min-opacity nan", "not 'nan'");
    assert_refused("m --min-opacity 0x1", "not '0x1'");
    assert_refused("m --min-opacity 1/0", "not '1/0'");
    assert_refused("m --min-opacity off", "not 'off'");
    assert_refused("m --ceiling -1", "of at least 0 or off");
    assert_refused("m --floor 2", "a number from 0 to 1 or off, not '2'");
    assert_refused("m --limit 0", "a number of at least 1e-6, off or auto, not '0'");
    assert_refused("m --limit of", "not 'of'");
    assert_refused("m --limit inf", "not 'inf'");
    assert_refused("m --floor auto", "not 'auto'");
    assert_refused("m --format jpg", "png|png16|npy, not 'jpg'");
    assert_refused("m --format pn", "not 'pn'");
    assert_refused("m --cache 101%", "a size such as");
    assert_refused("m --dry-run=maybe", "yes or no");
    assert_refused("m --threads 1025", "from 0 to 1024");
}

static void a_wrong_command_line_says_what_is_wrong(void **state)
{
    (void)state;
    assert_refused("", "takes MANIFEST");
    assert_refused("a b", "'b' is one argument too many");
    assert_refused("m --neighbours 3", "did you mean '--neighbors'?");
    assert_refused("m --min 3", "did you mean '--min-opacity'?");
    /* hidden ones are not proposed */
    assert_refused("m --secrets 3", "unknown option '--secrets', see");
    assert_refused("m --no-neighbors", "unknown option");
    assert_refused("m -z", "unknown option '-z'");
    assert_refused("m --neighbors", "needs a value");
    assert_refused("m --camera=", "needs a value");
    assert_refused("m --neighb 3", "did you mean '--neighbors'?"); /* a prefix is not accepted */
}

static void another_word_is_no_slip(void **state)
{
    (void)state;
    static const struct {
        const char *typed, *known;
        bool near;
    } words[] = {
        /* slips: a letter too many, too few, another one, two swapped; in longer words more of
         * them */
        {"tile", "tiles", true},
        {"prun", "prune", true},
        {"pruen", "prune", true},
        {"konn", "knn", true},
        {"kn", "knn", true},
        {"inof", "info", true},
        {"exprot", "export", true},
        {"rednre", "render", true},
        {"reprot", "report", true},
        {"verifiy", "verify", true},
        {"neighbours", "neighbors", true},
        {"min_opacty", "min-opacity", true},
        {"ren", "render", true}, /* an abbreviation */
        {"format", "export-format", true},
        /* other words */
        {"foo", "lod", false},
        {"foo", "info", false},
        {"bar", "knn", false},
        {"go", "gc", false},
        {"ls", "lod", false},
        {"x", "gc", false},
        {"", "gc", false},
        {"run", "knn", false},
        {"make", "knn", false},
        {"bake", "gc", false},
        {"load", "knn", false},
        {"show", "knn", false},
        {"test", "tiles", false},
        {"clean", "chunk", false},
        {"delete", "render", false},
        {"train", "tiles", false},
        {"min", "lod", false},
        {"output", "opacity", false},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const bool near = kiln_name_distance(words[i].typed, strlen(words[i].typed),
                                             words[i].known) < KILN_NAME_FAR;
        if (near != words[i].near)
            fail_msg("'%s' is %s '%s'", words[i].typed, near ? "taken for" : "not taken for",
                     words[i].known);
    }
    assert_true(kiln_name_distance("pruen", 5, "prune") < kiln_name_distance("prxxe", 5, "prune"));
    assert_refused("m --foo 3", "unknown option '--foo', see");
    assert_refused("m --dr-yrun", "did you mean '--dry-run'?");
}

static void a_value_longer_than_a_path_is_refused(void **state)
{
    (void)state;
    char line[6000] = "m --camera ";
    memset(line + 11, 'a', KILN_PATH_MAX);
    assert_refused(line, "longer than 4095 bytes");
    line[11 + KILN_PATH_MAX - 1] = '\0';
    assert_int_equal(parse(line), KILN_OK);
    assert_int_equal(strlen(text_of("camera")), KILN_PATH_MAX - 1);
}

static void text_and_value_are_inverse(void **state)
{
    (void)state;
    static const char *const numbers[] = {
        "0", "1", "0.1", "0.02", "1e-300", "0.3333333333333333", "5e-324", "0.1234567891234567"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_int_equal(kiln_opt_set(&cli, "min-opacity", numbers[i], "test", &err), KILN_OK);
        double v = o.opacity;
        char text[64];
        (void)snprintf(text, sizeof text, "%s", text_of("min-opacity"));
        assert_int_equal(kiln_opt_set(&cli, "min-opacity", text, "test", &err), KILN_OK);
        assert_true(o.opacity == v);
    }
    assert_int_equal(
        parse("m --min-opacity 0.10 --ceiling -0 --cache 1.5G --no-merge --format png16"), KILN_OK);
    assert_string_equal(text_of("min-opacity"), "0.1");
    assert_string_equal(text_of("ceiling"), "0");
    assert_string_equal(text_of("cache"), "1610612736");
    assert_string_equal(text_of("merge"), "no");
    assert_string_equal(text_of("format"), "png16");
    assert_string_equal(text_of("camera"), "");
    assert_string_equal(text_of("free"), "");
    assert_string_equal(text_of("secret"), "");
    assert_string_equal(text_of("floor"), "0.5");
    assert_int_equal(parse("m --ceiling off --floor off"), KILN_OK);
    assert_string_equal(text_of("floor"), "off");
    assert_string_equal(text_of("ceiling"), "off");
    assert_string_equal(text_of("cache"), "25%");
    assert_string_equal(text_of("limit"), "auto");
    assert_true(kiln_opt_is_auto(o.limit));
    assert_int_equal(parse("m --limit 32"), KILN_OK);
    assert_string_equal(text_of("limit"), "32");
    assert_int_equal(parse("m --limit auto"), KILN_OK);
    assert_string_equal(text_of("limit"), "auto");
    assert_int_equal(parse("m --limit off"), KILN_OK);
    assert_true(isnan(o.limit) && !kiln_opt_is_auto(o.limit));
}

static void every_text_can_be_set_again(void **state)
{
    (void)state;
    assert_int_equal(parse("m"), KILN_OK);
    for (const kiln_opt *at = options; at->name; at++) {
        char text[64];
        (void)snprintf(text, sizeof text, "%s", text_of(at->name));
        assert_int_equal(kiln_opt_set(&cli, at->name, text, "test", &err), KILN_OK);
        assert_string_equal(text_of(at->name), text);
    }
}

static const char *item(const char *text, unsigned i)
{
    static char buf[KILN_OPT_TEXT_MAX];
    for (unsigned k = 0; kiln_opt_list_next(&text, buf, sizeof buf); k++)
        if (k == i) return buf;
    return "none";
}

static void a_list_keeps_its_order_and_every_byte(void **state)
{
    (void)state;
    static const char *const names[] = {"b.ply", "a|b\\|", "\\", "||", ";x=1", "\n \xff", "b.ply"};
    char *argv[16] = {(char[]){"kiln-try"}, (char[]){"m"}};
    int argc = 2;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        static char words[7][32];
        (void)snprintf(words[i], sizeof words[i], "--add=%s", names[i]);
        argv[argc++] = words[i];
    }
    assert_int_equal(kiln_cli_parse(&cli, argc, argv, &parsed, &err), KILN_OK);
    assert_true(kiln_opt_given(&cli, "add"));
    char text[KILN_PATH_MAX];
    (void)snprintf(text, sizeof text, "%s", text_of("add"));
    assert_string_equal(text, "b.ply|a\\|b\\\\\\||\\\\|\\|\\||;x=1|\n \xff|b.ply");
    assert_int_equal(parse("m"), KILN_OK);
    assert_string_equal(text_of("add"), "");
    assert_int_equal(kiln_opt_set(&cli, "add", text, "stored parameter", &err), KILN_OK);
    assert_string_equal(text_of("add"), text);
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        assert_string_equal(item(o.add, i), names[i]);
    assert_string_equal(item(o.add, 7), "none");
    assert_string_equal(item(NULL, 0), "none");
    /* one form: what is typed loosely is stored as one text */
    assert_int_equal(kiln_opt_set(&cli, "add", "|a\\b||c|", "stored parameter", &err), KILN_OK);
    assert_string_equal(text_of("add"), "a\\\\b|c");
    assert_int_equal(kiln_opt_set(&cli, "add", "||", "stored parameter", &err), KILN_OK);
    assert_null(o.add);
}

static void a_list_can_be_emptied_and_begins_anew_on_each_line(void **state)
{
    (void)state;
    assert_int_equal(parse("m -a x -ay --add ~/z"), KILN_OK);
    assert_string_equal(item(o.add, 0), "x");
    assert_string_equal(item(o.add, 1), "y");
    assert_int_equal(item(o.add, 2)[0], getenv("HOME") ? '/' : '~');
    assert_int_equal(parse("m --add x --add= --add y"), KILN_OK);
    assert_string_equal(text_of("add"), "y");
    assert_int_equal(kiln_opt_set(&cli, "add", "stored", "stored parameter", &err), KILN_OK);
    assert_int_equal(parse("m --add="), KILN_OK);
    assert_string_equal(text_of("add"), "");
    assert_true(kiln_opt_given(&cli, "add"));
    assert_refused("m --add", "--add needs a value, FILE");
}

/* A variable of make comes once and has the list's text. */
static void a_variable_of_make_is_a_whole_list(void **state)
{
    (void)state;
    kiln_cli from_make = cli;
    char *argv[] = {(char[]){"kiln-try"}, (char[]){"m"}, (char[]){"--add=a b.ply|c\\|d.ply"}};
    from_make.from_make = true;
    assert_int_equal(kiln_cli_parse(&from_make, 3, argv, &parsed, &err), KILN_OK);
    assert_string_equal(item(o.add, 0), "a b.ply");
    assert_string_equal(item(o.add, 1), "c|d.ply");
}

static void a_list_has_a_limit(void **state)
{
    (void)state;
    static char word[40000];
    (void)snprintf(word, sizeof word, "--add=%0*d", 39000, 0);
    char *argv[] = {(char[]){"kiln-try"}, (char[]){"m"}, word, word};
    assert_int_equal(kiln_cli_parse(&cli, 3, argv, &parsed, &err), KILN_OK);
    assert_int_equal(kiln_cli_parse(&cli, 4, argv, &parsed, &err), KILN_E_USAGE);
    assert_string_equal(err.msg, "the values of --add together are longer than 65535 bytes");
}

static void three_numbers_are_one_value(void **state)
{
    (void)state;
    assert_int_equal(parse("m"), KILN_OK);
    assert_string_equal(text_of("move"), "0,0,0");
    assert_string_equal(text_of("bounded"), "");
    assert_int_equal(parse("m --move -1,0.10,1/4 --bounded 0,1,-0"), KILN_OK);
    assert_true(o.move[0] == -1 && o.move[1] == 0.1 && o.move[2] == 0.25);
    assert_string_equal(text_of("move"), "-1,0.1,0.25");
    assert_string_equal(text_of("bounded"), "0,1,0");
    static const char *const bad[] = {"1,2",   "1,2,3,4", "1,,2",    ",,",
                                      "1,2,x", "1 2 3",   "1,2,inf", "1,2,3,"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char line[64];
        (void)snprintf(line, sizeof line, "m --move=%s", bad[i]);
        assert_int_equal(parse(line), KILN_E_USAGE);
    }
    assert_refused("m --move 1,2", "--move takes three numbers such as 1,0,-2.5, not '1,2'");
    assert_refused("m --bounded 0,0,2",
                   "--bounded takes three numbers such as 1,0,-2.5, each from 0 to 1, not '0,0,2'");
}

static void a_stored_text_is_checked_copied_and_not_given(void **state)
{
    (void)state;
    char stored[] = "r_0";
    assert_int_equal(parse("m"), KILN_OK);
    assert_int_equal(kiln_opt_set(&cli, "camera", stored, "stored parameter", &err), KILN_OK);
    stored[0] = 'x';
    assert_string_equal(o.camera, "r_0");
    assert_false(kiln_opt_given(&cli, "camera"));
    assert_int_equal(kiln_opt_set(&cli, "camera", "", "stored parameter", &err), KILN_OK);
    assert_null(o.camera);
    assert_int_equal(kiln_opt_set(&cli, "neighbors", "99", "stored parameter", &err), KILN_E_USAGE);
    assert_string_equal(
        err.msg, "stored parameter: --neighbors takes a whole number from 1 to 32, not '99'");
    assert_int_equal(kiln_opt_set(&cli, "gone", "99", "stored parameter", &err), KILN_E_USAGE);
}

static void given_knows_aliases_flags_and_only_this_line(void **state)
{
    (void)state;
    assert_int_equal(parse("m --gpu 1 -n"), KILN_OK);
    assert_string_equal(kiln_common_values.devices, "1");
    assert_true(kiln_opt_given(&cli, "devices") && kiln_opt_given(&cli, "device"));
    assert_true(kiln_opt_flag_given(&cli, KILN_ONCE));
    assert_false(kiln_opt_flag_given(&cli, KILN_KEYED));
    assert_int_equal(parse("m -k 3"), KILN_OK);
    assert_false(kiln_opt_given(&cli, "devices") || kiln_opt_flag_given(&cli, KILN_ONCE));
    assert_true(kiln_opt_given(&cli, "neighbors")); /* given, though it is the default */
}

static void a_tilde_in_front_becomes_home_in_paths_only(void **state)
{
    (void)state;
    assert_int_equal(setenv("HOME", "/home/me", 1), 0);
    assert_int_equal(parse("~/m.db -o ~ --camera ~/x"), KILN_OK);
    assert_string_equal(parsed.positional[0], "/home/me/m.db");
    assert_string_equal(o.out, "/home/me");
    assert_string_equal(o.camera, "~/x");
    assert_int_equal(parse("a~/m.db -o ~you/x"), KILN_OK);
    assert_string_equal(parsed.positional[0], "a~/m.db");
    assert_string_equal(o.out, "~you/x");
}

static void sizes_are_read_as_people_write_them(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {{"1000", 1000},
                {"512M", 512ull << 20},
                {"1.5G", 3ull << 29},
                {"64KiB", 65536},
                {"64kB", 65536},
                {"2 GB", 2ull << 30},
                {"8T", 8ull << 40},
                {"7B", 7},
                {"0", 0},
                {"0.5K", 512},
                {"18446744073709551615", UINT64_MAX}};
    static const char *const bad[] = {"",       "M",   "-1",           "1X",
                                      "1.5.1G", "1e9", "99999999999G", "100.1%",
                                      "1KiBs",  "5%%", "0x10",         "64kb"};
    kiln_size s;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(kiln_size_parse(good[i].text, &s, &err), KILN_OK);
        assert_true(s.bytes == good[i].bytes && s.percent < 0);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (kiln_size_parse(bad[i], &s, &err) != KILN_E_USAGE)
            fail_msg("'%s' was taken as a size", bad[i]);
    assert_int_equal(kiln_size_parse("50%", &s, &err), KILN_OK);
    assert_true(kiln_size_resolve(s, 1000) == 500);
    char buf[32];
    assert_string_equal(kiln_size_text(912ull << 20, buf), "912 MiB");
    assert_string_equal(kiln_size_text(1536ull << 20, buf), "1.5 GiB");
    assert_string_equal(kiln_size_text(17, buf), "17 bytes");
}

/* What one of the printers writes; free() it. */
static char *printed(void (*print)(const kiln_cli *, FILE *))
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    assert_non_null(f);
    print(&cli, f);
    assert_int_equal(fclose(f), 0);
    return text;
}

static void print_help(const kiln_cli *of, FILE *out) { kiln_cli_help(of, false, out); }
static void print_help_all(const kiln_cli *of, FILE *out) { kiln_cli_help(of, true, out); }

static void help_is_a_line_for_each_option(void **state)
{
    (void)state;
    char *text = printed(print_help);
    assert_memory_equal(text, "Usage: kiln-try MANIFEST [options]\n", 35);
    assert_non_null(strstr(text, "\n* -k, --neighbors K "));
    assert_null(strstr(text, "default 3"));
    assert_null(strstr(text, "secret"));
    assert_null(strstr(text, "\n      --threads"));
    assert_non_null(strstr(text, "--help-all"));
    assert_non_null(strstr(text, "\n* Stored in the manifest"));
    free(text);
}

static void help_fits_80_columns_and_hides_what_is_hidden(void **state)
{
    (void)state;
    char *text = printed(print_help_all);
    assert_memory_equal(text, "Usage: kiln-try MANIFEST [options]\n", 35);
    assert_non_null(strstr(text, "* -k, --neighbors K "));
    assert_non_null(strstr(text, "(1 to 32; default 3)"));
    assert_non_null(strstr(text, "--[no-]merge"));
    assert_null(strstr(text, "secret"));
    assert_null(strstr(text, "--gpu"));
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        assert_in_range(strlen(line), 0, 80);
    free(text);
}

static void the_listing_for_programs_has_aliases_and_flags(void **state)
{
    (void)state;
    char *text = printed(kiln_cli_help_json);
    assert_non_null(strstr(text, "{\"name\": \"threads\""));
    assert_non_null(strstr(text, "\"aliases\": [\"jobs\"], \"stored\": false, \"later\": false, "
                                 "\"once\": false, \"alone\": false, \"step\": false, "
                                 "\"named\": false, \"title\": false}"));
    assert_non_null(strstr(text, "\"aliases\": [\"device\", \"gpu\"]"));
    assert_non_null(strstr(
        text,
        "\"stored\": false, \"later\": false, \"once\": true, \"alone\": false, \"step\": false, "
        "\"named\": false, \"title\": false}")); /* --camera
                                                                           */
    assert_non_null(strstr(text, "\"aliases\": [], \"stored\": false, \"later\": false, \"once\": "
                                 "false, \"alone\": true, \"step\": false, "
                                 "\"named\": false, \"title\": false}")); /* --version
                                                               */
    assert_non_null(strstr(
        text,
        "\"stored\": true, \"later\": false, \"once\": false, \"alone\": false, \"step\": false, "
        "\"named\": true, \"title\": false}")); /* --move */
    assert_non_null(strstr(
        text, "\"name\": \"add\", \"letter\": \"a\", \"kind\": \"list\", \"arg\": \"FILE\""));
    assert_non_null(
        strstr(text, "\"kind\": \"f64x3\", \"arg\": \"X,Y,Z\", \"default\": \"0,0,0\""));
    assert_null(strstr(text, "secret"));
    free(text);
}

static kiln_status check_camera(const char *text, kiln_error *e)
{
    return strcmp(text, "none") ? KILN_OK
                                : kiln_fail(e, KILN_E_USAGE, "there is no camera '%s'", text);
}

static kiln_status check_added(const char *item, kiln_error *e)
{
    return item[0] != '-' ? KILN_OK : kiln_fail(e, KILN_E_USAGE, "--add takes no '%s'", item);
}

static kiln_status check_devices(const char *text, kiln_error *e)
{
    return strcmp(text, "moon") ? KILN_OK
                                : kiln_fail(e, KILN_E_USAGE, "--devices takes no '%s'", text);
}

/* Typed, by an alias, and stored; of a list each item; the option is named in any case. */
static void a_check_sees_each_text_that_is_set(void **state)
{
    static const kiln_opt_check checks[] = {
        {"camera", check_camera}, {"add", check_added}, {NULL, NULL}};
    static const kiln_opt_check common_checks[] = {{"devices", check_devices}, {NULL, NULL}};
    static char program[] = "kiln-try", m[] = "m";
    static const struct {
        const char *word, *says;
    } bad[] = {{"--camera=none", "--camera: there is no camera 'none'"},
               {"--add=-x", "--add takes no '-x'"},
               {"--devices=moon", "--devices takes no 'moon'"},
               {"--gpu=moon", "--devices takes no 'moon'"}};
    kiln_cli checked = cli;
    checked.checks = checks;
    checked.common_checks = common_checks;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char word[40];
        snprintf(word, sizeof word, "%s", bad[i].word);
        char *argv[] = {program, m, word, NULL};
        assert_int_equal(kiln_cli_parse(&cli, 3, argv, &parsed, &err), KILN_OK);
        assert_int_equal(kiln_cli_parse(&checked, 3, argv, &parsed, &err), KILN_E_USAGE);
        assert_string_equal(err.msg, bad[i].says);
    }
    assert_int_equal(kiln_opt_set(&checked, "camera", "a", "stored", &err), KILN_OK);
    assert_int_equal(kiln_opt_set(&checked, "camera", "none", "stored", &err), KILN_E_USAGE);
    assert_string_equal(err.msg, "stored: --camera: there is no camera 'none'");
    assert_int_equal(kiln_opt_set(&checked, "add", "x|-y", "stored", &err), KILN_E_USAGE);
    assert_int_equal(kiln_opt_set(&checked, "add", "", "stored", &err), KILN_OK);
}

static void a_text_with_a_range_is_a_list_of_its_words(void **state)
{
    (void)state;
    assert_int_equal(parse("m"), KILN_OK);
    assert_string_equal(o.kinds, "a");
    assert_int_equal(parse("m --kinds=c-d,a"), KILN_OK);
    assert_string_equal(o.kinds, "c-d,a");
    assert_refused("m --kinds=a,x",
                   "--kinds takes one or several of a|b|c-d, separated by commas, not 'a,x'");
    assert_refused("m --kinds=a,,b", "--kinds takes one or several");
    assert_refused("m --kinds=,", "--kinds takes one or several");
    char *text = printed(kiln_cli_help_json);
    assert_non_null(strstr(text, "\"named\": false, \"title\": true}"));
    free(text);
}

static void an_underscore_stands_for_a_hyphen(void **state)
{
    (void)state;
    assert_int_equal(parse("m --min_opacity=0.25 --dry_run --no_merge"), KILN_OK);
    assert_true(o.opacity == 0.25);
    assert_true(o.dry && !o.merge);
    assert_true(kiln_opt_given(&cli, "min-opacity"));
    assert_refused("m --min_opacty 3",
                   "unknown option '--min_opacty', did you mean '--min-opacity'?");
    assert_refused("m --min_opacity=7", "--min-opacity takes a number from 0 to 1");
    assert_refused("m --_rows=1", "unknown option");
    char *text = printed(print_help_all);
    assert_null(strchr(text, '_'));
    free(text);
}

static void a_row_has_the_kind_of_its_storage(void **state)
{
    static const kiln_opt rows[] = {
        KILN_OPTION_BOOL("x", &o.dry, ""),         KILN_OPTION_NUMBER("x", &o.k, "", ""),
        KILN_OPTION_NUMBER("x", &o.rows, "", ""),  KILN_OPTION_NUMBER("x", &o.free, "", ""),
        KILN_OPTION_NUMBER("x", &o.cache, "", ""), KILN_OPTION_NUMBER("x", &o.move, "", ""),
        KILN_OPTION_NUMBER("x", o.move, "", ""),   KILN_OPTION_ENUM("x", &o.format, "", "a|b", ""),
        KILN_OPTION_TEXT("x", &o.camera, "", ""),  KILN_OPTION_LIST("x", &o.add, "", ""),
        KILN_OPTION_PATH("x", &o.out, "", ""),
    };
    const kiln_opt_kind kinds[] = {KILN_OPT_BOOL, KILN_OPT_U32,   KILN_OPT_U64,   KILN_OPT_F64,
                                   KILN_OPT_SIZE, KILN_OPT_F64X3, KILN_OPT_F64X3, KILN_OPT_ENUM,
                                   KILN_OPT_TEXT, KILN_OPT_LIST,  KILN_OPT_PATH};
    enum { N_KINDS = sizeof kinds / sizeof *kinds };
    (void)state;
    assert_int_equal(sizeof rows / sizeof *rows, N_KINDS);
    for (size_t i = 0; i < N_KINDS; i++) assert_int_equal(rows[i].kind, kinds[i]);
}

static void options_that_are_equally_near_are_all_named(void **state)
{
    static const kiln_opt two[] = {
        KILN_OPTION_ENUM("render-format", &o.format, "WORD", "png|npy", "of pictures",
                         .def = "png"),
        KILN_OPTION_ENUM("export-format", &o.format, "WORD", "png|npy", "of files", .def = "png"),
        KILN_OPTION_END,
    };
    kiln_cli both = {.program = "kiln-two", .options = two};
    char *argv[] = {(char[]){"kiln-two"}, (char[]){"--format=npy"}};
    (void)state;
    assert_int_equal(kiln_cli_parse(&both, 2, argv, &parsed, &err), KILN_E_USAGE);
    assert_string_equal(err.msg, "unknown option '--format', did you mean '--render-format' or "
                                 "'--export-format'? See 'kiln-two --help'");
    both.from_make = true;
    assert_int_equal(kiln_cli_parse(&both, 2, argv, &parsed, &err), KILN_E_USAGE);
    assert_string_equal(err.msg, "unknown option FORMAT, did you mean RENDER_FORMAT or "
                                 "EXPORT_FORMAT? See 'kiln-two --help'");
}

static void the_man_page_escapes_what_roff_would_eat(void **state)
{
    (void)state;
    char *text = printed(kiln_cli_man);
    assert_non_null(strstr(text, "\n\\&.leading dot and a \\e backslash\n"));
    assert_non_null(strstr(text, "\\-\\-min\\-opacity"));
    assert_non_null(strstr(text, "\n.SH EXIT STATUS\n"));
    free(text);
}

static void asking_for_help_ends_the_reading(void **state)
{
    (void)state;
    int was = dup(1);
    assert_true(was >= 0);
    assert_non_null(freopen("/dev/null", "w", stdout));
    kiln_status st = parse("--version --no-such-thing");
    (void)fflush(stdout);
    assert_true(dup2(was, 1) >= 0);
    close(was);
    assert_int_equal(st, KILN_OK);
    assert_true(parsed.done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers_may_be_off_and_shares_have_a_sign),
        cmocka_unit_test(defaults_come_from_the_table),
        cmocka_unit_test(every_spelling_of_an_option_is_read),
        cmocka_unit_test(values_out_of_range_are_refused_with_what_is_taken),
        cmocka_unit_test(a_wrong_command_line_says_what_is_wrong),
        cmocka_unit_test(another_word_is_no_slip),
        cmocka_unit_test(a_value_longer_than_a_path_is_refused),
        cmocka_unit_test(text_and_value_are_inverse),
        cmocka_unit_test(every_text_can_be_set_again),
        cmocka_unit_test(a_stored_text_is_checked_copied_and_not_given),
        cmocka_unit_test(a_list_keeps_its_order_and_every_byte),
        cmocka_unit_test(a_list_can_be_emptied_and_begins_anew_on_each_line),
        cmocka_unit_test(a_variable_of_make_is_a_whole_list),
        cmocka_unit_test(a_list_has_a_limit),
        cmocka_unit_test(three_numbers_are_one_value),
        cmocka_unit_test(given_knows_aliases_flags_and_only_this_line),
        cmocka_unit_test(a_tilde_in_front_becomes_home_in_paths_only),
        cmocka_unit_test(sizes_are_read_as_people_write_them),
        cmocka_unit_test(help_is_a_line_for_each_option),
        cmocka_unit_test(help_fits_80_columns_and_hides_what_is_hidden),
        cmocka_unit_test(the_listing_for_programs_has_aliases_and_flags),
        cmocka_unit_test(a_check_sees_each_text_that_is_set),
        cmocka_unit_test(a_text_with_a_range_is_a_list_of_its_words),
        cmocka_unit_test(an_underscore_stands_for_a_hyphen),
        cmocka_unit_test(a_row_has_the_kind_of_its_storage),
        cmocka_unit_test(options_that_are_equally_near_are_all_named),
        cmocka_unit_test(the_man_page_escapes_what_roff_would_eat),
        cmocka_unit_test(asking_for_help_ends_the_reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
