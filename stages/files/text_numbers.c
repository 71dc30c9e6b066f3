/* text_numbers -- see the header.
 *
 * Most numbers in scene files have up to 19 digits and a small exponent. For these a product or
 * quotient of two doubles decides (W. D. Clinger, How to Read Floating Point Numbers Accurately,
 * 1990); the few others go to strtod_l and strtof_l, which take ten times as long. Both with a C
 * locale of our own: a program that embeds the library may have set any other, and then "0,5" would
 * be a number and "0.5" not. */
#include "stages/files/text_numbers.h"

#include "base/checked.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_number_blank(char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f'; }

bool kiln_token_next(kiln_token_line *w, const char **word, size_t *size)
{
    while (w->at < w->end && is_number_blank(*w->at)) w->at++;
    const char *start = w->at;
    while (w->at < w->end && !is_number_blank(*w->at)) w->at++;
    *word = start;
    *size = (size_t)(w->at - start);
    return *size > 0;
}

/* ---- the long way ---------------------------------------------------------------------------- */

static locale_t c_locale; /* of the process; glibc's is a constant and cannot fail */
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;
static void make_locale(void) { c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0); }

/* A NUL-terminated copy when the word can be a number at all. */
static kiln_number copy_token(const char *word, size_t size, char out[KILN_TOKEN_MAX + 1],
                              bool *literal)
{
    size_t sign = size && (word[0] == '-' || word[0] == '+');
    if (size > KILN_TOKEN_MAX) return KILN_NUMBER_TOO_LARGE;
    memcpy(out, word, size);
    out[size] = '\0';
    (void)pthread_once(&c_locale_once, make_locale);
    *literal = !(strcasecmp(out + sign, "nan") == 0 || strcasecmp(out + sign, "inf") == 0 ||
                 strcasecmp(out + sign, "infinity") == 0);
    if (!*literal) return KILN_NUMBER_OK;
    for (size_t i = 0; i < size; i++)
        if (!memchr("0123456789+-.eE", out[i], 15) || !out[i]) return KILN_NUMBER_NOT_ONE;
    return KILN_NUMBER_OK;
}

static kiln_number parse_f64_slowly(const char *word, size_t size, double *out)
{
    char token[KILN_TOKEN_MAX + 1], *end;
    bool literal;
    kiln_number r = copy_token(word, size, token, &literal);
    if (r != KILN_NUMBER_OK) return r;
    *out = strtod_l(token, &end, c_locale);
    if (end != token + size || size == 0) return KILN_NUMBER_NOT_ONE;
    return literal && !isfinite(*out) ? KILN_NUMBER_TOO_LARGE : KILN_NUMBER_OK;
}

/* strtof and not a cast of strtod: rounding twice may miss the nearest float. */
static kiln_number parse_f32_slowly(const char *word, size_t size, float *out)
{
    char token[KILN_TOKEN_MAX + 1], *end;
    bool literal;
    kiln_number r = copy_token(word, size, token, &literal);
    if (r != KILN_NUMBER_OK) return r;
    *out = strtof_l(token, &end, c_locale);
    if (end != token + size || size == 0) return KILN_NUMBER_NOT_ONE;
    return literal && !isfinite(*out) ? KILN_NUMBER_TOO_LARGE : KILN_NUMBER_OK;
}

/* ---- the short way --------------------------------------------------------------------------- */

typedef struct {
    uint64_t digits; /* the value is digits * 10^exponent, */
    int exponent;
    bool negative;
} decimal;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Digits from `at` on behind those of d; false when they are more than 19. Returns where they
 * end. */
static const char *take_digits(const char *at, const char *end, decimal *d, unsigned *n)
{
    for (; at < end && is_digit(*at); at++) {
        if (*n == 19) return NULL;
        d->digits = 10 * d->digits + (uint64_t)(*at - '0');
        *n += d->digits != 0; /* leading zeros are free */
    }
    return at;
}

/* [+-]digits[.digits][e[+-]digits] with no more than 19 digits and a short exponent; false:
 * something else, or longer. */
static bool take_decimal(const char *at, size_t size, decimal *d)
{
    const char *const end = at + size;
    unsigned n = 0;
    *d = (decimal){0};
    if (at < end && (*at == '-' || *at == '+')) d->negative = *at++ == '-';
    const char *from = at;
    at = take_digits(at, end, d, &n);
    size_t seen = at ? (size_t)(at - from) : 0;
    if (at && at < end && *at == '.') {
        from = ++at;
        at = take_digits(at, end, d, &n);
        if (at) d->exponent = -(int)(at - from);
        if (at) seen += (size_t)(at - from);
    }
    if (!at || seen == 0 || seen > 60) return false;
    if (at == end) return true;
    if (*at != 'e' && *at != 'E') return false;
    if (++at == end) return false;
    const bool minus = *at == '-';
    if (*at == '-' || *at == '+') at++;
    if (end - at < 1 || end - at > 3) return false;
    int e = 0;
    for (; at < end; at++) {
        if (!is_digit(*at)) return false;
        e = 10 * e + (*at - '0');
    }
    d->exponent += minus ? -e : e;
    return true;
}

enum { EXACT_POWER = 22 }; /* 10^22 is the largest power of ten that a double holds */
static const double powers[EXACT_POWER + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                               1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                               1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static bool has_exact_power(const decimal *d)
{
    return d->exponent >= -EXACT_POWER && d->exponent <= EXACT_POWER;
}

/* One rounding of digits, when they have more than 53 bits, and one of the product. */
static double scale(const decimal *d)
{
    const double v = (double)d->digits;
    return d->exponent < 0 ? v / powers[-d->exponent] : v * powers[d->exponent];
}

kiln_number kiln_parse_f64(const char *word, size_t size, double *out)
{
    decimal d;
    if (!take_decimal(word, size, &d) || d.digits >> 53 || !has_exact_power(&d))
        return parse_f64_slowly(word, size, out);
    const double v = scale(&d);
    *out = d.negative ? -v : v;
    return KILN_NUMBER_OK;
}

/* The double is within 1.5 ulp of the number. Rounding it gives the nearest float unless a border
 * between two floats lies so close: there the 29 bits that a float lacks are 1 and zeros. Only
 * floats of full precision have their border there. */
static bool rounds_well(double v)
{
    const uint64_t border = UINT64_C(1) << 28, lost = (border << 1) - 1, near = 4;
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return v == 0 || (v > 1.2e-38 && v < 3.4e38 && ((bits & lost) - (border - near)) > 2 * near);
}

kiln_number kiln_parse_f32(const char *word, size_t size, float *out)
{
    decimal d;
    if (!take_decimal(word, size, &d) || !has_exact_power(&d))
        return parse_f32_slowly(word, size, out);
    const double v = scale(&d);
    if (!rounds_well(v)) return parse_f32_slowly(word, size, out);
    *out = d.negative ? -(float)v : (float)v;
    return KILN_NUMBER_OK;
}

kiln_number kiln_parse_u64(const char *word, size_t size, uint64_t *out)
{
    uint64_t v = 0;
    if (size == 0) return KILN_NUMBER_NOT_ONE;
    for (size_t i = 0; i < size; i++)
        if (word[i] < '0' || word[i] > '9') return KILN_NUMBER_NOT_ONE;
    for (size_t i = 0; i < size; i++)
        if (!kiln_mul(v, 10, &v) || !kiln_add(v, (uint64_t)(word[i] - '0'), &v))
            return KILN_NUMBER_TOO_LARGE;
    *out = v;
    return KILN_NUMBER_OK;
}
