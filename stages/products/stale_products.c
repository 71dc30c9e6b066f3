/* stale_products -- see the header. */
#include "stages/products/stale_products.h"

#include "base/memory.h"
#include "stages/products/product_mark.h"
#include "stages/products/product_records.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REPORT "report.html"

static const char *const stage_names[] = {
#define STAGE(name, ...) #name,
#include "pipelines/stages.def"
#undef STAGE
};

/* ---- which they are -------------------------------------------------------------------------- */
static kiln_status add_stale(kiln_stale_list *list, const char *path, bool unchanged,
                             kiln_error *err)
{
    kiln_stale_product *more = realloc(list->products, (list->n + 1u) * sizeof *more);
    if (more) list->products = more;
    char *copy = more ? strdup(path) : NULL;
    if (!copy) return kiln_fail(err, KILN_E_NOMEM, "out of memory for the bake's files");
    list->products[list->n++] = (kiln_stale_product){.path = copy, .unchanged = unchanged};
    return KILN_OK;
}

/* Where it lies, without the slash of a folder; false: nothing is there, or only by a link. */
static bool find_entry(const kiln_stale_list *list, const char *path, char out[KILN_PATH_MAX],
                       struct stat *s)
{
    char name[KILN_PATH_MAX];
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof name) return false;
    memcpy(name, path, n + 1);
    if (name[n - 1] == '/') name[--n] = '\0';
    return kiln_path_inside(out, KILN_PATH_MAX, list->folder, name, "-o", NULL) == KILN_OK &&
           lstat(out, s) == 0 && (path[n] == '/' ? S_ISDIR(s->st_mode) : S_ISREG(s->st_mode));
}

/* Of one that was begun and never described, the seal says whether it is whole and ours. */
static bool is_unchanged(const kiln_product *p, const char *path)
{
    return kiln_product_is_unchanged(p, path) || kiln_product_mark(path) == KILN_MARK_SEALED;
}

static kiln_status add_superseded(kiln_manifest *m, kiln_stale_list *out, kiln_error *err)
{
    kiln_product_list list;
    char path[KILN_PATH_MAX];
    struct stat s;
    kiln_status st = kiln_product_records_get(m, &list, err);
    for (uint32_t i = 0; i < list.n && st == KILN_OK; i++) {
        const kiln_product *const p = &list.products[i];
        if (p->state == KILN_PRODUCT_SUPERSEDED && find_entry(out, p->path, path, &s))
            st = add_stale(out, p->path, is_unchanged(p, path), err);
    }
    kiln_product_list_release(&list);
    return st;
}

static kiln_status find_newest_output(kiln_manifest *m, int64_t *finished_ns, kiln_error *err)
{
    *finished_ns = 0;
    for (size_t i = 0; i < sizeof stage_names / sizeof *stage_names; i++) {
        kiln_stage_row row;
        KILN_TRY(kiln_stage_get(m, stage_names[i], &row, err));
        if (row.state != KILN_STAGE_MISSING && row.finished_ns > *finished_ns)
            *finished_ns = row.finished_ns;
    }
    return KILN_OK;
}

/* The report is not listed: kiln-report only reads the manifest. Its mark says whose it is, its
 * time what it can tell of. */
static kiln_status add_report(kiln_manifest *m, kiln_stale_list *out, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    struct stat s;
    int64_t finished_ns;
    if (!find_entry(out, REPORT, path, &s)) return KILN_OK;
    const kiln_mark mark = kiln_product_mark(path);
    if (mark == KILN_MARK_NONE) return KILN_OK;
    KILN_TRY(find_newest_output(m, &finished_ns, err));
    const int64_t written_ns = (int64_t)s.st_mtim.tv_sec * 1000000000 + s.st_mtim.tv_nsec;
    return written_ns < finished_ns ? add_stale(out, REPORT, mark == KILN_MARK_SEALED, err)
                                    : KILN_OK;
}

kiln_status kiln_stale_products_get(kiln_manifest *m, kiln_stale_list *out, kiln_error *err)
{
    char *const real = realpath(kiln_manifest_path(m), NULL), *const slash =
                                                                  real ? strrchr(real, '/') : NULL;
    *out = (kiln_stale_list){.n = 0};
    const bool fits = slash && slash - real < KILN_PATH_MAX;
    if (fits)
        (void)snprintf(out->folder, sizeof out->folder, "%.*s",
                       slash == real ? 1 : (int)(slash - real), real);
    free(real);
    if (!fits) return KILN_OK;
    KILN_TRY(add_superseded(m, out, err));
    return add_report(m, out, err);
}

void kiln_stale_list_release(kiln_stale_list *list)
{
    for (uint32_t i = 0; i < list->n; i++) free(list->products[i].path);
    free(list->products);
    *list = (kiln_stale_list){.n = 0};
}

void kiln_stale_products_text(const kiln_stale_list *list, char out[1024])
{
    enum { NAMED = 3 };
    const bool one = list->n == 1;
    int n = snprintf(
        out, 1024, "%u file%s of the bake's folder do%s not belong to the bake any more: ", list->n,
        one ? "" : "s", one ? "es" : "");
    for (uint32_t i = 0; i < list->n && i < NAMED; i++)
        n += snprintf(out + n, (size_t)(1024 - n), "%s%.250s", i ? ", " : "",
                      list->products[i].path);
    if (list->n > NAMED)
        (void)snprintf(out + n, (size_t)(1024 - n), " and %u more", list->n - NAMED);
}

/* ---- removal --------------------------------------------------------------------------------- */
/* Folders of cameras' names; the first that holds something else stays, and all above it. */
static void drop_empty_folders(const kiln_stale_list *list, const char *relative)
{
    char name[KILN_PATH_MAX], path[KILN_PATH_MAX];
    (void)snprintf(name, sizeof name, "%s", relative);
    for (char *slash = strrchr(name, '/'); slash; slash = strrchr(name, '/')) {
        *slash = '\0';
        if (!strchr(name, '/') ||
            kiln_path_join(path, sizeof path, list->folder, name, NULL) != KILN_OK ||
            rmdir(path) != 0)
            return;
    }
}

static kiln_status remove_one(const kiln_stale_list *list, const kiln_stale_product *p,
                              uint32_t *removed, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    struct stat s;
    if (!p->unchanged || !find_entry(list, p->path, path, &s)) return KILN_OK;
    if (S_ISDIR(s.st_mode))
        kiln_folder_drop(path);
    else
        (void)unlink(path);
    if (lstat(path, &s) == 0)
        return kiln_fail(err, KILN_E_IO, "cannot remove '%s': %s", path, strerror(errno));
    ++*removed;
    drop_empty_folders(list, p->path);
    return KILN_OK;
}

static kiln_status forget_superseded(kiln_manifest *m, kiln_error *err)
{
    kiln_product_list list;
    kiln_status st = kiln_product_records_get(m, &list, err);
    for (uint32_t i = list.n; i-- > 0 && st == KILN_OK;)
        if (list.products[i].state == KILN_PRODUCT_SUPERSEDED)
            kiln_product_list_remove(&list, &list.products[i]);
    if (st == KILN_OK) st = kiln_product_list_put(m, &list, err);
    kiln_product_list_release(&list);
    return st;
}

kiln_status kiln_stale_products_remove(kiln_manifest *m, const kiln_stale_list *list,
                                       uint32_t *removed, kiln_error *err)
{
    *removed = 0;
    if (list->n == 0) return KILN_OK;
    for (uint32_t i = 0; i < list->n; i++)
        KILN_TRY(remove_one(list, &list->products[i], removed, err));
    KILN_TRY(kiln_manifest_begin(m, err));
    const kiln_status st = forget_superseded(m, err);
    if (st == KILN_OK) return kiln_manifest_commit(m, err);
    kiln_manifest_rollback(m);
    return st;
}
