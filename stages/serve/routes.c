/* routes -- see the header. */
#include "stages/serve/routes.h"

#include "stages/engine/json_text.h"

#include <stdlib.h>
#include <string.h>

const kiln_route kiln_routes[] = {
    {"state.json", KILN_LANE_DATA, kiln_answer_state},
    {"cameras.json", KILN_LANE_DATA, kiln_answer_cameras},
    {"chunks.json", KILN_LANE_DATA, kiln_answer_chunks},
    {"splats/@/#.ply", KILN_LANE_DATA, kiln_answer_splats},
    {"report.html", KILN_LANE_PAINT, kiln_answer_report},
    {"photo/@.jpg", KILN_LANE_PAINT, kiln_answer_photo},
    {"picture/@.jpg", KILN_LANE_PAINT, kiln_answer_picture},
    {"heat/@.webp", KILN_LANE_PAINT, kiln_answer_heat},
    {NULL, KILN_LANES, NULL},
};

const kiln_route *kiln_route_find(const char *path, kiln_path_parts *parts)
{
    for (const kiln_route *r = kiln_routes; r->pattern; r++)
        if (kiln_path_matches(r->pattern, path, parts)) return r;
    return NULL;
}

const char *kiln_camera_key(const char *name, char hex[33])
{
    return kiln_hash_hex(kiln_hash_of(name, strlen(name)), hex);
}

kiln_status kiln_reply_json(kiln_reply *out, json_t *v, kiln_error *err)
{
    char *text = kiln_json_text(v, JSON_COMPACT);
    json_decref(v);
    if (!text) return kiln_fail(err, KILN_E_NOMEM, "out of memory for an answer");
    out->type = "application/json";
    const kiln_status st = kiln_buffer_put(&out->body, text, strlen(text), err);
    free(text);
    return st;
}

json_t *kiln_json_floats(const float *v, uint32_t n)
{
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < n; i++) {
        if (json_array_append_new(list, kiln_json_real((double)v[i])) == 0) continue;
        /* without memory for all of it: NULL makes the object fail that would hold it */
        json_decref(list);
        list = NULL;
    }
    return list;
}

json_t *kiln_json_layer(const kiln_layer *l)
{
    char hex[33];
    return l ? json_string(kiln_hash_hex(l->digest, hex)) : json_null();
}
