/* export_told -- see the header. */
#include "stages/export/export_told.h"

#include "base/count.h"
#include "base/log.h"
#include "base/option.h"
#include "stages/engine/json_text.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

static const char *place_told; /* of kiln_export_tell_converted */
static bool layer_untold;      /* likewise */

/* ---- what it takes on the disk --------------------------------------------------------------- */

/* nftw has no context. */
static struct {
    uint64_t bytes, files;
} held;

static int add_held_file(const char *path, const struct stat *s, int type, struct FTW *where)
{
    (void)path, (void)where;
    if (type != FTW_F) return 0;
    held.bytes += (uint64_t)s->st_size;
    held.files++;
    return 0;
}

/* ", 71 KiB", or of a folder all that lies in it; "" where it cannot be looked at: it is whole all
 * the same. */
static void size_text(const kiln_export_target *to, char out[128])
{
    enum { DESCRIPTORS = 16 };
    const bool is_file = to->writer->functions->place == KILN_PLACE_FILE;
    char bytes[32];
    held.bytes = held.files = 0;
    *out = '\0';
    if (nftw(to->path, add_held_file, DESCRIPTORS, FTW_PHYS) != 0 || held.files == 0) return;
    (void)kiln_size_text(held.bytes, bytes);
    if (is_file)
        (void)snprintf(out, 128, ", %s", bytes);
    else
        (void)snprintf(out, 128, ", a folder of %s, %s", KILN_COUNT(held.files, "file"), bytes);
}

void kiln_export_tell_converted(const char *place)
{
    place_told = place;
    layer_untold = true;
}

/* ---- in words -------------------------------------------------------------------------------- */

/* What a format loses; of fewer rows that stand for all, what they lose themselves is not in it. */
static void say_camera_loss(const char *place, const kiln_export *e, const char *camera,
                            double psnr)
{
    char of[96] = "";
    if (e->cut)
        (void)snprintf(of, sizeof of, " by the format alone, beside the %s that stand for all",
                       KILN_COUNT(e->n_rows, "row"));
    if (psnr < INFINITY)
        kiln_say("%s: camera '%.300s' %.2f dB%s", place, camera, psnr, of);
    else
        kiln_say("%s: camera '%.300s' equal%s", place, camera, of);
}

void kiln_export_tell(const kiln_export_target *to, const kiln_export *e,
                      const kiln_export_said *said)
{
    char place[KILN_PATH_MAX + 2], size[128];
    (void)snprintf(place, sizeof place, place_told ? "%s" : "'%s'",
                   place_told ? place_told : to->path);
    const kiln_export_count *counts = to->writer->functions->counts;
    if (said->remarks.size) kiln_say("%s: %s", place, (const char *)said->remarks.data);
    if (said->notes.size) kiln_warn("%s: %s", place, (const char *)said->notes.data);
    for (uint32_t i = 0; counts && counts[i].more; i++)
        if (said->counts[i])
            kiln_warn("%s: %llu %s", place, (unsigned long long)said->counts[i],
                      said->counts[i] == 1 ? counts[i].one : counts[i].more);
    for (uint32_t i = 0; i < said->loss.n; i++)
        say_camera_loss(place, e, said->loss.cameras[i].name, said->loss.psnr[i]);
    size_text(to, size);
    if (layer_untold) {
        kiln_say("%s written to %s%s", KILN_COUNT(e->n_rows, e->splats ? "Gaussian" : "point"),
                 place, size);
        return;
    }
    kiln_say("%llu row%s of layer '%s'%s written to %s%s", (unsigned long long)e->n_rows,
             e->n_rows == 1 ? "" : "s", e->bakes[0].layer->kind,
             e->tree ? " and of its levels" : "", place, size);
}

/* ---- in the report --------------------------------------------------------------------------- */

/* A member that cannot be set makes the object NULL, which kiln_export_report says. */
static void set_json_member(json_t **object, const char *key, json_t *value)
{
    if (json_object_set_new(*object, key, value) == 0) return;
    json_decref(*object);
    *object = NULL;
}

/* What the values have lost: the counts of the format by their sentences, and dB by camera (null:
 * equal). */
static json_t *changes_json(const kiln_export_count *counts, const kiln_export_said *said)
{
    json_t *out = json_object();
    for (uint32_t i = 0; out && counts && counts[i].more; i++)
        set_json_member(&out, counts[i].more, json_integer((json_int_t)said->counts[i]));
    return out;
}

static json_t *losses_json(const kiln_loss *l)
{
    json_t *out = json_object();
    for (uint32_t i = 0; out && i < l->n; i++) {
        json_t *name = kiln_json_string(l->cameras[i].name); /* of which a key can be made */
        set_json_member(&out, name ? json_string_value(name) : NULL, kiln_json_real(l->psnr[i]));
        json_decref(name);
    }
    return out;
}

kiln_status kiln_export_report(kiln_run *r, const kiln_export_target *to, const kiln_export *e,
                               const kiln_export_said *said, kiln_error *err)
{
    json_t *all = kiln_run_report(r), *files = json_object_get(all, "files");
    json_t *facts = json_pack(
        "{s:o, s:s, s:s, s:I, s:I, s:o, s:o}", "path", kiln_json_string(to->path), "format",
        to->writer->name, "layer", e->bakes[0].layer->kind, "rows", (json_int_t)e->n_rows, "chunks",
        (json_int_t)e->n_chunks, "changed", changes_json(to->writer->functions->counts, said),
        "psnr", losses_json(&said->loss));
    int failed = facts ? 0 : -1;
    if (!failed && !files) {
        failed = json_object_update(all, facts); /* the first file's facts are the run's, too */
        if (!failed) failed = json_object_set_new(all, "files", files = json_array());
    }
    if (!failed) failed = json_array_append(files, facts);
    json_decref(facts);
    return failed ? kiln_fail(err, KILN_E_NOMEM, "out of memory while reporting") : KILN_OK;
}
