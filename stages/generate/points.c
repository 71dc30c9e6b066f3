/* points -- a cloud without anything but coordinates, of any size: what kiln-knn is measured with. */
#include "stages/generate/generate.h"

#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <string.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCK = 1 << 18 };

static kiln_status write_rows(FILE *f, const char *path, const kiln_generate_options *o, kiln_error *err)
{
    float(*rows)[3];
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_alloc((void **)&rows, BLOCK, sizeof *rows, "rows", err));
    for (uint64_t first = 0; st == KILN_OK && first < o->gaussians; first += BLOCK) {
        const int64_t count = (int64_t)(o->gaussians - first < BLOCK ? o->gaussians - first : BLOCK);
#pragma omp parallel for num_threads((int)o->threads) schedule(static)
        for (int64_t i = 0; i < count; i++) kg_uniform_point(o->seed, first + (uint64_t)i, rows[i]);
        if (fwrite(rows, sizeof *rows, (size_t)count, f) != (size_t)count)
            st = kiln_fail(err, KILN_E_IO, "cannot write '%s': %s", path, strerror(errno));
    }
    free(rows);
    return st;
}

kiln_status kiln_generate_points(const char *dir, const kiln_generate_options *o, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    KILN_TRY(kiln_path_join(path, sizeof path, dir, "points.ply", err));
    KILN_TRY(kiln_make_parents(path, err));
    FILE *f = fopen(path, "wb");
    if (!f) return kiln_fail(err, KILN_E_IO, "cannot write '%s': %s", path, strerror(errno));
    fprintf(f, "ply\nformat binary_little_endian 1.0\nelement vertex %llu\n", (unsigned long long)o->gaussians);
    fprintf(f, "property float x\nproperty float y\nproperty float z\nend_header\n");
    const kiln_status st = write_rows(f, path, o, err);
    return kiln_close_checked(f, path, st, err);
}
