/* KILN_FAULT: injects failures, so that every way in which a unit can fail is tested.
 *
 *   KILN_FAULT="unit=5:kill; unit=camera*:illegal,device=0,times=1"
 *
 * unit: the position of a unit in its list, or its name (with * and ?). Entries are separated by
 * ';', or by blanks if another "unit=" follows, because names can have blanks. A failure is
 * injected each time that the unit is tried; with times=N, only the first N times; with device=N,
 * only on the N-th of --devices or in the N-th worker on the CPU, from 0. The parent counts
 * attempts, because the process that fails cannot. */
#include "stages/engine/worker/fault.h"

#include "kernels/device.h"

#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { UNIT_TEXT = 200, FAULT_EXIT_CODE = 9 };

typedef enum {
    FAULT_EXIT,
    FAULT_KILL,
    FAULT_HANG,
    FAULT_ILLEGAL,
    FAULT_ABORT,
    FAULT_ENOSPC,
    FAULT_NOMEM,
    FAULT_DEVICE,
    FAULT_LOST
} action;
static const char *const action_names[] = {"exit",   "kill",  "hang",   "illegal", "abort",
                                           "enospc", "nomem", "device", "lost"};
enum { N_ACTIONS = sizeof action_names / sizeof *action_names };

typedef struct {
    char unit[UNIT_TEXT];
    action what;
    unsigned long times;  /* ULONG_MAX: always */
    unsigned long device; /* ULONG_MAX: any */
} fault;

/* ---- the text -------------------------------------------------------------------------------- */
/* Ends before the next entry; *length is without separators. */
static const char *next_entry(const char *at, size_t *length)
{
    const char *end = strchr(at, ';'), *blank = strstr(at, " unit=");
    if (!end) end = at + strlen(at);
    if (blank && blank < end) end = blank;
    *length = (size_t)(end - at);
    while (*length && at[*length - 1] == ' ') --*length;
    return end;
}

static bool read_number(const char *text, unsigned long *out)
{
    char *end;
    if (!*text || strspn(text, "0123456789") != strlen(text)) return false;
    *out = strtoul(text, &end, 10);
    return true;
}

/* "kill,times=1,device=0" */
static bool read_action(char *text, fault *f)
{
    char *rest = NULL;
    const char *word = strtok_r(text, ",", &rest);
    unsigned i = 0;
    while (word && i < N_ACTIONS && strcmp(word, action_names[i]) != 0) i++;
    if (!word || i == N_ACTIONS) return false;
    f->what = (action)i;
    while ((word = strtok_r(NULL, ",", &rest))) {
        if (!strncmp(word, "times=", 6)
                ? !read_number(word + 6, &f->times)
                : strncmp(word, "device=", 7) != 0 || !read_number(word + 7, &f->device))
            return false;
    }
    return true;
}

/* *f {0} with an empty unit: no more entries. */
static kiln_status read_fault(const char **at, fault *f, kiln_error *err)
{
    char text[UNIT_TEXT + 64];
    size_t length;
    *f = (fault){.times = ~0UL, .device = ~0UL};
    *at += strspn(*at, "; ");
    if (!**at) return KILN_OK;
    const char *first = *at;
    *at = next_entry(first, &length);
    (void)snprintf(text, sizeof text, "%.*s", length < sizeof text ? (int)length : 0, first);
    char *colon = strrchr(text, ':');
    if (colon) *colon = '\0';
    if (!colon || strncmp(text, "unit=", 5) != 0 || !text[5] ||
        strlen(text + 5) >= sizeof f->unit || !read_action(colon + 1, f))
        return kiln_fail(
            err, KILN_E_USAGE,
            "KILN_FAULT takes unit=NUMBER:ACTION or unit=NAME:ACTION, not '%.*s'; ACTION is exit, "
            "kill, hang, "
            "illegal, abort, enospc, nomem, device or lost; ,times=N and ,device=N may follow",
            (int)length, first);
    memcpy(f->unit, text + 5, strlen(text + 5) + 1);
    return KILN_OK;
}

kiln_status kiln_fault_check(kiln_error *err)
{
    const char *at = getenv("KILN_FAULT");
    fault f = {.unit = "?"};
    while (at && f.unit[0]) KILN_TRY(read_fault(&at, &f, err));
    return KILN_OK;
}

/* ---- the deed -------------------------------------------------------------------------------- */
static bool is_meant(const fault *f, const kiln_message *unit)
{
    unsigned long number;
    const bool named =
        read_number(f->unit, &number) ? number == unit->unit : fnmatch(f->unit, unit->text, 0) == 0;
    return named && unit->attempt <= f->times && (f->device == ~0UL || f->device == unit->slot);
}

/* Writes where it may not. A page of its own and not NULL, which a sanitizer would turn into an
 * exit code before it happens. */
static void touch_forbidden(void)
{
    volatile int *page = mmap(NULL, sizeof *page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)signal(SIGSEGV, SIG_DFL); /* the same: a sanitizer has a handler */
    /* where mmap failed it is the last address, just as forbidden */
    *page = 1;
}

static kiln_status do_it(action what, const kiln_runner *runner, kiln_error *err)
{
    const kiln_exec x = kiln_runner_exec(runner);
    switch (what) {
    case FAULT_EXIT:
        _exit(FAULT_EXIT_CODE);
    case FAULT_KILL:
        (void)raise(SIGKILL);
        break;
    case FAULT_HANG:
        for (;;) (void)pause();
    case FAULT_ABORT:
        abort();
    case FAULT_ILLEGAL:
        if (x.device >= 0) return kiln_device_provoke(&x, err);
        touch_forbidden();
        break;
    case FAULT_ENOSPC:
        return kiln_fail(err, KILN_E_IO, "cannot write: No space left on device (KILN_FAULT)");
    case FAULT_NOMEM:
        return kiln_fail(err, KILN_E_NOMEM, "no memory left (KILN_FAULT)");
    case FAULT_DEVICE:
        return kiln_fail(err, KILN_E_DEVICE, "the device failed (KILN_FAULT)");
    case FAULT_LOST:
        return kiln_fail(err, KILN_E_DEVICE, "the device is lost (KILN_FAULT)");
    }
    return kiln_fail(err, KILN_E_BUG, "an injected fault had no effect");
}

kiln_status kiln_fault_fire(const kiln_message *unit, const kiln_runner *runner, bool *lost,
                            kiln_error *err)
{
    const char *at = getenv("KILN_FAULT");
    fault f;
    while (at) {
        KILN_TRY(read_fault(&at, &f, err));
        if (!f.unit[0]) break;
        if (!is_meant(&f, unit)) continue;
        *lost = f.what == FAULT_LOST;
        return do_it(f.what, runner, err);
    }
    return KILN_OK;
}
