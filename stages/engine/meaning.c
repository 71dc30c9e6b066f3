/* meaning -- see the header. */
#include "stages/engine/meaning.h"

#include "stages/engine/json_text.h"

#include <stdarg.h>
#include <stdio.h>

static const char key[] = "meaning";

kiln_status kiln_meaning_put(json_t *report, kiln_error *err, const char *fmt, ...)
{
    char sentence[1024];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    json_t *all = json_object_get(report, key);
    if (!all && json_object_set_new(report, key, json_array()) == 0)
        all = json_object_get(report, key);
    if (!all || json_array_append_new(all, kiln_json_string(sentence)) != 0)
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for the report");
    return KILN_OK;
}

static char passed_on[4096];
void kiln_meaning_pass_on(const char *sentence)
{
    (void)snprintf(passed_on, sizeof passed_on, "%s", sentence);
}
const char *kiln_meaning_passed_on(void) { return passed_on; }

const char *kiln_meaning_get(const json_t *report, size_t i)
{
    const json_t *all = json_object_get(report, key);
    if (!json_is_array(all) || i >= json_array_size(all)) return NULL;
    const char *text = json_string_value(json_array_get(all, i));
    return text ? text : "";
}
