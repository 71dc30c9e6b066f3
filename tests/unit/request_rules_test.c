/* request_rules -- which Host and Origin kiln-serve answers, which paths are looked at, and what a
 * pattern means; the token. */
#include "stages/serve/request_rules.h"
#include "stages/serve/routes.h"
#include "stages/serve/token.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const kiln_serve_address here = {.listen = "127.0.0.1", .port = 8123},
                                everywhere = {.listen = "0.0.0.0", .any = true, .port = 8123},
                                lan = {.listen = "192.168.1.7", .port = 8123},
                                six = {.listen = "fe80::1", .port = 80};

static void names_of_this_machine_are_answered(void **state)
{
    (void)state;
    static const char *const own[] = {"127.0.0.1:8123", "localhost:8123", "LOCALHOST:8123",
                                      "[::1]:8123"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        assert_true(kiln_host_is_ours(&here, own[i]));
    assert_true(kiln_host_is_ours(&lan, "192.168.1.7:8123"));
    assert_true(kiln_host_is_ours(&lan, "localhost:8123"));
    assert_true(kiln_host_is_ours(&six, "[FE80::1]:80"));
    assert_true(kiln_host_is_ours(&six, "[fe80::1]")); /* a browser leaves port 80 out */
    assert_true(kiln_host_is_ours(&everywhere, "10.1.2.3:8123"));
    assert_true(kiln_host_is_ours(&everywhere, "[2001:db8::5]:8123"));
}

static void other_names_are_not(void **state)
{
    (void)state;
    static const char *const other[] = {"",
                                        ":8123",
                                        "127.0.0.1",
                                        "127.0.0.1:",
                                        "127.0.0.1:81234",
                                        "127.0.0.1:08123",
                                        "127.0.0.1:8123 ",
                                        "127.0.0.1:8123:8123",
                                        "evil.example:8123",
                                        "localhost.evil.example:8123",
                                        "localhost:8124",
                                        "::1:8123",
                                        "10.1.2.3:8123",
                                        "192.168.1.7:8123",
                                        "[127.0.0.1]:8123"};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        assert_false(kiln_host_is_ours(&here, other[i]));
    assert_false(kiln_host_is_ours(&here, "0.0.0.0:8123"));
    /* a name is what rebinding needs */
    assert_false(kiln_host_is_ours(&everywhere, "evil.example:8123"));
    assert_false(kiln_host_is_ours(&everywhere, "10.1.2.3.evil:8123"));
    assert_false(kiln_host_is_ours(&everywhere, "[evil]:8123"));
    assert_false(kiln_host_is_ours(&lan, "192.168.1.8:8123"));
    char longest[4096];
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_false(kiln_host_is_ours(&here, longest));
}

static void pages_of_the_same_origin_are_answered(void **state)
{
    (void)state;
    assert_true(kiln_origin_is_ours("http://localhost:8123", "localhost:8123"));
    assert_true(kiln_origin_is_ours("http://LOCALHOST:8123", "localhost:8123"));
    static const char *const other[] = {"",
                                        "null",
                                        "localhost:8123",
                                        "https://localhost:8123",
                                        "http://localhost:8124",
                                        "http://127.0.0.1:8123",
                                        "http://localhost:8123/",
                                        "http://localhost:8123.evil"};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        assert_false(kiln_origin_is_ours(other[i], "localhost:8123"));
}

static void paths_are_plain(void **state)
{
    (void)state;
    static const char *const plain[] = {"/", "/a/b.json", "/A-Z_09/x.y"};
    static const char *const not_plain[] = {"",          "//",   "/a//b", "/../a", "/a/..",
                                            "/a%2e",     "/a b", "/a?b",  "/a\\b", "/\x01",
                                            "/\xc3\xa9", "/a;b", "/a~"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        assert_true(kiln_target_is_plain(plain[i]));
    for (size_t i = 0; i < sizeof not_plain / sizeof *not_plain; i++)
        assert_false(kiln_target_is_plain(not_plain[i]));
    char longest[KILN_TARGET_MAX + 2];
    memset(longest, 'a', sizeof longest);
    longest[KILN_TARGET_MAX + 1] = '\0';
    assert_false(kiln_target_is_plain(longest));
    longest[KILN_TARGET_MAX] = '\0';
    assert_true(kiln_target_is_plain(longest));
}

#define DIGEST "0123456789abcdef0123456789abcdef"

static void patterns_take_numbers_digests_and_names(void **state)
{
    (void)state;
    kiln_path_parts p;
    assert_true(kiln_path_matches("a/#.jpg", "a/4294967295.jpg", &p));
    assert_int_equal(p.number, 4294967295u);
    assert_true(kiln_path_matches("a/#.jpg", "a/0.jpg", &p));
    assert_true(kiln_path_matches("s/@/#.ply", "s/" DIGEST "/12.ply", &p));
    assert_int_equal(p.number, 12);
    assert_memory_equal(p.digest, DIGEST, 32);
    assert_true(kiln_path_matches("v/*", "v/name.js", &p));
    assert_string_equal(p.name, "name.js");
    static const char *const numbers[] = {
        "a/.jpg",   "a/00.jpg",  "a/01.jpg", "a/4294967296.jpg", "a/99999999999999999999.jpg",
        "a/-1.jpg", "a/+1.jpg",  "a/1",      "a/1.jpg/",         "a/1.jpgx",
        "b/1.jpg",  "a/1e3.jpg", ""};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        assert_false(kiln_path_matches("a/#.jpg", numbers[i], &p));
    assert_false(kiln_path_matches("s/@/#.ply", "s/0123456789ABCDEF0123456789abcdef/1.ply", &p));
    assert_false(kiln_path_matches("s/@/#.ply", "s/0123/1.ply", &p));
    assert_false(kiln_path_matches("v/*", "v/", &p));
    assert_false(kiln_path_matches("v/*", "v/a/b", &p));
}

static void each_route_has_one_path(void **state)
{
    (void)state;
    kiln_path_parts p;
    assert_ptr_equal(kiln_route_find("state.json", &p)->make, kiln_answer_state);
    assert_ptr_equal(kiln_route_find("splats/" DIGEST "/7.ply", &p)->make, kiln_answer_splats);
    assert_ptr_equal(kiln_route_find("heat/" DIGEST ".webp", &p)->make, kiln_answer_heat);
    assert_memory_equal(p.digest, DIGEST, 32);
    assert_null(kiln_route_find("heat/3.webp", &p));
    assert_null(kiln_route_find("", &p));
    assert_null(kiln_route_find("state.jso", &p));
    assert_null(kiln_route_find("state.json/", &p));
}

/* DESIGN.md writes DIGEST, INDEX or KEY where a pattern has @ or #: what stands before that, and
 * the suffix. */
static void each_route_is_in_the_page(void **state)
{
    (void)state;
    static char page[1 << 16];
    FILE *f = fopen("stages/serve/DESIGN.md", "r");
    assert_non_null(f);
    page[fread(page, 1, sizeof page - 1, f)] = '\0';
    assert_int_equal(fclose(f), 0);
    for (const kiln_route *r = kiln_routes; r->pattern; r++) {
        char begins[80];
        snprintf(begins, sizeof begins, "`%.*s", (int)strcspn(r->pattern, "@#"), r->pattern);
        if (!strstr(page, begins))
            fail_msg("stages/serve/DESIGN.md has no line of the address '%s'", r->pattern);
    }
}

static void tokens_are_long_new_and_compared_whole(void **state)
{
    (void)state;
    char a[KILN_TOKEN_LENGTH + 1], b[KILN_TOKEN_LENGTH + 1];
    kiln_error err = {0};
    assert_int_equal(kiln_token_make(a, &err), KILN_OK);
    assert_int_equal(kiln_token_make(b, &err), KILN_OK);
    assert_int_equal(strspn(a, "0123456789abcdef"), 32);
    assert_string_not_equal(a, b);
    assert_true(kiln_token_equal(a, a, 32));
    assert_false(kiln_token_equal(a, b, 32));
    assert_false(kiln_token_equal(a, a, 31));
    assert_false(kiln_token_equal(a, a, 33));
    assert_false(kiln_token_equal(a, "", 0));
    for (int i = 0; i < KILN_TOKEN_LENGTH; i++) {
        memcpy(b, a, sizeof b);
        b[i] = b[i] == '0' ? '1' : '0';
        assert_false(kiln_token_equal(a, b, 32));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_this_machine_are_answered),
        cmocka_unit_test(other_names_are_not),
        cmocka_unit_test(pages_of_the_same_origin_are_answered),
        cmocka_unit_test(paths_are_plain),
        cmocka_unit_test(patterns_take_numbers_digests_and_names),
        cmocka_unit_test(each_route_has_one_path),
        cmocka_unit_test(each_route_is_in_the_page),
        cmocka_unit_test(tokens_are_long_new_and_compared_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
