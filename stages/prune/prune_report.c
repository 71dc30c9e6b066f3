/* prune_report -- see the header. Numbers in the record are what the terminal shows, unrounded. */
#include "stages/prune/prune_report.h"

#include "base/minmax.h"
#include "base/count.h"
#include "base/log.h"
#include "base/quote.h"
#include "base/vec3.h"
#include "stages/engine/json_text.h"
#include "stages/engine/meaning.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *text;
} filter_words[KILN_FILTER_KINDS] = {
    [KILN_FILTER_BOX] = {"filter-box", "mean outside a filter's box"},
    [KILN_FILTER_SPHERE] = {"filter-sphere", "mean outside a filter's sphere"},
    [KILN_FILTER_VALUE] = {"filter-value", "a column's value that a filter drops"},
};

static const double shares[] = {0, 0.001, 0.01, 0.5, 0.99, 0.999, 1};
static const char *const share_words[] = {"least", "0.1 %",  "1 %",    "median",
                                          "99 %",  "99.9 %", "largest"};
enum { N_SHARES = sizeof shares / sizeof *shares };

/* ---- record ---------------------------------------------------------------------------------- */
/* Of a rule whose limit is auto: what that stands for, whether it acts, and what it does or would
 * do. */
static void add_auto(const kiln_prune_report *r, int rule, json_t *row)
{
    const double limit = kiln_prune_auto_limit(r->given, (kiln_prune_rule)rule);
    if (isnan(limit)) return;
    (void)json_object_set_new(row, "auto",
                              json_pack("{s:o, s:b, s:I, s:I}", "limit", kiln_json_real(limit),
                                        "acts", r->judgement->act, "would_drop",
                                        (json_int_t)r->judgement->counts[rule][0], "would_clamp",
                                        (json_int_t)r->judgement->counts[rule][1]));
}

static json_t *rules_json(const kiln_prune_report *r)
{
    json_t *out = json_object();
    for (int i = 0; i < KILN_PRUNE_RULES; i++) {
        bool drops;
        const double limit = kiln_prune_rule_limit(r->options, (kiln_prune_rule)i, &drops);
        json_t *row =
            json_pack("{s:I, s:I, s:s}", "dropped", (json_int_t)r->tally->counts[i][0], "clamped",
                      (json_int_t)r->tally->counts[i][1], "policy", drops ? "drop" : "clamp");
        if (row && !isnan(limit)) (void)json_object_set_new(row, "limit", kiln_json_real(limit));
        if (row) add_auto(r, i, row);
        /* a NULL anywhere shows as a missing key: checked below */
        (void)json_object_set_new(out, kiln_prune_rule_infos[i].option, row);
    }
    for (int k = 0; k < KILN_FILTER_KINDS && r->filtered; k++)
        (void)json_object_set_new(out, filter_words[k].name,
                                  json_pack("{s:I, s:i, s:s}", "dropped",
                                            (json_int_t)r->filtered[k], "clamped", 0, "policy",
                                            "drop"));
    return out;
}

static json_t *bins_json(const uint64_t *bins, int n)
{
    json_t *out = json_array();
    for (int i = 0; i < n; i++) (void)json_array_append_new(out, json_integer((json_int_t)bins[i]));
    return out;
}

/* The longest axis that a share of the rows does not exceed: of all rows exactly, else the middle
 * of a bin of 5 %. */
static double scale_at(const uint64_t scales[KILN_TALLY_SCALES], double largest, double share)
{
    return share >= 1 ? largest : kiln_tally_scale_at(scales, share);
}

/* Bins of the record are 16 of the tally's: 0.8 of the natural logarithm each. */
static json_t *scales_json(const uint64_t scales[KILN_TALLY_SCALES], double largest)
{
    enum { JOIN = 16, N = KILN_TALLY_SCALES / JOIN };
    uint64_t bins[N] = {0};
    json_t *out = json_object();
    for (int i = 0; i < KILN_TALLY_SCALES; i++) bins[i / JOIN] += scales[i];
    (void)json_object_set_new(out, "log_lo", kiln_json_real((double)KILN_TALLY_LO));
    (void)json_object_set_new(out, "log_hi", kiln_json_real((double)KILN_TALLY_HI));
    (void)json_object_set_new(out, "histogram", bins_json(bins, N));
    for (int i = 0; i < N_SHARES; i++)
        (void)json_object_set_new(out, share_words[i],
                                  kiln_json_real(scale_at(scales, largest, shares[i])));
    return out;
}

/* Before and after; null: not counted. */
static json_t *pair_json(const kiln_prune_view *v, const uint64_t n[2], uint64_t factor)
{
    return v->missing
               ? json_null()
               : json_pack("[I,I]", (json_int_t)(factor * n[0]), (json_int_t)(factor * n[1]));
}

static json_t *views_json(const kiln_prune_report *r)
{
    json_t *out = json_array();
    for (uint32_t i = 0; i < r->n_views; i++) {
        const kiln_prune_view *v = &r->views[i];
        const kiln_prune_pairs *c = &v->count;
        json_t *touched = v->missing ? json_null()
                                     : json_pack("{s:I, s:I}", "pairs", (json_int_t)c->touched[0],
                                                 "visible", (json_int_t)c->touched[1]);
        (void)json_array_append_new(
            out,
            json_pack("{s:o, s:i, s:i, s:o, s:o, s:o, s:o}", "camera", kiln_json_string(v->camera),
                      "width", (int)v->width, "height", (int)v->height, "visible",
                      pair_json(v, c->visible, 1), "pairs", pair_json(v, c->pairs, 1), "list_bytes",
                      pair_json(v, c->pairs, KILN_PRUNE_LIST_BYTES), "touched", touched));
    }
    return out;
}

/* What of the scene a point of the curve draws; of the first the rules say it. */
static const char *const curve_words[KILN_PRUNE_CURVE_POINTS] = {"kept", "1/2", "1/4", "1/8"};

/* What the rules leave that do not ask cameras. */
static uint64_t left_by_other_rules(const kiln_tally *t)
{
    return t->kept + t->counts[KILN_PRUNE_min_contribution][0] +
           t->counts[KILN_PRUNE_min_visibility][0] + t->counts[KILN_PRUNE_keep][0];
}

static uint64_t curve_rows(const kiln_prune_report *r, unsigned point)
{
    if (point == 0) return r->tally->kept;
    const uint64_t some = kiln_max_u64(r->stats->n >> point, 1);
    return kiln_min_u64(some, left_by_other_rules(r->tally));
}

enum { CURVE_SAME = 99 /* dB where nothing differs that can be told */ };

/* NAN where no pixel was compared. */
static double curve_db(const kiln_prune_curve *c, unsigned point)
{
    if (c->values == 0) return NAN;
    const double mean = c->squares[point] / (double)c->values;
    return mean > 1e-10 ? -10 * log10(mean) : CURVE_SAME;
}

static json_t *curve_json(const kiln_prune_report *r)
{
    json_t *points = json_array();
    for (unsigned k = 0; k < KILN_PRUNE_CURVE_POINTS; k++)
        (void)json_array_append_new(points, json_pack("{s:s, s:I, s:o}", "rows_of", curve_words[k],
                                                      "rows", (json_int_t)curve_rows(r, k), "psnr",
                                                      kiln_json_real(curve_db(r->curve, k))));
    return points;
}

/* A share of the predicted pairs of all views, and of the view that has most. */
typedef struct {
    uint64_t visible, pairs; /* of one view at most; of all views */
    double share, most;      /* 0 to 1 */
    const char *camera;      /* of `most`; NULL: no view has any */
} pairs_share;

/* Of what the rules touch, or of what rules whose limit is auto would touch. */
static pairs_share share_of(const kiln_prune_report *r, bool would)
{
    pairs_share s = {0};
    uint64_t all = 0;
    for (uint32_t i = 0; i < r->n_views; i++) {
        const kiln_prune_view *v = &r->views[i];
        if (v->missing || (would && !v->would_touch)) continue;
        const uint64_t pairs = would ? v->would_touch->pairs : v->count.touched[0];
        const uint64_t visible = would ? v->would_touch->visible : v->count.touched[1];
        const double share = v->count.pairs[0] ? (double)pairs / (double)v->count.pairs[0] : 0.0;
        s.visible = visible > s.visible ? visible : s.visible;
        s.pairs += pairs;
        all += v->count.pairs[0];
        if (share > s.most) s.camera = v->camera;
        s.most = fmax(s.most, share);
    }
    s.share = all ? (double)s.pairs / (double)all : 0.0;
    return s;
}

/* camera: null where no view shows such a row. */
static json_t *share_json(uint64_t rows, const pairs_share *s)
{
    return json_pack("{s:I, s:I, s:o, s:o, s:o}", "rows", (json_int_t)rows, "visible_at_most",
                     (json_int_t)s->visible, "pairs_share", kiln_json_real(s->share),
                     "pairs_share_at_most", kiln_json_real(s->most), "camera",
                     s->camera ? kiln_json_string(s->camera) : json_null());
}

/* What rules touch of what cameras see; what those would that are auto and rest. */
static json_t *touched_json(const kiln_prune_report *r)
{
    const pairs_share does = share_of(r, false), would = share_of(r, true);
    json_t *out = share_json(r->tally->touched, &does);
    if (!out || !r->judgement->touched || r->judgement->act) return out;
    (void)json_object_set_new(out, "auto_would", share_json(r->judgement->touched, &would));
    return out;
}

static json_t *cluster_json(const kiln_prune_voxels_found *c)
{
    json_t *seed = c->solid ? json_array() : json_null();
    for (int a = 0; a < 3 && c->solid; a++)
        (void)json_array_append_new(seed, kiln_json_real(c->seed[a]));
    return json_pack("{s:I, s:I, s:o}", "solid_voxels", (json_int_t)c->solid, "cluster_voxels",
                     (json_int_t)c->kept, "begins_at", seed);
}

kiln_status kiln_prune_report_json(const kiln_prune_report *r, json_t *out, kiln_error *err)
{
    const kiln_tally *t = r->tally;
    json_t *all =
        json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:{s:o, s:o}, s:{s:o, s:o}, s:o}", "rows",
                  (json_int_t)t->rows, "kept", (json_int_t)t->kept, "extent",
                  kiln_json_real((double)kiln_prune_extent(r->stats)), "median_spacing",
                  kiln_json_real(sqrt((double)r->stats->median_spacing2)), "median_scale",
                  kiln_json_real(exp((double)r->stats->median_log_scale)), "rules", rules_json(r),
                  "scales", "before", scales_json(t->scales[0], r->largest[0]), "after",
                  scales_json(t->scales[1], r->largest[1]), "opacities", "before",
                  bins_json(t->opacities[0], KILN_TALLY_OPACITIES), "after",
                  bins_json(t->opacities[1], KILN_TALLY_OPACITIES), "cameras", views_json(r));
    int failed = !all || json_object_update(out, all) != 0;
    json_decref(all);
    if (!failed) failed = json_object_set_new(out, "touched", touched_json(r));
    if (r->looks > 0 && !failed)
        failed = json_object_set_new(
            out, "asked",
            json_pack("{s:i, s:i}", "cameras", (int)r->looks, "masks", (int)r->masks));
    if (r->cluster && !failed)
        failed = json_object_set_new(out, "cluster", cluster_json(r->cluster));
    if (r->curve && !failed) failed = json_object_set_new(out, "curve", curve_json(r));
    if (r->other && !failed)
        failed = json_object_set_new(out, "against",
                                     json_pack("{s:o, s:o}", "manifest",
                                               kiln_json_string(r->against), "scales",
                                               scales_json(r->other->scales[0], r->largest[2])));
    return failed ? kiln_fail(err, KILN_E_NOMEM, "cannot write the report of prune") : KILN_OK;
}

/* ---- terminal -------------------------------------------------------------------------------- */
static void print_rule(bool *headed, const char *name, const char *limit, const uint64_t count[2],
                       const char *text)
{
    if (!*headed)
        kiln_print("%-16s %9s %10s %10s  %s", "rule", "limit", "dropped", "clamped", "looks at");
    *headed = true;
    kiln_print("%-16s %9s %10" PRIu64 " %10" PRIu64 "  %s", name, limit, count[0], count[1], text);
}

/* Is a pass on, whose option has no number? */
static bool is_pass_on(const kiln_prune_report *r, const kiln_prune_rule_info *info)
{
    const char *at = (const char *)r->given + info->given;
    if (info->n_floats) return false;
    if (info->kind == KILN_OPT_BOOL) return *(const bool *)at;
    if (info->kind != KILN_OPT_TEXT) return false;
    const char *text = *(const char *const *)at;
    return strcmp(text, "off") != 0 && strcmp(text, "none") != 0;
}

/* Rules that did something, and passes, which somebody has asked for; all: those that are on, too,
 * and those that are auto and rest. */
static void print_rules(const kiln_prune_report *r)
{
    bool headed = false;
    for (int i = 0; i < KILN_PRUNE_RULES; i++) {
        const uint64_t *count = r->tally->counts[i];
        bool drops;
        char limit[32] = "";
        const double at = kiln_prune_rule_limit(r->options, (kiln_prune_rule)i, &drops);
        const bool rests = isnan(at) && (r->judgement->rules >> i & 1);
        if (count[0] + count[1] == 0 && ((isnan(at) && !rests) || !r->all) &&
            !is_pass_on(r, &kiln_prune_rule_infos[i]))
            continue;
        if (!isnan(at)) (void)snprintf(limit, sizeof limit, "%.4g", at);
        if (rests) (void)snprintf(limit, sizeof limit, "auto: off");
        print_rule(&headed, kiln_prune_rule_infos[i].option, limit, count,
                   kiln_prune_rule_infos[i].looks_at);
    }
    for (int k = 0; k < KILN_FILTER_KINDS && r->filtered; k++)
        if (r->filtered[k])
            print_rule(&headed, filter_words[k].name, "", (uint64_t[2]){r->filtered[k], 0},
                       filter_words[k].text);
}

static void print_bar(uint64_t count, uint64_t most, int width)
{
    enum { LONGEST = 14 };
    const int length = count ? 1 + (int)((double)count / (double)most * (LONGEST - 1)) : 0;
    kiln_print_part("  %10" PRIu64 " %-*.*s", count, width, length, "##############");
}

static void print_histogram(const char *head, uint32_t n, const double *edges, uint64_t (*bins)[2])
{
    uint64_t most = 1;
    uint32_t first = n, last = 0;
    for (uint32_t i = 0; i < n; i++) {
        for (int side = 0; side < 2; side++) most = bins[i][side] > most ? bins[i][side] : most;
        if (bins[i][0] + bins[i][1] == 0) continue;
        first = i < first ? i : first;
        last = i;
    }
    kiln_print_gap();
    kiln_print("%-23s  %-25s  %s", head, "before", "after");
    for (uint32_t i = first; i <= last && i < n; i++) {
        kiln_print_part("%10.3g .. %-9.3g", edges[i], edges[i + 1]);
        print_bar(bins[i][0], most, 14);
        print_bar(bins[i][1], most, 0);
        kiln_print_gap();
    }
}

/* Two lines a decade. */
static void print_scales(const kiln_tally *t)
{
    enum { LO = -26, HI = 12, N = HI - LO }; /* half decades: 10^-13 to 10^6 */
    double edges[N + 1];
    uint64_t bins[N][2] = {{0}};
    const double width = ((double)KILN_TALLY_HI - (double)KILN_TALLY_LO) / KILN_TALLY_SCALES;
    for (int i = 0; i <= N; i++) edges[i] = pow(10, 0.5 * (LO + i));
    for (int i = 0; i < KILN_TALLY_SCALES; i++) {
        const double at = (double)KILN_TALLY_LO + (i + 0.5) * width;
        int bin = (int)floor(at / (0.5 * log(10))) - LO;
        bin = bin < 0 ? 0 : bin >= N ? N - 1 : bin;
        for (int side = 0; side < 2; side++) bins[bin][side] += t->scales[side][i];
    }
    print_histogram("longest axis", N, edges, bins);
}

static void print_opacities(const kiln_tally *t)
{
    enum { N = KILN_TALLY_OPACITIES / 2 };
    double edges[N + 1];
    uint64_t bins[N][2] = {{0}};
    for (int i = 0; i <= N; i++) edges[i] = (double)i / N;
    for (int i = 0; i < KILN_TALLY_OPACITIES; i++)
        for (int side = 0; side < 2; side++) bins[i / 2][side] += t->opacities[side][i];
    print_histogram("opacity", N, edges, bins);
}

/* In percent. */
static double change(const uint64_t pairs[2])
{
    return pairs[0] ? 100 * ((double)pairs[1] / (double)pairs[0] - 1) : 0.0;
}

static void print_views(const kiln_prune_report *r)
{
    kiln_print_gap();
    kiln_print("%-30s %11s %13s %13s %8s", "predicted pairs, profile inria", "size", "before",
               "after", "change");
    for (uint32_t i = 0; i < r->n_views; i++) {
        const kiln_prune_view *v = &r->views[i];
        char size[32];
        (void)snprintf(size, sizeof size, "%ux%u", v->width, v->height);
        if (v->missing) {
            kiln_print("%-30s %11s %13s %13s %8s", v->camera, size, "-", "-", "-");
            continue;
        }
        kiln_print("%-30s %11s %13" PRIu64 " %13" PRIu64 " %7.1f%%", v->camera, size,
                   v->count.pairs[0], v->count.pairs[1], change(v->count.pairs));
    }
}

static void print_views_sum(const kiln_prune_report *r)
{
    uint64_t sum[2] = {0, 0}, most[2] = {0, 0};
    uint32_t n = 0;
    char bytes[2][32];
    for (uint32_t i = 0; i < r->n_views; i++) {
        const uint64_t *pairs = r->views[i].count.pairs;
        if (r->views[i].missing) continue;
        n++;
        for (int side = 0; side < 2; side++) {
            sum[side] += pairs[side];
            most[side] = pairs[side] > most[side] ? pairs[side] : most[side];
        }
    }
    if (n == 0) return;
    if (sum[0] == sum[1]) {
        kiln_print("predicted pairs in %u view%s: %" PRIu64 ", as before", n, n == 1 ? "" : "s",
                   sum[1]);
        kiln_print("lists of all pairs of a view, as gsplat's: %s",
                   kiln_size_text(KILN_PRUNE_LIST_BYTES * most[1], bytes[1]));
        return;
    }
    kiln_print("predicted pairs in %u view%s: %" PRIu64 " before, %" PRIu64 " after (%+.2f%%)", n,
               n == 1 ? "" : "s", sum[0], sum[1], change(sum));
    kiln_print("lists of all pairs of a view, as gsplat's: %s before, %s after",
               kiln_size_text(KILN_PRUNE_LIST_BYTES * most[0], bytes[0]),
               kiln_size_text(KILN_PRUNE_LIST_BYTES * most[1], bytes[1]));
}

static void print_would(const kiln_prune_report *r)
{
    const kiln_prune_judgement *j = r->judgement;
    const pairs_share s = share_of(r, true);
    if (j->touched == 0 || j->act) return;
    for (int i = 0; i < KILN_PRUNE_RULES; i++) {
        if (!(j->rules >> i & 1) || j->counts[i][0] + j->counts[i][1] == 0) continue;
        kiln_print("%s is auto and stays off: %.4g would %s %s", kiln_prune_rule_infos[i].option,
                   kiln_prune_auto_limit(r->given, (kiln_prune_rule)i),
                   j->counts[i][0] ? "drop" : "clamp",
                   KILN_COUNT(j->counts[i][0] + j->counts[i][1], "Gaussian"));
    }
    if (s.camera)
        kiln_print("the Gaussians that it would touch hold at most %.2g %% of a view's predicted "
                   "pairs, less than half",
                   100 * s.most);
    else
        kiln_print("the Gaussians that it would touch hold less than half of every camera's "
                   "predicted pairs");
    if (r->synthetic)
        kiln_print("the scene has no cameras, so %u on an orbit were used", r->synthetic);
}

static void print_touched(const kiln_prune_report *r)
{
    const pairs_share s = share_of(r, false);
    if (s.pairs == 0) return;
    kiln_print("dropped or changed: %s; up to %" PRIu64 " in one view,",
               KILN_COUNT(r->tally->touched, "Gaussian"), s.visible);
    kiln_print("with %.3g %% of the predicted pairs (%.3g %% in '%s')", 100 * s.share, 100 * s.most,
               s.camera);
}

static void print_against(const kiln_prune_report *r)
{
    if (!r->other) return;
    kiln_print_gap();
    kiln_print("the other bake, '%s', holds %s", r->against,
               KILN_COUNT(r->other->rows, "Gaussian"));
    kiln_print("longest axis, in steps of 5 %%; the largest exactly");
    kiln_print("%-14s %14s %14s %14s", "share of rows", "before", "after", "the other");
    for (int i = 0; i < N_SHARES; i++)
        kiln_print("%-14s %14.4g %14.4g %14.4g", share_words[i],
                   scale_at(r->tally->scales[0], r->largest[0], shares[i]),
                   scale_at(r->tally->scales[1], r->largest[1], shares[i]),
                   scale_at(r->other->scales[0], r->largest[2], shares[i]));
}

static void print_curve(const kiln_prune_report *r)
{
    if (!r->curve) return;
    kiln_print_gap();
    kiln_print(
        "fewer Gaussians, those with the highest scores: PSNR of the training cameras' pictures");
    kiln_print("against the pictures of all that the other rules leave (no photos are read)");
    for (unsigned k = 0; k < KILN_PRUNE_CURVE_POINTS; k++) {
        const uint64_t rows = curve_rows(r, k);
        const double db = curve_db(r->curve, k);
        if (k > 0 && rows == r->tally->kept) continue; /* the first line says it */
        if (db < CURVE_SAME)
            kiln_print("%-4s %12" PRIu64 " %8.2f dB", curve_words[k], rows, db);
        else
            kiln_print("%-4s %12" PRIu64 " %8s", curve_words[k], rows, isnan(db) ? "-" : "same");
    }
}

static void print_asked(const kiln_prune_report *r)
{
    if (r->looks == 0) return;
    kiln_print_part("scored by %s", KILN_COUNT(r->looks, r->synthetic ? "camera of our orbit|"
                                                                        "cameras of our orbit"
                                                                      : "training camera"));
    if (r->masks > 0)
        kiln_print_part("; masked pixels of %s do not count", KILN_COUNT(r->masks, "photo"));
    kiln_print_gap();
}

static void print_cluster(const kiln_prune_report *r)
{
    if (r->cluster)
        kiln_print("the cluster has %" PRIu64 " of %s", r->cluster->kept,
                   KILN_COUNT(r->cluster->solid, "solid voxel"));
}

static void print_counts(const kiln_prune_report *r)
{
    const kiln_tally *t = r->tally;
    uint64_t clamped = 0;
    for (int i = 0; i < KILN_PRUNE_RULES; i++) clamped += t->counts[i][1];
    if (t->kept == t->rows)
        kiln_print_part("pruning keeps all %s", KILN_COUNT(t->rows, "Gaussian"));
    else
        kiln_print_part("pruning keeps %" PRIu64 " of %s", t->kept,
                        KILN_COUNT(t->rows, "Gaussian"));
    if (clamped)
        kiln_print_part(", %" PRIu64 " clamped", clamped);
    else
        kiln_print_part(", none clamped");
    kiln_print("%s", r->dry_run ? " (dry run: nothing is written)" : "");
}

static void print_tables(const kiln_prune_report *r)
{
    kiln_print("extent %.4g, median spacing %.4g, median longest axis %.4g",
               (double)kiln_prune_extent(r->stats), sqrt((double)r->stats->median_spacing2),
               exp((double)r->stats->median_log_scale));
    print_scales(r->tally);
    print_opacities(r->tally);
    print_against(r);
    if (r->n_views) print_views(r);
}

void kiln_prune_report_print(const kiln_prune_report *r)
{
    print_counts(r);
    print_rules(r);
    print_cluster(r);
    print_asked(r);
    print_curve(r);
    print_would(r);
    if (r->all) print_tables(r);
    print_touched(r);
    print_views_sum(r);
    /* so that warnings come after it; the engine looks at stdout's state at the end */
    (void)fflush(stdout);
}

/* ---- warnings -------------------------------------------------------------------------------- */
/* Says it now, and keeps it for the end of kiln pipeline. */
static kiln_status KILN_PRINTF(3, 4)
    warn_and_keep(json_t *report, kiln_error *err, const char *fmt, ...)
{
    char sentence[1024];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(sentence, sizeof sentence, fmt, args);
    va_end(args);
    kiln_warn("%s", sentence);
    return kiln_meaning_put(report, err, "%s", sentence);
}

static kiln_status warn_of_scales(const kiln_prune_report *r, json_t *report, kiln_error *err)
{
    for (int i = 1; r->other && i < N_SHARES; i++) { /* the least scale says nothing */
        const double ours = scale_at(r->tally->scales[1], r->largest[1], shares[i]),
                     theirs = scale_at(r->other->scales[0], r->largest[2], shares[i]);
        if (ours <= 0 || theirs <= 0 || (ours <= 4 * theirs && theirs <= 4 * ours)) continue;
        return warn_and_keep(report, err,
                             "the longest axes differ from those of '%s': %s is %.4g here and %.4g "
                             "there, %.3g times as much; are both in "
                             "the same unit?",
                             r->against, share_words[i], ours, theirs,
                             ours > theirs ? ours / theirs : theirs / ours);
    }
    return KILN_OK;
}

/* Pictures change, so that is said where nobody reads the numbers, too. */
static kiln_status warn_of_auto(const kiln_prune_report *r, json_t *report, kiln_error *err)
{
    const kiln_prune_judgement *j = r->judgement;
    char options[256] = "";
    for (int i = 0; i < KILN_PRUNE_RULES; i++) {
        const size_t used = strlen(options);
        if (!(j->rules >> i & 1) || r->tally->counts[i][0] + r->tally->counts[i][1] == 0) continue;
        (void)snprintf(options + used, sizeof options - used, " --%s off",
                       kiln_prune_rule_infos[i].option);
    }
    if (!j->act || !options[0]) return KILN_OK;
    return warn_and_keep(
        report, err, "%s more than half of some camera's predicted pairs%s;%s keeps %s",
        KILN_COUNT(
            j->touched,
            "Gaussian with a far too long axis is dropped or clamped: it holds|Gaussians with "
            "far too long axes are dropped or clamped: they hold"),
        r->synthetic ? " (on an orbit; the scene has no cameras)" : "", options,
        j->touched == 1 ? "it" : "them");
}

static kiln_status warn_of_cluster(const kiln_prune_report *r, json_t *report, kiln_error *err)
{
    const kiln_prune_voxels_found *c = r->cluster;
    if (!c) return KILN_OK;
    if (c->solid == 0)
        return warn_and_keep(report, err,
                             "no voxel is solid, so --filter-cluster drops everything; take a "
                             "larger RES or a smaller OPACITY");
    if (!c->moved) return KILN_OK;
    const double away = kiln_vec3_distance(c->seed, r->given->seed_pos),
                 wide = (double)kiln_prune_extent(r->stats);
    char far[64] = "";
    if (away > wide)
        (void)snprintf(far, sizeof far, ", %.3g away; the scene is %.3g wide", away, wide);
    return warn_and_keep(report, err,
                         "the voxel at --seed-pos is not solid; the cluster begins at the nearest "
                         "one, at %.9g,%.9g,%.9g%s", /* a voxel of a scene in UTM, too */
                         c->seed[0], c->seed[1], c->seed[2], far);
}

/* Where a rule of voxels leaves next to nothing, its size or the seed is rarely what was meant. */
static kiln_status warn_of_little(const kiln_prune_report *r, json_t *report, kiln_error *err)
{
    static const struct {
        int rule;
        const char *change;
    } voxels[] = {
        {KILN_PRUNE_filter_floaters, "a larger SIZE or a smaller OPACITY"},
        {KILN_PRUNE_filter_cluster, "a larger RES, a smaller OPACITY or another --seed-pos"}};
    const double most = 0.9;
    for (size_t i = 0; i < sizeof voxels / sizeof *voxels; i++) {
        const uint64_t dropped = r->tally->counts[voxels[i].rule][0];
        if (r->tally->kept == 0 || (double)dropped <= most * (double)r->tally->rows) continue;
        KILN_TRY(warn_and_keep(report, err, "--%s drops %" PRIu64 " of %s; to keep more, take %s",
                               kiln_prune_rule_infos[voxels[i].rule].option, dropped,
                               KILN_COUNT(r->tally->rows, "Gaussian"), voxels[i].change));
    }
    return KILN_OK;
}

/* What kiln-knn makes of points has a scale from the distance to its neighbours. */
static kiln_status warn_of_points(const kiln_prune_report *r, json_t *report, kiln_error *err)
{
    kiln_voxel_rule rules[2];
    KILN_TRY(kiln_filter_floaters_parse(r->given->filter_floaters, &rules[0], err));
    KILN_TRY(kiln_filter_cluster_parse(r->given->filter_cluster, &rules[1], err));
    if (!r->of_points || (!rules[0].on && !rules[1].on)) return KILN_OK;
    return warn_and_keep(
        report, err,
        "%s judge%s scales and opacities, which these points have from kiln-knn alone: the farther "
        "a point stands from others, the larger it is and the more it counts as solid; "
        "--outlier-sor 16,2 drops points that stand alone",
        rules[0].on && rules[1].on ? "--filter-floaters and --filter-cluster"
        : rules[0].on              ? "--filter-floaters"
                                   : "--filter-cluster",
        rules[0].on && rules[1].on ? "" : "s");
}

kiln_status kiln_prune_report_warn(const kiln_prune_report *r, uint64_t n_named, json_t *report,
                                   kiln_error *err)
{
    const kiln_tally *t = r->tally;
    if (t->rows && t->kept == 0)
        KILN_TRY(warn_and_keep(report, err,
                               "ALL %s dropped, so the scene is empty now; the table shows the "
                               "rule that did it: switch it off with "
                               "--RULE off, or --reset",
                               KILN_COUNT(t->rows, "Gaussian is|Gaussians are")));
    KILN_TRY(warn_of_cluster(r, report, err));
    KILN_TRY(warn_of_little(r, report, err));
    KILN_TRY(warn_of_points(r, report, err));
    if (t->counts[KILN_PRUNE_drop_row][0] < n_named)
        KILN_TRY(warn_and_keep(
            report, err, "%" PRIu64 " of %s not in the scene",
            n_named - t->counts[KILN_PRUNE_drop_row][0],
            KILN_COUNT(n_named, "row named with --drop-row is|rows named with --drop-row are")));
    KILN_TRY(warn_of_auto(r, report, err));
    return warn_of_scales(r, report, err);
}
