/* kiln-compare -- how alike two pictures are, or the pictures of two folders: PSNR and SSIM of
 * their colours, means of their channels. stages/compare/ measures and finds the pairs; this
 * prints. */
#include "base/count.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/quote.h"
#include "stages/compare/compare.h"
#include "stages/engine/engine.h"
#include "stages/engine/program.h"
#include "stages/engine/json_text.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    const char *rect;
} o;

static const kiln_opt options[] = {
    KILN_OPTION_TEXT("rect", &o.rect, "X,Y,W,H",
                     "compare only this part of A; B must be as large as the part or as A"),
    KILN_OPTION_END,
};

static kiln_status parse_rect(const char *text, kiln_compare_rect *out, kiln_error *err)
{
    char after;
    if (strspn(text, "0123456789,") != strlen(text) || strlen(text) > 40 ||
        sscanf(text, "%u,%u,%u,%u%c", &out->x, &out->y, &out->width, &out->height, &after) != 4)
        return kiln_fail(err, KILN_E_USAGE, "--rect takes four whole numbers X,Y,W,H, not '%s'",
                         text);
    return KILN_OK;
}

static kiln_status check_rect(const char *text, kiln_error *err)
{
    kiln_compare_rect rect;
    return parse_rect(text, &rect, err);
}

static const kiln_opt_check checks[] = {{"rect", check_rect}, {NULL, NULL}};

static const char *const notes[] = {
    "Pictures are 8- or 16-bit PNG, JPEG or .npy.",
    "Colours are clamped to [0,1] for PSNR and SSIM; the means are of the values as they stand.",
    "Pictures of the same name in two folders and their subfolders are compared; suffixes may "
    "differ (cam.png and cam.jpg) if each "
    "folder has one picture of a name. The worst come first. Pictures that only one folder has are "
    "listed. Differing or missing "
    "pictures do not change the exit code; it is 3 if a picture cannot be read or has another "
    "size.",
    NULL};

static const kiln_cli cli = {.program = "kiln-compare",
                             .summary = "compares two pictures, or the pictures of two folders",
                             .positionals = "A B",
                             .n_positionals = 2,
                             .tables_note = notes,
                             .options = options,
                             .common = kiln_common_options,
                             .checks = checks};

static unsigned threads(void)
{
    return kiln_common_values.threads ? kiln_common_values.threads : (unsigned)omp_get_num_procs();
}

/* ---- two pictures ---------------------------------------------------------------------------- */

static kiln_status print_document(json_t *doc, kiln_error *err)
{
    char *text = kiln_json_text(doc, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    if (text) kiln_print_json(text); /* stdout is checked at the end of main */
    free(text);
    return text ? KILN_OK : kiln_fail(err, KILN_E_NOMEM, "out of memory for the report");
}

/* psnr is null for equal pictures, where it is infinite; ssim_valid below 11 pixels, where it is
 * not defined. NULL: no memory. */
static json_t *comparison_json(const kiln_comparison *c)
{
    json_t *doc = json_pack(
        "{s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "version", 1, "width", (int)c->width,
        "height", (int)c->height, "psnr", kiln_json_real(c->colour.psnr), "mse",
        kiln_json_real(c->colour.mse), "ssim_same", kiln_json_real(c->colour.ssim_same),
        "ssim_valid", kiln_json_real(c->colour.ssim_valid), "mean_a",
        kiln_json_reals(c->mean_a, c->n_a), "mean_b", kiln_json_reals(c->mean_b, c->n_b));
    if (doc &&
        (!c->has_alpha || json_object_set_new(doc, "psnr_rgba", kiln_json_real(c->psnr_rgba)) == 0))
        return doc;
    json_decref(doc);
    return NULL;
}

static void print_text(const kiln_comparison *c)
{
    kiln_print("psnr       %.6f dB", c->colour.psnr);
    if (c->has_alpha) kiln_print("psnr_rgba  %.6f dB", c->psnr_rgba);
    kiln_print("ssim_same  %.9f (windows beyond the edge, too, as in training losses)",
               c->colour.ssim_same);
    kiln_print("ssim_valid %.9f (whole windows of 11 x 11 alone)", c->colour.ssim_valid);
    kiln_print_part("mean_a    ");
    for (uint32_t i = 0; i < c->n_a; i++) kiln_print_part(" %.9f", c->mean_a[i]);
    kiln_print_gap();
    kiln_print_part("mean_b    ");
    for (uint32_t i = 0; i < c->n_b; i++) kiln_print_part(" %.9f", c->mean_b[i]);
    kiln_print_gap();
}

static kiln_status compare_two(const char *a, const char *b, const kiln_compare_rect *rect,
                               bool json, kiln_error *err)
{
    kiln_comparison c;
    KILN_TRY(kiln_compare_pictures(a, b, rect, threads(), &c, err));
    if (!json) {
        print_text(&c);
        return KILN_OK;
    }
    json_t *doc = comparison_json(&c);
    const kiln_status st = print_document(doc, err);
    json_decref(doc);
    return st;
}

/* ---- two folders ----------------------------------------------------------------------------- */

typedef struct {
    const kiln_compare_pair *pair;
    kiln_comparison c;
    kiln_error failed; /* KILN_OK: compared */
} measured;

typedef struct {
    measured *row; /* what both folders have, the worst first, then what could not be compared */
    size_t n, n_failed, n_equal;
    double psnr, ssim; /* means: of those that differ, of all */
} measured_list;

static int worst_pair_first(const void *a, const void *b)
{
    const measured *x = a, *y = b;
    const int failed = (x->failed.status != KILN_OK) - (y->failed.status != KILN_OK);
    if (failed) return failed;
    if (x->c.colour.psnr != y->c.colour.psnr) return x->c.colour.psnr < y->c.colour.psnr ? -1 : 1;
    return strcmp(x->pair->a, y->pair->a);
}

/* A picture that is no picture, or of another size, is reported with its reason; out of memory ends
 * it all. */
static kiln_status measure_pair(const char *a, const char *b, const kiln_compare_rect *rect,
                                measured *m, kiln_error *err)
{
    char path_a[KILN_PATH_MAX], path_b[KILN_PATH_MAX];
    KILN_TRY(kiln_path_join(path_a, sizeof path_a, a, m->pair->a, err));
    KILN_TRY(kiln_path_join(path_b, sizeof path_b, b, m->pair->b, err));
    const kiln_status st = kiln_compare_pictures(path_a, path_b, rect, threads(), &m->c, err);
    if (st == KILN_OK || st == KILN_E_NOMEM || st == KILN_E_BUG) return st;
    m->failed = *err;
    return KILN_OK;
}

static void add_up(measured_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        const measured *m = &list->row[i];
        if (m->failed.status != KILN_OK) {
            list->n_failed++;
            continue;
        }
        list->ssim += m->c.colour.ssim_same;
        if (isfinite(m->c.colour.psnr))
            list->psnr += m->c.colour.psnr;
        else
            list->n_equal++;
    }
    const size_t compared = list->n - list->n_failed;
    list->ssim /= (double)compared;
    list->psnr /= (double)(compared - list->n_equal);
}

static kiln_status measure_all(const char *a, const char *b, const kiln_picture_pairs *pairs,
                               const kiln_compare_rect *rect, measured_list *out, kiln_error *err)
{
    kiln_progress progress;
    kiln_status st = KILN_OK;
    KILN_TRY(KILN_ALLOC(&out->row, pairs->n, "what is compared", err));
    for (size_t i = 0; i < pairs->n; i++)
        if (pairs->pair[i].a && pairs->pair[i].b) out->row[out->n++].pair = &pairs->pair[i];
    if (out->n == 0)
        return kiln_fail(err, KILN_E_INPUT, "no picture in '%s' has the name of a picture in '%s'",
                         a, b);
    kiln_progress_start(&progress, "comparing", "pictures", out->n);
    for (size_t i = 0; i < out->n && st == KILN_OK; i++) {
        st = measure_pair(a, b, rect, &out->row[i], err);
        kiln_progress_add(&progress, 1);
    }
    kiln_progress_stop(&progress);
    if (st != KILN_OK) return st;
    qsort(out->row, out->n, sizeof *out->row, worst_pair_first);
    add_up(out);
    return KILN_OK;
}

/* "cam.png", or "cam.png cam.jpg". */
static void print_names(const kiln_compare_pair *p)
{
    const bool differ = strcmp(p->a, p->b) != 0;
    kiln_print("%s%s%s", p->a, differ ? " " : "", differ ? p->b : "");
}

static void print_missing(const kiln_picture_pairs *pairs, const char *a, const char *b)
{
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < pairs->n; i++) {
            const kiln_compare_pair *p = &pairs->pair[i];
            if (!(side ? p->a : p->b))
                kiln_print("only in %s: %s", side ? b : a, side ? p->b : p->a);
        }
}

static void print_mean(const measured_list *list, size_t compared)
{
    const bool differ = compared > list->n_equal;
    if (compared == 0) return;
    if (differ) kiln_print_part("%10.3f", list->psnr);
    kiln_print_part("%s  %.5f  mean of %zu", differ ? "  " : "              ", list->ssim,
                    compared);
    if (list->n_equal)
        kiln_print_part(", %zu equal%s", list->n_equal, differ ? ", which psnr leaves out" : "");
    kiln_print_gap();
}

static void print_folders(const measured_list *list, const kiln_picture_pairs *pairs, const char *a,
                          const char *b)
{
    const size_t compared = list->n - list->n_failed;
    kiln_print("   psnr dB    ssim     picture");
    for (size_t i = 0; i < compared; i++) {
        const kiln_metrics *m = &list->row[i].c.colour;
        if (isfinite(m->psnr))
            kiln_print_part("%10.3f", m->psnr);
        else
            kiln_print_part("%10s", "equal");
        kiln_print_part("    %.5f  ", m->ssim_same);
        print_names(list->row[i].pair);
    }
    print_mean(list, compared);
    print_missing(pairs, a, b);
}

static bool append_item(json_t *array, json_t *item)
{
    return item && json_array_append_new(array, item) == 0;
}

static bool fill_folders(const measured_list *list, const kiln_picture_pairs *pairs,
                         json_t *pictures, json_t *failed, json_t *only_a, json_t *only_b)
{
    bool good = true;
    for (size_t i = 0; i < list->n; i++) {
        const measured *m = &list->row[i];
        const bool compared = m->failed.status == KILN_OK;
        json_t *item = compared ? comparison_json(&m->c)
                                : json_pack("{s:o}", "message", kiln_json_string(m->failed.msg));
        good = good && item && json_object_set_new(item, "a", kiln_json_string(m->pair->a)) == 0 &&
               json_object_set_new(item, "b", kiln_json_string(m->pair->b)) == 0;
        good = append_item(compared ? pictures : failed, item) && good;
    }
    for (size_t i = 0; i < pairs->n; i++) {
        if (!pairs->pair[i].b)
            good = append_item(only_a, kiln_json_string(pairs->pair[i].a)) && good;
        if (!pairs->pair[i].a)
            good = append_item(only_b, kiln_json_string(pairs->pair[i].b)) && good;
    }
    return good;
}

/* Main prints it, with the sentence where some could not be compared. */
static kiln_status report_folders(const measured_list *list, const kiln_picture_pairs *pairs,
                                  json_t *report, kiln_error *err)
{
    json_t *pictures = json_array(), *failed = json_array(), *only_a = json_array(),
           *only_b = json_array();
    json_t *doc =
        json_pack("{s:o, s:o, s:I, s:o, s:o, s:o, s:o}", "mean_psnr", kiln_json_real(list->psnr),
                  "mean_ssim_same", kiln_json_real(list->ssim), "equal", (json_int_t)list->n_equal,
                  "pictures", pictures, "failed", failed, "only_in_a", only_a, "only_in_b", only_b);
    const bool filled = doc && fill_folders(list, pairs, pictures, failed, only_a, only_b) &&
                        json_object_update(report, doc) == 0;
    json_decref(doc);
    return filled ? KILN_OK : kiln_fail(err, KILN_E_NOMEM, "out of memory for the report");
}

static kiln_status tell_all(const measured_list *list, const kiln_picture_pairs *pairs,
                            const char *a, const char *b, kiln_run *r, kiln_error *err)
{
    if (kiln_run_json(r))
        KILN_TRY(report_folders(list, pairs, kiln_run_report(r), err));
    else
        print_folders(list, pairs, a, b);
    for (size_t i = list->n - list->n_failed; i < list->n; i++)
        kiln_warn("not compared: %s", list->row[i].failed.msg);
    if (list->n_failed)
        return kiln_fail(err, KILN_E_INPUT, "%zu of %s could not be compared", list->n_failed,
                         KILN_COUNT(list->n, "picture"));
    return KILN_OK;
}

static kiln_status compare_folders(const char *a, const char *b, const kiln_compare_rect *rect,
                                   kiln_run *r, kiln_error *err)
{
    kiln_picture_pairs pairs = {0};
    measured_list list = {0};
    kiln_status st = KILN_OK;
    KILN_GO(kiln_compare_folders(a, b, &pairs, err));
    KILN_GO(measure_all(a, b, &pairs, rect, &list, err));
    KILN_GO(tell_all(&list, &pairs, a, b, r, err));
done:
    free(list.row);
    kiln_picture_pairs_release(&pairs);
    return st;
}

static kiln_status run_compare(kiln_run *r, kiln_error *err)
{
    const char *a = kiln_run_args(r)->positional[0], *b = kiln_run_args(r)->positional[1];
    kiln_compare_rect rect;
    if (o.rect) KILN_TRY(parse_rect(o.rect, &rect, err));
    for (int i = 0; i < 2; i++) { /* a missing one is named, whatever the other is */
        kiln_file_info there;
        if (kiln_file_stat(i ? b : a, &there, err) != KILN_OK) return err->status = KILN_E_INPUT;
    }
    if (kiln_is_dir(a) && kiln_is_dir(b))
        return compare_folders(a, b, o.rect ? &rect : NULL, r, err);
    if (kiln_is_dir(a) || kiln_is_dir(b))
        return kiln_fail(err, KILN_E_USAGE,
                         "'%s' is a folder, but '%s' is not; give two pictures or two folders",
                         kiln_is_dir(a) ? a : b, kiln_is_dir(a) ? b : a);
    return compare_two(a, b, o.rect ? &rect : NULL, kiln_run_json(r), err);
}

static const kiln_stage_program program = {
    .name = "compare", .cli = &cli, .flags = KILN_PROGRAM_OPENS_ITSELF, .run = run_compare};

int main(int argc, char **argv) { return kiln_program_main(&program, argc, argv); }
