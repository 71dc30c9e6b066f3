/* readers -- the table of formats. A new one: its file, its line in readers.h, its row here. */
#include "stages/import/readers.h"

#include "base/file.h"
#include "base/quote.h"

#include <string.h>
#include <unistd.h>

const kiln_reader *const kiln_readers[] = {
    &kiln_reader_ply,
    &kiln_reader_colmap_bin,
    &kiln_reader_colmap_txt,
    NULL,
};

/* Formats that we know when we see them and do not read yet: a name is more help than "unknown". */
static const struct {
    const char *magic, *what;
} later[] = {
    {"\x1f\x8b", "gzip data, perhaps SPZ"},
    {"NGSP", "SPZ"},
    {"PK\x03\x04", "a ZIP archive, perhaps SOG"},
    {"glTF", "binary glTF"},
    {"SQLite format 3", "an SQLite database, perhaps a manifest"},
};

const kiln_reader *kiln_reader_named(const char *name)
{
    for (const kiln_reader *const *r = kiln_readers; *r; r++)
        if (strcmp((*r)->name, name) == 0) return *r;
    return NULL;
}

void kiln_readers_list(void)
{
    for (const kiln_reader *const *r = kiln_readers; *r; r++)
        kiln_print("%-12s %-12s %s", (*r)->name, (*r)->suffixes, (*r)->summary);
}

static kiln_status read_head(const char *path, unsigned char *head, size_t room, size_t *len, kiln_error *err)
{
    int fd;
    kiln_file_info info;
    KILN_TRY(kiln_file_open(path, &fd, err));
    kiln_status st = kiln_file_stat(path, &info, err);
    *len = info.size < room ? (size_t)info.size : room;
    if (st == KILN_OK) st = kiln_file_read_at(fd, path, 0, head, *len, err);
    close(fd);
    return st;
}

static kiln_status unknown(const char *path, const unsigned char *head, size_t len, kiln_error *err)
{
    if (len == 0) return kiln_fail(err, KILN_E_INPUT, "'%s' is empty", path);
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (len >= strlen(later[i].magic) && memcmp(head, later[i].magic, strlen(later[i].magic)) == 0)
            return kiln_fail(err, KILN_E_INPUT, "'%s' is %s, which is not read yet; convert it to PLY first", path, later[i].what);
    return kiln_fail(err, KILN_E_INPUT,
                     "'%s' is no splat or point file that we know: a PLY begins with \"ply\"; --list-formats names the formats",
                     path);
}

kiln_status kiln_reader_find(const char *path, const kiln_reader **out, kiln_error *err)
{
    unsigned char head[512];
    size_t len = 0;
    int best = 0;
    *out = NULL;
    KILN_TRY(read_head(path, head, sizeof head, &len, err));
    for (const kiln_reader *const *r = kiln_readers; *r; r++) {
        int score = (*r)->probe(head, len, path);
        if (score > best) {
            best = score;
            *out = *r;
        }
    }
    return *out ? KILN_OK : unknown(path, head, len, err);
}
