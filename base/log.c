/* log -- stderr, at one verbosity for the whole process: main sets it before any thread starts,
 * after that it is only read. A line is written by one call, so that lines of several threads do
 * not mix. */
#include "base/log.h"

#include "base/quote.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
enum { COLUMNS = KILN_COLUMNS, BAR = 24, BAR_LEAST = 4, TEXT = 2048 };

static const char *program = "kiln";
static kiln_log_level level = KILN_LOG_NORMAL;
static const kiln_progress_whole *within; /* NULL: nothing */
static uint64_t told_ns;                  /* when the last line of progress was written within it */

void kiln_log_init(const char *name, kiln_log_level verbosity)
{
    program = name;
    level = verbosity;
}

bool kiln_log_is_stage(void) { return strncmp(program, "kiln-", strlen("kiln-")) == 0; }

kiln_log_level kiln_log_get(void) { return level; }

static const char *renamed, *shown_as; /* of kiln_log_rename */

void kiln_log_rename(const char *path, const char *shown)
{
    renamed = path;
    shown_as = shown;
}

/* Where the quote before a name begins that ends at `end`, the first byte of the path being `at`:
 * the path itself, or its whole place. NULL: it is not quoted. */
static const char *quote_before(const char *text, const char *at, const char *end)
{
    if (*end != '\'' || at == text || (at[-1] != '\'' && at[-1] != '/')) return NULL;
    while (at > text && at[-1] != '\'') at--;
    return at > text ? at - 1 : NULL;
}

/* Writes text with the other name into out. */
static void rename_in(const char *text, char *out, size_t size)
{
    const size_t n = renamed ? strlen(renamed) : 0;
    size_t used = 0;
    const char *at;
    while (n && used < size && (at = strstr(text, renamed))) {
        const char *const quote = quote_before(text, at, at + n);
        const int kept = (int)((quote ? quote : at + n) - text);
        used +=
            (size_t)snprintf(out + used, size - used, "%.*s%s", kept, text, quote ? shown_as : "");
        text = at + n + (quote != NULL);
    }
    if (used < size) (void)snprintf(out + used, size - used, "%s", text);
}

/* If a message cannot be written to stderr, there is no other place to report that: results of
 * these writes are dropped on purpose. A message is one line in a file or a pipe, where programs
 * look for it; on a terminal it is wrapped. */
static void write_line(const char *name, const char *prefix, const char *text)
{
    char named[2 * TEXT], quoted[4 * TEXT], whole[4 * TEXT + 256];
    rename_in(text, named, sizeof named);
    kiln_quote(quoted, sizeof quoted, named);
    (void)snprintf(whole, sizeof whole, "%s: %s%s", name, prefix, quoted);
    if (isatty(STDERR_FILENO)) kiln_wrap(whole, sizeof whole);
    (void)fprintf(stderr, "%s\n", whole);
}

static void KILN_PRINTF(2, 0) line(const char *prefix, const char *fmt, va_list ap)
{
    char text[TEXT];
    if (vsnprintf(text, sizeof text, fmt, ap) >= 0) write_line(program, prefix, text);
}

void kiln_tell_error(const char *name, const char *prefix, const kiln_error *err)
{
    write_line(name, prefix, err->msg);
}

void kiln_warn(const char *fmt, ...)
{
    va_list ap;
    if (level == KILN_LOG_QUIET) return;
    va_start(ap, fmt);
    line("warning: ", fmt, ap);
    va_end(ap);
}

void kiln_say(const char *fmt, ...)
{
    va_list ap;
    if (level == KILN_LOG_QUIET) return;
    va_start(ap, fmt);
    line("", fmt, ap);
    va_end(ap);
}

void kiln_chat(const char *fmt, ...)
{
    va_list ap;
    if (level != KILN_LOG_VERBOSE) return;
    va_start(ap, fmt);
    line("", fmt, ap);
    va_end(ap);
}

/* "1234", "56.7k", "8.9M": short enough for a bar. */
static void short_count(double v, char out[16])
{
    const char *unit = v >= 1e9 ? "G" : v >= 1e6 ? "M" : v >= 1e4 ? "k" : "";
    double scale = v >= 1e9 ? 1e9 : v >= 1e6 ? 1e6 : v >= 1e4 ? 1e3 : 1;
    (void)snprintf(out, 16, "%.*f%s", scale > 1 || v < 10 ? 1 : 0, v / scale, unit);
}

void kiln_duration_text(double seconds, char out[32])
{
    const double step = seconds < 20 ? 1 : seconds < 120 ? 5 : seconds < 3600 ? 60 : 600;
    const double rounded = fmin(fmax(1, round(seconds / step) * step), 1e9);
    const long s = (long)rounded, minutes = s / 60;
    if (s < 120)
        (void)snprintf(out, 32, "%ld s", s);
    else if (minutes < 60)
        (void)snprintf(out, 32, "%ld min", minutes);
    else if (minutes % 60)
        (void)snprintf(out, 32, "%ld h %ld min", minutes / 60, minutes % 60);
    else
        (void)snprintf(out, 32, "%ld h", minutes / 60);
}

/* ", bake: about 2 min left"; "" where that is not known. */
static void whole_text(const kiln_progress *p, uint64_t now, char out[64])
{
    const double left = within->seconds_left ? within->seconds_left(within->context, p, now) : NAN;
    char text[32];
    out[0] = '\0';
    if (!isfinite(left)) return;
    kiln_duration_text(left, text);
    (void)snprintf(out, 64, ", %.12s: about %.20s left", within->name, text);
}

static void draw_bar(char bar[BAR + 1], size_t width, double part)
{
    const size_t full = (size_t)((part > 1 ? 1 : part) * (double)width);
    memset(bar, '.', width);
    memset(bar, '#', full);
    bar[width] = '\0';
}

/* On a terminal. What is beside the bar leaves it as much of 80 columns as it needs, and more than
 * nothing. */
static void show_whole_bar(const char *what, double part, const char *left)
{
    char bar[BAR + 1], head[320], tail[80];
    (void)snprintf(head, sizeof head, "%.20s %u of %u: %s ", within->part_name, within->part,
                   within->parts, what);
    (void)snprintf(tail, sizeof tail, " %3.0f%%%s", part * 100, left);
    const size_t used = strlen(head) + strlen(tail) + 2; /* and the brackets */
    draw_bar(bar,
             used + BAR < COLUMNS         ? BAR
             : used + BAR_LEAST < COLUMNS ? COLUMNS - 1 - used
                                          : BAR_LEAST,
             part);
    (void)fprintf(stderr, "\r\033[K%s[%s]%s", head, bar, tail);
    (void)fflush(stderr);
}

static void show(kiln_progress *p, uint64_t now)
{
    double seconds = (double)(now - p->start_ns) / (double)SECOND;
    double part = p->total ? (double)p->done / (double)p->total : 0;
    double rate = seconds > 0 ? (double)p->done / seconds : 0;
    char rate_text[16], speed[64], eta[32] = "", bar[BAR + 1], what[256], left[64] = "",
                                   of[64] = "";
    kiln_quote(what, sizeof what, p->what);
    short_count(rate, rate_text);
    if (rate > 0 && rate < 1)
        (void)snprintf(speed, sizeof speed, "%.*f s each", rate > 0.1 ? 1 : 0, 1 / rate);
    else
        (void)snprintf(speed, sizeof speed, "%s%s%.40s/s", rate_text, p->on_terminal ? " " : "",
                       p->on_terminal ? p->unit : "");
    if (rate > 0 && p->total > p->done) {
        double list_left = (double)(p->total - p->done) / rate;
        (void)snprintf(eta, sizeof eta, ", %.0f s left", list_left < 1 ? 1 : list_left);
    }
    if (within) {
        whole_text(p, now, left);
        (void)snprintf(of, sizeof of, "; %.20s %u of %u", within->part_name, within->part,
                       within->parts);
    }
    if (p->on_terminal && within) {
        show_whole_bar(what, part, left);
    } else if (p->on_terminal) {
        draw_bar(bar, BAR, part);
        (void)fprintf(stderr, "\r\033[K%s [%s] %3.0f%%, %s%s", what, bar, part * 100, speed, eta);
        (void)fflush(stderr);
    } else {
        (void)fprintf(stderr, "%s: %s: %llu of %llu %s, %s%s%s%s\n", program, what,
                      (unsigned long long)p->done, (unsigned long long)p->total, p->unit, speed,
                      eta, of, left);
    }
    p->shown = 1;
    p->last_ns = told_ns = now;
}

void kiln_progress_within(const kiln_progress_whole *w)
{
    if (!told_ns) told_ns = kiln_now_ns();
    within = w;
}

void kiln_progress_start(kiln_progress *p, const char *what, const char *unit, uint64_t total)
{
    uint64_t now = kiln_now_ns();
    *p = (kiln_progress){.what = what,
                         .unit = unit,
                         .total = total,
                         .start_ns = now,
                         .last_ns = now,
                         .on_terminal = isatty(2)};
    /* many short parts must not keep silent for long */
    if (within && !p->on_terminal) p->last_ns = told_ns;
}

void kiln_progress_add(kiln_progress *p, uint64_t n)
{
    uint64_t now = kiln_now_ns();
    p->done += n;
    if (level == KILN_LOG_QUIET || !p->what) return;
    uint64_t wait = !p->on_terminal ? 5 * SECOND : p->shown ? SECOND / 10 : SECOND / 2;
    if (now - p->last_ns >= wait && now - p->start_ns >= SECOND / 2) show(p, now);
}

void kiln_progress_stop(kiln_progress *p)
{
    if (p->shown && p->on_terminal) {
        /* what is done needs no bar; the stage says what came of it */
        (void)fputs("\r\033[K", stderr);
        (void)fflush(stderr);
    }
    p->shown = 0;
}

static uint64_t clock_ns(clockid_t id)
{
    struct timespec t;
    if (clock_gettime(id, &t)) return 0; /* cannot fail for these two clocks on Linux */
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

uint64_t kiln_now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }
int64_t kiln_wall_ns(void) { return (int64_t)clock_ns(CLOCK_REALTIME); }

/* getrusage is no help: its peak includes that of the process that has started this one. */
uint64_t kiln_peak_rss(void)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/self/status", "re");
    if (!f) return 0;
    while (fgets(line, sizeof line, f) && sscanf(line, "VmHWM: %llu", &kib) != 1) continue;
    (void)fclose(f);
    return 1024 * (uint64_t)kib;
}

/* Where the kernel refuses it, the peak stays: it is a figure for people. */
void kiln_peak_rss_forget(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "we");
    if (!f) return;
    (void)fputs("5", f);
    (void)fclose(f);
}
