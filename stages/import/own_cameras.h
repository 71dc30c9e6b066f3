/* own_cameras -- where the cameras stand that import makes for a scene without any. Around the
 * scene, unless what surrounds it would hide it from there; then within. */
#ifndef KILN_STAGES_IMPORT_OWN_CAMERAS_H
#define KILN_STAGES_IMPORT_OWN_CAMERAS_H

#include "stages/cameras/orbit.h"
#include "stages/import/import_scene.h"
#include "stages/lod/distance_prior.h"

/* --orbit-at, by index. */
enum { KILN_ORBIT_AT_AUTO, KILN_ORBIT_AT_INSIDE, KILN_ORBIT_AT_OUTSIDE };
#define KILN_ORBIT_PLACES "auto|inside|outside"

/* Of a program that writes no cameras (kiln convert): nothing is said of where they stand. For the
 * main thread, before the import. */
void kiln_own_cameras_hush(void);

/* What places them. Numbers are as the means: the origin subtracted. */
typedef struct {
    double origin[3];
    const char *up;                  /* as kiln_orbit takes it */
    double inner_lo[3], inner_hi[3]; /* the central 96 % of the rows along each axis */
    double lo[3], hi[3];             /* all rows */
    kiln_scene_core core;
} kiln_own_scene;
/* Fills out, whose names are constants, at the place of --orbit-at. Returns whether they stand
 * within the scene. */
bool kiln_own_cameras_make(const kiln_own_scene *s, kiln_camera out[KILN_ORBIT_CAMERAS]);
/* Says that `auto` has put them within the scene. */
void kiln_own_cameras_say_inside(bool inside);

/* Fills out, whose names are constants, and says where they stand. layer: what import has made of
 * the scene, its planes stored, with rows. For the parent's main thread. KILN_E_NOMEM, and what
 * reading planes returns. */
kiln_status kiln_own_cameras_place(kiln_run *r, const kiln_import_result *i,
                                   const kiln_layer *layer, kiln_camera out[KILN_ORBIT_CAMERAS],
                                   kiln_error *err) KILN_MUST_CHECK;

#endif
