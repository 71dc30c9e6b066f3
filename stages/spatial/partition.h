/* partition -- the rows of a layer along the Hilbert curve of the root cube, in files, for layers
 * of any size.
 *
 * kiln_spatial_partition leaves in a folder (of kiln_run_scratch, in the parent;
 * kiln_worker_scratch, in the worker)
 *
 *   rows   u32 [n]      the row of the layer at each place along the curve: the order of the
 *                       operation spatial_order, ascending by (code, row)
 *   codes  u64 [n]      the code of each place
 *   means  f32 [n][3]   x y z of each place, with_means only; read the layer's own planes for
 *                       anything else
 *
 * Each appears under its name when it is whole and on the disk, with a seal (seal.h). Where all of
 * them are there already and sound nothing is done, so that a run which was killed goes on; the
 * folder must be of this very layer and cube. The bytes before the seal do not depend on `ram`.
 * How: stages/spatial/DESIGN.md.
 */
#ifndef KILN_STAGES_SPATIAL_PARTITION_H
#define KILN_STAGES_SPATIAL_PARTITION_H

#include "kernels/runner.h"
#include "schema/manifest.h"
#include "stages/spatial/scratch_file.h"

typedef struct {
    kiln_runner *runner;
    kiln_manifest *manifest;
    const kiln_layer *layer; /* with the plane `means`, at most 2^32 - 2 rows */
    double centre[3], half;  /* of the root cube */
    const char *folder;      /* exists; no other process writes there */
    bool with_means;
    uint64_t ram; /* host memory that this may take */
    /* Further connections to the manifest: blocks are decoded on so many threads more. Each takes
     * kiln_spatial_reader_ram beside ram. NULL and 0: none. */
    kiln_manifest *const *readers;
    unsigned n_readers;
} kiln_spatial_args;

/* Deterministic; nothing is left allocated. KILN_E_CAP says the least ram that does; KILN_E_IO with
 * the numbers when the disk is full; else as spatial_order and kiln_plane_read. */
kiln_status kiln_spatial_partition(const kiln_spatial_args *a, kiln_error *err) KILN_MUST_CHECK;
/* Are the files there and whole? Looks at their seals alone. */
bool kiln_spatial_is_complete(const char *folder, uint64_t n, bool with_means);
/* Reads them. *kept: all are there and sound; one that is not is removed
 * (kiln_scratch_keep_sound). */
kiln_status kiln_spatial_keep_sound(const char *folder, uint64_t n, bool with_means, bool *kept,
                                    kiln_error *err) KILN_MUST_CHECK;
/* The most that its files take on the disk while it works; what it leaves is n times 12 bytes, 24
 * with means. */
uint64_t kiln_spatial_scratch_bytes(const kiln_layer *l, bool with_means, uint64_t ram);
/* What a further connection and its thread take. */
uint64_t kiln_spatial_reader_ram(const kiln_layer *l);
/* The least ram for it, and what it can use at most: then all rows are sorted at once, in
 * memory. */
uint64_t kiln_spatial_least_ram(const kiln_layer *l);
uint64_t kiln_spatial_most_ram(const kiln_layer *l);

/* ---- reading; any number of readers, each belongs to one thread ------------------------------ */
typedef struct {
    uint64_t n;
    kiln_scratch_file rows, codes, means; /* means: all zero where there are none */
} kiln_spatial_file;

/* KILN_E_IO when a file is missing or has another size; then nothing is open. out need not be set
 * before. */
kiln_status kiln_spatial_open(const char *folder, uint64_t n, bool with_means,
                              kiln_spatial_file *out, kiln_error *err) KILN_MUST_CHECK;
void kiln_spatial_close(kiln_spatial_file *f); /* all zero: nothing */
/* Places [first, first + count) into out. KILN_E_BUG beyond n. */
kiln_status kiln_spatial_rows(const kiln_spatial_file *f, uint64_t first, uint64_t count,
                              uint32_t *out, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_spatial_codes(const kiln_spatial_file *f, uint64_t first, uint64_t count,
                               uint64_t *out, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_spatial_means(const kiln_spatial_file *f, uint64_t first, uint64_t count,
                               float *out /* [count][3] */, kiln_error *err) KILN_MUST_CHECK;

#endif
