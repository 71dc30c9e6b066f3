/* view_changes -- see the header. */
#include "stages/report/view_changes.h"

#include "stages/report/foreign_picture.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- which ----------------------------------------------------------------------------------- */
static int largest_loss_first(const void *a, const void *b)
{
    const kiln_view_change *x = a, *y = b;
    if (x->change != y->change) return x->change < y->change ? -1 : 1;
    return strcmp(x->now->camera, y->now->camera);
}

kiln_status kiln_view_changes_get(const kiln_bake_views *now, const kiln_bake_views *then,
                                  kiln_view_change **out, uint32_t *n, kiln_error *err)
{
    *n = 0;
    KILN_TRY(KILN_ALLOC(out, now->n_cameras, "cameras", err));
    for (uint32_t i = 0; i < now->n_cameras; i++) {
        const char *camera = now->cameras[i].name;
        const kiln_bake_image *a = kiln_bake_view_image(now, camera),
                              *b = kiln_bake_view_image(then, camera);
        if (!a || !b || !isfinite(a->psnr) || !isfinite(b->psnr)) continue;
        (*out)[(*n)++] = (kiln_view_change){a, b, a->psnr - b->psnr};
    }
    if (*n) qsort(*out, *n, sizeof **out, largest_loss_first);
    return KILN_OK;
}

/* From both ends of the sorted list the one that changed more; none that did not change. */
static void choose_changes(const kiln_view_change *list, uint32_t n, kiln_change_pictures *out)
{
    for (uint32_t first = 0, last = n; first < last && out->n < KILN_CHANGES_SHOWN;) {
        const kiln_view_change *down = &list[first], *up = &list[last - 1];
        const kiln_view_change *more = fabs(up->change) > fabs(down->change) ? up : down;
        if (more->change == 0) break;
        out->views[out->n++].of = *more;
        if (more == up)
            last--;
        else
            first++;
    }
}

/* ---- pictures -------------------------------------------------------------------------------- */
static bool bake_folder_of(const kiln_bake_facts *b, char out[PATH_MAX])
{
    char *slash;
    if (!realpath(kiln_manifest_path(b->m), out)) return false;
    slash = strrchr(out, '/');
    if (slash) *slash = '\0';
    return true;
}

static bool write_one_folder(const kiln_bake_facts *a, const kiln_bake_facts *b)
{
    char of_a[PATH_MAX], of_b[PATH_MAX];
    return bake_folder_of(a, of_a) && bake_folder_of(b, of_b) && strcmp(of_a, of_b) == 0;
}

static kiln_status read_small(const kiln_bake_facts *b, const kiln_bake_image *image,
                              kiln_thumbnail *out, const char **why, kiln_error *err)
{
    kiln_picture p = {0};
    kiln_status st = kiln_foreign_render(kiln_manifest_path(b->m), image->path, &p, why, err);
    if (st == KILN_OK && !*why) st = kiln_thumbnail_make(&p, image->background, out, err);
    kiln_picture_release(&p);
    return st;
}

static kiln_status make_pair(const kiln_bake_facts *now, const kiln_bake_facts *then,
                             kiln_change_pictures *p, uint32_t i, kiln_error *err)
{
    const kiln_view_change *c = &p->views[i].of;
    kiln_report_pair *pair = &p->views[i].pair;
    kiln_thumbnail a, b;
    kiln_status st;
    kiln_thumbnail_size(c->now->width, c->now->height, &pair->width, &pair->height);
    a = b = (kiln_thumbnail){.width = pair->width, .height = pair->height};
    KILN_GO(read_small(then, c->then, &a, &p->views[i].no_other, err));
    KILN_GO(read_small(now, c->now, &b, &p->views[i].no_picture, err));
    KILN_GO(kiln_picture_pair_make(&a, &b, pair, err));
done:
    kiln_thumbnail_release(&a);
    kiln_thumbnail_release(&b);
    return st;
}

uint64_t kiln_change_pictures_bytes(const kiln_change_pictures *p)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < p->n; i++) bytes += kiln_picture_pair_bytes(&p->views[i].pair);
    return bytes;
}

kiln_status kiln_change_pictures_make(const kiln_bake_facts *now, const kiln_bake_facts *then,
                                      uint64_t bytes, kiln_change_pictures *out, kiln_error *err)
{
    kiln_view_change *list;
    uint32_t n;
    *out = (kiln_change_pictures){.one_folder = write_one_folder(now, then)};
    KILN_TRY(kiln_view_changes_get(&now->views, &then->views, &list, &n, err));
    choose_changes(list, n, out);
    free(list);
    for (uint32_t i = 0; i < out->n && !out->one_folder; i++) {
        KILN_TRY(make_pair(now, then, out, i, err));
        if (kiln_change_pictures_bytes(out) > bytes) kiln_picture_pair_release(&out->views[i].pair);
    }
    return KILN_OK;
}

void kiln_change_pictures_release(kiln_change_pictures *p)
{
    for (uint32_t i = 0; i < p->n; i++) kiln_picture_pair_release(&p->views[i].pair);
    p->n = 0;
}
