/* units_bench MANIFEST [--count N] [--outputs N] [options of a stage] -- what the engine itself takes for a list of units that
 * compute nothing: seconds, the parent's memory and bytes of the manifest for each unit. A unit has so many outputs (0: it is
 * empty), which are all the same four bytes, so that their rows count and their blobs do not.
 *
 * Steps. list: keys and units are made. compute: all are computed and stored. find: the same list once more, all is stored; so a
 * run begins that has nothing due. commit: the last transaction, with the keys of all units. With --shard or --units the run ends
 * after `compute`. The manifest must be new, else `compute` finds units, too.
 * Over hosts: --plan ends after `plan`, which finds nothing and writes the claim; --shard I/N --part DIR after `part`, which comes
 * to the same list and stores a share of it; --gather DIR brings the parts in (`gather`) and goes on to find and commit. Prints a
 * line for each step: seconds, microseconds a unit, the parent's anonymous memory behind it, and by how many bytes a unit that is
 * above the start; then the peak, and the manifest. Never fails by a number. */
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "stages/engine/engine.h"
#include "stages/engine/engine_options.h"
#include "stages/engine/program.h"
#include "stages/engine/memory/ram_use.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static struct {
    uint32_t count, outputs;
} o;

static const kiln_opt options[] = {
    KILN_OPTION_NUMBER("count", &o.count, "N", "units", .def = "1000000", .range = "1..100000000", .flags = KILN_KEYED),
    KILN_OPTION_NUMBER("outputs", &o.outputs, "N", "outputs of each", .def = "0", .range = "0..64", .flags = KILN_KEYED),
    KILN_OPTION_END,
};
static const kiln_cli cli = {.program = "units_bench",
                             .summary = "measures a list of units that compute nothing",
                             .positionals = "MANIFEST",
                             .n_positionals = 1,
                             .options = options,
                             .common = kiln_common_options};

static kiln_status compute(kiln_worker *w, const char *name, const void *payload, size_t payload_bytes, kiln_error *err)
{
    static const uint32_t nothing = 0;
    char output[32];
    (void)name, (void)payload, (void)payload_bytes;
    for (uint32_t i = 0; i < o.outputs; i++) {
        (void)snprintf(output, sizeof output, "output %u", i);
        KILN_TRY(kiln_worker_put(w, output, &nothing, sizeof nothing, sizeof nothing, err));
    }
    return KILN_OK;
}

typedef struct {
    uint64_t start_ns, start_bytes;
} meter;

static void read_meter(const meter *m, const char *step)
{
    const double s = (double)(kiln_now_ns() - m->start_ns) * 1e-9;
    const uint64_t now = kiln_ram_mapped(), more = now > m->start_bytes ? now - m->start_bytes : 0;
    printf("%-8s %9.2f s %9.2f us each %9.1f MiB %9.0f B each\n", step, s, s * 1e6 / o.count, (double)now / (1 << 20),
           (double)more / o.count);
    (void)fflush(stdout);
}

static kiln_status make_list(kiln_run *r, kiln_unit **units, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(units, o.count, "the units", err));
    for (uint32_t i = 0; i < o.count; i++) {
        kiln_hasher *h = kiln_run_key_bare(r, "empty");
        kiln_key_u64(h, "outputs", o.outputs);
        kiln_key_u64(h, "index", i);
        (*units)[i] = (kiln_unit){.key = kiln_key_end(h), .ram = 1 << 20, .optional = true};
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
        printf("peak %.1f MiB; a kiln_unit has %zu B, an output %zu B; the manifest %.0f B a unit\n",
               (double)kiln_peak_rss() / (1 << 20), sizeof(kiln_unit), sizeof(kiln_unit_output), (double)s.st_size / o.count);
    return st;
}

static const kiln_stage_program program = {.name = "knn",
                                           .cli = &cli,
                                           .open = KILN_OPEN_CREATE,
                                           .flags = KILN_PROGRAM_CPU_ONLY | KILN_PROGRAM_SERIAL | KILN_PROGRAM_ROUNDS,
                                           .run = run,
                                           .unit = compute};

int main(int argc, char **argv) { return kiln_program_main(&program, argc, argv); }
