/* export_shared -- kiln_export as bytes: what the parent knows, for the workers of a round. */
#ifndef KILN_STAGES_EXPORT_SHARED_H
#define KILN_STAGES_EXPORT_SHARED_H

#include "stages/formats/writer.h"

/* A unit of a round; what follows it is the shared payload. */
typedef struct {
    uint64_t unit;
    uint32_t round;  /* KILN_ROUND_..., or index of the writer's rounds */
    uint32_t serial; /* another one: the shared payload has changed */
} kiln_export_request;
enum { KILN_ROUND_SURVEY = 1 << 16, KILN_ROUND_LOSS, KILN_ROUND_COUNT, KILN_ROUND_MAKE };

/* What workers know besides. */
typedef struct {
    const kiln_writer *writer;
    char scratch[KILN_SCRATCH_FILES][64]; /* paths by which they open them; "": none */
} kiln_export_places;

kiln_status kiln_export_pack(const kiln_export *e, const kiln_export_places *places,
                             kiln_buffer *out, kiln_error *err) KILN_MUST_CHECK;

/* A copy of kiln_export in a worker. */
typedef struct {
    kiln_export e;
    kiln_export_places places;
    kiln_level_tree tree;
    char target[KILN_PATH_MAX], temporary[KILN_PATH_MAX];
    kiln_buffer plan;
    void *from; /* kiln_export.from */
} kiln_export_copy;
/* Reads the layers again. m: of the first bake; NULL with kiln_export.from. Release also after a
 * failure. KILN_E_BUG: the bytes are not what pack makes. */
kiln_status kiln_export_unpack(const void *data, size_t bytes, kiln_manifest *m,
                               kiln_export_copy *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_export_copy_release(kiln_export_copy *c);

/* Frees what kiln_export.made holds. */
void kiln_made_chunks_release(kiln_made_chunks *made);
/* Fills kiln_export.chunks.first and n_rows from the chunks' n; chunks without rows leave the
 * list. */
void kiln_export_count_rows(kiln_export *e);

#endif
