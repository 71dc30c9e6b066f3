/* section_prune -- each rule of kiln-prune with what it did and would do at other limits;
 * distributions before and after. */
#include "stages/report/report_page.h"

#include "stages/prune/rules.h"
#include "stages/report/report_table.h"

#include <math.h>
#include <string.h>

static const json_t *record(const kiln_report *r)
{
    return kiln_bake_stage(r->bake, "prune")->counters;
}

static bool has_prune_section(const kiln_report *r)
{
    return json_object_size(json_object_get(record(r), "rules")) > 0;
}

static const char *looks_at(const char *name)
{
    for (size_t i = 0; i < KILN_PRUNE_RULES; i++)
        if (strcmp(kiln_prune_rule_infos[i].option, name) == 0)
            return kiln_prune_rule_infos[i].looks_at;
    return "";
}

/* Does it rest, as its limit is auto? */
static bool rests(const json_t *rule)
{
    const json_t *automatic = json_object_get(rule, "auto");
    return automatic && !json_is_true(json_object_get(automatic, "acts"));
}

/* Rules that are off and did nothing would only be noise. */
static bool is_worth(const json_t *rule)
{
    return rests(rule) || isfinite(kiln_json_number_of(rule, "limit")) ||
           kiln_json_count_of(rule, "dropped") || kiln_json_count_of(rule, "clamped");
}

/* Of a rule that rests: what auto stands for. */
static void write_limit(kiln_html *h, const void *context)
{
    const json_t *rule = context;
    if (!rests(rule)) {
        kiln_html_short(h, kiln_json_number_of(rule, "limit"));
        return;
    }
    KILN_HTML(h, "<small>auto, would be</small> ");
    kiln_html_short(h, kiln_json_number_of(json_object_get(rule, "auto"), "limit"));
}

static void write_policy(kiln_html *h, const void *context)
{
    const json_t *rule = context, *automatic = json_object_get(rule, "auto");
    const uint64_t drop = kiln_json_count_of(automatic, "would_drop"),
                   clamp = kiln_json_count_of(automatic, "would_clamp");
    if (!rests(rule)) {
        kiln_html_text(h, kiln_json_text_of(rule, "policy"));
        return;
    }
    KILN_HTML(h, "off (auto)");
    if (drop + clamp == 0) return;
    if (drop)
        KILN_HTML(h, ", would drop ");
    else
        KILN_HTML(h, ", would clamp ");
    kiln_html_count(h, drop ? drop : clamp);
}

static void write_percent(kiln_html *h, const json_t *shares, const char *key)
{
    const double percent = 100 * kiln_json_number_of(shares, key);
    kiln_html_fixed(h, percent, percent < 0.1 ? 3 : 1);
    KILN_HTML(h, " %");
}

/* What is touched of what cameras see. */
static void write_touched(kiln_html *h, const kiln_report *r)
{
    const json_t *does = json_object_get(record(r), "touched"),
                 *would = json_object_get(does, "auto_would");
    if (kiln_json_number_of(does, "pairs_share") > 0) {
        KILN_HTML(h, "<p class=\"note\">What rules touch shows: it holds ");
        write_percent(h, does, "pairs_share");
        KILN_HTML(h, " of the predicted pairs, at most ");
        write_percent(h, does, "pairs_share_at_most");
        KILN_HTML(h, " in a view.</p>");
    }
    if (would) {
        KILN_HTML(h, "<p class=\"note\">Rules whose limit is auto are off, because what they would "
                     "touch holds at most ");
        write_percent(h, would, "pairs_share_at_most");
        KILN_HTML(h,
                  " of the predicted pairs of these views, and of no camera more than half.</p>");
    }
}

static void write_rules(kiln_html *h, const kiln_report *r)
{
    static const kiln_column columns[] = {{"Rule", NULL}, {"Looks at", NULL}, {"Limit", "n"},
                                          {"Does", NULL}, {"Dropped", "n"},   {"Clamped", "n"}};
    const char *name;
    json_t *rule;
    kiln_table_begin(h, "Rules of prune", "rules", columns, 6);
    json_object_foreach(json_object_get(record(r), "rules"), name, rule)
    {
        const kiln_cell cells[] = {kiln_text(name),
                                   kiln_text(looks_at(name)),
                                   kiln_by(write_limit, rule),
                                   kiln_by(write_policy, rule),
                                   kiln_count(kiln_json_count_of(rule, "dropped")),
                                   kiln_count(kiln_json_count_of(rule, "clamped"))};
        if (is_worth(rule)) kiln_table_row(h, columns, cells, 6);
    }
    kiln_table_end(h);
}

/* ---- other limits ---------------------------------------------------------------------------- */
static void write_share(kiln_html *h, uint64_t n, uint64_t of)
{
    const double percent = of ? 100 * (double)n / (double)of : 0;
    KILN_HTML(h, "<small>");
    kiln_html_fixed(h, percent, percent < 0.1 ? 3 : 1);
    KILN_HTML(h, " %</small>");
}

static void write_trial(kiln_html *h, const kiln_rule_trial *t, uint64_t rows)
{
    KILN_HTML(h, "<tr><th scope=\"row\">");
    kiln_html_text(h, t->name);
    if (t->now < 0) KILN_HTML(h, " <small>off</small>");
    KILN_HTML(h, "</th>");
    for (int i = 0; i < t->n; i++) {
        if (i == t->now)
            KILN_HTML(h, "<td class=\"n now\"><small>");
        else
            KILN_HTML(h, "<td class=\"n\"><small>");
        kiln_html_short(h, t->limits[i]);
        KILN_HTML(h, "</small><b>");
        kiln_html_count(h, t->touched[i]);
        KILN_HTML(h, "</b>");
        if (t->touched[i]) write_share(h, t->touched[i], rows);
        KILN_HTML(h, "</td>");
    }
    KILN_HTML(h, "</tr>");
}

static void write_trials(kiln_html *h, const kiln_report *r)
{
    const kiln_prune_survey *s = r->survey;
    if (!s->has_before) return;
    KILN_HTML(h, "<h3>At other limits</h3><p class=\"note\">How many rows each rule would touch by "
                 "itself: those below a least "
                 "opacity, above a greatest axis or ratio. Marked: the limit of this bake.");
    if (s->before.read < s->before.rows) {
        KILN_HTML(h, " Counted in ");
        kiln_html_count(h, s->before.read);
        KILN_HTML(h, " of ");
        kiln_html_count(h, s->before.rows);
        KILN_HTML(h, " rows.");
    }
    KILN_HTML(h, "</p>");
    kiln_table_begin(h, "Rules at other limits", "trials", NULL, 0);
    for (const kiln_rule_trial *t = s->trials; t->name; t++) write_trial(h, t, s->before.read);
    kiln_table_end(h);
}

/* ---- histograms ------------------------------------------------------------------------------ */
/* Heights are of the square root, so that a bar of few rows is seen beside one of many. */
static void write_bars(kiln_html *h, const kiln_survey_bars *g, int side)
{
    for (int i = 0; i < g->n; i++) {
        if (!g->bars[side][i]) continue;
        const double y = fmax(1.5, 100 * sqrt((double)g->bars[side][i] / (double)g->most));
        KILN_HTML(h, "<rect");
        KILN_ATTR_XY(h, "x", side ? i + 0.3 : i + 0.08);
        KILN_ATTR_XY(h, "y", 100 - y);
        KILN_ATTR_XY(h, "width", side ? 0.4 : 0.84);
        KILN_ATTR_XY(h, "height", y);
        KILN_HTML(h, "/>");
    }
}

static void write_quantiles(kiln_html *h, const char *side, const kiln_distribution *d,
                            kiln_survey_kind kind)
{
    static const double shares[] = {0, 0.01, 0.5, 0.99, 1};
    if (d->rows == 0) return;
    KILN_HTML(h, "<tr><th scope=\"row\"");
    KILN_ATTR(h, "class", side);
    KILN_HTML(h, ">");
    kiln_html_text(h, side);
    KILN_HTML(h, "</th>");
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        KILN_HTML(h, "<td class=\"n\">");
        kiln_html_short(h, kiln_distribution_value(d, kind, shares[i]));
        KILN_HTML(h, "</td>");
    }
    KILN_HTML(h, "</tr>");
}

static void write_tick(kiln_html *h, kiln_survey_kind kind, int bin)
{
    KILN_HTML(h, "<span>");
    kiln_html_short(h, kiln_survey_border(kind, bin));
    KILN_HTML(h, "</span>");
}

static void write_plot(kiln_html *h, const kiln_prune_survey *s, kiln_survey_kind kind)
{
    const kiln_survey_info *info = &kiln_survey_infos[kind];
    const kiln_distribution *const d[2] = {&s->before.of[kind], &s->after.of[kind]};
    kiln_survey_bars g;
    if (d[0]->rows + d[1]->rows == 0) return;
    kiln_survey_join(kind, d, KILN_SURVEY_BARS, &g);
    const int end = g.first + g.n * g.join;
    KILN_HTML(h, "<figure><figcaption>");
    kiln_html_text(h, info->title);
    KILN_HTML(h, " <small>");
    kiln_html_text(h, info->unit);
    KILN_HTML(h, "</small></figcaption><svg class=\"plot\" preserveAspectRatio=\"none\" "
                 "role=\"img\" aria-label=\"Histogram; the table "
                 "below has its quantiles\" viewBox=\"0 0 ");
    kiln_html_path_number(h, (double)(end - g.first) / g.join);
    KILN_HTML(h, "100\"><g class=\"before\">");
    write_bars(h, &g, 0);
    KILN_HTML(h, "</g><g class=\"after\">");
    write_bars(h, &g, 1);
    KILN_HTML(h, "</g></svg><div class=\"ticks\">");
    for (int i = 0; i <= 4; i++) write_tick(h, kind, g.first + (end - g.first) * i / 4);
    KILN_HTML(h, "</div><table class=\"small\"><thead><tr><td></td><th scope=\"col\" "
                 "class=\"n\">least</th><th scope=\"col\" class=\"n\">"
                 "1 %</th><th scope=\"col\" class=\"n\">median</th><th scope=\"col\" "
                 "class=\"n\">99 %</th><th scope=\"col\" class=\"n\">"
                 "most</th></tr></thead><tbody>");
    write_quantiles(h, "before", d[0], kind);
    write_quantiles(h, "after", d[1], kind);
    KILN_HTML(h, "</tbody></table></figure>");
}

static void write_plots(kiln_html *h, const kiln_report *r)
{
    if (!r->survey->has_before && !r->survey->has_after) return;
    KILN_HTML(h, "<h3>Distributions</h3><p class=\"note\">Wide bars: before pruning. Narrow bars: "
                 "after. Heights grow with the square "
                 "root of the rows.</p><div class=\"plots\">");
    for (int k = 0; k < KILN_SURVEY_KINDS; k++) write_plot(h, r->survey, (kiln_survey_kind)k);
    KILN_HTML(h, "</div>");
}

static void write_prune_section(kiln_html *h, const kiln_report *r)
{
    const uint64_t rows = kiln_json_count_of(record(r), "rows"),
                   kept = kiln_json_count_of(record(r), "kept");
    KILN_HTML(h, "<p class=\"lead\">");
    kiln_html_count(h, kept);
    KILN_HTML(h, " of ");
    kiln_plural(h, rows, "Gaussian", "Gaussians");
    KILN_HTML(h, " kept");
    if (rows > kept) {
        KILN_HTML(h, ", ");
        kiln_html_fixed(h, 100 * (double)(rows - kept) / (double)rows, 2);
        KILN_HTML(h, " % dropped");
    }
    KILN_HTML(h, ".</p>");
    write_rules(h, r);
    write_touched(h, r);
    const kiln_fact facts[] = {
        {"Extent", kiln_short(kiln_json_number_of(record(r), "extent"))},
        {"Median spacing", kiln_short(kiln_json_number_of(record(r), "median_spacing"))},
        {"Median longest axis", kiln_short(kiln_json_number_of(record(r), "median_scale"))}};
    kiln_facts(h, "facts", facts, sizeof facts / sizeof *facts);
    write_trials(h, r);
    write_plots(h, r);
}

const kiln_report_section kiln_section_prune = {
    .id = "prune", .title = "Pruning", .has = has_prune_section, .write = write_prune_section};
