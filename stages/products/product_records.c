/* product_records -- see the header. */
#include "stages/products/product_records.h"

#include "base/file.h"
#include "base/log.h"
#include "stages/engine/json_text.h"
#include "stages/files/hash_file.h"
#include "stages/products/product_mark.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- descriptions ---------------------------------------------------------------------------- */
bool kiln_product_describe(kiln_product *p, const json_t *described)
{
    const char *hex = json_string_value(json_object_get(described, "hash"));
    const json_int_t size = json_integer_value(json_object_get(described, "size"));
    kiln_hash hash;
    if (!hex || size < 0 || !kiln_hash_parse(hex, &hash)) return false;
    p->described = true;
    p->size = (uint64_t)size;
    p->mtime_ns = json_integer_value(json_object_get(described, "mtime_ns"));
    p->hash = hash;
    return true;
}

/* A folder is described by what lies in it: files that a user put there, took away or wrote to show
 * in one of these. nftw has no context, so the sums are here; one thread at a time describes. */
static struct {
    uint64_t size;
    /* the newest; change_ns: also of names, links and modes, so of a file that was moved here */
    int64_t mtime_ns, change_ns;
    int64_t oldest_ns; /* the oldest time of content */
    /* sum of hashes of names and sizes: the order of files does not matter */
    uint64_t names;
    size_t skip;
} sums;

static int add_entry(const char *path, const struct stat *s, int type, struct FTW *where)
{
    (void)where;
    /* an emptied file holds nothing of anybody's */
    if (type == FTW_D || (type == FTW_F && s->st_size == 0)) return 0;
    const int64_t mtime_ns = (int64_t)s->st_mtim.tv_sec * 1000000000 + s->st_mtim.tv_nsec;
    const int64_t change_ns = (int64_t)s->st_ctim.tv_sec * 1000000000 + s->st_ctim.tv_nsec;
    kiln_hasher *h = kiln_hasher_new();
    uint64_t part;
    kiln_key_text(h, "name", path + sums.skip + strspn(path + sums.skip, "/"));
    kiln_key_u64(h, "size", (uint64_t)s->st_size);
    kiln_key_u64(h, "type", (uint64_t)type);
    const kiln_hash hash = kiln_hasher_end(h);
    memcpy(&part, hash.bytes, sizeof part);
    sums.names += part;
    sums.size += (uint64_t)s->st_size;
    if (mtime_ns > sums.mtime_ns) sums.mtime_ns = mtime_ns;
    if (mtime_ns < sums.oldest_ns) sums.oldest_ns = mtime_ns;
    if (change_ns > sums.change_ns) sums.change_ns = change_ns;
    return 0;
}

static bool look_at_folder(const char *path, kiln_product *p)
{
    enum { DESCRIPTORS = 16 };
    memset(&sums, 0, sizeof sums);
    sums.mtime_ns = sums.change_ns = INT64_MIN;
    sums.oldest_ns = INT64_MAX;
    sums.skip = strlen(path);
    if (nftw(path, add_entry, DESCRIPTORS, FTW_PHYS) != 0) return false;
    p->size = sums.size;
    p->mtime_ns = sums.change_ns > sums.mtime_ns ? sums.change_ns : sums.mtime_ns;
    p->hash = kiln_hash_of(&sums.names, sizeof sums.names);
    return true;
}

bool kiln_product_is_folder(const kiln_product *p) { return p->path[strlen(p->path) - 1] == '/'; }

kiln_status kiln_product_describe_path(kiln_product *p, const char *path, kiln_error *err)
{
    enum { HASHED_MOST = 1 << 30 };
    kiln_file_info info;
    p->described = false;
    KILN_TRY(kiln_file_stat(path, &info, err));
    p->hash = (kiln_hash){0};
    if (info.is_dir) {
        p->described = look_at_folder(path, p);
        return p->described ? KILN_OK
                            : kiln_fail(err, KILN_E_IO, "cannot list the folder '%s'", path);
    }
    if (info.size <= HASHED_MOST) KILN_TRY(kiln_hash_file(path, &p->hash, err));
    p->size = info.size;
    p->mtime_ns = info.mtime_ns;
    p->described = true;
    return KILN_OK;
}

bool kiln_product_is_copied_folder(const kiln_product *p, const char *path)
{
    kiln_product now = {0};
    if (!kiln_product_is_folder(p) || !p->described || !kiln_is_dir(path) ||
        !look_at_folder(path, &now))
        return false;
    return sums.oldest_ns > p->mtime_ns && now.size == p->size &&
           kiln_hash_equal(now.hash, p->hash) && kiln_product_folder_mark(path) == KILN_MARK_OURS;
}

/* Nothing in it is newer: what is missing was removed, and nothing of anybody's is there in its
 * place. In a copy of the bake all files have changed their place: then names, sizes and times of
 * content say it. */
static bool is_unchanged_folder(const kiln_product *p, const char *path)
{
    kiln_product now = {0};
    if (!kiln_is_dir(path) || !look_at_folder(path, &now)) return false;
    return now.mtime_ns <= p->mtime_ns || (sums.mtime_ns <= p->mtime_ns && now.size == p->size &&
                                           kiln_hash_equal(now.hash, p->hash));
}

bool kiln_product_is_unchanged(const kiln_product *p, const char *path)
{
    kiln_file_info now;
    kiln_hash hash;
    if (!p->described) return false;
    if (kiln_product_is_folder(p)) return is_unchanged_folder(p, path);
    if (kiln_file_stat(path, &now, NULL) != KILN_OK || !now.is_file) return false;
    if (now.size == 0) return true; /* emptied: it holds nothing of anybody's */
    if (now.size != p->size) return false;
    if (now.mtime_ns == p->mtime_ns) return true;
    return !kiln_hash_is_zero(p->hash) && kiln_hash_file(path, &hash, NULL) == KILN_OK &&
           kiln_hash_equal(hash, p->hash);
}

/* ---- bakes without a list -------------------------------------------------------------------- */
static kiln_status add_described(kiln_product_list *list, const char *path, const json_t *described,
                                 kiln_error *err)
{
    kiln_product found = {0}, *p;
    if (!described || !kiln_product_path_is_safe(path) || !kiln_product_describe(&found, described))
        return KILN_OK;
    KILN_TRY(kiln_product_list_add(list, path, "render", &p, err));
    p->state = KILN_PRODUCT_CURRENT;
    (void)kiln_product_describe(p, described);
    return KILN_OK;
}

static kiln_status add_picture(kiln_product_list *list, const char *path, const json_t *counters,
                               kiln_error *err)
{
    static const char *const depths[] = {"png", "npy"};
    char depth[KILN_PATH_MAX];
    const char *const suffix = kiln_path_suffix(path);
    const size_t stem = strlen(path) - strlen(suffix) - (*suffix != '\0');
    const json_t *of_depth = json_object_get(counters, "depth");
    KILN_TRY(add_described(list, path, json_object_get(counters, "picture"), err));
    for (size_t i = 0; of_depth && i < sizeof depths / sizeof *depths; i++)
        if (snprintf(depth, sizeof depth, "%.*s.depth.%s", (int)stem, path, depths[i]) <
            (int)sizeof depth)
            KILN_TRY(add_described(list, depth, of_depth, err));
    return KILN_OK;
}

typedef struct {
    kiln_manifest *m;
    kiln_product_list *list;
} picture_reader;

static kiln_status read_picture(void *context, const char *path, kiln_hash unit, kiln_error *err)
{
    const picture_reader *r = context;
    kiln_unit_result result;
    json_t *counters = NULL;
    bool found;
    KILN_TRY(kiln_unit_find(r->m, unit, &found, &result, err));
    kiln_status st = KILN_OK;
    if (found)
        st = kiln_json_parse(result.counters, strlen(result.counters), 0, "counters", &counters,
                             NULL, err);
    if (st == KILN_OK) st = add_picture(r->list, path, counters, err);
    json_decref(counters);
    kiln_unit_result_release(&result);
    return st;
}

kiln_status kiln_product_records_get(kiln_manifest *m, kiln_product_list *out, kiln_error *err)
{
    kiln_error why = {0};
    kiln_status st = kiln_product_list_get(m, out, &why);
    if (st == KILN_OK && out->n == 0) {
        picture_reader r = {m, out};
        st = kiln_image_paths_visit(m, read_picture, &r, &why);
    }
    if (st == KILN_OK) return KILN_OK;
    kiln_product_list_release(out);
    if (st == KILN_E_NOMEM || st == KILN_E_BUSY || kiln_status_is_signal(st))
        return kiln_fail(err, st, "%s", why.msg);
    kiln_warn("the list of files that the bake has written cannot be read: %s; files without a "
              "mark of SplatKiln are replaced only "
              "with -w",
              why.msg);
    return KILN_OK;
}

/* ---- what a stage writes --------------------------------------------------------------------- */
static kiln_status list_file(kiln_product_list *list, const char *path, const char *stage,
                             kiln_hash of, kiln_product_state state, kiln_product **out,
                             kiln_error *err)
{
    KILN_TRY(kiln_product_list_add(list, path, stage, out, err));
    (void)snprintf((*out)->stage, sizeof(*out)->stage, "%s", stage);
    (*out)->state = state;
    (*out)->of = of;
    return KILN_OK;
}

kiln_status kiln_product_begin(kiln_product_list *list, const char *path, const char *stage,
                               kiln_hash of, const kiln_product_seen *seen, kiln_error *err)
{
    kiln_product *p;
    KILN_TRY(list_file(list, path, stage, of, KILN_PRODUCT_BEGUN, &p, err));
    if (!seen->overwrite || !seen->there || kiln_product_is_folder(p)) return KILN_OK;
    p->described = true;
    p->size = seen->size;
    p->mtime_ns = seen->mtime_ns;
    p->hash = (kiln_hash){0};
    return KILN_OK;
}

kiln_status kiln_product_current(kiln_product_list *list, const char *path, const char *stage,
                                 kiln_hash of, kiln_product **out, kiln_error *err)
{
    kiln_product *p;
    KILN_TRY(list_file(list, path, stage, of, KILN_PRODUCT_CURRENT, &p, err));
    if (out) *out = p;
    return KILN_OK;
}

void kiln_products_supersede(kiln_product_list *list, const char *stage, kiln_hash of)
{
    for (uint32_t i = 0; i < list->n; i++) {
        kiln_product *const p = &list->products[i];
        if (strcmp(p->stage, stage) != 0 || kiln_hash_equal(p->of, of)) continue;
        /* of what was there before, if of anything */
        if (p->state == KILN_PRODUCT_BEGUN) p->described = false;
        p->state = KILN_PRODUCT_SUPERSEDED;
    }
}
