/* quote -- what text from a file may not do to a terminal: forge a line, move the cursor, reorder
 * what is read. */
#include "base/log.h"
#include "base/quote.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void assert_quoted(const char *text, const char *want)
{
    char out[256];
    kiln_quote(out, sizeof out, text);
    assert_string_equal(out, want);
}

static void plain_text_stays(void **state)
{
    (void)state;
    assert_quoted("", "");
    assert_quoted("camera 'test/r_0', 100 %: C:\\photos", "camera 'test/r_0', 100 %: C:\\photos");
    assert_quoted("Gärten, 庭, \xf0\x9f\x8c\xb3", "Gärten, 庭, \xf0\x9f\x8c\xb3");
    assert_quoted("\xc2\xa0", "\xc2\xa0"); /* U+00A0 is the first behind the control characters */
}

static void control_bytes_are_named(void **state)
{
    (void)state;
    assert_quoted("a\nkiln-import: done\r", "a\\nkiln-import: done\\r");
    assert_quoted("\x1b]0;pwned\x07", "\\x1b]0;pwned\\x07");
    assert_quoted("\t\x01\x7f", "\\t\\x01\\x7f");
}

static void characters_that_act_are_named(void **state)
{
    (void)state;
    /* U+009B is CSI in one character */
    assert_quoted("\xc2\x80\xc2\x9b\x31m\xc2\x9f", "\\u{80}\\u{9b}1m\\u{9f}");
    assert_quoted("\xe2\x80\xae gpj.exe \xe2\x81\xa9", "\\u{202e} gpj.exe \\u{2069}");
    assert_quoted("\xe2\x80\xa8\xe2\x80\xaa\xe2\x81\xa6\xd8\x9c\xe2\x80\x8f",
                  "\\u{2028}\\u{202a}\\u{2066}\\u{61c}\\u{200f}");
    assert_quoted("\xe2\x80\xaf\xe2\x81\xa5", "\xe2\x80\xaf\xe2\x81\xa5"); /* their neighbours */
}

static void bytes_that_are_no_utf8_are_named(void **state)
{
    (void)state;
    assert_quoted("\x9b\x41\xff", "\\x9b"
                                  "A"
                                  "\\xff");
    assert_quoted("\xc3", "\\xc3");                   /* cut */
    assert_quoted("\xc0\x9b", "\\xc0\\x9b");          /* overlong */
    assert_quoted("\xed\xa0\x80", "\\xed\\xa0\\x80"); /* a surrogate */
    assert_quoted("\xe2\x80\n", "\\xe2\\x80\\n");
}

static void what_does_not_fit_is_cut_before_a_piece(void **state)
{
    char out[8];
    (void)state;
    kiln_quote(out, sizeof out, "abcd\x1b");
    assert_string_equal(out, "abcd"); /* the escape needs four bytes and there are three */
    kiln_quote(out, sizeof out,
               "abc\x1b"
               "d");
    assert_string_equal(out, "abc\\x1b");
    kiln_quote(out, 1, "abc");
    assert_string_equal(out, "");
    kiln_quote(out, 4, "ab\xc3\xa4");
    assert_string_equal(out, "ab");
}

/* ---- what a stream gets ---------------------------------------------------------------------- */
static FILE *catcher;
static int saved;

static void catch_stream(FILE *f)
{
    catcher = tmpfile();
    assert_non_null(catcher);
    assert_int_equal(fflush(f), 0);
    saved = dup(fileno(f));
    assert_true(saved >= 0 && dup2(fileno(catcher), fileno(f)) >= 0);
}

static const char *release(FILE *f)
{
    static char text[16384];
    assert_int_equal(fflush(f), 0);
    assert_true(dup2(saved, fileno(f)) >= 0);
    assert_int_equal(close(saved), 0);
    rewind(catcher);
    text[fread(text, 1, sizeof text - 1, catcher)] = '\0';
    assert_int_equal(fclose(catcher), 0);
    return text;
}

static void a_printed_line_is_one_line(void **state)
{
    (void)state;
    catch_stream(stdout);
    kiln_print("name %s, %d", "a\nb", 7);
    kiln_print_part("%s ", "\x1b[2J");
    kiln_print("%s", "end");
    kiln_print_gap();
    assert_string_equal(release(stdout), "name a\\nb, 7\n\\x1b[2J end\n\n");
}

static void a_long_line_is_whole(void **state)
{
    char text[3001], want[4 * 3000 + 2] = "";
    (void)state;
    memset(text, '\a', 3000);
    text[3000] = '\0';
    for (int i = 0; i < 3000; i++) memcpy(want + 4 * i, "\\x07", 4);
    want[sizeof want - 2] = '\n';
    catch_stream(stdout);
    kiln_print("%s", text);
    assert_string_equal(release(stdout), want);
}

static void assert_fits(const char *text, unsigned columns, const char *want)
{
    char out[256];
    kiln_quote_fit(out, sizeof out, text, columns);
    assert_string_equal(out, want);
}

static void a_name_that_is_too_wide_shows_its_end(void **state)
{
    (void)state;
    assert_fits("", 5, "     ");
    assert_fits("cam", 5, "cam  ");
    assert_fits("cam00", 5, "cam00");
    assert_fits("cam000", 5, "...00");
    assert_fits("a/very/long/name", 8, ".../name");
    /* three columns, six bytes */
    assert_fits("\xc3\xa4\xc3\xb6\xc3\xbc", 5, "\xc3\xa4\xc3\xb6\xc3\xbc  ");
    assert_fits("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\xa4\xc3\xb6\xc3\xbc", 5, "...\xc3\xb6\xc3\xbc");
    assert_fits("a\nb", 6, "a\\nb  ");
}

static void a_line_is_wrapped_at_blanks(void **state)
{
    (void)state;
    char line[400] = "";
    for (int i = 0; i < 20; i++) strcat(line, "a word, ");
    kiln_wrap(line, sizeof line);
    int lines = 0;
    for (char *at = strtok(line, "\n"); at; at = strtok(NULL, "\n"), lines++) {
        assert_true(strlen(at) <= KILN_COLUMNS);
        assert_int_equal(strncmp(at, "  ", 2) == 0, lines > 0);
    }
    assert_int_equal(lines, 3);
    char word[200] = "one ";
    memset(word + 4, 'x', 150); /* no blank in it: it stays whole, on a line of its own */
    word[154] = '\0';
    kiln_wrap(word, sizeof word);
    assert_int_equal(strncmp(word, "one\n  xx", 8), 0);
    assert_int_equal(strlen(word), 4 + 2 + 150);
}

static void json_keeps_its_layout_and_its_meaning(void **state)
{
    (void)state;
    catch_stream(stdout);
    kiln_print_json("{\n  \"a\": \"\x7f\xc2\x9b\xe2\x80\xae\xc3\xa4\"\n}");
    assert_string_equal(release(stdout), "{\n  \"a\": \"\\u007f\\u009b\\u202e\xc3\xa4\"\n}\n");
}

static void a_message_is_one_line(void **state)
{
    kiln_error err = {0};
    (void)state;
    assert_int_equal(
        kiln_fail(&err, KILN_E_INPUT, "no camera '%s'", "\x1b]0;pwned\x07\nkiln-import: done"),
        KILN_E_INPUT);
    kiln_log_init("kiln-x", KILN_LOG_VERBOSE);
    catch_stream(stderr);
    kiln_warn("%s", "a\n\x1b"
                    "b");
    kiln_say("%s", "\xc2\x9b");
    kiln_chat("%s", "\x7f");
    kiln_tell_error("kiln-y", "", &err);
    kiln_tell_error("kiln-y", "worker: ", &err);
    assert_string_equal(release(stderr),
                        "kiln-x: warning: a\\n\\x1b"
                        "b\n"
                        "kiln-x: \\u{9b}\n"
                        "kiln-x: \\x7f\n"
                        "kiln-y: no camera '\\x1b]0;pwned\\x07\\nkiln-import: done'\n"
                        "kiln-y: worker: no camera '\\x1b]0;pwned\\x07\\nkiln-import: done'\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text_stays),
        cmocka_unit_test(control_bytes_are_named),
        cmocka_unit_test(characters_that_act_are_named),
        cmocka_unit_test(bytes_that_are_no_utf8_are_named),
        cmocka_unit_test(what_does_not_fit_is_cut_before_a_piece),
        cmocka_unit_test(a_printed_line_is_one_line),
        cmocka_unit_test(a_long_line_is_whole),
        cmocka_unit_test(a_name_that_is_too_wide_shows_its_end),
        cmocka_unit_test(a_line_is_wrapped_at_blanks),
        cmocka_unit_test(json_keeps_its_layout_and_its_meaning),
        cmocka_unit_test(a_message_is_one_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
