/* log -- writes notes, warnings and progress to stderr. stdout is for data and never written here.
 * The verbosity is process-wide; main sets it once, before any thread starts. Each message is one
 * line, quoted (quote.h); on a terminal it is wrapped at blanks to 80 columns. */
#ifndef KILN_BASE_LOG_H
#define KILN_BASE_LOG_H

#include "base/extern_c.h"
#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

KILN_C_BEGIN

typedef enum { KILN_LOG_QUIET = 0, KILN_LOG_NORMAL = 1, KILN_LOG_VERBOSE = 2 } kiln_log_level;

/* program must stay valid: use a literal */
void kiln_log_init(const char *program, kiln_log_level level);
kiln_log_level kiln_log_get(void);
/* Whether it is a program of one stage, such as kiln-import; kiln convert has options of several,
 * by other names. */
bool kiln_log_is_stage(void);
/* From now on messages say `shown` where they would say 'PATH' or '/FOLDER/PATH', in quotes: a file
 * that the user knows by another name. Both are borrowed; path NULL: as at first. Before any thread
 * starts. */
void kiln_log_rename(const char *path, const char *shown);
void kiln_warn(const char *fmt, ...) KILN_PRINTF(1, 2); /* "kiln-knn: warning: ..." unless quiet */
void kiln_say(const char *fmt, ...) KILN_PRINTF(1, 2);  /* "kiln-knn: ..." unless quiet */
void kiln_chat(const char *fmt, ...) KILN_PRINTF(1, 2); /* only when verbose */
/* Writes "NAME: PREFIXmessage" at any verbosity. The last thing that main does with a failure. */
void kiln_tell_error(const char *name, const char *prefix, const kiln_error *err);

/* Progress is a bar with rate and ETA on a terminal, else a line every few seconds. Nothing is
 * shown if quiet, or for work shorter than half a second. Not thread-safe: only the parent
 * reports. */
typedef struct {
    const char *what, *unit;
    uint64_t total, done;
    uint64_t start_ns, last_ns;
    int on_terminal, shown;
} kiln_progress;
void kiln_progress_start(kiln_progress *p, const char *what, const char *unit, uint64_t total);
/* of one that is {0}, not started: shows nothing */
void kiln_progress_add(kiln_progress *p, uint64_t n);
void kiln_progress_stop(kiln_progress *p);

/* A longer work of which this process does one part, such as a stage of a bake. From now on each
 * line of progress shows the number of the part and the time left of the whole. */
typedef struct {
    const char *name, *part_name; /* "bake", "stage": literals */
    unsigned part, parts;         /* 3 of 7 */
    /* Returns the seconds that are left of the whole, including the rest of this part; NAN:
     * unknown. */
    double (*seconds_left)(void *context, const kiln_progress *p, uint64_t now_ns);
    void *context;
} kiln_progress_whole;
/* borrowed until the next call; NULL: no whole */
void kiln_progress_within(const kiln_progress_whole *whole);
/* Writes a time for people, such as "3 s", "45 s", "2 min", "3 h 20 min": the longer, the rounder.
 * Less than a second counts as one. */
void kiln_duration_text(double seconds, char out[32]);

uint64_t kiln_now_ns(void); /* monotonic */
int64_t kiln_wall_ns(void); /* since 1970 */
/* bytes, of this process so far or since the last kiln_peak_rss_forget */
uint64_t kiln_peak_rss(void);
void kiln_peak_rss_forget(void);

KILN_C_END

#endif
