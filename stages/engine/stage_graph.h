/* stage_graph -- pipelines/stages.def as a table: names, versions, what a stage reads and makes.
 * Constant data. */
#ifndef KILN_STAGES_ENGINE_STAGE_GRAPH_H
#define KILN_STAGES_ENGINE_STAGE_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *name;
    uint32_t version;  /* of the algorithm; a part of every key */
    bool asked;        /* a pipeline leaves it out unless it is asked for it (stages.def) */
    const char *reads; /* outputs, separated by blanks; or "chunks", "drawable" */
    const char *makes; /* outputs, separated by blanks: layer kinds and others */
    const char *what;  /* one line for people */
} kiln_stage_info;

/* In the order of `make pipeline`; ended by a row with name NULL. */
extern const kiln_stage_info kiln_stage_graph[];
/* Returns the row of this name; NULL if there is none, because it is a tool. */
const kiln_stage_info *kiln_stage_find(const char *name);

/* Says whether `stage` reads this output. */
bool kiln_stage_reads(const kiln_stage_info *stage, const char *output);
/* Says whether `stage` reads an output of `earlier`, which must then have run before. */
bool kiln_stage_needs(const kiln_stage_info *stage, const kiln_stage_info *earlier);

/* Gives the words of a list that is separated by blanks, one a call. *at starts as the list.
 * Returns false at its end. A word that does not fit is cut. */
bool kiln_word_next(const char **at, char *word, size_t size);
bool kiln_words_have(const char *words, const char *word);

#endif
