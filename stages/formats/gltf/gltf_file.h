/* gltf_file -- the JSON of a .gltf or .glb file, and where the bytes lie that stand beside it
 * (gltf.h).
 *
 * Texts that begin with "data:", in any case, are data URIs, which may be as long as the scene:
 * they stay in the file. The JSON has "data:N" in their place, N their index in uris.
 */
#ifndef KILN_STAGES_FORMATS_GLTF_GLTF_FILE_H
#define KILN_STAGES_FORMATS_GLTF_GLTF_FILE_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { KILN_GLTF_URIS_MAX = 65536 };

/* What stands behind "data:" up to the quote, as it is in the file. */
typedef struct {
    uint64_t at, bytes;
    uint64_t escapes; /* backslashes among them */
} kiln_gltf_uri;

typedef struct {
    json_t *json;               /* owned */
    uint64_t bin_at, bin_bytes; /* the BIN chunk; 0, 0: none */
    uint64_t file_bytes;        /* by the header of a .glb; 0: a .gltf has none */
    uint64_t trailing_bytes;    /* behind those */
    kiln_gltf_uri *uris;        /* owned */
    uint32_t n_uris;
    bool is_binary;
} kiln_gltf_file;

/* fd: the file; name: for sentences. KILN_E_INPUT: the magic, version, lengths or order of chunks
 * are wrong, or the JSON is not what json_file.h takes. kiln_gltf_file_release afterwards in any
 * case. */
kiln_status kiln_gltf_file_read(int fd, const char *name, kiln_gltf_file *out,
                                kiln_error *err) KILN_MUST_CHECK;
void kiln_gltf_file_release(kiln_gltf_file *f);

/* Takes the head of a base64 data URI apart: *payload is the part behind "base64,", *bytes what it
 * decodes to. KILN_E_INPUT where it is no base64. */
kiln_status kiln_gltf_uri_look(int fd, const char *name, const kiln_gltf_uri *uri,
                               kiln_gltf_uri *payload, uint64_t *bytes,
                               kiln_error *err) KILN_MUST_CHECK;
/* Decodes the first `bytes` bytes of a payload and gives them in pieces to take(), in order. */
typedef kiln_status kiln_gltf_take(void *context, const unsigned char *data, size_t n,
                                   kiln_error *err);
kiln_status kiln_gltf_uri_decode(int fd, const char *name, const kiln_gltf_uri *payload,
                                 uint64_t bytes, kiln_gltf_take *take, void *context,
                                 kiln_error *err) KILN_MUST_CHECK;

#endif
