/* table -- see table.cuh. */
#include "tests/bench/table.cuh"

#include "tests/bench/figures.h"

#include <stdio.h>
#include <time.h>

namespace bench
{

namespace
{

constexpr int MORE_LAUNCHES = 20;

std::string today()
{
    char text[16];
    const time_t now = ::time(nullptr);
    struct tm parts;
    strftime(text, sizeof text, "%Y-%m-%d", gmtime_r(&now, &parts));
    return text;
}

/* The fastest of the others that computes in float32, or of those that do not. */
const bench_figure *fastest(const std::string &what, bool lossy)
{
    const bench_figure *best = nullptr;
    for (const bench_figure &f : bench_figures)
        if (what == f.what && lossy == (bench_lossy == std::string(f.program)) &&
            (!best || f.ms < best->ms))
            best = &f;
    return best;
}

/* "Faster-GS 0.377 (x 1.1)": how many times our time the other takes. */
void print_other(const char *gap, const bench_figure *f, double ours)
{
    if (!f) return;
    printf("%s%s %.*f", gap, f->program, f->ms < 10 ? 3 : f->ms < 100 ? 1 : 0, f->ms);
    if (ours > 0) printf(" (x %.2f)", f->ms / ours);
}

const bench_figure *figure_of(const std::string &what, const std::string &program)
{
    for (const bench_figure &f : bench_figures)
        if (what == f.what && program == f.program) return &f;
    return nullptr;
}

double bytes_each(const row &r)
{
    return r.items > 0 ? static_cast<double>(r.memory) / static_cast<double>(r.items) : 0;
}

/* "23 MiB, 24.2 B each (28)", and of others what they take beside their input, with the time that
 * goes with it. */
void print_memory(const row &r, const goal &g)
{
    if (r.memory == 0) return;
    const double mib = static_cast<double>(r.memory) / (1 << 20);
    printf("  %.*f MiB", mib < 10 ? 1 : 0, mib);
    if (g.bytes_each > 0)
        printf(", %.1f B each (%.0f%s)", bytes_each(r), g.bytes_each,
               bytes_each(r) > g.bytes_each ? ": no" : "");
    for (const bench_memory &m : bench_memories) {
        const bench_figure *f = r.what == m.what ? figure_of(r.what, m.program) : nullptr;
        if (f) printf("; %s %.2f ms, %.0f MiB", m.program, f->ms, m.mib);
    }
}

/* Which of its goals a time reaches. */
const char *reached(const row &r, const goal &g)
{
    return g.aim > 0 && r.gpu <= g.aim   ? "aim"
           : g.bar > 0 && r.gpu <= g.bar ? "bar"
           : g.bar > 0                   ? "no"
                                         : "";
}

void print_number(int width, double v)
{
    if (v < 0)
        printf(" %*s", width, "-");
    else
        printf(" %*.*f", width, v < 10 ? 3 : v < 1000 ? 1 : 0, v);
}

void json_number(FILE *f, const char *name, double v)
{
    if (v >= 0) fprintf(f, ", \"%s\": %.6g", name, v);
}

} // namespace

goal table::goal_of(const row &r) const
{
    goal g;
    for (const bench_goal &known : bench_goals) {
        double unit = known.of ? -1 : 1;
        if (r.what != known.what) continue;
        for (const row &other : rows_)
            if (known.of && other.what == known.of) unit = other.gpu;
        if (known.bar > 0 && unit > 0) g.bar = known.bar * unit;
        if (known.aim > 0 && unit > 0) g.aim = known.aim * unit;
        if (known.bytes_each > 0) g.bytes_each = known.bytes_each;
    }
    return g;
}

void table::json_row(FILE *f, const row &r) const
{
    const goal g = goal_of(r);
    fprintf(f, "  {\"what\": \"%s\", \"items\": %llu", r.what.c_str(),
            static_cast<unsigned long long>(r.items));
    json_number(f, "gpu", r.gpu);
    json_number(f, "gpu_least", r.gpu_least);
    json_number(f, "bytes", r.least_work.bytes);
    json_number(f, "fp32", r.least_work.fp32);
    json_number(f, "sorted", static_cast<double>(r.least_work.sorted));
    json_number(f, "limit", r.limit);
    if (r.limit > 0) json_number(f, "over_limit", r.gpu / r.limit);
    if (r.memory > 0) json_number(f, "memory_bytes", static_cast<double>(r.memory));
    json_number(f, "bar", g.bar);
    json_number(f, "aim", g.aim);
    if (g.bar > 0) fprintf(f, ", \"reached\": \"%s\"", reached(r, g));
    json_number(f, "bytes_each_bar", g.bytes_each);
    const char *gap = "";
    fprintf(f, ", \"others\": {");
    for (const bench_figure &other : bench_figures) {
        if (r.what != other.what) continue;
        fprintf(f, "%s\"%s\": %.6g", gap, other.program, other.ms);
        gap = ", ";
    }
    fprintf(f, "}}");
}

std::string size_name(uint64_t n)
{
    return n % 1000000 == 0 ? std::to_string(n / 1000000) + "M" : std::to_string(n / 1000) + "k";
}

void table::head(const run_facts &f)
{
    facts_ = f;
    printf("%s, CUDA %u.%u, driver CUDA %u.%u; %s, commit %s\n", f.device.name,
           f.device.built_version / 1000, f.device.built_version % 1000 / 10,
           f.device.driver_version / 1000, f.device.driver_version % 1000 / 10, today().c_str(),
           f.commit);
    printf("Medians of %d after %d, ms. MB, M32: the least that must be moved and computed "
           "(millions of float32 instructions);\n"
           "limit: the time that takes at the ceilings below, sort included; x: our time over it. "
           "bar, aim: what is asked, and\n"
           "whether it is reached. Others: one NVIDIA H200, driver 580.159.04, CUDA 13.0 "
           "(tests/bench/figures.h), the fastest\n"
           "and the fastest lossy one, (x) how many times ours they take. MiB: device memory "
           "beside the input.\n",
           f.runs, f.warm_up);
}

void table::add(const ceiling &c)
{
    printf("%-28s %10.3f %-4s", c.what.c_str(), c.value, c.unit);
    for (const bench_ceiling &known : bench_ceilings)
        if (c.what == known.what) printf("  (%.3f)", known.value);
    printf("\n");
    ceilings_.push_back(c);
}

void table::ceilings_of(class ceilings *c, const std::vector<std::pair<uint64_t, int>> &sorts,
                        const std::vector<uint64_t> &scans)
{
    printf("\nceilings, and what the machine of the others reached\n");
    add({"copy, read and written", c->copy_bytes() * 1e-12, "TB/s"});
    add({"fma, float32", c->fp32() * 1e-12, "T/s"});
    for (const auto &s : sorts)
        add({"sort " + std::to_string(s.second) + " bits " + size_name(s.first),
             c->sort_ms(s.first, s.second), "ms"});
    for (const uint64_t n : scans) add({"scan " + size_name(n), c->scan_ms(n), "ms"});
    const double one = c->launches_ms(1), many = c->launches_ms(1 + MORE_LAUNCHES);
    add({"a launch alone", one, "ms"});
    add({"each launch behind it", (many - one) / MORE_LAUNCHES, "ms"});
    fflush(stdout);
}

void table::section(const char *title) const
{
    printf("\n%-28s %10s %9s %8s %8s %8s %6s %6s %6s %-3s  %s\n", title, "items", "ms", "MB", "M32",
           "limit", "x", "bar", "aim", "", "others");
}

void table::add(const row &r)
{
    const cost &c = r.least_work;
    const goal g = goal_of(r);
    printf("%-28s %10llu", r.what.c_str(), static_cast<unsigned long long>(r.items));
    print_number(9, r.gpu);
    print_number(8, c.bytes > 0 ? c.bytes * 1e-6 : -1);
    print_number(8, c.fp32 > 0 ? c.fp32 * 1e-6 : -1);
    print_number(8, r.limit > 0 ? r.limit : -1);
    if (r.limit > 0)
        printf(" %6.1f", r.gpu / r.limit);
    else
        printf(" %6s", "-");
    print_number(6, g.bar);
    print_number(6, g.aim);
    printf(" %-3s", reached(r, g));
    const bench_figure *exact = fastest(r.what, false);
    print_other("  ", exact, r.gpu);
    print_other(exact ? ", " : "  ", fastest(r.what, true), r.gpu);
    print_memory(r, g);
    printf("\n");
    fflush(stdout);
    rows_.push_back(r);
}

void table::add(const finding &f)
{
    printf("%s %s: %llu of %llu %s\n", f.wrong > 0 ? "!!" : "  ", f.what.c_str(),
           static_cast<unsigned long long>(f.wrong), static_cast<unsigned long long>(f.checked),
           f.complaint.c_str());
    fflush(stdout);
    findings_.push_back(f);
}

unsigned table::wrong() const
{
    unsigned n = 0;
    for (const finding &f : findings_) n += f.wrong > 0;
    return n;
}

void table::summary() const
{
    unsigned asked = 0, bars = 0, aims = 0;
    std::string missed;
    const auto count = [&](const std::string &what, bool bar, bool aim) {
        asked++;
        bars += bar;
        aims += aim;
        if (!bar) missed += (missed.empty() ? "" : ", ") + what;
    };
    for (const row &r : rows_) {
        const goal g = goal_of(r);
        if (g.bar > 0) count(r.what, r.gpu <= g.bar, r.gpu <= g.aim);
        if (g.bytes_each > 0) count(r.what + " (memory)", bytes_each(r) <= g.bytes_each, false);
    }
    printf("\n%zu of %zu findings are exact\n", findings_.size() - wrong(), findings_.size());
    if (asked == 0) return;
    printf("%u of %u goals are met, %u of them by the aim%s%s\n", bars, asked, aims,
           missed.empty() ? "" : "; not: ", missed.c_str());
}

void table::write_json(const char *path) const
{
    FILE *f = fopen(path, "w");
    if (!f) die(74, "cannot write the JSON file");
    fprintf(f,
            "{\"version\": 2, \"device\": \"%s\", \"uuid\": \"%s\", \"built_cuda\": %u, "
            "\"driver_cuda\": %u, ",
            facts_.device.name, facts_.device.uuid, facts_.device.built_version,
            facts_.device.driver_version);
    fprintf(
        f,
        "\"date\": \"%s\", \"commit\": \"%s\", \"runs\": %d, \"unit\": \"ms\",\n \"ceilings\": [",
        today().c_str(), facts_.commit, facts_.runs);
    const char *gap = "\n";
    for (const ceiling &c : ceilings_) {
        fprintf(f, "%s  {\"what\": \"%s\", \"value\": %.6g, \"unit\": \"%s\"}", gap, c.what.c_str(),
                c.value, c.unit);
        gap = ",\n";
    }
    fprintf(f, "\n ],\n \"rows\": [");
    gap = "\n";
    for (const row &r : rows_) {
        fprintf(f, "%s", gap);
        json_row(f, r);
        gap = ",\n";
    }
    fprintf(f, "\n ],\n \"exact\": [");
    gap = "\n";
    for (const finding &x : findings_) {
        fprintf(
            f, "%s  {\"what\": \"%s\", \"complaint\": \"%s\", \"checked\": %llu, \"wrong\": %llu}",
            gap, x.what.c_str(), x.complaint.c_str(), static_cast<unsigned long long>(x.checked),
            static_cast<unsigned long long>(x.wrong));
        gap = ",\n";
    }
    fprintf(f, "\n ]}\n");
    if (fclose(f) != 0) die(74, "cannot write the JSON file");
}

} // namespace bench
