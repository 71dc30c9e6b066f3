/* gltf_file -- the text is read in pieces, and data URIs are cut out on the way: a scene of a
 * gigabyte in one of them takes no more memory than the JSON around it. */
#include "stages/formats/gltf/gltf_file.h"

#include "base/endian.h"
#include "base/file.h"
#include "base/memory.h"
#include "stages/files/json_file.h"
#include "stages/formats/gltf/gltf.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PIECE = 1 << 16, TEXT_LIMIT = KILN_JSON_SIZE_LIMIT, TREE_LIMIT = 64 << 20 };

/* ---- text ------------------------------------------------------------------------------------ */

typedef struct {
    int fd;
    const char *name;
    kiln_gltf_file *out;
    kiln_buffer text;
    kiln_gltf_uri uri; /* the one that is passed over */
    /* characters of "data:", in any case, since the quote; 6: none of them any more */
    uint32_t matched;
    bool in_string, in_uri, escaped;
} scanner;

static const char mark[] = "data:";
enum { MARK = sizeof mark - 1, NO_MARK = MARK + 1 };

static kiln_status end_uri(scanner *s, uint64_t at, kiln_error *err)
{
    kiln_gltf_file *f = s->out;
    if (f->n_uris == KILN_GLTF_URIS_MAX)
        return kiln_fail(err, KILN_E_INPUT, "'%s' has more than %d data URIs", s->name,
                         KILN_GLTF_URIS_MAX);
    if ((f->n_uris & (f->n_uris - 1)) == 0) { /* full at each power of two */
        const size_t capacity = f->n_uris ? 2 * (size_t)f->n_uris : 1;
        kiln_gltf_uri *more = realloc(f->uris, capacity * sizeof *more);
        if (!more)
            return kiln_fail(err, KILN_E_NOMEM, "out of memory for the data URIs of '%s'", s->name);
        f->uris = more;
    }
    s->uri.bytes = at - s->uri.at;
    f->uris[f->n_uris] = s->uri;
    s->in_uri = s->in_string = false;
    return kiln_buffer_printf(&s->text, err, "%u", f->n_uris++);
}

/* One byte inside a data URI, which does not go into the text. */
static kiln_status pass_uri(scanner *s, unsigned char c, uint64_t at, kiln_error *err)
{
    if (s->escaped) {
        s->escaped = false;
    } else if (c == '\\') {
        s->escaped = true;
        s->uri.escapes++;
    } else if (c == '"') {
        return end_uri(s, at, err);
    }
    return KILN_OK;
}

/* One byte that does. */
static void pass_text(scanner *s, unsigned char c, uint64_t at)
{
    if (!s->in_string) {
        s->in_string = c == '"';
        s->matched = 0;
    } else if (s->escaped) {
        s->escaped = false;
    } else {
        s->matched = s->matched < MARK && tolower(c) == mark[s->matched] ? s->matched + 1 : NO_MARK;
        s->escaped = c == '\\';
        s->in_string = c != '"';
        s->in_uri = s->matched == MARK;
        s->uri = (kiln_gltf_uri){.at = at + 1};
    }
}

static kiln_status pass_piece(scanner *s, const unsigned char *piece, size_t n, uint64_t at,
                              kiln_error *err)
{
    size_t from = 0; /* of the run that belongs to the text */
    for (size_t i = 0; i < n; i++) {
        const bool was_in_uri = s->in_uri;
        if (piece[i] == '\0')
            return kiln_fail(err, KILN_E_INPUT, "the JSON of '%s' has a zero byte, at %llu",
                             s->name, (unsigned long long)(at + i));
        if (was_in_uri)
            KILN_TRY(pass_uri(s, piece[i], at + i, err));
        else
            pass_text(s, piece[i], at + i);
        if (!was_in_uri && s->in_uri)
            KILN_TRY(kiln_buffer_put(&s->text, piece + from, i + 1 - from, err));
        if (was_in_uri && !s->in_uri) from = i; /* from the closing quote on */
    }
    if (!s->in_uri) KILN_TRY(kiln_buffer_put(&s->text, piece + from, n - from, err));
    if (s->text.size <= TEXT_LIMIT) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "the JSON of '%s' is longer than %d MiB, data URIs not counted", s->name,
                     TEXT_LIMIT >> 20);
}

static kiln_status read_text(int fd, const char *name, uint64_t at, uint64_t bytes,
                             kiln_gltf_file *out, kiln_error *err)
{
    kiln_status st = KILN_OK;
    unsigned char *piece = NULL;
    scanner s = {.fd = fd, .name = name, .out = out};
    KILN_GO(KILN_ALLOC(&piece, PIECE, "JSON text", err));
    for (uint64_t done = 0; done < bytes;) {
        const size_t n = bytes - done < PIECE ? (size_t)(bytes - done) : PIECE;
        KILN_GO(kiln_file_read_at(fd, name, at + done, piece, n, err));
        KILN_GO(pass_piece(&s, piece, n, at + done, err));
        done += n;
    }
    KILN_GO(kiln_json_text_read(name, s.text.data, s.text.size, TREE_LIMIT, &out->json, err));
done:
    kiln_buffer_release(&s.text);
    free(piece);
    return st;
}

/* ---- container ------------------------------------------------------------------------------- */

/* *bytes of the chunk whose header stands at `at`, and its type. */
static kiln_status read_chunk(int fd, const char *name, uint64_t at, uint64_t end, uint32_t *type,
                              uint64_t *bytes, kiln_error *err)
{
    unsigned char head[KILN_GLB_CHUNK];
    KILN_TRY(kiln_file_read_at(fd, name, at, head, sizeof head, err));
    *bytes = kiln_get_u32(head);
    *type = kiln_get_u32(head + 4);
    if (*bytes <= end - at - KILN_GLB_CHUNK) return KILN_OK;
    return kiln_fail(
        err, KILN_E_INPUT,
        "'%s': the chunk at byte %llu has %llu bytes, but only %llu are left in the file", name,
        (unsigned long long)at, (unsigned long long)*bytes,
        (unsigned long long)(end - at - KILN_GLB_CHUNK));
}

/* Zeros behind the text, where blanks should be: some writers pad both chunks alike. */
static kiln_status count_padding(int fd, const char *name, uint64_t end, uint64_t bytes,
                                 uint64_t *n, kiln_error *err)
{
    unsigned char last[3];
    const size_t most = bytes < sizeof last ? (size_t)bytes : sizeof last;
    KILN_TRY(kiln_file_read_at(fd, name, end - most, last, most, err));
    *n = 0;
    while (*n < most && last[most - 1 - *n] == 0) ++*n;
    return KILN_OK;
}

static kiln_status read_binary(int fd, const char *name, uint64_t size, const unsigned char *head,
                               kiln_gltf_file *out, kiln_error *err)
{
    const uint64_t end = kiln_get_u32(head + 8);
    uint64_t bytes, padding;
    uint32_t type;
    if (kiln_get_u32(head + 4) != KILN_GLB_VERSION)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is binary glTF of version %u; only version 2 is read", name,
                         kiln_get_u32(head + 4));
    if (end > size)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' has %llu bytes, but its header says %llu; is the download complete?",
                         name, (unsigned long long)size, (unsigned long long)end);
    if (end < KILN_GLB_HEADER + KILN_GLB_CHUNK)
        return kiln_fail(err, KILN_E_INPUT, "'%s' is a GLB without a JSON chunk", name);
    out->file_bytes = end;
    out->trailing_bytes = size - end;
    KILN_TRY(read_chunk(fd, name, KILN_GLB_HEADER, end, &type, &bytes, err));
    if (type != KILN_GLB_JSON)
        return kiln_fail(err, KILN_E_INPUT, "'%s': the first chunk of the GLB is not JSON", name);
    KILN_TRY(
        count_padding(fd, name, KILN_GLB_HEADER + KILN_GLB_CHUNK + bytes, bytes, &padding, err));
    KILN_TRY(read_text(fd, name, KILN_GLB_HEADER + KILN_GLB_CHUNK, bytes - padding, out, err));
    const uint64_t at = KILN_GLB_HEADER + KILN_GLB_CHUNK + bytes;
    if (end - at < KILN_GLB_CHUNK) return KILN_OK;
    KILN_TRY(read_chunk(fd, name, at, end, &type, &bytes, err));
    if (type != KILN_GLB_BIN) return KILN_OK;
    out->bin_at = at + KILN_GLB_CHUNK;
    out->bin_bytes = bytes;
    return KILN_OK;
}

kiln_status kiln_gltf_file_read(int fd, const char *name, kiln_gltf_file *out, kiln_error *err)
{
    unsigned char head[KILN_GLB_HEADER];
    struct stat s;
    memset(out, 0, sizeof *out);
    if (fstat(fd, &s) != 0) return kiln_fail(err, KILN_E_IO, "cannot access '%s'", name);
    const uint64_t size = (uint64_t)s.st_size;
    if (size >= KILN_GLB_HEADER) KILN_TRY(kiln_file_read_at(fd, name, 0, head, sizeof head, err));
    out->is_binary = size >= KILN_GLB_HEADER && kiln_get_u32(head) == KILN_GLB_MAGIC;
    return out->is_binary ? read_binary(fd, name, size, head, out, err)
                          : read_text(fd, name, 0, size, out, err);
}

void kiln_gltf_file_release(kiln_gltf_file *f)
{
    json_decref(f->json);
    free(f->uris);
    memset(f, 0, sizeof *f);
}

/* ---- data URIs ------------------------------------------------------------------------------- */

/* 0 to 63; 64: no digit of base64 ('-' and '_' stand for '+' and '/' in addresses). */
static unsigned base64_digit(unsigned char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26u;
    if (c >= '0' && c <= '9') return c - '0' + 52u;
    if (c == '+' || c == '-') return 62;
    return c == '/' || c == '_' ? 63 : 64;
}

kiln_status kiln_gltf_uri_look(int fd, const char *name, const kiln_gltf_uri *uri,
                               kiln_gltf_uri *payload, uint64_t *bytes, kiln_error *err)
{
    enum { HEAD = 256 };
    static const char base64[] = "base64,";
    char head[HEAD + 1] = "", tail[2];
    const size_t n = uri->bytes < HEAD ? (size_t)uri->bytes : HEAD;
    KILN_TRY(kiln_file_read_at(fd, name, uri->at, head, n, err));
    const char *comma = memchr(head, ',', n);
    const size_t before = comma ? (size_t)(comma + 1 - head) : 0;
    if (before < sizeof base64 - 1 ||
        memcmp(head + before - (sizeof base64 - 1), base64, sizeof base64 - 1) != 0)
        return kiln_fail(err, KILN_E_INPUT, "'%s': the data URI at byte %llu is not base64", name,
                         (unsigned long long)uri->at);
    for (size_t i = before; i < n; i++) /* its length would mean nothing */
        if (base64_digit((unsigned char)head[i]) == 64 && head[i] != '\\' && head[i] != '=')
            return kiln_fail(err, KILN_E_INPUT, "'%s': byte %llu of a data URI is not base64", name,
                             (unsigned long long)(uri->at + i));
    size_t escapes = 0; /* of the media type: "application\/octet-stream" */
    for (size_t i = 0; i < before; i++) escapes += head[i] == '\\';
    *payload = (kiln_gltf_uri){
        .at = uri->at + before, .bytes = uri->bytes - before, .escapes = uri->escapes - escapes};
    uint64_t characters = payload->bytes - payload->escapes;
    const size_t last = payload->bytes < 2 ? (size_t)payload->bytes : 2;
    KILN_TRY(kiln_file_read_at(fd, name, payload->at + payload->bytes - last, tail, last, err));
    for (size_t i = last; i-- > 0 && tail[i] == '=';) characters--;
    *bytes = characters / 4 * 3 + (characters % 4 > 1 ? characters % 4 - 1 : 0);
    return KILN_OK;
}

typedef struct {
    const char *name;
    kiln_gltf_take *take;
    void *context;
    uint64_t left; /* bytes still to give */
    uint32_t bits, n_bits;
    size_t n;
    unsigned char out[PIECE];
} decoder;

static kiln_status give_decoded(decoder *d, kiln_error *err)
{
    KILN_TRY(d->take(d->context, d->out, d->n, err));
    d->left -= d->n;
    d->n = 0;
    return KILN_OK;
}

/* in[n] stands at byte `at` of the file. */
static kiln_status decode_piece(decoder *d, const unsigned char *in, size_t n, uint64_t at,
                                kiln_error *err)
{
    for (size_t i = 0; i < n && d->n < d->left; i++) {
        const unsigned v = base64_digit(in[i]);
        if (in[i] == '\\' || in[i] == '=') continue; /* JSON may write a slash as \/ */
        if (v == 64)
            return kiln_fail(err, KILN_E_INPUT, "'%s': byte %llu of a data URI is not base64",
                             d->name, (unsigned long long)(at + i));
        d->bits = d->bits << 6 | v;
        d->n_bits += 6;
        if (d->n_bits < 8) continue;
        d->n_bits -= 8;
        d->out[d->n++] = (unsigned char)(d->bits >> d->n_bits);
        if (d->n == sizeof d->out) KILN_TRY(give_decoded(d, err));
    }
    return KILN_OK;
}

kiln_status kiln_gltf_uri_decode(int fd, const char *name, const kiln_gltf_uri *payload,
                                 uint64_t bytes, kiln_gltf_take *take, void *context,
                                 kiln_error *err)
{
    kiln_status st = KILN_OK;
    unsigned char *in = NULL;
    decoder *d = NULL;
    KILN_GO(KILN_ALLOC(&in, PIECE, "base64", err));
    KILN_GO(KILN_ALLOC(&d, 1, "base64", err));
    *d = (decoder){.name = name, .take = take, .context = context, .left = bytes};
    for (uint64_t done = 0; done < payload->bytes && d->n < d->left;) {
        const size_t n = payload->bytes - done < PIECE ? (size_t)(payload->bytes - done) : PIECE;
        KILN_GO(kiln_file_read_at(fd, name, payload->at + done, in, n, err));
        KILN_GO(decode_piece(d, in, n, payload->at + done, err));
        done += n;
    }
    if (d->n) KILN_GO(give_decoded(d, err));
    if (d->left)
        st = kiln_fail(err, KILN_E_INPUT,
                       "'%s': a data URI is %llu bytes shorter than its buffer claims", name,
                       (unsigned long long)d->left);
done:
    free(d);
    free(in);
    return st;
}
