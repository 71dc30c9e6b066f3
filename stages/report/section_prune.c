/* section_prune -- each rule of kiln-prune with what it did. */
#include "stages/report/report_page.h"

#include "kernels/prune/prune.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name, *looks_at;
} rules[] = {
#define RULE(number, key, id, option, kind, arg, def, range, policy, n, looks_at, help) {option, looks_at},
#include "kernels/prune/rules.def"
};

static const json_t *record(const kiln_report *r) { return kiln_bake_stage(r->bake, "prune")->counters; }

static bool has(const kiln_report *r) { return json_object_size(json_object_get(record(r), "rules")) > 0; }

static const char *looks_at(const char *name)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i].name, name) == 0) return rules[i].looks_at;
    return "";
}

/* Rules that are off and did nothing would only be noise. */
static bool is_worth(const json_t *rule)
{
    return isfinite(kiln_json_number_of(rule, "limit")) || kiln_json_count_of(rule, "dropped") ||
           kiln_json_count_of(rule, "clamped");
}

static void write_rule(kiln_html *h, const char *name, const json_t *rule)
{
    KILN_HTML(h, "<tr><th scope=\"row\">");
    kiln_html_text(h, name);
    KILN_HTML(h, "</th><td>");
    kiln_html_text(h, looks_at(name));
    KILN_HTML(h, "</td><td class=\"n\">");
    kiln_html_short(h, kiln_json_number_of(rule, "limit"));
    KILN_HTML(h, "</td><td>");
    kiln_html_text(h, kiln_json_text_of(rule, "policy"));
    KILN_HTML(h, "</td><td class=\"n\">");
    kiln_html_count(h, kiln_json_count_of(rule, "dropped"));
    KILN_HTML(h, "</td><td class=\"n\">");
    kiln_html_count(h, kiln_json_count_of(rule, "clamped"));
    KILN_HTML(h, "</td></tr>");
}

static void write_rules(kiln_html *h, const kiln_report *r)
{
    const char *name;
    json_t *rule;
    KILN_TABLE_BEGIN(h, "Rules of prune", "");
    KILN_HTML(h,
              "<thead><tr><th scope=\"col\">Rule</th><th scope=\"col\">Looks at</th><th scope=\"col\" class=\"n\">Limit</th>"
              "<th scope=\"col\">Does</th><th scope=\"col\" class=\"n\">Dropped</th><th scope=\"col\" class=\"n\">Clamped</th></tr>"
              "</thead><tbody>");
    json_object_foreach(json_object_get(record(r), "rules"), name, rule) if (is_worth(rule)) write_rule(h, name, rule);
    KILN_TABLE_END(h);
}

static void write(kiln_html *h, const kiln_report *r)
{
    const uint64_t rows = kiln_json_count_of(record(r), "rows"), kept = kiln_json_count_of(record(r), "kept");
    KILN_HTML(h, "<p class=\"lead\">");
    kiln_html_count(h, kept);
    KILN_HTML(h, " of ");
    kiln_report_plural(h, rows, "Gaussian", "Gaussians");
    KILN_HTML(h, " kept");
    if (rows > kept) {
        KILN_HTML(h, ", ");
        kiln_html_fixed(h, 100 * (double)(rows - kept) / (double)rows, 2);
        KILN_HTML(h, " % dropped");
    }
    KILN_HTML(h, ".</p>");
    write_rules(h, r);
    KILN_FACTS_BEGIN(h);
    KILN_FACT(h, "Extent");
    kiln_html_short(h, kiln_json_number_of(record(r), "extent"));
    KILN_FACT_END(h);
    KILN_FACT(h, "Median spacing");
    kiln_html_short(h, kiln_json_number_of(record(r), "median_spacing"));
    KILN_FACT_END(h);
    KILN_FACT(h, "Median longest axis");
    kiln_html_short(h, kiln_json_number_of(record(r), "median_scale"));
    KILN_FACT_END(h);
    KILN_FACTS_END(h);
}

const kiln_report_section kiln_section_prune = {.id = "prune", .title = "Pruning", .has = has, .write = write};
