/* Where a program must not write what it was asked for: it would be gone. */
#include "schema/manifest.h"
#include "stages/engine/engine.h"

#include <stdlib.h>
#include <sys/stat.h>

static bool is_source(const struct stat *target, const kiln_source_file *f)
{
    struct stat s;
    return target->st_size == (off_t)f->size && stat(f->path, &s) == 0 && s.st_dev == target->st_dev && s.st_ino == target->st_ino;
}

kiln_status kiln_run_check_target(kiln_run *r, const char *target, kiln_error *err)
{
    kiln_manifest *m = kiln_run_manifest(r);
    struct stat s;
    kiln_source_file *files;
    uint32_t n;
    bool source = false;
    if (kiln_manifest_owns(kiln_manifest_path(m), target))
        return kiln_fail(err, KILN_E_USAGE, "'%s' is the bake itself, or belongs to it; choose another place with -o", target);
    if (stat(target, &s) != 0 || !S_ISREG(s.st_mode)) return KILN_OK;
    KILN_TRY(kiln_sources_get(m, &files, &n, err));
    for (uint32_t i = 0; i < n && !source; i++) source = is_source(&s, &files[i]);
    free(files);
    return source
               ? kiln_fail(err, KILN_E_USAGE, "'%s' is a file of the scene that was imported; choose another place with -o", target)
               : KILN_OK;
}
