/* viewpoints -- which cameras kiln-render draws: those of the bake, of a file, on an orbit or on a
 * path between others; and the size of their pictures. Runs in the parent's main thread. */
#ifndef KILN_STAGES_RENDER_VIEWPOINTS_H
#define KILN_STAGES_RENDER_VIEWPOINTS_H

#include "stages/cameras/camera_set.h"
#include "stages/render/render_units.h"

/* The values of options, whose rows are in stages/render.c. */
typedef struct {
    const char *cameras;  /* --cameras: a file; NULL: those of the bake */
    const char *orbit;    /* --orbit */
    uint32_t interpolate; /* --interpolate: how many; 0: not given */
    const char *through;  /* --through: names with commas between them; NULL: all */
    bool constant_speed;  /* --constant-speed */
    const char *look_at;  /* --look-at; NULL: not given */
    double scale;         /* --scale; NAN: not given */
    const char *size;     /* --size */
    const char *crop;     /* --crop */
} kiln_viewpoint_options;

/* What is drawn; the caller has set all to 0. */
typedef struct {
    kiln_camera_set file; /* of --cameras; released with the rest */
    kiln_camera *cameras; /* [n], in the order of their names; owned */
    kiln_texts names;     /* of those that are made here */
    uint32_t n;
    kiln_render_crop crop; /* what is kept of each picture; width 0: all of it */
    const char *sized_by;  /* the option that gives their size in pixels; NULL: none does */
    bool own;              /* they are those of the bake, in the size that they have there */
} kiln_viewpoints;
void kiln_viewpoints_release(kiln_viewpoints *v);

/* Check the texts of --orbit, --look-at, --size and --crop. KILN_E_USAGE. */
kiln_status kiln_orbit_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_look_at_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_size_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_crop_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
/* Gives the size in pixels that these options ask for by number, and the option that does; false:
 * none does. */
bool kiln_viewpoints_sized(const kiln_viewpoint_options *o, uint32_t size[2], const char **by);
/* Will what is drawn be the cameras of the bake, in the size that they have there? */
bool kiln_viewpoints_are_own(const kiln_viewpoint_options *o);
/* Checks what can be checked without a bake: options that do not go together, and the file of
 * --cameras. KILN_E_USAGE, or as kiln_cameras_read. */
kiln_status kiln_viewpoints_check(const kiln_viewpoint_options *o, kiln_error *err) KILN_MUST_CHECK;
/* Makes the cameras. layer: of the scene, whose boxes say where it is if no camera does.
 * KILN_E_USAGE: a camera of --through that is not there; a crop outside of a picture; no cameras
 * for a path. KILN_E_INPUT, KILN_E_IO: as kiln_cameras_read. */
kiln_status kiln_viewpoints_get(kiln_manifest *m, const kiln_viewpoint_options *o,
                                const kiln_scene *scene, const kiln_layer *layer,
                                kiln_viewpoints *out, kiln_error *err) KILN_MUST_CHECK;

/* Gives a camera of the bake the size that --size, --scale and --crop ask for, as the function
 * above does with all. Fails as it does. */
kiln_status kiln_viewpoint_size(const kiln_viewpoint_options *o, kiln_camera *c,
                                kiln_error *err) KILN_MUST_CHECK;

/* Puts the cameras into the order of frames of a video: by name, but numbers in it by their value
 * (frame_9 before frame_10). */
void kiln_viewpoints_order(kiln_viewpoints *v);

#endif
