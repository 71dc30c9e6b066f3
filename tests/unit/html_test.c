/* html -- what text of strangers may not do to a page: be markup, leave its attribute, reorder what
 * is read; and SHA-256, by which the page's policy names its own script. */
#include "stages/page/html.h"
#include "stages/page/sha256.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void assert_written(kiln_html *h, const char *want)
{
    assert_int_equal(kiln_html_status(h), KILN_OK);
    assert_int_equal(h->out.size, strlen(want));
    assert_memory_equal(h->out.data, want, strlen(want));
    kiln_html_release(h);
    kiln_html_init(h, h->err);
}

static kiln_error err;
static kiln_html h;

static int start(void **state)
{
    (void)state;
    kiln_html_init(&h, &err);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    kiln_html_release(&h);
    return 0;
}

static void text_is_never_markup(void **state)
{
    (void)state;
    kiln_html_text(&h, "<script>alert('x')</script> & \"q\" `t`");
    assert_written(
        &h, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;q&quot; &#96;t&#96;");
    kiln_html_text(&h, "]]></style><!--");
    assert_written(&h, "]]&gt;&lt;/style&gt;&lt;!--");
    kiln_html_text(&h, "G\xc3\xa4rten");
    assert_written(&h, "G\xc3\xa4rten");
    kiln_html_text(&h, NULL);
    kiln_html_text(&h, "");
    assert_int_equal(h.out.size, 0);
}

static void text_reorders_nothing_and_is_utf8(void **state)
{
    (void)state;
    kiln_html_text(&h, "a\xe2\x80\xae\x1b[2J\xff\n");
    assert_written(&h, "a\\u{202e}\\x1b[2J\\xff\\n");
}

static void long_text_is_whole(void **state)
{
    (void)state;
    static char in[3001], want[12001];
    for (int i = 0; i < 3000; i++) {
        in[i] = '<';
        memcpy(want + 4 * i, "&lt;", 4);
    }
    kiln_html_text(&h, in);
    assert_written(&h, want);
}

static void a_value_stays_in_its_attribute(void **state)
{
    (void)state;
    KILN_HTML(&h, "<a");
    KILN_ATTR(&h, "title", "x\" onload=\"alert(1)");
    KILN_ATTR_XY(&h, "x", 1.5);
    KILN_ATTR_XY(&h, "y", NAN);
    KILN_HTML(&h, ">");
    assert_written(&h, "<a title=\"x&quot; onload=&quot;alert(1)\" x=\"1.5\" y=\"0\">");
}

static void numbers_are_for_people(void **state)
{
    (void)state;
    kiln_html_count(&h, 1234567);
    KILN_HTML(&h, "|");
    kiln_html_count(&h, 999);
    KILN_HTML(&h, "|");
    kiln_html_fixed(&h, 34.11949, 3);
    KILN_HTML(&h, "|");
    kiln_html_fixed(&h, (double)INFINITY, 3);
    KILN_HTML(&h, "|");
    kiln_html_short(&h, 0.025662);
    KILN_HTML(&h, "|");
    kiln_html_seconds(&h, 250);
    KILN_HTML(&h, "|");
    kiln_html_time(&h, 1795470251865196815);
    assert_written(&h,
                   "1,234,567|999|34.119|\xe2\x80\x93|0.02566|4 min 10 s|2026-11-23 21:44:11 UTC");
}

static void bytes_become_base64(void **state)
{
    (void)state;
    kiln_html_base64(&h, "f", 1);
    KILN_HTML(&h, "|");
    kiln_html_base64(&h, "fo", 2);
    KILN_HTML(&h, "|");
    kiln_html_base64(&h, "foobar", 6);
    assert_written(&h, "Zg==|Zm8=|Zm9vYmFy"); /* RFC 4648, 10 */
}

static void sha256_is_that_of_the_standard(void **state)
{
    (void)state;
    static const char *const text[] = {"", "abc",
                                       "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"};
    static const char *const want[] = {
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"};
    for (int i = 0; i < 3; i++) {
        unsigned char hash[32];
        kiln_sha256(text[i], strlen(text[i]), hash);
        kiln_html_hex(&h, hash, sizeof hash);
        assert_written(&h, want[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(text_is_never_markup, start, stop),
        cmocka_unit_test_setup_teardown(text_reorders_nothing_and_is_utf8, start, stop),
        cmocka_unit_test_setup_teardown(long_text_is_whole, start, stop),
        cmocka_unit_test_setup_teardown(a_value_stays_in_its_attribute, start, stop),
        cmocka_unit_test_setup_teardown(numbers_are_for_people, start, stop),
        cmocka_unit_test_setup_teardown(bytes_become_base64, start, stop),
        cmocka_unit_test_setup_teardown(sha256_is_that_of_the_standard, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
