/* Which pictures of two folders belong together. Both are listed, sorted by name without suffix,
 * and walked side by side. */
#include "stages/compare/compare.h"

#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct {
    char **name; /* owned */
    size_t n, capacity;
} name_list;

static void release_names(name_list *list)
{
    for (size_t i = 0; i < list->n; i++) free(list->name[i]);
    free(list->name);
    *list = (name_list){0};
}

/* Length without the suffix. */
static size_t stem(const char *name)
{
    const char *suffix = kiln_path_suffix(name);
    return strlen(name) - (*suffix ? strlen(suffix) + 1 : 0);
}

static int compare_stems(const char *a, const char *b)
{
    const size_t na = stem(a), nb = stem(b);
    const int order = memcmp(a, b, na < nb ? na : nb);
    return order ? order : (na > nb) - (na < nb);
}

static int compare_names(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    const int order = compare_stems(x, y);
    return order ? order : strcmp(x, y);
}

static bool is_picture(const char *path)
{
    static const char *const suffixes[] = {"png", "jpg", "jpeg", "npy"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (!strcasecmp(kiln_path_suffix(path), suffixes[i])) return true;
    return false;
}

static kiln_status add_picture_name(name_list *list, const char *name, kiln_error *err)
{
    if (list->n == list->capacity) {
        const size_t capacity = list->capacity ? 2 * list->capacity : 64;
        char **more = realloc(list->name, capacity * sizeof *more);
        if (!more)
            return kiln_fail(err, KILN_E_NOMEM, "out of memory for the names of %zu pictures",
                             capacity);
        list->name = more;
        list->capacity = capacity;
    }
    list->name[list->n] = strdup(name);
    if (!list->name[list->n])
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for the name of a picture");
    list->n++;
    return KILN_OK;
}

/* Links are followed, and fts notices a link that leads back up. */
static kiln_status walk(FTS *tree, const char *folder, name_list *out, kiln_error *err)
{
    FTSENT *e;
    const size_t skip = strlen(folder) + (folder[strlen(folder) - 1] != '/');
    while (errno = 0, (e = fts_read(tree))) {
        if (e->fts_info == FTS_ERR || e->fts_info == FTS_DNR || e->fts_info == FTS_NS)
            return kiln_fail(err, KILN_E_IO, "cannot read '%s': %s", e->fts_path,
                             strerror(e->fts_errno));
        if (e->fts_info == FTS_F && is_picture(e->fts_path))
            KILN_TRY(add_picture_name(out, e->fts_path + skip, err));
    }
    return errno ? kiln_fail(err, KILN_E_IO, "cannot read '%s': %s", folder, strerror(errno))
                 : KILN_OK;
}

static kiln_status list_pictures(const char *folder, name_list *out, kiln_error *err)
{
    char *roots[] = {(char *)folder, NULL};
    FTS *tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL);
    if (!tree) return kiln_fail(err, KILN_E_IO, "cannot read '%s': %s", folder, strerror(errno));
    const kiln_status st = walk(tree, folder, out, err);
    (void)fts_close(tree);
    if (st == KILN_OK && out->n) qsort(out->name, out->n, sizeof *out->name, compare_names);
    return st;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

static size_t same_stem(const name_list *list, size_t from)
{
    size_t n = from;
    while (n < list->n && compare_stems(list->name[from], list->name[n]) == 0) n++;
    return n - from;
}

/* The names move from the lists into the pairs. */
static void put_pair(kiln_picture_pairs *out, char **a, char **b)
{
    out->pair[out->n++] = (kiln_compare_pair){a ? *a : NULL, b ? *b : NULL};
    if (a) *a = NULL;
    if (b) *b = NULL;
}

static char **only_left(char **names, size_t n)
{
    char **left = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!names[i]) continue;
        if (left) return NULL;
        left = &names[i];
    }
    return left;
}

/* Names of one stem on both sides: the same names first, then what is left alone, then what has no
 * partner. */
static void pair_group(char **a, size_t na, char **b, size_t nb, kiln_picture_pairs *out)
{
    for (size_t i = 0; i < na; i++)
        for (size_t k = 0; a[i] && k < nb; k++)
            if (b[k] && !strcmp(a[i], b[k])) put_pair(out, &a[i], &b[k]);
    char **last_a = only_left(a, na), **last_b = only_left(b, nb);
    if (last_a && last_b) put_pair(out, last_a, last_b);
    for (size_t i = 0; i < na; i++)
        if (a[i]) put_pair(out, &a[i], NULL);
    for (size_t k = 0; k < nb; k++)
        if (b[k]) put_pair(out, NULL, &b[k]);
}

static void pair_all(const name_list *a, const name_list *b, kiln_picture_pairs *out)
{
    for (size_t i = 0, k = 0; i < a->n || k < b->n;) {
        const int order = i == a->n ? 1 : k == b->n ? -1 : compare_stems(a->name[i], b->name[k]);
        const size_t na = order <= 0 ? same_stem(a, i) : 0, nb = order >= 0 ? same_stem(b, k) : 0;
        pair_group(a->name + i, na, b->name + k, nb, out);
        i += na;
        k += nb;
    }
}

kiln_status kiln_compare_folders(const char *a, const char *b, kiln_picture_pairs *out,
                                 kiln_error *err)
{
    name_list of_a = {0}, of_b = {0};
    kiln_status st = KILN_OK;
    *out = (kiln_picture_pairs){0};
    KILN_GO(list_pictures(a, &of_a, err));
    KILN_GO(list_pictures(b, &of_b, err));
    KILN_GO(KILN_ALLOC(&out->pair, of_a.n + of_b.n, "the pairs of pictures", err));
    pair_all(&of_a, &of_b, out);
done:
    release_names(&of_a);
    release_names(&of_b);
    return st;
}

void kiln_picture_pairs_release(kiln_picture_pairs *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->pair[i].a);
        free(p->pair[i].b);
    }
    free(p->pair);
    *p = (kiln_picture_pairs){0};
}
