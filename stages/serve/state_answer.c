/* state_answer -- state.json: how far the bake is, and where a first look at it goes. */
#include "kernels/profiles/profiles.h"
#include "stages/engine/json_text.h"
#include "stages/frame/camera_path.h"
#include "stages/frame/scene_box.h"
#include "stages/serve/routes.h"

#include <math.h>
#include <string.h>

#define DEFAULT_PROFILE "inria" /* as of kiln-tiles and kiln-render */

static const char *const stage_names[] = {
#define STAGE(name, ...) #name,
#include "pipelines/stages.def"
#undef STAGE
};
enum { N_STAGES = sizeof stage_names / sizeof *stage_names };

static kiln_status stages(const kiln_bake_state *s, json_t *list, kiln_error *err)
{
    for (int i = 0; i < N_STAGES; i++) {
        kiln_stage_row row;
        KILN_TRY(kiln_stage_get(s->m, stage_names[i], &row, err));
        const bool running = s->written && strcmp(s->written_by, stage_names[i]) == 0;
        json_t *stage = json_pack("{s:s, s:s}", "name", stage_names[i], "state",
                                  running ? "running" : kiln_stage_state_name(row.state));
        if (json_array_append_new(list, stage) != 0)
            return kiln_fail(err, KILN_E_NOMEM, "out of memory for an answer");
    }
    return KILN_OK;
}

/* Behind what is transparent: as the pictures have it, else as the scene says, else black. */
static void background_of(const kiln_scene *scene, const kiln_bake_views *views, double out[3])
{
    memset(out, 0, 3 * sizeof *out);
    if (scene && scene->has_background) memcpy(out, scene->background, 3 * sizeof *out);
    for (uint32_t i = 0; i < views->n_images; i++) {
        if (strcmp(views->images[i].profile, views->profile) != 0) continue;
        memcpy(out, views->images[i].background, 3 * sizeof *out);
        return;
    }
}

typedef struct {
    double up[3], centre[3], radius, background[3]; /* centre: in the axes of means */
} outlook;

static kiln_status fill_outlook(const kiln_bake_state *s, const kiln_scene *scene,
                                const kiln_bake_views *views, outlook *o, kiln_error *err)
{
    double lo[3], hi[3], focus[3], square = 0;
    *o = (outlook){.radius = 1};
    const kiln_poses poses = KILN_POSES(views->cameras, views->n_cameras);
    kiln_camera_path_up(scene ? scene->up_axis : "", poses, o->up);
    background_of(scene, views, o->background);
    if (!scene || !s->drawn) return KILN_OK;
    KILN_TRY(kiln_scene_box(scene, s->drawn, lo, hi, err));
    for (int a = 0; a < 3; a++) {
        o->centre[a] = (lo[a] + hi[a]) / 2 - scene->origin[a];
        square += (hi[a] - lo[a]) * (hi[a] - lo[a]);
    }
    if (square > 0) o->radius = sqrt(square) / 2;
    if (!kiln_camera_path_focus(poses, focus)) return KILN_OK;
    /* what the cameras look at: a sky does not move it */
    for (int a = 0; a < 3; a++) o->centre[a] = focus[a] - scene->origin[a];
    return KILN_OK;
}

/* Of the pictures and tile tables, else what that renderer has. */
static double near_of(const kiln_bake_views *views)
{
    const kiln_profile_id id = kiln_profile_find(DEFAULT_PROFILE);
    if (views->profile[0]) return views->near_m;
    return id < KILN_PROFILE_COUNT ? (double)kiln_profiles[id].near_m : 0;
}

static json_t *pack_state(const kiln_bake_state *s, const kiln_scene *scene,
                          const kiln_bake_views *views, const outlook *o, json_t *list)
{
    const bool drawn = views->profile[0] != '\0';
    return json_pack(
        "{s:I, s:o, s:b, s:O, s:o, s:o, s:I, s:I, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:b}",
        "version", (json_int_t)s->version, "name", kiln_json_string(scene ? scene->name : ""),
        "running", s->written, "stages", list, "layer", kiln_json_layer(s->drawn), "levels",
        kiln_json_layer(s->levels), "rows", (json_int_t)(s->drawn ? s->drawn->count : 0),
        "sh_degree", (json_int_t)(s->drawn ? s->drawn->sh_degree : 0), "antialiased",
        drawn ? views->antialiased : scene && scene->antialiased, "profile",
        kiln_json_string(drawn ? views->profile : DEFAULT_PROFILE), "near",
        kiln_json_real(near_of(views)), "background", kiln_json_reals(o->background, 3), "up",
        kiln_json_reals(o->up, 3), "centre", kiln_json_reals(o->centre, 3), "radius",
        kiln_json_real(o->radius), "cameras", (json_int_t)views->n_cameras, "report", 1);
}

kiln_status kiln_answer_state(kiln_bake_state *s, const kiln_request *q, kiln_reply *out,
                              kiln_error *err)
{
    const kiln_scene *scene;
    const kiln_bake_views *views;
    outlook o;
    (void)q;
    const kiln_status st = kiln_bake_state_scene(s, &scene, err);
    /* nothing is imported yet: there is a state all the same */
    if (st != KILN_OK && st != KILN_E_STALE) return st;
    KILN_TRY(kiln_bake_state_views(s, &views, err));
    KILN_TRY(kiln_bake_state_layers(s, err));
    KILN_TRY(fill_outlook(s, scene, views, &o, err));
    json_t *list = json_array();
    const kiln_status listed = stages(s, list, err);
    json_t *answer = listed == KILN_OK ? pack_state(s, scene, views, &o, list) : NULL;
    json_decref(list);
    return listed == KILN_OK ? kiln_reply_json(out, answer, err) : listed;
}
