/* readers -- the formats of readers.def: by name, by the content of a file, and as a list for
 * people. */
#include "stages/formats/reader.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/quote.h"
#include "stages/files/foreign.h"
#include "stages/files/packing.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const kiln_reader *const kiln_readers[] = {
#define READER(id) &kiln_reader_##id,
#include "stages/formats/readers.def"
#undef READER
    NULL,
};

const kiln_reader *kiln_reader_named(const char *name)
{
    for (const kiln_reader *const *r = kiln_readers; *r; r++)
        if (strcmp((*r)->name, name) == 0) return *r;
    return NULL;
}

uint64_t kiln_reader_ram(const kiln_reader *reader, const kiln_source_info *info,
                         kiln_read_pass pass)
{
    if (!reader) return 0;
    return reader->ram ? reader->ram(info, pass) : KILN_READER_RAM;
}

kiln_status kiln_reader_finish(const kiln_reader *reader, kiln_source *s, kiln_source_info *info,
                               kiln_error *err)
{
    return reader->finish ? reader->finish(s, info, err) : KILN_OK;
}

void kiln_readers_list(void)
{
    char packed[256] = "";
    size_t n = 0;
    for (const kiln_reader *const *r = kiln_readers; *r && n < sizeof packed; r++)
        if ((*r)->packed != KILN_PACKED_NEVER)
            n += (size_t)snprintf(packed + n, sizeof packed - n, "%s%s", n ? " " : "", (*r)->name);
    for (const kiln_reader *const *r = kiln_readers; *r; r++)
        kiln_print("%-14s %-12s %s", (*r)->name, (*r)->suffixes, (*r)->summary);
    kiln_packings_list(packed);
    kiln_foreign_list();
}

static kiln_status read_source_head(const char *path, unsigned char *head, size_t free_text,
                                    size_t *len, kiln_error *err)
{
    int fd;
    kiln_file_info info;
    KILN_TRY(kiln_file_open(path, &fd, err));
    kiln_status st = kiln_file_stat(path, &info, err);
    *len = info.size < free_text ? (size_t)info.size : free_text;
    if (st == KILN_OK) st = kiln_file_read_at(fd, path, 0, head, *len, err);
    close(fd);
    return st;
}

/* A format without a mark whose rows the file could be; NULL: none. */
static const kiln_reader *guess_unmarked(const char *path, const unsigned char *head, size_t len)
{
    kiln_file_info file;
    kiln_error unread;
    if (kiln_file_stat(path, &file, &unread) != KILN_OK) return NULL;
    for (const kiln_reader *const *r = kiln_readers; *r; r++)
        if ((*r)->may_be && (*r)->may_be(head, len, file.size)) return *r;
    return NULL;
}

static kiln_status refuse_unknown(const kiln_peek *p, const char *path, const unsigned char *head,
                                  size_t len, kiln_error *err)
{
    const kiln_packing *inner = NULL;
    const char *packed = p->packing ? p->packing->name : NULL;
    if (packed) KILN_TRY(kiln_packing_find(p->path, &inner, err));
    if (inner)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is packed twice: it is %s data and holds %s data; unpack it once",
                         path, packed, inner->name);
    const kiln_reader *guess = p->packing ? NULL : guess_unmarked(p->path, head, len);
    if (guess)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is no splat or point file that we know; if it is a .%s, which has "
                         "no mark, it needs that suffix; "
                         "--list-formats names the formats",
                         path, guess->suffixes);
    if (len == 0) return kiln_fail(err, KILN_E_INPUT, "'%s' is empty", path);
    return kiln_fail(
        err, KILN_E_INPUT,
        "'%s' is %s%sno splat or point file that we know; --list-formats names the formats", path,
        packed ? packed : "", packed ? " data and holds " : "");
}

/* The reader that is surest; NULL: none is. */
static const kiln_reader *probe_readers(const kiln_peek *p, const char *name,
                                        const unsigned char *head, size_t len, int *best)
{
    const kiln_reader *found = NULL;
    *best = 0;
    for (const kiln_reader *const *r = kiln_readers; *r; r++) {
        int score =
            p->packing && (*r)->packed == KILN_PACKED_NEVER ? 0 : (*r)->probe(head, len, name);
        if (score > *best) {
            *best = score;
            found = *r;
        }
    }
    return found;
}

static kiln_status find_source_reader(const kiln_peek *p, const char *name, const kiln_reader **out,
                                      kiln_error *err)
{
    unsigned char head[KILN_PROBE_BYTES];
    size_t len = 0;
    int score, foreign;
    KILN_TRY(read_source_head(p->path, head, sizeof head, &len, err));
    *out = probe_readers(p, name, head, len, &score);
    const kiln_foreign *other = kiln_foreign_find(name, head, len, &foreign);
    if (len && foreign > score) {
        *out = NULL;
        return kiln_foreign_refuse(name, other, err);
    }
    return *out ? KILN_OK : refuse_unknown(p, name, head, len, err);
}

int kiln_source_claim(const char *path)
{
    unsigned char head[KILN_PROBE_BYTES];
    size_t len = 0;
    int score = 0, foreign = 0;
    kiln_peek peek;
    kiln_error unread;
    if (kiln_peek_open(path, &peek, &unread) != KILN_OK) return 0;
    if (read_source_head(peek.path, head, sizeof head, &len, &unread) == KILN_OK) {
        (void)probe_readers(&peek, path, head, len, &score);
        (void)kiln_foreign_find(path, head, len, &foreign);
    }
    kiln_peek_close(&peek);
    return foreign > score ? foreign : score;
}

const kiln_reader *kiln_source_guess(const char *path)
{
    unsigned char head[KILN_PROBE_BYTES];
    size_t len = 0;
    kiln_error unread;
    if (kiln_source_claim(path) > 0 ||
        read_source_head(path, head, sizeof head, &len, &unread) != KILN_OK)
        return NULL;
    return guess_unmarked(path, head, len);
}

/* Opens what is known of the file. A header that claims more than files may have here is refused
 * like a file that cannot be written: whether the rest of the stream is there shows only when it is
 * unpacked. */
static kiln_status open_peek(const kiln_peek *peek, const kiln_source_at *at,
                             const kiln_reader *reader, kiln_source **source,
                             kiln_source_info *info, kiln_error *err)
{
    kiln_error why = {0};
    char free_text[160] = "";
    const kiln_status st = reader->open(at, source, info, &why);
    if (st == KILN_E_INPUT && peek->is_limited) {
        kiln_file_free_text(at->name, EFBIG, free_text, sizeof free_text);
        return kiln_fail(err, KILN_E_IO, "cannot look into '%s' before it is unpacked: %s%s",
                         at->name, why.msg, free_text);
    }
    if (st != KILN_OK && err) *err = why;
    return st;
}

typedef struct {
    kiln_peek peek;
    const kiln_reader *reader;
    kiln_source *source; /* NULL: it cannot be opened before it is unpacked */
} glance;

static void end_glance(glance *g)
{
    if (g->source) g->reader->close(g->source);
    kiln_peek_close(&g->peek);
}

static kiln_status begin_glance(glance *g, const char *path, const kiln_read_options *options,
                                kiln_source_info *info, kiln_error *err)
{
    KILN_TRY(kiln_peek_open(path, &g->peek, err));
    const kiln_packing *packing = g->peek.packing;
    const kiln_source_at at = {.path = g->peek.path,
                               .name = path,
                               .packing = packing ? packing->name : NULL,
                               .head_only = packing != NULL,
                               .options = options};
    KILN_TRY(find_source_reader(&g->peek, path, &g->reader, err));
    if (!packing || g->reader->packed != KILN_PACKED_WHOLE)
        return open_peek(&g->peek, &at, g->reader, &g->source, info, err);
    info->kind = KILN_SCENE_SPLATS;
    return KILN_OK;
}

kiln_status kiln_source_look(const char *path, const kiln_read_options *options,
                             const kiln_reader **out, kiln_source_info *info, kiln_error *err)
{
    glance g = {.peek.fd = -1};
    memset(info, 0, sizeof *info);
    const kiln_status st = begin_glance(&g, path, options, info, err);
    *out = st == KILN_OK ? g.reader : NULL;
    end_glance(&g);
    return st;
}

kiln_status kiln_source_members(const char *path, const kiln_read_options *options,
                                kiln_member_fn *add, void *context, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_source_info *info = NULL; /* too large for the stack */
    glance g = {.peek.fd = -1};
    KILN_GO(KILN_ALLOC(&info, 1, "what a file says of itself", err));
    KILN_GO(begin_glance(&g, path, options, info, err));
    if (g.source && g.reader->members) KILN_GO(g.reader->members(g.source, add, context, err));
done:
    end_glance(&g);
    free(info);
    return st;
}
