/* pair_card -- see the header. The radio buttons come before what they show, so that the style
 * alone shows it. */
#include "stages/report/pair_card.h"

static void write_id(kiln_html *h, const kiln_pair_card *c, const char *mode)
{
    kiln_html_text(h, c->set);
    kiln_html_count(h, c->number);
    kiln_html_text(h, mode);
}

static void write_choice(kiln_html *h, const kiln_pair_card *c, const char *mode, const char *label,
                         bool checked)
{
    KILN_HTML(h, "<input type=\"radio\" name=\"");
    write_id(h, c, "");
    KILN_HTML(h, "\" id=\"");
    write_id(h, c, mode);
    KILN_HTML(h, "\" class=\"mode ");
    kiln_html_text(h, mode);
    if (checked)
        KILN_HTML(h, "\" checked>");
    else
        KILN_HTML(h, "\">");
    KILN_HTML(h, "<label for=\"");
    write_id(h, c, mode);
    KILN_HTML(h, "\">");
    kiln_html_text(h, label);
    KILN_HTML(h, "</label>");
}

static bool has_tiles(const kiln_pair_card *c) { return c->tiles && c->tiles->heat.size > 0; }

static void write_choices(kiln_html *h, const kiln_pair_card *c)
{
    const kiln_report_pair *p = c->pair;
    const bool both = p->difference.size > 0;
    if (both && c->beside) write_choice(h, c, "beside", "Beside", true);
    if (both) write_choice(h, c, "compare", "Compare", !c->beside);
    if (p->left.size) write_choice(h, c, "left", c->left, !p->right.size);
    if (p->right.size) write_choice(h, c, "right", c->right, !both);
    if (both) write_choice(h, c, "difference", "Difference", false);
    if (has_tiles(c)) write_choice(h, c, "tiles", "Tiles", !p->left.size && !p->right.size);
}

static void write_file(kiln_html *h, const kiln_buffer *b, const char *layer, const char *alt,
                       const kiln_report_pair *p)
{
    if (b->size == 0) return;
    KILN_HTML(h, "<img decoding=\"async\"");
    KILN_ATTR(h, "class", layer);
    KILN_ATTR(h, "alt", alt);
    KILN_ATTR_XY(h, "width", p->width);
    KILN_ATTR_XY(h, "height", p->height);
    KILN_HTML(h, " src=\"data:image/jpeg;base64,");
    kiln_html_base64(h, b->data, b->size);
    KILN_HTML(h, "\">");
}

/* Tiles may reach beyond the picture's borders, which cut them. */
static void write_tiles(kiln_html *h, const kiln_view_pictures *v)
{
    enum { TILE = 16 };
    KILN_HTML(h,
              "<svg class=\"tiles\" role=\"img\" aria-label=\"pairs of each tile\" viewBox=\"0 0 ");
    kiln_html_path_number(h, v->image->width);
    kiln_html_path_number(h, v->image->height);
    KILN_HTML(h, "\"><image preserveAspectRatio=\"none\"");
    KILN_ATTR_XY(h, "width", (double)TILE * v->tiles_x);
    KILN_ATTR_XY(h, "height", (double)TILE * v->tiles_y);
    KILN_HTML(h, " href=\"data:image/webp;base64,");
    kiln_html_base64(h, v->heat.data, v->heat.size);
    KILN_HTML(h, "\"/></svg>");
}

static void write_slider(kiln_html *h, const kiln_pair_card *c)
{
    enum { LABELLED = 180 /* pixels; on a narrower picture the labels would meet */ };
    KILN_HTML(h, "<div class=\"handle\"></div>");
    if (c->pair->width >= LABELLED) {
        KILN_HTML(h, "<span class=\"side first\">");
        kiln_html_text(h, c->left);
        KILN_HTML(h, "</span><span class=\"side second\">");
        kiln_html_text(h, c->right);
        KILN_HTML(h, "</span>");
    }
    KILN_HTML(h, "<input class=\"slider\" type=\"range\" min=\"0\" max=\"100\" step=\"any\" "
                 "value=\"50\" aria-label=\"Border between ");
    kiln_html_text(h, c->left);
    KILN_HTML(h, " and ");
    kiln_html_text(h, c->right);
    KILN_HTML(h, "\">");
}

void kiln_pair_card_write(kiln_html *h, const kiln_pair_card *c)
{
    const kiln_report_pair *p = c->pair;
    if (!p->left.size && !p->right.size && !has_tiles(c)) return;
    write_choices(h, c);
    if (c->exact)
        KILN_HTML(h, "<div class=\"stage exact\">");
    else
        KILN_HTML(h, "<div class=\"stage\">");
    write_file(h, &p->right, "right", c->right, p);
    write_file(h, &p->left, "left", c->left, p);
    write_file(h, &p->difference, "difference", "Difference", p);
    if (has_tiles(c)) write_tiles(h, c->tiles);
    if (p->difference.size) write_slider(h, c);
    KILN_HTML(h, "</div>");
}
