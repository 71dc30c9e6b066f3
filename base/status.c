/* status -- the sentence of an error travels up in a fixed buffer, so that it works when memory is
 * gone. */
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef kiln_fail

static const struct {
    int code;
    const char *name, *text;
} statuses[] = {
#define X(name, code, text) [KILN_##name] = {code, #name, text},
    KILN_STATUS_MAP(X)
#undef X
};

/* file: where to say that it was made, or NULL */
static kiln_status fail_with(const char *file, int line, kiln_error *err, kiln_status status,
                             const char *fmt, va_list ap)
{
    char text[sizeof err->msg]; /* the arguments may point into err->msg */
    if (!err) return status;
    if (vsnprintf(text, sizeof text, fmt, ap) < 0) text[0] = '\0';
    const size_t n = strlen(text);
    if (file && snprintf(text + n, sizeof text - n, " (%s:%d)", file, line) < 0) text[n] = '\0';
    err->status = status;
    memcpy(err->msg, text, sizeof text);
    return status;
}

kiln_status kiln_fail(kiln_error *err, kiln_status status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    status = fail_with(NULL, 0, err, status, fmt, ap);
    va_end(ap);
    return status;
}

kiln_status kiln_fail_at(const char *file, int line, kiln_error *err, kiln_status status,
                         const char *fmt, ...)
{
    const char *says = getenv("KILN_WHERE");
    va_list ap;
    va_start(ap, fmt);
    status = fail_with(says && strcmp(says, "0") == 0 ? NULL : file, line, err, status, fmt, ap);
    va_end(ap);
    return status;
}

void kiln_note(kiln_error *err, const char *fmt, ...)
{
    char was[sizeof err->msg];
    va_list ap;
    if (!err) return;
    memcpy(was, err->msg, sizeof was);
    va_start(ap, fmt);
    int n = vsnprintf(err->msg, sizeof err->msg, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof err->msg) return;
    size_t capacity = sizeof err->msg - (size_t)n;
    if (snprintf(err->msg + n, capacity, ": %s", was) < 0) err->msg[n] = '\0';
}

int kiln_exit_code(kiln_status status) { return statuses[status].code; }
int kiln_status_is_signal(kiln_status status)
{
    return status == KILN_E_INTERRUPTED || status == KILN_E_TERMINATED || status == KILN_E_HANGUP;
}

const char *kiln_status_text(kiln_status status) { return statuses[status].text; }
const char *kiln_status_name(kiln_status status) { return statuses[status].name; }

void kiln_exit_text(int code, char *out, size_t size)
{
    size_t at = 0;
    if (size) out[0] = '\0';
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses && at < size; i++)
        if (statuses[i].code == code)
            at +=
                (size_t)snprintf(out + at, size - at, "%s%s", at ? ", or " : "", statuses[i].text);
}
