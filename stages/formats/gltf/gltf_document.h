/* gltf_document -- buffers, buffer views and accessors of a glTF file, checked, as ranges of bytes
 * in the files that hold them.
 *
 * Only what is asked for is looked at: a file may hold meshes and pictures that nobody here reads.
 * A buffer is the BIN chunk, a data URI, or a file beside this one, a member; the latter two go
 * into scratch (kiln_gltf_document_spool) and are read there. Sizes are checked in 64 bits against
 * the buffers, and these against the files, before anything is allocated.
 */
#ifndef KILN_STAGES_FORMATS_GLTF_GLTF_DOCUMENT_H
#define KILN_STAGES_FORMATS_GLTF_GLTF_DOCUMENT_H

#include "base/file.h"
#include "stages/formats/gltf/gltf_file.h"

enum { KILN_GLTF_MEMBERS_MAX = 64, KILN_GLTF_BUFFERS_MAX = 65536 };

typedef struct {
    uint64_t at, bytes;
    bool spooled; /* `at` is in scratch, not in the file */
} kiln_gltf_range;

typedef enum {
    KILN_GLTF_I8,
    KILN_GLTF_U8,
    KILN_GLTF_I16,
    KILN_GLTF_U16,
    KILN_GLTF_U32,
    KILN_GLTF_F32
} kiln_gltf_component;
extern const unsigned char kiln_gltf_component_bytes[];

typedef struct {
    kiln_gltf_range view;
    uint64_t offset; /* of the first element in the view */
    uint64_t count;
    uint32_t stride, element_bytes;
    uint32_t components; /* 1 to 4 */
    kiln_gltf_component type;
    bool normalised;
    bool is_empty; /* no buffer view: the values come from elsewhere */
} kiln_gltf_accessor;

typedef enum {
    KILN_GLTF_UNKNOWN,
    KILN_GLTF_CHUNK,
    KILN_GLTF_DATA_URI,
    KILN_GLTF_MEMBER
} kiln_gltf_origin;

typedef struct {
    kiln_gltf_origin origin;
    kiln_gltf_range range;
    kiln_gltf_uri payload; /* of a data URI */
    uint32_t member;
} kiln_gltf_buffer;

typedef struct {
    const char *name;    /* the user's file, lent; members lie in its folder */
    const char *packing; /* what it is packed with, or NULL; lent */
    int fd;              /* the file, lent */
    kiln_gltf_file file;
    const json_t *accessors, *views, *buffers; /* arrays, or NULL */
    kiln_gltf_buffer *found;                   /* [n_buffers] owned */
    uint32_t n_buffers, n_members;
    char *members[KILN_GLTF_MEMBERS_MAX];    /* paths, owned */
    char *real_paths[KILN_GLTF_MEMBERS_MAX]; /* of the members, without links, owned */
    uint64_t spool_bytes;                    /* what the buffers in use take there */
} kiln_gltf_document;

kiln_status kiln_gltf_document_open(int fd, const char *name, const char *packing,
                                    kiln_gltf_document *out, kiln_error *err) KILN_MUST_CHECK;
/* Frees the JSON; what was found stays. */
void kiln_gltf_document_forget(kiln_gltf_document *d);
void kiln_gltf_document_release(kiln_gltf_document *d);

kiln_status kiln_gltf_view_find(kiln_gltf_document *d, const json_t *index, kiln_gltf_range *out,
                                uint32_t *stride, kiln_error *err) KILN_MUST_CHECK;
/* what: the attribute, for sentences. */
kiln_status kiln_gltf_accessor_find(kiln_gltf_document *d, const json_t *index, const char *what,
                                    kiln_gltf_accessor *out, kiln_error *err) KILN_MUST_CHECK;
/* Puts every buffer that was found and is not in the file itself into `to`, where its range
 * says. */
kiln_status kiln_gltf_document_spool(const kiln_gltf_document *d, int to,
                                     kiln_error *err) KILN_MUST_CHECK;
/* A file with the first bytes of a range, before there is scratch: bytes [*from, *from + *have) of
 * *fd, which the caller closes. */
kiln_status kiln_gltf_document_peek(const kiln_gltf_document *d, const kiln_gltf_range *range,
                                    uint64_t bytes, int *fd, uint64_t *from, uint64_t *have,
                                    kiln_error *err) KILN_MUST_CHECK;

/* A whole number from 0 to 2^53; those above count as 2^53, which lies behind the end of anything.
 * NULL: absent. False: not one. */
bool kiln_gltf_whole(const json_t *v, uint64_t absent, uint64_t *out);
/* Element of an array by an index from the file; NULL: there is none. */
const json_t *kiln_gltf_at(const json_t *array, const json_t *index);

#endif
