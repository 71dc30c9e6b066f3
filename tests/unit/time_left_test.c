/* time_left -- what a bake says of its own end: from earlier bakes, from sizes, never negative,
 * never jumping; and how progress tells it. */
#include "stages/front/time_left.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static void assert_near(double value, double want, double tolerance)
{
    if (!(fabs(value - want) <= tolerance)) fail_msg("%.17g is not %.17g", value, want);
}

enum { IMPORT, KNN, CHUNK, RENDER, N_STAGES };
static const char *const names[] = {"import", "knn", "chunk", "render"};
static const bool all[] = {true, true, true, true};

static kiln_time_left *fresh(void)
{
    static kiln_time_left t;
    kiln_time_left_init(&t, N_STAGES, names, all, "no such manifest");
    return &t;
}

/* As after an import. */
static kiln_time_left *imported(void)
{
    kiln_time_left *t = fresh();
    t->size =
        (kiln_bake_size){.rows = 1e6, .views = 10, .pixels = 1e7, .photo_pixels = 0, .pairs = NAN};
    t->now = KNN;
    return t;
}

static void nothing_is_said_before_anything_is_known(void **state)
{
    (void)state;
    kiln_time_left *t = fresh();
    assert_true(isnan(kiln_time_left_now(t, 1, 1, 0.5)));
    assert_true(isnan(kiln_time_left_of_stage(t, RENDER)));
    t->size.rows = 1e6; /* but not the cameras */
    assert_false(isnan(kiln_time_left_of_stage(t, CHUNK)));
    assert_true(isnan(kiln_time_left_now(t, 1, 1, 0.5)));
}

static void later_stages_are_part_of_it(void **state)
{
    (void)state;
    kiln_time_left *t = imported();
    const double later = kiln_time_left_of_stage(t, CHUNK) + kiln_time_left_of_stage(t, RENDER);
    assert_near(kiln_time_left_now(t, 1, 1, 1), later, 1e-9); /* this stage's only list is done */
    t->stage[RENDER].runs = false;
    assert_near(kiln_time_left_now(t, 1, 1, 1), kiln_time_left_of_stage(t, CHUNK), 1e-9);
}

static void a_list_is_believed_the_more_the_further_it_is(void **state)
{
    (void)state;
    kiln_time_left *t = imported();
    for (size_t s = CHUNK; s < N_STAGES; s++) t->stage[s].runs = false;
    t->stage[KNN].stored_s = 100;
    assert_near(kiln_time_left_now(t, 4, 4, 0), 96, 1e-9);
    assert_in_range((int)kiln_time_left_now(t, 4, 4, 0.1), 94, 96);
    assert_near(kiln_time_left_now(t, 9, 9, 0.9), 0.81 * 1 + 0.19 * 91, 1e-9);
    assert_near(kiln_time_left_now(t, 300, 300, 0.5), 300, 1e-9); /* it takes longer than before */
    assert_near(kiln_time_left_now(t, 300, 300, 0), 0, 0);        /* never below 0 */
}

static void earlier_bakes_count_more_than_weights_and_by_size(void **state)
{
    (void)state;
    kiln_time_left *t = imported();
    t->stage[CHUNK].stored_s = 40;
    assert_near(kiln_time_left_of_stage(t, CHUNK), 40, 1e-9);
    t->stage[CHUNK].rows = 5e5; /* now there are twice as many */
    assert_near(kiln_time_left_of_stage(t, CHUNK), 80, 1e-9);
    t->stage[CHUNK].rows = 0;
    assert_near(kiln_time_left_of_stage(t, CHUNK), 40, 1e-9);
    /* this bake is twice as slow as the one before: half a second of doubt */
    t->stage[KNN].stored_s = 10;
    t->stage[KNN].took_s = 20;
    assert_near(kiln_time_left_of_stage(t, CHUNK), 40 * 20.5 / 10.5, 1e-9);
}

static void a_slow_machine_shows_in_its_first_stages(void **state)
{
    (void)state;
    kiln_time_left *t = imported();
    const double before = kiln_time_left_of_stage(t, RENDER);
    t->stage[IMPORT].took_s = 60;
    const double slow = kiln_time_left_of_stage(t, RENDER);
    assert_true(slow > 20 * before);
    t->stage[IMPORT].took_s = 0;
    assert_true(kiln_time_left_of_stage(t, RENDER) < before);
}

static void what_is_shown_runs_down_and_does_not_jump(void **state)
{
    (void)state;
    kiln_time_left *t = imported();
    assert_near(kiln_time_left_show(t, 60, SECOND), 60, 0);
    assert_near(kiln_time_left_show(t, 55, 6 * SECOND), 55, 1e-9); /* five seconds later */
    double last = 55;
    for (unsigned i = 1; i <= 600; i++) { /* suddenly, ten times as much */
        const double now = kiln_time_left_show(t, 550, 6 * SECOND + i * SECOND / 10);
        assert_true(now >= last && now - last < 10);
        last = now;
    }
    assert_true(last > 300);
    assert_near(kiln_time_left_show(t, 0, 1000 * SECOND), 0, 1e-6);
    assert_near(kiln_time_left_show(t, 5, 900 * SECOND), 0, 5); /* a clock that went back */
    assert_true(isnan(kiln_time_left_show(t, NAN, 1001 * SECOND)));
    assert_near(kiln_time_left_show(t, 7, 1002 * SECOND), 7, 0);
}

static void durations_are_the_rounder_the_longer(void **state)
{
    (void)state;
    const struct {
        double s;
        const char *text;
    } rows[] = {{-5, "1 s"},
                {0.2, "1 s"},
                {12.6, "13 s"},
                {43, "45 s"},
                {118, "2 min"},
                {121, "2 min"},
                {59 * 60, "59 min"},
                {3599, "1 h"},
                {3600 + 29 * 60, "1 h 30 min"},
                {1e300, "277777 h 46 min"},
                {INFINITY, "277777 h 46 min"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[32];
        kiln_duration_text(rows[i].s, text);
        assert_string_equal(text, rows[i].text);
    }
}

/* ---- beside progress ------------------------------------------------------------------------- */
static double forty(void *context, const kiln_progress *p, uint64_t now_ns)
{
    (void)context, (void)p, (void)now_ns;
    return 40;
}

static double unknown(void *context, const kiln_progress *p, uint64_t now_ns)
{
    (void)context, (void)p, (void)now_ns;
    return NAN;
}

/* What a list of 8 units writes to `fd` as stderr that is half done after 6 s. */
static void tell(const kiln_progress_whole *whole, kiln_log_level level, const char *what, int fd)
{
    kiln_progress p;
    (void)fflush(stderr);
    const int saved = dup(2);
    dup2(fd, 2);
    kiln_log_init("kiln-knn", level);
    kiln_progress_within(whole);
    kiln_progress_start(&p, what, "units", 8);
    p.start_ns -= 6 * SECOND;
    p.last_ns = p.start_ns;
    kiln_progress_add(&p, 4);
    kiln_progress_within(NULL);
    (void)fflush(stderr);
    dup2(saved, 2);
    close(saved);
}

static const char *line_in_file(const kiln_progress_whole *whole, kiln_log_level level)
{
    static char text[256];
    FILE *f = tmpfile();
    assert_non_null(f);
    tell(whole, level, "measuring", fileno(f));
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    (void)fclose(f);
    return text;
}

static const char *bar_on_terminal(const kiln_progress_whole *whole, const char *what)
{
    static char text[256];
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    const int end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    assert_true(end >= 0);
    tell(whole, KILN_LOG_NORMAL, what, end);
    const ssize_t n = read(terminal, text, sizeof text - 1);
    assert_true(n > 0);
    text[n] = '\0';
    close(end);
    close(terminal);
    return text;
}

static void a_line_tells_of_the_whole(void **state)
{
    (void)state;
    kiln_progress_whole w = {
        .name = "bake", .part_name = "stage", .part = 2, .parts = 7, .seconds_left = forty};
    assert_string_equal(
        line_in_file(&w, KILN_LOG_NORMAL),
        "kiln-knn: measuring: 4 of 8 units, 1.5 s each, 6 s left; stage 2 of 7, bake: "
        "about 40 s left\n");
    w.seconds_left = unknown;
    assert_string_equal(line_in_file(&w, KILN_LOG_NORMAL),
                        "kiln-knn: measuring: 4 of 8 units, 1.5 s each, 6 s left; stage 2 of 7\n");
    assert_string_equal(line_in_file(NULL, KILN_LOG_NORMAL),
                        "kiln-knn: measuring: 4 of 8 units, 1.5 s each, 6 s left\n");
    assert_string_equal(line_in_file(&w, KILN_LOG_QUIET), "");
}

static void a_bar_of_the_whole_fits_a_terminal(void **state)
{
    (void)state;
    static const char erase[] = "\r\033[K";
    const kiln_progress_whole w = {
        .name = "bake", .part_name = "stage", .part = 2, .parts = 7, .seconds_left = forty};
    assert_string_equal(
        bar_on_terminal(&w, "measuring"),
        "\r\033[Kstage 2 of 7: measuring [############............]  50%, bake: about 40 s left");
    const char *bar = bar_on_terminal(&w, "sorting rows along the curve");
    /* the last column stays free, or some terminals would break the line */
    assert_int_equal(strlen(bar + strlen(erase)), 79);
    assert_non_null(strstr(bar, "curve [###...]  50%, bake"));
    bar = bar_on_terminal(
        &w, "a list of units whose name alone is as wide as any terminal ever was, or almost");
    assert_non_null(strstr(bar, "almost [##..]  50%, bake"));
    assert_string_equal(bar_on_terminal(NULL, "measuring"),
                        "\r\033[Kmeasuring [############............]  50%, 1.5 s each, 6 s left");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_said_before_anything_is_known),
        cmocka_unit_test(later_stages_are_part_of_it),
        cmocka_unit_test(a_list_is_believed_the_more_the_further_it_is),
        cmocka_unit_test(earlier_bakes_count_more_than_weights_and_by_size),
        cmocka_unit_test(a_slow_machine_shows_in_its_first_stages),
        cmocka_unit_test(what_is_shown_runs_down_and_does_not_jump),
        cmocka_unit_test(durations_are_the_rounder_the_longer),
        cmocka_unit_test(a_line_tells_of_the_whole),
        cmocka_unit_test(a_bar_of_the_whole_fits_a_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
