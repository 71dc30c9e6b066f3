/* slurm_words: how --sbatch is split, what squeue's answer means, which options of sbatch are
 * refused, lists of tasks, the words of a job, and parts in a folder of strangers. */
#include "schema/claim.h"
#include "stages/front/open_round.h"
#include "stages/front/slurm_job_words.h"
#include "stages/front/slurm_queue.h"
#include "stages/front/slurm_submit.h"
#include "stages/front/words.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- words ----------------------------------------------------------------------------------- */

/* want: the words with '|' between them, and behind the last. */
static void assert_split(const char *text, const char *want)
{
    kiln_words w = {0};
    kiln_error err = {0};
    char got[512] = "";
    if (kiln_words_split(text, "--sbatch", &w, &err) != KILN_OK)
        fail_msg("'%s': %s", text, err.msg);
    for (size_t i = 0; i < w.n; i++)
        (void)snprintf(got + strlen(got), sizeof got - strlen(got), "%s|", w.word[i]);
    assert_string_equal(got, want);
    assert_true(w.n == 0 || w.word[w.n] == NULL);
    kiln_words_release(&w);
}

static void assert_no_split(const char *text, const char *why)
{
    kiln_words w = {0};
    kiln_error err = {0};
    assert_int_equal(kiln_words_split(text, "--sbatch", &w, &err), KILN_E_USAGE);
    if (!strstr(err.msg, why)) fail_msg("'%s' does not say '%s' of '%s'", err.msg, why, text);
    kiln_words_release(&w);
}

static void words_are_split_as_in_sh(void **state)
{
    (void)state;
    assert_split("", "");
    assert_split(" \t\n ", "");
    assert_split("--gres=gpu:1 --time=2:00:00", "--gres=gpu:1|--time=2:00:00|");
    assert_split("  -p   gpu\n-q\tlow ", "-p|gpu|-q|low|");
    assert_split("--comment='two words' x", "--comment=two words|x|");
    assert_split("--comment=\"two  words\"x y", "--comment=two  wordsx|y|");
    assert_split("a\\ b c\\\\d", "a b|c\\d|");
    assert_split("'it'\\''s'", "it's|");
    assert_split("'' \"\" x", "||x|");
    assert_split("\"a\\\"b\\\\c\\x\"", "a\"b\\c\\x|");
    assert_split("a\"b c\"'d e'f", "ab cd ef|");
}

static void nothing_is_expanded(void **state)
{
    (void)state;
    assert_split("--constraint=a|b&c;d<e>f(g)#h*?[i]~ ~", "--constraint=a|b&c;d<e>f(g)#h*?[i]~|~|");
    assert_split("'$(touch x)' '`y`'", "$(touch x)|`y`|");
    assert_split("\\$HOME \"\\$(x)\\`\"", "$HOME|$(x)`|");
    assert_no_split("--comment=$(touch x)", "'$' is not expanded");
    assert_no_split("--comment=`touch x`", "'`' is not expanded");
    assert_no_split("\"$HOME\"", "'$' is not expanded");
    assert_no_split("\"\\\\$HOME\"", "'$' is not expanded"); /* the backslash is one itself */
    assert_no_split("'open", "' is not closed");
    assert_no_split("x \"open", "\" is not closed");
    assert_no_split("x\\", "follows the last");
}

static void quoted_words_are_split_to_themselves(void **state)
{
    static const char *const words[] = {"",   "x",  "it's", "a b", "$(touch x)`y`\"\\",
                                        "\n", "''", "-rf"};
    (void)state;
    for (size_t i = 0; i < COUNT(words); i++) {
        kiln_buffer text = {0};
        kiln_words w = {0};
        kiln_error err = {0};
        assert_int_equal(kiln_word_quote(&text, words[i], &err), KILN_OK);
        assert_int_equal(kiln_buffer_put(&text, NULL, 1, &err), KILN_OK);
        assert_int_equal(kiln_words_split((const char *)text.data, "", &w, &err), KILN_OK);
        assert_int_equal(w.n, 1);
        assert_string_equal(w.word[0], words[i]);
        kiln_words_release(&w);
        kiln_buffer_release(&text);
    }
}

/* ---- options of sbatch ----------------------------------------------------------------------- */

static kiln_status check_options_of(const char *text)
{
    kiln_words w = {0};
    kiln_error err = {0};
    assert_int_equal(kiln_words_split(text, "--sbatch", &w, &err), KILN_OK);
    const kiln_status st = kiln_slurm_options_check(&w, "sbatch", &err);
    kiln_words_release(&w);
    return st;
}

static void options_that_break_the_chain_are_refused(void **state)
{
    static const char *const bad[] = {"--array=0-3",
                                      "--array 0-3",
                                      "-a0-3",
                                      "-a 0-3",
                                      "--arr=0-3",
                                      "--wait",
                                      "-W",
                                      "-QW",
                                      "--wrap=true",
                                      "--wra true",
                                      "--hold",
                                      "-H",
                                      "--test-only",
                                      "--chdir=/",
                                      "-D/tmp",
                                      "--parsable",
                                      "--signal=B:1",
                                      "--export=NONE",
                                      "--output=x",
                                      "-o x",
                                      "--error=x",
                                      "-e x",
                                      "--job-name=x",
                                      "-Jx",
                                      "--dependency=1",
                                      "-d afterok:1",
                                      "--comment=x",
                                      "--open-mode=truncate",
                                      "-p gpu -a1",
                                      "script.sh",
                                      "-t 1 script.sh",
                                      "--time=1 script.sh",
                                      "-pgpu x",
                                      "-p gpu -- x",
                                      "-vW"};
    static const char *const good[] = {"",
                                       "--gres=gpu:1",
                                       "-p gpu",
                                       "-pa",
                                       "--wait-all-nodes=1",
                                       "-A account -t 1:00",
                                       "--exclusive",
                                       "-N1",
                                       "--no-kill",
                                       "-Qs",
                                       "--account=array",
                                       "-w node1",
                                       "--time=1",
                                       "--mem=1G",
                                       "--error-x=1"};
    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        if (check_options_of(bad[i]) != KILN_E_USAGE) fail_msg("'%s' is let through", bad[i]);
    for (size_t i = 0; i < COUNT(good); i++)
        if (check_options_of(good[i]) != KILN_OK) fail_msg("'%s' is refused", good[i]);
}

/* ---- squeue ---------------------------------------------------------------------------------- */

static kiln_slurm_jobs jobs_of(const char *text, const char *folder)
{
    kiln_slurm_jobs jobs;
    kiln_error err = {0};
    if (kiln_slurm_jobs_parse(text, folder, &jobs, &err) != KILN_OK) fail_msg("%s", err.msg);
    return jobs;
}

static void jobs_are_known_by_their_comments(void **state)
{
    (void)state;
    kiln_slurm_jobs jobs =
        jobs_of("17|RUNNING|None|kiln round tiles abc 2026-x /a b/bake/slurm\n"
                "18_3|PENDING|Resources|kiln task tiles abc 2026-x /a b/bake/slurm\n"
                "18_4|PENDING|Resources|kiln task tiles abc 2026-x /a b/bake/slurm  \n"
                "19|RUNNING|None|kiln round tiles abc 2026-x /a b/bake/slurm2\n"
                "20|RUNNING|None|kiln round tiles abc 2026-x /other\n"
                "21|RUNNING|None|\n"
                "22|RUNNING|None|(null)\n"
                "23|RUNNING|None|kilns round tiles abc 2026-x /a b/bake/slurm\n"
                "24|RUNNING|None|kiln other tiles abc 2026-x /a b/bake/slurm\n"
                "no line of squeue\n"
                "\n"
                /* of 0.1 */
                "25|PENDING|None|kiln round prune - /a b/bake/slurm",
                "/a b/bake/slurm");
    assert_int_equal(jobs.n, 4);
    assert_string_equal(jobs.job[0].id, "17");
    assert_false(jobs.job[0].is_task);
    assert_string_equal(jobs.job[0].chain, "2026-x");
    assert_string_equal(jobs.job[1].id, "18_3");
    assert_string_equal(jobs.job[1].reason, "Resources");
    assert_true(jobs.job[1].is_task);
    assert_string_equal(jobs.job[1].stage, "tiles");
    assert_string_equal(jobs.job[1].key, "abc");
    assert_string_equal(jobs.job[3].id, "25");
    assert_string_equal(jobs.job[3].chain, "");
    kiln_words ids = {0};
    kiln_error err = {0};
    assert_int_equal(kiln_slurm_jobs_ids(&jobs, NULL, NULL, &ids, &err), KILN_OK);
    assert_int_equal(ids.n, 3); /* the array once */
    assert_string_equal(ids.word[1], "18");
    kiln_words_release(&ids);
    kiln_slurm_jobs_release(&jobs);
}

static void a_job_that_will_run_again_counts(void **state)
{
    static const char *const states[] = {
        "PENDING",      "RUNNING",   "SUSPENDED",          "COMPLETING",
        "CONFIGURING",  "REQUEUED",  "RESV_DEL_HOLD",      "REQUEUE_HOLD",
        "SPECIAL_EXIT", "STAGE_OUT", "a state of tomorrow"};
    static const char *const over[] = {"COMPLETED", "FAILED",    "CANCELLED",    "TIMEOUT",
                                       "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY"};
    char line[256];
    (void)state;
    for (size_t i = 0; i < COUNT(states) + COUNT(over); i++) {
        const bool counts = i < COUNT(states);
        (void)snprintf(line, sizeof line, "1|%s|None|kiln round tiles - c /x\n",
                       counts ? states[i] : over[i - COUNT(states)]);
        kiln_slurm_jobs jobs = jobs_of(line, "/x");
        if (jobs.n != (counts ? 1u : 0u)) fail_msg("%s", line);
        kiln_slurm_jobs_release(&jobs);
    }
}

static void held_jobs_are_found(void **state)
{
    (void)state;
    kiln_slurm_jobs jobs = jobs_of("1|PENDING|launch failed requeued held|kiln round tiles - c /x\n"
                                   "2|PENDING|launch_failed_requeued_held|kiln round tiles - c /x\n"
                                   "3|PENDING|JobHeldUser|kiln round tiles - c /x\n"
                                   "4|PENDING|launch failed requeued hel|kiln round tiles - c /x\n",
                                   "/x");
    assert_int_equal(jobs.n, 4);
    assert_true(kiln_slurm_job_held(&jobs.job[0]) && kiln_slurm_job_held(&jobs.job[1]));
    assert_false(kiln_slurm_job_held(&jobs.job[2]) || kiln_slurm_job_held(&jobs.job[3]));
    kiln_slurm_jobs_release(&jobs);
}

static void an_id_that_is_none_is_refused(void **state)
{
    static const char *const ids[] = {"", "x", "-1", "1x", "1_", "1_[2-3]", "1;reboot", "1 2"};
    char line[256];
    (void)state;
    for (size_t i = 0; i < COUNT(ids); i++) {
        kiln_slurm_jobs jobs;
        kiln_error err = {0};
        (void)snprintf(line, sizeof line, "%s|RUNNING|None|kiln round tiles - c /x\n", ids[i]);
        if (kiln_slurm_jobs_parse(line, "/x", &jobs, &err) != KILN_E_IO)
            fail_msg("'%s' is taken", ids[i]);
        assert_int_equal(jobs.n, 0);
    }
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static void assert_list(uint32_t n, const uint32_t *task, uint32_t from, uint32_t offset,
                        uint32_t most, const char *want, uint32_t want_n)
{
    uint32_t got = 0;
    kiln_buffer text = {0};
    kiln_error err = {0};
    const kiln_task_list list = {(uint32_t *)task, n};
    assert_int_equal(kiln_task_list_text(&list, from, offset, most, &text, &got, &err), KILN_OK);
    assert_string_equal((const char *)text.data, want);
    assert_int_equal(got, want_n);
    kiln_buffer_release(&text);
}

static void tasks_are_listed_as_arrays(void **state)
{
    static const uint32_t task[] = {1, 2, 3, 5, 7, 8, 10};
    (void)state;
    assert_list(7, task, 0, 0, UINT32_MAX, "1-3,5,7-8,10", 7);
    assert_list(7, task, 0, 0, 3, "1-3", 3); /* MaxArraySize 4 */
    assert_list(7, task, 3, 3, 3, "2", 1);   /* 5; 7 is the first of the next */
    assert_list(7, task, 4, 6, 3, "1-2", 2);
    assert_list(7, task, 6, 9, 3, "1", 1);
    assert_list(1, task, 0, 0, 1, "1", 1);
    assert_list(0, task, 0, 0, 3, "", 0);
}

/* ---- the open round -------------------------------------------------------------------------- */

static char folder[] = "/tmp/kiln-slurm-words.XXXXXX";

static const char *due_of_claim = "0-4\ndue 9-200000";

static void write_claim(const char *stage, const char *tasks)
{
    char path[sizeof folder + 32];
    (void)snprintf(path, sizeof path, "%s/m.db.claim", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    (void)fprintf(f,
                  "splatkiln-claim 1\nstage %s\nplan 0123456789abcdef0123456789abcdef\nhost h\npid "
                  "1\nstart now\ntasks %s\nunits 500000\n"
                  "due %s\nwhat units\nend\n",
                  stage, tasks, due_of_claim);
    assert_int_equal(fclose(f), 0);
}

static kiln_status read_round(const char *stage, const char *tasks, kiln_open_round *open,
                              kiln_error *err)
{
    char path[sizeof folder + 32];
    (void)snprintf(path, sizeof path, "%s/m.db", folder);
    write_claim(stage, tasks);
    return kiln_open_round_read(path, open, err);
}

static void a_claim_that_is_none_is_refused(void **state)
{
    static const char *const stages[] = {"../../x",  "$(touch x)", "a b",    "Prune",       "-x",
                                         "\x1b[31m", "none",       "prune'", "pr\xc3\xbcne"};
    static const char *const tasks[] = {"1000000000000",       "100001", "0", "-1", "1x",
                                        "18446744073709551617"};
    kiln_open_round open;
    kiln_error err = {0};
    (void)state;
    assert_int_equal(read_round("prune", "100000", &open, &err), KILN_OK);
    assert_true(open.there && open.tasks == 100000 && open.units == 500000 && open.due == 199997);
    assert_string_equal(open.key, "0123456789abcdef0123456789abcdef");
    for (size_t i = 0; i < COUNT(stages); i++)
        if (read_round(stages[i], "2", &open, &err) != KILN_E_INPUT || open.there)
            fail_msg("the stage '%s' is taken", stages[i]);
    for (size_t i = 0; i < COUNT(tasks); i++)
        if (read_round("prune", tasks[i], &open, &err) != KILN_E_INPUT || open.there)
            fail_msg("'%s' tasks are taken", tasks[i]);
}

/* A task without a unit would wait in a queue, start, and find nothing to do. */
static void a_round_has_no_more_tasks_than_units(void **state)
{
    kiln_open_round open;
    kiln_error err = {0};
    (void)state;
    due_of_claim = "2-3\ndue 7-7";
    assert_int_equal(read_round("prune", "8", &open, &err), KILN_OK);
    assert_int_equal(open.tasks, 3);
    assert_int_equal(read_round("prune", "2", &open, &err), KILN_OK);
    assert_int_equal(open.tasks, 2);
    due_of_claim = "0-4\ndue 9-200000";
}

static void only_parts_of_the_round_count(void **state)
{
    static const char head[] = "prune-0123456789abcdef0123456789abcdef-";
    static const char *const names[] = {
        "2-of-5.part",  "02-of-5.part", "3-of-5.part.bad",
        "1-of-6.part",  "6-of-5.part",  "18446744073709551617-of-5.part",
        "-1-of-5.part", "0-of-5.part",  "3-of-5.partx"};
    char path[256];
    kiln_open_round round;
    kiln_task_list missing;
    kiln_error err = {0};
    (void)state;
    assert_int_equal(read_round("prune", "5", &round, &err), KILN_OK);
    for (size_t i = 0; i < COUNT(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s%s", folder, head, names[i]);
        const int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
        assert_true(file >= 0);
        assert_int_equal(close(file), 0);
    }
    (void)snprintf(path, sizeof path, "%s/%s4-of-5.part", folder, head);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    (void)snprintf(path, sizeof path, "%s/%s5-of-5.part", folder, head);
    assert_int_equal(mkfifo(path, 0600), 0);
    const int fd = open(folder, O_RDONLY | O_DIRECTORY);
    assert_int_equal(kiln_open_round_missing(&round, fd, folder, &missing, &err), KILN_OK);
    assert_int_equal(close(fd), 0);
    assert_int_equal(missing.n, 4);
    assert_true(missing.task[0] == 1 && missing.task[1] == 3 && missing.task[2] == 4 &&
                missing.task[3] == 5);
    kiln_task_list_release(&missing);
}

/* ---- the words of a job ---------------------------------------------------------------------- */

#define JOB "folder=/x/slurm", "cwd=/x", "chain=2026-a", "stages=import,prune", "tasks=4", "tmpdir="
#define ROUND "round", JOB, "first=prune", "try=1"
#define TASK "task", JOB, "first=prune", "plan=0123456789abcdef0123456789abcdef", "of=5", "offset=3"

static kiln_status read_job(const char *const *words, kiln_slurm_job_words *w)
{
    char *argv[32];
    int n = 0;
    kiln_error err = {0};
    for (; words[n]; n++) argv[n] = (char *)words[n];
    argv[n] = NULL;
    return kiln_slurm_job_words_read(n, argv, w, &err);
}

#define ASSERT_JOB(want, ...)                                                              \
    do {                                                                                   \
        kiln_slurm_job_words w_;                                                           \
        assert_int_equal(read_job((const char *const[]){__VA_ARGS__, NULL}, &w_), (want)); \
        kiln_slurm_job_words_release(&w_);                                                 \
    } while (0)

static void words_of_a_job_are_a_closed_list(void **state)
{
    kiln_slurm_job_words w;
    const char *const words[] = {TASK, "sbatch=--a b", "sbatch=-c", "--", "scene", "--wait", NULL};
    (void)state;
    assert_int_equal(read_job(words, &w), KILN_OK);
    assert_true(w.is_task && w.of == 5 && w.offset == 3 && w.settings.tasks == 4 &&
                w.n_typed == 2 && w.settings.list[KILN_SLURM_SBATCH].n == 2);
    assert_string_equal(w.typed[0], "scene");
    assert_string_equal(w.settings.list[KILN_SLURM_SBATCH].word[0], "--a b");
    kiln_slurm_job_words_release(&w);
    ASSERT_JOB(KILN_OK, ROUND, "--", "scene");
    ASSERT_JOB(KILN_E_USAGE, "other", JOB, "first=prune", "--");
    ASSERT_JOB(KILN_E_USAGE, ROUND);                     /* no -- */
    ASSERT_JOB(KILN_E_USAGE, ROUND, "kiln=/evil", "--"); /* no such word */
    ASSERT_JOB(KILN_E_USAGE, ROUND, "first", "--");
    ASSERT_JOB(KILN_E_USAGE, ROUND, "first=../../x", "--");
    ASSERT_JOB(KILN_E_USAGE, ROUND, "chain=a/b", "--");
    ASSERT_JOB(KILN_E_USAGE, ROUND, "tasks=0", "--");
    ASSERT_JOB(KILN_E_USAGE, ROUND, "tasks=1000000000000", "--");
    ASSERT_JOB(KILN_E_USAGE, ROUND, "folder=slurm", "--"); /* relative */
    ASSERT_JOB(KILN_E_USAGE, TASK, "plan='x'", "--");
    ASSERT_JOB(KILN_E_USAGE, "task", JOB, "first=prune", "--"); /* of which plan? */
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[sizeof folder + 16];
    (void)state;
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_split_as_in_sh),
        cmocka_unit_test(nothing_is_expanded),
        cmocka_unit_test(quoted_words_are_split_to_themselves),
        cmocka_unit_test(options_that_break_the_chain_are_refused),
        cmocka_unit_test(jobs_are_known_by_their_comments),
        cmocka_unit_test(a_job_that_will_run_again_counts),
        cmocka_unit_test(held_jobs_are_found),
        cmocka_unit_test(an_id_that_is_none_is_refused),
        cmocka_unit_test(tasks_are_listed_as_arrays),
        cmocka_unit_test(a_claim_that_is_none_is_refused),
        cmocka_unit_test(a_round_has_no_more_tasks_than_units),
        cmocka_unit_test(only_parts_of_the_round_count),
        cmocka_unit_test(words_of_a_job_are_a_closed_list),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
