/* exposures -- see the header. */
#include "stages/cameras/exposures.h"

#include "base/file.h"
#include "base/memory.h"
#include "stages/cameras/camera_file.h"
#include "stages/files/json_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int exposures_by_name(const void *a, const void *b)
{
    return strcmp(((const kiln_exposure *)a)->name, ((const kiln_exposure *)b)->name);
}

bool kiln_exposure_is_identity(const double m[12])
{
    for (int i = 0; i < 12; i++)
        if (m[i] != (i % 5 == 0)) return false; /* 0, 5 and 10 are the diagonal */
    return true;
}

static kiln_status read_exposure(const char *path, const char *key, const json_t *rows,
                                 kiln_exposure *out, kiln_error *err)
{
    const char *name = key;
    while (name[0] == '.' && name[1] == '/') name += 2;
    const size_t stem = kiln_photo_stem(name);
    if (stem == 0 || stem >= sizeof out->name)
        return kiln_fail(err, KILN_E_INPUT, "'%s' names an image '%.60s', which does not exist",
                         path, key);
    snprintf(out->name, sizeof out->name, "%.*s", (int)stem, name);
    if (!kiln_json_matrix(rows, 3, 4, out->m))
        return kiln_fail(err, KILN_E_INPUT, "'%s': the exposure of '%.100s' is not 3 x 4 numbers",
                         path, key);
    return KILN_OK;
}

static kiln_status read_exposures(const char *path, const json_t *json, kiln_exposures *out,
                                  kiln_error *err)
{
    const char *key;
    json_t *rows;
    if (!json_is_object(json))
        return kiln_fail(err, KILN_E_INPUT, "'%s' is not an object of exposures by image name",
                         path);
    KILN_TRY(KILN_ALLOC(&out->list, json_object_size(json), "exposures", err));
    json_object_foreach((json_t *)json, key, rows)
    {
        KILN_TRY(read_exposure(path, key, rows, &out->list[out->n], err));
        out->n_changing += !kiln_exposure_is_identity(out->list[out->n++].m);
    }
    if (out->n) qsort(out->list, out->n, sizeof *out->list, exposures_by_name);
    for (uint32_t i = 1; i < out->n; i++)
        if (strcmp(out->list[i - 1].name, out->list[i].name) == 0)
            return kiln_fail(err, KILN_E_INPUT, "'%s' has two exposures of '%.100s'", path,
                             out->list[i].name);
    return KILN_OK;
}

kiln_status kiln_exposures_read(const char *path, kiln_exposures *out, kiln_error *err)
{
    json_t *json = NULL;
    *out = (kiln_exposures){0};
    KILN_TRY(kiln_json_file_read(path, &json, err));
    const kiln_status st = read_exposures(path, json, out, err);
    json_decref(json);
    return st;
}

void kiln_exposures_release(kiln_exposures *e)
{
    free(e->list);
    *e = (kiln_exposures){0};
}

/* ---- cameras --------------------------------------------------------------------------------- */
static const kiln_exposure *find_exposure(const kiln_exposures *e, const char *name)
{
    kiln_exposure key;
    if (e->n == 0 || strlen(name) >= sizeof key.name) return NULL;
    snprintf(key.name, sizeof key.name, "%s", name);
    return bsearch(&key, e->list, e->n, sizeof key, exposures_by_name);
}

static int by_base(const void *a, const void *b)
{
    return strcmp(kiln_path_base((*(const kiln_camera *const *)a)->name),
                  kiln_path_base((*(const kiln_camera *const *)b)->name));
}

static bool is_train(const kiln_camera *c) { return strcmp(c->split, "train") == 0; }

/* The one of n cameras, whose names end alike, that the end alone means; NULL: none. */
static const kiln_camera *meant(const kiln_camera *const *group, uint32_t n)
{
    const kiln_camera *one = NULL;
    uint32_t n_train = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!is_train(group[i])) continue;
        one = group[i];
        n_train++;
    }
    return n == 1 ? group[0] : n_train == 1 ? one : NULL;
}

kiln_status kiln_exposures_match(const kiln_exposures *e, const kiln_camera *cameras, uint32_t n,
                                 const kiln_exposure **of, kiln_error *err)
{
    const kiln_camera **order = NULL;
    KILN_TRY(KILN_ALLOC(&order, n, "cameras", err));
    for (uint32_t i = 0; i < n; i++) {
        of[i] = find_exposure(e, cameras[i].name);
        order[i] = &cameras[i];
    }
    if (n) qsort(order, n, sizeof *order, by_base);
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && by_base(&order[i], &order[end]) == 0;) end++;
        const kiln_camera *one = meant(order + i, end - i);
        if (one && !of[one - cameras])
            of[one - cameras] = find_exposure(e, kiln_path_base(one->name));
    }
    free(order);
    return KILN_OK;
}
