/* routes -- what there is to ask for, and which function makes the answer. An address is a row of
 * kiln_routes, its file, its declaration below, and a line of DESIGN.md.
 *
 * Functions run on a lane's thread inside a transaction of the state (bake_state.h). They fill in
 * the reply, or fail: KILN_E_STALE is answered with 404, KILN_E_BUSY and KILN_E_NOMEM with 503,
 * anything else with 500, and the sentence. */
#ifndef KILN_STAGES_SERVE_ROUTES_H
#define KILN_STAGES_SERVE_ROUTES_H

#include "stages/serve/answer.h"
#include "stages/serve/bake_state.h"
#include "stages/serve/request_rules.h"

#include <jansson.h>

/* Lanes keep what takes long apart from what a page waits for. */
typedef enum {
    KILN_LANE_DATA,  /* JSON, rows: milliseconds */
    KILN_LANE_PAINT, /* the report, pictures: up to seconds */
    KILN_LANES
} kiln_lane_kind;

enum { KILN_SH_ALL = 9 /* one more than any degree */ };

typedef struct {
    kiln_path_parts path;
    uint32_t sh_degree; /* at most this one of the harmonics; KILN_SH_ALL: not asked for */
    unsigned threads;   /* for one answer */
} kiln_request;

typedef kiln_status kiln_route_fn(kiln_bake_state *s, const kiln_request *q, kiln_reply *out,
                                  kiln_error *err);

typedef struct {
    const char *pattern; /* kiln_path_matches; NULL: the table's end */
    kiln_lane_kind lane;
    kiln_route_fn *make;
} kiln_route;

extern const kiln_route kiln_routes[];
/* The row that a path behind the token means; NULL: there is none. */
const kiln_route *kiln_route_find(const char *path, kiln_path_parts *parts);

kiln_route_fn kiln_answer_state, kiln_answer_cameras, kiln_answer_chunks; /* one file each */
kiln_route_fn kiln_answer_splats;                                         /* splats_answer.c */
kiln_route_fn kiln_answer_photo, kiln_answer_picture, kiln_answer_heat;   /* pictures_answer.c */
kiln_route_fn kiln_answer_report;

/* Policies (Content-Security-Policy): of an answer that is no page, of the report, whose own policy
 * inside of it says which script may run, and of the interactive page, whose viewer needs
 * WebAssembly and workers. */
#define KILN_POLICY_NOTHING "default-src 'none'; frame-ancestors 'none'"
#define KILN_POLICY_REPORT                                                                       \
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; " \
    "base-uri 'none'; form-action "                                                              \
    "'none'; frame-ancestors 'none'"
#define KILN_POLICY_PAGE                                                                          \
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:; "         \
    "connect-src 'self' data: blob:; img-src "                                                    \
    "'self' data: blob:; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors " \
    "'none'"

/* ---- for those functions --------------------------------------------------------------------- */
/* What names a camera in an address: a hash of its name, which stays the camera's when others come
 * and go; returns hex. */
const char *kiln_camera_key(const char *name, char hex[33]);
/* Writes JSON as the reply's body and releases it. v NULL, or any failure: KILN_E_NOMEM. */
kiln_status kiln_reply_json(kiln_reply *out, json_t *v, kiln_error *err) KILN_MUST_CHECK;
/* kiln_json_reals of floats. */
json_t *kiln_json_floats(const float *v, uint32_t n);
/* A layer's digest as JSON; null of NULL. */
json_t *kiln_json_layer(const kiln_layer *l);

#endif
