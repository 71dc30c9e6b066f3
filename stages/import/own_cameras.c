/* own_cameras -- see own_cameras.h. */
#include "stages/import/own_cameras.h"

#include "base/file.h"
#include "base/log.h"
#include "base/vec3.h"
#include "stages/import/import_options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What lies this far beyond the central rows is of the object still: the neck of a guitar, the legs
 * of a chair. A background is 2 to 5 times as wide. */
#define OF_THE_OBJECT 1.5

typedef struct {
    double lo[3], hi[3];
} own_box;

static double diagonal(const own_box *b)
{
    double d[3];
    for (int a = 0; a < 3; a++) d[a] = b->hi[a] - b->lo[a];
    return kiln_vec3_length(d);
}

/* All rows of a single object, without a few that stray; else the central ones. */
static own_box box_in_picture(const kiln_own_scene *s)
{
    own_box central, most, all;
    for (int a = 0; a < 3; a++) {
        all.lo[a] = s->lo[a];
        all.hi[a] = s->hi[a];
        central.lo[a] = s->inner_lo[a];
        central.hi[a] = s->inner_hi[a];
        most.lo[a] = fmin(s->core.lo[a], central.lo[a]);
        most.hi[a] = fmax(s->core.hi[a], central.hi[a]);
    }
    const double limit = OF_THE_OBJECT * diagonal(&central);
    return diagonal(&all) <= limit ? all : diagonal(&most) <= limit ? most : central;
}

bool kiln_own_cameras_make(const kiln_own_scene *s, kiln_camera out[KILN_ORBIT_CAMERAS])
{
    const uint32_t at = kiln_import_given.orbit_at;
    own_box box = box_in_picture(s);
    double middle[3];
    for (int a = 0; a < 3; a++) {
        box.lo[a] += s->origin[a];
        box.hi[a] += s->origin[a];
        middle[a] = s->core.middle[a] + s->origin[a];
    }
    kiln_orbit(s->up, box.lo, box.hi, out);
    if (!(s->core.radius > 0) || at == KILN_ORBIT_AT_OUTSIDE) return false;
    if (at == KILN_ORBIT_AT_AUTO &&
        !kiln_scene_core_is_hidden(&s->core, s->origin, out, KILN_ORBIT_CAMERAS))
        return false;
    kiln_orbit_inner(s->up, middle, s->core.radius, out);
    return true;
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

void kiln_own_cameras_say_inside(bool inside)
{
    if (inside && kiln_import_given.orbit_at == KILN_ORBIT_AT_AUTO)
        kiln_say("the orbit is within a sky or walls (--orbit-at outside: around all)");
}

static void say_place(const kiln_import_result *i, const char *up, bool inside)
{
    kiln_say("no cameras found; %d are placed on an orbit with %s%s up", KILN_ORBIT_CAMERAS,
             up[0] ? up : "-y", i->up ? "" : " (see --up)");
    kiln_own_cameras_say_inside(inside);
}

static void take_box_of_all(const kiln_layer *layer, kiln_own_scene *s)
{
    for (int a = 0; a < 3; a++) {
        s->lo[a] = INFINITY;
        s->hi[a] = -INFINITY;
    }
    for (uint32_t i = 0; i < layer->n_chunks; i++) {
        if (layer->chunks[i].count == 0) continue;
        for (int a = 0; a < 3; a++) {
            s->lo[a] = fmin(s->lo[a], (double)layer->chunks[i].box_min[a]);
            s->hi[a] = fmax(s->hi[a], (double)layer->chunks[i].box_max[a]);
        }
    }
}

kiln_status kiln_own_cameras_place(kiln_run *r, const kiln_import_result *i,
                                   const kiln_layer *layer, kiln_camera out[KILN_ORBIT_CAMERAS],
                                   kiln_error *err)
{
    const kiln_axis up = kiln_import_up(i);
    kiln_own_scene s = {.up = up.text};
    memcpy(s.origin, i->scan.origin, sizeof s.origin);
    for (int a = 0; a < 3; a++) {
        s.inner_lo[a] = (double)i->cube.inner_lo[a];
        s.inner_hi[a] = (double)i->cube.inner_hi[a];
    }
    take_box_of_all(layer, &s);
    KILN_TRY(kiln_scene_core_find(kiln_run_manifest(r), layer, &s.core, err));
    const bool inside = kiln_own_cameras_make(&s, out);
    if (hushed) return KILN_OK;
    say_place(i, up.text, inside);
    say_beside(kiln_run_args(r)->positional[0]);
    return KILN_OK;
}
