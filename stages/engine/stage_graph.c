/* The stage graph as data: stages.def expanded once, so that versions and dependencies are written in one place. */
#include "stages/engine/stage_graph.h"

#include <string.h>

const kiln_stage_info kiln_stage_graph[] = {
#define STAGE(name, version, needs, makes, what) {#name, version, needs, makes, what},
#include "pipelines/stages.def"
#undef STAGE
    {NULL, 0, NULL, NULL, NULL},
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
