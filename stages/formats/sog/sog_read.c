/* sog_read -- SOG of PlayCanvas, versions 1 and 2 (sog.h): sog_set.h reads and checks the files,
 * sog_rows.h has the codes and what they mean. */
#include "stages/files/packing.h"
#include "stages/formats/reader.h"

#include "base/file.h"
#include "base/memory.h"
#include "stages/formats/sog/sog_notes.h"
#include "stages/formats/sog/sog_rows.h"
#include "stages/formats/sog/sog_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

typedef struct {
    kiln_sog_set *set;
    kiln_sog_rows *rows; /* NULL: there is no spool yet */
    int fd;              /* of the spool */
} sog_source;

static int probe_sog(const unsigned char *head, size_t len, const char *path)
{
    char plain[KILN_PATH_MAX]; /* without the suffix of a packing */
    snprintf(plain, sizeof plain, "%.*s", (int)kiln_packing_stem(path), path);
    if (len >= 4 && memcmp(head, "PK", 2) == 0) return 60;
    /* to be refused as what it is meant to be */
    if (len && strcasecmp(kiln_path_suffix(plain), "sog") == 0) return 5;
    return kiln_sog_json_score(head, len, "\"" KILN_SOG_KEY_MEANS "\"", "{", path, KILN_SOG_META);
}

static void close_sog(kiln_source *source)
{
    sog_source *s = (sog_source *)source;
    if (!s) return;
    kiln_sog_rows_free(s->rows);
    kiln_sog_set_free(s->set);
    if (s->fd >= 0) close(s->fd);
    free(s);
}

static kiln_status open_sog(const kiln_source_at *at, kiln_source **out, kiln_source_info *info,
                            kiln_error *err)
{
    kiln_status st = KILN_OK;
    sog_source *s = NULL;
    *out = NULL;
    KILN_TRY(KILN_ALLOC(&s, 1, "SOG reader", err));
    s->fd = -1;
    KILN_GO(kiln_sog_set_open(at->path, at->name, &s->set, err));
    if (at->packing && !kiln_sog_set_is_archive(s->set))
        KILN_GO(kiln_fail(err, KILN_E_INPUT,
                          "'%s' is a packed meta.json, whose images are not looked for; unpack it",
                          at->name));
    if (at->spool) KILN_GO(kiln_file_open(at->spool, &s->fd, err));
    if (at->spool) KILN_GO(kiln_sog_rows_open(s->fd, at->name, 0, &s->rows, err));
    const kiln_sog_codes *c = s->rows ? kiln_sog_rows_codes(s->rows) : kiln_sog_set_codes(s->set);
    *info = (kiln_source_info){.kind = KILN_SCENE_SPLATS};
    kiln_sog_info_take(c, info);
    kiln_sog_note_unknown(c, info);
    info->spool_bytes = kiln_sog_plane(c, KILN_SOG_IMAGES, NULL);
    info->spool_ram = kiln_sog_set_image_ram(s->set);
    *out = (kiln_source *)s;
    return KILN_OK;
done:
    close_sog((kiln_source *)s);
    return st;
}

static kiln_status list_sog_members(kiln_source *source, kiln_member_fn *add, void *context,
                                    kiln_error *err)
{
    return kiln_sog_set_members(((sog_source *)source)->set, add, context, err);
}

static kiln_status spool_sog(kiln_source *source, int fd, unsigned threads, kiln_error *err)
{
    return kiln_sog_set_spool(((sog_source *)source)->set, fd, 0, threads, err);
}

static kiln_status read_sog_rows(kiln_source *source, uint64_t first, uint64_t n, uint64_t offset,
                                 kiln_rows *rows, uint64_t *next_offset, kiln_error *err)
{
    sog_source *s = (sog_source *)source;
    (void)offset;
    *next_offset = UINT64_MAX;
    rows->n = n;
    return kiln_sog_rows_read(s->rows, first, n, kiln_sog_rows_codes(s->rows)->degree, rows, 0,
                              err);
}

static uint64_t sog_reader_ram(const kiln_source_info *info, kiln_read_pass pass)
{
    const uint64_t open = sizeof(sog_source) + kiln_sog_set_ram();
    if (pass == KILN_PASS_SPOOL_THREAD) return info->spool_ram;
    return open + (pass == KILN_PASS_SPOOL ? info->spool_ram : kiln_sog_rows_ram());
}

const kiln_reader kiln_reader_sog = {
    .name = "sog",
    .suffixes = "sog,json",
    .summary =
        "SOG 1 and 2 of PlayCanvas: meta.json with its WebP images, and .sog archives of them",
    .packed = KILN_PACKED_WHOLE,
    .ram = sog_reader_ram,
    .probe = probe_sog,
    .open = open_sog,
    .members = list_sog_members,
    .spool = spool_sog,
    .read = read_sog_rows,
    .close = close_sog,
};
