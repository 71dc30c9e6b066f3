/* The stage graph as data, expanded from stages.def, so that versions and dependencies are written
 * in one place. */
#include "stages/engine/stage_graph.h"

#include "schema/layers.h"

#include <string.h>

const kiln_stage_info kiln_stage_graph[] = {
#define ALWAYS false
#define ASKED true
#define STAGE(name, version, when, reads, makes, what) {#name, version, when, reads, makes, what},
#include "pipelines/stages.def"
#undef STAGE
#undef ASKED
#undef ALWAYS
    {NULL, 0, false, NULL, NULL, NULL},
};

const kiln_stage_info *kiln_stage_find(const char *name)
{
    for (const kiln_stage_info *s = kiln_stage_graph; s->name; s++)
        if (!strcmp(s->name, name)) return s;
    return NULL;
}

bool kiln_word_next(const char **at, char *word, size_t size)
{
    const char *begin = *at + strspn(*at, " ");
    size_t length = strcspn(begin, " ");
    *at = begin + length;
    if (length == 0) return false;
    if (length >= size) length = size - 1;
    memcpy(word, begin, length);
    word[length] = '\0';
    return true;
}

bool kiln_words_have(const char *words, const char *word)
{
    char w[64];
    while (kiln_word_next(&words, w, sizeof w))
        if (!strcmp(w, word)) return true;
    return false;
}

bool kiln_stage_reads(const kiln_stage_info *stage, const char *output)
{
    const kiln_layer_kind kind = kiln_layer_kind_find(output);
    if (kiln_words_have(stage->reads, output)) return true;
    if (kind == KILN_LAYER_KINDS) return false;
    const kiln_layer_form form = kiln_layer_kinds[kind].form;
    return (form >= KILN_FORM_CHUNKS && kiln_words_have(stage->reads, "chunks")) ||
           (form >= KILN_FORM_DRAWABLE && kiln_words_have(stage->reads, "drawable"));
}

bool kiln_stage_needs(const kiln_stage_info *stage, const kiln_stage_info *earlier)
{
    char output[64];
    /* "drawable" stands for layers that the stage itself makes, too */
    if (earlier >= stage) return false;
    for (const char *at = earlier->makes; kiln_word_next(&at, output, sizeof output);)
        if (kiln_stage_reads(stage, output)) return true;
    return false;
}
