/* absolute_paths -- see the header. */
#include "stages/cameras/absolute_paths.h"

#include "base/file.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

bool kiln_path_is_absolute(const char *path)
{
    return path[0] == '/' || (isalpha((unsigned char)path[0]) && path[1] == ':' && path[2] == '/');
}

void kiln_common_folder(char *common, size_t capacity, const char *path)
{
    size_t same = 0;
    const size_t folder = (size_t)(kiln_path_base(path) - path);
    if (!common[0]) {
        (void)snprintf(common, capacity, "%.*s", (int)folder, path);
        return;
    }
    while (same < folder && common[same] == path[same] && common[same]) same++;
    while (same > 0 && common[same - 1] != '/') same--;
    if (same > 0)
        common[same] = '\0';
    else
        /* drives that share nothing: the whole path counts */
        (void)snprintf(common, capacity, "/");
}

/* Where the part before `at`, which follows a slash, begins; `path` where there is none. */
static const char *part_before(const char *path, const char *at)
{
    if (at <= path + 1) return path;
    at--;
    while (at > path && at[-1] != '/') at--;
    return at;
}

static bool is_image_folder(const char *part)
{
    if (strncmp(part, "images", 6) != 0) return false;
    return part[6] == '/' ||
           (part[6] == '_' && part[7 + strspn(part + 7, "0123456789")] == '/' && part[7] != '/');
}

const char *kiln_path_end(const char *path, const char *common, bool with_folder)
{
    const size_t n = strlen(common);
    const char *end = strncmp(path, common, n) == 0 ? path + n : path,
               *before = part_before(path, end);
    if (end > path && before < end && before[0] != '/' && (with_folder || is_image_folder(before)))
        end = before;
    while (*end == '/') end++;
    if (end == path && path[0] && path[1] == ':') end = path + 2 + strspn(path + 2, "/");
    return end;
}

const char *kiln_path_end_from(const char *path, const char *word)
{
    const char *base = kiln_path_base(path), *found = NULL;
    for (const char *at = base; at > path;) {
        at = part_before(path, at);
        if (!found && strncmp(at, word, strlen(word)) == 0) found = at;
    }
    if (!found) found = part_before(path, base);
    while (*found == '/') found++;
    return found[0] && found[1] == ':' ? base : found;
}
