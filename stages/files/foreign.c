/* foreign -- see the header. The marks are of public sources:
 *
 *   RAD             sparkjsdev/spark rust/spark-lib/src/rad.rs
 *   LCC, LCC2       playcanvas/splat-transform src/lib/readers/read-lcc.ts, read-lcc2.ts, which
 *                   also reads both
 *   PyTorch         a ZIP archive whose first entry is NAME/data.pkl, or the pickle of
 *                   torch.serialization's MAGIC_NUMBER
 *   gsplat          examples/simple_trainer.py (save_ply), gsplat/exporter.py,
 *                   gsplat/compression/png_compression.py
 *   nerfstudio      process_data/{polycam,realitycapture,metashape,odm}_utils.py, docs of
 *                   ns-process-data and ns-export
 *   Bundler         "# Bundle file v0.3"; VisualSFM: "NVM_V3"
 *   OpenSfM         opensfm/commands/export_colmap.py; Meshroom: aliceVision_exportColmap
 *   Metashape       export to COLMAP since 2.2 (agisoft-llc/metashape-scripts,
 *                   export_for_gaussian_splatting.py)
 *   Scaffold-GS     scene/gaussian_model.py (construct_list_of_attributes), as in its forks
 *                   (Octree-GS, HAC)
 *   codebooks       mkkellogg/GaussianSplats3D INRIAV2PlyParser.js
 */
#include "stages/files/foreign.h"

#include "base/endian.h"
#include "base/quote.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { MARKS_MAX = 4, WORDS_MAX = 3 };

/* All that is said of one must hold. Blanks and a byte order mark in front of text are passed
 * over. */
typedef struct {
    const char *begins;           /* NULL: with anything */
    const char *entry;            /* pattern of the name of a ZIP archive's first entry */
    const char *words[WORDS_MAX]; /* stand in the first 4 KiB */
    const char *without;          /* does not */
    const char *folder;           /* of a folder: what lies in it, a folder itself */
} mark;

struct kiln_foreign {
    const char *name;
    kiln_foreign_role role;
    const char *what, *help;
    /* patterns of names in a folder, separated by spaces; case does not matter */
    const char *files;
    const char *suffixes; /* that name the kind where content does not, separated by spaces */
    bool is_splats;       /* these suffixes are of Gaussians alone */
    const char *parts;    /* suffix of files beside it that are its parts */
    mark marks[MARKS_MAX];
};

#define COLMAP_ANEW                                                                              \
    "or have COLMAP find the cameras anew: colmap automatic_reconstructor --workspace_path DIR " \
    "--image_path IMAGES"

static const struct kiln_foreign kinds[] = {
    {"rad",
     KILN_FOREIGN_SCENE,
     "a RAD file, levels for Spark's viewer",
     "no known program turns it back into Gaussians (splat-transform does not read it): import the "
     "file or bake that it was made "
     "from",
     "*.rad",
     "rad",
     true,
     NULL,
     {{.begins = "RAD0"}}},
    {"3d-tiles",
     KILN_FOREIGN_SCENE,
     "a tileset of 3D Tiles",
     "its Gaussians are spread over many files at several levels, and no single file is the whole "
     "scene: import the file or bake "
     "that it was made from; a single TILE.glb can be imported by its name",
     "*.json *.3tz",
     "3tz",
     false,
     "glb gltf",
     {{.begins = "{", .words = {"\"geometricError\""}}}},
    {"usd",
     KILN_FOREIGN_SCENE,
     "a USD scene",
     "if it holds Gaussians, OpenUSD writes them as SPZ with Adobe's USD-Fileformat-plugins "
     "(splat-transform does not read USD); "
     "the PLY that it was made from is better",
     "*.usd *.usda *.usdc *.usdz",
     "usd usda usdc usdz",
     false,
     NULL,
     {{.begins = "#usda "}, {.begins = "PXR-USDC"}, {.entry = "*.usd"}, {.entry = "*.usd[ac]"}}},
    {"lcc",
     KILN_FOREIGN_SCENE,
     "an LCC scene of XGRIDS",
     "splat-transform reads it, with data.bin and shcoef.bin beside it: splat-transform FILE.lcc "
     "scene.ply",
     "*.lcc",
     "lcc",
     true,
     NULL,
     {{.begins = "{", .words = {"\"indexDataSize\""}}}},
    {"lcc2",
     KILN_FOREIGN_SCENE,
     "an LCC2 scene of XGRIDS",
     "splat-transform reads it, with the files that it names: splat-transform meta.lcc2 scene.ply",
     "*.lcc2",
     "lcc2",
     true,
     NULL,
     {{.begins = "{", .words = {"\"totalSplats\"", "\"totalLevels\""}},
      {.begins = "{", .words = {"\"lod_3dgs_info\""}}}},
    {"gsplat-checkpoint",
     KILN_FOREIGN_SCENE,
     "a checkpoint of gsplat",
     "only PyTorch reads it; write its Gaussians as PLY: train with simple_trainer.py --save_ply, "
     "or pass its \"splats\" to "
     "gsplat.export_splats(..., format=\"ply\", save_to=\"scene.ply\"); perhaps "
     "results/ply/point_cloud_N.ply exists already",
     "*.pt *.pth *.ckpt",
     "",
     false,
     NULL,
     {{.entry = "*/data.pkl", .words = {"splats"}}}},
    {"nerfstudio-checkpoint",
     KILN_FOREIGN_SCENE,
     "a checkpoint of nerfstudio",
     "only PyTorch reads it; write its Gaussians as PLY: ns-export gaussian-splat --load-config "
     "CONFIG.yml --output-dir DIR",
     "*.pt *.pth *.ckpt",
     "",
     false,
     NULL,
     {{.entry = "*/data.pkl", .words = {"_model."}},
      {.entry = "*/data.pkl", .words = {"gauss_params"}}}},
    {"checkpoint",
     KILN_FOREIGN_SCENE,
     "a checkpoint of PyTorch",
     "only the trainer that wrote it knows its content; let that trainer write its Gaussians as "
     "PLY: INRIA's train.py writes "
     "point_cloud/iteration_N/point_cloud.ply; nerfstudio has ns-export gaussian-splat "
     "--load-config CONFIG.yml --output-dir DIR; "
     "gsplat has simple_trainer.py --save_ply",
     "*.pt *.pth *.ckpt",
     "pt pth ckpt",
     false,
     NULL,
     {{.entry = "*/data.pkl"},
      {.entry = "data.pkl"},
      {.begins = "\x80\x02\x8a\nl\xfc\x9c\x46\xf9 j\xa8P\x19"}}},
    {"npz",
     KILN_FOREIGN_SCENE,
     "an archive or array of NumPy",
     "each program uses its own array names: write its Gaussians as PLY, for example with "
     "gsplat.export_splats(means, scales, "
     "quats, "
     "opacities, sh0, shN, format=\"ply\", "
     "save_to=\"scene.ply\")",
     "*.npz *.npy",
     "npz npy",
     false,
     NULL,
     {{.entry = "*.npy"}, {.begins = "\x93NUMPY"}}},
    {"gsplat-png",
     KILN_FOREIGN_SCENE,
     "the meta.json of gsplat's PNG compression",
     "gsplat unpacks it: pass the result of PngCompression().decompress(DIR) to "
     "gsplat.export_splats(..., format=\"ply\", "
     "save_to=\"scene.ply\")",
     "meta.json",
     "",
     false,
     NULL,
     {{.begins = "{", .words = {"\"means\"", "\"shape\"", "\"dtype\""}, .without = "\"files\""}}},
    {"sog-3",
     KILN_FOREIGN_SCENE,
     "a SOG file of version 3",
     "versions 1 and 2 are read: write it as version 2 or as PLY with the program that made it",
     "",
     "",
     false,
     NULL,
     {{0}}},
    {"scaffold-gs",
     KILN_FOREIGN_SCENE,
     "a PLY of anchors of Scaffold-GS",
     "networks in .pt files beside it turn anchors into new Gaussians for each view, and no "
     "program makes fixed Gaussians from "
     "them: train the scene with a method that "
     "keeps Gaussians (INRIA, gsplat, splatfacto)",
     "",
     "",
     false,
     NULL,
     {{.begins = "ply", .words = {" f_anchor_feat_0"}},
      {.begins = "ply", .words = {" f_offset_0"}}}},
    {"codebook-ply",
     KILN_FOREIGN_SCENE,
     "a PLY with codebooks (INRIA's reduced form)",
     "import the full point_cloud.ply of the same training",
     "",
     "",
     false,
     NULL,
     {{.begins = "ply", .words = {"element codebook_centers"}, .without = "element chunk "}}},
    {"las",
     KILN_FOREIGN_SCENE,
     "a LAS or LAZ point cloud",
     "PDAL converts it: pdal translate FILE.las points.ply",
     "*.las *.laz",
     "las laz",
     false,
     NULL,
     {{.begins = "LASF"}}},
    {"e57",
     KILN_FOREIGN_SCENE,
     "an E57 point cloud",
     "PDAL converts it: pdal translate FILE.e57 points.ply",
     "*.e57",
     "e57",
     false,
     NULL,
     {{.begins = "ASTM-E57"}}},
    {"pcd",
     KILN_FOREIGN_SCENE,
     "a PCD point cloud",
     "PDAL converts it: pdal translate FILE.pcd points.ply",
     "*.pcd",
     "pcd",
     false,
     NULL,
     {{.begins = "# .PCD"}}},
    {"sqlite",
     KILN_FOREIGN_SCENE,
     "an SQLite database",
     "COLMAP's database.db holds no model: import its sparse/0; a manifest of SplatKiln is an "
     "input of the stages after import",
     "*.db",
     "",
     false,
     NULL,
     {{.begins = "SQLite format 3"}}},
    {"polycam",
     KILN_FOREIGN_CAMERAS,
     "raw data of Polycam, a camera for each of its keyframes",
     "nerfstudio converts it to a transforms.json: ns-process-data polycam --data RAW.zip "
     "--output-dir DIR",
     "keyframes *.zip",
     "",
     false,
     NULL,
     {{.folder = "keyframes/corrected_cameras"},
      {.folder = "keyframes/cameras"},
      {.entry = "*keyframes/*"},
      {.begins = "{", .words = {"\"t_00\"", "\"t_23\""}}}},
    {"bundler",
     KILN_FOREIGN_CAMERAS,
     "a Bundler model",
     "have the program that made it export COLMAP (RealityScan, Metashape 2.2; OpenSfM: "
     "bin/opensfm export_colmap), " COLMAP_ANEW,
     "*.out",
     "",
     false,
     NULL,
     {{.begins = "# Bundle file"}}},
    {"realitycapture-csv",
     KILN_FOREIGN_CAMERAS,
     "a list of cameras of RealityCapture",
     "nerfstudio converts it to a transforms.json: ns-process-data realitycapture --data IMAGES "
     "--csv FILE.csv --output-dir DIR; "
     "RealityScan exports COLMAP itself",
     "*.csv",
     "",
     false,
     NULL,
     {{.begins = "#", .words = {"#name,x,y"}}}},
    {"metashape",
     KILN_FOREIGN_CAMERAS,
     "a list of cameras of Metashape",
     "Metashape 2.2 exports COLMAP (File, Export, Export Cameras), or nerfstudio converts it to a "
     "transforms.json: ns-process-data "
     "metashape --data IMAGES --xml FILE.xml --output-dir DIR",
     "*.xml",
     "",
     false,
     NULL,
     {{.begins = "<", .words = {"<document", "<chunk"}}}},
    {"blocks-exchange",
     KILN_FOREIGN_CAMERAS,
     "a BlocksExchange file",
     "have the program that made it export COLMAP, " COLMAP_ANEW,
     "*.xml",
     "",
     false,
     NULL,
     {{.begins = "<", .words = {"<BlocksExchange"}}}},
    {"nvm",
     KILN_FOREIGN_CAMERAS,
     "an NVM model of VisualSFM",
     "have the program that made it export COLMAP, " COLMAP_ANEW,
     "*.nvm",
     "nvm",
     false,
     NULL,
     {{.begins = "NVM_V3"}}},
    {"opensfm",
     KILN_FOREIGN_CAMERAS,
     "a reconstruction of OpenSfM",
     "OpenSfM exports it as COLMAP: bin/opensfm export_colmap DATASET; nerfstudio converts an "
     "OpenDroneMap project to a "
     "transforms.json: ns-process-data odm --data PROJECT --output-dir DIR",
     "reconstruction*.json",
     "",
     false,
     NULL,
     {{.begins = "[", .words = {"\"cameras\"", "\"projection_type\""}},
      {.begins = "[", .words = {"\"shots\""}}}},
    {"meshroom",
     KILN_FOREIGN_CAMERAS,
     "an SfMData file of Meshroom",
     "AliceVision exports it as COLMAP: aliceVision_exportColmap -i FILE.sfm -o DIR (Meshroom's "
     "node ExportColmap)",
     "*.sfm sfm*.json cameras*.json",
     "sfm",
     false,
     NULL,
     {{.begins = "{", .words = {"\"viewId\""}}, {.begins = "{", .words = {"\"featuresFolders\""}}}},
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

/* ---- marks ----------------------------------------------------------------------------------- */

typedef struct {
    const unsigned char *head;
    size_t len;
    size_t text; /* where text begins, behind blanks */
    char entry[256];
} beginning;

static beginning read_beginning(const unsigned char *head, size_t len)
{
    beginning b = {.head = head, .len = len};
    if (len >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0) b.text = 3;
    while (b.text < len && head[b.text] && strchr(" \t\r\n", head[b.text])) b.text++;
    /* An archive begins with its first entry: u16 at 26 is the length of its name, which stands at
     * 30 (PKWARE's APPNOTE). */
    if (len < 30 || memcmp(head, "PK\x03\x04", 4) != 0) return b;
    const size_t n = kiln_get_u16(head + 26);
    if (n < sizeof b.entry && 30 + n <= len) memcpy(b.entry, head + 30, n);
    return b;
}

static bool has_word(const beginning *b, const char *word)
{
    return memmem(b->head, b->len, word, strlen(word)) != NULL;
}

static bool begins_with(const beginning *b, const char *text)
{
    return b->len - b->text >= strlen(text) && memcmp(b->head + b->text, text, strlen(text)) == 0;
}

static bool mark_fits(const mark *m, const beginning *b)
{
    const bool is_empty = !m->begins && !m->entry && !m->words[0];
    if (is_empty || (m->begins && !begins_with(b, m->begins))) return false;
    if (m->entry && (!b->entry[0] || fnmatch(m->entry, b->entry, FNM_CASEFOLD) != 0)) return false;
    for (int i = 0; i < WORDS_MAX; i++)
        if (m->words[i] && !has_word(b, m->words[i])) return false;
    return !m->without || !has_word(b, m->without);
}

static const kiln_foreign *by_content(const unsigned char *head, size_t len)
{
    const beginning b = read_beginning(head, len);
    for (size_t k = 0; k < N_KINDS; k++)
        for (int i = 0; i < MARKS_MAX; i++)
            if (mark_fits(&kinds[k].marks[i], &b)) return &kinds[k];
    return NULL;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Is there a word of the list that fits? */
static bool matches_name_list(const char *list, const char *name)
{
    char pattern[64];
    for (size_t n; *list; list += n + strspn(list + n, " ")) {
        n = strcspn(list, " ");
        snprintf(pattern, sizeof pattern, "%.*s", (int)n, list);
        if (n && fnmatch(pattern, name, FNM_CASEFOLD) == 0) return true;
    }
    return false;
}

static const kiln_foreign *by_suffix(const char *path)
{
    const char *suffix = kiln_path_suffix(path);
    for (size_t k = 0; k < N_KINDS && *suffix; k++)
        if (matches_name_list(kinds[k].suffixes, suffix)) return &kinds[k];
    return NULL;
}

bool kiln_foreign_may_be(const char *name)
{
    for (size_t k = 0; k < N_KINDS; k++)
        if (matches_name_list(kinds[k].files, name)) return true;
    return false;
}

bool kiln_foreign_is_splats(const char *name)
{
    const kiln_foreign *f = by_suffix(name);
    return f && f->is_splats;
}

bool kiln_foreign_holds_suffix(const kiln_foreign *f, const char *suffix)
{
    return f && f->parts && *suffix && matches_name_list(f->parts, suffix);
}

/* ---- files and folders ----------------------------------------------------------------------- */

const kiln_foreign *kiln_foreign_find(const char *path, const unsigned char *head, size_t len,
                                      int *score)
{
    /* above a PLY's: some of these are PLY files of their own kind */
    enum { BY_CONTENT = 98, BY_SUFFIX = 1 };
    const kiln_foreign *content = by_content(head, len), *f = content ? content : by_suffix(path);
    *score = content ? BY_CONTENT : f ? BY_SUFFIX : 0;
    return f;
}

const kiln_foreign *kiln_foreign_of_file(const char *path)
{
    unsigned char head[KILN_PROBE_BYTES];
    kiln_file_info info;
    kiln_error unread;
    int fd;
    if (!kiln_is_file(path) || kiln_file_open(path, &fd, &unread) != KILN_OK) return NULL;
    size_t len = 0;
    if (kiln_file_stat(path, &info, &unread) == KILN_OK)
        len = info.size < sizeof head ? (size_t)info.size : sizeof head;
    if (kiln_file_read_at(fd, path, 0, head, len, &unread) != KILN_OK) len = 0;
    close(fd); /* opened for reading: nothing to lose */
    return by_content(head, len);
}

const kiln_foreign *kiln_foreign_of_folder(const char *folder)
{
    char path[KILN_PATH_MAX];
    kiln_error too_long;
    for (size_t k = 0; k < N_KINDS; k++)
        for (int i = 0; i < MARKS_MAX; i++) {
            const char *in = kinds[k].marks[i].folder;
            if (in && kiln_path_join(path, sizeof path, folder, in, &too_long) == KILN_OK &&
                kiln_is_dir(path))
                return &kinds[k];
        }
    return NULL;
}

/* ---- sentences ------------------------------------------------------------------------------- */

const char *kiln_foreign_what(const kiln_foreign *f) { return f->what; }
const char *kiln_foreign_help(const kiln_foreign *f) { return f->help; }
kiln_foreign_role kiln_foreign_role_of(const kiln_foreign *f) { return f->role; }

kiln_status kiln_foreign_refuse(const char *path, const kiln_foreign *f, kiln_error *err)
{
    return kiln_fail(err, KILN_E_INPUT, "'%s' is %s, which is not read; %s", path, f->what,
                     f->help);
}

kiln_status kiln_foreign_refuse_named(const char *path, const char *name, kiln_error *err)
{
    for (size_t k = 0; k < N_KINDS; k++)
        if (strcmp(kinds[k].name, name) == 0) return kiln_foreign_refuse(path, &kinds[k], err);
    return kiln_fail(err, KILN_E_BUG, "'%s' is not a known foreign format", name);
}

void kiln_foreign_list(void)
{
    for (size_t k = 0; k < N_KINDS; k++)
        kiln_print("%-14s %-12s %s; %s", "(not read)", *kinds[k].files ? kinds[k].files : "-",
                   kinds[k].what, kinds[k].help);
}
