/* own_cameras -- where the cameras stand that import makes for a scene without any. Around the
 * scene, unless what surrounds it would hide it from there; then within. */
#ifndef KILN_STAGES_IMPORT_OWN_CAMERAS_H
#define KILN_STAGES_IMPORT_OWN_CAMERAS_H

#include "stages/cameras/orbit.h"
#include "stages/import/import_scene.h"

/* --orbit-at, by index. */
enum { KILN_ORBIT_AT_AUTO, KILN_ORBIT_AT_INSIDE, KILN_ORBIT_AT_OUTSIDE };
#define KILN_ORBIT_PLACES "auto|inside|outside"

/* Of a program that writes no cameras (kiln convert): nothing is said of where they stand. For the
 * main thread, before the import. */
void kiln_own_cameras_hush(void);

/* Fills out, whose names are constants, and says where they stand. layer: what import has made of
 * the scene, its planes stored, with rows. For the parent's main thread. KILN_E_NOMEM, and what
 * reading planes returns. */
kiln_status kiln_own_cameras_place(kiln_run *r, const kiln_import_result *i,
                                   const kiln_layer *layer, kiln_camera out[KILN_ORBIT_CAMERAS],
                                   kiln_error *err) KILN_MUST_CHECK;

#endif
