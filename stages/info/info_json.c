/* info_json -- see info_internal.h. */
#include "stages/info/info_internal.h"

#include "base/log.h"
#include "base/quote.h"
#include "stages/engine/json_text.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Takes `value`; a NULL one, or one that cannot be added, is out of memory. */
kiln_status kiln_info_set(json_t *object, const char *key, json_t *value, kiln_error *err)
{
    if (json_object_set_new(object, key, value) == 0) return KILN_OK;
    return kiln_fail(err, KILN_E_NOMEM, "out of memory for '%s'", key);
}

json_t *kiln_info_count(uint64_t v) { return json_integer((json_int_t)v); }

/* Text that is JSON itself, as an object; as it stands where it is damaged. */
json_t *kiln_info_parsed(const char *text)
{
    json_t *v;
    if (kiln_json_parse(text, strlen(text), JSON_DECODE_ANY, "a report", &v, NULL, NULL) != KILN_OK)
        return NULL;
    return v ? v : kiln_json_string(text);
}

json_t *kiln_info_vector(const double v[3])
{
    return json_pack("[o, o, o]", kiln_json_real(v[0]), kiln_json_real(v[1]), kiln_json_real(v[2]));
}

json_t *kiln_info_utc(int64_t ns)
{
    char text[32];
    time_t s = (time_t)(ns / 1000000000);
    struct tm t;
    if (ns == 0 || !gmtime_r(&s, &t)) return json_null();
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &t);
    return json_string(text);
}

size_t kiln_info_shown(size_t n)
{
    enum { FEW = 24, FIRST = 20 }; /* a table that lacks a few rows is no shorter */
    return n <= FEW || kiln_log_get() == KILN_LOG_VERBOSE ? n : FIRST;
}

void kiln_info_print_rest(size_t n, size_t shown)
{
    if (n > shown) kiln_print("... and %zu more: --verbose or --json", n - shown);
}

const char *kiln_info_text(const json_t *object, const char *key, const char *none)
{
    const char *s = json_string_value(json_object_get(object, key));
    return s && *s ? s : none;
}

const char *kiln_info_count_text(const json_t *object, const char *key, char buf[32])
{
    json_t *v = json_object_get(object, key);
    snprintf(buf, 32, json_is_integer(v) ? "%" JSON_INTEGER_FORMAT : "-", json_integer_value(v));
    return buf;
}

const char *kiln_info_real_text(const json_t *object, const char *key, int digits, char buf[32])
{
    json_t *v = json_object_get(object, key);
    if (json_is_real(v))
        snprintf(buf, 32, "%.*f", digits, json_real_value(v));
    else
        strcpy(buf, "-");
    return buf;
}
