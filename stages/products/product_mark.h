/* product_mark -- whether a file says of itself that SplatKiln wrote it.
 *
 * Problem. A file that is there may be replaced if we wrote it and nobody has changed it since. The
 * manifest knows this of the files in the bake's own folder; of what -o wrote elsewhere nobody
 * keeps a record. Layout. What can name its program names SplatKiln: PNG in its text `Software`,
 * PLY in a comment, glTF, 3D Tiles, SOG and lists of levels in `generator`, RAD in `comment`, HTML
 * in <meta name="generator">, chunks in `format`. That is the mark. PNG and HTML end with a seal as
 * well: the hash of all bytes before it. A sealed file that was edited by hand is known to be
 * another one, though the mark is still in it. The other formats are too large to be read a second
 * time for a seal: an extended attribute of the file, the note, holds their size and time. A copy
 * has no note, and who edited it is not known, so where the file system keeps notes it is not ours.
 * Where it keeps none (NFS, tmpfs before Linux 6.6) the mark has to do. .splat, .ksplat, .spz,
 * .csv, .npy, videos and lists of cameras carry no mark. What kiln-export writes has a second
 * attribute, which names the bake and the place: a file that another bake exported, or that was
 * renamed since, may be a scene that somebody keeps.
 *
 * Reads at most 64 KiB at either end, and all of a file that has a seal. Follows no link; opens
 * nothing but regular files. */
#ifndef KILN_STAGES_PRODUCTS_PRODUCT_MARK_H
#define KILN_STAGES_PRODUCTS_PRODUCT_MARK_H

#include "base/memory.h"
#include "base/status.h"
#include "schema/hash.h"

#include <stdbool.h>

typedef enum {
    KILN_MARK_NONE,   /* no mark, or it cannot be read */
    KILN_MARK_OURS,   /* a mark, of a format or on a file system without seal and note */
    KILN_MARK_SEALED, /* a seal or a note that fits */
    KILN_MARK_BROKEN, /* a seal or a note that does not fit: changed since it was written */
    KILN_MARK_COPIED, /* a mark without the note that it should have: a copy, perhaps edited */
    KILN_MARK_OTHERS, /* ours, but not exported from the bake that is asked about to this place */
} kiln_mark;
kiln_mark kiln_product_mark(const char *path);
/* The same of a folder: of the file in it that its format begins with (index.json, tileset.json,
 * meta.json, lod-meta.json). */
kiln_mark kiln_product_folder_mark(const char *folder);
/* Both, but OTHERS instead of OURS and SEALED where it was not exported from this bake to this
 * place. bake: as kiln_product_note_export was told; zero: any. Where the file system keeps no
 * notes nobody knows, and OURS has to do. */
kiln_mark kiln_product_mark_of(const char *path, kiln_hash bake);
kiln_mark kiln_product_folder_mark_of(const char *folder, kiln_hash bake);
/* Says whether a file of this name, by its suffix, would carry a mark if we had written it. A PLY
 * carries none where it keeps the header of its source. */
bool kiln_product_name_has_mark(const char *path);

/* Says whether SplatKiln wrote this file and it is unchanged since, as far as mark and note tell.
 * Of formats of scenes without a mark (.spz, .splat, .ksplat, .csv) a note alone says so. It is no
 * leave to replace the file, because copies lose their notes. */
bool kiln_product_was_written(const char *path);

/* Notes size and time of a whole file that is to have the name `path`, if its format may have a
 * mark without a seal, or is one of a scene without a mark. Best effort. */
void kiln_product_note(const char *file, const char *path);
/* Notes in a whole file that this bake exported it to `path`: to the file itself, or to the folder
 * whose format begins with it. Best effort. The folder of `path` is there. */
void kiln_product_note_export(const char *file, const char *path, kiln_hash bake);

/* What PNGs say in their text `Software`, and other formats as their generator: "SplatKiln " and
 * the version. */
#define KILN_PRODUCT_GENERATOR "SplatKiln "
/* Of a page: with kiln_version in between. */
#define KILN_PRODUCT_META_BEGIN "<meta name=\"generator\" content=\"" KILN_PRODUCT_GENERATOR
#define KILN_PRODUCT_META_END "\">\n"

/* Appends the seal to a page that is whole. */
kiln_status kiln_product_seal_html(kiln_buffer *page, kiln_error *err) KILN_MUST_CHECK;

/* The seal of a PNG: a text chunk right before the last chunk. before: the hash of all bytes before
 * it. */
enum { KILN_PNG_SEAL_BYTES = 59 };
void kiln_product_seal_png(kiln_hash before, unsigned char out[KILN_PNG_SEAL_BYTES]);

#endif
