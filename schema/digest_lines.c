/* digest_lines -- the lines of `kiln-verify --digest`: what two bakes are compared by. A name has
 * no blank in it, so that a line is three words, and nothing of when, where and on what it was
 * made:
 *
 *   layer KIND DIGEST
 *   table CAMERA:PROFILE[_aa]:near=N DIGEST
 *   image CAMERA:PROFILE[_aa]:near=N[:fast] DIGEST   of the float32 pixels (SCHEMA.md); fast: of
 *                                                    kiln-render --fast, which no exact picture is
 *                                                    equal to
 *
 * Blanks, control bytes and '%' of a camera's name are percent-encoded; N is printed by %g. */
#include "base/memory.h"
#include "schema/manifest_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* a camera's name of 1024 bytes with every byte encoded, profile, near */
enum { NAME_BYTES = 3400 };

typedef struct {
    const char *kind, *name; /* name: in line_list.texts */
    kiln_hash digest;
} digest_line;

typedef struct {
    digest_line *lines;
    size_t n, capacity;
    kiln_texts texts;
} line_list;

kiln_status kiln_name_encode(const char *name, char *out, size_t size, kiln_error *err)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t used = 0;
    for (const unsigned char *p = (const unsigned char *)name; *p; p++) {
        if (used + 4 > size)
            return kiln_fail(err, KILN_E_BUG, "name '%.200s' does not fit into %zu bytes", name,
                             size);
        if (*p > ' ' && *p != '%' && *p != 0x7f) {
            out[used++] = (char)*p;
            continue;
        }
        out[used++] = '%';
        out[used++] = digits[*p >> 4];
        out[used++] = digits[*p & 15];
    }
    out[used] = '\0';
    return KILN_OK;
}

static kiln_status add_line(line_list *list, const char *kind, const char *name, kiln_hash digest,
                            kiln_error *err)
{
    if (list->n == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 16;
        digest_line *more = realloc(list->lines, capacity * sizeof *more);
        if (!more)
            return kiln_fail(err, KILN_E_NOMEM, "out of memory for %zu digest lines", capacity);
        list->lines = more;
        list->capacity = capacity;
    }
    digest_line *line = &list->lines[list->n++];
    *line = (digest_line){.kind = kind, .digest = digest};
    return kiln_texts_add(&list->texts, name, &line->name, err);
}

static kiln_status name_view(char out[NAME_BYTES], const char *camera, const char *profile,
                             bool antialiased, double near_m, const char *suffix, kiln_error *err)
{
    KILN_TRY(kiln_name_encode(camera, out, NAME_BYTES - 100, err));
    size_t used = strlen(out);
    snprintf(out + used, NAME_BYTES - used, ":%.31s%s:near=%g%s", profile, antialiased ? "_aa" : "",
             near_m, suffix);
    return KILN_OK;
}

static kiln_status add_layers(kiln_manifest *m, line_list *list, kiln_error *err)
{
    kiln_query q;
    bool row;
    char kind[16], name[NAME_BYTES];
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_query_open(
        m, &q,
        "SELECT kind, layer.digest FROM stage_output JOIN layer ON layer.id = stage_output.layer",
        err));
    for (;;) {
        KILN_GO(kiln_query_step(&q, &row, err));
        if (!row) break;
        kiln_column_text(&q, kind, sizeof kind);
        kiln_hash digest = kiln_column_hash(&q);
        KILN_GO(kiln_query_check(&q, err));
        KILN_GO(kiln_name_encode(kind, name, sizeof name, err));
        KILN_GO(add_line(list, "layer", name, digest, err));
    }
done:
    kiln_query_close(&q);
    return st;
}

static kiln_status add_table(void *list, const kiln_tile_table *t, kiln_error *err)
{
    char name[NAME_BYTES];
    KILN_TRY(name_view(name, t->camera, t->profile, t->antialiased, t->near_m, "", err));
    return add_line(list, "table", name, t->digest, err);
}

static kiln_status add_image(void *list, const kiln_image *g, kiln_error *err)
{
    char name[NAME_BYTES];
    const char *const suffix = strcmp(g->device_kind, "cuda-fast") == 0 ? ":fast" : "";
    KILN_TRY(name_view(name, g->camera, g->profile, g->antialiased, g->near_m, suffix, err));
    return add_line(list, "image", name, g->pixels, err);
}

static int compare_lines(const void *a, const void *b)
{
    const digest_line *x = a, *y = b;
    int c = strcmp(x->kind, y->kind);
    if (c == 0) c = strcmp(x->name, y->name);
    return c ? c : memcmp(x->digest.bytes, y->digest.bytes, sizeof x->digest.bytes);
}

kiln_status kiln_manifest_digests(kiln_manifest *m, kiln_digest_line_fn *line, void *context,
                                  kiln_error *err)
{
    bool own;
    line_list list = {0};
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_group_begin(m, &own, err)); /* all lines of one state */
    KILN_GO(add_layers(m, &list, err));
    KILN_GO(kiln_tile_tables_each(m, false, add_table, &list, err));
    KILN_GO(kiln_images_each(m, add_image, &list, err));
    if (list.n) qsort(list.lines, list.n, sizeof *list.lines, compare_lines);
    for (size_t i = 0; i < list.n; i++) {
        /* a picture drawn on two kinds of device with the same pixels is one line */
        if (i > 0 && compare_lines(&list.lines[i - 1], &list.lines[i]) == 0) continue;
        line(context, list.lines[i].kind, list.lines[i].name, list.lines[i].digest);
    }
done:
    free(list.lines);
    kiln_texts_release(&list.texts);
    return kiln_group_end(m, own, st, err);
}
