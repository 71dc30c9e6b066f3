/* fuzz_cameras -- camera files as kiln-import and kiln-render --cameras read them: one JSON file, a
 * COLMAP model of which one file is the input, INRIA's cfg_args, lists of names, nerfstudio's
 * dataparser_transforms.json. What comes through is sound: names that are safe, finite numbers,
 * rotations; and the same a second time. */
#include "tests/fuzz/fuzz.h"

#include "base/file.h"
#include "stages/cameras/camera_file.h"
#include "stages/cameras/camera_set.h"
#include "stages/cameras/colmap/colmap_visit.h"
#include "stages/import/dataset/cfg_args.h"
#include "stages/import/dataset/dataparser.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char name_of_photo[] = "images/a.png";

/* A grey PNG of 2 x 1 pixels, so that photos are found, sized, and intrinsics fitted to them. */
static const unsigned char photo[] = {
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
    0x44, 0x52, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00,
    0x00, 0xd1, 0x49, 0x20, 0x56, 0x00, 0x00, 0x00, 0x0b, 0x49, 0x44, 0x41, 0x54, 0x78,
    0x9c, 0x63, 0x70, 0x38, 0x00, 0x00, 0x01, 0x43, 0x01, 0x01, 0x05, 0x11, 0x77, 0x7c,
    0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
};

static void all_finite(const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++) HOLDS(isfinite(v[i]));
}

static void check_rotation(const double r[9])
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            const double dot = r[i] * r[j] + r[3 + i] * r[3 + j] + r[6 + i] * r[6 + j];
            HOLDS(fabs(dot - (i == j)) < 1e-2);
        }
}

static void check_camera(const kiln_camera *c)
{
    const char *why;
    HOLDS(kiln_name_is_safe(c->name, &why));
    HOLDS(c->width > 0 && c->height > 0 && c->fx > 0 && c->fy > 0 &&
          c->n_params <= KILN_CAMERA_PARAMS);
    HOLDS(strcmp(c->split, "train") == 0 || strcmp(c->split, "test") == 0);
    all_finite(c->r, 9);
    all_finite(c->t, 3);
    all_finite(c->params, c->n_params);
    all_finite((const double[]){c->fx, c->fy, c->cx, c->cy}, 4);
    check_rotation(c->r);
}

static void check_dataset(const kiln_camera_set *d)
{
    for (uint32_t i = 0; i < d->n_cameras; i++) {
        check_camera(&d->cameras[i]);
        HOLDS(i == 0 || strcmp(d->cameras[i - 1].name, d->cameras[i].name) < 0);
    }
    HOLDS(strlen(d->notes) < sizeof d->notes && strlen(d->transforms) < sizeof d->transforms);
}

/* Texts by what they say, the rest by its bytes. */
static void check_same_camera(kiln_camera a, const kiln_camera *b)
{
    HOLDS(strcmp(a.name, b->name) == 0 && strcmp(a.photo, b->photo) == 0 &&
          strcmp(a.mask, b->mask) == 0);
    a.name = b->name;
    a.photo = b->photo;
    a.mask = b->mask;
    HOLDS(memcmp(&a, b, sizeof a) == 0);
}

static void check_same(const kiln_camera_set *a, const kiln_camera_set *b)
{
    HOLDS(a->n_cameras == b->n_cameras && a->frames_read == b->frames_read &&
          a->frames_dropped == b->frames_dropped);
    for (uint32_t i = 0; i < a->n_cameras; i++) check_same_camera(a->cameras[i], &b->cameras[i]);
    HOLDS(strcmp(a->notes, b->notes) == 0 && strcmp(a->transforms, b->transforms) == 0);
}

typedef kiln_status read_fn(const char *path, kiln_camera_set *d, kiln_error *err);

static kiln_status read_file(const char *path, kiln_camera_set *d, kiln_error *err)
{
    return kiln_cameras_read(path, NULL, d, err);
}

/* A COLMAP model in that very folder: looking for one in some 130 others, and for photos, takes ten
 * times as long as reading it. */
static kiln_status read_model(const char *path, kiln_camera_set *d, kiln_error *err)
{
    kiln_camera_file f = {.set = d, .split = ""};
    snprintf(f.path, sizeof f.path, "%s", path);
    KILN_TRY(kiln_cameras_colmap(&f, path, err));
    return kiln_camera_set_finish(d, err);
}

static void read_twice(const char *path, read_fn *read)
{
    kiln_error err = {0}, why = {0};
    kiln_camera_set *d = calloc(2, sizeof *d);
    HOLDS(d);
    const kiln_status st = read(path, &d[0], &err);
    HOLDS(read(path, &d[1], &why) == st && strcmp(err.msg, why.msg) == 0);
    if (st == KILN_OK) {
        check_dataset(&d[0]);
        check_same(&d[0], &d[1]);
    } else {
        kiln_fuzz_refusal(st, &err);
    }
    kiln_camera_set_release(&d[0]);
    kiln_camera_set_release(&d[1]);
    free(d);
}

static void add_photo(const char *folder)
{
    static bool added;
    if (!added) (void)kiln_fuzz_file(folder, name_of_photo, photo, sizeof photo);
    added = true;
}

void kiln_fuzz_camera_file(const void *argument, const uint8_t *data, size_t size)
{
    add_photo("scene");
    read_twice(kiln_fuzz_file("scene", argument, data, size), read_file);
}

void kiln_fuzz_cfg_args(const void *argument, const uint8_t *data, size_t size)
{
    kiln_error err = {0};
    kiln_dataset *d = calloc(1, sizeof *d);
    const char *why;
    (void)argument;
    HOLDS(d);
    (void)kiln_fuzz_file("inria", "cfg_args", data, size);
    snprintf(d->set.root, sizeof d->set.root, "%s/inria", kiln_fuzz_folder());
    const kiln_status st = kiln_cfg_args_read(d, &err);
    if (st != KILN_OK) kiln_fuzz_refusal(st, &err);
    HOLDS(!d->set.images[0] || kiln_name_is_safe(d->set.images, &why));
    HOLDS(strlen(d->cfg_args) < sizeof d->cfg_args);
    kiln_dataset_release(d);
    free(d);
}

/* A data set without files: cameras of these names, one in each direction of the axes. */
static kiln_camera_set *some_cameras(void)
{
    static const char *const names[] = {"a", "a.b", "left/a", "left/b", "right/b", "z/y/x"};
    kiln_error err = {0};
    kiln_camera_set *d = calloc(1, sizeof *d);
    HOLDS(d);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        kiln_camera c = {.name = names[i],
                         .width = 4,
                         .height = 3,
                         .fx = 5,
                         .fy = 5,
                         .cx = 2,
                         .cy = 1.5,
                         .t = {(double)i, 1, -2}};
        for (size_t k = 0; k < 3; k++) c.r[3 * k + (k + i) % 3] = 1;
        HOLDS(kiln_camera_set_add(d, &c, &err) == KILN_OK);
    }
    snprintf(d->root, sizeof d->root, "%s/list", kiln_fuzz_folder());
    return d;
}

/* The same list as the user's own and as one that lies in the data set: where the first is taken
 * the second is, and they agree. */
void kiln_fuzz_split_names(const void *argument, const uint8_t *data, size_t size)
{
    kiln_error err = {0}, why = {0};
    kiln_camera_set *named = some_cameras(), *found = some_cameras();
    char path[400];
    (void)argument;
    snprintf(path, sizeof path, "%s", kiln_fuzz_file("list", "test.txt", data, size));
    named->split = (kiln_split){.kind = KILN_SPLIT_NAMES, .file = path};
    found->is_folder = true;
    const kiln_status st = kiln_camera_set_finish(named, &err);
    HOLDS(kiln_camera_set_finish(found, &why) == KILN_OK);
    check_dataset(found);
    if (st == KILN_OK) {
        check_same(named, found);
        HOLDS(found->n_sources == 1);
    } else {
        kiln_fuzz_refusal(st, &err);
        HOLDS(found->n_sources == 0 && found->n_findings == 1);
    }
    kiln_camera_set_release(named);
    kiln_camera_set_release(found);
    free(named);
    free(found);
}

void kiln_fuzz_dataparser(const void *argument, const uint8_t *data, size_t size)
{
    kiln_error err = {0};
    kiln_dataset *d = calloc(1, sizeof *d);
    kiln_camera_set *set = some_cameras();
    HOLDS(d);
    d->set = *set;
    free(set);
    (void)argument;
    const char *path = kiln_fuzz_file("list", "dataparser_transforms.json", data, size);
    const size_t folder = (size_t)(kiln_path_base(path) - path);
    snprintf(d->rows_path, sizeof d->rows_path, "%.*ssplat.ply", (int)folder, path);
    d->rows_kind = KILN_SCENE_SPLATS;
    d->set.world = size % 2 ? KILN_WORLD_SAVED : KILN_WORLD_ORIGINAL;
    memcpy(d->set.applied, (const double[12]){1, 0, 0, 0, 0, 0, 1, 0, 0, -1, 0, 0},
           sizeof d->set.applied);
    d->set.applied_scale = 1;
    const kiln_status st = kiln_dataparser_apply(d, false, &err);
    if (st != KILN_OK) kiln_fuzz_refusal(st, &err);
    for (uint32_t i = 0; i < d->set.n_cameras && st == KILN_OK; i++) {
        all_finite(d->set.cameras[i].t, 3);
        check_rotation(d->set.cameras[i].r);
    }
    HOLDS(st != KILN_OK ||
          (d->set.n_findings == 1 && d->set.findings[0].used && d->set.n_sources == 1));
    kiln_dataset_release(d);
    free(d);
}

/* ---- COLMAP ---------------------------------------------------------------------------------- */

static kiln_status see_image(void *context, const char *camera, uint32_t width, uint32_t height,
                             bool *wanted, kiln_error *err)
{
    (void)camera, (void)err;
    HOLDS(width > 0 && height > 0);
    /* some are passed over, which is another way through the file */
    *wanted = ++*(uint64_t *)context % 3 != 0;
    return KILN_OK;
}

static kiln_status see_keypoint(void *context, double x, double y, uint64_t point, kiln_error *err)
{
    (void)err;
    *(uint64_t *)context += (uint64_t)(x == y) + point;
    return KILN_OK;
}

static void visit(const char *folder, const char *suffix)
{
    uint64_t counted = 0;
    kiln_error err = {0};
    const kiln_colmap_visitor v = {
        .context = &counted, .image = see_image, .keypoint = see_keypoint};
    const kiln_status st = kiln_colmap_visit(folder, suffix, &v, &err);
    if (st != KILN_OK) kiln_fuzz_refusal(st, &err);
}

/* The model's other files: the seeds called "golden" of the harnesses that they have themselves. */
static void add_part(const char *folder, const char *part, const char *suffix)
{
    static unsigned char bytes[1 << 16];
    char path[160], name[32];
    snprintf(path, sizeof path, "tests/data/fuzz/colmap-%s-%s/golden", part, suffix);
    snprintf(name, sizeof name, "%s.%s", part, suffix);
    FILE *f = fopen(path, "rb");
    HOLDS(f);
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    (void)kiln_fuzz_file(folder, name, bytes, n);
}

/* Made once a process and input file: what is not written over later. */
static const char *model_folder(const char *input)
{
    static const char *const parts[] = {"cameras", "images", "rigs", "frames"};
    static char folder[64], made_for[32];
    if (strcmp(made_for, input) == 0) return folder;
    const char *suffix = kiln_path_suffix(input);
    snprintf(made_for, sizeof made_for, "%s", input);
    snprintf(folder, sizeof folder, "model-%s", input);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) add_part(folder, parts[i], suffix);
    return folder;
}

void kiln_fuzz_colmap(const void *argument, const uint8_t *data, size_t size)
{
    const char *folder = model_folder(argument);
    char path[400];
    (void)kiln_fuzz_file(folder, argument, data, size);
    snprintf(path, sizeof path, "%s/%s", kiln_fuzz_folder(), folder);
    read_twice(path, read_model);
    visit(path, kiln_path_suffix(argument));
}
