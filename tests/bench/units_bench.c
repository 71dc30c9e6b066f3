/* units_bench MANIFEST [--count N] [--outputs N] [--bytes N] [options of a stage] -- what the
 * engine itself takes for a list of units that compute nothing: seconds, the parent's memory and
 * bytes of the manifest for each unit. A unit has so many outputs (0: it is empty), which are all
 * the same four bytes, so that their rows count and their blobs do not. With --bytes each output is
 * noise of that size, so that the way of results from workers to the disk is all that counts.
 *
 * Steps. list: keys and units are made. compute: all are computed and stored. find: the same list
 * once more, all is stored; so a run begins that has nothing due. commit: the last transaction,
 * with the keys of all units. With --shard or --units the run ends after `compute`. The manifest
 * must be new, else `compute` finds units, too. Over hosts: --plan ends after `plan`, which finds
 * nothing and writes the claim; --shard I/N --part DIR after `part`, which comes to the same list
 * and stores a share of it; --gather DIR brings the parts in (`gather`) and goes on to find and
 * commit. Prints a line for each step: seconds, microseconds a unit, the parent's anonymous memory
 * behind it, and by how many bytes a unit that is above the start; then the peak, and the manifest.
 * Never fails by a number. */
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "stages/engine/engine.h"
#include "stages/engine/engine_options.h"
#include "stages/engine/program.h"
#include "stages/engine/memory/ram_use.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct {
    uint32_t count, outputs;
    kiln_size bytes;
    bool deferred;
} o;

static const kiln_opt options[] = {
    KILN_OPTION_NUMBER("count", &o.count, "N", "units", .def = "1000000", .range = "1..100000000",
                       .flags = KILN_KEYED),
    KILN_OPTION_NUMBER("outputs", &o.outputs, "N", "outputs of each", .def = "0", .range = "0..64",
                       .flags = KILN_KEYED),
    KILN_OPTION_NUMBER("bytes", &o.bytes, "SIZE",
                       "of each output, noise; 0: four bytes that are always the same", .def = "0",
                       .flags = KILN_KEYED),
    KILN_OPTION_BOOL("deferred", &o.deferred,
                     "outputs are made and packed as deferred work, as on a GPU"),
    KILN_OPTION_END,
};
static const kiln_cli cli = {.program = "units_bench",
                             .summary = "measures a list of units that compute nothing",
                             .positionals = "MANIFEST",
                             .n_positionals = 1,
                             .options = options,
                             .common = kiln_common_options};

/* Makes an output of its own: noise that no other unit has, because its beginning differs. */
static kiln_status put_noise(kiln_worker *w, const char *output, uint64_t unit, uint64_t i,
                             kiln_error *err)
{
    /* made by the first unit of a worker, which defers nothing before that */
    static uint64_t *noise;
    uint64_t *mine = NULL, from = 88172645463325252u;
    const uint64_t n = o.bytes.bytes / sizeof *noise;
    if (!noise) {
        KILN_TRY(KILN_ALLOC_UNSET(&noise, n, "noise", err));
        for (uint64_t k = 0; k < n; k++) {
            from ^= from << 13;
            from ^= from >> 7;
            noise[k] = from ^= from << 17;
        }
    }
    if (!output) return KILN_OK;
    KILN_TRY(KILN_ALLOC_UNSET(&mine, n, "an output", err));
    memcpy(mine, noise, n * sizeof *mine);
    mine[0] = unit;
    mine[1] = i;
    const kiln_status st = kiln_worker_put(w, output, mine, n * sizeof *mine, 1, err);
    free(mine);
    return st;
}

static kiln_status put_outputs(kiln_worker *w, void *context, kiln_error *err)
{
    static const uint32_t nothing = 0;
    const uint64_t *unit = context;
    char output[32];
    for (uint32_t i = 0; i < o.outputs; i++) {
        (void)snprintf(output, sizeof output, "output %u", i);
        if (o.bytes.bytes)
            KILN_TRY(put_noise(w, output, *unit, i, err));
        else
            KILN_TRY(kiln_worker_put(w, output, &nothing, sizeof nothing, sizeof nothing, err));
    }
    return KILN_OK;
}

static kiln_status compute(kiln_worker *w, const char *name, const void *payload,
                           size_t payload_bytes, kiln_error *err)
{
    uint64_t *unit;
    (void)payload, (void)payload_bytes;
    KILN_TRY(KILN_ALLOC(&unit, 1, "a unit", err));
    *unit = strtoull(name + strlen("unit "), NULL, 10);
    if (o.bytes.bytes) KILN_TRY(put_noise(w, NULL, 0, 0, err));
    if (o.deferred) {
        kiln_worker_defer(w, kiln_worker_threads(w), 1, put_outputs, free, unit);
        return KILN_OK;
    }
    const kiln_status st = put_outputs(w, unit, err);
    free(unit);
    return st;
}

typedef struct {
    uint64_t start_ns, start_bytes;
} meter;

static void read_meter(const meter *m, const char *step)
{
    const double s = (double)(kiln_now_ns() - m->start_ns) * 1e-9;
    const uint64_t now = kiln_ram_mapped(), more = now > m->start_bytes ? now - m->start_bytes : 0;
    printf("%-8s %9.2f s %9.2f us each %9.1f MiB %9.0f B each\n", step, s, s * 1e6 / o.count,
           (double)now / (1 << 20), (double)more / o.count);
    (void)fflush(stdout);
}

static uint64_t unit_ram(void)
{
    enum { LEAST = 1 << 20, DEFERRED = 16 };
    return LEAST + (o.deferred ? DEFERRED : 1) * o.outputs *
                       (o.bytes.bytes + kiln_outputs_ram(o.bytes.bytes));
}

static kiln_status make_list(kiln_run *r, kiln_unit **units, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(units, o.count, "the units", err));
    for (uint32_t i = 0; i < o.count; i++) {
        kiln_hasher *h = kiln_run_key_bare(r, "empty");
        kiln_key_u64(h, "outputs", o.outputs);
        kiln_key_u64(h, "bytes", o.bytes.bytes);
        kiln_key_u64(h, "index", i);
        (*units)[i] = (kiln_unit){
            .key = kiln_key_end(h), .ram = unit_ram(), .n_outputs = o.outputs, .optional = true};
        (void)snprintf((*units)[i].name, sizeof(*units)[i].name, "unit %u", i);
    }
    return KILN_OK;
}

static kiln_status put_nothing(kiln_run *r, kiln_manifest *m, void *context, kiln_error *err)
{
    (void)r, (void)context;
    return kiln_stage_output_put(m, "knn", "spacing", kiln_hash_of("", 0), err);
}

static const char *step_of(void)
{
    const kiln_engine_options *e = &kiln_engine_values;
    return e->plan ? "plan" : e->part ? "part" : e->gather ? "gather" : "compute";
}

static kiln_status measure(kiln_run *r, kiln_unit **units, kiln_error *err)
{
    meter m = {kiln_now_ns(), kiln_ram_mapped()};
    KILN_TRY(make_list(r, units, err));
    read_meter(&m, "list");
    m.start_ns = kiln_now_ns();
    const kiln_status st = kiln_run_units(r, "computing nothing", *units, o.count, err);
    read_meter(&m, step_of());
    KILN_TRY(st);
    kiln_units_release(*units, o.count);
    m.start_ns = kiln_now_ns();
    KILN_TRY(kiln_run_units(r, "finding it", *units, o.count, err));
    read_meter(&m, "find");
    m.start_ns = kiln_now_ns();
    KILN_TRY(kiln_run_commit(r, kiln_key_end(kiln_run_key(r)), put_nothing, NULL, err));
    read_meter(&m, "commit");
    return KILN_OK;
}

static kiln_status run(kiln_run *r, kiln_error *err)
{
    kiln_unit *units = NULL;
    struct stat s;
    const kiln_status st = measure(r, &units, err);
    if (units) kiln_units_release(units, o.count);
    free(units);
    if (stat(kiln_manifest_path(kiln_run_manifest(r)), &s) == 0)
        printf(
            "peak %.1f MiB; a kiln_unit has %zu B, an output %zu B; the manifest %.0f B a unit\n",
            (double)kiln_peak_rss() / (1 << 20), sizeof(kiln_unit), sizeof(kiln_unit_output),
            (double)s.st_size / o.count);
    return st;
}

static const kiln_stage_program program = {.name = "knn",
                                           .cli = &cli,
                                           .open = KILN_OPEN_CREATE,
                                           .flags = KILN_PROGRAM_CPU_ONLY | KILN_PROGRAM_SERIAL |
                                                    KILN_PROGRAM_ROUNDS,
                                           .run = run,
                                           .unit = compute};

int main(int argc, char **argv) { return kiln_program_main(&program, argc, argv); }
