/* export_options -- see the header. */
#include "stages/export/export_options.h"

#include "schema/layers.h"
#include "stages/frame/level_choice.h"
#include "stages/products/product_guard.h"
#include "stages/select/chunk_choice.h"
#include "stages/select/move.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

kiln_export_options kiln_export_given;

#define WRITER(id, name, ...) "|" name
static const char formats[] = /* "|ply|chunks": an option's range is all but the first bar */
#include "stages/formats/writers.def"
    ;
#undef WRITER

#define WRITER(id, name, ...) " " name
static const char format_help[] = "one or several formats, separated by commas (kiln-export "
                                  "--list-formats describes them; default: by the suffix of -o):"
#include "stages/formats/writers.def"
    ;
#undef WRITER

static const kiln_opt options[] = {
    KILN_OPTION_TEXT("format", &kiln_export_given.format, "LIST", format_help, .letter = 'f',
                     .def = "ply", .range = formats + 1,
                     .brief = "one or several of those of --list-formats",
                     .group = "What is written", .flags = KILN_KEYED | KILN_TITLE),
    KILN_OPTION_ENUM("spz-version", &kiln_export_given.spz_version, "V", "3|4",
                     "write this version of the format spz; 3 is for Spark, Babylon, three.js and "
                     "CesiumJS; 4 is for splat-transform, "
                     "Babylon, three.js and the engine of PlayCanvas, which reads no other",
                     .def = "3", .brief = "write SPZ 3 for most viewers, 4 for PlayCanvas",
                     .flags = KILN_KEYED | KILN_LATER),
    KILN_OPTION_ENUM("layer", &kiln_export_given.layer, "LAYER", kiln_drawable_names + 1,
                     "what to write; baked: what was chunked", .def = "baked",
                     .brief = "source, initial, pruned or baked (what was chunked)",
                     .flags = KILN_KEYED),
    KILN_OPTION_ENUM("order", &kiln_export_given.order, "ORDER", "source|baked",
                     "order of the rows of a PLY: as in the source, or chunk after chunk, as all "
                     "other formats have them",
                     .def = "source", .brief = "rows of a PLY as in the source, or chunk by chunk",
                     .flags = KILN_KEYED),
    KILN_OPTION_TEXT("chunks", &kiln_export_given.chunks, "LIST",
                     "only these: names separated by commas, #INDEX, or patterns: * stays within a "
                     "level of a name, ** crosses "
                     "levels",
                     .brief = "only these chunks, by name, #INDEX or pattern",
                     .group = "Which rows, and where they lie", .flags = KILN_KEYED),
    KILN_FILTER_OPTIONS(&kiln_export_given.filter_boxes, &kiln_export_given.filter_spheres,
                        &kiln_export_given.filter_values, "write"),
    KILN_OPTION_TEXT("level", &kiln_export_given.level, "LEVEL",
                     "write coarser Gaussians that stand for these (kiln-lod): each chunk at this "
                     "level, 0: all; dB:X: as few as are "
                     "X dB from all in the mean of the cameras; auto: dB:35",
                     .def = "0", .brief = "level K; dB:X: the fewest within X dB; auto: dB:35",
                     .flags = KILN_KEYED | KILN_LATER | KILN_NAMED),
    KILN_OPTION_NUMBER("count", &kiln_export_given.count, "N",
                       "write N Gaussians that stand for all that --chunks and filters leave: "
                       "levels of detail (kiln-lod), of "
                       "which each chunk keeps the same share, but one at the least; off: all",
                       .def = "off", .range = "1..4294967294|off",
                       .brief = "write so many Gaussians that stand for all",
                       .flags = KILN_KEYED | KILN_LATER | KILN_NAMED),
    KILN_OPTION_NUMBER(
        "percent", &kiln_export_given.percent, "P",
        "write this share of what --chunks and filters leave, as --count does: 10 or "
        "10%, above 0",
        .def = "off", .range = "1e-9..100|off",
        .brief = "P % as many Gaussians, which stand for all",
        .flags = KILN_KEYED | KILN_LATER | KILN_NAMED | KILN_PERCENT),
    KILN_OPTION_NUMBER("sh-degree", &kiln_export_given.sh_degree, "N",
                       "write spherical harmonics up to this degree", .def = "4", .range = "0..4",
                       .flags = KILN_KEYED | KILN_LATER),
    KILN_OPTION_NUMBER("translate", &kiln_export_given.translate, "X,Y,Z",
                       "move what is written: this is added after --scale and --rotate",
                       .def = "0,0,0", .range = KILN_MOVE_PLACES,
                       .flags = KILN_KEYED | KILN_LATER | KILN_NAMED),
    KILN_OPTION_NUMBER("rotate", &kiln_export_given.rotate, "X,Y,Z",
                       "turn what is written: degrees about the x axis, then y, then z",
                       .def = "0,0,0", .flags = KILN_KEYED | KILN_LATER | KILN_NAMED),
    KILN_OPTION_NUMBER("scale", &kiln_export_given.scale, "S",
                       "make what is written S times as large", .def = "1",
                       .range = KILN_MOVE_SCALES, .flags = KILN_KEYED | KILN_LATER | KILN_NAMED),
    KILN_OPTION_LIST("add", &kiln_export_given.add, "MANIFEST",
                     "also write the same layer of this bake into the same file",
                     .brief = "also the same layer of this bake, in the same file",
                     .flags = KILN_KEYED | KILN_LATER | KILN_NAMED),
    KILN_OPTION_BOOL("no-normals", &kiln_export_given.no_normals,
                     "leave the columns nx, ny and nz out of a PLY",
                     .brief = "leave nx, ny and nz out of a PLY", .group = "How it is written",
                     .flags = KILN_KEYED | KILN_LATER),
    KILN_OPTION_ENUM("columns", &kiln_export_given.columns, "WHICH", "source|inria",
                     "write these columns into a PLY of Gaussians; source stands for those of the "
                     "source; inria stands for x y z, "
                     "normals, f_dc, 45 f_rest, opacity, scale, rot, all float, which Unity, "
                     "Unreal and Blender want in this order",
                     .def = "source", .brief = "write the source's columns into a PLY, or INRIA's",
                     .flags = KILN_KEYED | KILN_LATER),
    KILN_OPTION_BOOL("keep-origin", &kiln_export_given.keep_origin,
                     "write float coordinates relative to the scene's origin where it has one, not "
                     "absolute doubles",
                     .brief = "write float positions relative to the scene's origin",
                     .flags = KILN_KEYED),
    KILN_OPTION_BOOL(
        "for-viewers", &kiln_export_given.for_viewers,
        "as if --keep-origin were given, unless the user said so or otherwise, now or once; "
        "`kiln pipeline` sets it",
        .brief = "keep the origin, unless --no-keep-origin says no", .flags = KILN_STEP),
    KILN_OPTION_ENUM("frame", &kiln_export_given.frame, "FRAME", "rub|as-is",
                     "turn SPZ and GLB to the axes that their specifications name (SPZ right, up, "
                     "back; GLB left, up, forward), as "
                     "import expects them; as-is leaves the numbers of a PLY",
                     .def = "rub", .brief = "turn SPZ and GLB to their axes (rub), or leave as-is",
                     .flags = KILN_KEYED | KILN_LATER | KILN_NAMED),
    KILN_OPTION_TEXT("geo", &kiln_export_given.geo, "LAT,LON,H",
                     "where the scene's origin lies, for 3dtiles: latitude and longitude in "
                     "degrees, height above the ellipsoid "
                     "(WGS 84) in metres; or none",
                     .def = "none", .brief = "where the origin of 3dtiles lies on the globe",
                     .flags = KILN_KEYED | KILN_LATER),
    KILN_OPTION_NUMBER("report-loss", &kiln_export_given.report_loss, "N",
                       "draw up to N cameras from the written file and from its input rows, and "
                       "print the dB between the pictures",
                       .def = "0", .range = "0..1000000",
                       .brief = "measure in N cameras what the format loses, in dB",
                       .group = "Files"),
    KILN_OPTION_NUMBER("min-psnr", &kiln_export_given.min_psnr, "DB",
                       "with --report-loss: if a camera has less, remove the file and end with 3",
                       .def = "off", .range = "0..|off",
                       .brief = "with --report-loss: least dB of each camera"),
    KILN_OPTION_PATH(
        "output", &kiln_export_given.output, "PATH",
        "a file (its suffix chooses the format) or a folder; default: export/ beside the manifest",
        .letter = 'o', .brief = "a file, whose suffix is the format, or a folder",
        .flags = KILN_ONCE),
    KILN_OVERWRITE_OPTION(&kiln_export_given.overwrite),
    KILN_OPTION_BOOL("list-formats", &kiln_export_given.list_formats,
                     "name the formats that are written, and end", .flags = KILN_ALONE),
    KILN_OPTION_END,
};

static kiln_status check_formats(const char *text, kiln_error *err)
{
    const kiln_writer *list[KILN_WRITERS_MAX];
    uint32_t n;
    return kiln_writers_parse(text, list, &n, err);
}

/* Formats that are named as a version of their own stay. */
kiln_status kiln_export_spz_version(const kiln_writer *list[], uint32_t *n, kiln_error *err)
{
    static const char *const words[] = {"3", "4"};
    const bool given = kiln_opt_given(&kiln_export_cli, "spz-version");
    const kiln_writer *const spz = kiln_writer_named("spz");
    const kiln_writer *const wanted =
        kiln_export_given.spz_version ? kiln_writer_named("spz4") : spz;
    const kiln_writer *other = NULL;
    uint32_t kept = 0;
    bool used = false;
    for (uint32_t i = 0; i < *n; i++) {
        const kiln_writer *const w = list[i] == spz ? wanted : list[i];
        bool again = false;
        for (uint32_t k = 0; k < kept; k++) again = again || list[k] == w;
        if (!again) list[kept++] = w;
        used = used || w == wanted;
        if (kiln_writer_is_spz(w)) other = w;
    }
    *n = kept;
    if (!given || used) return KILN_OK;
    if (other)
        return kiln_fail(
            err, KILN_E_USAGE,
            "--format %s and --spz-version %s are two versions of SPZ; leave out one of them",
            other->name, words[kiln_export_given.spz_version]);
    return kiln_fail(err, KILN_E_USAGE,
                     "--spz-version is for the format spz alone, and what is written is %s; name a "
                     "file NAME.spz",
                     list[0]->name);
}

static kiln_status check_chunk_list(const char *text, kiln_error *err)
{
    return kiln_chunks_check(text, false, err);
}

kiln_status kiln_export_geo(const char *text, double at[3], bool *placed, kiln_error *err)
{
    int end = 0;
    *placed = strcmp(text, "none") != 0;
    if (!*placed) return KILN_OK;
    if (sscanf(text, "%lf,%lf,%lf%n", &at[0], &at[1], &at[2], &end) == 3 && text[end] == '\0' &&
        fabs(at[0]) <= 90 && fabs(at[1]) <= 360 && fabs(at[2]) <= 1e7)
        return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE,
                     "--geo '%s' is no place; give latitude (-90 to 90), longitude (-360 to 360) "
                     "and height in metres, such as "
                     "47.37,8.54,410, or none",
                     text);
}

static kiln_status check_geo(const char *text, kiln_error *err)
{
    double at[3];
    bool placed;
    return kiln_export_geo(text, at, &placed, err);
}

static const kiln_opt_check checks[] = {KILN_FILTER_CHECKS,           {"format", check_formats},
                                        {"chunks", check_chunk_list}, {"geo", check_geo},
                                        {"level", kiln_level_check},  {NULL, NULL}};

const kiln_cli kiln_export_cli = {.program = "kiln-export",
                                  .summary = "writes the baked scene for other renderers",
                                  .positionals = "MANIFEST",
                                  .n_positionals = 1,
                                  .options = options,
                                  .common = kiln_common_options,
                                  .checks = checks};

kiln_status kiln_export_wishes(kiln_export *e, kiln_error *err)
{
    const kiln_export_options *o = &kiln_export_given;
    e->source_order = o->order == 0;
    e->keep_origin = o->keep_origin;
    e->inria_columns = o->columns != 0;
    e->no_normals = o->no_normals;
    e->frame = o->frame ? KILN_FRAME_AS_IS : KILN_FRAME_RUB;
    kiln_edits_of(o->translate, o->rotate, o->scale, o->sh_degree, &e->edits);
    return kiln_filters_parse(o->filter_boxes, o->filter_spheres, o->filter_values, &e->filters,
                              err);
}
