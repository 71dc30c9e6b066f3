/* What the parts of the doctor leave behind: lines for people, values and findings for the
 * report. */
#include "stages/doctor/doctor.h"

#include "base/quote.h"
#include "stages/engine/json_text.h"

#include <stdarg.h>
#include <stdio.h>

void kiln_doctor_line(const kiln_doctor *d, const char *fmt, ...)
{
    va_list args;
    if (d->quiet) return;
    va_start(args, fmt);
    kiln_print_list(fmt, args); /* stdout is checked at the end of main */
    va_end(args);
    (void)fflush(stdout); /* trying a GPU can take long */
}

void kiln_doctor_set(kiln_doctor *d, const char *key, json_t *value)
{
    if (!value || json_object_set_new(d->report, key, value) != 0) d->no_memory = true;
}

void kiln_doctor_find(kiln_doctor *d, kiln_doctor_finding kind, kiln_status status, const char *fmt,
                      ...)
{
    static const char *const words[] = {
        [KILN_NOTE] = "note", [KILN_WARNING] = "warning", [KILN_ILL] = "ill"};
    char sentence[sizeof d->worst.msg];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    if (json_array_append_new(d->findings, json_pack("{s:s, s:o}", "kind", words[kind], "sentence",
                                                     kiln_json_string(sentence))) != 0)
        d->no_memory = true;
    if (kind == KILN_ILL && d->worst.status == KILN_OK)
        (void)kiln_fail(&d->worst, status, "%s", sentence);
}
