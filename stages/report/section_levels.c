/* section_levels -- levels of detail: their numbers, and each drawn beside the full scene where it
 * is for. */
#include "stages/report/report_page.h"

#include "stages/report/pair_card.h"
#include "stages/report/report_table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const json_t *rows_of_levels(const kiln_report *r)
{
    return json_object_get(r->levels, "rows");
}

static bool has_levels_section(const kiln_report *r)
{
    return json_array_size(rows_of_levels(r)) > 0;
}

/* ---- numbers --------------------------------------------------------------------------------- */
enum { FIXED = 5, FIGURES = 9 };

typedef struct {
    kiln_column columns[FIXED + FIGURES];
    char labels[FIGURES][40];
    size_t n;
} level_table;

/* A column for each camera and size for which errors are told. */
static void make_columns(const kiln_report *r, level_table *t)
{
    static const kiln_column fixed[FIXED] = {
        {"Level", "n"}, {"Nodes", "n"}, {"Gaussians", "n"}, {"Drawn", "n"}, {"Bytes", "n"}};
    const json_t *figures = json_object_get(r->levels, "figures");
    memcpy(t->columns, fixed, sizeof fixed);
    t->n = FIXED;
    for (size_t i = 0; i < json_array_size(figures) && i < FIGURES; i++, t->n++) {
        const json_t *f = json_array_get(figures, i);
        const char *place = json_string_value(json_object_get(f, "place"));
        (void)snprintf(t->labels[i], sizeof t->labels[i], "dB %.10s at %.4g", place ? place : "",
                       json_number_value(json_object_get(f, "size")));
        t->columns[t->n] = (kiln_column){t->labels[i], "n"};
    }
}

static void write_level(kiln_html *h, const level_table *t, const json_t *row)
{
    const json_t *psnr = json_object_get(row, "psnr");
    kiln_cell cells[FIXED + FIGURES] = {
        kiln_count(kiln_json_count_of(row, "level")), kiln_count(kiln_json_count_of(row, "nodes")),
        kiln_count(kiln_json_count_of(row, "gaussians")),
        kiln_count(kiln_json_count_of(row, "drawn")), kiln_bytes(kiln_json_count_of(row, "bytes"))};
    for (size_t i = FIXED; i < t->n; i++) {
        const json_t *db = json_array_get(psnr, i - FIXED);
        cells[i] = kiln_decimal(json_is_number(db) ? json_number_value(db) : NAN, 1);
    }
    kiln_table_row(h, t->columns, cells, t->n);
}

static void write_numbers(kiln_html *h, const kiln_report *r)
{
    level_table t;
    make_columns(r, &t);
    kiln_table_begin(h, "Levels of detail", "", t.columns, t.n);
    for (size_t i = 0; i < json_array_size(rows_of_levels(r)); i++)
        write_level(h, &t, json_array_get(rows_of_levels(r), i));
    kiln_table_end(h);
    if (json_is_false(json_object_get(r->levels, "current")))
        KILN_HTML(h, "<p class=\"note\">They are of other chunks than the bake has now, so they "
                     "are not drawn; kiln-lod makes new "
                     "ones.</p>");
    KILN_HTML(h, "<p class=\"note\">Drawn: Gaussians of the whole scene at this level. Decibels: "
                 "what measured "
                 "errors foretell of the pictures of the nearest, the median and the farthest "
                 "camera, at this part of their size.</p>");
}

/* ---- pictures -------------------------------------------------------------------------------- */
static uint64_t bytes_of(const kiln_report *r, uint32_t level)
{
    for (size_t i = 0; i < json_array_size(rows_of_levels(r)); i++) {
        const json_t *row = json_array_get(rows_of_levels(r), i);
        if (kiln_json_count_of(row, "level") == level) return kiln_json_count_of(row, "bytes");
    }
    return 0;
}

static void write_error(kiln_html *h, const kiln_level_picture *p)
{
    if (isinf(p->psnr)) {
        KILN_HTML(h, "equal");
        return;
    }
    kiln_html_fixed(h, p->psnr, 2);
    KILN_HTML(h, " dB, SSIM ");
    kiln_html_fixed(h, p->ssim, 4);
    KILN_HTML(h, ", error ");
    kiln_html_fixed(h, 255 * sqrt(p->mse), 1);
    KILN_HTML(h, " of 255");
}

static void write_picture(kiln_html *h, const kiln_report *r, uint32_t i)
{
    const kiln_level_picture *p = &r->level_pictures->of[i];
    KILN_HTML(h, "<article class=\"level\"><h4>Level ");
    kiln_html_count(h, p->level);
    KILN_HTML(h, " <small>seen from ");
    kiln_html_short(h, sqrt(ldexp(1, (int)p->level)));
    KILN_HTML(h, " times as far, ");
    kiln_html_count(h, p->width);
    KILN_HTML(h, " \xc3\x97 ");
    kiln_html_count(h, p->height);
    if (p->width > p->pair.width || p->height > p->pair.height)
        KILN_HTML(h, " pixels, their middle");
    KILN_HTML(h, "</small></h4><p class=\"numbers\">");
    write_error(h, p);
    KILN_HTML(h, " \xc2\xb7 ");
    kiln_html_count(h, p->rows);
    KILN_HTML(h, " of ");
    kiln_html_count(h, p->full);
    KILN_HTML(h, " Gaussians \xc2\xb7 ");
    kiln_html_bytes(h, bytes_of(r, p->level));
    KILN_HTML(h, "</p>");
    kiln_pair_card_write(h, &(kiln_pair_card){.set = "l",
                                              .number = i,
                                              .pair = &p->pair,
                                              .left = "Full",
                                              .right = "Level",
                                              .exact = true});
    KILN_HTML(h, "</article>");
}

static void write_camera(kiln_html *h, const char *name)
{
    KILN_HTML(h, "<h3 class=\"of\">From ");
    kiln_html_text(h, name);
    KILN_HTML(h, "</h3><div class=\"levels\">");
}

static void write_pictures(kiln_html *h, const kiln_report *r)
{
    const kiln_level_pictures *s = r->level_pictures;
    if (s->n == 0 && s->n_cut == 0) return;
    KILN_HTML(h, "<p class=\"note\">Each level beside the full scene in the size that it is for, "
                 "pixel by pixel: level k has about "
                 "1/2<sup>k</sup> of the Gaussians, for a picture with 1/2<sup>k</sup> of the "
                 "pixels. From the test camera that should lose "
                 "most by the errors that kiln-lod measured, and from one in the middle. Error: "
                 "root mean square of the difference. "
                 "Bytes: the level's, of the whole scene.");
    if (s->n_cut) {
        KILN_HTML(h, " ");
        kiln_plural(h, s->n_cut, "coarser level is", "coarser levels are");
        KILN_HTML(h,
                  " left out, because of their size; kiln render --levels-against DIR draws all.");
    }
    KILN_HTML(h, "</p>");
    for (uint32_t i = 0; i < s->n; i++) {
        if (i && s->of[i].camera != s->of[i - 1].camera) KILN_HTML(h, "</div>");
        if (!i || s->of[i].camera != s->of[i - 1].camera) write_camera(h, s->of[i].camera->name);
        write_picture(h, r, i);
    }
    if (s->n) KILN_HTML(h, "</div>");
}

static void write_levels_section(kiln_html *h, const kiln_report *r)
{
    write_numbers(h, r);
    write_pictures(h, r);
}

const kiln_report_section kiln_section_levels = {.id = "levels",
                                                 .title = "Levels of detail",
                                                 .has = has_levels_section,
                                                 .write = write_levels_section};
