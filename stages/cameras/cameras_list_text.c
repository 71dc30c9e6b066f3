/* cameras_list_text -- see cameras_list_text.h. */
#include "stages/cameras/cameras_list_text.h"

#include "stages/cameras/camera_file.h"
#include "stages/engine/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A reader takes the extension of a photo off the name: one that ends like that gets another to
 * lose. */
static json_t *name_json(const char *name)
{
    char longer[KILN_PATH_MAX];
    if (kiln_photo_stem(name) == strlen(name)) return kiln_json_string(name);
    (void)snprintf(longer, sizeof longer, "%s.png", name);
    return kiln_json_string(longer);
}

static kiln_status append_camera_text(const kiln_camera *c, const kiln_similarity *move,
                                      kiln_buffer *out, kiln_error *err)
{
    double r[9], t[3];
    memcpy(r, c->r, sizeof r);
    memcpy(t, c->t, sizeof t);
    kiln_similarity_pose_back(move, r, t);
    json_t *o = json_pack(
        "{s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "name", name_json(c->name), "width",
        (json_int_t)c->width, "height", (json_int_t)c->height, "fx", kiln_json_real(c->fx), "fy",
        kiln_json_real(c->fy), "cx", kiln_json_real(c->cx), "cy", kiln_json_real(c->cy), "R",
        kiln_json_reals(r, 9), "t", kiln_json_reals(t, 3));
    char *text = kiln_json_text(o, JSON_REAL_PRECISION(17));
    json_decref(o);
    const kiln_status st =
        text ? kiln_buffer_put(out, text, strlen(text), err)
             : kiln_fail(err, KILN_E_NOMEM, "out of memory for camera '%s'", c->name);
    free(text);
    return st;
}

kiln_status kiln_cameras_list_text(const kiln_camera *cameras, uint32_t n,
                                   const kiln_similarity *move, kiln_buffer *out, kiln_error *err)
{
    KILN_TRY(kiln_buffer_put(out, "[", 1, err));
    for (uint32_t i = 0; i < n; i++) {
        KILN_TRY(kiln_buffer_put(out, i ? ",\n " : "\n ", i ? 3 : 2, err));
        KILN_TRY(append_camera_text(&cameras[i], move, out, err));
    }
    return kiln_buffer_put(out, "\n]", sizeof "\n]", err); /* with its NUL */
}
