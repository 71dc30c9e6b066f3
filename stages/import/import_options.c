/* import_options -- see import_options.h. */
#include "stages/import/import_options.h"

#include "base/file.h"
#include "base/memory.h"
#include "stages/formats/lod/lod.h"
#include "stages/formats/sog/sog.h"
#include "stages/import/dataset/additions.h"
#include "stages/import/own_cameras.h"
#include "stages/import/undistorted/undistorted.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

kiln_import_options kiln_import_given;

static const kiln_opt options[] = {
    KILN_OPTION_PATH("cameras", &kiln_import_given.cameras, "FILE",
                     "cameras from here: cameras.json, transforms.json, a COLMAP folder, "
                     "nerfstudio's camera_path.json or a list "
                     "of camera objects",
                     .brief = "cameras from this file or COLMAP folder",
                     .group = "Cameras and photos", .flags = KILN_KEYED),
    KILN_OPTION_BOOL("dataparser", &kiln_import_given.dataparser,
                     "move the cameras as nerfstudio's training moved them, if "
                     "dataparser_transforms.json is beside the "
                     "Gaussians or in the scene's folder",
                     .def = "yes", .brief = "move cameras as nerfstudio's training moved them",
                     .flags = KILN_KEYED | KILN_LATER),
    KILN_OPTION_TEXT("split", &kiln_import_given.split, "RULE",
                     "which cameras are test views: every:N (every Nth by name), names:FILE (the "
                     "names in FILE, one on each "
                     "line), all-train (none) or auto: as the scene's files say, else names "
                     "beginning test/, else every 8th by "
                     "name",
                     .def = "auto", .brief = "test views: every:N, names:FILE, all-train or auto",
                     .flags = KILN_KEYED | KILN_LATER),
    KILN_OPTION_PATH("photos", &kiln_import_given.photos, "DIR",
                     "look for photos here first: the image folder, or the folder that holds it",
                     .flags = KILN_KEYED | KILN_LATER),
    KILN_OPTION_NUMBER(
        "random-points", &kiln_import_given.random_points, "N",
        "make N random points if the data set has none", .def = "0", .range = "0..4294967294",
        .brief = "make N random points if there are no rows", .group = "Rows", .flags = KILN_KEYED),
    KILN_OPTION_NUMBER("seed", &kiln_import_given.seed, "S",
                       "seed of --random-points: another seed, other points", .def = "0",
                       .flags = KILN_KEYED),
    KILN_OPTION_ENUM("up", &kiln_import_given.up, "AXIS", "auto|x|-x|y|-y|z|-z",
                     "axis that points up, for the orbit of cameras that a scene without cameras "
                     "gets; auto: the one its files "
                     "name, else -y",
                     .def = "auto", .brief = "axis that points up, where no camera says it",
                     .flags = KILN_KEYED | KILN_LATER),
    KILN_OPTION_ENUM("orbit-at", &kiln_import_given.orbit_at, "PLACE", KILN_ORBIT_PLACES,
                     "where the orbit of a scene without cameras runs: outside, around all of it; "
                     "inside of its sky or walls; auto: "
                     "inside where these would hide the scene",
                     .def = "auto", .brief = "the orbit of a scene without cameras runs there",
                     .flags = KILN_KEYED | KILN_LATER),
    KILN_OPTION_ENUM("frame", &kiln_import_given.frame, "FRAME", "rub|as-is",
                     "turn SPZ and glTF to the axes of PLY; rub takes them to have those of their "
                     "specifications (x right, y up, z "
                     "back; glTF x left, y up, z forward); as-is takes them to have those of PLY "
                     "already, as many programs write",
                     .def = "rub", .brief = "turn SPZ and glTF to the axes of PLY, or take as-is",
                     .flags = KILN_KEYED | KILN_LATER | KILN_NAMED),
    KILN_OPTION_NUMBER("lod", &kiln_import_given.lod, "N",
                       "read this level of a streamed SOG scene; 0 is the finest that is there",
                       .def = "0", .range = "0..63",
                       .brief = "read this level of a streamed SOG scene; 0: finest",
                       .flags = KILN_KEYED | KILN_LATER | KILN_NAMED),
    KILN_OPTION_BOOL("static", &kiln_import_given.is_static,
                     "import Gaussians that move and fade with time (4D) unchanged: those of all "
                     "moments become one scene",
                     .brief = "take a 4D scene as it stands, all moments at once",
                     .flags = KILN_KEYED | KILN_LATER),
    KILN_OPTION_BOOL("activated", &kiln_import_given.activated,
                     "take logarithms and logits of a PLY that holds scales as lengths and "
                     "opacities within 0..1",
                     .brief = "take scales of a PLY as lengths, opacities as 0 to 1",
                     .flags = KILN_KEYED | KILN_LATER),
    KILN_OPTION_ENUM("extra", &kiln_import_given.extra, "WHICH", "keep|none",
                     "keep columns of a PLY whose meaning is not known, at most 256, for exports; "
                     "none leaves them out, but not "
                     "normals",
                     .def = "keep", .brief = "keep columns of unknown meaning, or none of them",
                     .flags = KILN_KEYED | KILN_LATER),
    KILN_OPTION_NUMBER(
        "max-inflated", &kiln_import_given.max_inflated, "X",
        "unpack a file that does not say how large it is inside to at most X times its size",
        .def = "100", .range = "1..1000000",
        .brief = "unpack to at most X times the size of the file"),
    KILN_OPTION_LIST("add", &kiln_import_given.add, "FILE",
                     "also join the rows of this file; moves of this file alone follow its name, "
                     "each after a ';': "
                     "'FILE;translate=1,0,0;rotate=0,90,0;scale=2'",
                     .brief = "also join this file's rows; ';scale=2' moves them",
                     .flags = KILN_KEYED | KILN_LATER | KILN_NAMED),
    KILN_OPTION_BOOL("parts", &kiln_import_given.parts,
                     "SCENE is a folder of splat files that form one scene: join all of them in "
                     "the order of their names",
                     .brief = "SCENE is a folder of files that form one scene",
                     .flags = KILN_KEYED | KILN_LATER),
    KILN_OPTION_NUMBER(
        "translate", &kiln_import_given.move.translate, "X,Y,Z",
        "move everything that is read, cameras too: this is added after --scale and --rotate",
        .def = "0,0,0", .range = KILN_MOVE_PLACES, .brief = "move all that is read, cameras too",
        .group = "Moves", .flags = KILN_KEYED | KILN_LATER | KILN_NAMED),
    KILN_OPTION_NUMBER(
        "rotate", &kiln_import_given.move.rotate, "X,Y,Z",
        "turn everything that is read, cameras too: degrees about the x axis, then y, then z",
        .def = "0,0,0", .brief = "turn all that is read, in degrees about x, y, z",
        .flags = KILN_KEYED | KILN_LATER | KILN_NAMED),
    KILN_OPTION_NUMBER("scale", &kiln_import_given.move.scale, "S",
                       "make everything that is read S times as large, cameras too", .def = "1",
                       .range = KILN_MOVE_SCALES, .brief = "make all that is read S times as large",
                       .flags = KILN_KEYED | KILN_LATER | KILN_NAMED),
    KILN_OPTION_NUMBER("undistort-blank", &kiln_import_given.undistort_blank, "B",
                       "pinhole that replaces a camera with lens distortion; 0: no blank pixels in "
                       "the undistorted photo; 1: the "
                       "whole photo is visible (COLMAP's blank_pixels)",
                       .def = "0", .range = "0..1",
                       .brief = "how much blank an undistorted photo may have, 0 to 1",
                       .group = "Lens distortion", .flags = KILN_KEYED | KILN_LATER),
    KILN_OPTION_BOOL("ignore-distortion", &kiln_import_given.ignore_distortion,
                     "treat cameras with lens distortion as pinholes with their own focal lengths, "
                     "and compare their photos as "
                     "they are",
                     .brief = "take cameras with lens distortion as pinholes",
                     .flags = KILN_KEYED | KILN_LATER),
    KILN_OPTION_PATH("write-undistorted", &kiln_import_given.write_undistorted, "DIR",
                     "write undistorted photos (PNG) and a COLMAP model of their pinholes into "
                     "this new folder, import nothing",
                     .brief = "write undistorted photos, import nothing", .flags = KILN_ONCE),
    KILN_OPTION_ENUM("undistort-filter", &kiln_import_given.undistort_filter, "FILTER",
                     KILN_UNDISTORT_FILTERS,
                     "interpolation for --write-undistorted: bilinear, as in COLMAP's "
                     "image_undistorter, or lanczos, which is "
                     "sharper",
                     .def = "bilinear", .brief = "its interpolation"),
    KILN_OPTION_BOOL("list", &kiln_import_given.list,
                     "print what was found and what would be used; import nothing", .letter = 'l',
                     .brief = "print what is found and used; import nothing", .group = "This run",
                     .flags = KILN_ONCE),
    KILN_OPTION_BOOL("list-formats", &kiln_import_given.list_formats,
                     "name the formats that are read, and end", .flags = KILN_ALONE),
    KILN_OPTION_BOOL("rehash", &kiln_import_given.rehash,
                     "hash every source file again, also if its size and time are unchanged",
                     .brief = "hash every source file again"),
    KILN_OPTION_END,
};

static kiln_status check_split(const char *text, kiln_error *err)
{
    kiln_split split;
    return kiln_split_parse(text, &split, err);
}

static kiln_status check_addition(const char *item, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    kiln_move move;
    return kiln_addition_parse(item, path, &move, err);
}

static const kiln_opt_check checks[] = {
    {"split", check_split}, {"add", check_addition}, {NULL, NULL}};

const kiln_cli kiln_import_cli = {
    .program = "kiln-import",
    .summary = "reads a scene into a manifest: Gaussians or points, cameras, photos",
    .positionals = "SCENE MANIFEST",
    .n_positionals = 2,
    .options = options,
    .common = kiln_common_options,
    .checks = checks};

/* Of --up, by index. */
static const char *const ups[] = {NULL, "x", "-x", "y", "-y", "z", "-z"};

const char *kiln_import_given_up(void) { return ups[kiln_import_given.up]; }

/* Relative to the folder of this run; a later one may start elsewhere, so the absolute path is what
 * is stored. */
static kiln_status absolute_cameras(kiln_error *err)
{
    char full[KILN_PATH_MAX];
    if (!kiln_import_given.cameras || !kiln_opt_given(&kiln_import_cli, "cameras")) return KILN_OK;
    if (!realpath(kiln_import_given.cameras, full))
        return kiln_fail(err, KILN_E_INPUT, "cannot open '%s': %s", kiln_import_given.cameras,
                         strerror(errno));
    return kiln_opt_set(&kiln_import_cli, "cameras", full, "--cameras", err);
}

/* The file of names, too, is stored by its absolute path. */
kiln_status kiln_import_split(kiln_split *split, kiln_error *err)
{
    char full[KILN_PATH_MAX], text[KILN_PATH_MAX];
    KILN_TRY(kiln_split_parse(kiln_import_given.split, split, err));
    if (split->kind != KILN_SPLIT_NAMES || !kiln_opt_given(&kiln_import_cli, "split"))
        return KILN_OK;
    if (!realpath(split->file, full))
        return kiln_fail(err, KILN_E_INPUT, "cannot open '%s' of --split: %s", split->file,
                         strerror(errno));
    if (snprintf(text, sizeof text, "names:%s", full) >= (int)sizeof text)
        return kiln_fail(err, KILN_E_INPUT, "the path '%s' of --split is too long", full);
    KILN_TRY(kiln_opt_set(&kiln_import_cli, "split", text, "--split", err));
    return kiln_split_parse(kiln_import_given.split, split, err);
}

static kiln_status absolute_photos(kiln_error *err)
{
    char full[KILN_PATH_MAX];
    if (!kiln_import_given.photos || !kiln_opt_given(&kiln_import_cli, "photos")) return KILN_OK;
    if (!realpath(kiln_import_given.photos, full))
        return kiln_fail(err, KILN_E_INPUT, "cannot open '%s': %s", kiln_import_given.photos,
                         strerror(errno));
    if (!kiln_is_dir(full))
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is not a folder; --photos takes the one that holds the photos",
                         full);
    return kiln_opt_set(&kiln_import_cli, "photos", full, "--photos", err);
}

static kiln_status is_folder(const char *full, kiln_error *err)
{
    static const char *const names[] = {KILN_SOG_META, KILN_LOD_META};
    char inside[KILN_PATH_MAX];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        KILN_TRY(kiln_path_join(inside, sizeof inside, full, names[i], err));
        if (kiln_is_file(inside))
            return kiln_fail(err, KILN_E_INPUT, "'%s'%s is a folder; name its %s: '%s'", full,
                             kiln_addition_of(), names[i], inside);
    }
    if (!kiln_addition_of()[0])
        return kiln_fail(err, KILN_E_INPUT, "'%s' is a folder; only the first input may be one",
                         full);
    return kiln_fail(err, KILN_E_INPUT, "'%s' of --add is a folder; --add takes a file", full);
}

static kiln_status absolute_file(const char *item, kiln_buffer *text, kiln_error *err)
{
    char path[KILN_PATH_MAX], full[KILN_PATH_MAX];
    kiln_move move;
    KILN_TRY(kiln_addition_parse(item, path, &move, err));
    if (!realpath(path, full)) {
        if (errno == ENOENT || errno == ENOTDIR) return kiln_addition_not_there(item, path, err);
        return kiln_fail(err, KILN_E_INPUT, "cannot open '%s'%s: %s", path, kiln_addition_of(),
                         strerror(errno));
    }
    if (kiln_is_dir(full)) return is_folder(full, err);
    return kiln_addition_text(full, &move, text, err);
}

/* The same of --add, whose items get their one form. */
static kiln_status absolute_added(kiln_error *err)
{
    const kiln_opt *row = options;
    const char *at = kiln_import_given.add;
    char *item = NULL;
    kiln_buffer text = {0};
    kiln_status st = KILN_OK;
    if (!kiln_import_given.add || !kiln_opt_given(&kiln_import_cli, "add")) return KILN_OK;
    while (strcmp(row->name, "add") != 0) row++;
    KILN_GO(KILN_ALLOC(&item, KILN_OPT_TEXT_MAX, "a list", err));
    kiln_import_given.add = NULL;
    while (kiln_opt_list_next(&at, item, KILN_OPT_TEXT_MAX)) {
        text.size = 0;
        KILN_GO(absolute_file(item, &text, err));
        KILN_GO(kiln_opt_list_add(row, (const char *)text.data, err));
    }
done:
    kiln_buffer_release(&text);
    free(item);
    return st;
}

kiln_status kiln_import_stored_added(kiln_error *err)
{
    const char *at = kiln_import_given.add;
    char path[KILN_PATH_MAX], *item = NULL;
    kiln_move move;
    kiln_status st = KILN_OK;
    if (!at || kiln_opt_given(&kiln_import_cli, "add")) return KILN_OK;
    KILN_TRY(KILN_ALLOC(&item, KILN_OPT_TEXT_MAX, "a list", err));
    while (st == KILN_OK && kiln_opt_list_next(&at, item, KILN_OPT_TEXT_MAX)) {
        st = kiln_addition_parse(item, path, &move, err);
        if (st == KILN_OK && access(path, F_OK) != 0)
            st = kiln_fail(err, KILN_E_INPUT,
                           "cannot open '%s': %s. The manifest has stored this --add; --add '' "
                           "forgets that list, --add "
                           "with other files replaces it",
                           path, strerror(errno));
    }
    free(item);
    return st;
}

kiln_status kiln_import_arguments(kiln_split *split, kiln_error *err)
{
    if (kiln_import_given.list && kiln_import_given.write_undistorted)
        return kiln_fail(
            err, KILN_E_USAGE,
            "--list only prints, but --write-undistorted writes; give only one of them");
    KILN_TRY(absolute_cameras(err));
    KILN_TRY(absolute_photos(err));
    KILN_TRY(absolute_added(err));
    return kiln_import_split(split, err);
}
