/* run -- a run as the parent sees it. For the parent's main thread. */
#ifndef KILN_STAGES_ENGINE_PARENT_RUN_H
#define KILN_STAGES_ENGINE_PARENT_RUN_H

#include "base/file.h"
#include "stages/engine/memory/ram.h"
#include "stages/engine/memory/scratch.h"
#include "stages/engine/parent/host_hooks.h"
#include "stages/engine/parent/report_rows.h"
#include "stages/engine/parent/run_devices.h"
#include "stages/engine/parent/run_quarantine.h"
#include "stages/engine/parent/selection.h"
#include "stages/engine/stage_graph.h"

struct kiln_run {
    const kiln_stage_program *program;
    const kiln_stage_info *stage; /* NULL: a tool, not in stages.def */
    kiln_cli cli;                 /* of kiln_engine_options_merge */
    kiln_parsed parsed;
    kiln_manifest *manifest;
    kiln_home homes[KILN_HOMES];  /* the CPU and the GPUs, whichever came first; one has no devices in most runs */
    kiln_home *home;              /* of the next list */
    kiln_job *beside;             /* kiln_run_units_beside; NULL: no list is open */
    bool on_cpu;                  /* kiln_run_on_cpu */
    bool found_named;             /* the GPUs that --devices names are there */
    double work_s, later_s;       /* kiln_run_expect_work, kiln_run_expect_later; 0: not known */
    bool computes, serial;        /* kiln_run_computes, kiln_run_serial */
    const kiln_unit_taker *taker; /* kiln_run_takes */
    json_t *report;
    kiln_report_rows rows; /* of its list of many rows */
    json_t *lists;         /* an entry for each list of units that had work, for the run's record; NULL: none had */
    json_t *stored_report; /* if there was nothing to do: the report of the run that made the output */
    uint64_t units_done, units_cached, units_stored, units_retried;
    uint64_t units_total;            /* of all lists */
    kiln_buffer used;                /* keys of the units of all lists, possibly several times */
    uint64_t store_ns, stored_bytes; /* time and bytes of the transactions that stored units */
    kiln_quarantine quarantine;
    kiln_selection selection;
    kiln_run_hosts hosts;
    int64_t start_wall_ns;
    uint64_t start_ns;
    bool committed;
    char stored[1024];      /* names of the parameters that came from the manifest, with a blank before and after each */
    char partial_input[32]; /* an earlier stage that finished partially and is read by this one; "": none */
    kiln_scratch_folder scratch;
    kiln_ram_use ram;      /* ram.h */
    kiln_buffer bad_units; /* keys of refused results (kiln_unit_refuse), which are dropped when the run ends */
    kiln_error refusal;    /* the sentence about the first of them, or the first that reports a bug */
};
/* Returns where units of this run are stored: the manifest, or a part of it. */
kiln_manifest *kiln_run_store(const kiln_run *r);
/* Stores the KILN_KEYED options that were given; with --reset, drops all stored ones first. Inside a transaction. */
kiln_status kiln_run_store_parameters(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
/* Returns the status with which a run ends that failed with st. It turns KILN_E_USAGE into KILN_E_INPUT if the sentence names only
 * options whose values came from the manifest: then the user's command line is not wrong. */
kiln_status kiln_run_blame_stored(const kiln_run *r, kiln_status st, kiln_error *err);

#endif
