/* foreign -- see the header. Marks of the formats:
 *
 *   RAD       "RAD0", u32 bytes of JSON (sparkjsdev/spark, rust/spark-lib/src/rad.rs)
 *   USD       "#usda ", "PXR-USDC", or a ZIP archive whose first entry is such a file; a .usdz may begin with a picture
 *   LCC       JSON with "indexDataSize", called .lcc; its rows are in data.bin and shcoef.bin beside it
 *   3D Tiles  JSON with "geometricError"
 */
#include "stages/import/foreign.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool has_suffix(const char *path, const char *suffix) { return strcasecmp(kiln_path_suffix(path), suffix) == 0; }

/* A USD file is no sign of Gaussians in a folder: most hold meshes. */
bool kiln_foreign_suffix(const char *name) { return has_suffix(name, "rad") || has_suffix(name, "lcc"); }

static bool begins(const unsigned char *head, size_t len, const char *mark)
{
    return len >= strlen(mark) && memcmp(head, mark, strlen(mark)) == 0;
}

/* An archive begins with its first entry: u16 at 26 is the length of its name, which stands at 30. */
static bool is_usd_archive(const char *path, const unsigned char *head, size_t len)
{
    char name[256] = "";
    if (len < 30 || !begins(head, len, "PK\x03\x04")) return false;
    const size_t n = (size_t)(head[26] | head[27] << 8);
    if (n < sizeof name && 30 + n <= len) memcpy(name, head + 30, n);
    return has_suffix(path, "usdz") || strncasecmp(kiln_path_suffix(name), "usd", 3) == 0;
}

static bool is_json_with(const unsigned char *head, size_t len, const char *word)
{
    char text[4097] = "";
    memcpy(text, head, len < sizeof text - 1 ? len : sizeof text - 1);
    const char *json = text + strspn(text, " \t\r\n\xef\xbb\xbf");
    return *json == '{' && strstr(json, word);
}

static const char rad[] = "a .rad file of Spark's", usd[] = "a USD scene", lcc[] = "an LCC scene of XGRIDS";
static const char tiles[] = "a tileset of 3D Tiles, whose Gaussians are in the files that it names";

static const char *by_content(const char *path, const unsigned char *head, size_t len)
{
    if (begins(head, len, "RAD0")) return rad;
    if (begins(head, len, "#usda ") || begins(head, len, "PXR-USDC") || is_usd_archive(path, head, len)) return usd;
    if (is_json_with(head, len, "\"indexDataSize\"") || (has_suffix(path, "lcc") && is_json_with(head, len, "{"))) return lcc;
    return is_json_with(head, len, "\"geometricError\"") ? tiles : NULL;
}

static const char *by_suffix(const char *path)
{
    static const char *const usds[] = {"usd", "usda", "usdc", "usdz"};
    for (size_t i = 0; i < sizeof usds / sizeof *usds; i++)
        if (has_suffix(path, usds[i])) return usd;
    return has_suffix(path, "rad") ? rad : has_suffix(path, "lcc") ? lcc : NULL;
}

int kiln_foreign_format(const char *path, const unsigned char *head, size_t len, char what[KILN_FOREIGN_NAME])
{
    const char *content = by_content(path, head, len), *name = content ? content : by_suffix(path);
    (void)snprintf(what, KILN_FOREIGN_NAME, "%s", name ? name : "");
    return content ? 90 : name ? 1 : 0;
}

kiln_status kiln_foreign_refuse(const char *path, const char *what, kiln_error *err)
{
    return kiln_fail(err, KILN_E_INPUT,
                     "'%s' is %s, which kiln-import does not read yet; convert it to PLY first, with splat-transform or SuperSplat",
                     path, what);
}
