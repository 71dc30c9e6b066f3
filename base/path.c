/* path -- the part of file.h that looks at names only and touches no file. */
#include "base/file.h"

#include <stdio.h>
#include <string.h>

kiln_status kiln_path_join(char *out, size_t size, const char *dir, const char *name,
                           kiln_error *err)
{
    size_t length = strlen(dir);
    bool alone = name[0] == '/' || length == 0;
    const char *slash = alone || dir[length - 1] == '/' ? "" : "/";
    int n = snprintf(out, size, "%s%s%s", alone ? "" : dir, slash, name);
    if (n < 0 || (size_t)n >= size)
        return kiln_fail(err, KILN_E_INPUT,
                         "the path '%.60s...' and '%.60s...' is longer than %zu bytes", dir, name,
                         size - 1);
    return KILN_OK;
}

const char *kiln_path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *kiln_path_suffix(const char *path)
{
    const char *dot = strrchr(kiln_path_base(path), '.');
    return dot ? dot + 1 : path + strlen(path);
}

bool kiln_path_has_suffix(const char *path) { return strchr(kiln_path_base(path), '.') != NULL; }

static bool has_parent_component(const char *name)
{
    for (const char *at = name; at; at = strchr(at, '/')) {
        if (*at == '/') at++;
        if (at[0] == '.' && at[1] == '.' && (at[2] == '/' || at[2] == '\0')) return true;
    }
    return false;
}

bool kiln_name_is_safe(const char *name, const char **why)
{
    *why = strlen(name) > 1024 ? "it is longer than 1024 bytes" : NULL;
    return !*why && kiln_relative_is_safe(name, why);
}

bool kiln_relative_is_safe(const char *name, const char **why)
{
    size_t length = strlen(name);
    *why = NULL;
    if (length == 0)
        *why = "it is empty";
    else if (name[0] == '/')
        *why = "it is an absolute path";
    else if (has_parent_component(name))
        *why = "it leaves its folder by '..'";
    else if (!kiln_utf8_valid((const unsigned char *)name, length))
        *why = "it is not valid UTF-8";
    for (size_t i = 0; !*why && i < length; i++) {
        unsigned char c = (unsigned char)name[i];
        if (c == '\\')
            *why = "it has a backslash";
        else if (c < 0x20 || c == 0x7f)
            *why = "it has a control byte";
    }
    return !*why;
}

/* Unicode 15, table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF. */
size_t kiln_utf8_sequence(const unsigned char *s, size_t n)
{
    unsigned char lead = s[0];
    size_t length = lead < 0x80   ? 1
                    : lead < 0xc2 ? 0
                    : lead < 0xe0 ? 2
                    : lead < 0xf0 ? 3
                    : lead < 0xf5 ? 4
                                  : 0;
    if (length == 0 || length > n) return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if (lead == 0xe0 && s[1] < 0xa0) return 0;
    if (lead == 0xed && s[1] > 0x9f) return 0;
    if (lead == 0xf0 && s[1] < 0x90) return 0;
    if (lead == 0xf4 && s[1] > 0x8f) return 0;
    return length;
}

bool kiln_utf8_valid(const unsigned char *s, size_t n)
{
    while (n) {
        size_t length = kiln_utf8_sequence(s, n);
        if (!length) return false;
        s += length;
        n -= length;
    }
    return true;
}
