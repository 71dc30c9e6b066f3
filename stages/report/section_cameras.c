/* section_cameras -- PSNR and SSIM of all cameras, the worst first; predicted and measured pairs
 * and memory of each. Their pictures are the page's first section (section_pictures.c). */
#include "stages/report/report_page.h"

#include "stages/engine/json_text.h"
#include "stages/report/report_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool has_cameras_section(const kiln_report *r)
{
    return r->bake->views.n_images + r->bake->views.n_tables > 0;
}

/* ---- sorted plots ---------------------------------------------------------------------------- */
typedef struct {
    const kiln_bake_image *const *image; /* the worst PSNR first */
    uint32_t n;                          /* that have a photo */
} sorted;

static double metric(const kiln_bake_image *i, bool ssim) { return ssim ? i->ssim : i->psnr; }

static void write_stems(kiln_html *h, const kiln_report *r, const sorted *s, bool ssim, double low,
                        double high, bool test)
{
    const double gap = s->n > 120 ? 0 : 0.3;
    for (uint32_t i = 0; i < s->n; i++) {
        const double v = metric(s->image[i], ssim);
        const bool is_test =
            strcmp(kiln_bake_view_camera(&r->bake->views, s->image[i]->camera)->split, "test") == 0;
        if (is_test != test || !isfinite(v)) continue;
        const double y = high > low ? 4 + 92 * (high - v) / (high - low) : 50;
        KILN_HTML(h, "<rect");
        KILN_ATTR_XY(h, "x", i + gap / 2);
        KILN_ATTR_XY(h, "y", y);
        KILN_ATTR_XY(h, "width", 1 - gap);
        KILN_ATTR_XY(h, "height", 100 - y);
        KILN_HTML(h, "/>");
    }
}

static void write_sorted(kiln_html *h, const kiln_report *r, const sorted *s, bool ssim)
{
    double low = INFINITY, high = -INFINITY;
    for (uint32_t i = 0; i < s->n; i++) {
        const double v = metric(s->image[i], ssim);
        if (!isfinite(v)) continue;
        low = fmin(low, v);
        high = fmax(high, v);
    }
    if (low > high) return;
    KILN_HTML(h, "<figure><figcaption>");
    kiln_html_text(h, ssim ? "SSIM" : "PSNR");
    kiln_html_text(h, ssim ? "" : " in dB");
    KILN_HTML(h, " <small>cameras by PSNR, the worst first</small></figcaption><div "
                 "class=\"axis\"><div class=\"scale\"><span>");
    kiln_html_fixed(h, high, ssim ? 4 : 2);
    KILN_HTML(h, "</span><span>");
    kiln_html_fixed(h, low, ssim ? 4 : 2);
    KILN_HTML(h, "</span></div><svg class=\"plot\" preserveAspectRatio=\"none\" role=\"img\" "
                 "aria-label=\"Sorted plot; the table of "
                 "all cameras has its numbers\" viewBox=\"0 0 ");
    kiln_html_path_number(h, s->n);
    KILN_HTML(h, "100\"><g class=\"before\">");
    write_stems(h, r, s, ssim, low, high, false);
    KILN_HTML(h, "</g><g class=\"after\">");
    write_stems(h, r, s, ssim, low, high, true);
    KILN_HTML(h, "</g></svg></div><div class=\"ticks names\"><span>");
    kiln_html_text(h, s->image[0]->camera);
    KILN_HTML(h, "</span><span>");
    kiln_html_text(h, s->image[s->n - 1]->camera);
    KILN_HTML(h, "</span></div></figure>");
}

static void write_plots(kiln_html *h, const kiln_report *r, const sorted *s)
{
    if (s->n < 2) return;
    KILN_HTML(h, "<p class=\"key\"><span class=\"after\">test</span><span "
                 "class=\"before\">train</span></p><div class=\"plots\">");
    write_sorted(h, r, s, false);
    write_sorted(h, r, s, true);
    KILN_HTML(h, "</div>");
}

/* ---- the table ------------------------------------------------------------------------------- */
/* What a stage counted of a camera: -1 where it did not. */
typedef struct {
    const char *name;
    json_int_t first, second;
} counted_row;

/* Of all cameras, by name. */
typedef struct {
    counted_row *rows;
    uint32_t n, capacity;
    kiln_texts texts;
    const char *key;            /* of the name */
    const char *first, *second; /* members that are numbers, or the second of two */
} counted_list;

static json_int_t count_in(const json_t *item, const char *key)
{
    const json_t *v = json_object_get(item, key);
    if (json_is_array(v)) v = json_array_get(v, 1); /* before and after */
    return json_is_integer(v) ? json_integer_value(v) : -1;
}

static kiln_status add_counted(void *context, const json_t *item, kiln_error *err)
{
    counted_list *l = context;
    if (l->n == l->capacity) {
        const uint32_t capacity = l->capacity ? 2 * l->capacity : 64;
        counted_row *more = realloc(l->rows, capacity * sizeof *more);
        if (!more) return kiln_fail(err, KILN_E_NOMEM, "out of memory for the cameras");
        l->rows = more;
        l->capacity = capacity;
    }
    counted_row *row = &l->rows[l->n++];
    *row = (counted_row){"", count_in(item, l->first), count_in(item, l->second)};
    return kiln_texts_add(&l->texts, kiln_json_text_of(item, l->key), &row->name, err);
}

static int by_counted_name(const void *a, const void *b)
{
    return strcmp(((const counted_row *)a)->name, ((const counted_row *)b)->name);
}

static kiln_status read_counted(const kiln_report *r, const char *stage, counted_list *l,
                                kiln_error *err)
{
    const char *text = kiln_bake_stage(r->bake, stage)->run.counters;
    if (text) KILN_TRY(kiln_json_each(text, strlen(text), "cameras", add_counted, l, err));
    if (l->n) qsort(l->rows, l->n, sizeof *l->rows, by_counted_name);
    return KILN_OK;
}

static int name_of_counted(const void *name, const void *row)
{
    return strcmp(name, ((const counted_row *)row)->name);
}

/* All -1 where the stage did not count the camera. */
static counted_row counted_of(const counted_list *l, const char *name)
{
    const counted_row *row =
        l->n ? bsearch(name, l->rows, l->n, sizeof *l->rows, name_of_counted) : NULL;
    return row ? *row : (counted_row){name, -1, -1};
}

static void release_counted(counted_list *l)
{
    free(l->rows);
    kiln_texts_release(&l->texts);
}

static kiln_cell known(json_int_t v, bool bytes)
{
    if (v < 0) return kiln_none();
    return bytes ? kiln_bytes((uint64_t)v) : kiln_count((uint64_t)v);
}

static const kiln_column columns[] = {{"Camera", NULL},
                                      {"Split", NULL},
                                      {"PSNR dB", "n"},
                                      {"SSIM", "n"},
                                      {"Pairs\npredicted", "n"},
                                      {"Pairs\nmeasured", "n"},
                                      {"Lists of a\ntrainer", "n"},
                                      {"Tile table\npredicted", "n"},
                                      {"Peak\npredicted", "n"}};
enum { COLUMNS = sizeof columns / sizeof *columns };

static void write_row(kiln_html *h, const kiln_bake_views *v, const kiln_bake_camera *c,
                      const counted_list *of_prune, const counted_list *of_tiles)
{
    const kiln_bake_image *image = kiln_bake_view_image(v, c->name);
    const kiln_bake_table *table = kiln_bake_view_table(v, c->name);
    const counted_row pruned = counted_of(of_prune, c->name), tiles = counted_of(of_tiles, c->name);
    const kiln_cell cells[COLUMNS] = {kiln_text(c->name),
                                      kiln_text(c->split),
                                      kiln_decimal(image ? image->psnr : NAN, 3),
                                      kiln_decimal(image ? image->ssim : NAN, 5),
                                      known(pruned.first, false),
                                      image   ? kiln_count(image->pairs)
                                      : table ? kiln_count(table->pairs)
                                              : kiln_none(),
                                      known(pruned.second, true),
                                      known(tiles.first, true),
                                      known(tiles.second, true)};
    kiln_table_row(h, columns, cells, COLUMNS);
}

static void write_table(kiln_html *h, const kiln_report *r)
{
    const kiln_bake_views *v = &r->bake->views;
    counted_list of_prune = {.key = "camera", .first = "pairs", .second = "list_bytes"};
    counted_list of_tiles = {
        .key = "name", .first = "predicted_bytes", .second = "predicted_peak_bytes"};
    if (h->st == KILN_OK) h->st = read_counted(r, "prune", &of_prune, h->err);
    if (h->st == KILN_OK) h->st = read_counted(r, "tiles", &of_tiles, h->err);
    KILN_HTML(h, "<details><summary>All cameras: metrics, pairs, memory</summary>");
    kiln_table_begin(h, "All cameras", "", columns, COLUMNS);
    for (uint32_t i = 0; i < v->n_cameras; i++)
        write_row(h, v, &v->cameras[i], &of_prune, &of_tiles);
    kiln_table_end(h);
    KILN_HTML(h, "</details>");
    release_counted(&of_prune);
    release_counted(&of_tiles);
}

static void write_name(kiln_html *h, const void *context)
{
    const kiln_bake_views *v = context;
    kiln_html_text(h, v->profile);
    kiln_html_text(h, v->antialiased ? ", antialiased" : "");
}

/* --level of a stage's newest run. */
static const char *level_of(const kiln_report *r, const char *stage)
{
    const char *level = kiln_json_text_of(kiln_bake_stage(r->bake, stage)->parameters, "level");
    return *level ? level : "0";
}

/* Pictures and tile tables may be of other levels of detail. */
static void write_levels(kiln_html *h, const kiln_report *r)
{
    const char *pictures = level_of(r, "render"), *tiles = level_of(r, "tiles");
    const bool both = r->bake->views.n_images && r->bake->views.n_tables;
    if (strcmp(pictures, "0") == 0 && strcmp(tiles, "0") == 0) return;
    if (both && strcmp(pictures, tiles) != 0) {
        KILN_HTML(h, "<p class=\"lead warn\">Pictures are of --level ");
        kiln_html_text(h, pictures);
        KILN_HTML(h, ", tile maps of --level ");
        kiln_html_text(h, tiles);
        KILN_HTML(h, ": they do not show the same Gaussians.</p>");
        return;
    }
    KILN_HTML(h, "<p class=\"note\">Drawn with --level ");
    kiln_html_text(h, r->bake->views.n_images ? pictures : tiles);
    KILN_HTML(h, ", not in full.</p>");
}

static void write_profile(kiln_html *h, const kiln_report *r)
{
    const kiln_bake_views *v = &r->bake->views;
    const kiln_fact facts[] = {{"Profile", kiln_by(write_name, v)},
                               {"Near plane", kiln_short(v->near_m)},
                               {"Pairs of all cameras", kiln_count(kiln_bake_views_pairs(v))}};
    write_levels(h, r);
    kiln_facts(h, "facts", facts, sizeof facts / sizeof *facts);
}

static void write_cameras_section(kiln_html *h, const kiln_report *r)
{
    const kiln_bake_image **images;
    sorted s = {.n = 0};
    uint32_t n;
    if (h->st != KILN_OK) return;
    h->st = kiln_images_sorted(&r->bake->views, &images, &n, h->err);
    if (h->st != KILN_OK) return;
    s.image = images;
    while (s.n < n && !isnan(images[s.n]->psnr)) s.n++;
    write_profile(h, r);
    write_plots(h, r, &s);
    write_table(h, r);
    free(images);
}

const kiln_report_section kiln_section_cameras = {.id = "cameras",
                                                  .title = "Cameras",
                                                  .has = has_cameras_section,
                                                  .write = write_cameras_section};
