/* demo -- a potter's yard at noon: a brick kiln with a glowing mouth, pots on a plank, a tree, a
 * checkered path, a sky.
 *
 * Everything is a surface strewn with flat Gaussians: a part of the scene says where its i-th one
 * lies, which way it faces and what colour it has; light is baked in (one sun, a sky, one ray for
 * shadows). y is down, 1 unit about 1 m. */
#include "stages/generate/generate.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/vec3.h"
#include "stages/image/image.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PI 3.14159265358979323846

typedef struct {
    double p[3], n[3], colour[3];
    double size, flat;     /* standard deviation along the surface; across it as a share of that */
    double opacity, gloss; /* gloss: view-dependent whiteness */
    int lit;
} dab;

static void unit(double v[3])
{
    double l = kiln_vec3_length(v);
    for (int c = 0; c < 3; c++) v[c] /= l > 1e-12 ? l : 1;
}

static void paint(dab *d, double r, double g, double b)
{
    d->colour[0] = r, d->colour[1] = g, d->colour[2] = b;
}

/* Solids that throw shadows: centre, radius. Good enough for soft ground shadows. */
static const double shade[][4] = {
    {0, -0.55, 0, 1.15},    {0.55, -2.2, 0.2, 0.3}, {2.6, -0.3, -0.9, 0.34}, {2.1, -0.3, -1.7, 0.3},
    {3.0, -0.3, -0.1, 0.3}, {-2.7, -2.3, 1.3, 1.0}, {-2.7, -0.8, 1.3, 0.2}};
static const double sun[3] = {0.48, -0.76, -0.44};

static double sunlight(const double p[3])
{
    double light = 1;
    for (size_t i = 0; i < sizeof shade / sizeof *shade; i++) {
        double to[3] = {shade[i][0] - p[0], shade[i][1] - p[1], shade[i][2] - p[2]},
               along = kiln_vec3_dot(to, sun);
        if (along < 0.9 * shade[i][3]) continue;
        double miss = sqrt(fmax(0, kiln_vec3_dot(to, to) - along * along)) / shade[i][3];
        double s = (miss - 0.75) / 0.4;
        s = s < 0 ? 0 : s > 1 ? 1 : s;
        light *= 0.25 + 0.75 * s * s * (3 - 2 * s);
    }
    return light;
}

/* ---- parts ----------------------------------------------------------------------------------- */
static void ground(kg_rng *r, dab *d)
{
    double radius = 9 * sqrt(kg_u(r)), turn = 2 * PI * kg_u(r);
    if (kg_u(r) < 0.5) radius *= 0.5; /* denser where the cameras look */
    d->p[0] = radius * cos(turn), d->p[1] = 0.006 * kg_n(r), d->p[2] = radius * sin(turn);
    d->n[1] = -1;
    d->size = 0.035 + 0.006 * radius;
    double noise = 0.06 * kg_n(r);
    int path = fabs(d->p[0] - 0.25 * d->p[2]) < 0.8 && d->p[2] < -0.9;
    int tile = ((int)floor(d->p[0] * 2.5 + 64) ^ (int)floor(d->p[2] * 2.5 + 64)) & 1;
    if (path && tile)
        paint(d, 0.72 + noise, 0.62 + noise, 0.50 + noise);
    else if (path)
        paint(d, 0.50 + noise, 0.40 + noise, 0.32 + noise);
    else
        paint(d, 0.33 + noise, 0.48 + 1.4 * noise, 0.20 + noise);
    if (path) d->size *= 0.75;
}

static void grass(kg_rng *r, dab *d)
{
    double radius = 1.6 + 6 * kg_u(r), turn = 2 * PI * kg_u(r), lean = 0.3 * kg_n(r);
    d->p[0] = radius * cos(turn), d->p[2] = radius * sin(turn);
    d->p[1] = -0.05 - 0.03 * kg_u(r);
    d->n[0] = cos(turn * 7), d->n[1] = lean, d->n[2] = sin(turn * 7);
    d->size = 0.022, d->flat = 0.3, d->opacity = 0.8;
    paint(d, 0.30 + 0.08 * kg_n(r), 0.58 + 0.1 * kg_n(r), 0.18);
    /* not on the path */
    if (fabs(d->p[0] - 0.25 * d->p[2]) < 0.9 && d->p[2] < -0.9) d->opacity = 0.02;
}

/* Courses of bricks around a solid of revolution: mortar between them, every other course
 * shifted. */
static void brick(kg_rng *r, dab *d, double turn, double height, double around)
{
    double course = height / 0.13, row = floor(course),
           along = turn / (2 * PI) * around + 0.5 * fmod(row, 2), cell = floor(along);
    double u = along - cell, v = course - row;
    kg_rng own = {kg_at(77, (uint64_t)(int64_t)(cell + 1000 * row + 50000)), 0};
    double tone = 0.07 * kg_n(&own), noise = 0.025 * kg_n(r);
    if (u < 0.07 || v < 0.12)
        paint(d, 0.74 + noise, 0.70 + noise, 0.64 + noise);
    else
        paint(d, 0.66 + tone + noise, 0.32 + 0.6 * tone + noise, 0.22 + 0.4 * tone + noise);
}

static void dome(kg_rng *r, dab *d)
{
    double up = kg_u(r), turn = 2 * PI * kg_u(r), rise = up * 0.5 * PI, ring = 1.15 * cos(rise);
    d->n[0] = cos(rise) * cos(turn), d->n[1] = -sin(rise), d->n[2] = cos(rise) * sin(turn);
    d->p[0] = ring * cos(turn), d->p[1] = -1.5 * sin(rise), d->p[2] = ring * sin(turn);
    d->size = 0.017;
    brick(r, d, turn, rise * 1.35, 34);
    double away = fabs(remainder(turn + 0.5 * PI, 2 * PI)) * 1.15, high = -d->p[1];
    double arch =
        high < 0.45 ? away / 0.36 : sqrt(away * away + (high - 0.45) * (high - 0.45)) / 0.36;
    if (arch < 1) { /* the mouth: embers */
        double heat = (1 - arch) * (1.2 - high);
        paint(d, 0.25 + 0.95 * heat, 0.06 + 0.55 * heat * heat, 0.02 + 0.15 * heat * heat);
        d->lit = 0;
    } else if (arch < 1.25) {
        paint(d, 0.60 + 0.03 * kg_n(r), 0.56, 0.50);
    }
}

static void chimney(kg_rng *r, dab *d)
{
    double turn = 2 * PI * kg_u(r), high = 0.9 + 1.6 * kg_u(r), radius = high > 2.38 ? 0.30 : 0.24;
    d->n[0] = cos(turn), d->n[2] = sin(turn);
    d->p[0] = 0.55 + radius * cos(turn), d->p[1] = -high, d->p[2] = 0.2 + radius * sin(turn);
    d->size = 0.013;
    brick(r, d, turn, high, 9);
}

/* Radius of a pot at height v of 0..1, three shapes. */
static double profile(int which, double v)
{
    static const double shape[3][6] = {{0.16, 0.27, 0.32, 0.27, 0.14, 0.17},
                                       {0.14, 0.20, 0.27, 0.30, 0.25, 0.16},
                                       {0.20, 0.29, 0.29, 0.18, 0.11, 0.15}};
    double at = v * 5;
    int i = at >= 5 ? 4 : (int)at;
    double f = at - i;
    f = f * f * (3 - 2 * f);
    return shape[which][i] * (1 - f) + shape[which][i + 1] * f;
}

static void pot(kg_rng *r, dab *d)
{
    static const double place[3][2] = {{2.6, -0.9}, {2.1, -1.7}, {3.0, -0.1}};
    static const double glaze[3][3] = {{0.10, 0.42, 0.62}, {0.82, 0.60, 0.12}, {0.20, 0.55, 0.36}};
    int which = (int)(kg_next(r) % 3);
    double v = kg_u(r), turn = 2 * PI * kg_u(r), radius = profile(which, v),
           slope = (profile(which, v + 0.01) - radius) / 0.007;
    d->n[0] = cos(turn), d->n[1] = slope, d->n[2] = sin(turn);
    d->p[0] = place[which][0] + radius * cos(turn), d->p[1] = -0.12 - 0.7 * v,
    d->p[2] = place[which][1] + radius * sin(turn);
    d->size = 0.010, d->gloss = 0.35;
    int band = v > 0.42 && v < 0.60 && sin(turn * 8 + (v > 0.51 ? 0 : PI)) > 0.2;
    double dip = 0.30 + 0.05 * sin(3 * turn + which);
    if (band)
        paint(d, 0.94, 0.92, 0.86);
    else if (v < dip)
        paint(d, 0.70, 0.44, 0.30), d->gloss = 0.05;
    else
        paint(d, glaze[which][0], glaze[which][1], glaze[which][2]);
}

static void plank(kg_rng *r, dab *d)
{
    double a = 1.35 * (2 * kg_u(r) - 1), b = 0.42 * (2 * kg_u(r) - 1), side = kg_u(r);
    double along[2] = {0.485, 0.874}, across[2] = {0.874, -0.485}; /* the line through the pots */
    d->n[1] = -1;
    d->p[1] = -0.12;
    if (side < 0.25)
        b = b > 0 ? 0.42 : -0.42, d->p[1] = -0.12 * kg_u(r),
        d->n[0] = b > 0 ? across[0] : -across[0], d->n[1] = 0,
        d->n[2] = b > 0 ? across[1] : -across[1];
    d->p[0] = 2.55 + a * along[0] + b * across[0], d->p[2] = -0.9 + a * along[1] + b * across[1];
    d->size = 0.018;
    double grain = 0.05 * sin(60 * b + 3 * sin(4 * a)) + 0.02 * kg_n(r);
    paint(d, 0.58 + grain, 0.43 + grain, 0.27 + grain);
}

static void tree(kg_rng *r, dab *d)
{
    double turn = 2 * PI * kg_u(r);
    if (kg_u(r) < 0.15) { /* trunk */
        double high = 1.7 * kg_u(r), radius = 0.17 - 0.05 * high;
        d->n[0] = cos(turn), d->n[2] = sin(turn);
        d->p[0] = -2.7 + radius * cos(turn) + 0.06 * sin(2 * high), d->p[1] = -high,
        d->p[2] = 1.3 + radius * sin(turn);
        d->size = 0.018;
        double bark = 0.05 * sin(30 * turn) + 0.03 * kg_n(r);
        paint(d, 0.38 + bark, 0.28 + bark, 0.20 + bark);
        return;
    }
    kg_rng clump = {kg_at(91, kg_next(r) % 26), 0};
    for (int c = 0; c < 3; c++) d->n[c] = kg_n(r);
    unit(d->n);
    double centre[3] = {-2.7 + 0.62 * kg_n(&clump), -2.35 + 0.42 * kg_n(&clump),
                        1.3 + 0.62 * kg_n(&clump)};
    double radius = 0.42 * cbrt(0.15 + 0.85 * kg_u(r)) * (1 + 0.25 * kg_n(r)),
           tone = 0.10 * kg_n(&clump) + 0.05 * kg_n(r);
    for (int c = 0; c < 3; c++) d->p[c] = centre[c] + radius * d->n[c];
    d->size = 0.034, d->flat = 0.4, d->opacity = 0.85;
    paint(d, 0.26 + tone, 0.50 + tone, 0.16 + 0.5 * tone);
}

static void sky(kg_rng *r, dab *d)
{
    double up = kg_u(r), turn = 2 * PI * kg_u(r), high = 1.2 * up - 0.2,
           ring = sqrt(1 - high * high);
    d->n[0] = -ring * cos(turn), d->n[1] = high, d->n[2] = -ring * sin(turn);
    for (int c = 0; c < 3; c++) d->p[c] = -45 * d->n[c];
    d->size = 2.0, d->lit = 0, d->opacity = 0.97;
    double cloud = sin(5 * turn + 3 * sin(9 * high)) + sin(11 * turn - 14 * high) +
                   0.6 * sin(23 * turn + 31 * high);
    cloud = high > 0.12 && high < 0.7 ? fmax(0, cloud - 0.9) * 0.4 : 0;
    cloud = cloud > 1 ? 1 : cloud;
    double zenith = high < 0 ? 0 : sqrt(high);
    double rgb[3] = {0.80 - 0.48 * zenith, 0.88 - 0.34 * zenith, 0.95 - 0.10 * zenith};
    paint(d, rgb[0] + (0.98 - rgb[0]) * cloud, rgb[1] + (0.98 - rgb[1]) * cloud,
          rgb[2] + (0.99 - rgb[2]) * cloud);
}

typedef struct {
    void (*make)(kg_rng *r, dab *d);
    unsigned share; /* per mille of the Gaussians */
} part;
static const part parts[] = {{ground, 290}, {grass, 60}, {dome, 235}, {chimney, 90},
                             {pot, 110},    {plank, 45}, {tree, 120}, {sky, 50}};

/* ---- from a dab to a Gaussian ---------------------------------------------------------------- */
static void shade_dab(dab *d)
{
    if (!d->lit) return;
    double facing = kiln_vec3_dot(d->n, sun), sky_share = 0.5 - 0.5 * d->n[1];
    double light = 0.28 + 0.22 * sky_share + 0.72 * (facing > 0 ? facing * sunlight(d->p) : 0);
    /* less sky near the ground */
    if (d->p[1] > -0.3 && d->n[1] > -0.9) light *= 0.75 + 0.25 * (-d->p[1] / 0.3);
    for (int c = 0; c < 3; c++) d->colour[c] *= light;
}

/* The rotation that takes z to n: (1 + n.z, z x n), and the half turn where n is -z. */
static void face(const double n[3], double q[4])
{
    q[0] = 1 + n[2], q[1] = -n[1], q[2] = n[0], q[3] = 0;
    if (q[0] < 1e-9) q[0] = 0, q[1] = 1, q[2] = 0;
    kg_qunit(q);
}

static void demo_row(const void *context, uint64_t i, kg_splat *g)
{
    (void)context;
    kg_rng r = {kg_at(kg_stream(7, 30), i), 0};
    dab d = {.flat = 0.15, .opacity = 0.95, .lit = 1};
    unsigned pick = (unsigned)(kg_next(&r) % 1000);
    const part *p = parts;
    for (; pick >= p->share; p++) pick -= p->share;
    p->make(&r, &d);
    unit(d.n);
    shade_dab(&d);

    double q[4], vary = exp(0.15 * kg_n(&r));
    memset(g, 0, sizeof *g);
    face(d.n, q);
    for (int c = 0; c < 3; c++) {
        g->pos[c] = (float)d.p[c];
        g->f_dc[c] = (float)((d.colour[c] - 0.5) / 0.28209479177387814); /* 1/(2 sqrt pi), Y_0^0 */
        g->scale[c] = (float)log(d.size * vary * (c == 2 ? d.flat : 1));
        /* degree 1 leans towards the mirrored sun: direction coefficients of (y, z, x) with signs
         * -, +, - */
        double mirror[3];
        for (int k = 0; k < 3; k++) mirror[k] = sun[k] - 2 * kiln_vec3_dot(sun, d.n) * d.n[k];
        double gain = d.gloss * fmax(0, kiln_vec3_dot(d.n, sun)) * 0.6;
        g->f_rest[15 * c + 0] = (float)(-gain * mirror[1]);
        g->f_rest[15 * c + 1] = (float)(gain * mirror[2]);
        g->f_rest[15 * c + 2] = (float)(-gain * mirror[0]);
    }
    for (int c = 0; c < 4; c++) g->rot[c] = (float)q[c];
    g->opacity = (float)log(d.opacity / (1 - d.opacity));
}

/* ---- cameras and photos ---------------------------------------------------------------------- */
/* Where somebody would stand with a camera: on an arc about the kiln, its mouth and the pots, that
 * ends on either side of the tree, so that no view looks through leaves. The first view is at the
 * same place for every n: the mouth, the pots and the tree. */
static double demo_turn(uint32_t k, uint32_t n)
{
    const double tree = atan2(1.3, -2.7), begin = tree + 0.30 * PI, arc = 1.40 * PI,
                 first = (1.65 * PI - begin) / arc;
    const double at = first + (double)k / n;
    return begin + arc * (at - floor(at));
}

static void demo_camera(uint32_t k, uint32_t n, int width, int height, kg_cam *c)
{
    const double turn = demo_turn(k, n), swing = 0.5 + 0.5 * sin(3 * turn), away = 6.3;
    double eye[3] = {away * cos(turn), -1.6 - 0.9 * swing, away * sin(turn)},
           f[3] = {0.5 - eye[0], -0.95 - eye[1], -0.2 - eye[2]};
    unit(f);
    double right[3] = {f[2], 0, -f[0]}; /* (0,1,0) x f */
    unit(right);
    double down[3] = {f[1] * right[2], f[2] * right[0] - f[0] * right[2], -f[1] * right[0]};
    for (int a = 0; a < 3; a++)
        c->R[a] = (float)right[a], c->R[3 + a] = (float)down[a], c->R[6 + a] = (float)f[a];
    c->t[0] = (float)-kiln_vec3_dot(right, eye), c->t[1] = (float)-kiln_vec3_dot(down, eye),
    c->t[2] = (float)-kiln_vec3_dot(f, eye);
    c->fx = c->fy = (float)(0.85 * width);
    c->cx = (float)width * 0.5f, c->cy = (float)height * 0.5f;
    c->width = width, c->height = height;
}

/* Photos of somebody are a scene of which import would take these for a part. */
static kiln_status check_folder(const char *dir, const kiln_generate_options *o, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    bool empty = true;
    KILN_TRY(kiln_path_join(path, sizeof path, dir, "images", err));
    DIR *const d = o->overwrite ? NULL : opendir(path);
    if (!d) return KILN_OK;
    for (const struct dirent *e = readdir(d); e && empty; e = readdir(d))
        empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
    (void)closedir(d);
    if (empty) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE,
                     "the folder '%s' is not empty; name another folder, or write the photos there "
                     "with -w, --overwrite",
                     path);
}

static kiln_status check_photos(const char *dir, const kiln_generate_options *o,
                                const char *const *names, kiln_generated *photos, kiln_error *err)
{
    char file[64];
    KILN_TRY(check_folder(dir, o, err));
    for (uint32_t k = 0; k < o->cameras; k++) {
        snprintf(file, sizeof file, "images/%s.png", names[k]);
        KILN_TRY(kiln_generated_check(dir, file, o, &photos[k], err));
    }
    return KILN_OK;
}

static kiln_status take_photos(const kiln_generated *photos, const kiln_generate_options *o,
                               const kg_splat *splats, const kg_cam *cameras, kiln_error *err)
{
    for (uint32_t k = 0; k < o->cameras; k++) {
        float *rgb;
        KILN_TRY(kiln_photograph(splats, o->gaussians, &cameras[k], o->threads, &rgb, err));
        kiln_status st =
            kiln_picture_write(&(kiln_picture_job){.path = photos[k].path,
                                                   .seen = &photos[k].seen,
                                                   .format = KILN_PNG8,
                                                   .data = rgb,
                                                   .width = (uint32_t)cameras[k].width,
                                                   .height = (uint32_t)cameras[k].height,
                                                   .step = 3,
                                                   .channels = 3},
                               err);
        free(rgb);
        if (st != KILN_OK) return st;
    }
    return KILN_OK;
}

kiln_status kiln_generate_demo(const char *dir, const kiln_generate_options *o, kiln_error *err)
{
    kiln_status st;
    char(*text)[16] = NULL;
    kiln_generated ply, list, *photos = NULL;
    const char **names = NULL;
    kg_cam *cameras = NULL;
    kg_splat *splats = NULL;
    KILN_GO(KILN_ALLOC(&cameras, o->cameras, "cameras", err));
    KILN_GO(KILN_ALLOC(&text, o->cameras, "names", err));
    KILN_GO(KILN_ALLOC(&names, o->cameras, "names", err));
    KILN_GO(KILN_ALLOC(&splats, o->gaussians, "Gaussians", err));
    for (uint32_t k = 0; k < o->cameras; k++) {
        snprintf(text[k], sizeof text[k], "view_%02u", k);
        names[k] = text[k];
        demo_camera(k, o->cameras, (int)o->width, (int)o->height, &cameras[k]);
    }
    KILN_GO(KILN_ALLOC(&photos, o->cameras, "photos", err));
    KILN_GO(kiln_generated_check(dir, "scene.ply", o, &ply, err));
    KILN_GO(kiln_generated_check(dir, "cameras.json", o, &list, err));
    KILN_GO(check_photos(dir, o, names, photos, err));
    for (uint64_t i = 0; i < o->gaussians; i++) demo_row(NULL, i, &splats[i]);
    KILN_GO(kiln_write_splats(&ply, o->gaussians, demo_row, NULL, o->threads, err));
    KILN_GO(take_photos(photos, o, splats, cameras, err));
    KILN_GO(kiln_write_cameras(&list, cameras, names, o->cameras, err));
done:
    free(photos);
    free(splats);
    free(names);
    free(text);
    free(cameras);
    return st;
}
