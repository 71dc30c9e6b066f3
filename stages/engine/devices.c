/* Which devices --devices names. Nothing here touches CUDA: the parent never does (DESIGN.md 9). `auto` takes the CPU
 * until the CUDA siblings are there; their finding through NVML has its place in kiln_devices_resolve. */
#include "stages/engine/engine_internal.h"

#include <ctype.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

static bool is_device_entry(const char *s, size_t n)
{
    if (n == 0 || n >= sizeof(((kiln_device *)0)->visible)) return false;
    if (!strncmp(s, "GPU-", 4) || !strncmp(s, "MIG-", 4)) {
        for (size_t i = 4; i < n; i++)
            if (!isxdigit((unsigned char)s[i]) && s[i] != '-' && s[i] != '/') return false;
        return n > 4;
    }
    for (size_t i = 0; i < n; i++)
        if (!isdigit((unsigned char)s[i])) return false;
    return true;
}

kiln_status kiln_devices_check(const char *text, kiln_error *err)
{
    if (!text || !strcmp(text, "auto") || !strcmp(text, "cpu") || !strcmp(text, "cuda") || !strcmp(text, "all")) return KILN_OK;
    for (const char *at = text;; at++) {
        size_t n = strcspn(at, ",");
        if (!is_device_entry(at, n))
            return kiln_fail(err, KILN_E_USAGE, "--devices takes auto, cpu, cuda, all or a list such as 0,1 or GPU-..., not '%s'",
                             text);
        at += n;
        if (!*at) return KILN_OK;
    }
}

kiln_device_kind kiln_devices_kind(const char *text, bool *named)
{
    bool is_auto = !text || !strcmp(text, "auto");
    if (named) *named = !is_auto;
    return is_auto || !strcmp(text, "cpu") ? KILN_DEVICE_CPU : KILN_DEVICE_CUDA;
}

kiln_status kiln_devices_resolve(const char *text, kiln_device *out, unsigned *n, kiln_error *err)
{
    if (kiln_devices_kind(text, NULL) == KILN_DEVICE_CUDA) {
        if (!kiln_ops_cuda())
            return kiln_fail(err, KILN_E_DEVICE, "this build has no CUDA, so '--devices %s' finds none; use --devices cpu", text);
        return kiln_fail(err, KILN_E_DEVICE, "this version computes on the CPU only; use --devices cpu instead of '%s'", text);
    }
    *n = 1;
    out[0] = (kiln_device){.kind = KILN_DEVICE_CPU};
    return KILN_OK;
}

unsigned kiln_devices_threads(uint32_t asked)
{
    if (asked) return asked;
    cpu_set_t mine;
    if (sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_COUNT(&mine) > 0) return (unsigned)CPU_COUNT(&mine);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}
