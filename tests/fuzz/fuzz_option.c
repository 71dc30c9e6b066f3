/* fuzz_option -- values of options: the text of what was taken is taken again and gives the same
 * text, because it is what the manifest stores and unit keys hash. The last byte chooses the
 * option. */
#include "tests/fuzz/fuzz.h"

#include "base/file.h"
#include "base/option.h"

#include <stdlib.h>
#include <string.h>

static struct {
    bool flag;
    uint32_t count, choice;
    uint64_t seed;
    double real, part, off, three[3];
    kiln_size size;
} value;

/* Texts, paths and lists are not here: what they are given is kept as it is, for as long as the
 * process lives. */
static const kiln_opt table[] = {
    KILN_OPTION_BOOL("flag", &value.flag, "a switch"),
    KILN_OPTION_NUMBER("count", &value.count, "N", "a number of something", .def = "3",
                       .range = "1..32"),
    KILN_OPTION_NUMBER("seed", &value.seed, "N", "a large number"),
    KILN_OPTION_NUMBER("real", &value.real, "X", "any number"),
    KILN_OPTION_NUMBER("part", &value.part, "X", "a share", .def = "1/255", .range = "0..1"),
    KILN_OPTION_NUMBER("off", &value.off, "X", "a number, off or auto", .def = "off",
                       .range = "0..|off|auto"),
    KILN_OPTION_NUMBER("size", &value.size, "SIZE", "a size", .def = "80%"),
    KILN_OPTION_NUMBER("three", &value.three, "X,Y,Z", "three numbers", .def = "0,0,0",
                       .range = "-1e300..1e300"),
    KILN_OPTION_ENUM("choice", &value.choice, "WORD", "a|b|png16|auto", "one of several",
                     .def = "b"),
    KILN_OPTION_END,
};
enum { N_OPTIONS = sizeof table / sizeof *table - 1 };
static const kiln_cli cli = {
    .program = "fuzz", .summary = "options", .positionals = "", .options = table};

static void take_text_again(const kiln_opt *o)
{
    static char text[KILN_PATH_MAX], again[KILN_PATH_MAX];
    kiln_error err = {0};
    HOLDS(kiln_opt_text(o, text, sizeof text) == text && strlen(text) < sizeof text);
    HOLDS(kiln_opt_set(&cli, o->name, text, "stored parameter", &err) == KILN_OK);
    HOLDS(strcmp(text, kiln_opt_text(o, again, sizeof again)) == 0);
}

void kiln_fuzz_option(const void *argument, const uint8_t *data, size_t size)
{
    const kiln_opt *o = &table[kiln_fuzz_tail(data, size, 0, 1) % N_OPTIONS];
    char *text = calloc(size + 1, 1);
    kiln_error err = {0};
    (void)argument;
    HOLDS(text);
    if (size > 1) memcpy(text, data, size - 1);
    const kiln_status st = kiln_opt_set(&cli, o->name, text, "stored parameter", &err);
    if (st == KILN_OK)
        take_text_again(o);
    else
        kiln_fuzz_refusal(st, &err);
    free(text);
}

void kiln_fuzz_size(const void *argument, const uint8_t *data, size_t size)
{
    char *text = calloc(size + 1, 1), people[32];
    kiln_size s = {0}, t = {0};
    kiln_error err = {0};
    (void)argument;
    HOLDS(text);
    if (size) memcpy(text, data, size);
    const kiln_status st = kiln_size_parse(text, &s, &err);
    if (st != KILN_OK) {
        kiln_fuzz_refusal(st, &err);
    } else {
        HOLDS(kiln_size_parse(text, &t, &err) == KILN_OK && s.bytes == t.bytes &&
              s.percent == t.percent);
        const uint64_t bytes = kiln_size_resolve(s, UINT64_C(1) << 40);
        HOLDS(s.percent < 0 ? bytes == s.bytes : bytes <= UINT64_C(1) << 40);
        HOLDS(strlen(kiln_size_text(bytes, people)) < sizeof people);
    }
    free(text);
}
