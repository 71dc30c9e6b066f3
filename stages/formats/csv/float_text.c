/* float_text -- see the header.
 *
 * The digits are found as Raffaello Giulietti describes, "The Schubfach way to render doubles"
 * (2020), for 24-bit significands: v and the borders to its neighbours are scaled by the power of
 * ten just below the distance of floats, so that the decimals to choose from are two whole numbers
 * beside v, or two multiples of ten. The scaled values are kept as whole numbers of quarters whose
 * last bit says whether anything was cut off, which decides every comparison (his section 9). */
#include "stages/formats/csv/float_text.h"

#include <stdbool.h>
#include <string.h>

__extension__ typedef unsigned __int128 u128;

/* floor(10^e 2^(62 - floor(log2 10^e))) + 1 for e = POWER_FIRST .. 45, 63 bits each. */
enum { POWER_FIRST = -31 };
static const uint64_t powers[] = {
    0x40e7599625a1fe7b, 0x51212ffbaf0a7e19, 0x65697bfa9acd1da0, 0x7ec3daf941806507,
    0x4f3a68dbc8f03f25, 0x63090312bb2c4eee, 0x7bcb43d769f762a9, 0x4d5f0a66a23a9daa,
    0x60b6cd004ac94514, 0x78e480405d7b9659, 0x4b8ed0283a6d3df8, 0x5e72843249088d76,
    0x760f253edb4ab0d3, 0x49c97747490eae84, 0x5c3bd5191b525a25, 0x734aca5f6226f0ae,
    0x480ebe7b9d58566d, 0x5a126e1a84ae6c08, 0x709709a125da070a, 0x465e6604b7a84466,
    0x57f5ff85e5925580, 0x6df37f675ef6eae0, 0x44b82fa09b5a52cc, 0x55e63b88c230e77f,
    0x6b5fca6af2bd215f, 0x431bde82d7b634db, 0x53e2d6238da3c212, 0x68db8bac710cb296,
    0x4189374bc6a7ef9e, 0x51eb851eb851eb86, 0x6666666666666667, 0x4000000000000001,
    0x5000000000000001, 0x6400000000000001, 0x7d00000000000001, 0x4e20000000000001,
    0x61a8000000000001, 0x7a12000000000001, 0x4c4b400000000001, 0x5f5e100000000001,
    0x7735940000000001, 0x4a817c8000000001, 0x5d21dba000000001, 0x746a528800000001,
    0x48c2739500000001, 0x5af3107a40000001, 0x71afd498d0000001, 0x470de4df82000001,
    0x58d15e1762800001, 0x6f05b59d3b200001, 0x4563918244f40001, 0x56bc75e2d6310001,
    0x6c6b935b8bbd4001, 0x43c33c1937564801, 0x54b40b1f852bda01, 0x69e10de76676d081,
    0x422ca8b0a00a4251, 0x52b7d2dcc80cd2e5, 0x6765c793fa10079e, 0x409f9cbc7c4a04c3,
    0x50c783eb9b5c85f3, 0x64f964e68233a770, 0x7e37be2022c0914c, 0x4ee2d6d415b85acf,
    0x629b8c891b267183, 0x7b426fab61f00de4, 0x4d0985cb1d3608af, 0x604be73de4838ada,
    0x785ee10d5da46d91, 0x4b3b4ca85a86c47b, 0x5e0a1fd271287599, 0x758ca7c70d7292ff,
    0x4977e8dc68679be0, 0x5bd5e313828182d7, 0x72cb5bd86321e38d, 0x47bf19673df52e38,
    0x59aedfc10d7279c6,
};

/* Digits and exponent of a positive, finite float: digits 10^exponent. */
typedef struct {
    uint32_t digits;
    int exponent;
} decimal;

/* floor(q log10 2), floor(log10(3/4 2^q)), floor(e log2 10); exact for all q and e of floats. */
static int floor_log10_of_2(int q) { return (q * 1262611) >> 22; }
static int floor_log10_of_three_quarters(int q) { return (q * 1262611 - 524031) >> 22; }
static int floor_log2_of_10(int e) { return (e * 1741647) >> 19; }

/* quarters g / 2^95, what is cut off shown as a set last bit. */
static uint32_t scale(uint64_t g, uint64_t quarters)
{
    const uint64_t high = (uint64_t)((u128)g * quarters >> 64), mask = 0x7fffffff;
    return (uint32_t)(high >> 31 | ((high & mask) + mask) >> 31);
}

static decimal shortest(uint32_t bits)
{
    const uint32_t fraction = bits & 0x7fffff, stored = bits >> 23;
    const uint32_t c = stored ? fraction | 0x800000 : fraction;
    const int q = (stored ? (int)stored : 1) - 150;
    /* the float below is half as far as the one above */
    const bool at_power = fraction == 0 && stored > 1;
    const int k = at_power ? floor_log10_of_three_quarters(q) : floor_log10_of_2(q);
    const int h = q + floor_log2_of_10(-k) + 33;
    const uint64_t g = powers[-k - POWER_FIRST], middle = (uint64_t)c * 4;
    const uint32_t v = scale(g, middle << h), below = scale(g, (middle - (at_power ? 1 : 2)) << h),
                   above = scale(g, (middle + 2) << h);
    const uint32_t closed = c & 1; /* an even significand owns its borders */
    const uint32_t s = v / 4;
    if (s >= 10) {
        const uint32_t low = s / 10 * 10, high = low + 10;
        const bool low_is_inside = below + closed <= low * 4,
                   high_is_inside = high * 4 + closed <= above;
        if (low_is_inside != high_is_inside) return (decimal){low_is_inside ? low : high, k};
    }
    const uint32_t t = s + 1;
    const bool s_is_inside = below + closed <= s * 4, t_is_inside = t * 4 + closed <= above;
    if (s_is_inside != t_is_inside) return (decimal){s_is_inside ? s : t, k};
    const uint32_t half_way = 2 * (s + t);
    return (decimal){v < half_way || (v == half_way && s % 2 == 0) ? s : t, k};
}

static const char pairs[] = "0001020304050607080910111213141516171819202122232425262728293031323334"
                            "3536373839404142434445464748495051"
                            "5253545556575859606162636465666768697071727374757677787980818283848586"
                            "87888990919293949596979899";

/* The last n decimal digits of v. */
static void put_digits(uint32_t v, size_t n, char *out)
{
    for (; n >= 2; v /= 100) memcpy(out + (n -= 2), pairs + v % 100 * 2, 2);
    if (n) out[0] = (char)('0' + v % 10);
}

static size_t count_digits(uint32_t v)
{
    size_t n = 1;
    for (; v >= 100; v /= 100) n += 2;
    return n + (v >= 10);
}

size_t kiln_u32_text(uint32_t v, char out[KILN_U32_TEXT_MAX])
{
    const size_t n = count_digits(v);
    put_digits(v, n, out);
    return n;
}

/* n digits with `exponent` places behind them, 1 <= n + exponent <= 9 or 0.000ddd. */
static size_t put_fixed(uint32_t digits, size_t n, int exponent, char *out)
{
    const int whole = (int)n + exponent; /* digits before the point */
    if (exponent >= 0) {
        put_digits(digits, n, out);
        memset(out + n, '0', (size_t)exponent);
        return n + (size_t)exponent;
    }
    if (whole > 0) {
        put_digits(digits, n, out + 1);
        memmove(out, out + 1, (size_t)whole);
        out[whole] = '.';
        return n + 1;
    }
    memset(out, '0', (size_t)(2 - whole));
    out[1] = '.';
    put_digits(digits, n, out + 2 - whole);
    return n + (size_t)(2 - whole);
}

static size_t put_scientific(uint32_t digits, size_t n, int power, char *out)
{
    size_t at = put_fixed(digits, n, 1 - (int)n, out);
    out[at++] = 'e';
    out[at++] = power < 0 ? '-' : '+';
    const uint32_t size = (uint32_t)(power < 0 ? -power : power), places = size >= 10 ? 2 : 1;
    put_digits(size, places, out + at);
    return at + places;
}

size_t kiln_float_text(float v, char out[KILN_FLOAT_TEXT_MAX])
{
    uint32_t bits;
    char *at = out;
    memcpy(&bits, &v, sizeof bits);
    if (v != v) {
        memcpy(out, "nan", 3);
        return 3;
    }
    if (bits >> 31) *at++ = '-';
    bits &= 0x7fffffff;
    if (bits == 0x7f800000) {
        memcpy(at, "inf", 3);
        at += 3;
    } else if (bits == 0) {
        *at++ = '0';
    } else {
        decimal d = shortest(bits);
        for (; d.digits % 10 == 0; d.exponent++) d.digits /= 10;
        const size_t n = count_digits(d.digits);
        const int power = (int)n - 1 + d.exponent; /* of the first digit */
        at += power >= -4 && power <= 8 ? put_fixed(d.digits, n, d.exponent, at)
                                        : put_scientific(d.digits, n, power, at);
    }
    return (size_t)(at - out);
}
