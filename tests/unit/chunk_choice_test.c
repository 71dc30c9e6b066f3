/* chunk_choice_test -- what a pattern of --chunks takes, compared with a matcher that tries
 * everything; lists of names, places and patterns. */
#include "stages/select/chunk_choice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void levels_are_those_of_paths(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *name;
        bool matches;
    } cases[] = {
        {"/0/*", "/0/3", true},
        {"/0/*", "/0/3-5", true},
        {"/0/*", "/0/", true},
        {"/0/*", "/0/3/1", false},
        {"/0/**", "/0/3/1", true},
        {"/0/**", "/0", false},
        {"/**/5", "/0/3/5", true},
        {"/**/5", "/5", false}, /* its slashes are two */
        {"**5", "/5", true},
        {"/0/?", "/0/3", true},
        {"/0?3", "/0/3", false},
        {"/0/[2-4]", "/0/3", true},
        {"/0/[2-4]", "/0/5", false},
        {"/0/[!2-4]", "/0/5", true},
        {"/0/[^2-4]", "/0/3", false},
        {"/0[!1]3", "/0/3", false},
        {"/0/[]3]", "/0/3", true},
        {"/0/[3", "/0/[3", true},
        {"/0/\\*", "/0/*", true},
        {"/0/\\*", "/0/3", false},
        {"*", "00000012", true},
        {"*", "/0", false},
        {"**", "/0/1/2", true},
        {"/*/*/*", "/0/1/2", true},
        {"/*/*/*", "/0/1", false},
        {"/**/2*", "/0/2/7/2", true}, /* the first 2 is not the last */
        {"/**/*7", "/0/17/2/27", true},
        {"/**/*7", "/0/17/2", false},
        {"", "", true},
        {"", "/0", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (kiln_pattern_matches(cases[i].pattern, cases[i].name) != cases[i].matches)
            fail_msg("'%s' and '%s'", cases[i].pattern, cases[i].name);
}

/* By the definition. */
static bool tries(const char *p, const char *name)
{
    if (*p == '*') {
        const bool deep = p[1] == '*';
        const char *rest = p + strspn(p, "*");
        if (tries(rest, name)) return true;
        return *name && (deep || *name != '/') && tries(p, name + 1);
    }
    if (!*p || !*name) return !*p && !*name;
    return (*p == '?' ? *name != '/' : *p == *name) && tries(p + 1, name + 1);
}

static uint64_t state_of_random = 88172645463325252u;
static void random_text(const char *letters, char *out, unsigned most)
{
    unsigned n;
    state_of_random ^= state_of_random << 13;
    state_of_random ^= state_of_random >> 7;
    state_of_random ^= state_of_random << 17;
    n = (unsigned)(state_of_random >> 40) % (most + 1);
    for (unsigned i = 0; i < n; i++) {
        state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
        out[i] = letters[(state_of_random >> 33) % strlen(letters)];
    }
    out[n] = '\0';
}

static void random_patterns_are_those_of_the_definition(void **state)
{
    (void)state;
    unsigned matched = 0;
    for (int i = 0; i < 400000; i++) {
        char pattern[16], name[16];
        random_text("/12**?", pattern, 8);
        random_text("/12", name, 8);
        const bool got = kiln_pattern_matches(pattern, name);
        if (got != tries(pattern, name)) fail_msg("'%s' and '%s'", pattern, name);
        matched += got;
    }
    assert_true(matched > 20000);
}

static kiln_chunk chunks[] = {
    {.name = "/0/1"}, {.name = "/0/2.0"}, {.name = "/0/2.1"}, {.name = "/1/1"}, {.name = "#7"}};
static const kiln_layer layer = {.kind = "baked", .n_chunks = 5, .chunks = chunks};
static const kiln_layer *const layers[] = {&layer, &layer};

static void choose(const char *text, const uint8_t expected[5])
{
    kiln_error err = {0};
    uint8_t chosen[5] = {0};
    if (kiln_chunks_choose(layers, 1, text, chosen, &err) != KILN_OK) fail_msg("%s", err.msg);
    assert_memory_equal(chosen, expected, 5);
}

static void names_places_and_patterns_are_chosen(void **state)
{
    (void)state;
    choose(NULL, (uint8_t[]){1, 1, 1, 1, 1});
    choose("/0/1", (uint8_t[]){1, 0, 0, 0, 0});
    choose("#1,#3", (uint8_t[]){0, 1, 0, 1, 0});
    choose("/0/2.*,#3", (uint8_t[]){0, 1, 1, 1, 0});
    choose("/**", (uint8_t[]){1, 1, 1, 1, 0});
    choose("/*/1,/0/1", (uint8_t[]){1, 0, 0, 1, 0});
}

static void an_item_counts_for_every_layer(void **state)
{
    (void)state;
    static kiln_chunk others[] = {{.name = "/5"}, {.name = "/1/1"}};
    static const kiln_layer other = {.kind = "baked", .n_chunks = 2, .chunks = others};
    const kiln_layer *const both[] = {&layer, &other};
    kiln_error err = {0};
    uint8_t chosen[7] = {0};
    assert_int_equal(kiln_chunks_choose(both, 2, "/1/*,#0", chosen, &err), KILN_OK);
    assert_memory_equal(chosen, ((uint8_t[]){1, 0, 0, 1, 0, 1, 1}), 7);
    /* only the second has it */
    assert_int_equal(kiln_chunks_choose(both, 2, "/5", chosen, &err), KILN_OK);
    memset(chosen, 0, sizeof chosen);
    assert_int_equal(kiln_chunks_choose(both, 2, NULL, chosen, &err), KILN_OK);
    assert_memory_equal(chosen, ((uint8_t[]){1, 1, 1, 1, 1, 1, 1}), 7);
}

static void items_without_a_chunk_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "/2/*", "/0/1,", "", "#5", "#7", "#", "#-1", "#1x", "#99999999999999999999", "/0/1,/0/3"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        kiln_error err = {0};
        uint8_t chosen[5] = {0};
        if (kiln_chunks_choose(layers, 1, texts[i], chosen, &err) != KILN_E_USAGE)
            fail_msg("'%s' was taken", texts[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_are_those_of_paths),
        cmocka_unit_test(random_patterns_are_those_of_the_definition),
        cmocka_unit_test(names_places_and_patterns_are_chosen),
        cmocka_unit_test(an_item_counts_for_every_layer),
        cmocka_unit_test(items_without_a_chunk_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
