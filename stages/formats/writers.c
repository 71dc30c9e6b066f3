/* writers -- the formats of writers.def: by name, by the suffix of a file, and as lists for
 * people. */
#include "stages/formats/writer.h"

#include "base/file.h"
#include "base/quote.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

const kiln_writer kiln_writers[] = {
#define WRITER(id, name, suffixes, default_name, holds, what) \
    {#id, name, suffixes, default_name, holds, what, &kiln_writer_##id},
#include "stages/formats/writers.def"
#undef WRITER
    {NULL, NULL, NULL, NULL, 0, NULL, NULL},
};

#define WRITER(id, name, ...)                                                          \
    _Static_assert(sizeof name <= KILN_WRITER_NAME_MAX, "the name of a format is too " \
                                                        "long: " name);
#include "stages/formats/writers.def"
#undef WRITER
_Static_assert(sizeof kiln_writers / sizeof *kiln_writers - 1 <= KILN_WRITERS_MAX,
               "there are too many formats");

/* A list of all names: "ply, chunks". */
enum { NAMES_MAX = KILN_WRITERS_MAX * (KILN_WRITER_NAME_MAX + 2) };

const kiln_writer *kiln_writer_named(const char *name)
{
    for (const kiln_writer *w = kiln_writers; w->name; w++)
        if (strcmp(w->name, name) == 0) return w;
    return NULL;
}

kiln_status kiln_writers_parse(const char *list, const kiln_writer *out[KILN_WRITERS_MAX],
                               uint32_t *n, kiln_error *err)
{
    char name[KILN_WRITER_NAME_MAX], known[NAMES_MAX] = "";
    size_t used = 0;
    *n = 0;
    for (const char *at = list; *at;) {
        const size_t length = strcspn(at, ",");
        const kiln_writer *w = NULL;
        bool again = false;
        if (length < sizeof name) {
            (void)snprintf(name, sizeof name, "%.*s", (int)length, at);
            w = kiln_writer_named(name);
        }
        for (const kiln_writer *k = kiln_writers; !w && k->name && used < sizeof known; k++)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "",
                                     k->name);
        if (!w)
            return kiln_fail(err, KILN_E_USAGE,
                             "'%.*s' is not a format that can be written; there are %s",
                             (int)length, at, known);
        for (uint32_t i = 0; i < *n; i++) again = again || out[i] == w;
        if (!again && *n < KILN_WRITERS_MAX) out[(*n)++] = w;
        at += length + (at[length] == ',');
    }
    return *n ? KILN_OK
              : kiln_fail(err, KILN_E_USAGE, "--format names no format; see --list-formats");
}

const kiln_writer *kiln_writers_need_levels(const char *list, const char *output)
{
    const kiln_writer *chosen[KILN_WRITERS_MAX];
    uint32_t n;
    if (kiln_writers_parse(list, chosen, &n, NULL) != KILN_OK) return NULL;
    if (output && n == 1 &&
        kiln_writer_for(output, chosen[0], false, KILN_ASKS_EXPORT, &chosen[0], NULL) != KILN_OK)
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        if (chosen[i]->holds & KILN_NEEDS_LEVELS) return chosen[i];
    return NULL;
}

bool kiln_writer_is_spz(const kiln_writer *w) { return strncmp(w->name, "spz", 3) == 0; }

kiln_status kiln_writer_check_machine(const kiln_writer *w, kiln_error *err)
{
    if (!w->functions->key) return KILN_OK;
    kiln_hasher *h = kiln_hasher_new();
    const kiln_status st = w->functions->key(h, err);
    (void)kiln_hasher_end(h);
    if (st != KILN_OK) kiln_note(err, "--format %s", w->name);
    return st;
}

void kiln_writers_list(void)
{
    for (const kiln_writer *w = kiln_writers; w->name; w++)
        kiln_print("%-14s %-14s %-8s %-8s %-8s %s", w->name,
                   w->suffixes[0] ? w->suffixes : "(folder)",
                   w->holds & KILN_NEEDS_LEVELS   ? "levels"
                   : w->holds & KILN_HOLDS_SPLATS ? "splats"
                                                  : "-",
                   w->holds & KILN_HOLDS_POINTS ? "points" : "-",
                   w->holds & KILN_HOLDS_BITS ? "exact" : "rounded", w->what);
}

kiln_status kiln_writer_check_kind(const kiln_writer *w, bool splats, kiln_error *err)
{
    const unsigned need = splats ? KILN_HOLDS_SPLATS : KILN_HOLDS_POINTS;
    char others[NAMES_MAX] = "";
    size_t n = 0;
    if (w->holds & need) return KILN_OK;
    for (const kiln_writer *other = kiln_writers; other->name && n < sizeof others; other++)
        if (other->holds & need)
            n +=
                (size_t)snprintf(others + n, sizeof others - n, "%s%s", n ? ", " : "", other->name);
    return kiln_fail(err, KILN_E_INPUT, "the format %s holds no %s; these formats do: %s", w->name,
                     splats ? "Gaussians" : "points", others);
}

/* ---- names of files -------------------------------------------------------------------------- */
/* Formats that other programs read and that no writer above makes: a PLY under such a name would be
 * taken for what it is not. One that gets a writer may stay here. */
static const char elsewhere[] = "compressed.ply,ply.gz,ply.zst,splat,ksplat,spz,sog,glb,gltf,csv,"
                                "html,rad,lcc,usd,usda,usdz,obj,pcd,las,laz";

/* Does `path` end in a dot and the first n bytes of `suffix`, with a name before them? */
static bool ends_with(const char *path, const char *suffix, size_t n)
{
    const char *name = kiln_path_base(path);
    const size_t size = strlen(name);
    return n > 0 && size > n + 1 && name[size - n - 1] == '.' &&
           strncasecmp(name + size - n, suffix, n) == 0;
}

/* Length of the longest suffix of a list that `path` ends in; 0: none. */
static size_t listed_suffix(const char *path, const char *suffixes)
{
    size_t longest = 0;
    for (size_t n; *suffixes; suffixes += n + strspn(suffixes + n, ",")) {
        n = strcspn(suffixes, ",");
        if (n > longest && ends_with(path, suffixes, n)) longest = n;
    }
    return longest;
}

/* Of path; the longest decides: x.compressed.ply is no ordinary PLY. *writer: whose it is, or
 * NULL. */
static const char *find_suffix(const char *path, const kiln_writer **writer)
{
    size_t found = listed_suffix(path, elsewhere);
    *writer = NULL;
    for (const kiln_writer *w = kiln_writers; w->name; w++) {
        const size_t n = listed_suffix(path, w->suffixes);
        /* of two with one suffix the first */
        if (n == 0 || n < found || (n == found && *writer)) continue;
        found = n;
        *writer = w;
    }
    return found ? path + strlen(path) - found : NULL;
}

const char *kiln_scene_suffix(const char *path)
{
    const kiln_writer *writer;
    return find_suffix(path, &writer);
}

static bool writes_format(kiln_writers_asked by, const kiln_writer *w)
{
    return by == KILN_ASKS_EXPORT || !(w->holds & KILN_NEEDS_LEVELS);
}

void kiln_writers_text(kiln_writers_asked by, char out[KILN_WRITERS_TEXT])
{
    const size_t size = KILN_WRITERS_TEXT;
    size_t n = 0, folders = 0;
    *out = '\0';
    for (const kiln_writer *w = kiln_writers; w->name && n < size; w++) {
        const int length = (int)strcspn(w->suffixes, ","); /* the first one */
        bool there = length == 0 || !writes_format(by, w);
        for (const kiln_writer *before = kiln_writers; before < w; before++)
            there = there || (writes_format(by, before) && !strcmp(before->suffixes, w->suffixes));
        if (!there)
            n += (size_t)snprintf(out + n, size - n, "%sNAME.%.*s", n ? ", " : "", length,
                                  w->suffixes);
    }
    for (const kiln_writer *w = kiln_writers; w->name && n < size; w++)
        if (!w->suffixes[0] && writes_format(by, w))
            n += (size_t)snprintf(out + n, size - n, "%s%s",
                                  folders++ ? ", " : "; and as folders: ", w->name);
}

kiln_status kiln_writer_for(const char *path, const kiln_writer *wanted, bool insists,
                            kiln_writers_asked by, const kiln_writer **out, kiln_error *err)
{
    char written[KILN_WRITERS_TEXT];
    const kiln_writer *of_suffix;
    const char *suffix = find_suffix(path, &of_suffix);
    if (suffix && listed_suffix(path, wanted->suffixes) == strlen(suffix)) of_suffix = wanted;
    *out = of_suffix ? of_suffix : wanted;
    if (of_suffix && (of_suffix == wanted || !insists)) return KILN_OK;
    const char *option = by == KILN_ASKS_EXPORT ? "-o " : "";
    if (of_suffix)
        return kiln_fail(err, KILN_E_USAGE,
                         "%s'%s' names the format %s, but --format says %s; leave out one of them",
                         option, path, of_suffix->name, wanted->name);
    if (!suffix && (!wanted->suffixes[0] || !kiln_path_has_suffix(path))) return KILN_OK;
    kiln_writers_text(by, written);
    return kiln_fail(err, KILN_E_USAGE,
                     "%s'%s': '.%s' is not a format that %s writes; it writes %s", option, path,
                     suffix ? suffix : kiln_path_suffix(path),
                     by == KILN_ASKS_EXPORT ? "kiln-export" : "kiln convert", written);
}
