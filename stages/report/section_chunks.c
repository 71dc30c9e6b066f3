/* section_chunks -- where the chunks lie, from above and from the side. */
#include "base/vec3.h"
#include "stages/report/report_page.h"

#include "stages/frame/camera_path.h"
#include "stages/report/report_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNKS_SHOWN = 1500 };

static const kiln_layer *layer_of(const kiln_report *r)
{
    return r->bake->layers[KILN_LAYER_baked];
}

static bool has_chunks_section(const kiln_report *r)
{
    return layer_of(r) && layer_of(r)->n_chunks > 0;
}

/* ---- which way is up ------------------------------------------------------------------------- */
typedef struct {
    int up, across, along; /* axes 0 to 2 */
    double sign;           /* of up: 1 or -1 */
    bool known;            /* the scene says so */
} directions;

static directions find_up(const kiln_report *r)
{
    const kiln_scene *s = r->bake->scene;
    double up[3];
    directions d = {.up = 1, .known = s && s->up_axis[0]};
    kiln_camera_path_up(s ? s->up_axis : "",
                        KILN_POSES(r->bake->views.cameras, r->bake->views.n_cameras), up);
    for (int a = 0; a < 3; a++)
        if (fabs(up[a]) > fabs(up[d.up]) * 1.001) d.up = a;
    d.sign = up[d.up] < 0 ? -1 : 1;
    d.across = d.up == 0 ? 1 : 0;
    d.along = d.up == 2 ? 1 : 2;
    return d;
}

/* ---- a map ----------------------------------------------------------------------------------- */
typedef struct {
    double low[3], high[3]; /* what the maps show */
} bounds;

static void cover(bounds *b, const double p[3])
{
    for (int a = 0; a < 3; a++) {
        b->low[a] = fmin(b->low[a], p[a]);
        b->high[a] = fmax(b->high[a], p[a]);
    }
}

static void centre_of(const kiln_report *r, const kiln_bake_camera *c, double out[3])
{
    kiln_pose_centre(c->r, c->t, out);
    for (int a = 0; a < 3 && r->bake->scene; a++) out[a] -= r->bake->scene->origin[a];
}

/* Outliers may lie far outside of the root cube; they would leave a dot of the scene. */
static double inside(const kiln_scene *s, int axis, double v)
{
    if (!s || !s->has_root) return v;
    return fmin(fmax(v, s->root_centre[axis] - s->root_half), s->root_centre[axis] + s->root_half);
}

/* Cameras stand around a scene, so the map shows them up to some half edges from the middle; one
 * that is farther away would leave a dot of the scene. */
static bool is_far(const kiln_scene *s, const double p[3])
{
    const double reach = 6;
    for (int a = 0; s && s->has_root && a < 3; a++)
        if (!(fabs(p[a] - s->root_centre[a]) <= reach * s->root_half)) return true;
    return false;
}

static bounds find_bounds(const kiln_report *r)
{
    const kiln_scene *s = r->bake->scene;
    bounds b = {.low = {INFINITY, INFINITY, INFINITY}, .high = {-INFINITY, -INFINITY, -INFINITY}};
    for (uint32_t i = 0; i < layer_of(r)->n_chunks; i++) {
        const kiln_chunk *c = &layer_of(r)->chunks[i];
        double low[3], high[3];
        for (int a = 0; a < 3; a++) {
            low[a] = inside(s, a, (double)c->box_min[a]);
            high[a] = inside(s, a, (double)c->box_max[a]);
        }
        cover(&b, low);
        cover(&b, high);
    }
    for (uint32_t i = 0; i < r->bake->views.n_cameras; i++) {
        double p[3];
        centre_of(r, &r->bake->views.cameras[i], p);
        if (!is_far(s, p)) cover(&b, p);
    }
    return b;
}

typedef struct {
    int x, y;
    double sign; /* of y: 1: upwards on the page */
    double scale;
    const bounds *b;
} map;

static double place_x(const map *m, double v)
{
    return (fmin(fmax(v, m->b->low[m->x]), m->b->high[m->x]) - m->b->low[m->x]) * m->scale;
}

static double place_y(const map *m, double v)
{
    v = fmin(fmax(v, m->b->low[m->y]), m->b->high[m->y]);
    return (m->sign > 0 ? m->b->high[m->y] - v : v - m->b->low[m->y]) * m->scale;
}

static void write_box(kiln_html *h, const map *m, const kiln_chunk *c, uint64_t most)
{
    const double x0 = place_x(m, (double)c->box_min[m->x]),
                 x1 = place_x(m, (double)c->box_max[m->x]);
    const double ya = place_y(m, (double)c->box_min[m->y]),
                 yb = place_y(m, (double)c->box_max[m->y]);
    KILN_HTML(h, "<rect");
    KILN_ATTR_XY(h, "x", x0);
    KILN_ATTR_XY(h, "y", fmin(ya, yb));
    KILN_ATTR_XY(h, "width", fmax(x1 - x0, 0.6));
    KILN_ATTR_XY(h, "height", fmax(fabs(ya - yb), 0.6));
    KILN_ATTR_XY(h, "fill-opacity", 0.06 + 0.34 * (double)c->count / (double)(most ? most : 1));
    KILN_HTML(h, "><title>");
    kiln_html_text(h, c->name);
    KILN_HTML(h, ": ");
    kiln_html_count(h, c->count);
    KILN_HTML(h, "</title></rect>");
}

static void write_cameras(kiln_html *h, const map *m, const kiln_report *r)
{
    for (uint32_t i = 0; i < r->bake->views.n_cameras && i < CHUNKS_SHOWN; i++) {
        double p[3];
        centre_of(r, &r->bake->views.cameras[i], p);
        const bool far_away = is_far(r->bake->scene, p);
        KILN_HTML(h, "<circle r=\"2.6\"");
        if (far_away) KILN_ATTR(h, "class", "far");
        KILN_ATTR_XY(h, "cx", place_x(m, p[m->x]));
        KILN_ATTR_XY(h, "cy", place_y(m, p[m->y]));
        KILN_HTML(h, "><title>");
        kiln_html_text(h, r->bake->views.cameras[i].name);
        kiln_html_text(h, far_away ? ", farther away" : "");
        KILN_HTML(h, "</title></circle>");
    }
}

static void write_axis(kiln_html *h, const bounds *b, int axis)
{
    static const char *const names[] = {"x", "y", "z"};
    kiln_html_text(h, names[axis]);
    KILN_HTML(h, " ");
    kiln_html_short(h, b->low[axis]);
    KILN_HTML(h, " to ");
    kiln_html_short(h, b->high[axis]);
}

static void write_map(kiln_html *h, const kiln_report *r, const map *m, const char *title)
{
    const kiln_layer *l = layer_of(r);
    const double width = (m->b->high[m->x] - m->b->low[m->x]) * m->scale,
                 height = (m->b->high[m->y] - m->b->low[m->y]) * m->scale;
    uint64_t most = 0;
    for (uint32_t i = 0; i < l->n_chunks; i++)
        most = l->chunks[i].count > most ? l->chunks[i].count : most;
    KILN_HTML(h, "<figure><figcaption>");
    kiln_html_text(h, title);
    KILN_HTML(h, " <small>");
    write_axis(h, m->b, m->x);
    KILN_HTML(h, "; ");
    write_axis(h, m->b, m->y);
    KILN_HTML(h, "</small></figcaption><svg class=\"map\" role=\"img\" aria-label=\"Map of the "
                 "chunks; the table below has their bounds\" "
                 "viewBox=\"-4 -4 ");
    kiln_html_path_number(h, fmax(width, 1) + 8);
    kiln_html_path_number(h, fmax(height, 1) + 8);
    KILN_HTML(h, "\"><g class=\"boxes\">");
    for (uint32_t i = 0; i < l->n_chunks && i < CHUNKS_SHOWN; i++)
        write_box(h, m, &l->chunks[i], most);
    KILN_HTML(h, "</g><g class=\"eyes\">");
    write_cameras(h, m, r);
    KILN_HTML(h, "</g></svg></figure>");
}

static void write_far(kiln_html *h, const kiln_report *r)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < r->bake->views.n_cameras; i++) {
        double p[3];
        centre_of(r, &r->bake->views.cameras[i], p);
        n += is_far(r->bake->scene, p);
    }
    if (n == 0) return;
    KILN_HTML(h, " ");
    kiln_plural(h, n, "camera is farther away than the maps reach, and is a ring at their edge.",
                "cameras are farther away than the maps reach, and are rings at their edge.");
}

static void write_maps(kiln_html *h, const kiln_report *r)
{
    const directions d = find_up(r);
    const bounds b = find_bounds(r);
    double longest = 0;
    for (int a = 0; a < 3; a++) longest = fmax(longest, b.high[a] - b.low[a]);
    const double scale = longest > 0 ? 400 / longest : 1;
    const map above = {.x = d.across, .y = d.along, .sign = -1, .scale = scale, .b = &b};
    const map side = {.x = d.across, .y = d.up, .sign = d.sign, .scale = scale, .b = &b};
    KILN_HTML(h, "<div class=\"plots\">");
    write_map(h, r, &above, "From above");
    write_map(h, r, &side, "From the side");
    KILN_HTML(h, "</div><p class=\"note\">Boxes of means; the fuller a chunk, the more solid. Dots "
                 "are cameras.");
    write_far(h, r);
    if (!d.known)
        KILN_HTML(h, " The scene does not say what is up; this is as most cameras have it.");
    if (layer_of(r)->n_chunks > CHUNKS_SHOWN) {
        KILN_HTML(h, " The first ");
        kiln_html_count(h, CHUNKS_SHOWN);
        KILN_HTML(h, " chunks are drawn.");
    }
    KILN_HTML(h, "</p>");
}

/* ---- numbers --------------------------------------------------------------------------------- */
static int by_count(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void write_sizes(kiln_html *h, const kiln_report *r)
{
    const kiln_layer *l = layer_of(r);
    uint64_t *counts;
    if (h->st != KILN_OK) return;
    h->st = KILN_ALLOC(&counts, l->n_chunks, "counts of chunks", h->err);
    if (h->st != KILN_OK) return;
    for (uint32_t i = 0; i < l->n_chunks; i++) counts[i] = l->chunks[i].count;
    qsort(counts, l->n_chunks, sizeof *counts, by_count);
    const kiln_fact facts[] = {{"Chunks", kiln_count(l->n_chunks)},
                               {"Fewest rows", kiln_count(counts[0])},
                               /* as kiln-chunk says it */
                               {"Median", kiln_count(counts[(l->n_chunks - 1) / 2])},
                               {"Most rows", kiln_count(counts[l->n_chunks - 1])}};
    kiln_facts(h, "facts", facts, sizeof facts / sizeof *facts);
    free(counts);
}

static void write_corner(kiln_html *h, const void *context)
{
    const float *v = context;
    for (int a = 0; a < 3; a++) {
        if (a) KILN_HTML(h, ", ");
        kiln_html_short(h, (double)v[a]);
    }
}

static void write_table(kiln_html *h, const kiln_report *r)
{
    static const kiln_column columns[] = {
        {"Chunk", "hash"}, {"Rows", "n"}, {"From", "n"}, {"To", "n"}};
    const kiln_layer *l = layer_of(r);
    KILN_HTML(h, "<details><summary>Chunks: rows and bounds</summary>");
    kiln_table_begin(h, "Chunks", "", columns, 4);
    for (uint32_t i = 0; i < l->n_chunks && i < CHUNKS_SHOWN; i++) {
        const kiln_chunk *c = &l->chunks[i];
        const kiln_cell cells[] = {kiln_text(c->name), kiln_count(c->count),
                                   kiln_by(write_corner, c->box_min),
                                   kiln_by(write_corner, c->box_max)};
        kiln_table_row(h, columns, cells, 4);
    }
    kiln_table_end(h);
    KILN_HTML(h, "</details>");
}

static void write_chunks_section(kiln_html *h, const kiln_report *r)
{
    write_sizes(h, r);
    write_maps(h, r);
    write_table(h, r);
}

const kiln_report_section kiln_section_chunks = {
    .id = "chunks", .title = "Chunks", .has = has_chunks_section, .write = write_chunks_section};
