/* table -- the options of `kiln pipeline`: its own and those of every stage, which the stages'
 * programs tell (--help-json).
 *
 *   --min-opacity        goes to each stage that has it
 *   --prune-min-opacity  goes to that stage alone, and wins there
 *   --export-format      the only name of an option that another stage describes otherwise
 *                        (--render-format), or that says that it
 * is to be named (KILN_NAMED: --import-scale)
 *   --export             the same, of the option that says what the stage is asked for (KILN_TITLE)
 *
 * Two stages have the same option when kind, range, default and text agree. */
#ifndef KILN_STAGES_FRONT_TABLE_H
#define KILN_STAGES_FRONT_TABLE_H

#include "base/option.h"

#include <jansson.h>

enum { KILN_STAGES_MAX = 32 };

typedef struct {
    const char *name;        /* "min-opacity" */
    const kiln_opt *general; /* row of the name alone; NULL where it is ambiguous */
    const kiln_opt *special; /* row of stage and name */
    bool once;
} kiln_stage_option;

typedef struct {
    const char *stage;
    kiln_stage_option *option;
    size_t n;
} kiln_stage_options;

/* else the index of a stage */
enum { KILN_SECTION_OWN = -1, KILN_SECTION_SHARED = KILN_STAGES_MAX };

typedef struct {
    kiln_opt *rows; /* ended by a row without name */
    int *section;   /* of each row, for --help */
    size_t n;
    kiln_stage_options stage[KILN_STAGES_MAX];
    size_t n_stages;
    /* what the rows point into */
    json_t *doc[KILN_STAGES_MAX];
    char **name;
    size_t n_names;
    void *values;
} kiln_pipeline_table;

/* Makes the table from `own` rows (ended by one without name) and from what the stages' programs
 * say, which are started for it. KILN_E_IO: a program is missing or does not answer. Release it
 * after a failure, too. */
kiln_status kiln_pipeline_table_make(const kiln_opt *own, kiln_pipeline_table *out,
                                     kiln_error *err) KILN_MUST_CHECK;
void kiln_pipeline_table_release(kiln_pipeline_table *t);
/* How many words kiln_pipeline_arguments appends, at most. */
size_t kiln_pipeline_count(const kiln_cli *cli, const kiln_stage_options *s);
/* Appends the options that were given for a stage to argv, which has room for all of them, as
 * --NAME=VALUE; *n counts; a list's items are a word each. cli: the one that was parsed. The caller
 * frees what was appended, after a failure too. */
kiln_status kiln_pipeline_arguments(const kiln_cli *cli, const kiln_stage_options *s, char **argv,
                                    size_t *n, kiln_error *err) KILN_MUST_CHECK;
/* The row by which an option of a stage was given: the special one first; NULL: it was not. */
const kiln_opt *kiln_pipeline_given(const kiln_cli *cli, const kiln_stage_option *o);

#endif
