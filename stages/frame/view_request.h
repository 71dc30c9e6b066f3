/* view_request -- everything, besides the Gaussians, that a tile table or a picture depends on: the
 * view, the profile, antialiasing, the near plane. The options that set it, and cameras by name.
 * For parent and worker. */
#ifndef KILN_STAGES_VIEW_REQUEST_H
#define KILN_STAGES_VIEW_REQUEST_H

#include "base/option.h"
#include "kernels/profiles/profiles.h"
#include "kernels/project/project.h"
#include "schema/manifest.h"

/* ---- options of tiles and render ------------------------------------------------------------- */
typedef struct {
    uint32_t profile;      /* kiln_profile_id */
    uint32_t antialiased;  /* 0: as the scene says, 1: on, 2: off */
    const char *near_text; /* "profile", or a distance in scene units */
} kiln_view_options;

/* The rows of the option table that fill the kiln_view_options o. */
/* clang-format off */
#define KILN_VIEW_OPTION_ROWS(o) \
    KILN_OPTION_ENUM("profile", &(o).profile, "NAME", kiln_profile_names + 1, "the renderer whose arithmetic draws", \
                     .letter = 'p', .def = "inria", .brief = kiln_profile_brief, .flags = KILN_KEYED), \
    KILN_OPTION_ENUM("antialiased", &(o).antialiased, "WHEN", "scene|on|off", \
                     "antialiasing (mip compensation): as the scene was trained, on or off", .def = "scene", \
                     .brief = "mip compensation: as the scene says, or on, off", .flags = KILN_KEYED), \
    KILN_OPTION_TEXT("near", &(o).near_text, "M", "near plane in scene units; profile: the renderer's own", .def = "profile", \
                     .flags = KILN_KEYED)
/* clang-format on */

/* Reads --near: "profile", for which *out is as it was, or a distance in scene units.
 * KILN_E_USAGE. */
kiln_status kiln_near_parse(const char *text, double *out, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_near_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
#define KILN_VIEW_OPTION_CHECKS \
    {                           \
        "near", kiln_near_check \
    }

/* ---- view request ---------------------------------------------------------------------------- */
typedef struct {
    kiln_view view;
    kiln_profile_id profile;
    bool antialiased;
    double near_m; /* as in the view, but the shortest decimal of its float32 */
} kiln_view_request;

/* Fills a view request for a camera. All bytes are defined, so requests can be compared with
 * memcmp. KILN_E_USAGE: --near is no number above 0. */
kiln_status kiln_view_request_init(kiln_view_request *s, const kiln_view_options *o,
                                   const kiln_scene *scene, const kiln_camera *camera,
                                   kiln_error *err) KILN_MUST_CHECK;
/* Says whether a Gaussian of this chunk could be visible. It may say true although none is; false
 * is certain. */
bool kiln_view_request_may_see(const kiln_view_request *s, const kiln_chunk *c);

/* ---- cameras by name ------------------------------------------------------------------------- */
/* Can the text name a camera? KILN_E_USAGE: it is empty, longer than any name, or '#' without a
 * number. _list: with commas. */
kiln_status kiln_camera_name_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_camera_list_check(const char *text, kiln_error *err) KILN_MUST_CHECK;
/* Has the bake, once it has cameras, all that an option names? text: a name, or where `list` names
 * with commas between them; NULL: the option is not given. m: NULL where there is no bake.
 * KILN_E_USAGE, as kiln_camera_pick; KILN_E_IO. */
kiln_status kiln_cameras_named_check(kiln_manifest *m, const char *option, const char *text,
                                     bool list, kiln_error *err) KILN_MUST_CHECK;
/* Finds a camera by NAME, or by #INDEX, from 0 in the order of sorted names. KILN_E_USAGE names the
 * most similar name, or the range. */
kiln_status kiln_camera_pick(const kiln_camera *cameras, uint32_t n, const char *text,
                             uint32_t *index, kiln_error *err) KILN_MUST_CHECK;

#endif
