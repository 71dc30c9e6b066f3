/* section_pictures -- the first thing of the page: a strip of cameras, the photo beside the
 * picture, the worst first. Of each, one over the other, their difference and the tile heat map can
 * be chosen. */
#include "stages/report/pair_card.h"
#include "stages/report/report_page.h"
#include "stages/report/report_table.h"

#include <math.h>

static bool has_pictures_section(const kiln_report *r) { return r->pictures->n > 0; }

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
    kiln_plural(h, v->image->pairs, "pair", "pairs");
    if (v->heat.size) {
        KILN_HTML(h, " \xc2\xb7 per tile ");
        kiln_html_count(h, v->heat_median);
        KILN_HTML(h, ", at most ");
        kiln_html_count(h, v->heat_most);
    }
    KILN_HTML(h, "</p>");
    kiln_pair_card_write(h, &(kiln_pair_card){.set = "v",
                                              .number = i,
                                              .pair = &v->pair,
                                              .left = "Photo",
                                              .right = "Picture",
                                              .tiles = v,
                                              .beside = true});
    write_why(h, v->no_picture);
    write_why(h, v->no_photo);
    KILN_HTML(h, "</article>");
}

static void write_pictures_section(kiln_html *h, const kiln_report *r)
{
    const kiln_picture_set *s = r->pictures;
    KILN_HTML(h, "<div class=\"views\" tabindex=\"0\" role=\"region\" aria-label=\"Cameras, the "
                 "worst first\">");
    for (uint32_t i = 0; i < s->n; i++) write_card(h, r, i);
    KILN_HTML(h, "</div><p class=\"note\">");
    if (s->n < s->n_images) {
        kiln_html_count(h, s->n);
        KILN_HTML(h, " of ");
        kiln_html_count(h, s->n_images);
        KILN_HTML(h, " cameras: the worst, evenly chosen ones, and the best. ");
    }
    if (s->n_cut) {
        kiln_plural(h, s->n_cut, "camera is", "cameras are");
        KILN_HTML(h, " left out because of --max-mb. ");
    }
    KILN_HTML(h, "The worst is first. Pictures have at most ");
    kiln_html_count(h, KILN_THUMBNAIL_SIDE);
    KILN_HTML(h, " pixels a side. Differences are ");
    kiln_html_count(h, KILN_DIFFERENCE_GAIN);
    KILN_HTML(h, " times as large as they are. Tiles are bright where they have many pairs; per "
                 "tile: the median and the "
                 "most.</p>");
}

const kiln_report_section kiln_section_pictures = {.id = "pictures",
                                                   .title = "Pictures",
                                                   .has = has_pictures_section,
                                                   .write = write_pictures_section};
