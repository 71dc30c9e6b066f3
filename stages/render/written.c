#include "stages/render/written.h"

#include "base/file.h"
#include "schema/hash.h"
#include "stages/files/hash_file.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

kiln_status kiln_written_describe(const char *path, json_t **out, kiln_error *err)
{
    char hex[33];
    kiln_file_info info;
    kiln_hash hash;
    KILN_TRY(kiln_file_stat(path, &info, err));
    KILN_TRY(kiln_hash_file(path, &hash, err));
    *out = json_pack("{s:I, s:I, s:s}", "size", (json_int_t)info.size, "mtime_ns",
                     (json_int_t)info.mtime_ns, "hash", kiln_hash_hex(hash, hex));
    return *out ? KILN_OK
                : kiln_fail(err, KILN_E_NOMEM, "out of memory while describing '%s'", path);
}

/* Looks at the place itself: a link is no picture of ours. */
bool kiln_written_is_intact(const json_t *described, const char *path)
{
    kiln_error none;
    struct stat s;
    kiln_hash was, is;
    const char *hex = json_string_value(json_object_get(described, "hash"));
    if (!hex || !kiln_hash_parse(hex, &was) || lstat(path, &s) || !S_ISREG(s.st_mode)) return false;
    if (s.st_size != json_integer_value(json_object_get(described, "size"))) return false;
    const int64_t mtime_ns = (int64_t)s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec;
    if (mtime_ns == json_integer_value(json_object_get(described, "mtime_ns"))) return true;
    return kiln_hash_file(path, &is, &none) == KILN_OK && kiln_hash_equal(was, is);
}

void kiln_written_look_again(const char *path)
{
    char folder[KILN_PATH_MAX];
    const size_t n = (size_t)(kiln_path_base(path) - path);
    if (!*path || n >= sizeof folder) return;
    memcpy(folder, path, n);
    folder[n] = '\0';
    DIR *d = opendir(n ? folder : "."); /* which asks the server */
    if (d) (void)closedir(d);
}
