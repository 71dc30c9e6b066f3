/* stage_graph -- pipelines/stages.def as a table: names, versions, what a stage reads and makes. Constant data. */
#ifndef KILN_STAGES_STAGE_GRAPH_H
#define KILN_STAGES_STAGE_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *name;
    uint32_t version;  /* of the algorithm: part of every key */
    const char *reads; /* outputs, separated by blanks; or "chunks", "drawable" */
    const char *makes; /* outputs, separated by blanks: layer kinds and others */
    const char *what;  /* one line for people */
} kiln_stage_info;

/* In the order of `make pipeline`; ended by a row with name NULL. */
extern const kiln_stage_info kiln_stage_graph[];
/* NULL when there is no stage of that name (a tool). */
const kiln_stage_info *kiln_stage_find(const char *name);

/* Does `stage` read this output of an earlier stage? Then that stage must have run before. */
bool kiln_stage_reads(const kiln_stage_info *stage, const char *output);
bool kiln_stage_needs(const kiln_stage_info *stage, const kiln_stage_info *earlier);

/* The words of a blank-separated list, one a call: *at starts as the list; false at its end. Longer words are cut. */
bool kiln_word_next(const char **at, char *word, size_t size);
bool kiln_words_have(const char *words, const char *word);

#endif
