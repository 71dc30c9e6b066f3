/* gltf_document -- see the header. Source: Khronos glTF 2.0, sections 3.6.1 (buffers and buffer
 * views) and 3.6.2 (accessors). */
#include "stages/formats/gltf/gltf_document.h"

#include "base/checked.h"
#include "base/file.h"
#include "base/memory.h"
#include "stages/formats/gltf/gltf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

const unsigned char kiln_gltf_component_bytes[] = {1, 1, 2, 2, 4, 4};

bool kiln_gltf_whole(const json_t *v, uint64_t absent, uint64_t *out)
{
    const double most = 9007199254740992.0, number = json_number_value(v);
    *out = v ? (uint64_t)(number < 0 ? 0 : number > most ? most : number) : absent;
    return !v || (json_is_number(v) && number >= 0 && (number > most || (double)*out == number));
}

const json_t *kiln_gltf_at(const json_t *array, const json_t *index)
{
    uint64_t i;
    return index && kiln_gltf_whole(index, 0, &i) && i < json_array_size(array)
               ? json_array_get(array, (size_t)i)
               : NULL;
}

static const json_t *array_of(const json_t *root, const char *key)
{
    const json_t *v = json_object_get(root, key);
    return json_is_array(v) ? v : NULL;
}

kiln_status kiln_gltf_document_open(int fd, const char *name, const char *packing,
                                    kiln_gltf_document *out, kiln_error *err)
{
    memset(out, 0, sizeof *out);
    out->fd = fd;
    out->name = name;
    out->packing = packing;
    KILN_TRY(kiln_gltf_file_read(fd, name, &out->file, err));
    const json_t *root = out->file.json, *asset = json_object_get(root, "asset");
    const char *version = json_string_value(json_object_get(asset, "version"));
    if (!version)
        return kiln_fail(err, KILN_E_INPUT, "'%s' is no glTF: its JSON has no asset.version", name);
    if (strncmp(version, "2.", 2) != 0)
        return kiln_fail(err, KILN_E_INPUT, "'%s' is glTF of version %.20s; only version 2 is read",
                         name, version);
    out->accessors = array_of(root, "accessors");
    out->views = array_of(root, "bufferViews");
    out->buffers = array_of(root, "buffers");
    if (json_array_size(out->buffers) > KILN_GLTF_BUFFERS_MAX)
        return kiln_fail(err, KILN_E_INPUT, "'%s' has more than %d buffers", name,
                         KILN_GLTF_BUFFERS_MAX);
    out->n_buffers = (uint32_t)json_array_size(out->buffers);
    return KILN_ALLOC(&out->found, out->n_buffers, "buffers", err);
}

void kiln_gltf_document_forget(kiln_gltf_document *d)
{
    json_decref(d->file.json);
    d->file.json = NULL;
    d->accessors = d->views = d->buffers = NULL;
}

void kiln_gltf_document_release(kiln_gltf_document *d)
{
    kiln_gltf_file_release(&d->file);
    free(d->found);
    for (uint32_t i = 0; i < d->n_members; i++) {
        free(d->members[i]);
        free(d->real_paths[i]);
    }
    memset(d, 0, sizeof *d);
}

/* ---- URIs ------------------------------------------------------------------------------------ */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "a%20b" -> "a b" in place. False: a zero byte, or a % without its two digits. */
static bool decode_percents(char *s)
{
    char *to = s;
    for (; *s; s++, to++) {
        const int high = *s == '%' ? hex_digit(s[1]) : 0,
                  low = *s == '%' && high >= 0 ? hex_digit(s[2]) : 0;
        if (high < 0 || low < 0 || (*s == '%' && !high && !low)) return false;
        *to = *s;
        if (*s != '%') continue;
        *to = (char)(high << 4 | low);
        s += 2;
    }
    *to = '\0';
    return true;
}

static bool has_scheme(const char *uri)
{
    const size_t n =
        strspn(uri, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
    return n > 0 && uri[n] == ':';
}

/* The path of a file beside this one, as its name says and without links. */
static kiln_status member_path(const kiln_gltf_document *d, const char *uri,
                               char path[KILN_PATH_MAX], char real[KILN_PATH_MAX], kiln_error *err)
{
    char name[KILN_PATH_MAX], folder[KILN_PATH_MAX];
    const char *why;
    const size_t before = (size_t)(kiln_path_base(d->name) - d->name);
    if (strlen(uri) >= sizeof name || before >= sizeof folder)
        return kiln_fail(err, KILN_E_INPUT, "'%s': the name of a buffer is too long", d->name);
    if (has_scheme(uri))
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s': the buffer '%.200s' has an address; download it, because only "
                         "files beside this one are read",
                         d->name, uri);
    strcpy(name, uri);
    if (!decode_percents(name))
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s': the buffer '%.200s' has a bad %% code in its name", d->name, uri);
    if (!kiln_name_is_safe(name, &why))
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s': the buffer '%.200s' lies outside of the folder: %s", d->name, name,
                         why);
    memcpy(folder, before ? d->name : ".", before ? before : 1);
    folder[before ? before : 1] = '\0';
    KILN_TRY(kiln_path_join(path, KILN_PATH_MAX, folder, name, err));
    if (d->packing)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s' is %s data, but has a buffer beside it, '%.200s'; unpack it first",
                         d->name, d->packing, uri);
    if (kiln_member_find(folder, path, real, &why)) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT, "'%s': its buffer '%s' %s; put it beside the file", d->name,
                     path, why);
}

static kiln_status add_buffer_file(kiln_gltf_document *d, const char *path, const char *real,
                                   kiln_error *err)
{
    char **name = &d->members[d->n_members], **file = &d->real_paths[d->n_members];
    if (d->n_members == KILN_GLTF_MEMBERS_MAX)
        return kiln_fail(err, KILN_E_INPUT, "'%s' has its splats in more than %d files", d->name,
                         KILN_GLTF_MEMBERS_MAX);
    d->n_members++;
    *name = strdup(path);
    *file = strdup(real);
    return *name && *file
               ? KILN_OK
               : kiln_fail(err, KILN_E_NOMEM, "out of memory for the buffers of '%s'", d->name);
}

static kiln_status find_member(kiln_gltf_document *d, const char *uri, kiln_gltf_buffer *b,
                               kiln_error *err)
{
    char path[KILN_PATH_MAX], real[KILN_PATH_MAX];
    kiln_file_info info = {0};
    uint32_t i = 0;
    KILN_TRY(member_path(d, uri, path, real, err));
    KILN_TRY(kiln_file_stat(real, &info, err));
    while (i < d->n_members && strcmp(d->members[i], path) != 0) i++;
    if (i == d->n_members) KILN_TRY(add_buffer_file(d, path, real, err));
    *b = (kiln_gltf_buffer){.origin = KILN_GLTF_MEMBER, .member = i, .range.bytes = info.size};
    return KILN_OK;
}

/* ---- buffers --------------------------------------------------------------------------------- */

static kiln_status find_uri(const kiln_gltf_document *d, const char *uri, kiln_gltf_buffer *b,
                            kiln_error *err)
{
    char *end;
    const unsigned long i = strtoul(uri + 5, &end, 10);
    if (*end || end == uri + 5 || i >= d->file.n_uris)
        return kiln_fail(err, KILN_E_INPUT, "'%s': a data URI is written with escapes", d->name);
    *b = (kiln_gltf_buffer){.origin = KILN_GLTF_DATA_URI};
    return kiln_gltf_uri_look(d->fd, d->name, &d->file.uris[i], &b->payload, &b->range.bytes, err);
}

/* Its whole length, by what holds it. */
static kiln_status find_origin(kiln_gltf_document *d, uint32_t index, const char *uri,
                               kiln_gltf_buffer *b, kiln_error *err)
{
    if (uri)
        return strncasecmp(uri, "data:", 5) == 0 ? find_uri(d, uri, b, err)
                                                 : find_member(d, uri, b, err);
    if (index > 0 || !d->file.bin_at)
        return kiln_fail(err, KILN_E_INPUT, "'%s': buffer %u has no uri%s", d->name, index,
                         index == 0 ? ", and there is no BIN chunk" : "");
    *b = (kiln_gltf_buffer){.origin = KILN_GLTF_CHUNK,
                            .range = {.at = d->file.bin_at, .bytes = d->file.bin_bytes}};
    return KILN_OK;
}

static kiln_status find_buffer(kiln_gltf_document *d, uint32_t index, kiln_gltf_buffer *out,
                               kiln_error *err)
{
    static const char *const holders[] = {"", "the BIN chunk", "its data URI", "its file"};
    const json_t *o = json_array_get(d->buffers, index), *length = json_object_get(o, "byteLength");
    kiln_gltf_buffer b = {0};
    uint64_t bytes;
    if (!length || !kiln_gltf_whole(length, 0, &bytes))
        return kiln_fail(err, KILN_E_INPUT, "'%s': buffer %u has no byteLength", d->name, index);
    KILN_TRY(find_origin(d, index, json_string_value(json_object_get(o, "uri")), &b, err));
    if (bytes > b.range.bytes)
        return kiln_fail(
            err, KILN_E_INPUT, "'%s': buffer %u has %llu bytes, but %s holds only %llu", d->name,
            index, (unsigned long long)bytes, holders[b.origin], (unsigned long long)b.range.bytes);
    b.range.bytes = bytes;
    if (b.origin != KILN_GLTF_CHUNK) {
        b.range.spooled = true;
        b.range.at = d->spool_bytes;
        if (!kiln_add(d->spool_bytes, bytes, &d->spool_bytes) || d->spool_bytes > INT64_MAX)
            return kiln_fail(err, KILN_E_INPUT, "'%s' has buffers that are too large together",
                             d->name);
    }
    *out = b;
    return KILN_OK;
}

kiln_status kiln_gltf_view_find(kiln_gltf_document *d, const json_t *index, kiln_gltf_range *out,
                                uint32_t *stride, kiln_error *err)
{
    const json_t *o = kiln_gltf_at(d->views, index);
    uint64_t buffer, offset, bytes, step, end;
    if (!json_is_object(o))
        return kiln_fail(err, KILN_E_INPUT, "'%s': a buffer view's index is out of range", d->name);
    const unsigned long long i = (unsigned long long)json_number_value(index);
    if (!kiln_gltf_whole(json_object_get(o, "buffer"), UINT64_MAX, &buffer) ||
        buffer >= d->n_buffers)
        return kiln_fail(err, KILN_E_INPUT, "'%s': the buffer of buffer view %llu does not exist",
                         d->name, i);
    if (!kiln_gltf_whole(json_object_get(o, "byteOffset"), 0, &offset) ||
        !json_object_get(o, "byteLength") ||
        !kiln_gltf_whole(json_object_get(o, "byteLength"), 0, &bytes) ||
        !kiln_gltf_whole(json_object_get(o, "byteStride"), 0, &step) || step > 252)
        return kiln_fail(
            err, KILN_E_INPUT,
            "'%s': buffer view %llu has no valid byteOffset, byteLength and byteStride", d->name,
            i);
    if (!d->found[buffer].origin)
        KILN_TRY(find_buffer(d, (uint32_t)buffer, &d->found[buffer], err));
    const kiln_gltf_range *whole = &d->found[buffer].range;
    if (!kiln_add(offset, bytes, &end) || end > whole->bytes)
        return kiln_fail(err, KILN_E_INPUT, "'%s': buffer view %llu lies outside its buffer",
                         d->name, i);
    *out = (kiln_gltf_range){.at = whole->at + offset, .bytes = bytes, .spooled = whole->spooled};
    *stride = (uint32_t)step;
    return KILN_OK;
}

/* ---- accessors ------------------------------------------------------------------------------- */

static bool find_type(const json_t *o, kiln_gltf_accessor *a)
{
    static const unsigned codes[] = {KILN_GLTF_BYTE,         KILN_GLTF_UNSIGNED_BYTE,
                                     KILN_GLTF_SHORT,        KILN_GLTF_UNSIGNED_SHORT,
                                     KILN_GLTF_UNSIGNED_INT, KILN_GLTF_FLOAT};
    const char *type = json_string_value(json_object_get(o, "type"));
    const double code = json_number_value(json_object_get(o, "componentType"));
    bool known = false;
    for (uint32_t i = 0; i < 4 && type; i++)
        if (strcmp(type, kiln_gltf_type(i + 1)) == 0) a->components = i + 1;
    for (unsigned i = 0; i < sizeof codes / sizeof *codes; i++)
        if (code == codes[i]) {
            a->type = (kiln_gltf_component)i;
            known = true;
        }
    a->normalised = json_is_true(json_object_get(o, "normalized"));
    a->element_bytes = a->components * kiln_gltf_component_bytes[a->type];
    return known && a->components;
}

/* The last element ends inside the view. */
static bool accessor_fits(const kiln_gltf_accessor *a)
{
    uint64_t end;
    return kiln_mul(a->count - 1, a->stride, &end) && kiln_add(end, a->element_bytes, &end) &&
           kiln_add(end, a->offset, &end) && end <= a->view.bytes;
}

kiln_status kiln_gltf_accessor_find(kiln_gltf_document *d, const json_t *index, const char *what,
                                    kiln_gltf_accessor *out, kiln_error *err)
{
    const json_t *o = kiln_gltf_at(d->accessors, index);
    memset(out, 0, sizeof *out);
    if (!json_is_object(o))
        return kiln_fail(err, KILN_E_INPUT, "'%s': the accessor of %s does not exist", d->name,
                         what);
    if (json_object_get(o, "sparse"))
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s': %s is a sparse accessor, which is not read; write it out whole",
                         d->name, what);
    if (!find_type(o, out))
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s': the accessor of %s has a type that no attribute has", d->name,
                         what);
    if (!kiln_gltf_whole(json_object_get(o, "count"), 0, &out->count) || out->count == 0 ||
        !kiln_gltf_whole(json_object_get(o, "byteOffset"), 0, &out->offset))
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s': the accessor of %s has no valid count and byteOffset", d->name,
                         what);
    out->is_empty = !json_object_get(o, "bufferView");
    if (out->is_empty) return KILN_OK;
    KILN_TRY(
        kiln_gltf_view_find(d, json_object_get(o, "bufferView"), &out->view, &out->stride, err));
    if (out->stride == 0) out->stride = out->element_bytes;
    if (out->stride < out->element_bytes)
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s': %s has a byteStride of %u for elements of %u bytes", d->name, what,
                         out->stride, out->element_bytes);
    if (!accessor_fits(out))
        return kiln_fail(err, KILN_E_INPUT,
                         "'%s': the accessor of %s (%llu elements) lies outside its buffer view",
                         d->name, what, (unsigned long long)out->count);
    return KILN_OK;
}

/* ---- into scratch ---------------------------------------------------------------------------- */

typedef struct {
    int fd;
    uint64_t at;
} sink;

static kiln_status write_decoded(void *context, const unsigned char *data, size_t n,
                                 kiln_error *err)
{
    sink *s = context;
    const int why = kiln_file_pwrite(s->fd, s->at, data, n, NULL);
    s->at += n;
    return why ? kiln_fail(err, KILN_E_IO, "cannot write scratch: %s", strerror(why)) : KILN_OK;
}

static kiln_status copy_member(const kiln_gltf_document *d, const kiln_gltf_buffer *b, sink *s,
                               kiln_error *err)
{
    enum { STEP = 1 << 18 };
    const char *path = d->real_paths[b->member];
    kiln_status st = KILN_OK;
    unsigned char *piece = NULL;
    int fd;
    KILN_TRY(kiln_file_open(path, &fd, err));
    KILN_GO(KILN_ALLOC(&piece, STEP, "a buffer", err));
    for (uint64_t done = 0; done < b->range.bytes;) {
        const size_t n = b->range.bytes - done < STEP ? (size_t)(b->range.bytes - done) : STEP;
        KILN_GO(kiln_file_read_at(fd, path, done, piece, n, err));
        KILN_GO(write_decoded(s, piece, n, err));
        done += n;
    }
done:
    free(piece);
    close(fd);
    return st;
}

kiln_status kiln_gltf_document_spool(const kiln_gltf_document *d, int to, kiln_error *err)
{
    for (uint32_t i = 0; i < d->n_buffers; i++) {
        const kiln_gltf_buffer *b = &d->found[i];
        sink s = {.fd = to, .at = b->range.at};
        if (b->origin == KILN_GLTF_MEMBER) KILN_TRY(copy_member(d, b, &s, err));
        if (b->origin == KILN_GLTF_DATA_URI)
            KILN_TRY(kiln_gltf_uri_decode(d->fd, d->name, &b->payload, b->range.bytes,
                                          write_decoded, &s, err));
    }
    return KILN_OK;
}

static kiln_status peek_uri(const kiln_gltf_document *d, const kiln_gltf_buffer *b, uint64_t bytes,
                            int *fd, kiln_error *err)
{
    sink s = {.fd = memfd_create("peek", MFD_CLOEXEC)};
    if (s.fd < 0)
        return kiln_fail(err, KILN_E_NOMEM, "cannot read '%s': %s", d->name, strerror(errno));
    const kiln_status st =
        kiln_gltf_uri_decode(d->fd, d->name, &b->payload, bytes, write_decoded, &s, err);
    if (st == KILN_OK)
        *fd = s.fd;
    else
        close(s.fd);
    return st;
}

/* Of a range that is not empty. */
static const kiln_gltf_buffer *buffer_of(const kiln_gltf_document *d, const kiln_gltf_range *range)
{
    for (uint32_t i = 0; i < d->n_buffers; i++) {
        const kiln_gltf_range *r = &d->found[i].range;
        if (d->found[i].origin && r->spooled == range->spooled && range->at >= r->at &&
            range->at < r->at + r->bytes)
            return &d->found[i];
    }
    return NULL;
}

kiln_status kiln_gltf_document_peek(const kiln_gltf_document *d, const kiln_gltf_range *range,
                                    uint64_t bytes, int *fd, uint64_t *from, uint64_t *have,
                                    kiln_error *err)
{
    const kiln_gltf_buffer *b = buffer_of(d, range);
    if (!b || range->bytes == 0)
        return kiln_fail(err, KILN_E_INPUT, "'%s': the buffer view of an SPZ is empty", d->name);
    *from = b->origin == KILN_GLTF_CHUNK ? range->at : range->at - b->range.at;
    *have = range->bytes < bytes ? range->bytes : bytes;
    if (b->origin == KILN_GLTF_DATA_URI) return peek_uri(d, b, *from + *have, fd, err);
    if (b->origin == KILN_GLTF_MEMBER) return kiln_file_open(d->real_paths[b->member], fd, err);
    *fd = fcntl(d->fd, F_DUPFD_CLOEXEC, 0);
    return *fd >= 0 ? KILN_OK
                    : kiln_fail(err, KILN_E_IO, "cannot read '%s': %s", d->name, strerror(errno));
}
