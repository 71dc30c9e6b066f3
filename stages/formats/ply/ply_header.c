/* ply_header -- parses with slices of the header's bytes, so that nothing in it needs to end where
 * C expects it. */
#include "stages/formats/ply/ply_header.h"

#include "base/checked.h"
#include "base/file.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct {
    const char *s;
    size_t n;
} word;

/* What parsing carries from line to line. */
typedef struct {
    const char *path;
    kiln_ply_header *h;
    unsigned line; /* from 1 */
    bool has_format, has_vertex, in_vertex, in_element;
    bool list_before; /* a list in an element in front of vertex */
    bool list_after;
    uint64_t element_count; /* of the element whose properties are being read */
    uint64_t element_bytes; /* of one of its rows */
    uint64_t element_props;
    uint64_t bytes_before, bytes_after;
    kiln_ply_element *packed; /* the element that is being read, where it is chunk or sh */
} parser;

static const struct {
    const char *name;
    kiln_type type;
} types[] = {
    /* the first spelling of a type is the one we write */
    {"char", KILN_TYPE_I8},     {"int8", KILN_TYPE_I8},     {"uchar", KILN_TYPE_U8},
    {"uint8", KILN_TYPE_U8},    {"short", KILN_TYPE_I16},   {"int16", KILN_TYPE_I16},
    {"ushort", KILN_TYPE_U16},  {"uint16", KILN_TYPE_U16},  {"int", KILN_TYPE_I32},
    {"int32", KILN_TYPE_I32},   {"uint", KILN_TYPE_U32},    {"uint32", KILN_TYPE_U32},
    {"float", KILN_TYPE_F32},   {"float32", KILN_TYPE_F32}, {"double", KILN_TYPE_F64},
    {"float64", KILN_TYPE_F64},
};

bool kiln_ply_type_find(const char *name, kiln_type *out)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0) {
            *out = types[i].type;
            return true;
        }
    return false;
}

const char *kiln_ply_type_name(kiln_type t)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].type == t) return types[i].name;
    return "float";
}

/* A word for a message: printable, at most 40 bytes, so that a hostile header cannot write to the
 * terminal. */
static const char *quoted_word(word w, char out[44])
{
    size_t n = w.n < 40 ? w.n : 40;
    for (size_t i = 0; i < n; i++) out[i] = (char)(isprint((unsigned char)w.s[i]) ? w.s[i] : '?');
    memcpy(out + n, w.n > n ? "..." : "", w.n > n ? 4 : 1);
    return out;
}

static bool word_is(word w, const char *text)
{
    return w.n == strlen(text) && memcmp(w.s, text, w.n) == 0;
}

/* Splits at blanks and tabs; words beyond max are counted only. */
static unsigned split_words(word line, word *out, unsigned max)
{
    unsigned n = 0;
    for (size_t i = 0; i < line.n;) {
        while (i < line.n && (line.s[i] == ' ' || line.s[i] == '\t')) i++;
        size_t start = i;
        while (i < line.n && line.s[i] != ' ' && line.s[i] != '\t') i++;
        if (i == start) break;
        if (n < max) out[n] = (word){line.s + start, i - start};
        n++;
    }
    return n;
}

#define BAD(p, ...) bad_line((p), err, __VA_ARGS__)
static kiln_status bad_line(const parser *p, kiln_error *err, const char *fmt, ...)
    KILN_PRINTF(3, 4);
static kiln_status bad_line(const parser *p, kiln_error *err, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return kiln_fail(err, KILN_E_INPUT, "'%s', line %u of its PLY header: %s", p->path, p->line,
                     text);
}

static kiln_status copy_name(const parser *p, word w, char out[64], kiln_error *err)
{
    char q[44];
    if (w.n >= 64) return BAD(p, "the name '%s' is longer than 63 bytes", quoted_word(w, q));
    memcpy(out, w.s, w.n);
    out[w.n] = '\0';
    for (size_t i = 0; i < w.n; i++)
        if ((unsigned char)w.s[i] < 0x20 || w.s[i] == 0x7f)
            return BAD(p, "the name '%s' holds a control byte", quoted_word(w, q));
    if (!kiln_utf8_valid((const unsigned char *)out, w.n))
        return BAD(p, "the name '%s' is not UTF-8", quoted_word(w, q));
    return KILN_OK;
}

static kiln_status parse_format(parser *p, const word *w, unsigned n, kiln_error *err)
{
    char q[44];
    if (p->has_format) return BAD(p, "a second format line");
    if (n != 3) return BAD(p, "a format line has the form 'format binary_little_endian 1.0'");
    if (word_is(w[1], "ascii"))
        p->h->format = KILN_PLY_ASCII;
    else if (word_is(w[1], "binary_little_endian"))
        p->h->format = KILN_PLY_LITTLE;
    else if (word_is(w[1], "binary_big_endian"))
        p->h->format = KILN_PLY_BIG;
    else
        return BAD(p, "format '%s' is none of ascii, binary_little_endian, binary_big_endian",
                   quoted_word(w[1], q));
    if (!word_is(w[2], "1.0"))
        return BAD(p, "format version '%s'; only 1.0 exists", quoted_word(w[2], q));
    p->has_format = true;
    return KILN_OK;
}

static kiln_status parse_count(parser *p, word w, uint64_t *out, kiln_error *err)
{
    char q[44];
    uint64_t v = 0;
    if (w.n && w.s[0] == '-') return BAD(p, "the count '%s' is negative", quoted_word(w, q));
    for (size_t i = 0; i < w.n; i++) {
        if (w.s[i] < '0' || w.s[i] > '9')
            return BAD(p, "the count '%s' is not a plain decimal number", quoted_word(w, q));
        if (!kiln_mul(v, 10, &v) || !kiln_add(v, (uint64_t)(w.s[i] - '0'), &v))
            return BAD(p, "the count '%s' does not fit 64 bits", quoted_word(w, q));
    }
    *out = v;
    return KILN_OK;
}

/* Adds the rows of the element that ends here to what lies before or behind vertex. */
static kiln_status end_element(parser *p, kiln_error *err)
{
    uint64_t bytes;
    if (!p->in_element) return KILN_OK;
    if (!kiln_mul(p->element_count, p->element_bytes, &bytes))
        return BAD(p, "the declared count %llu times the row size of %llu bytes overflows 64 bits",
                   (unsigned long long)p->element_count, (unsigned long long)p->element_bytes);
    if (p->in_vertex) {
        p->h->row_bytes = (uint32_t)p->element_bytes; /* at most KILN_PLY_COLUMNS_MAX * 8 */
        return KILN_OK;
    }
    uint64_t *sum = p->has_vertex ? &p->bytes_after : &p->bytes_before;
    if (p->packed) {
        p->packed->offset = *sum; /* check_ply_size adds where that sum begins */
        p->packed->behind = p->has_vertex;
        p->packed->row_bytes = p->element_bytes;
    }
    if (!kiln_add(*sum, bytes, sum)) return BAD(p, "the declared sizes overflow 64 bits");
    if (!p->has_vertex && p->element_props &&
        !kiln_add(p->h->lines_before, p->element_count, &p->h->lines_before))
        return BAD(p, "the declared counts overflow 64 bits");
    return KILN_OK;
}

/* The element of a compressed PLY that begins here, if it is one. */
static void begin_packed(parser *p, word name)
{
    kiln_ply_element *e = word_is(name, "chunk") ? &p->h->chunk
                          : word_is(name, "sh")  ? &p->h->sh
                                                 : NULL;
    p->packed = e;
    if (!e) return;
    e->unusable |= e->there;
    e->there = true;
    e->n_rows = p->element_count;
    e->n_columns = 0;
}

static kiln_status parse_element(parser *p, const word *w, unsigned n, kiln_error *err)
{
    KILN_TRY(end_element(p, err));
    if (n < 3)
        return BAD(p, n < 2 ? "an element without name and count" : "an element without a count");
    if (n > 3) return BAD(p, "an element line has the form 'element vertex 1000'");
    KILN_TRY(parse_count(p, w[2], &p->element_count, err));
    p->in_element = true;
    p->element_bytes = 0;
    p->element_props = 0;
    bool vertex = word_is(w[1], "vertex");
    if (vertex && p->has_vertex) return BAD(p, "the element vertex occurs twice");
    begin_packed(p, w[1]);
    if (word_is(w[1], "codebook_centers")) p->h->has_codebook = true;
    if (vertex) {
        p->has_vertex = true;
        p->h->n_rows = p->element_count;
    } else if (p->has_vertex) {
        p->h->more_elements = true;
    }
    p->in_vertex = vertex;
    return KILN_OK;
}

static kiln_status parse_list(parser *p, kiln_error *err)
{
    if (p->in_vertex) return BAD(p, "a row of vertex cannot hold a list property");
    if (p->has_vertex)
        p->list_after = true;
    else
        p->list_before = true;
    p->h->has_lists = true;
    p->element_props++;
    return KILN_OK;
}

static kiln_status add_column(parser *p, word name, kiln_type type, kiln_error *err)
{
    kiln_ply_header *h = p->h;
    kiln_ply_property c = {.type = type, .offset = (uint32_t)p->element_bytes};
    KILN_TRY(copy_name(p, name, c.name, err));
    if (h->n_columns == KILN_PLY_COLUMNS_MAX)
        return BAD(p, "vertex has more than %d properties", KILN_PLY_COLUMNS_MAX);
    for (uint32_t i = 0; i < h->n_columns; i++)
        if (strcmp(h->columns[i].name, c.name) == 0)
            return BAD(p, "property %s occurs twice", c.name);
    h->columns[h->n_columns++] = c;
    return KILN_OK;
}

/* Nothing is refused here: only a compressed PLY needs what these elements hold. */
static void add_packed(parser *p, word name, kiln_type type)
{
    kiln_ply_element *e = p->packed;
    kiln_ply_property c = {.type = type, .offset = (uint32_t)p->element_bytes};
    e->unusable |= e->n_columns == KILN_PLY_PACKED_MAX || name.n >= sizeof c.name;
    if (e->unusable) return;
    memcpy(c.name, name.s, name.n);
    for (uint32_t i = 0; i < e->n_columns; i++)
        e->unusable |= strcmp(e->columns[i].name, c.name) == 0;
    e->columns[e->n_columns++] = c;
}

static kiln_status parse_property(parser *p, const word *w, unsigned n, kiln_error *err)
{
    char q[44], name[44];
    kiln_type type;
    if (!p->in_element) return BAD(p, "a property stands before any element");
    if (n >= 2 && word_is(w[1], "list")) {
        if (n != 5) return BAD(p, "a list has the form 'property list uchar int NAME'");
        return parse_list(p, err);
    }
    if (n != 3) return BAD(p, "a property has the form 'property float NAME'");
    snprintf(name, sizeof name, "%.*s", (int)(w[1].n < 43 ? w[1].n : 43), w[1].s);
    if (w[1].n > 40 || !kiln_ply_type_find(name, &type))
        return BAD(p, "the type '%s' is unknown, so the size of a row is unknown",
                   quoted_word(w[1], q));
    if (p->in_vertex) KILN_TRY(add_column(p, w[2], type, err));
    if (p->packed) add_packed(p, w[2], type);
    /* a header of 1 MiB holds no more than 2^17 properties */
    p->element_bytes += kiln_type_size(type);
    p->element_props++;
    return KILN_OK;
}

static kiln_status keep_comment(parser *p, word line, size_t keyword, char kind, kiln_error *err)
{
    const char mark[2] = {kind, ' '};
    size_t at = keyword < line.n ? keyword + 1 : keyword;
    p->h->n_comments++;
    KILN_TRY(kiln_buffer_put(&p->h->comments, mark, 2, err));
    /* a NUL would end it early for every C reader of the text */
    for (size_t i = at; i < line.n; i++)
        KILN_TRY(kiln_buffer_put(&p->h->comments, line.s[i] ? line.s + i : " ", 1, err));
    return kiln_buffer_put(&p->h->comments, "", 1, err);
}

static kiln_status parse_line(parser *p, word line, bool *end, kiln_error *err)
{
    word w[6];
    char q[44];
    unsigned n = split_words(line, w, 6);
    size_t skip = n ? (size_t)(w[0].s - line.s) + w[0].n : 0;
    if (n == 0) return KILN_OK;
    if (word_is(w[0], "comment")) return keep_comment(p, line, skip, 'c', err);
    if (word_is(w[0], "obj_info")) return keep_comment(p, line, skip, 'o', err);
    if (word_is(w[0], "format")) return parse_format(p, w, n, err);
    if (word_is(w[0], "element")) return parse_element(p, w, n, err);
    if (word_is(w[0], "property")) return parse_property(p, w, n, err);
    if (!word_is(w[0], "end_header"))
        return BAD(p, "the keyword '%s' is unknown", quoted_word(w[0], q));
    *end = true;
    return end_element(p, err);
}

static kiln_status parse_lines(parser *p, const char *text, size_t size, kiln_error *err)
{
    bool end = false;
    size_t at = 0;
    while (!end) {
        const char *lf = memchr(text + at, '\n', size - at);
        word line = {text + at, lf ? (size_t)(lf - text) - at : size - at};
        p->line++;
        if (lf && line.n && line.s[line.n - 1] == '\r') line.n--;
        if (memchr(line.s, '\r', line.n) && (lf || p->line == 1))
            return BAD(p, "a lone carriage return; header lines must end with LF or CR LF");
        if (p->line == 1 &&
            !(line.n >= 3 && memcmp(line.s, "ply", 3) == 0 &&
              split_words(line, &(word){0}, 1) == 1 && (line.n == 3 || line.s[3] == ' ')))
            return kiln_fail(err, KILN_E_INPUT,
                             "'%s' is not a PLY file: its first line is not \"ply\"", p->path);
        if (!lf)
            return kiln_fail(
                err, KILN_E_INPUT,
                "'%s' has no end_header line within its first %zu bytes; is the download complete?",
                p->path, size);
        at = (size_t)(lf - text) + 1;
        if (p->line > 1) KILN_TRY(parse_line(p, line, &end, err));
    }
    p->h->data_offset = at;
    return KILN_OK;
}

static kiln_status check_vertex_element(const parser *p, kiln_error *err)
{
    const kiln_ply_header *h = p->h;
    if (!p->has_format)
        return kiln_fail(err, KILN_E_INPUT, "'%s': its PLY header has no format line", p->path);
    if (!p->has_vertex)
        return kiln_fail(err, KILN_E_INPUT, "'%s': its PLY header has no vertex element", p->path);
    if (h->n_rows == 0)
        return kiln_fail(err, KILN_E_INPUT, "'%s' declares 0 vertices; there is nothing to import",
                         p->path);
    if (p->list_before)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s': a list property in front of vertex makes the place of its rows unknown",
            p->path);
    if (h->n_columns == 0)
        return kiln_fail(err, KILN_E_INPUT, "'%s': its vertex element has no properties", p->path);
    return KILN_OK;
}

/* Compares what is declared with what is there. An ascii value takes at least two bytes, a digit
 * and what ends it. */
static kiln_status check_ply_size(parser *p, kiln_error *err)
{
    kiln_ply_header *h = p->h;
    uint64_t left = h->file_bytes - h->data_offset, rows = 0, need = 0;
    uint64_t row = h->format == KILN_PLY_ASCII ? 2 * (uint64_t)h->n_columns : h->row_bytes;
    bool fits = kiln_mul(h->n_rows, row, &rows);
    if (fits && h->format == KILN_PLY_ASCII) fits = rows - 1 <= left && h->lines_before <= left;
    if (fits && h->format != KILN_PLY_ASCII)
        fits = kiln_add(rows, p->bytes_before, &need) && need <= left;
    if (!fits)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is shorter than the %llu vertices that it declares: %llu bytes "
                         "follow its header; is the download complete?",
                         p->path, (unsigned long long)h->n_rows, (unsigned long long)left);
    h->vertex_offset = h->data_offset + p->bytes_before;
    h->chunk.offset += h->chunk.behind ? h->vertex_offset + rows : h->data_offset;
    h->sh.offset += h->sh.behind ? h->vertex_offset + rows : h->data_offset;
    if (h->format == KILN_PLY_ASCII || p->list_after) return KILN_OK;
    if (!kiln_add(need, p->bytes_after, &need) || need > left)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s' ends inside the elements that follow its vertices; is the download complete?",
            p->path);
    h->trailing_bytes = left - need;
    return KILN_OK;
}

kiln_status kiln_ply_header_read(int fd, const char *path, kiln_ply_header *out, kiln_error *err)
{
    kiln_status st = KILN_OK;
    char *text = NULL;
    struct stat info;
    parser p = {.path = path, .h = out};
    memset(out, 0, sizeof *out);
    if (fstat(fd, &info) != 0)
        return kiln_fail(err, KILN_E_IO, "cannot access '%s': %s", path, strerror(errno));
    out->file_bytes = (uint64_t)info.st_size;
    size_t size = info.st_size < KILN_PLY_HEADER_MAX ? (size_t)info.st_size : KILN_PLY_HEADER_MAX;
    if (size == 0) return kiln_fail(err, KILN_E_INPUT, "'%s' is empty", path);
    KILN_GO(KILN_ALLOC(&out->columns, KILN_PLY_COLUMNS_MAX, "PLY columns", err));
    KILN_GO(KILN_ALLOC(&text, size, "PLY header", err));
    KILN_GO(kiln_file_read_at(fd, path, 0, text, size, err));
    KILN_GO(parse_lines(&p, text, size, err));
    KILN_GO(check_vertex_element(&p, err));
    KILN_GO(check_ply_size(&p, err));
done:
    free(text);
    return st;
}

bool kiln_ply_begins(const unsigned char *head, size_t len)
{
    if (len < 3 || memcmp(head, "ply", 3) != 0) return false;
    return len == 3 || head[3] == '\n' || head[3] == '\r' || head[3] == ' ';
}

bool kiln_ply_is_compressed(const unsigned char *head, size_t len)
{
    const char *text = (const char *)head, *end = text + len;
    while (text < end) {
        const char *lf = memchr(text, '\n', (size_t)(end - text));
        word w[3] = {{0}};
        const unsigned n = split_words((word){text, (size_t)((lf ? lf : end) - text)}, w, 3);
        if (n >= 1 && word_is(w[0], "end_header")) return false;
        if (n >= 2 && word_is(w[0], "element") && word_is(w[1], "chunk")) return true;
        if (n >= 3 && word_is(w[0], "property") && w[2].n > 7 && memcmp(w[2].s, "packed_", 7) == 0)
            return true;
        text = lf ? lf + 1 : end;
    }
    return false;
}

void kiln_ply_header_release(kiln_ply_header *h)
{
    free(h->columns);
    kiln_buffer_release(&h->comments);
    memset(h, 0, sizeof *h);
}
