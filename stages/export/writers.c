/* writers -- the table of formats that a bake is written to. A new one: its file, its line in writers.h, its row here. */
#include "stages/export/writers.h"

#include "base/file.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

const kiln_writer *const kiln_writers[] = {
    &kiln_writer_ply,
    &kiln_writer_chunks,
    NULL,
};

const kiln_writer *kiln_writer_named(const char *name)
{
    for (const kiln_writer *const *w = kiln_writers; *w; w++)
        if (strcmp((*w)->name, name) == 0) return *w;
    return NULL;
}

/* ---- names of files ------------------------------------------------------------------------------------------------------- */
/* Formats that other programs read and that no writer above makes: a PLY under such a name would be taken for what it is not. One
 * that gets a writer may stay here. */
static const char *const elsewhere[] = {"compressed.ply", "splat", "ksplat", "spz", "sog", "glb",
                                        "gltf",           "csv",   "html",   "rad", "lcc", "usd",
                                        "usda",           "usdz",  "obj",    "pcd", "las", "laz"};

static bool ends_with(const char *path, const char *suffix)
{
    const char *name = kiln_path_base(path);
    const size_t n = strlen(name), k = strlen(suffix);
    return k > 0 && n > k && name[n - k - 1] == '.' && strcasecmp(name + n - k, suffix) == 0;
}

/* The longest decides: x.compressed.ply is no ordinary PLY. *writer: whose it is, or NULL. */
static const char *find_suffix(const char *path, const kiln_writer **writer)
{
    const char *found = "";
    *writer = NULL;
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (strlen(elsewhere[i]) > strlen(found) && ends_with(path, elsewhere[i])) found = elsewhere[i];
    for (const kiln_writer *const *w = kiln_writers; *w; w++) {
        if (strlen((*w)->suffix) < strlen(found) || !ends_with(path, (*w)->suffix)) continue;
        found = (*w)->suffix;
        *writer = *w;
    }
    return *found ? found : NULL;
}

const char *kiln_scene_suffix(const char *path)
{
    const kiln_writer *writer;
    return find_suffix(path, &writer);
}

/* "NAME.ply, or a folder with --format chunks" */
static void list_written(char *out, size_t size)
{
    size_t n = 0;
    *out = '\0';
    for (const kiln_writer *const *w = kiln_writers; *w && n < size; w++) {
        const char *sep = w == kiln_writers ? "" : w[1] ? ", " : ", or ";
        const bool file = (*w)->suffix[0] != '\0';
        n += (size_t)snprintf(out + n, size - n, "%s%s%s", sep, file ? "NAME." : "a folder with --format ",
                              file ? (*w)->suffix : (*w)->name);
    }
}

kiln_status kiln_writer_for(const char *path, const kiln_writer *wanted, bool insists, const kiln_writer **out, kiln_error *err)
{
    char written[256];
    const kiln_writer *of_suffix;
    const char *suffix = find_suffix(path, &of_suffix);
    *out = of_suffix ? of_suffix : wanted;
    if (of_suffix && (of_suffix == wanted || !insists)) return KILN_OK;
    if (of_suffix)
        return kiln_fail(err, KILN_E_USAGE, "-o '%s' names the format %s, --format says %s; leave out one of them", path,
                         of_suffix->name, wanted->name);
    if (!suffix && (!wanted->suffix[0] || !kiln_path_has_suffix(path))) return KILN_OK;
    list_written(written, sizeof written);
    return kiln_fail(err, KILN_E_USAGE, "-o '%s': '.%s' is no format that kiln-export writes; it writes %s", path,
                     suffix ? suffix : kiln_path_suffix(path), written);
}

const kiln_chunk *kiln_export_sample(const kiln_export *e)
{
    for (uint32_t c = 0; c < e->layer->n_chunks; c++)
        if (e->chosen[c] && e->layer->chunks[c].count) return &e->layer->chunks[c];
    return NULL;
}
