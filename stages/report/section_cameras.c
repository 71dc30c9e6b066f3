/* section_cameras -- PSNR and SSIM of all cameras, the worst first; the chosen ones with photo, picture, difference and tile heat
 * map; predicted and measured pairs and memory of each. */
#include "stages/report/report_page.h"

#include "stages/report/pair_card.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool has(const kiln_report *r) { return r->bake->views.n_images + r->bake->views.n_tables > 0; }

static bool is_test(const kiln_camera *c) { return strcmp(c->split, "test") == 0; }

/* ---- sorted plots ------------------------------------------------------------------------------------------------------- */
typedef struct {
    const kiln_image *const *image; /* the worst PSNR first */
    uint32_t n;                     /* that have a photo */
} sorted;

static double metric(const kiln_image *i, bool ssim) { return ssim ? i->ssim : i->psnr; }

static void write_stems(kiln_html *h, const kiln_report *r, const sorted *s, bool ssim, double low, double high, bool test)
{
    const double gap = s->n > 120 ? 0 : 0.3;
    for (uint32_t i = 0; i < s->n; i++) {
        const double v = metric(s->image[i], ssim);
        if (is_test(kiln_bake_view_camera(&r->bake->views, s->image[i]->camera)) != test || !isfinite(v)) continue;
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
    KILN_HTML(h, " <small>cameras by PSNR, the worst first</small></figcaption><div class=\"axis\"><div class=\"scale\"><span>");
    kiln_html_fixed(h, high, ssim ? 4 : 2);
    KILN_HTML(h, "</span><span>");
    kiln_html_fixed(h, low, ssim ? 4 : 2);
    KILN_HTML(h,
              "</span></div><svg class=\"plot\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Sorted plot; the table of "
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
    KILN_HTML(h, "<p class=\"key\"><span class=\"after\">test</span><span class=\"before\">train</span></p><div class=\"plots\">");
    write_sorted(h, r, s, false);
    write_sorted(h, r, s, true);
    KILN_HTML(h, "</div>");
}

/* ---- a camera's pictures ------------------------------------------------------------------------------------------------- */
static void write_why(kiln_html *h, const char *why)
{
    if (!why) return;
    KILN_HTML(h, "<p class=\"note\">");
    kiln_html_text(h, why);
    KILN_HTML(h, "</p>");
}

static void write_card(kiln_html *h, const kiln_report *r, uint32_t i)
{
    const kiln_view_pictures *v = &r->pictures->views[i];
    if (!v->pair.left.size && !v->pair.right.size && !v->heat.size) return;
    KILN_HTML(h, "<article class=\"view\"><h3 class=\"name\">");
    kiln_html_text(h, v->camera->name);
    KILN_HTML(h, " <small>");
    kiln_html_text(h, v->camera->split);
    KILN_HTML(h, "</small></h3><p class=\"numbers\">");
    if (isfinite(v->image->psnr)) {
        kiln_html_fixed(h, v->image->psnr, 2);
        KILN_HTML(h, " dB \xc2\xb7 SSIM ");
        kiln_html_fixed(h, v->image->ssim, 4);
        KILN_HTML(h, " \xc2\xb7 ");
    }
    kiln_html_count(h, v->image->pairs);
    KILN_HTML(h, " pairs");
    if (v->heat.size) {
        KILN_HTML(h, " \xc2\xb7 per tile ");
        kiln_html_count(h, v->heat_median);
        KILN_HTML(h, ", at most ");
        kiln_html_count(h, v->heat_most);
    }
    KILN_HTML(h, "</p>");
    kiln_pair_card_write(
        h, &(kiln_pair_card){.set = "v", .number = i, .pair = &v->pair, .left = "Photo", .right = "Picture", .tiles = v});
    write_why(h, v->no_picture);
    write_why(h, v->no_photo);
    KILN_HTML(h, "</article>");
}

static void write_chosen(kiln_html *h, const kiln_report *r)
{
    const kiln_picture_set *s = r->pictures;
    if (s->n == 0) return;
    KILN_HTML(h, "<p class=\"note\">");
    if (s->n < s->n_images) {
        kiln_html_count(h, s->n);
        KILN_HTML(h, " of ");
        kiln_html_count(h, s->n_images);
        KILN_HTML(h, " cameras: the worst, evenly chosen ones, and the best. ");
    }
    if (s->n_cut) {
        kiln_report_plural(h, s->n_cut, "camera is", "cameras are");
        KILN_HTML(h, " left out because of --max-mb. ");
    }
    KILN_HTML(h, "Pictures have at most ");
    kiln_html_count(h, KILN_THUMBNAIL_SIDE);
    KILN_HTML(h, " pixels a side. Differences are ");
    kiln_html_count(h, KILN_DIFFERENCE_GAIN);
    KILN_HTML(h, " times as large as they are; tiles are bright where they have many pairs; per tile: the median and the "
                 "most.</p><div class=\"views\">");
    for (uint32_t i = 0; i < s->n; i++) write_card(h, r, i);
    KILN_HTML(h, "</div>");
}

/* ---- the table ------------------------------------------------------------------------------------------------------------ */
/* The item of a list whose member `key` is this name. Lists are in the order of cameras, as a rule. */
static const json_t *item_of(const json_t *list, uint32_t at, const char *key, const char *name)
{
    if (strcmp(kiln_json_text_of(json_array_get(list, at), key), name) == 0) return json_array_get(list, at);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(kiln_json_text_of(json_array_get(list, i), key), name) == 0) return json_array_get(list, i);
    return NULL;
}

static void write_known(kiln_html *h, const json_t *v, bool bytes)
{
    KILN_HTML(h, "<td class=\"n\">");
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        KILN_HTML(h, "\xe2\x80\x93");
    else if (bytes)
        kiln_html_bytes(h, (uint64_t)json_integer_value(v));
    else
        kiln_html_count(h, (uint64_t)json_integer_value(v));
    KILN_HTML(h, "</td>");
}

static void write_row(kiln_html *h, const kiln_report *r, uint32_t i)
{
    const kiln_camera *c = &r->bake->views.cameras[i];
    const kiln_image *image = kiln_bake_view_image(&r->bake->views, c->name);
    const kiln_tile_table *table = kiln_bake_view_table(&r->bake->views, c->name);
    const json_t *pruned = item_of(json_object_get(kiln_bake_stage(r->bake, "prune")->counters, "cameras"), i, "camera", c->name);
    const json_t *tiles = item_of(json_object_get(kiln_bake_stage(r->bake, "tiles")->counters, "cameras"), i, "name", c->name);
    KILN_HTML(h, "<tr><th scope=\"row\">");
    kiln_html_text(h, c->name);
    KILN_HTML(h, "</th><td>");
    kiln_html_text(h, c->split);
    KILN_HTML(h, "</td><td class=\"n\">");
    kiln_html_fixed(h, image ? image->psnr : NAN, 3);
    KILN_HTML(h, "</td><td class=\"n\">");
    kiln_html_fixed(h, image ? image->ssim : NAN, 5);
    KILN_HTML(h, "</td>");
    write_known(h, json_array_get(json_object_get(pruned, "pairs"), 1), false);
    KILN_HTML(h, "<td class=\"n\">");
    if (image || table)
        kiln_html_count(h, image ? image->pairs : table->pairs);
    else
        KILN_HTML(h, "\xe2\x80\x93");
    KILN_HTML(h, "</td>");
    write_known(h, json_array_get(json_object_get(pruned, "list_bytes"), 1), true);
    write_known(h, json_object_get(tiles, "predicted_bytes"), true);
    write_known(h, json_object_get(tiles, "predicted_peak_bytes"), true);
    KILN_HTML(h, "</tr>");
}

static void write_table(kiln_html *h, const kiln_report *r)
{
    KILN_HTML(h, "<details><summary>All cameras: metrics, pairs, memory</summary>");
    KILN_TABLE_BEGIN(h, "All cameras", "");
    KILN_HTML(h,
              "<thead><tr><th scope=\"col\">Camera</th><th scope=\"col\">Split</th><th scope=\"col\" class=\"n\">PSNR dB</th>"
              "<th scope=\"col\" class=\"n\">SSIM</th><th scope=\"col\" class=\"n\">Pairs<br>predicted</th>"
              "<th scope=\"col\" class=\"n\">Pairs<br>measured</th><th scope=\"col\" class=\"n\">Lists of a<br>trainer</th>"
              "<th scope=\"col\" class=\"n\">Tile table<br>predicted</th><th scope=\"col\" class=\"n\">Peak<br>predicted</th></tr>"
              "</thead><tbody>");
    for (uint32_t i = 0; i < r->bake->views.n_cameras; i++) write_row(h, r, i);
    KILN_TABLE_END(h);
    KILN_HTML(h, "</details>");
}

static void write_profile(kiln_html *h, const kiln_report *r)
{
    const kiln_bake_views *v = &r->bake->views;
    KILN_FACTS_BEGIN(h);
    KILN_FACT(h, "Profile");
    kiln_html_text(h, v->profile);
    kiln_html_text(h, v->antialiased ? ", antialiased" : "");
    KILN_FACT_END(h);
    KILN_FACT(h, "Near plane");
    kiln_html_short(h, v->near_m);
    KILN_FACT_END(h);
    KILN_FACT_COUNT(h, "Pairs of all cameras", kiln_bake_views_pairs(v));
    KILN_FACTS_END(h);
}

static void write(kiln_html *h, const kiln_report *r)
{
    const kiln_image **images;
    sorted s = {.n = 0};
    uint32_t n;
    if (h->st != KILN_OK) return;
    h->st = kiln_images_sorted(&r->bake->views, &images, &n, h->err);
    if (h->st != KILN_OK) return;
    s.image = images;
    while (s.n < n && !isnan(images[s.n]->psnr)) s.n++;
    write_profile(h, r);
    write_plots(h, r, &s);
    write_chosen(h, r);
    write_table(h, r);
    free(images);
}

const kiln_report_section kiln_section_cameras = {.id = "cameras", .title = "Cameras", .has = has, .write = write};
