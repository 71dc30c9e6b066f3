/* foreign -- see the header. Marks of the formats (little-endian):
 *
 *   SPZ 1 to 3   gzip; the first bytes inside are u32 0x5053474e, u32 version
 *   SPZ 4        the same two numbers, not compressed
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
#include <zlib.h>

static const char *const suffixes[] = {"spz", "sog"};

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

#define SPZ_MAGIC 0x5053474eu /* "NGSP" */

static bool is_spz(const unsigned char *p, size_t n, char what[KILN_FOREIGN_NAME])
{
    if (n < 8 || u32_at(p) != SPZ_MAGIC) return false;
    (void)snprintf(what, KILN_FOREIGN_NAME, "an SPZ file of Niantic's (version %u)", u32_at(p + 4));
    return true;
}

/* The first bytes inside gzip data of which `head` is the begin. Returns how many there are. */
static size_t unpack(const unsigned char *head, size_t len, unsigned char *out, size_t room)
{
    enum { GZIP_ONLY = 16 };
    z_stream z = {.avail_in = (uInt)len, .avail_out = (uInt)room};
    unsigned char in[512];
    if (len > sizeof in) z.avail_in = sizeof in;
    memcpy(in, head, z.avail_in); /* zlib's pointer is not const */
    z.next_in = in;
    z.next_out = out;
    if (inflateInit2(&z, MAX_WBITS + GZIP_ONLY) != Z_OK) return 0;
    (void)inflate(&z, Z_SYNC_FLUSH); /* what came out counts: the data go on behind the head */
    const size_t n = room - z.avail_out;
    (void)inflateEnd(&z);
    return n;
}

static bool is_packed_spz(const unsigned char *head, size_t len, char what[KILN_FOREIGN_NAME])
{
    unsigned char inside[8];
    return len > 1 && head[0] == 0x1f && head[1] == 0x8b && is_spz(inside, unpack(head, len, inside, sizeof inside), what);
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
    return is_packed_spz(head, len, what) || is_spz(head, len, what) || is_sog(path, head, len, what);
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
