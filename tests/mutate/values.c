/* values -- what a hostile cell holds: the ends of every type, texts that a terminal or a path
 * takes for more than text, and values that are near the one that was there. */
#include "tests/mutate/mutate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t hostile_number(mutation *m)
{
    static const uint64_t numbers[] = {0,
                                       1,
                                       2,
                                       3,
                                       7,
                                       15,
                                       16,
                                       255,
                                       256,
                                       65535,
                                       65536,
                                       65537,
                                       INT32_MAX,
                                       1u << 31,
                                       UINT32_MAX,
                                       UINT64_C(1) << 32,
                                       UINT64_C(1) << 40,
                                       UINT64_C(1) << 53,
                                       UINT64_C(1) << 62,
                                       INT64_MAX,
                                       UINT64_C(1) << 63,
                                       UINT64_MAX,
                                       UINT64_MAX - 1,
                                       67108864,
                                       67108865};
    return numbers[below(m, sizeof numbers / sizeof *numbers)];
}

static double hostile_real(mutation *m)
{
    const double reals[] = {0.5,
                            -0.5,
                            -0.0,
                            1e-320,
                            1e-38,
                            1e38,
                            3.5e38,
                            1e308,
                            -1e308,
                            (double)INFINITY,
                            -(double)INFINITY,
                            1e19,
                            -1,
                            9.2e18,
                            1e-9};
    return reals[below(m, sizeof reals / sizeof *reals)];
}

const char *hostile_name(mutation *m, size_t *bytes)
{
    static char text[VALUE_TEXT];
    static const char *const names[] = {"",
                                        ".",
                                        "..",
                                        "/",
                                        "../../ESCAPED/evil",
                                        "../victims/victim",
                                        "a/../../../victims/victim",
                                        "a//b/./c",
                                        "x\x1b]0;pwned\x07\nkiln-import: done",
                                        "\x1b[2J\x1b[31m",
                                        "line\nkiln-verify: all is well",
                                        "\xc2\x9b\x33\x31m",
                                        "\xe2\x80\xae gnp.x",
                                        "\xff\xfe not UTF-8 \x80",
                                        "%s%n%25n%x",
                                        "means",
                                        "source",
                                        "baked",
                                        "import",
                                        "cam0",
                                        "a b'c\"d;--",
                                        "/dev/stdout",
                                        "/proc/self/mem",
                                        "{\"a\": [1e999, {}]}",
                                        "-",
                                        "--force",
                                        "nan",
                                        "inf",
                                        "-inf",
                                        "1e39",
                                        "0x10",
                                        "99999999999999999999",
                                        "NULL",
                                        "off"};
    enum { N = sizeof names / sizeof *names };
    const uint64_t which = below(m, N + 6);
    if (which < N) {
        (void)snprintf(text, sizeof text, "%s", names[which]);
    } else if (which < N + 2) {
        (void)snprintf(text, sizeof text, "%s/victim%s", m->victims, chance(m, 50) ? ".png" : "");
    } else if (which == N + 2) {
        static const char cut[] = "cut\0\x1b[31mhidden";
        memcpy(text, cut, sizeof cut);
        *bytes = sizeof cut - 1;
        return text;
    } else {
        static const size_t sizes[] = {63, 64, 95, 96, 1024, 1025, 4095, 4096, 100000};
        const size_t n = sizes[below(m, sizeof sizes / sizeof *sizes)];
        memset(text, chance(m, 50) ? 'A' : '/', n);
        text[n] = '\0';
    }
    *bytes = strlen(text);
    return text;
}

static void bind_text(mutation *m, sqlite3_stmt *s, int i)
{
    size_t bytes;
    const char *text = hostile_name(m, &bytes);
    (void)sqlite3_bind_text64(s, i, text, bytes, SQLITE_TRANSIENT, SQLITE_UTF8);
    say("text of %zu bytes beginning '%.40s'", bytes, text);
}

static void bind_blob(mutation *m, sqlite3_stmt *s, int i)
{
    static const size_t sizes[] = {0, 1, 8, 15, 16, 16, 16, 17, 24, 256};
    unsigned char bytes[256];
    const size_t n = sizes[below(m, sizeof sizes / sizeof *sizes)];
    const bool zeros = chance(m, 30);
    for (size_t k = 0; k < n; k++) bytes[k] = zeros ? 0 : (unsigned char)any(m);
    (void)sqlite3_bind_blob(s, i, bytes, (int)n, SQLITE_TRANSIENT);
    say("%zu %s bytes", n, zeros ? "zero" : "random");
}

static void bind_near(mutation *m, sqlite3_stmt *s, int i, sqlite3_value *was)
{
    const int64_t steps[] = {1, -1, 2, 16, -16, 1000};
    const int64_t step = steps[below(m, sizeof steps / sizeof *steps)];
    if (sqlite3_value_type(was) == SQLITE_FLOAT) {
        const double factors[] = {-1, 0.5, 2, 1000, 1e-6, 1e9};
        const double v =
            sqlite3_value_double(was) * factors[below(m, sizeof factors / sizeof *factors)];
        (void)sqlite3_bind_double(s, i, v);
        say("%.17g, was %.17g", v, sqlite3_value_double(was));
    } else {
        const int64_t v = (int64_t)((uint64_t)sqlite3_value_int64(was) + (uint64_t)step);
        (void)sqlite3_bind_int64(s, i, v);
        say("%lld, was %lld", (long long)v, (long long)sqlite3_value_int64(was));
    }
}

static void bind_number(mutation *m, sqlite3_stmt *s, int i)
{
    const bool negative = chance(m, 25);
    const int64_t v = (int64_t)(negative ? 0 - hostile_number(m) : hostile_number(m));
    (void)sqlite3_bind_int64(s, i, v);
    say("%lld", (long long)v);
}

static void bind_real(mutation *m, sqlite3_stmt *s, int i)
{
    const double v = hostile_real(m);
    (void)sqlite3_bind_double(s, i, v);
    say("%g", v);
}

/* Mostly of the type that stands there: what has another one is refused sooner. */
void bind_value(mutation *m, sqlite3_stmt *s, int i, sqlite3_value *was)
{
    int type = was && chance(m, 80) ? sqlite3_value_type(was)
                                    : (int[]){SQLITE_NULL, SQLITE_INTEGER, SQLITE_FLOAT,
                                              SQLITE_TEXT, SQLITE_BLOB}[below(m, 5)];
    if (was && type == sqlite3_value_type(was) &&
        (type == SQLITE_INTEGER || type == SQLITE_FLOAT) && chance(m, 30)) {
        bind_near(m, s, i, was);
        return;
    }
    switch (type) {
    case SQLITE_INTEGER:
        bind_number(m, s, i);
        break;
    case SQLITE_FLOAT:
        bind_real(m, s, i);
        break;
    case SQLITE_TEXT:
        bind_text(m, s, i);
        break;
    case SQLITE_BLOB:
        bind_blob(m, s, i);
        break;
    default:
        (void)sqlite3_bind_null(s, i);
        say("NULL");
    }
}
