/* foreign -- see the header. Marks of the formats (little-endian):
 *
 *   SOG          a ZIP archive whose entries are meta.json and WebP pictures, or a folder of these: meta.json has
 *                "means" with "files"
 *
 *   streamed SOG lod-meta.json with "lodLevels"
 */
#include "stages/import/foreign.h"

#include "stages/import/cameras/json_file.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const suffixes[] = {"sog"};

bool kiln_foreign_suffix(const char *name)
{
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (strcasecmp(kiln_path_suffix(name), suffixes[i]) == 0) return true;
    return false;
}

static uint32_t u32_at(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* An archive begins with its first entry: u16 at 26 is the length of its name, which stands at 30. */
static bool is_sog(const char *path, const unsigned char *head, size_t len, char what[KILN_FOREIGN_NAME])
{
    char name[256] = "";
    if (len < 30 || memcmp(head, "PK\x03\x04", 4) != 0) return false;
    const size_t n = (size_t)(head[26] | head[27] << 8);
    if (n < sizeof name && 30 + n <= len) memcpy(name, head + 30, n);
    if (strcmp(name, "meta.json") != 0 && strcasecmp(kiln_path_suffix(name), "webp") != 0 &&
        strcasecmp(kiln_path_suffix(path), "sog") != 0)
        return false;
    (void)snprintf(what, KILN_FOREIGN_NAME, "a SOG archive of PlayCanvas");
    return true;
}

bool kiln_foreign_format(const char *path, const unsigned char *head, size_t len, char what[KILN_FOREIGN_NAME])
{
    what[0] = '\0';
    return is_sog(path, head, len, what);
}

bool kiln_foreign_json(const char *path, char what[KILN_FOREIGN_NAME])
{
    json_t *json = NULL;
    kiln_error unread;
    what[0] = '\0';
    if (kiln_json_file_read(path, &json, &unread) != KILN_OK) return false;
    const json_t *version = json_object_get(json, "version");
    const double number = json_is_number(version) ? json_number_value(version) : 1; /* version 1 does not say */
    if (json_is_array(json_object_get(json_object_get(json, "means"), "files")) && number >= 1 && number < 1000)
        (void)snprintf(what, KILN_FOREIGN_NAME, "a SOG scene of PlayCanvas (version %.0f)", number);
    else if (json_object_get(json, "lodLevels") && json_object_get(json, "filenames"))
        (void)snprintf(what, KILN_FOREIGN_NAME, "a streamed SOG scene of PlayCanvas");
    json_decref(json);
    return what[0] != '\0';
}

bool kiln_foreign_folder(const char *dir, char path[KILN_PATH_MAX], char what[KILN_FOREIGN_NAME])
{
    static const char *const names[] = {"meta.json", "lod-meta.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (kiln_path_join(path, KILN_PATH_MAX, dir, names[i], NULL) == KILN_OK && kiln_is_file(path) &&
            kiln_foreign_json(path, what))
            return true;
    return false;
}

kiln_status kiln_foreign_refuse(const char *path, const char *what, kiln_error *err)
{
    return kiln_fail(err, KILN_E_INPUT,
                     "'%s' is %s, which kiln-import does not read yet; convert it to PLY first, with splat-transform or SuperSplat",
                     path, what);
}
