/* move -- see the header. */
#include "stages/select/move.h"

#include "stages/engine/json_text.h"

#include <stdio.h>
#include <string.h>

bool kiln_move_is_none(const kiln_move *m)
{
    for (int i = 0; i < 3; i++)
        if (m->translate[i] != 0 || m->rotate[i] != 0) return false;
    return m->scale == 1;
}

void kiln_similarity_of_move(const kiln_move *m, kiln_similarity *out)
{
    kiln_similarity_of_degrees(m->translate, m->rotate, m->scale, out);
}

void kiln_move_text(const kiln_move *m, char *out, size_t capacity)
{
    const struct {
        const char *word;
        const double *v;
    } turns[] = {{"rotate", m->rotate}, {"translate", m->translate}};
    size_t used = 0;
    out[0] = '\0';
    if (m->scale != 1) used = (size_t)snprintf(out, capacity, "scale %.10g", m->scale);
    for (size_t k = 0; k < 2 && used < capacity; k++) {
        const double *v = turns[k].v;
        if (v[0] == 0 && v[1] == 0 && v[2] == 0) continue;
        used += (size_t)snprintf(out + used, capacity - used, "%s%s %.10g,%.10g,%.10g",
                                 used ? ", " : "", turns[k].word, v[0], v[1], v[2]);
    }
}

static bool triple(const json_t *o, const char *name, double v[3])
{
    const json_t *list = json_object_get(o, name);
    for (size_t k = 0; k < 3; k++) v[k] = json_number_value(json_array_get(list, k));
    return json_array_size(list) == 3;
}

bool kiln_move_of_json(const json_t *o, kiln_move *out)
{
    out->scale = json_number_value(json_object_get(o, "scale"));
    return triple(o, "translate", out->translate) && triple(o, "rotate", out->rotate) &&
           out->scale > 0;
}

kiln_status kiln_transforms_moves(const char *text, kiln_similarity *out, kiln_error *err)
{
    json_t *list = NULL;
    const json_t *o;
    size_t k;
    kiln_similarity_identity(out);
    if (!*text) return KILN_OK;
    KILN_TRY(kiln_json_parse(text, strlen(text), 0, "the scene's transforms", &list, NULL, err));
    json_array_foreach(list, k, o)
    {
        kiln_move m;
        kiln_similarity next;
        if (json_object_get(o, "file") || !kiln_move_of_json(o, &m)) continue;
        kiln_similarity_of_move(&m, &next);
        kiln_similarity_compose(&next, out, out);
    }
    json_decref(list);
    return KILN_OK;
}
