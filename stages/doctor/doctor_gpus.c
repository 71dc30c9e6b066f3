/* CUDA and GPUs: versions, what CUDA_VISIBLE_DEVICES means here, each GPU's state, and whether it
 * computes. NVML is asked in one child, each GPU is tried in another: this process touches no
 * CUDA. */
#include "base/count.h"
#include "base/memory.h"
#include "base/option.h"
#include "kernels/device.h"
#include "stages/doctor/doctor.h"
#include "stages/engine/devices/gpu_table.h"
#include "stages/engine/json_text.h"
#include "stages/engine/devices/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROBE_MS = 120000 }; /* a driver that compiles our PTX for a new GPU takes its time */

/* of a GPU's memory: less is worth a word, --vram takes its share of what is free */
static const double LITTLE_FREE = 0.5;

/* ---- versions -------------------------------------------------------------------------------- */
static void version_text(uint32_t version, char buf[16])
{
    if (version)
        (void)snprintf(buf, 16, "%u.%u", version / 1000, version % 1000 / 10);
    else
        (void)snprintf(buf, 16, "none");
}

static void look_at_versions(kiln_doctor *d, const kiln_devices_question *q)
{
    char built[16], has[16];
    const char *driver = *q->gpus->driver ? q->gpus->driver : "none";
    version_text(q->built_version, built);
    version_text(q->gpus->driver_version, has);
    if (q->built_version)
        kiln_doctor_line(d,
                         "CUDA: built with %s for compute capabilities %s; driver %s, its CUDA %s",
                         built, kiln_device_built_archs(), driver, has);
    else
        kiln_doctor_line(d, "CUDA: this build has none; driver %s, its CUDA %s", driver, has);
    kiln_doctor_set(d, "cuda",
                    json_pack("{s:s, s:s, s:s, s:s}", "built", built, "archs",
                              kiln_device_built_archs(), "driver", driver, "driver_cuda", has));
    if (q->built_version && q->gpus->driver_version && q->gpus->driver_version < q->built_version &&
        q->gpus->driver_version / 1000 == q->built_version / 1000)
        kiln_doctor_find(d, KILN_NOTE, KILN_OK,
                         "the driver's CUDA %s is older than the %s of this build; GPUs for which "
                         "the build has code work, but "
                         "newer ones need a newer driver",
                         has, built);
}

static json_t *text_or_null(const char *text)
{
    return text ? kiln_json_string(text) : json_null();
}

/* What the two variables mean here, in words. */
static void look_at_environment(kiln_doctor *d, const kiln_devices_question *q)
{
    kiln_device_list visible;
    char meaning[512];
    kiln_devices_visible(q, &visible);
    if (!q->visible)
        (void)snprintf(
            meaning, sizeof meaning,
            "CUDA_VISIBLE_DEVICES is not set: all GPUs are visible, in the order of PCI addresses");
    else if (*visible.note)
        (void)snprintf(meaning, sizeof meaning, "%s", visible.note);
    else
        (void)snprintf(meaning, sizeof meaning,
                       "CUDA_VISIBLE_DEVICES is '%.200s': %u GPU%s, --devices 0 is the first",
                       q->visible, visible.n, visible.n == 1 ? "" : "s");
    kiln_doctor_line(d, "%s; CUDA_DEVICE_ORDER is %s", meaning, q->order ? q->order : "not set");
    kiln_doctor_set(d, "environment",
                    json_pack("{s:o, s:o, s:o}", "CUDA_VISIBLE_DEVICES", text_or_null(q->visible),
                              "CUDA_DEVICE_ORDER", text_or_null(q->order), "meaning",
                              kiln_json_string(meaning)));
    if (q->gpus->n == 0 || !q->visible || (visible.n > 0 && !*visible.note)) return;
    if (visible.n)
        kiln_doctor_find(d, KILN_NOTE, KILN_OK, "%s, so the list ends there", visible.note);
    else
        kiln_doctor_find(d, KILN_NOTE, KILN_OK,
                         "every GPU here is hidden: %s; unset CUDA_VISIBLE_DEVICES to use them",
                         *q->visible ? visible.note : "CUDA_VISIBLE_DEVICES is empty");
}

/* ---- what NVML says of them ------------------------------------------------------------------ */
static void judge_memory(kiln_doctor *d, const kiln_gpu *g)
{
    char left[32], total[32];
    if (g->total_bytes == 0 || (double)g->free_bytes >= LITTLE_FREE * (double)g->total_bytes)
        return;
    kiln_doctor_find(d, KILN_WARNING, KILN_OK,
                     "GPU %u has %s of memory, but only %s are free; nvidia-smi shows the programs "
                     "that use the rest",
                     g->gpu, kiln_size_text(g->total_bytes, total),
                     kiln_size_text(g->free_bytes, left));
}

static void judge_health(kiln_doctor *d, const kiln_gpu *g)
{
    if (g->repair_failed)
        kiln_doctor_find(
            d, KILN_ILL, KILN_E_DEVICE,
            "GPU %u (%s) has bad memory that can no longer be replaced by spare rows; have the "
            "GPU replaced",
            g->gpu, g->uuid);
    else if (g->ecc_errors)
        kiln_doctor_find(d, KILN_ILL, KILN_E_DEVICE,
                         "GPU %u (%s) had %s of memory that could not be corrected; reset it "
                         "(nvidia-smi --gpu-reset -i %u) when nothing runs on it",
                         g->gpu, g->uuid, KILN_COUNT(g->ecc_errors, "error"), g->gpu);
    else if (g->repair_pending)
        kiln_doctor_find(d, KILN_WARNING, KILN_OK,
                         "GPU %u (%s) has bad memory that is replaced when it is reset (nvidia-smi "
                         "--gpu-reset -i %u)",
                         g->gpu, g->uuid, g->gpu);
    if (g->prohibited)
        kiln_doctor_find(
            d, KILN_WARNING, KILN_OK,
            "GPU %u is in compute mode PROHIBITED, so no program may compute on it; an "
            "administrator changes that with nvidia-smi -i %u -c DEFAULT",
            g->gpu, g->gpu);
    if (g->exclusive)
        kiln_doctor_find(
            d, KILN_NOTE, KILN_OK,
            "GPU %u lets one process compute at a time (EXCLUSIVE_PROCESS); a stage fails while "
            "another process uses it",
            g->gpu);
}

static void judge_code(kiln_doctor *d, const kiln_devices_question *q, const kiln_gpu *g)
{
    if (q->built_version && g->arch && g->arch < q->built_arch)
        kiln_doctor_find(
            d, KILN_WARNING, KILN_OK,
            "GPU %u (compute capability %u.%u) is older than this build supports (%u.%u); "
            "make CUDA_ARCHS=%u builds for it if your CUDA still supports it",
            g->gpu, g->arch / 10, g->arch % 10, q->built_arch / 10, q->built_arch % 10, g->arch);
}

/* Of a GPU that is cut into instances once only. */
static void judge_gpus(kiln_doctor *d, const kiln_devices_question *q)
{
    const kiln_gpu_list *gpus = q->gpus;
    for (uint32_t i = 0; i < gpus->n; i++) {
        const kiln_gpu *g = &gpus->items[i];
        judge_memory(d, g);
        if (i > 0 && g[-1].gpu == g->gpu) continue;
        judge_health(d, g);
        judge_code(d, q, g);
    }
    for (uint32_t i = 0; i < gpus->n_lost; i++)
        kiln_doctor_find(
            d, KILN_ILL, KILN_E_DEVICE,
            "GPU %u does not work, the driver says: %s; reset it or restart the machine, and "
            "look for NVRM: Xid in the kernel's log",
            gpus->lost[i].gpu, gpus->lost[i].why);
}

/* ---- does it compute ------------------------------------------------------------------------- */
static void try_one(kiln_doctor *d, const kiln_device *device, unsigned number, json_t *list)
{
    char text[1200];
    const bool works = kiln_doctor_probe(device, PROBE_MS, text, sizeof text);
    kiln_doctor_line(d, "GPU %u %s: %s", number, works ? "works" : "DOES NOT WORK", text);
    if (json_array_append_new(list, json_pack("{s:i, s:o, s:b, s:o}", "number", (int)number,
                                              "visible", kiln_json_string(device->visible), "works",
                                              works, "text", kiln_json_string(text))) != 0)
        d->no_memory = true;
    if (!works)
        kiln_doctor_find(d, KILN_ILL, KILN_E_DEVICE, "--devices %u (GPU '%s') does not work: %s",
                         number, device->visible, text);
}

/* Says why no GPU is tried, if there are some and none is hidden. */
static void say_why_not(kiln_doctor *d, const kiln_devices_question *q, const char *why)
{
    const bool here = q->gpus->n_gpus > 0 || q->gpus->broken;
    if (!here)
        kiln_doctor_find(d, KILN_NOTE, KILN_OK,
                         "no GPU is used: %s; everything runs on the CPU, with the same bits", why);
    else if (!q->built_version)
        kiln_doctor_find(d, KILN_WARNING, KILN_OK, "GPUs are present, but %s", why);
    else if (q->gpus->broken || q->gpus->n > 0)
        kiln_doctor_find(d, KILN_ILL, KILN_E_DEVICE, "no GPU can be used: %s", why);
    else if (q->gpus->n_lost == 0)
        kiln_doctor_find(d, KILN_NOTE, KILN_OK, "no GPU is used: %s", why);
}

/* Those that the build has code for; that others are too old is said already. */
static void try_visible(kiln_doctor *d, kiln_device_list *visible, uint32_t least_arch,
                        json_t *list)
{
    kiln_devices_place("/sys", visible);
    for (unsigned i = 0; i < visible->n; i++) {
        const kiln_device *device = &visible->items[i];
        if (device->arch == 0 || device->arch >= least_arch) try_one(d, device, i, list);
    }
}

static void try_all(kiln_doctor *d, const kiln_devices_question *q)
{
    kiln_devices_question all = *q, one = *q;
    kiln_device_list devices, visible;
    kiln_error why = {0};
    json_t *list = json_array();
    all.asked = "all";
    one.asked = "auto"; /* its note says why there is none, without advice about --devices */
    kiln_devices_visible(q, &visible);
    if (kiln_devices_choose(&all, &devices, &why) == KILN_OK)
        try_visible(d, &visible, q->built_arch, list);
    else if (q->built_version == 0 || q->gpus->n == 0 ||
             visible.n > 0) /* else all are hidden, which is said already */
        say_why_not(d, q,
                    kiln_devices_choose(&one, &devices, &why) == KILN_OK ? devices.note : why.msg);
    kiln_doctor_set(d, "tried", list);
}

/* What auto does here: in one sentence, and as auto_opening_s of the report. */
static void say_auto(kiln_doctor *d, const kiln_device_list *chosen)
{
    if (chosen->items[0].kind != KILN_DEVICE_CUDA) return; /* why, is said elsewhere */
    kiln_doctor_line(d,
                     "--devices auto chooses this GPU, or the CPU if its %u threads need less than "
                     "the %g s that "
                     "opening a GPU takes",
                     kiln_devices_threads(kiln_common_values.threads), kiln_work_gpu_s(false));
    kiln_doctor_set(d, "auto_opening_s", kiln_json_real(kiln_work_gpu_s(false)));
}

kiln_status kiln_doctor_gpus(kiln_doctor *d, kiln_error *err)
{
    kiln_gpu_list gpus;
    kiln_devices_question q;
    kiln_device_list chosen;
    KILN_TRY(kiln_devices_ask("auto", &gpus, &q, err));
    look_at_versions(d, &q);
    look_at_environment(d, &q);
    KILN_TRY(kiln_devices_choose(&q, &chosen, err));
    json_t *table = kiln_gpu_table(&q, &chosen, "/sys");
    if (table && !d->quiet) kiln_gpu_table_print(table);
    kiln_doctor_set(d, "gpus", table);
    say_auto(d, &chosen);
    judge_gpus(d, &q);
    try_all(d, &q);
    return KILN_OK;
}
