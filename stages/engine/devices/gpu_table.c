/* The table of GPUs: those that NVML lists, which of them CUDA_VISIBLE_DEVICES lets through, and
 * which --devices chooses. */
#include "stages/engine/devices/gpu_table.h"

#include "base/memory.h"
#include "base/option.h"
#include "base/quote.h"
#include "stages/engine/json_text.h"

#include <stdlib.h>
#include <string.h>

/* ---- as JSON --------------------------------------------------------------------------------- */
/* NULL means that there is no memory. json_pack's "o" and json_array_append_new refuse it, so
 * callers need no check. */
static json_t *text_or_null(const char *s) { return *s ? kiln_json_string(s) : json_null(); }
static json_t *number_or_null(int64_t n) { return n >= 0 ? json_integer(n) : json_null(); }
static json_t *size_or_null(uint64_t bytes, bool known)
{
    return known ? json_integer((json_int_t)bytes) : json_null();
}

static json_t *arch_or_null(uint32_t arch)
{
    return arch ? json_sprintf("%u.%u", arch / 10, arch % 10) : json_null();
}

static int find(const kiln_device_list *list, const kiln_gpu *g)
{
    for (unsigned i = 0; i < list->n; i++)
        if (*list->items[i].uuid && strcmp(list->items[i].uuid, g->uuid) == 0) return (int)i;
    return -1;
}

static json_t *gpu_row(const kiln_gpu *g, int number, bool chosen, const char *sysfs)
{
    const bool instance = strncmp(g->uuid, "MIG-", 4) == 0, memory = g->total_bytes > 0;
    char cpus[KILN_CPUS_TEXT];
    kiln_cpus_near(sysfs, g->pci, cpus, sizeof cpus);
    return json_pack(
        "{s:o, s:o, s:s, s:i, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:I, s:s, s:s, s:s, s:b}",
        "number", number_or_null(number), "name", kiln_json_string(g->name), "uuid", g->uuid, "gpu",
        (int)g->gpu, "instance", instance, "pci", text_or_null(g->pci), "node",
        number_or_null(kiln_cpus_node(sysfs, g->pci)), "cpus", text_or_null(cpus),
        "compute_capability", arch_or_null(g->arch), "total_bytes",
        size_or_null(g->total_bytes, memory), "free_bytes", size_or_null(g->free_bytes, memory),
        "ecc", g->has_ecc, "ecc_errors", (json_int_t)g->ecc_errors, "repair",
        g->repair_failed    ? "failed"
        : g->repair_pending ? "pending"
                            : "none",
        "mode",
        g->prohibited  ? "prohibited"
        : g->exclusive ? "exclusive"
                       : "default",
        "state", number >= 0 ? "visible" : "hidden", "chosen", chosen);
}

static bool has_entry(const kiln_device_list *chosen, const kiln_device *d)
{
    for (unsigned i = 0; i < chosen->n; i++)
        if (chosen->items[i].kind == KILN_DEVICE_CUDA &&
            strcmp(chosen->items[i].visible, d->visible) == 0)
            return true;
    return false;
}

json_t *kiln_gpu_table(const kiln_devices_question *q, const kiln_device_list *chosen,
                       const char *sysfs)
{
    kiln_device_list visible;
    json_t *table = json_array();
    int bad = 0;
    kiln_devices_visible(q, &visible);
    for (uint32_t i = 0; i < q->gpus->n; i++) {
        const kiln_gpu *g = &q->gpus->items[i];
        const int number = find(&visible, g);
        const bool taken = number >= 0 && has_entry(chosen, &visible.items[number]);
        bad |= json_array_append_new(table, gpu_row(g, number, taken, sysfs));
    }
    for (unsigned i = 0; i < visible.n; i++) {
        const kiln_device *d = &visible.items[i];
        /* what is left are entries of CUDA_VISIBLE_DEVICES that NVML has no UUID for */
        if (*d->uuid) continue;
        bad |= json_array_append_new(table, json_pack("{s:i, s:o, s:s, s:b}", "number", (int)i,
                                                      "name", kiln_json_string(d->visible), "state",
                                                      "unknown", "chosen", has_entry(chosen, d)));
    }
    for (uint32_t i = 0; i < q->gpus->n_lost; i++) {
        const kiln_gpu_lost *lost = &q->gpus->lost[i];
        bad |= json_array_append_new(table,
                                     json_pack("{s:n, s:o, s:i, s:s, s:b}", "number", "name",
                                               kiln_json_string(lost->why), "gpu", (int)lost->gpu,
                                               "state", "lost", "chosen", false));
    }
    if (!bad) return table;
    json_decref(table);
    return NULL;
}

/* ---- for people ------------------------------------------------------------------------------ */
static const char *word(const json_t *row, const char *key)
{
    const char *s = json_string_value(json_object_get(row, key));
    return s ? s : "-";
}

static const char *count(const json_t *row, const char *key, char buf[32])
{
    const json_t *v = json_object_get(row, key);
    (void)snprintf(buf, 32, json_is_integer(v) ? "%" JSON_INTEGER_FORMAT : "-",
                   json_integer_value(v));
    return buf;
}

static void write_memory(const json_t *row, char *out, size_t size)
{
    char left[32], total[32];
    const json_t *t = json_object_get(row, "total_bytes"), *f = json_object_get(row, "free_bytes");
    if (json_is_integer(t))
        (void)snprintf(out, size, "%s of %s", kiln_size_text((uint64_t)json_integer_value(f), left),
                       kiln_size_text((uint64_t)json_integer_value(t), total));
    else
        (void)snprintf(out, size, "-");
}

static const char *state_text(const json_t *row)
{
    const char *state = word(row, "state");
    if (strcmp(state, "visible") == 0)
        return json_is_true(json_object_get(row, "chosen")) ? "chosen" : "";
    if (strcmp(state, "hidden") == 0) return "hidden by CUDA_VISIBLE_DEVICES";
    if (strcmp(state, "lost") == 0) return "does not work";
    return json_is_true(json_object_get(row, "chosen")) ? "chosen by CUDA" : "CUDA knows which";
}

void kiln_gpu_table_print(const json_t *table)
{
    size_t i;
    const json_t *row;
    char number[32], node[32], memory[80];
    if (json_array_size(table) == 0) return;
    kiln_print("%-6s  %-24s  %-22s  %-12s  %-4s  %-40s  %s", "number", "GPU", "memory free",
               "PCI address", "node", "UUID", "state");
    json_array_foreach(table, i, row)
    {
        write_memory(row, memory, sizeof memory);
        kiln_print("%-6s  %-24s  %-22s  %-12s  %-4s  %-40s  %s", count(row, "number", number),
                   word(row, "name"), memory, word(row, "pci"), count(row, "node", node),
                   word(row, "uuid"), state_text(row));
    }
}

/* ---- --list-gpus ----------------------------------------------------------------------------- */
static kiln_status print(const json_t *table, bool json, const char *note, kiln_error *err)
{
    if (!json) {
        kiln_gpu_table_print(table);
        if (*note) kiln_print("%s", note);
        return KILN_OK;
    }
    char *text = kiln_json_text(table, JSON_INDENT(2));
    if (!text) return kiln_fail(err, KILN_E_NOMEM, "out of memory for the list of GPUs");
    kiln_print_json(text);
    free(text);
    return KILN_OK;
}

kiln_status kiln_list_gpus(const char *devices, bool json, kiln_error *err)
{
    kiln_gpu_list gpus;
    kiln_devices_question q;
    kiln_device_list chosen;
    kiln_error why = {0};
    KILN_TRY(kiln_devices_ask(devices, &gpus, &q, err));
    /* that --devices names none is a line of the answer */
    const kiln_status st = kiln_devices_choose(&q, &chosen, &why);
    if (st != KILN_OK) chosen = (kiln_device_list){0};
    json_t *table = kiln_gpu_table(&q, &chosen, "/sys");
    if (!table) return kiln_fail(err, KILN_E_NOMEM, "out of memory for the list of GPUs");
    const char *note = st != KILN_OK ? why.msg : *chosen.note ? chosen.note : "";
    const kiln_status printed = print(table, json, note, err);
    json_decref(table);
    return printed;
}
