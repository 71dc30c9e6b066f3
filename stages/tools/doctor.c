/* kiln-doctor -- what SplatKiln finds on this machine, what is wrong with it, and how to repair it.
 * Changes nothing. */
#include "base/option.h"
#include "base/quote.h"
#include "stages/doctor/doctor.h"
#include "stages/engine/engine.h"
#include "stages/engine/program.h"

#include <stdio.h>
#include <string.h>

static struct {
    bool probe;
} o;

static const kiln_opt options[] = {
    KILN_OPTION_BOOL("probe", &o.probe,
                     "try CUDA's first device and print the result, for internal use",
                     .flags = KILN_HIDDEN | KILN_ALONE),
    KILN_OPTION_END,
};

static const char *const notes[] = {
    "Prints versions, limits, free disk space and the GPUs. Then every visible GPU computes a test "
    "in a process of its own, which "
    "is compared with the CPU. Problems follow, with how to repair them.",
    "With MANIFEST also: the disk under it, whether it opens, its lock, and scratch left by a run.",
    "The exit code is 6 if a GPU that should work does not, the code of another error, or 0. "
    "Notes, warnings and a machine without "
    "a GPU are not failures.",
    NULL,
};

static const kiln_cli cli = {.program = "kiln-doctor",
                             .summary =
                                 "says what this machine has for baking, and what is wrong with it",
                             .positionals = "[MANIFEST]",
                             .n_optional = 1,
                             .tables_note = notes,
                             .options = options,
                             .common = kiln_common_options};

/* ---- findings -------------------------------------------------------------------------------- */
/* All but the first that is ill: the program ends with its sentence. */
static void print_findings(const kiln_doctor *d)
{
    size_t i;
    const json_t *f;
    unsigned n_ill = 0;
    if (d->quiet) return;
    json_array_foreach(d->findings, i, f)
    {
        const char *kind = json_string_value(json_object_get(f, "kind"));
        if (strcmp(kind, "ill") == 0 && n_ill++ == 0) continue;
        kiln_print("%s: %s", kind, json_string_value(json_object_get(f, "sentence")));
    }
    if (json_array_size(d->findings) == 0) kiln_print("nothing is wrong");
}

/* ---- the program ----------------------------------------------------------------------------- */
static kiln_status print_probe(kiln_error *err)
{
    char text[512];
    const kiln_status st = kiln_doctor_probe_here(text, sizeof text, err);
    kiln_print("%s", st == KILN_OK ? text : err->msg);
    return st;
}

static kiln_status run_doctor(kiln_run *r, kiln_error *err)
{
    if (o.probe) return print_probe(err);
    const kiln_parsed *args = kiln_run_args(r);
    kiln_doctor d = {
        .report = kiln_run_report(r), .findings = json_array(), .quiet = kiln_run_json(r)};
    kiln_doctor_set(&d, "findings", d.findings); /* the report owns it */
    if (d.no_memory) return kiln_fail(err, KILN_E_NOMEM, "out of memory for the report");
    kiln_doctor_libraries(&d);
    kiln_doctor_machine(&d);
    kiln_doctor_place(&d, args->n_positional ? args->positional[0] : NULL);
    KILN_TRY(kiln_doctor_gpus(&d, err));
    if (d.no_memory) return kiln_fail(err, KILN_E_NOMEM, "out of memory for the report");
    print_findings(&d);
    if (d.worst.status != KILN_OK) *err = d.worst;
    return d.worst.status;
}

static const kiln_stage_program program = {
    .name = "doctor", .cli = &cli, .flags = KILN_PROGRAM_OPENS_ITSELF, .run = run_doctor};

int main(int argc, char **argv) { return kiln_program_main(&program, argc, argv); }
