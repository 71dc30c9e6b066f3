/* row_check -- rows of cameras, scenes, sources, pictures and units; row_check_layer.c and
 * row_check_table.c have the rest. */
#include "schema/row_check.h"

#include "base/file.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static bool all_finite(const double *v, int n)
{
    for (int i = 0; i < n; i++)
        if (!isfinite(v[i])) return false;
    return true;
}

static bool is_one_of(const char *word, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(word, words[i]) == 0) return true;
    return false;
}

static kiln_status check_picture_size(const char *what, const char *name, uint32_t width,
                                      uint32_t height, kiln_error *err)
{
    if (width == 0 || height == 0)
        return kiln_fail(err, KILN_E_INPUT, "%s '%.300s' has no pixels: %" PRIu32 " x %" PRIu32,
                         what, name, width, height);
    if (width > KILN_PICTURE_SIDE_MAX || height > KILN_PICTURE_SIDE_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "%s '%.300s' is larger than allowed: %" PRIu32 " x %" PRIu32
                         "; an axis may have at most %d",
                         what, name, width, height, KILN_PICTURE_SIDE_MAX);
    return KILN_OK;
}

/* ---- cameras --------------------------------------------------------------------------------- */
/* Import takes columns as they stand that are unit to 1e-5 and at right angles to 1e-3, of the
 * matrix or of its transpose: rows of either are then within 2.1e-3. Twice that is left for turning
 * and rounding. */
static bool is_rotation(const double r[9])
{
    static const double tolerance = 4e-3;
    for (int a = 0; a < 3; a++)
        for (int b = a; b < 3; b++) {
            const double dot =
                r[3 * a] * r[3 * b] + r[3 * a + 1] * r[3 * b + 1] + r[3 * a + 2] * r[3 * b + 2];
            if (!(fabs(dot - (a == b)) <= tolerance)) return false;
        }
    return r[0] * (r[4] * r[8] - r[5] * r[7]) - r[1] * (r[3] * r[8] - r[5] * r[6]) +
               r[2] * (r[3] * r[7] - r[4] * r[6]) >
           0;
}

static kiln_status check_lens(const kiln_camera *c, kiln_error *err)
{
    const double focal[2] = {c->fx, c->fy}, centre[2] = {c->cx, c->cy};
    for (int i = 0; i < 2; i++) {
        if (!(focal[i] > 0 && focal[i] <= (double)FLT_MAX))
            return kiln_fail(err, KILN_E_INPUT,
                             "camera '%.300s' has a focal length that is not positive: %g", c->name,
                             focal[i]);
        if (!(fabs(centre[i]) <= (double)FLT_MAX))
            return kiln_fail(err, KILN_E_INPUT,
                             "camera '%.300s' has a principal point that is not finite: %g",
                             c->name, centre[i]);
    }
    if (c->n_params > KILN_CAMERA_PARAMS || !all_finite(c->params, (int)c->n_params))
        return kiln_fail(err, KILN_E_INPUT,
                         "camera '%.300s' has a lens parameter that is not finite", c->name);
    if (c->model[0] && c->model[strspn(c->model, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] == '\0')
        return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "camera '%.300s' has a lens model that COLMAP does not know: '%s'", c->name,
                     c->model);
}

kiln_status kiln_row_check_camera(const kiln_camera *c, kiln_error *err)
{
    static const char *const splits[] = {"train", "test"};
    const char *why;
    if (!kiln_name_is_safe(c->name, &why))
        return kiln_fail(err, KILN_E_INPUT, "the camera name '%.300s' is refused: %s", c->name,
                         why);
    KILN_TRY(check_picture_size("camera", c->name, c->width, c->height, err));
    if (!all_finite(c->r, 9) || !all_finite(c->t, 3))
        return kiln_fail(err, KILN_E_INPUT, "the pose of camera '%.300s' is not finite", c->name);
    if (!is_rotation(c->r))
        return kiln_fail(err, KILN_E_INPUT, "the matrix of camera '%.300s' is not a rotation",
                         c->name);
    KILN_TRY(check_lens(c, err));
    if (!is_one_of(c->split, splits, 2))
        return kiln_fail(err, KILN_E_INPUT,
                         "camera '%.300s' is in split '%s', which is neither train nor test",
                         c->name, c->split);
    if (c->photo[0] && c->photo[0] != '/')
        return kiln_fail(err, KILN_E_INPUT,
                         "the photo of camera '%.300s' is not an absolute path: '%.300s'", c->name,
                         c->photo);
    if (c->mask[0] && c->mask[0] != '/')
        return kiln_fail(err, KILN_E_INPUT,
                         "the mask of camera '%.300s' is not an absolute path: '%.300s'", c->name,
                         c->mask);
    if (c->mask[0] && !c->photo[0])
        return kiln_fail(err, KILN_E_INPUT, "camera '%.300s' has a mask but no photo: '%.300s'",
                         c->name, c->mask);
    return KILN_OK;
}

/* ---- scene, sources -------------------------------------------------------------------------- */
kiln_status kiln_row_check_scene(const kiln_scene *s, kiln_error *err)
{
    int exponent;
    if (s->rows_read > UINT32_MAX) /* source_row has 32 bits */
        return kiln_fail(err, KILN_E_INPUT,
                         "the scene's source has %" PRIu64 " rows; at most %" PRIu32
                         " can be numbered",
                         s->rows_read, UINT32_MAX);
    if (s->rows_dropped > s->rows_read)
        return kiln_fail(err, KILN_E_INPUT, "the scene lost %" PRIu64 " rows of %" PRIu64,
                         s->rows_dropped, s->rows_read);
    if (s->sh_degree > KILN_LAYER_DEGREE_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "the scene has spherical harmonics of degree %" PRIu32
                         "; the highest known degree is %d",
                         s->sh_degree, KILN_LAYER_DEGREE_MAX);
    if (!all_finite(s->origin, 3))
        return kiln_fail(err, KILN_E_INPUT, "the scene's origin is not finite");
    if (s->has_root && (!all_finite(s->root_centre, 3) || !(s->root_half > 0) ||
                        !isfinite(s->root_half) || frexp(s->root_half, &exponent) != 0.5))
        return kiln_fail(err, KILN_E_INPUT,
                         "the scene's root cube is invalid: half its edge is %g, which is not a "
                         "power of two, or its "
                         "centre is not finite",
                         s->root_half);
    for (int i = 0; i < 3; i++)
        if (s->has_background && !(s->background[i] >= 0 && s->background[i] <= 1))
            return kiln_fail(
                err, KILN_E_INPUT,
                "the scene's background has a colour of %g, which is not between 0 and 1",
                s->background[i]);
    return KILN_OK;
}

kiln_status kiln_row_check_source(const kiln_source_file *f, kiln_error *err)
{
    if (f->path[0] == '/') return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "the source file '%.300s' is not an absolute path",
                     f->path);
}

/* ---- pictures -------------------------------------------------------------------------------- */
static kiln_status check_picture_file(const kiln_image *i, kiln_error *err)
{
    static const char *const formats[] = {"png", "png16", "npy", "none"};
    const char *why;
    if (!is_one_of(i->format, formats, sizeof formats / sizeof *formats))
        return kiln_fail(err, KILN_E_INPUT,
                         "the picture of camera '%.300s' has an unknown format: '%s'", i->camera,
                         i->format);
    if (i->path[0] && !kiln_relative_is_safe(i->path, &why))
        return kiln_fail(err, KILN_E_INPUT,
                         "the path of the picture of camera '%.300s' is refused: %s: '%.300s'",
                         i->camera, why, i->path);
    return KILN_OK;
}

kiln_status kiln_row_check_image(const kiln_image *i, kiln_error *err)
{
    static const char *const devices[] = {"cpu", "cuda", "cuda-fast"};
    const char *why;
    if (!kiln_name_is_safe(i->camera, &why))
        return kiln_fail(err, KILN_E_INPUT,
                         "a picture belongs to a camera whose name '%.300s' is refused: %s",
                         i->camera, why);
    KILN_TRY(check_picture_size("the picture of camera", i->camera, i->width, i->height, err));
    if (!is_one_of(i->device_kind, devices, sizeof devices / sizeof *devices))
        return kiln_fail(err, KILN_E_INPUT,
                         "the picture of camera '%.300s' is of an unknown kind of device: '%s'",
                         i->camera, i->device_kind);
    if (!kiln_name_is_safe(i->profile, &why))
        return kiln_fail(err, KILN_E_INPUT, "the picture of camera '%.300s' names no profile",
                         i->camera);
    if (!(i->near_m > 0 && isfinite(i->near_m)))
        return kiln_fail(err, KILN_E_INPUT, "the picture of camera '%.300s' has a near plane at %g",
                         i->camera, i->near_m);
    for (int c = 0; c < 3; c++)
        if (!(i->background[c] >= 0 && i->background[c] <= 1))
            return kiln_fail(err, KILN_E_INPUT,
                             "the picture of camera '%.300s' has a background of %g, which is not "
                             "between 0 and 1",
                             i->camera, i->background[c]);
    /* NaN: no photo; a PSNR of infinity: not a pixel differs */
    if (i->psnr == -INFINITY || isinf(i->ssim))
        return kiln_fail(err, KILN_E_INPUT,
                         "the picture of camera '%.300s' has metrics that are not finite",
                         i->camera);
    return check_picture_file(i, err);
}

/* ---- units ----------------------------------------------------------------------------------- */
kiln_status kiln_row_check_output(const kiln_unit_output *o, kiln_error *err)
{
    if (o->name[0] == '\0') return kiln_fail(err, KILN_E_INPUT, "an output of a unit has no name");
    if (o->elem != 1 && o->elem != 2 && o->elem != 4 && o->elem != 8)
        return kiln_fail(err, KILN_E_INPUT,
                         "output '%.80s' of a unit has elements of %" PRIu32 " bytes", o->name,
                         o->elem);
    if (o->raw_bytes > KILN_BLOB_MAX)
        return kiln_fail(err, KILN_E_INPUT,
                         "output '%.80s' of a unit claims %" PRIu64
                         " bytes, but a blob has at most %zu",
                         o->name, o->raw_bytes, KILN_BLOB_MAX);
    return KILN_OK;
}
