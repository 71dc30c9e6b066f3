/* convert_run -- see the header. Chunks of the layer are blocks of the files, so the bytes are those of kiln-export --layer source.
 */
#include "stages/convert/convert_run.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "stages/convert/convert_rows.h"
#include "stages/export/bakes.h"
#include "stages/export/export_options.h"
#include "stages/export/export_told.h"
#include "stages/products/product_guard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the target
 * ------------------------------------------------------------------------------------------------------------------ */

static bool is_folder_name(const char *out) { return !kiln_path_base(out)[0] || kiln_is_dir(out); }

kiln_status kiln_convert_writer(const char *out, const kiln_writer **writer, kiln_error *err)
{
    const kiln_writer *list[KILN_WRITERS_MAX];
    uint32_t n;
    const bool given = kiln_opt_given(&kiln_export_cli, "format");
    KILN_TRY(kiln_writers_parse(kiln_export_given.format, list, &n, err));
    if (n > 1) return kiln_fail(err, KILN_E_USAGE, "OUT is one file or folder, and --format names %u formats", n);
    *writer = list[0];
    return is_folder_name(out) ? KILN_OK : kiln_writer_for(out, list[0], given, writer, err);
}

kiln_status kiln_convert_target(const char *out, const kiln_writer *w, char target[KILN_PATH_MAX], kiln_error *err)
{
    const bool one_file = w->functions->place == KILN_PLACE_FILE;
    if (is_folder_name(out) && one_file) return kiln_path_join(target, KILN_PATH_MAX, out, w->default_name, err);
    (void)snprintf(target, KILN_PATH_MAX, "%s", out);
    for (size_t n = strlen(target); n > 1 && target[n - 1] == '/';) target[--n] = '\0';
    if (one_file || !kiln_is_dir(target)) return KILN_OK;
    char *real = realpath(target, NULL);
    if (!real) return kiln_fail(err, KILN_E_IO, "cannot open '%s': %s", target, strerror(errno));
    (void)snprintf(target, KILN_PATH_MAX, "%s", real);
    free(real);
    return KILN_OK;
}

static kiln_status guard_target(const char *const *files, unsigned n, kiln_export_target *t, kiln_error *err)
{
    const bool overwrite = kiln_export_given.overwrite;
    kiln_status st = KILN_OK;
    for (unsigned i = 0; i < n && st == KILN_OK; i++) { /* a guard knows one scene */
        kiln_product_guard *g;
        KILN_TRY(kiln_product_guard_open(NULL, overwrite, &g, err));
        if (kiln_is_file(files[i])) kiln_product_guard_scene(g, files[i], "");
        st = kiln_export_target_check(g, t, overwrite, err);
        kiln_product_guard_close(g);
    }
    return st;
}

kiln_status kiln_convert_guard(const char *const *files, unsigned n, const char *target, kiln_error *err)
{
    kiln_export_target *t;
    KILN_TRY(KILN_ALLOC(&t, 1, "a target", err));
    kiln_status st = kiln_convert_writer(target, &t->writer, err);
    if (st == KILN_OK) st = kiln_convert_target(target, t->writer, t->path, err);
    if (st == KILN_OK) st = guard_target(files, n, t, err);
    free(t);
    return st;
}

/* ---- the run
 * --------------------------------------------------------------------------------------------------------------------- */

typedef struct {
    kiln_convert_rows rows;
    kiln_export_target to;
    kiln_export_bake bake;
    kiln_export e;
    char temporary[KILN_PATH_MAX];
} conversion;

static kiln_status write_converted(kiln_run *r, conversion *c, kiln_error *err)
{
    kiln_export_said said = {0};
    KILN_TRY(kiln_export_foresee(r, c->to.writer, &c->e, &said.loss, err));
    kiln_status st = kiln_export_run(r, c->to.writer, &c->e, &said, err);
    if (st == KILN_OK) kiln_export_tell(&c->to, &c->e, &said);
    if (st == KILN_OK) st = kiln_export_report(r, &c->to, &c->e, &said, err);
    kiln_buffer_release(&said.notes);
    kiln_buffer_release(&said.remarks);
    return st;
}

static kiln_status convert_files(kiln_run *r, conversion *c, kiln_error *err)
{
    const kiln_parsed *args = kiln_run_args(r);
    const unsigned n = args->n_positional - 1;
    const char *out = args->positional[n];
    KILN_TRY(kiln_convert_writer(out, &c->to.writer, err));
    KILN_TRY(kiln_convert_target(out, c->to.writer, c->to.path, err));
    KILN_TRY(guard_target(args->positional, n, &c->to, err));
    KILN_TRY(kiln_temporary_path(c->to.path, c->temporary, err));
    KILN_TRY(kiln_make_parents(c->to.path, err));
    KILN_TRY(kiln_convert_rows_read(r, args->positional, n, c->to.path, &c->rows, &c->bake, &c->e.from, err));
    c->e.bakes = &c->bake;
    c->e.n_bakes = 1;
    c->e.target = c->to.path;
    c->e.replace = c->to.replace;
    c->e.seen = c->to.seen;
    c->e.temporary = c->temporary;
    KILN_TRY(kiln_export_wishes(&c->e, err));
    KILN_TRY(kiln_export_choose(&c->e, NULL, err));
    if (c->e.n_chunks == 0) return kiln_export_fail_empty(&c->e, err);
    KILN_TRY(kiln_writer_check_kind(c->to.writer, c->e.splats, err));
    return write_converted(r, c, err);
}

kiln_status kiln_convert_run(kiln_run *r, kiln_error *err)
{
    conversion *c;
    KILN_TRY(KILN_ALLOC(&c, 1, "a conversion", err));
    const kiln_status st = convert_files(r, c, err);
    free(c->e.chunks);
    kiln_convert_rows_release(&c->rows);
    free(c);
    return st;
}

kiln_status kiln_convert_unit(kiln_worker *w, const char *name, const void *payload, size_t bytes, kiln_error *err)
{
    static const char block[] = "block ";
    static bool writes; /* of this process: a run measures first and then writes */
    static const char *const of_import[] = {KILN_UNPACK_UNIT, KILN_SPOOL_UNIT, KILN_SCAN_UNIT};
    for (size_t i = 0; i < sizeof of_import / sizeof *of_import; i++)
        if (strcmp(name, of_import[i]) == 0) return kiln_import_unit(w, name, payload, bytes, err);
    if (strncmp(name, block, sizeof block - 1) == 0) return kiln_block_measure(w, payload, err);
    if (!writes) kiln_worker_set_state(w, NULL, NULL); /* the reader of blocks: what is kept from here on is an export's */
    writes = true;
    return kiln_export_unit_of(w, &kiln_convert_planes, payload, bytes, err);
}
