/* run -- a run as the parent sees it: a struct of each file's own. For the parent's main thread. */
#ifndef KILN_STAGES_ENGINE_PARENT_RUN_H
#define KILN_STAGES_ENGINE_PARENT_RUN_H

#include "base/file.h"
#include "stages/engine/engine_options.h"
#include "stages/engine/memory/ram.h"
#include "stages/engine/memory/scratch.h"
#include "stages/engine/parent/host_hooks.h"
#include "stages/engine/parent/commit.h"
#include "stages/engine/parent/run_devices.h"
#include "stages/engine/parent/run_quarantine.h"
#include "stages/engine/parent/run_units.h"
#include "stages/engine/parent/selection.h"
#include "stages/engine/parent/unit_results.h"
#include "stages/engine/stage_graph.h"

struct kiln_run {
    const kiln_stage_program *program;
    const kiln_stage_info *stage; /* NULL: a tool, not in stages.def */
    kiln_cli cli;                 /* of kiln_engine_options_merge */
    kiln_parsed parsed;
    const kiln_engine_options *options; /* borrowed, as common */
    const kiln_common *common;          /* options that base gives to every program */
    kiln_manifest *manifest;
    kiln_run_devices devices;
    kiln_run_lists lists;
    kiln_ram_use ram;
    kiln_scratch_folder scratch;
    kiln_run_reports report;
    kiln_refusals refusals;
    kiln_quarantine quarantine;
    kiln_selection selection;
    kiln_run_hosts hosts;
    int64_t start_wall_ns;
    uint64_t start_ns;
    bool committed;
    /* names of the parameters that came from the manifest, with a blank before and after each */
    char stored[1024];
    /* an earlier stage that finished partially and is read by this one; "": none */
    char partial_input[32];
};
/* Returns where units of this run are stored: the manifest, or a part of it. */
kiln_manifest *kiln_run_store(const kiln_run *r);
/* Stores the KILN_KEYED options that were given; with --reset, drops all stored ones first. Inside
 * a transaction. */
kiln_status kiln_run_store_parameters(kiln_run *r, kiln_error *err) KILN_MUST_CHECK;
/* Returns the status with which a run ends that failed with st. It turns KILN_E_USAGE into
 * KILN_E_INPUT if the sentence names only options whose values came from the manifest: then the
 * user's command line is not wrong. */
kiln_status kiln_run_blame_stored(const kiln_run *r, kiln_status st, kiln_error *err);

#endif
