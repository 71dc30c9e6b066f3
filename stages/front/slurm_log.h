/* slurm_log -- what the log of a job says about how the job ended. Logs lie in a folder that may
 * have been downloaded: what they say is only ever part of a sentence. */
#ifndef KILN_STAGES_FRONT_SLURM_LOG_H
#define KILN_STAGES_FRONT_SLURM_LOG_H

#include "base/memory.h"
#include "stages/front/slurm_folder.h"

enum { KILN_SLURM_SENTENCE_MAX = 500 };

/* Why Slurm ended a job. */
typedef enum {
    KILN_SLURM_CAUSE_NONE, /* nothing says so */
    KILN_SLURM_CAUSE_TIME,
    KILN_SLURM_CAUSE_MEMORY,
    KILN_SLURM_CAUSE_NODE,
    KILN_SLURM_CAUSE_PREEMPTED,
    KILN_SLURM_CAUSE_CANCELLED,
} kiln_slurm_cause;

/* Each run of a job begins its log with a line that begins so: a job that is put back into the
 * queue appends to its log. */
#define KILN_SLURM_LOG_BEGIN "kiln slurm: job "

/* The last 64 KiB of the log of the round's job with this id, from where its last run begins, with
 * a NUL. Empty: there is none, or it is no file. KILN_E_NOMEM. */
kiln_status kiln_slurm_log_read(const kiln_slurm_folder *f, const char *chain, const char *id,
                                kiln_buffer *out, kiln_error *err) KILN_MUST_CHECK;
/* How much this job's own log holds; 0 where stderr is no file. */
uint64_t kiln_slurm_log_own_size(void);
/* What this job has written to it since it held `from`. KILN_E_NOMEM. */
kiln_status kiln_slurm_log_own(uint64_t from, kiln_buffer *out, kiln_error *err) KILN_MUST_CHECK;

/* What slurmstepd has written in a log's text. */
kiln_slurm_cause kiln_slurm_log_cause(const char *text);
/* How many logs of the stage's tasks have it; `only`: of a cause. KILN_E_IO. */
kiln_status kiln_slurm_log_count(const kiln_slurm_folder *f, const char *chain, const char *stage,
                                 kiln_slurm_cause only, uint32_t *n,
                                 kiln_error *err) KILN_MUST_CHECK;
/* The last line of the text that begins with "NAME: ", without that; "": none.
 * out[KILN_SLURM_SENTENCE_MAX]. */
void kiln_slurm_log_sentence(const char *text, const char *name, char *out);

#endif
