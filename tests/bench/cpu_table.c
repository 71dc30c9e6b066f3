/* cpu_table -- prints rows as they come, and keeps them for the JSON file. */
#include "tests/bench/cpu_bench.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void today(char out[16])
{
    const time_t now = time(NULL);
    struct tm parts;
    if (!gmtime_r(&now, &parts) || strftime(out, 16, "%Y-%m-%d", &parts) == 0) out[0] = '\0';
}

void cpu_size_name(uint64_t n, char out[24])
{
    const uint64_t million = 1000000;
    if (n % million == 0)
        snprintf(out, 24, "%lluM", (unsigned long long)(n / million));
    else
        snprintf(out, 24, "%lluk", (unsigned long long)(n / 1000));
}

double cpu_limit(const cpu_bench *b, const cpu_row *r)
{
    const cpu_ceiling *c = r->threads > 1 ? &b->all : &b->one;
    const double moved = r->least.bytes / c->copy_bytes, computed = r->least.fp32 / c->fp32;
    return moved > computed ? moved : computed;
}

static void print_ceiling(const cpu_ceiling *c)
{
    printf("%u thread%s, each: fma %.1f G lanes/s, copy %.1f GB/s (read and written)\n", c->threads,
           c->threads > 1 ? "s" : "", c->fp32 * 1e-9, c->copy_bytes * 1e-9);
}

void cpu_print_head(const cpu_bench *b, const char *commit)
{
    char date[16];
    today(date);
    printf("CPU part: siblings '%s', %u threads; %s, commit %s\n", kiln_ops_cpu()->name, b->threads,
           date, commit);
    printf("Medians, ms: by the clock and of the processor (all threads). limit: processor time "
           "for the least that must be moved\n"
           "or computed at the rates below, measured in this run; x: over it. Ratios: how many "
           "times ours the other takes, medians\n"
           "of pairs of runs in turns.\n");
    print_ceiling(&b->one);
    if (b->threads > 1) print_ceiling(&b->all);
}

void cpu_print_section(const char *title)
{
    printf("\n%-28s %3s %10s %9s %9s %8s %6s  %-10s %9s %9s %6s %6s\n", title, "thr", "items",
           "clock", "CPU", "limit", "x", "other", "clock", "CPU", "clock", "CPU");
}

void cpu_keep_row(cpu_bench *b, const cpu_row *r)
{
    const double limit = cpu_limit(b, r);
    printf("%-28s %3u %10llu %9.1f %9.1f", r->what, r->threads, (unsigned long long)r->items,
           1e3 * r->ours.wall_s, 1e3 * r->ours.cpu_s);
    if (limit > 0)
        printf(" %8.2f %6.1f", 1e3 * limit, r->ours.cpu_s / limit);
    else
        printf(" %8s %6s", "-", "-");
    if (r->peer)
        printf("  %-10s %9.1f %9.1f %6.2f %6.2f", r->peer, 1e3 * r->theirs.wall_s,
               1e3 * r->theirs.cpu_s, r->wall_ratio, r->cpu_ratio);
    printf("\n");
    (void)fflush(stdout); /* a table that cannot be written is not read either */
    if (b->n_rows < CPU_ROWS_MAX) b->rows[b->n_rows++] = *r;
}

void cpu_keep_finding(cpu_bench *b, const cpu_finding *f)
{
    printf("%s %s: %llu of %llu %s\n", f->wrong > 0 ? "!!" : "  ", f->what,
           (unsigned long long)f->wrong, (unsigned long long)f->checked, f->complaint);
    if (b->n_findings < CPU_FINDINGS_MAX) b->findings[b->n_findings++] = *f;
}

void cpu_keep_figure(cpu_bench *b, const cpu_figure *f)
{
    printf("   %-46s %9.2f %s\n", f->what, f->value, f->unit);
    if (b->n_figures < CPU_FIGURES_MAX) b->figures[b->n_figures++] = *f;
}

static void json_row(FILE *f, const cpu_bench *b, const cpu_row *r)
{
    fprintf(f,
            "  {\"what\": \"%s\", \"threads\": %u, \"items\": %llu, \"wall\": %.6g, \"cpu\": %.6g",
            r->what, r->threads, (unsigned long long)r->items, 1e3 * r->ours.wall_s,
            1e3 * r->ours.cpu_s);
    if (r->least.bytes > 0) fprintf(f, ", \"bytes\": %.6g", r->least.bytes);
    if (r->least.fp32 > 0) fprintf(f, ", \"fp32\": %.6g", r->least.fp32);
    if (cpu_limit(b, r) > 0)
        fprintf(f, ", \"limit_cpu\": %.6g, \"over_limit\": %.6g", 1e3 * cpu_limit(b, r),
                r->ours.cpu_s / cpu_limit(b, r));
    if (r->peer)
        fprintf(f,
                ", \"other\": \"%s\", \"other_wall\": %.6g, \"other_cpu\": %.6g, \"ratio_wall\": "
                "%.4g, \"ratio_cpu\": %.4g",
                r->peer, 1e3 * r->theirs.wall_s, 1e3 * r->theirs.cpu_s, r->wall_ratio,
                r->cpu_ratio);
    fprintf(f, "}");
}

static void json_ceiling(FILE *f, const cpu_ceiling *c, const char *end)
{
    fprintf(
        f, "  {\"threads\": %u, \"fma_lanes_per_cpu_s\": %.6g, \"copy_bytes_per_cpu_s\": %.6g}%s\n",
        c->threads, c->fp32, c->copy_bytes, end);
}

kiln_status cpu_write_json(const cpu_bench *b, const char *path, const char *commit,
                           kiln_error *err)
{
    char date[16];
    FILE *f = fopen(path, "w");
    if (!f) return kiln_fail(err, KILN_E_IO, "cannot write '%s': %s", path, strerror(errno));
    today(date);
    fprintf(f,
            "{\"version\": 1, \"cpu\": \"%s\", \"threads\": %u, \"date\": \"%s\", \"commit\": "
            "\"%s\", \"unit\": \"ms\",\n",
            kiln_ops_cpu()->name, b->threads, date, commit);
    fprintf(f, " \"ceilings\": [\n");
    json_ceiling(f, &b->one, ",");
    json_ceiling(f, &b->all, "");
    fprintf(f, " ],\n \"rows\": [\n");
    for (unsigned i = 0; i < b->n_rows; i++) {
        json_row(f, b, &b->rows[i]);
        fprintf(f, "%s\n", i + 1 < b->n_rows ? "," : "");
    }
    fprintf(f, " ],\n \"figures\": [\n");
    for (unsigned i = 0; i < b->n_figures; i++)
        fprintf(f, "  {\"what\": \"%s\", \"value\": %.6g, \"unit\": \"%s\"}%s\n",
                b->figures[i].what, b->figures[i].value, b->figures[i].unit,
                i + 1 < b->n_figures ? "," : "");
    fprintf(f, " ],\n \"exact\": [\n");
    for (unsigned i = 0; i < b->n_findings; i++) {
        const cpu_finding *x = &b->findings[i];
        fprintf(
            f,
            "  {\"what\": \"%s\", \"complaint\": \"%s\", \"checked\": %llu, \"wrong\": %llu}%s\n",
            x->what, x->complaint, (unsigned long long)x->checked, (unsigned long long)x->wrong,
            i + 1 < b->n_findings ? "," : "");
    }
    fprintf(f, " ]}\n");
    const bool bad = ferror(f) != 0;
    if (fclose(f) != 0 || bad) return kiln_fail(err, KILN_E_IO, "cannot write '%s'", path);
    return KILN_OK;
}
