/* own_cameras -- see own_cameras.h. */
#include "stages/import/own_cameras.h"

#include "base/file.h"
#include "base/log.h"
#include "base/vec3.h"
#include "stages/import/import_options.h"
#include "stages/lod/distance_prior.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What lies this far beyond the central rows is of the object still: the neck of a guitar, the legs
 * of a chair. A background is 2 to 5 times as wide. */
#define OF_THE_OBJECT 1.5

typedef struct {
    double lo[3], hi[3]; /* as the means: the origin subtracted */
} own_box;

static double diagonal(const own_box *b)
{
    double d[3];
    for (int a = 0; a < 3; a++) d[a] = b->hi[a] - b->lo[a];
    return kiln_vec3_length(d);
}

static own_box box_of_all(const kiln_layer *layer)
{
    own_box out = {.lo = {INFINITY, INFINITY, INFINITY}, .hi = {-INFINITY, -INFINITY, -INFINITY}};
    for (uint32_t i = 0; i < layer->n_chunks; i++) {
        if (layer->chunks[i].count == 0) continue;
        for (int a = 0; a < 3; a++) {
            out.lo[a] = fmin(out.lo[a], (double)layer->chunks[i].box_min[a]);
            out.hi[a] = fmax(out.hi[a], (double)layer->chunks[i].box_max[a]);
        }
    }
    return out;
}

/* All rows of a single object, without a few that stray; else the central ones. */
static own_box box_in_picture(const kiln_import_result *i, const kiln_layer *layer,
                              const kiln_scene_core *core)
{
    own_box central, most;
    const own_box all = box_of_all(layer);
    for (int a = 0; a < 3; a++) {
        central.lo[a] = (double)i->cube.inner_lo[a];
        central.hi[a] = (double)i->cube.inner_hi[a];
        most.lo[a] = fmin(core->lo[a], central.lo[a]);
        most.hi[a] = fmax(core->hi[a], central.hi[a]);
    }
    const double limit = OF_THE_OBJECT * diagonal(&central);
    return diagonal(&all) <= limit ? all : diagonal(&most) <= limit ? most : central;
}

static bool hushed; /* of kiln_own_cameras_hush */

void kiln_own_cameras_hush(void) { hushed = true; }

/* The folder's cameras belong to a file of it, but who names the file alone may not want them. */
static void say_beside(const char *scene)
{
    char cameras[KILN_PATH_MAX];
    const int length = (int)(kiln_path_base(scene) - scene);
    if (!kiln_is_file(scene) ||
        snprintf(cameras, sizeof cameras, "%.*scameras.json", length, scene) >= KILN_PATH_MAX ||
        !kiln_is_file(cameras))
        return;
    const int folder = length > 1 ? length - 1 : 1; /* without its slash, unless it is "/" */
    kiln_say("'%s' lies beside the scene and is not read;", cameras);
    kiln_say("  give the folder '%.*s' instead of the file%s", folder, length ? scene : ".",
             kiln_log_is_stage() ? ", or --cameras" : "");
}

static void say_place(const kiln_import_result *i, const char *up, bool inside)
{
    kiln_say("no cameras found; %d are placed on an orbit with %s%s up", KILN_ORBIT_CAMERAS,
             up[0] ? up : "-y", i->up ? "" : " (see --up)");
    if (inside && kiln_import_given.orbit_at == KILN_ORBIT_AT_AUTO)
        kiln_say("the orbit is within a sky or walls (--orbit-at outside: around all)");
}

kiln_status kiln_own_cameras_place(kiln_run *r, const kiln_import_result *i,
                                   const kiln_layer *layer, kiln_camera out[KILN_ORBIT_CAMERAS],
                                   kiln_error *err)
{
    const kiln_axis up = kiln_import_up(i);
    kiln_scene_core core;
    KILN_TRY(kiln_scene_core_find(kiln_run_manifest(r), layer, &core, err));
    own_box box = box_in_picture(i, layer, &core);
    double middle[3];
    for (int a = 0; a < 3; a++) {
        box.lo[a] += i->scan.origin[a];
        box.hi[a] += i->scan.origin[a];
        middle[a] = core.middle[a] + i->scan.origin[a];
    }
    kiln_orbit(up.text, box.lo, box.hi, out);
    const bool inside =
        core.radius > 0 &&
        (kiln_import_given.orbit_at == KILN_ORBIT_AT_INSIDE ||
         (kiln_import_given.orbit_at == KILN_ORBIT_AT_AUTO &&
          kiln_scene_core_is_hidden(&core, i->scan.origin, out, KILN_ORBIT_CAMERAS)));
    if (inside) kiln_orbit_inner(up.text, middle, core.radius, out);
    if (hushed) return KILN_OK;
    say_place(i, up.text, inside);
    say_beside(kiln_run_args(r)->positional[0]);
    return KILN_OK;
}
