/* section_import -- what was imported and why: the source, what was found, used and left out,
 * splits, lenses. */
#include "stages/report/report_page.h"

#include "base/memory.h"
#include "stages/engine/json_text.h"
#include "stages/engine/meaning.h"
#include "stages/report/report_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool has_import_section(const kiln_report *r) { return r->bake->scene != NULL; }

/* ---- the source ------------------------------------------------------------------------------ */
static void write_vector(kiln_html *h, const void *context)
{
    const double *v = context;
    for (int i = 0; i < 3; i++) {
        if (i) KILN_HTML(h, ", ");
        kiln_html_short(h, v[i]);
    }
}

static void write_root(kiln_html *h, const void *context)
{
    const kiln_scene *s = context;
    kiln_html_short(h, 2 * s->root_half);
    KILN_HTML(h, " wide, centre ");
    write_vector(h, s->root_centre);
}

static void write_source(kiln_html *h, const kiln_report *r)
{
    static const char *const kinds[] = {[KILN_SCENE_NONE] = "cameras only",
                                        [KILN_SCENE_POINTS] = "points",
                                        [KILN_SCENE_SPLATS] = "Gaussians"};
    const kiln_scene *s = r->bake->scene;
    const kiln_stage_facts *import = kiln_bake_stage(r->bake, "import");
    const bool splats = s->kind == KILN_SCENE_SPLATS;
    const bool moved = s->origin[0] != 0 || s->origin[1] != 0 || s->origin[2] != 0;
    const kiln_fact facts[] = {
        {"Source", kiln_text(s->source_path)},
        {"Format", kiln_text(s->source_format)},
        {"Holds", kiln_text(kinds[s->kind])},
        {"Rows read", kiln_count(s->rows_read)},
        {"Rows left out", kiln_count(s->rows_dropped)},
        {"SH degree", splats ? kiln_count(s->sh_degree) : kiln_none()},
        {"Trained", kiln_text(!splats          ? ""
                              : s->antialiased ? "antialiased (mip compensation)"
                                               : "classic, without mip compensation")},
        {"Cameras' photos", kiln_text(kiln_json_text_of(
                                json_object_get(import->counters, "photos_missing"), "sought"))},
        {"Axes", kiln_text(s->frame)},
        {"Up", kiln_text(s->up_axis)},
        {"Unit", kiln_text(s->unit)},
        {"Origin", moved ? kiln_by(write_vector, s->origin) : kiln_none()},
        {"Moved by", kiln_text(strcmp(s->transforms, "[]") != 0 ? s->transforms : "")},
        {"Root cube", s->has_root ? kiln_by(write_root, s) : kiln_none()},
    };
    kiln_facts(h, "facts", facts, sizeof facts / sizeof *facts);
}

/* ---- what was found -------------------------------------------------------------------------- */
typedef struct {
    char role[32];
    const char *first;
    uint64_t files, bytes;
} role_row;

static uint32_t count_roles(const kiln_bake_facts *b, role_row *rows, uint32_t capacity)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n_sources; i++) {
        const kiln_source_file *f = &b->sources[i];
        uint32_t k = 0;
        while (k < n && strcmp(rows[k].role, f->role) != 0) k++;
        if (k == capacity) continue;
        if (k == n) {
            rows[n] = (role_row){.first = f->path};
            strcpy(rows[n++].role, f->role);
        }
        rows[k].files++;
        rows[k].bytes += f->size;
    }
    return n;
}

static void write_files(kiln_html *h, const kiln_report *r)
{
    role_row rows[16];
    const uint32_t n = count_roles(r->bake, rows, 16);
    if (n == 0) return;
    static const kiln_column columns[] = {
        {"Role", NULL}, {"Files", "n"}, {"Size", "n"}, {"First of them", "path"}};
    KILN_HTML(h, "<h3>Found and used</h3>");
    kiln_table_begin(h, "Files that import used", "", columns, 4);
    for (uint32_t i = 0; i < n; i++) {
        const kiln_cell cells[] = {kiln_text(rows[i].role), kiln_count(rows[i].files),
                                   kiln_bytes(rows[i].bytes), kiln_text(rows[i].first)};
        kiln_table_row(h, columns, cells, 4);
    }
    kiln_table_end(h);
}

/* ---- what was left out ----------------------------------------------------------------------- */
/* "photo_not_there" reads as "photo not there". */
static void write_reason(kiln_html *h, const char *key)
{
    char text[96];
    size_t n = 0;
    for (; key[n] && n + 1 < sizeof text; n++) text[n] = key[n] == '_' ? ' ' : key[n];
    text[n] = '\0';
    kiln_html_text(h, text);
}

/* Lines of an object of counters; *begun: the list is open. */
static void write_counters(kiln_html *h, json_t *counters, const char *what, bool *begun)
{
    const char *key;
    json_t *v;
    json_object_foreach(counters, key, v)
    {
        if (json_integer_value(v) <= 0) continue;
        if (!*begun) KILN_HTML(h, "<h3>Left out or changed</h3><ul class=\"plain\">");
        *begun = true;
        KILN_HTML(h, "<li>");
        kiln_html_count(h, (uint64_t)json_integer_value(v));
        KILN_HTML(h, " ");
        kiln_html_text(h, what);
        KILN_HTML(h, ": ");
        write_reason(h, key);
        KILN_HTML(h, "</li>");
    }
}

static void write_left_out(kiln_html *h, const kiln_report *r)
{
    const json_t *c = kiln_bake_stage(r->bake, "import")->counters;
    const json_t *missing = json_object_get(c, "photos_missing");
    bool begun = false;
    write_counters(h, json_object_get(c, "dropped"), "rows dropped", &begun);
    write_counters(h, json_object_get(c, "clamped"), "rows clamped", &begun);
    write_counters(h, json_object_get(c, "frames_dropped_by"), "frames dropped", &begun);
    if (kiln_json_count_of(missing, "count")) {
        if (!begun) KILN_HTML(h, "<h3>Left out or changed</h3><ul class=\"plain\">");
        begun = true;
        KILN_HTML(h, "<li>");
        kiln_plural(h, kiln_json_count_of(missing, "count"), "photo is missing, first ",
                    "photos are missing, first ");
        kiln_html_text(h, kiln_json_text_of(missing, "first"));
        KILN_HTML(h, "</li>");
    }
    if (begun) KILN_HTML(h, "</ul>");
}

/* ---- splits and lenses ----------------------------------------------------------------------- */
static void write_split(kiln_html *h, const kiln_report *r)
{
    const kiln_bake_views *v = &r->bake->views;
    const json_t *split = json_object_get(kiln_bake_stage(r->bake, "import")->counters, "split");
    uint64_t test = 0, photos = 0, masks = 0, synthetic = 0;
    for (uint32_t i = 0; i < v->n_cameras; i++) {
        test += strcmp(v->cameras[i].split, "test") == 0;
        photos += v->cameras[i].photo[0] != '\0';
        masks += v->cameras[i].mask[0] != '\0';
        synthetic += v->cameras[i].synthetic;
    }
    KILN_HTML(h, "<h3>Cameras</h3>");
    const kiln_fact facts[] = {
        {"Train", kiln_count(v->n_cameras - test)},
        {"Test", kiln_count(test)},
        {"Split by", kiln_text(kiln_json_text_of(split, "rule"))},
        {"With photo", kiln_count(photos)},
        {"With mask", masks ? kiln_count(masks) : kiln_none()},
        {"On our orbit", synthetic ? kiln_count(synthetic) : kiln_none()},
    };
    kiln_facts(h, "facts", facts, sizeof facts / sizeof *facts);
}

/* Cameras of one model and size; focal lengths may differ. */
typedef struct {
    const kiln_bake_camera *first;
    double least, most; /* fx in pixels */
    uint64_t n;
} lens_row;

static uint32_t group_lenses(const kiln_bake_views *v, lens_row *rows, uint32_t capacity)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n_cameras; i++) {
        const kiln_bake_camera *c = &v->cameras[i];
        uint32_t k = 0;
        while (k < n &&
               (strcmp(rows[k].first->model, c->model) != 0 || rows[k].first->width != c->width ||
                rows[k].first->height != c->height || rows[k].first->distorted != c->distorted))
            k++;
        if (k == capacity) continue;
        if (k == n) rows[n++] = (lens_row){.first = c, .least = c->fx, .most = c->fx};
        rows[k].least = fmin(rows[k].least, c->fx);
        rows[k].most = fmax(rows[k].most, c->fx);
        rows[k].n++;
    }
    return n;
}

static void write_angle(kiln_html *h, double pixels, double focal)
{
    kiln_html_fixed(h, 2 * atan(pixels / (2 * focal)) * 180 / M_PI, 1);
    KILN_HTML(h, "\xc2\xb0");
}

static void write_size(kiln_html *h, const void *context)
{
    const kiln_bake_camera *c = ((const lens_row *)context)->first;
    kiln_html_count(h, c->width);
    KILN_HTML(h, " \xc3\x97 ");
    kiln_html_count(h, c->height);
}

static void write_focal(kiln_html *h, const void *context)
{
    const lens_row *l = context;
    kiln_html_fixed(h, l->least, 1);
    if (l->most > l->least) {
        KILN_HTML(h, " to ");
        kiln_html_fixed(h, l->most, 1);
    }
    KILN_HTML(h, " px");
}

static void write_view(kiln_html *h, const void *context)
{
    const kiln_bake_camera *c = ((const lens_row *)context)->first;
    write_angle(h, c->width, c->fx);
    KILN_HTML(h, " \xc3\x97 ");
    write_angle(h, c->height, c->fy);
}

static void write_lenses(kiln_html *h, const kiln_report *r)
{
    static const kiln_column columns[] = {{"Lens", NULL},         {"Cameras", "n"},
                                          {"Picture", "n"},       {"Focal length", "n"},
                                          {"Field of view", "n"}, {"Distorted", NULL}};
    lens_row rows[12];
    const uint32_t n = group_lenses(&r->bake->views, rows, 12);
    kiln_table_begin(h, "Lenses", "", columns, 6);
    for (uint32_t i = 0; i < n; i++) {
        const lens_row *l = &rows[i];
        const kiln_cell cells[] = {
            kiln_text(l->first->model),
            kiln_count(l->n),
            kiln_by(write_size, l),
            kiln_by(write_focal, l),
            kiln_by(write_view, l),
            kiln_text(l->first->distorted ? "yes, photos are undistorted" : "no")};
        kiln_table_row(h, columns, cells, 6);
    }
    kiln_table_end(h);
}

/* Of all stages, as it is the first that is to be read. */
static void write_meaning(kiln_html *h, const kiln_report *r)
{
    bool begun = false;
    const char *sentence;
    for (int s = 0; s < KILN_STAGE_COUNT; s++)
        for (size_t i = 0; (sentence = kiln_meaning_get(r->bake->stages[s].counters, i)); i++) {
            if (!begun)
                KILN_HTML(h,
                          "<h3>What changes the meaning of the results</h3><ul class=\"plain\">");
            begun = true;
            KILN_HTML(h, "<li>");
            kiln_html_text(h, r->bake->stages[s].name);
            KILN_HTML(h, ": ");
            kiln_html_text(h, sentence);
            KILN_HTML(h, "</li>");
        }
    if (begun) KILN_HTML(h, "</ul>");
}

static void write_import_section(kiln_html *h, const kiln_report *r)
{
    write_meaning(h, r);
    write_source(h, r);
    write_files(h, r);
    write_left_out(h, r);
    if (r->bake->views.n_cameras == 0) return;
    write_split(h, r);
    write_lenses(h, r);
}

const kiln_report_section kiln_section_import = {
    .id = "import", .title = "Import", .has = has_import_section, .write = write_import_section};
