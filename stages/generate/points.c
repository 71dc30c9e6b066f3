/* points -- a cloud without anything but coordinates, of any size: what kiln-knn is measured
 * with. */
#include "stages/generate/generate.h"

#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <string.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCK = 1 << 18 };

static kiln_status write_point_rows(FILE *f, const char *path, const kiln_generate_options *o,
                                    kiln_error *err)
{
    float(*rows)[3];
    kiln_status st = KILN_OK;
    KILN_TRY(kiln_alloc((void **)&rows, BLOCK, sizeof *rows, "rows", err));
    for (uint64_t first = 0; st == KILN_OK && first < o->gaussians; first += BLOCK) {
        const int64_t count =
            (int64_t)(o->gaussians - first < BLOCK ? o->gaussians - first : BLOCK);
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
    kiln_generated to;
    KILN_TRY(kiln_generated_check(dir, "points.ply", o, &to, err));
    KILN_TRY(kiln_generated_open(&to, err));
    FILE *const f = to.f;
    fprintf(f, "ply\nformat binary_little_endian 1.0\nelement vertex %llu\n",
            (unsigned long long)o->gaussians);
    fprintf(f, "property float x\nproperty float y\nproperty float z\nend_header\n");
    return kiln_generated_close(&to, write_point_rows(f, to.path, o, err), err);
}
