/* pool -- the conversation with the workers of a list. For the parent's main thread. */
#ifndef KILN_STAGES_ENGINE_PARENT_POOL_H
#define KILN_STAGES_ENGINE_PARENT_POOL_H

#include "stages/engine/parent/job.h"

/* Hands out units and takes results until every unit is done or given up. */
kiln_status kiln_job_converse(kiln_job *j, kiln_error *err) KILN_MUST_CHECK;

#endif
