/* Which devices --devices names. Nothing here touches CUDA, because the parent never does
 * (DESIGN.md, "Devices"). The list of visible GPUs is made first, and the choice is made from it,
 * so that numbers always count visible GPUs, as CUDA's own do. */
#include "stages/engine/devices/devices.h"

#include "kernels/device.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NVML_MS = 20000 }; /* eight GPUs whose driver is not kept awake need several seconds */

/* ---- words ----------------------------------------------------------------------------------- */
static bool starts(const char *s, const char *with) { return strncmp(s, with, strlen(with)) == 0; }
static bool is_index(const char *s) { return *s && !s[strspn(s, "0123456789")]; }

/* Says whether a text is a UUID or the beginning of one: GPU-xxxxxxxx-..., MIG-xxxxxxxx-..., or
 * MIG-GPU-xxxxxxxx-.../1/2, as drivers before 470 name an instance. */
static bool is_uuid(const char *s)
{
    if (!starts(s, "GPU-") && !starts(s, "MIG-")) return false;
    const char *digits = s + (starts(s, "MIG-GPU-") ? 8 : 4);
    for (const char *c = digits; *c; c++)
        if (!isxdigit((unsigned char)*c) && !strchr("-/", *c)) return false;
    return *digits;
}

/* Copies the next entry of a list without the blanks around it. Returns false after the last. "" is
 * one empty entry. */
static bool next_entry(const char **at, char *out, size_t size)
{
    if (!*at) return false;
    const char *first = *at + strspn(*at, " \t");
    size_t length = strcspn(first, ",");
    *at = first[length] ? first + length + 1 : NULL;
    while (length && strchr(" \t", first[length - 1])) length--;
    /* too long to be anything: empty, so invalid */
    (void)snprintf(out, size, "%.*s", length < size ? (int)length : 0, first);
    return true;
}

kiln_status kiln_devices_check(const char *text, kiln_error *err)
{
    static const char *const words[] = {"auto", "cpu", "cuda", "all"};
    char entry[sizeof(((kiln_device *)0)->visible)];
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!text || strcmp(text, words[i]) == 0) return KILN_OK;
    for (const char *at = text; next_entry(&at, entry, sizeof entry);)
        if (!is_index(entry) && !is_uuid(entry))
            return kiln_fail(
                err, KILN_E_USAGE,
                "--devices takes auto, cpu, cuda, all or a list such as 0,1 or GPU-..., not '%s'",
                text);
    return KILN_OK;
}

const char *kiln_devices_named_kind(const char *text)
{
    if (!text || strcmp(text, "auto") == 0) return NULL;
    return strcmp(text, "cpu") == 0 ? "cpu" : "cuda";
}

/* ---- what is visible ------------------------------------------------------------------------- */
/* Says whether CUDA counts GPUs by PCI address, as NVML does: CUDA_DEVICE_ORDER says so, or all
 * GPUs are alike, so that none is faster.
 */
static bool counts_by_address(const kiln_devices_question *q)
{
    if (q->order && strcmp(q->order, "PCI_BUS_ID") == 0) return true;
    for (uint32_t i = 1; i < q->gpus->n; i++)
        if (strcmp(q->gpus->items[i].name, q->gpus->items[0].name) != 0) return false;
    return true;
}

static bool is_lost(const kiln_gpu_list *gpus, unsigned long gpu)
{
    for (uint32_t i = 0; i < gpus->n_lost; i++)
        if (gpus->lost[i].gpu == gpu) return true;
    return false;
}

/* Resolves an index. If NVML and CUDA count alike, it becomes a UUID; an instance of a GPU has no
 * index of its own. Otherwise it can name any GPU, perhaps the newest. */
static bool see_index(const kiln_devices_question *q, const char *entry, kiln_device *d)
{
    const unsigned long index = strlen(entry) < 10 ? strtoul(entry, NULL, 10) : UINT32_MAX;
    const bool alike = counts_by_address(q);
    if (index >= q->gpus->n_gpus || (alike && is_lost(q->gpus, index))) return false;
    for (uint32_t i = 0; i < q->gpus->n; i++) {
        const kiln_gpu *g = &q->gpus->items[i];
        if (alike && g->gpu != index) continue;
        if (g->arch > d->arch) d->arch = g->arch;
        if (alike) memcpy(d->pci, g->pci, sizeof d->pci);
        if (alike && starts(g->uuid, "GPU-"))
            (void)snprintf(d->uuid, sizeof d->uuid, "%s", g->uuid);
    }
    return true;
}

/* Resolves a UUID or the beginning of exactly one. NVML does not know instances by names of the old
 * form; they are left to CUDA. */
static bool see_uuid(const kiln_devices_question *q, const char *entry, kiln_device *d)
{
    unsigned n = 0;
    if (!is_uuid(entry)) return false;
    for (uint32_t i = 0; i < q->gpus->n; i++) {
        if (!starts(q->gpus->items[i].uuid, entry)) continue;
        (void)snprintf(d->uuid, sizeof d->uuid, "%s", q->gpus->items[i].uuid);
        memcpy(d->pci, q->gpus->items[i].pci, sizeof d->pci);
        d->arch = q->gpus->items[i].arch;
        n++;
    }
    return n == 1 || (n == 0 && starts(entry, "MIG-GPU-"));
}

static bool has_device(const kiln_device *items, unsigned n, const kiln_device *d)
{
    for (unsigned i = 0; i < n; i++)
        if (strcmp(items[i].visible, d->visible) == 0 ||
            (*d->uuid && strcmp(items[i].uuid, d->uuid) == 0))
            return true;
    return false;
}

/* Without CUDA_VISIBLE_DEVICES: every GPU, by UUID. */
static void see_all(const kiln_devices_question *q, kiln_device_list *v)
{
    for (uint32_t i = 0; i < q->gpus->n; i++) {
        kiln_device *d = &v->items[v->n++];
        *d =
            (kiln_device){.kind = KILN_DEVICE_CUDA, .arch = q->gpus->items[i].arch, .chosen = true};
        memcpy(d->visible, q->gpus->items[i].uuid, sizeof d->visible);
        memcpy(d->uuid, q->gpus->items[i].uuid, sizeof d->uuid);
        memcpy(d->pci, q->gpus->items[i].pci, sizeof d->pci);
    }
}

/* Writes why an entry ends the list. */
static void say_invalid(const kiln_devices_question *q, const char *entry, kiln_device_list *v)
{
    const bool broken =
        is_index(entry) && strlen(entry) < 10 && is_lost(q->gpus, strtoul(entry, NULL, 10));
    (void)snprintf(v->note, sizeof v->note,
                   "CUDA_VISIBLE_DEVICES is '%.80s', and '%.80s' is %s (%u)", q->visible, entry,
                   broken ? "a GPU here that does not work" : "none of the GPUs here",
                   q->gpus->n_gpus);
}

void kiln_devices_visible(const kiln_devices_question *q, kiln_device_list *v)
{
    kiln_device d;
    memset(v, 0, sizeof *v);
    if (!q->visible) {
        see_all(q, v);
        return;
    }
    for (const char *at = q->visible; v->n < KILN_DEVICES_MAX;) {
        d = (kiln_device){.kind = KILN_DEVICE_CUDA};
        if (!next_entry(&at, d.visible, sizeof d.visible)) return;
        if (is_index(d.visible) ? !see_index(q, d.visible, &d) : !see_uuid(q, d.visible, &d)) {
            say_invalid(q, d.visible, v);
            return;
        }
        if (has_device(v->items, v->n, &d)) {
            (void)snprintf(
                v->note, sizeof v->note,
                "CUDA_VISIBLE_DEVICES is '%.80s' and names a GPU twice; CUDA then shows none",
                q->visible);
            v->n = 0;
            return;
        }
        v->items[v->n++] = d;
    }
}

/* ---- the choice ------------------------------------------------------------------------------ */
static void say_none_usable(const kiln_gpu_list *gpus, char *why, size_t size)
{
    const uint32_t n_gpus = gpus->n_gpus;
    if (gpus->n_lost)
        (void)snprintf(why, size, "GPU %u does not work, the driver says: %s", gpus->lost[0].gpu,
                       gpus->lost[0].why);
    else if (n_gpus == 0)
        (void)snprintf(why, size, "there is no GPU");
    else if (n_gpus == 1)
        (void)snprintf(why, size, "the GPU of this machine is hidden");
    else
        (void)snprintf(why, size, "all %u GPUs of this machine are hidden", n_gpus);
}

/* Writes why no GPU can be used at all; "" if one can. */
static void why_no_gpu(const kiln_devices_question *q, const kiln_device_list *v, char *why,
                       size_t size)
{
    const uint32_t built = q->built_version, has = q->gpus->driver_version;
    why[0] = '\0';
    if (built == 0)
        (void)snprintf(why, size,
                       "this build has no CUDA; install a package with CUDA, or build with nvcc "
                       "(CUDA 13) in the PATH");
    else if (q->gpus->why_none[0])
        (void)snprintf(why, size, "%s", q->gpus->why_none);
    else if (q->gpus->n == 0)
        say_none_usable(q->gpus, why, size);
    else if (has && has / 1000 < built / 1000) /* within a major version an older driver works */
        (void)snprintf(
            why, size,
            "this build needs CUDA %u.%u, but the driver has CUDA %u.%u; update the driver",
            built / 1000, built % 1000 / 10, has / 1000, has % 1000 / 10);
    else if (v->n == 0)
        (void)snprintf(why, size, "%s",
                       *q->visible ? v->note
                                   : "CUDA_VISIBLE_DEVICES is empty, which hides every GPU");
}

/* Chooses for auto: the first GPU that the build has code for, else the CPU. A GPU that is named is
 * not checked here; its worker tries it and reports. */
static void choose_by_ourselves(const kiln_devices_question *q, const kiln_device_list *v,
                                bool usable, kiln_device_list *out)
{
    const bool hidden = q->visible && v->n == 0;
    for (unsigned i = 0; usable && i < v->n; i++) {
        const kiln_device *d = &v->items[i];
        if (d->arch == 0 || d->arch >= q->built_arch) {
            out->items[0] = *d;
            return;
        }
        if (i == 0)
            (void)snprintf(out->note, sizeof out->note,
                           "GPU '%.80s' is not used: its compute capability is %u.%u, but this "
                           "build needs at least %u.%u",
                           d->visible, d->arch / 10, d->arch % 10, q->built_arch / 10,
                           q->built_arch % 10);
    }
    out->passed_over = q->built_version && !hidden && (q->gpus->n_gpus > 0 || q->gpus->broken);
}

static kiln_status take(const kiln_devices_question *q, const kiln_device *d, kiln_device_list *out,
                        kiln_error *err)
{
    if (has_device(out->items, out->n, d) || out->n == KILN_DEVICES_MAX)
        return kiln_fail(err, KILN_E_USAGE, "--devices %s names '%s' twice", q->asked,
                         *d->uuid ? d->uuid : d->visible);
    out->items[out->n++] = *d;
    return KILN_OK;
}

static kiln_status fail_entry(const kiln_devices_question *q, const kiln_device_list *v,
                              const char *entry, const char *what, kiln_error *err)
{
    char numbers[32] = "number 0", hidden[128] = "";
    if (v->n > 1) (void)snprintf(numbers, sizeof numbers, "numbers 0 to %u", v->n - 1);
    if (q->visible)
        (void)snprintf(hidden, sizeof hidden, " (CUDA_VISIBLE_DEVICES is '%.80s')", q->visible);
    return kiln_fail(err, KILN_E_DEVICE, "--devices %s: '%s' %s; %u GPU%s visible, %s%s", q->asked,
                     entry, what, v->n, v->n == 1 ? " is" : "s are", numbers, hidden);
}

/* A number counts visible GPUs; a UUID must be of one of them, whatever CUDA_VISIBLE_DEVICES calls
 * it. */
static kiln_status take_entry(const kiln_devices_question *q, const kiln_device_list *v,
                              const char *entry, kiln_device_list *out, kiln_error *err)
{
    const kiln_device *found = NULL;
    if (is_index(entry)) {
        const unsigned long index = strlen(entry) < 10 ? strtoul(entry, NULL, 10) : UINT32_MAX;
        if (index >= v->n) return fail_entry(q, v, entry, "does not exist", err);
        return take(q, &v->items[index], out, err);
    }
    for (unsigned i = 0; i < v->n; i++) {
        if (!starts(v->items[i].uuid, entry) && strcmp(v->items[i].visible, entry) != 0) continue;
        if (found) return fail_entry(q, v, entry, "is the beginning of several names", err);
        found = &v->items[i];
    }
    if (found) return take(q, found, out, err);
    if (q->visible || !starts(entry, "MIG-GPU-"))
        return fail_entry(q, v, entry, "is not one of them", err);
    kiln_device old = {.kind = KILN_DEVICE_CUDA, .chosen = true};
    (void)snprintf(old.visible, sizeof old.visible, "%s", entry);
    return take(q, &old, out, err);
}

kiln_status kiln_devices_choose(const kiln_devices_question *q, kiln_device_list *out,
                                kiln_error *err)
{
    const char *kind = kiln_devices_named_kind(q->asked);
    char why[sizeof out->note], entry[sizeof out->items->visible];
    kiln_device_list v;
    *out = (kiln_device_list){.n = 1, .items = {{.kind = KILN_DEVICE_CPU}}};
    if (kind && strcmp(kind, "cpu") == 0) return KILN_OK;
    kiln_devices_visible(q, &v);
    why_no_gpu(q, &v, why, sizeof why);
    (void)snprintf(out->note, sizeof out->note, "%s", *why ? why : v.note);
    if (!kind) {
        choose_by_ourselves(q, &v, !*why, out);
        return KILN_OK;
    }
    if (*why) {
        (void)kiln_fail(err, KILN_E_DEVICE, "--devices %s: %s", q->asked, why);
        kiln_devices_advise(err);
        return KILN_E_DEVICE;
    }
    out->n = 0;
    if (strcmp(q->asked, "cuda") == 0) return take(q, &v.items[0], out, err);
    if (strcmp(q->asked, "all") == 0) {
        for (unsigned i = 0; i < v.n; i++) KILN_TRY(take(q, &v.items[i], out, err));
        return KILN_OK;
    }
    for (const char *at = q->asked; next_entry(&at, entry, sizeof entry);)
        KILN_TRY(take_entry(q, &v, entry, out, err));
    return KILN_OK;
}

void kiln_devices_place(const char *sysfs, kiln_device_list *d)
{
    for (unsigned i = 0; i < d->n; i++)
        kiln_cpus_near(sysfs, d->items[i].pci, d->items[i].cpus, sizeof d->items[i].cpus);
}

static kiln_devices_question question_here(const char *text, const kiln_gpu_list *gpus)
{
    return (kiln_devices_question){.asked = text ? text : "auto",
                                   .visible = getenv("CUDA_VISIBLE_DEVICES"),
                                   .order = getenv("CUDA_DEVICE_ORDER"),
                                   .built_version = kiln_device_built_version(),
                                   .built_arch = kiln_device_built_arch(),
                                   .gpus = gpus};
}

kiln_status kiln_devices_ask(const char *text, kiln_gpu_list *gpus, kiln_devices_question *q,
                             kiln_error *err)
{
    *q = question_here(text, gpus);
    return kiln_gpus_list(NVML_MS, gpus, err);
}

kiln_status kiln_devices_resolve(const char *text, kiln_device_list *out, kiln_error *err)
{
    kiln_gpu_list gpus = {0};
    kiln_devices_question q = question_here(text, &gpus);
    if (q.built_version && strcmp(q.asked, "cpu") != 0)
        KILN_TRY(kiln_devices_ask(text, &gpus, &q, err));
    KILN_TRY(kiln_devices_choose(&q, out, err));
    kiln_devices_place("/sys", out);
    return KILN_OK;
}

/* ---- names and advice ------------------------------------------------------------------------ */
const char *kiln_devices_uuid(const char *visible, const char *uuid, char *buf, size_t size)
{
    const bool instance = visible && starts(visible, "MIG-");
    (void)snprintf(buf, size, "%s%s", instance ? "MIG-" : "",
                   instance && starts(uuid, "GPU-") ? uuid + 4 : uuid);
    /* `visible` may be shortened. If uuid does not begin with it, `visible` has the old form or
     * uuid is that of the whole GPU */
    if (instance && !starts(buf, visible)) (void)snprintf(buf, size, "%s", visible);
    return buf;
}

void kiln_devices_advise(kiln_error *err)
{
    static const char advice[] = "; --devices cpu needs no GPU";
    const int capacity = (int)(sizeof err->msg - sizeof advice);
    if (!err || err->status != KILN_E_DEVICE || strstr(err->msg, "--devices cpu")) return;
    (void)kiln_fail(err, KILN_E_DEVICE, "%.*s%s", capacity, err->msg, advice);
}

unsigned kiln_devices_threads(uint32_t asked) { return asked ? asked : kiln_cpus_count(); }
