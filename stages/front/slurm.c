/* `kiln slurm` -- bakes a scene over the hosts of a Slurm cluster: submits the first job, which
 * submits what follows (slurm_job.c), or looks at a bake that was begun (slurm_watch.c). Jobs call
 * it with --job. pipelines/slurm/DESIGN.md has the design. */
#include "base/log.h"
#include "base/own_program.h"
#include "base/quote.h"
#include "schema/manifest.h"
#include "stages/engine/stage_graph.h"
#include "stages/front/front.h"
#include "stages/front/slurm_calls.h"
#include "stages/front/slurm_job.h"
#include "stages/front/slurm_job_words.h"
#include "stages/front/slurm_last_job.h"
#include "stages/front/slurm_recall.h"
#include "stages/front/slurm_status_json.h"
#include "stages/front/slurm_submit.h"
#include "stages/front/slurm_watch.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TASKS_DEFAULT = 8, COMPLETING_LOOKS = 30 };

static struct {
    uint32_t tasks, concurrent;
    const char *list[KILN_SLURM_LISTS]; /* NULL: not given */
    bool status, cancel, wait;
    bool concurrent_given, json; /* found in check_slurm_options */
} o;

static const kiln_opt rows[] = {
    KILN_OPTION_NUMBER("tasks", &o.tasks, "N",
                       "split the work of a stage into N tasks; default: as in the last call, or 8",
                       .range = "1..100000"),
    KILN_OPTION_NUMBER("concurrent", &o.concurrent, "N",
                       "run at most N tasks at a time; 0: all; default: as in the last call",
                       .range = "0..100000"),
    KILN_OPTION_TEXT("sbatch", &o.list[KILN_SLURM_SBATCH], "OPTIONS",
                     "options of sbatch for all jobs, in one word: --sbatch='--partition=gpu "
                     "--time=2:00:00'; default: "
                     "those of the last call; ' ': none"),
    KILN_OPTION_TEXT("sbatch-task", &o.list[KILN_SLURM_SBATCH_TASK], "OPTIONS",
                     "further options of sbatch for the jobs that compute, such as '--gres=gpu:1'"),
    KILN_OPTION_TEXT(
        "sbatch-round", &o.list[KILN_SLURM_SBATCH_ROUND], "OPTIONS",
        "further options of sbatch for the jobs that plan and gather, such as '--partition=cpu'",
        .brief = "options of sbatch for jobs that plan and gather"),
    KILN_OPTION_TEXT("wrapper", &o.list[KILN_SLURM_WRAPPER], "WORDS",
                     "put these words in front of each stage: 'apptainer exec --nv x.sif'; the "
                     "program's path is the same in the container"),
    KILN_OPTION_TEXT("setup", &o.list[KILN_SLURM_SETUP], "FILE",
                     "a shell file that each job sources first, such as 'module load cuda'"),
    KILN_OPTION_TEXT("mail", &o.list[KILN_SLURM_MAIL], "ADDRESS",
                     "have Slurm send one mail when the bake has ended, successfully or not",
                     .brief = "one mail from Slurm when the bake has ended"),
    KILN_OPTION_BOOL("status", &o.status,
                     "say what is done, what runs and what is missing; with --json for programs"),
    KILN_OPTION_BOOL("cancel", &o.cancel, "cancel all jobs of this bake; nothing finished is lost"),
    KILN_OPTION_BOOL(
        "wait", &o.wait,
        "wait until the bake has ended, and end with its exit code; there is no time limit",
        .brief = "wait for the end, and end with its exit code"),
    KILN_OPTION_END,
};

static const char *const notes[] = {
    "Bakes a scene over the hosts of a Slurm cluster, into a folder that all of them share. A "
    "second call submits only what is "
    "missing; finished work stays.",
    "Every other option goes to kiln pipeline (kiln pipeline --help). Name the devices (--devices "
    "cpu or cuda) where hosts differ: "
    "pictures of the CPU and of GPUs are not the same.",
    "Logs are in OUT/slurm. The options above but the last three are remembered for the next call "
    "of the same user, in "
    "~/.local/state/splatkiln/slurm ($XDG_STATE_HOME): nothing that lies in the folder of a scene "
    "or of a bake is run.",
    "Exit codes are those of the stages, 74 if Slurm refuses a job, and 75 if jobs of this bake "
    "have not ended.",
    NULL};

static void help_slurm(const kiln_cli *c, bool all, FILE *out)
{
    (void)fprintf(out, "Usage: %s %s [options]\n\n", c->program, c->positionals);
    kiln_cli_wrap(notes[0], 0, out);
    kiln_cli_help_rows("Options", c->options, all, out);
    for (size_t i = 1; notes[i]; i++) {
        (void)fputc('\n', out);
        kiln_cli_wrap(notes[i], 0, out);
    }
    kiln_cli_help_rows("Others", kiln_print_options, all, out);
}

const kiln_cli kiln_front_slurm_cli = {.program = "kiln slurm",
                                       .summary = "bakes a scene over the hosts of a Slurm cluster",
                                       .positionals = "SCENE",
                                       .n_optional = 1,
                                       .tables_note = notes,
                                       .options = rows,
                                       .common = kiln_print_options,
                                       .help = help_slurm};

/* The work is shared out already, and what is computed by force would be computed in each round. */
static const char *const refused[] = {"force", "shard", "units", "print-commands"};
enum { N_REFUSED = sizeof refused / sizeof *refused };

bool kiln_front_slurm_passes(const char *name)
{
    for (size_t i = 0; i < N_REFUSED; i++)
        if (!strcmp(name, refused[i])) return false;
    for (const kiln_opt *row = rows; row->name; row++)
        if (!strcmp(name, row->name)) return false;
    return true;
}

/* ---- the command line ------------------------------------------------------------------------ */

/* "force", or "tiles-force", which goes to that stage alone. */
static bool is_refused(const char *name)
{
    for (const kiln_stage_info *s = kiln_stage_graph; s->name; s++) {
        const size_t n = strlen(s->name);
        if (!strncmp(name, s->name, n) && name[n] == '-') name += n + 1;
    }
    for (size_t i = 0; i < N_REFUSED; i++)
        if (!strcmp(name, refused[i])) return true;
    return false;
}

static kiln_status check_job_options(const kiln_cli *cli, kiln_error *err)
{
    for (const kiln_opt *row = cli->options; row->name; row++)
        if (is_refused(row->name) && kiln_opt_given(cli, row->name))
            return kiln_fail(err, KILN_E_USAGE,
                             "--%s cannot be used in a bake over hosts; see kiln slurm --help",
                             row->name);
    return KILN_OK;
}

/* Appends the words that an option gives its list: those of a text, or the text as one. ' ':
 * none. */
static kiln_status split_list(kiln_slurm_list list, const char *text, kiln_words *out,
                              kiln_error *err)
{
    char real[PATH_MAX], name[32];
    (void)snprintf(name, sizeof name, "--%s", kiln_slurm_list_name(list));
    if (list != KILN_SLURM_SETUP && list != KILN_SLURM_MAIL)
        return kiln_words_split(text, name, out, err);
    if (!text[strspn(text, " ")]) return KILN_OK;
    if (list == KILN_SLURM_MAIL && (strpbrk(text, " \t\n,") || *text == '-'))
        return kiln_fail(err, KILN_E_USAGE, "--mail: '%.80s' is not an address", text);
    if (list == KILN_SLURM_MAIL) return kiln_words_add(out, text, err);
    if (!realpath(text, real))
        return kiln_fail(err, KILN_E_INPUT, "--setup: cannot find '%s': %s", text, strerror(errno));
    return kiln_words_add(out, real, err);
}

static bool is_of_sbatch(kiln_slurm_list list) { return list <= KILN_SLURM_SBATCH_ROUND; }

static kiln_status check_list(kiln_slurm_list list, kiln_error *err)
{
    kiln_words words = {0};
    kiln_status st = o.list[list] ? split_list(list, o.list[list], &words, err) : KILN_OK;
    if (st == KILN_OK && is_of_sbatch(list))
        st = kiln_slurm_options_check(&words, kiln_slurm_list_name(list), err);
    kiln_words_release(&words);
    return st;
}

static kiln_status check_slurm_options(const kiln_cli *cli, kiln_error *err)
{
    KILN_TRY(check_job_options(cli, err));
    o.concurrent_given = kiln_opt_given(cli, "concurrent");
    o.json = kiln_opt_given(cli, "json");
    if (o.json && !o.status) return kiln_fail(err, KILN_E_USAGE, "--json needs --status");
    if (o.status + o.cancel + o.wait > 1)
        return kiln_fail(err, KILN_E_USAGE,
                         "--status, --cancel and --wait do not go together; give one of them");
    for (int i = 0; i < KILN_SLURM_LISTS; i++) KILN_TRY(check_list((kiln_slurm_list)i, err));
    return kiln_slurm_programs_check(err);
}

static bool makes_demo(void) { return !o.status && !o.cancel; }

static const kiln_bake_guest guest = {.program = KILN_SLURM,
                                      .rows = rows,
                                      .help = help_slurm,
                                      .check = check_slurm_options,
                                      .makes_demo = makes_demo};

/* Where this process is, and the bake that its command line means. make: makes the folders that are
 * missing. */
static kiln_status open_slurm_bake(const kiln_bake_guest *g, int argc, char **argv, bool make,
                                   kiln_slurm_bake *b, bool *there, kiln_error *err)
{
    KILN_TRY(kiln_own_program(b->kiln, err));
    if (!getcwd(b->cwd, sizeof b->cwd))
        return kiln_fail(err, KILN_E_IO, "cannot find the current folder: %s", strerror(errno));
    KILN_TRY(kiln_bake_commands_make(g, argc, argv, &b->commands, err));
    *there = false;
    if (b->commands.printed) return KILN_OK;
    return kiln_slurm_folder_open(b->commands.out, make, &b->folder, there, err);
}

/* ---- a job ----------------------------------------------------------------------------------- */

/* The command line is that of the call; the folder was found then. A job that finds another one is
 * where it should not be. */
static kiln_status check_job_place(const kiln_slurm_bake *b, const kiln_slurm_job_words *w,
                                   kiln_error *err)
{
    if (!strcmp(b->folder.path, w->folder)) return KILN_OK;
    return kiln_fail(
        err, KILN_E_USAGE,
        "this job belongs to the bake in '%s', but its command line leads to '%s' on this host",
        w->folder, b->folder.path);
}

static kiln_status find_task(const kiln_slurm_job_words *w, uint32_t *task, kiln_error *err)
{
    const char *index = getenv("SLURM_ARRAY_TASK_ID");
    const size_t n = index ? strspn(index, "0123456789") : 0;
    *task = n > 0 && n < 9 && !index[n] ? (uint32_t)strtoul(index, NULL, 10) + w->offset : 0;
    if (*task >= 1 && *task <= w->of) return KILN_OK;
    return kiln_fail(err, KILN_E_USAGE,
                     "SLURM_ARRAY_TASK_ID is not one of the %u tasks of this plan", w->of);
}

static kiln_status run_job(const kiln_slurm_bake *b, const kiln_slurm_job_words *w, int *code,
                           kiln_error *err)
{
    kiln_slurm_share share = {.stage = w->first, .plan = w->plan, .of = w->of};
    if (!w->is_task) return kiln_slurm_round(b, w->first, w->try, code, err);
    KILN_TRY(find_task(w, &share.task, err));
    return kiln_slurm_task(b, &share, code, err);
}

static const char *job_number(void)
{
    const char *id = getenv("SLURM_JOB_ID");
    return id ? id : "-";
}

/* A log says where and when its job ran. The line begins as slurm_log.h wants it. */
static void print_job_begin(void)
{
    char host[64] = "", when[32] = "";
    cpu_set_t cpus;
    struct tm utc;
    const time_t now = time(NULL);
    const char *memory = getenv("SLURM_MEM_PER_NODE"), *per_cpu = getenv("SLURM_MEM_PER_CPU");
    if (gethostname(host, sizeof host - 1) != 0) *host = '\0';
    if (gmtime_r(&now, &utc)) (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    const int n = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 0;
    kiln_print(KILN_SLURM_LOG_BEGIN "%.40s on %s, %s, %d CPUs%s%.20s%s", job_number(), host, when,
               n, memory || per_cpu ? ", " : "",
               memory    ? memory
               : per_cpu ? per_cpu
                         : "",
               memory    ? " MiB"
               : per_cpu ? " MiB a CPU"
                         : "");
    (void)fflush(stdout);
}

static void print_job_end(uint64_t begin_ns, int code)
{
    struct rusage self = {0}, children = {0};
    (void)getrusage(RUSAGE_SELF, &self); /* these cannot fail */
    (void)getrusage(RUSAGE_CHILDREN, &children);
    const long most = self.ru_maxrss > children.ru_maxrss ? self.ru_maxrss : children.ru_maxrss;
    kiln_print(KILN_SLURM ": ends with %d after %.1f s; its largest process took %ld MiB", code,
               (double)(kiln_now_ns() - begin_ns) / 1e9, most >> 10);
}

static kiln_status open_job(int argc, char **argv, kiln_slurm_job_words *w, kiln_slurm_bake *b,
                            kiln_words *typed, kiln_error *err)
{
    kiln_bake_guest g = guest;
    char program[] = KILN_SLURM;
    bool there;
    KILN_TRY(kiln_slurm_job_words_read(argc, argv, w, err));
    if (chdir(w->cwd) != 0)
        return kiln_fail(err, KILN_E_IO, "cannot go to '%s', where kiln slurm was called: %s",
                         w->cwd, strerror(errno));
    for (int i = 0; i < w->n_typed; i++) KILN_TRY(kiln_words_add(typed, w->typed[i], err));
    w->typed[-1] = program; /* in place of -- */
    g.stages = w->stages;
    g.check = check_job_options; /* hosts that compute need none of Slurm's programs but scontrol */
    KILN_TRY(open_slurm_bake(&g, w->n_typed + 1, w->typed - 1, true, b, &there, err));
    if (!there)
        return kiln_fail(err, KILN_E_USAGE, "--job: the command line of kiln slurm is invalid");
    b->typed = typed;
    b->settings = &w->settings;
    b->tmpdir = w->tmpdir;
    (void)snprintf(b->chain, sizeof b->chain, "%s", w->chain);
    return check_job_place(b, w, err);
}

static kiln_status be_job(int argc, char **argv, int *code, kiln_error *err)
{
    static kiln_slurm_bake b; /* too big for the stack */
    kiln_slurm_job_words w;
    kiln_words typed = {0};
    const uint64_t begin = kiln_now_ns();
    b.folder = (kiln_slurm_folder){.fd = -1, .parts_fd = -1, .lock_fd = -1};
    print_job_begin();
    kiln_status st = open_job(argc, argv, &w, &b, &typed, err);
    if (st == KILN_OK) st = run_job(&b, &w, code, err);
    print_job_end(begin, st == KILN_OK ? *code : kiln_exit_code(st));
    kiln_slurm_folder_close(&b.folder);
    kiln_bake_commands_release(&b.commands);
    kiln_slurm_job_words_release(&w);
    kiln_words_release(&typed);
    return st;
}

/* ---- submitting ------------------------------------------------------------------------------ */

static kiln_status check_slurm_scene(const kiln_slurm_bake *b, kiln_error *err)
{
    struct stat s;
    if (!strcmp(b->commands.stage[0].stage, "import"))
        return stat(b->commands.scene, &s) == 0
                   ? KILN_OK
                   : kiln_fail(err, KILN_E_INPUT, "cannot find the scene '%s'", b->commands.scene);
    if (stat(b->commands.manifest, &s) == 0) return KILN_OK;
    return kiln_fail(err, KILN_E_INPUT,
                     "cannot find '%s', and import is not among the chosen stages",
                     b->commands.manifest);
}

/* What a plan or a gather would refuse on its host, after it had waited in the queue. */
static kiln_status check_file_system(const kiln_slurm_bake *b, kiln_error *err)
{
    bool remote, has_rounds;
    KILN_TRY(kiln_manifest_is_remote(b->folder.manifest, &remote, err));
    for (size_t i = 0; remote && i < b->commands.n; i++) {
        const kiln_stage_command *c = &b->commands.stage[i];
        if (kiln_words_begin(&c->words, "--scratch-dir=") ||
            kiln_words_hold(&c->words, "--allow-network-fs=yes"))
            continue;
        KILN_TRY(kiln_slurm_has_rounds(c->stage, &has_rounds, err));
        if (has_rounds)
            return kiln_fail(err, KILN_E_USAGE,
                             "'%s' is on a network file system, so the plans and gathers of %s "
                             "work on a copy: give --scratch-dir "
                             "a folder on a local disk of each host, with enough space",
                             b->folder.manifest, c->stage);
    }
    return KILN_OK;
}

/* "20261128-101502-0123456789abcdef": sorts by time, and nobody knows it beforehand. */
static kiln_status make_chain(kiln_slurm_bake *b, kiln_error *err)
{
    uint64_t number;
    struct tm utc;
    const time_t now = time(NULL);
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        return kiln_fail(err, KILN_E_IO, "this system gives no random number: %s", strerror(errno));
    if (!gmtime_r(&now, &utc)) utc = (struct tm){0};
    const size_t n = strftime(b->chain, sizeof b->chain, "%Y%m%d-%H%M%S-", &utc);
    (void)snprintf(b->chain + n, sizeof b->chain - n, "%016llx", (unsigned long long)number);
    return KILN_OK;
}

static bool gives_settings(void)
{
    bool given = o.tasks || o.concurrent_given;
    for (int i = 0; i < KILN_SLURM_LISTS; i++) given |= o.list[i] != NULL;
    return given;
}

/* A file that jobs will source is none that came with a scene or a bake. */
static kiln_status check_setup_place(const kiln_slurm_bake *b, const char *out, const char *file,
                                     kiln_error *err)
{
    char scene[PATH_MAX];
    const size_t n = strlen(out);
    const bool in_bake = *file && !strncmp(file, out, n) && file[n] == '/';
    const bool has_scene = *file && *b->commands.scene && realpath(b->commands.scene, scene);
    if (!in_bake &&
        !(has_scene && !strncmp(file, scene, strlen(scene)) && file[strlen(scene)] == '/'))
        return KILN_OK;
    return kiln_fail(
        err, KILN_E_USAGE,
        "--setup: '%s' lies in the scene or in the bake, but files from there are never run", file);
}

/* The settings: what is given, else what the last call was given. */
static kiln_status recall_options(kiln_slurm_bake *b, bool begun, const char *out,
                                  kiln_slurm_settings *recall, kiln_error *err)
{
    char why[512];
    bool known;
    KILN_TRY(kiln_slurm_recall_read(out, b->commands.scene, recall, &known, why, err));
    const bool has_sbatch = o.list[KILN_SLURM_SBATCH] != NULL;
    if (*why) kiln_warn("tasks and options of sbatch of an earlier call are not known: %s", why);
    if (!known && begun && !*why && (!o.tasks || !has_sbatch))
        kiln_say("your earlier call for this bake is not known, so these are used: %s%s%s",
                 o.tasks ? "" : "8 tasks a round", o.tasks || has_sbatch ? "" : ", ",
                 has_sbatch ? "" : "no options of sbatch");
    if (o.tasks || !known) recall->tasks = o.tasks ? o.tasks : TASKS_DEFAULT;
    if (o.concurrent_given) recall->concurrent = o.concurrent;
    for (int i = 0; i < KILN_SLURM_LISTS; i++) {
        kiln_words *const words = &recall->list[i];
        if (o.list[i]) kiln_words_release(words);
        if (o.list[i]) KILN_TRY(split_list((kiln_slurm_list)i, o.list[i], words, err));
        if (is_of_sbatch((kiln_slurm_list)i))
            KILN_TRY(
                kiln_slurm_options_check(words, kiln_slurm_list_name((kiln_slurm_list)i), err));
    }
    b->settings = recall;
    return check_setup_place(b, out, kiln_slurm_list_text(recall, KILN_SLURM_SETUP), err);
}

/* The folder that holds OUT/slurm, absolute and without links. */
static void find_bake_folder(const kiln_slurm_bake *b, char out[KILN_PATH_MAX])
{
    (void)snprintf(out, KILN_PATH_MAX, "%.*s", (int)(strlen(b->folder.path) - strlen("/slurm")),
                   b->folder.path);
}

/* A call that came before and has no end: what became of it may want other options now. */
static kiln_status say_last_end(const kiln_slurm_bake *b, kiln_error *err)
{
    kiln_slurm_end end;
    char why[KILN_SLURM_WHY_MAX] = "";
    KILN_TRY(kiln_slurm_end_read(&b->folder, &end, err));
    if (!end.there && !kiln_slurm_note_there(&b->folder, "cancelled"))
        KILN_TRY(kiln_slurm_last_job_text(&b->folder, NULL, why, err));
    if (*why) kiln_say("the last call did not finish: %s", why);
    return KILN_OK;
}

static kiln_status submit_first(kiln_slurm_bake *b, kiln_error *err)
{
    char id[KILN_SLURM_ID_MAX], line[80];
    const char *first = b->commands.stage[0].stage;
    KILN_TRY(say_last_end(b, err));
    KILN_TRY(kiln_slurm_notes_clear(&b->folder, err));
    KILN_TRY(make_chain(b, err));
    KILN_TRY(kiln_slurm_logs_make(&b->folder, b->chain, err));
    (void)snprintf(line, sizeof line, "%s\n", b->chain);
    KILN_TRY(kiln_slurm_note_put(&b->folder, "chain", line, err));
    if (kiln_slurm_submit_round(b, first, "-", first, 0, NULL, id, err) != KILN_OK) {
        kiln_note(err, "Slurm refused the job");
        return err->status;
    }
    kiln_print(KILN_SLURM ": job %s is submitted, and it submits the others; %u tasks a round", id,
               b->settings->tasks);
    kiln_print(KILN_SLURM ": watch it: kiln slurm ... --status; squeue --me; logs: %s/logs-%s",
               b->folder.path, b->chain);
    return KILN_OK;
}

static bool all_completing(const kiln_slurm_jobs *jobs)
{
    for (size_t i = 0; i < jobs->n; i++)
        if (!kiln_slurm_job_completing(&jobs->job[i])) return false;
    return jobs->n > 0;
}

/* Jobs of the bake that have not ended. Those that are just ending are waited for a while: one that
 * is put back into the queue looks like them first. */
static kiln_status look_for_jobs(const kiln_slurm_bake *b, kiln_slurm_jobs *jobs, kiln_error *err)
{
    KILN_TRY(kiln_slurm_jobs_now(b->folder.path, jobs, err));
    for (unsigned look = 0; look < COMPLETING_LOOKS && all_completing(jobs); look++) {
        kiln_slurm_jobs_release(jobs);
        (void)sleep(1);
        KILN_TRY(kiln_slurm_jobs_now(b->folder.path, jobs, err));
    }
    return KILN_OK;
}

static kiln_status refuse_running(const kiln_slurm_jobs *jobs, kiln_error *err)
{
    char list[400] = "";
    for (size_t i = 0; i < jobs->n; i++)
        (void)snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? " " : "",
                       jobs->job[i].id);
    return kiln_fail(err, KILN_E_BUSY,
                     "jobs of this bake have not ended (%s): see --status, --cancel", list);
}

/* *running: there are jobs already. */
static kiln_status refuse_second(const kiln_slurm_bake *b, bool *running, kiln_error *err)
{
    kiln_slurm_jobs jobs;
    size_t released;
    KILN_TRY(look_for_jobs(b, &jobs, err));
    *running = jobs.n > 0;
    kiln_status st = kiln_slurm_release_held(&jobs, &released, err);
    if (st == KILN_OK && *running && !(o.wait && !gives_settings()))
        st = refuse_running(&jobs, err);
    kiln_slurm_jobs_release(&jobs);
    return st;
}

static kiln_status submit_bake(kiln_slurm_bake *b, bool begun, kiln_error *err)
{
    char out[KILN_PATH_MAX];
    kiln_slurm_settings recall = {0};
    kiln_error lost;
    find_bake_folder(b, out);
    kiln_status st = recall_options(b, begun, out, &recall, err);
    if (st == KILN_OK && kiln_slurm_recall_write(out, b->commands.scene, &recall, &lost) != KILN_OK)
        kiln_warn("the next kiln slurm will not remember tasks and options of sbatch: %s",
                  lost.msg);
    if (st == KILN_OK) st = submit_first(b, err);
    kiln_slurm_settings_release(&recall);
    b->settings = NULL;
    return st;
}

static kiln_status begin_bake(kiln_slurm_bake *b, bool begun, int *code, kiln_error *err)
{
    bool running;
    KILN_TRY(check_file_system(b, err));
    KILN_TRY(kiln_slurm_lock(&b->folder, err)); /* only one at a time looks for jobs and submits */
    KILN_TRY(refuse_second(b, &running, err));
    if (!running) KILN_TRY(submit_bake(b, begun, err));
    kiln_slurm_unlock(&b->folder);
    return o.wait ? kiln_slurm_wait(b, code, err) : KILN_OK;
}

/* ---- the command ----------------------------------------------------------------------------- */

static kiln_status act(kiln_slurm_bake *b, int argc, char **argv, int *code, kiln_error *err)
{
    bool there;
    KILN_TRY(open_slurm_bake(&guest, argc, argv, false, b, &there, err));
    if (b->commands.printed) return KILN_OK;
    if ((o.status || o.cancel) && !there)
        return kiln_fail(err, KILN_E_INPUT, "'%s' was not baked with kiln slurm", b->commands.out);
    if (o.status) return o.json ? kiln_slurm_status_json(b, err) : kiln_slurm_status(b, err);
    if (o.cancel) return kiln_slurm_cancel(b, err);
    const bool begun = there;
    KILN_TRY(check_slurm_scene(b, err));
    kiln_slurm_folder_close(&b->folder);
    KILN_TRY(kiln_slurm_folder_open(b->commands.out, true, &b->folder, &there, err));
    return begin_bake(b, begun, code, err);
}

kiln_status kiln_front_slurm(int argc, char **argv, int *code, kiln_error *err)
{
    static kiln_slurm_bake b; /* too big for the stack */
    const char *const tmpdir = getenv("TMPDIR");
    kiln_words typed = {0};
    kiln_parsed parsed;
    if (argc > 1 && !strcmp(argv[1], "--job")) return be_job(argc - 2, argv + 2, code, err);
    for (const kiln_opt *row = kiln_print_options;
         argc == 2 && !strncmp(argv[1], "--", 2) && row->name; row++)
        if (!strcmp(argv[1] + 2, row->name))
            return kiln_cli_parse(&kiln_front_slurm_cli, argc, argv, &parsed, err);
    b = (kiln_slurm_bake){.typed = &typed,
                          .tmpdir = tmpdir ? tmpdir : "",
                          .folder = {.fd = -1, .parts_fd = -1, .lock_fd = -1}};
    kiln_status st = KILN_OK;
    for (int i = 1; i < argc && st == KILN_OK; i++) st = kiln_words_add(&typed, argv[i], err);
    if (st == KILN_OK) st = act(&b, argc, argv, code, err);
    kiln_slurm_folder_close(&b.folder);
    kiln_bake_commands_release(&b.commands);
    kiln_words_release(&typed);
    return st;
}
