/* log -- stderr, at one verbosity for the whole process: main sets it before any thread starts, after that it is
 * only read. A line is written by one call, so that lines of several threads do not mix. */
#include "base/log.h"

#include "base/quote.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
enum { BAR = 24, TEXT = 2048 };

static const char *program = "kiln";
static kiln_log_level level = KILN_LOG_NORMAL;

void kiln_log_init(const char *name, kiln_log_level verbosity)
{
    program = name;
    level = verbosity;
}

kiln_log_level kiln_log_get(void) { return level; }

/* Breaks a line at blanks so that none is wider than a terminal's 80 columns, each but the first with two blanks in front. A word
 * that is wider itself, such as a path, stays whole. */
static void wrap(char *line, size_t room)
{
    enum { COLUMNS = 80, INDENT = 2 };
    size_t n = strlen(line), start = 0, column = 0;
    char *blank = NULL;
    for (size_t i = 0; i < n; i++) {
        if (line[i] == ' ' && i > start) blank = line + i;
        column += ((unsigned char)line[i] & 0xC0) != 0x80; /* bytes that continue a character take no column */
        if (column <= COLUMNS || !blank || n + INDENT + 1 >= room) continue;
        i = (size_t)(blank - line);
        memmove(blank + INDENT + 1, blank + 1, n - i);
        memcpy(blank, "\n  ", INDENT + 1);
        n += INDENT;
        start = i += INDENT;
        column = INDENT;
        blank = NULL;
    }
}

/* If a message cannot be written to stderr, there is no other place to report that: results of these writes are dropped on purpose.
 * A message is one line in a file or a pipe, where programs look for it; on a terminal it is wrapped. */
static void write_line(const char *name, const char *prefix, const char *text)
{
    char quoted[4 * TEXT], whole[4 * TEXT + 256];
    kiln_quote(quoted, sizeof quoted, text);
    (void)snprintf(whole, sizeof whole, "%s: %s%s", name, prefix, quoted);
    if (isatty(STDERR_FILENO)) wrap(whole, sizeof whole);
    (void)fprintf(stderr, "%s\n", whole);
}

static void KILN_PRINTF(2, 0) line(const char *prefix, const char *fmt, va_list ap)
{
    char text[TEXT];
    if (vsnprintf(text, sizeof text, fmt, ap) >= 0) write_line(program, prefix, text);
}

void kiln_tell_error(const char *name, const char *prefix, const kiln_error *err) { write_line(name, prefix, err->msg); }

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

static void show(kiln_progress *p, uint64_t now)
{
    double seconds = (double)(now - p->start_ns) / (double)SECOND;
    double part = p->total ? (double)p->done / (double)p->total : 0;
    double rate = seconds > 0 ? (double)p->done / seconds : 0;
    char rate_text[16], eta[32] = "", bar[BAR + 1], what[256];
    kiln_quote(what, sizeof what, p->what);
    short_count(rate, rate_text);
    if (rate > 0 && p->total > p->done) {
        double left = (double)(p->total - p->done) / rate;
        (void)snprintf(eta, sizeof eta, ", %.0f s left", left < 1 ? 1 : left);
    }
    if (p->on_terminal) {
        size_t full = (size_t)((part > 1 ? 1 : part) * BAR);
        memset(bar, '.', BAR);
        memset(bar, '#', full);
        bar[BAR] = '\0';
        (void)fprintf(stderr, "\r\033[K%s [%s] %3.0f%%, %s %s/s%s", what, bar, part * 100, rate_text, p->unit, eta);
        (void)fflush(stderr);
    } else {
        (void)fprintf(stderr, "%s: %s: %llu of %llu %s, %s/s%s\n", program, what, (unsigned long long)p->done,
                      (unsigned long long)p->total, p->unit, rate_text, eta);
    }
    p->shown = 1;
    p->last_ns = now;
}

void kiln_progress_start(kiln_progress *p, const char *what, const char *unit, uint64_t total)
{
    uint64_t now = kiln_now_ns();
    *p = (kiln_progress){.what = what, .unit = unit, .total = total, .start_ns = now, .last_ns = now, .on_terminal = isatty(2)};
}

void kiln_progress_add(kiln_progress *p, uint64_t n)
{
    uint64_t now = kiln_now_ns();
    p->done += n;
    if (level == KILN_LOG_QUIET) return;
    uint64_t wait = !p->on_terminal ? 5 * SECOND : p->shown ? SECOND / 10 : SECOND / 2;
    if (now - p->last_ns >= wait) show(p, now);
}

void kiln_progress_stop(kiln_progress *p)
{
    if (p->shown && p->on_terminal) {
        (void)fputs("\r\033[K", stderr); /* what is done needs no bar; the stage says what came of it */
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

uint64_t kiln_peak_rss(void)
{
    struct rusage u;
    if (getrusage(RUSAGE_SELF, &u) || u.ru_maxrss < 0) return 0;
    return (uint64_t)u.ru_maxrss * 1024; /* Linux counts KiB */
}

/* Where the kernel refuses it, the peak stays: it is a figure for people. */
void kiln_peak_rss_forget(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "we");
    if (!f) return;
    (void)fputs("5", f);
    (void)fclose(f);
}
