#include "stages/formats/sog/sog_notes.h"

#include "base/count.h"
#include "base/file.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static size_t skip_blanks(const unsigned char *head, size_t len, size_t at)
{
    while (at < len && head[at] && strchr(" \t\r\n", head[at])) at++;
    return at;
}

int kiln_sog_json_score(const unsigned char *head, size_t len, const char *key, const char *first,
                        const char *path, const char *name)
{
    /* byte order mark */
    const size_t mark = len >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    size_t at = skip_blanks(head, len, mark);
    if (at == len || head[at] != '{') return 0;
    const unsigned char *found = memmem(head + at, len - at, key, strlen(key));
    at = found ? skip_blanks(head, len, (size_t)(found - head) + strlen(key)) : len;
    if (at < len && head[at] == ':') at = skip_blanks(head, len, at + 1);
    if (at < len && head[at] && strchr(first, head[at])) return 90;
    return strcmp(kiln_path_base(path), name) == 0 ? 40 : 0;
}

void kiln_sog_note(kiln_source_info *info, const char *fmt, ...)
{
    const size_t at = strlen(info->notes);
    const int sep = snprintf(info->notes + at, sizeof info->notes - at, "%s", at ? "; " : "");
    va_list args;
    va_start(args, fmt);
    if (at + (size_t)sep < sizeof info->notes)
        (void)vsnprintf(info->notes + at + sep, sizeof info->notes - at - (size_t)sep, fmt, args);
    va_end(args);
}

void kiln_sog_info_take(const kiln_sog_codes *c, kiln_source_info *info)
{
    const bool first = info->n_rows == 0;
    info->n_rows += c->n;
    if (c->degree > info->sh_degree) info->sh_degree = c->degree;
    if (first) {
        info->antialiased = c->antialiased;
        info->dialect = c->is_2dgs ? KILN_DIALECT_2DGS : KILN_DIALECT_3DGS;
        snprintf(info->writer, sizeof info->writer, "%s", c->writer);
    }
    if (c->codebook_began_null)
        kiln_sog_note(
            info,
            "a codebook begins with null, as old writers had it: its first value is extrapolated");
}

void kiln_sog_note_unknown(const kiln_sog_codes *c, kiln_source_info *info)
{
    if (c->unknown_tags)
        kiln_sog_note(
            info, "%s taken as none",
            KILN_COUNT(c->unknown_tags,
                       "rotation has no valid tag and is|rotations have no valid tag and are"));
    if (c->unknown_labels)
        kiln_sog_note(info, "%s none above degree 0",
                      KILN_COUNT(c->unknown_labels,
                                 "Gaussian names colours outside of the palette and gets|Gaussians "
                                 "name colours outside of the palette and get"));
}
