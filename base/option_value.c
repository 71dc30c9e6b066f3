/* option_value -- one value: text to storage with every check, storage back to its canonical text.
 * The two are inverse to each other, because the text is what the manifest stores, what unit keys
 * hash and what workers get. */
#include "base/option_internal.h"
#include "base/checked.h"
#include "base/file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Ends of "lo..hi" or "lo..hi|off|auto" as text; either may be empty. False where there is no
 * range. */
static bool split_range(const char *range, char lo[32], char hi[32])
{
    const char *dots = range ? strstr(range, "..") : NULL;
    if (!dots || dots - range > 31) return false;
    (void)snprintf(lo, 32, "%.*s", (int)(dots - range), range);
    (void)snprintf(hi, 32, "%.*s", (int)strcspn(dots + 2, "|"), dots + 2);
    return true;
}

static bool is_whole(const kiln_opt *o)
{
    return o->kind == KILN_OPT_U32 || o->kind == KILN_OPT_U64;
}

/* Is this a word behind the range of numbers, or the default? */
static bool may_be(const kiln_opt *o, const char *word)
{
    const size_t length = strlen(word);
    if (o->kind != KILN_OPT_F64 && !is_whole(o)) return false;
    for (const char *bar = o->range ? strchr(o->range, '|') : NULL; bar; bar = strchr(bar + 1, '|'))
        if (strcspn(bar + 1, "|") == length && !memcmp(bar + 1, word, length)) return true;
    return o->def && !strcmp(o->def, word);
}

/* What a number may be besides, for people. */
static const char *other_words(const kiln_opt *o)
{
    if (may_be(o, "auto")) return may_be(o, "off") ? ", off or auto" : " or auto";
    return may_be(o, "off") ? " or off" : "";
}

const char *kiln_opt_bounds(const kiln_opt *o, char *buf, size_t size)
{
    char lo[32], hi[32];
    const char *words = other_words(o);
    buf[0] = '\0';
    if (o->kind == KILN_OPT_ENUM || o->kind == KILN_OPT_TEXT || !split_range(o->range, lo, hi))
        return buf;
    if (lo[0] && hi[0])
        (void)snprintf(buf, size, "%s to %s%s", lo, hi, words);
    else if (lo[0] || hi[0])
        (void)snprintf(buf, size, "at %s %s%s", lo[0] ? "least" : "most", lo[0] ? lo : hi, words);
    return buf;
}

const char *kiln_opt_takes(const kiln_opt *o, char *buf, size_t size)
{
    char bounds[96];
    const char *what = "a text";
    if (o->kind == KILN_OPT_ENUM) {
        (void)snprintf(buf, size, "%s", o->range);
        return buf;
    }
    if (o->kind == KILN_OPT_TEXT && o->range) {
        (void)snprintf(buf, size, "one or several of %s, separated by commas", o->range);
        return buf;
    }
    if (o->kind == KILN_OPT_BOOL) what = "yes or no";
    if (o->kind == KILN_OPT_U32 || o->kind == KILN_OPT_U64) what = "a whole number";
    if (o->kind == KILN_OPT_F64) what = "a number";
    if (o->kind == KILN_OPT_SIZE) what = "a size such as 512M, 1.5G or 50%";
    if (o->kind == KILN_OPT_PATH) what = "a path";
    if (o->kind == KILN_OPT_F64X3) what = "three numbers such as 1,0,-2.5";
    kiln_opt_bounds(o, bounds, sizeof bounds);
    if (!bounds[0])
        (void)snprintf(buf, size, "%s%s", what, other_words(o));
    else
        (void)snprintf(buf, size, "%s%s %s %s", what, o->kind == KILN_OPT_F64X3 ? ", each" : "",
                       bounds[0] == 'a' ? "of" : "from", bounds);
    return buf;
}

static bool parse_whole(const char *text, uint64_t *out)
{
    /* strtoull would take blanks and signs */
    if (!text[0] || text[strspn(text, "0123456789")]) return false;
    errno = 0;
    *out = strtoull(text, NULL, 10);
    return errno == 0;
}

static bool parse_real(const char *text, size_t length, double *out)
{
    char copy[64], *end;
    if (length == 0 || length >= sizeof copy) return false;
    (void)snprintf(copy, sizeof copy, "%.*s", (int)length, text);
    /* strtod would take blanks, hex, inf and nan */
    if (copy[strspn(copy, "0123456789.eE+-")]) return false;
    *out = strtod(copy, &end);
    return !*end && isfinite(*out);
}

/* "0.5", "1e-3", or a quotient: opacities are thought of as 1/255. */
static bool parse_number(const char *text, double *out)
{
    const char *slash = strchr(text, '/');
    double below = 1;
    if (!parse_real(text, slash ? (size_t)(slash - text) : strlen(text), out)) return false;
    if (slash && !parse_real(slash + 1, strlen(slash + 1), &below)) return false;
    *out /= below;
    return isfinite(*out);
}

static bool set_whole(const kiln_opt *o, const char *text)
{
    char lo[32], hi[32];
    uint64_t v, bound;
    if (!strcmp(text, "off") && may_be(o, text)) {
        kiln_opt_value_none(o);
        return true;
    }
    if (!parse_whole(text, &v)) return false;
    if (split_range(o->range, lo, hi)) {
        if (parse_whole(lo, &bound) && v < bound) return false;
        if (parse_whole(hi, &bound) && v > bound) return false;
    }
    if (o->kind == KILN_OPT_U32) return kiln_to_u32(v, o->where);
    *(uint64_t *)o->where = v;
    return true;
}

/* A number within the range. */
static bool parse_within(const kiln_opt *o, const char *text, double *out)
{
    char lo[32], hi[32];
    double bound;
    if (!parse_number(text, out)) return false;
    if (split_range(o->range, lo, hi)) {
        if (parse_number(lo, &bound) && *out < bound) return false;
        if (parse_number(hi, &bound) && *out > bound) return false;
    }
    *out += 0.0; /* -0 and 0 are one value and get one text */
    return true;
}

static bool set_number(const kiln_opt *o, const char *text)
{
    double v;
    if (!strcmp(text, "off") && may_be(o, text)) {
        *(double *)o->where = NAN;
        return true;
    }
    if (!strcmp(text, "auto") && may_be(o, text)) {
        *(double *)o->where = KILN_OPT_AUTO;
        return true;
    }
    char number[64];
    const size_t n = strlen(text);
    const bool percent = o->flags & KILN_PERCENT && n && text[n - 1] == '%' && n < sizeof number;
    if (percent) (void)snprintf(number, sizeof number, "%.*s", (int)n - 1, text);
    if (!parse_within(o, percent ? number : text, &v)) return false;
    *(double *)o->where = v;
    return true;
}

static bool set_triple(const kiln_opt *o, const char *text)
{
    double v[3];
    for (int i = 0; i < 3; i++) {
        char number[130];
        const size_t length = strcspn(text, ",");
        if (length >= sizeof number || text[length] != (i < 2 ? ',' : '\0')) return false;
        (void)snprintf(number, sizeof number, "%.*s", (int)length, text);
        if (!parse_within(o, number, &v[i])) return false;
        text += length + 1;
    }
    memcpy(o->where, v, sizeof v);
    return true;
}

static bool set_bool(const kiln_opt *o, const char *text)
{
    static const char *const words[][2] = {
        {"no", "yes"}, {"0", "1"}, {"false", "true"}, {"off", "on"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (int v = 0; v < 2; v++)
            if (!strcmp(text, words[i][v])) {
                *(bool *)o->where = v;
                return true;
            }
    return false;
}

static bool set_choice(const kiln_opt *o, const char *text)
{
    uint32_t index = 0;
    size_t length = strlen(text);
    for (const char *at = o->range; at; index++) {
        const char *bar = strchr(at, '|');
        size_t n = bar ? (size_t)(bar - at) : strlen(at);
        if (n == length && !memcmp(at, text, n)) {
            *(uint32_t *)o->where = index;
            return true;
        }
        at = bar ? bar + 1 : NULL;
    }
    return false;
}

/* ---- lists ----------------------------------------------------------------------------------- */

bool kiln_opt_list_next(const char **at, char *item, size_t size)
{
    size_t n = 0;
    const char *c = *at;
    if (!c || !*c) return false;
    for (; *c && *c != '|'; c++) {
        if (*c == '\\' && (c[1] == '|' || c[1] == '\\')) c++;
        if (n + 1 < size) item[n++] = *c;
    }
    item[n] = '\0';
    *at = c + (*c == '|');
    return true;
}

static kiln_status put_item(kiln_buffer *text, const char *item, kiln_error *err)
{
    if (text->size) KILN_TRY(kiln_buffer_put(text, "|", 1, err));
    for (; *item; item++) {
        if (*item == '|' || *item == '\\') KILN_TRY(kiln_buffer_put(text, "\\", 1, err));
        KILN_TRY(kiln_buffer_put(text, item, 1, err));
    }
    return KILN_OK;
}

static kiln_status keep_list(const kiln_opt *o, kiln_buffer *text, kiln_error *err)
{
    KILN_TRY(kiln_buffer_put(text, "", 1, err));
    if (text->size > KILN_OPT_TEXT_MAX)
        return kiln_fail(err, KILN_E_USAGE, "the values of --%s together are longer than %d bytes",
                         o->name, KILN_OPT_TEXT_MAX - 1);
    return kiln_opt_keep((const char *)text->data, false, o->where, err);
}

kiln_status kiln_opt_list_add(const kiln_opt *o, const char *item, kiln_error *err)
{
    kiln_status st = KILN_OK;
    const char **where = o->where, *full;
    kiln_buffer text = {0};
    if (!item[0]) {
        *where = NULL;
        return KILN_OK;
    }
    KILN_TRY(kiln_opt_keep(item, true, &full, err));
    if (*where) KILN_GO(kiln_buffer_put(&text, *where, strlen(*where), err));
    KILN_GO(put_item(&text, full, err));
    st = keep_list(o, &text, err);
done:
    kiln_buffer_release(&text);
    return st;
}

/* From its text: again in its one form, without empty items. */
static kiln_status set_list(const kiln_opt *o, const char *from, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_buffer text = {0};
    char *item;
    const size_t size = strlen(from) + 1;
    KILN_TRY(KILN_ALLOC(&item, size, "a list", err));
    while (kiln_opt_list_next(&from, item, size))
        if (item[0]) KILN_GO(put_item(&text, item, err));
    if (text.size)
        st = keep_list(o, &text, err);
    else
        *(const char **)o->where = NULL;
done:
    kiln_buffer_release(&text);
    free(item);
    return st;
}

/* ---- a text of words ------------------------------------------------------------------------- */

bool kiln_opt_is_choice(const char *range, const char *word, size_t length)
{
    for (size_t n; *range; range += n + (range[n] == '|')) {
        n = strcspn(range, "|");
        if (n == length && !memcmp(range, word, n)) return true;
    }
    return false;
}

/* Without a range any text is good; with one it has at least a word. */
static bool all_are_choices(const kiln_opt *o, const char *text)
{
    if (!o->range) return true;
    if (!*text) return false;
    for (size_t n; *text; text += n + (text[n] == ',')) {
        n = strcspn(text, ",");
        if (!kiln_opt_is_choice(o->range, text, n)) return false;
    }
    return true;
}

/* ---- any kind -------------------------------------------------------------------------------- */

kiln_status kiln_opt_value_set(const kiln_opt *o, const char *text, kiln_error *err)
{
    char takes[256];
    bool good = false;
    if (o->kind == KILN_OPT_LIST) return set_list(o, text, err);
    if (strlen(text) >= KILN_PATH_MAX)
        return kiln_fail(err, KILN_E_USAGE, "the value of --%s is longer than %d bytes", o->name,
                         KILN_PATH_MAX - 1);
    switch (o->kind) {
    case KILN_OPT_BOOL:
        good = set_bool(o, text);
        break;
    case KILN_OPT_U32:
    case KILN_OPT_U64:
        good = set_whole(o, text);
        break;
    case KILN_OPT_F64:
        good = set_number(o, text);
        break;
    case KILN_OPT_SIZE:
        good = kiln_size_parse(text, o->where, NULL) == KILN_OK;
        break;
    case KILN_OPT_ENUM:
        good = set_choice(o, text);
        break;
    case KILN_OPT_F64X3:
        good = set_triple(o, text);
        break;
    case KILN_OPT_TEXT:
        if (!all_are_choices(o, text)) break;
        return kiln_opt_keep(text, false, o->where, err);
    case KILN_OPT_PATH:
        return kiln_opt_keep(text, true, o->where, err);
    case KILN_OPT_LIST:
    case KILN_OPT_END:
        break;
    }
    if (good) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE, "--%s takes %s, not '%.80s'", o->name,
                     kiln_opt_takes(o, takes, sizeof takes), text);
}

void kiln_opt_value_none(const kiln_opt *o)
{
    switch (o->kind) {
    case KILN_OPT_BOOL:
        *(bool *)o->where = false;
        break;
    case KILN_OPT_U32:
    case KILN_OPT_ENUM:
        *(uint32_t *)o->where = 0;
        break;
    case KILN_OPT_U64:
        *(uint64_t *)o->where = 0;
        break;
    case KILN_OPT_F64:
        *(double *)o->where = NAN;
        break;
    case KILN_OPT_SIZE:
        *(kiln_size *)o->where = (kiln_size){.percent = -1};
        break;
    case KILN_OPT_F64X3:
        for (int i = 0; i < 3; i++) ((double *)o->where)[i] = NAN;
        break;
    case KILN_OPT_TEXT:
    case KILN_OPT_PATH:
    case KILN_OPT_LIST:
        *(const char **)o->where = NULL;
        break;
    case KILN_OPT_END:
        break;
    }
}

/* The shortest of three precisions that reads back as the same double. */
static void number_text(double v, char *buf, size_t size)
{
    static const int digits[] = {9, 15, 17};
    for (size_t i = 0; i < sizeof digits / sizeof *digits; i++) {
        (void)snprintf(buf, size, "%.*g", digits[i], v);
        if (strtod(buf, NULL) == v) return;
    }
}

static void whole_text(const kiln_opt *o, uint64_t v, char *buf, size_t size)
{
    if (v == 0 && may_be(o, "off"))
        (void)snprintf(buf, size, "off");
    else
        (void)snprintf(buf, size, "%llu", (unsigned long long)v);
}

static void size_value_text(const kiln_size *s, char *buf, size_t size)
{
    if (s->percent < 0) {
        (void)snprintf(buf, size, "%llu", (unsigned long long)s->bytes);
        return;
    }
    char number[32];
    number_text(s->percent, number, sizeof number);
    (void)snprintf(buf, size, "%s%%", number);
}

static void triple_text(const double *v, char *buf, size_t size)
{
    char number[3][32];
    for (int i = 0; i < 3; i++) number_text(v[i], number[i], sizeof number[i]);
    (void)snprintf(buf, size, "%s,%s,%s", number[0], number[1], number[2]);
}

static void choice_text(const kiln_opt *o, char *buf, size_t size)
{
    const char *at = o->range;
    for (uint32_t i = 0; i < *(const uint32_t *)o->where; i++) {
        at = strchr(at, '|');
        if (!at) return; /* the program wrote an index of its own; there is no such choice */
        at++;
    }
    (void)snprintf(buf, size, "%.*s", (int)strcspn(at, "|"), at);
}

/* Numbers without a default are "not there" at the value that kiln_opt_value_none gives. */
static bool is_none(const kiln_opt *o)
{
    if (o->def) return false;
    switch (o->kind) {
    case KILN_OPT_U32:
        return *(const uint32_t *)o->where == 0;
    case KILN_OPT_U64:
        return *(const uint64_t *)o->where == 0;
    case KILN_OPT_F64:
    case KILN_OPT_F64X3:
        return isnan(*(const double *)o->where);
    case KILN_OPT_SIZE:
        return ((const kiln_size *)o->where)->percent < 0 &&
               ((const kiln_size *)o->where)->bytes == 0;
    default:
        return false;
    }
}

const char *kiln_opt_text(const kiln_opt *o, char *buf, size_t size)
{
    buf[0] = '\0';
    if (is_none(o)) return buf;
    switch (o->kind) {
    case KILN_OPT_BOOL:
        (void)snprintf(buf, size, "%s", *(const bool *)o->where ? "yes" : "no");
        break;
    case KILN_OPT_U32:
        whole_text(o, *(const uint32_t *)o->where, buf, size);
        break;
    case KILN_OPT_U64:
        whole_text(o, *(const uint64_t *)o->where, buf, size);
        break;
    case KILN_OPT_F64:
        if (isnan(*(const double *)o->where))
            (void)snprintf(buf, size, "off");
        else if (kiln_opt_is_auto(*(const double *)o->where))
            (void)snprintf(buf, size, "auto");
        else
            number_text(*(const double *)o->where, buf, size);
        break;
    case KILN_OPT_SIZE:
        size_value_text(o->where, buf, size);
        break;
    case KILN_OPT_ENUM:
        choice_text(o, buf, size);
        break;
    case KILN_OPT_F64X3:
        triple_text(o->where, buf, size);
        break;
    case KILN_OPT_TEXT:
    case KILN_OPT_PATH:
    case KILN_OPT_LIST:
        (void)snprintf(buf, size, "%s", *(const char **)o->where ? *(const char **)o->where : "");
        break;
    case KILN_OPT_END:
        break;
    }
    return buf;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* "", "B", "K", "KB", "KiB", ... to a power of 1024, as ls and free read them; -1 for anything
 * else. */
static int unit_power(const char *unit)
{
    static const char letters[] = "KMGT";
    if (!unit[0] || !strcmp(unit, "B")) return 0;
    char first = unit[0] >= 'a' ? (char)(unit[0] - 'a' + 'A') : unit[0];
    const char *at = strchr(letters, first);
    if (!at) return -1;
    return !unit[1] || !strcmp(unit + 1, "B") || !strcmp(unit + 1, "iB") ? (int)(at - letters) + 1
                                                                         : -1;
}

kiln_status kiln_size_parse(const char *text, kiln_size *out, kiln_error *err)
{
    size_t digits = strspn(text, "0123456789.");
    const char *unit = text + digits + strspn(text + digits, " ");
    char number[32];
    uint64_t whole;
    double real;
    kiln_size size = {.percent = -1};
    if (digits == 0 || digits >= sizeof number || !parse_real(text, digits, &real)) goto bad;
    if (!strcmp(unit, "%")) {
        if (real > 100) goto bad;
        size.percent = real;
        goto good;
    }
    int power = unit_power(unit);
    if (power < 0) goto bad;
    (void)snprintf(number, sizeof number, "%.*s", (int)digits, text);
    if (parse_whole(number, &whole)) {
        if (!kiln_mul(whole, UINT64_C(1) << (10 * power), &size.bytes)) goto bad;
    } else {
        real = ldexp(real, 10 * power);
        if (real >= 0x1p63) goto bad;
        size.bytes = (uint64_t)real;
    }
good:
    *out = size;
    return KILN_OK;
bad:
    return kiln_fail(err, KILN_E_USAGE, "'%.40s' is not a size such as 512M, 1.5G or 50%%", text);
}

uint64_t kiln_size_resolve(kiln_size s, uint64_t whole)
{
    return s.percent < 0 ? s.bytes : (uint64_t)(s.percent / 100 * (double)whole);
}

const char *kiln_size_text(uint64_t bytes, char buf[32])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    size_t i = 0;
    for (; v >= 1024 && i + 1 < sizeof units / sizeof *units; i++) v /= 1024;
    (void)snprintf(buf, 32, "%.*f %s", i > 0 && v < 10 ? 1 : 0, v, units[i]);
    return buf;
}
