/* The programs beside `kiln`. Our own stages are called. Any other program is started with fork and
 * exec, its answer is read from a pipe, its end is waited for. */
#include "stages/front/programs.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/own_program.h"
#include "stages/engine/json_text.h"
#include "stages/engine/program.h"
#include "stages/engine/stage_graph.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PREFIX "kiln-"
enum { ANSWER_MAX = 4 << 20, EXEC_FAILED = 127, HEAD = 4096 };
#define SELF "/proc/self/exe"

/* ---- finding --------------------------------------------------------------------------------- */

kiln_status kiln_program_path(const char *name, char *out, kiln_error *err)
{
    char folder[KILN_PATH_MAX], file[KILN_PROGRAM_NAME_MAX + sizeof PREFIX];
    KILN_TRY(kiln_own_folder(folder, err));
    (void)snprintf(file, sizeof file, PREFIX "%.63s", name);
    return kiln_path_join(out, KILN_PATH_MAX, folder, file, err);
}

static int is_program(const struct dirent *e)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    const size_t n = strlen(e->d_name), prefix = strlen(PREFIX);
    return n > prefix && n - prefix < KILN_PROGRAM_NAME_MAX &&
           !strncmp(e->d_name, PREFIX, prefix) && strspn(e->d_name, letters) == n;
}

static void list_program(kiln_program_list *list, const char *name, bool is_stage)
{
    if (list->n == KILN_PROGRAMS_MAX) return;
    kiln_program_entry *e = &list->entry[list->n++];
    (void)snprintf(e->name, sizeof e->name, "%s", name);
    e->is_stage = is_stage;
}

kiln_status kiln_programs_list(kiln_program_list *out, kiln_error *err)
{
    char folder[KILN_PATH_MAX], path[KILN_PATH_MAX];
    struct dirent **found = NULL;
    *out = (kiln_program_list){0};
    for (const kiln_stage_info *s = kiln_stage_graph; s->name; s++)
        list_program(out, s->name, true);
    KILN_TRY(kiln_own_folder(folder, err));
    const int n = scandir(folder, &found, is_program, alphasort);
    if (n < 0) return kiln_fail(err, KILN_E_IO, "cannot read '%s': %s", folder, strerror(errno));
    for (int i = 0; i < n; i++) {
        const char *name = found[i]->d_name + strlen(PREFIX);
        const bool fits =
            kiln_path_join(path, sizeof path, folder, found[i]->d_name, NULL) == KILN_OK;
        if (fits && !kiln_stage_find(name) && kiln_is_file(path) && access(path, X_OK) == 0)
            list_program(out, name, false);
        free(found[i]);
    }
    free(found);
    return KILN_OK;
}

/* ---- which of them are in this program ------------------------------------------------------- */

static bool read_program_head(const char *path, char head[HEAD])
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const bool whole = fd >= 0 && read(fd, head, HEAD) == HEAD;
    if (fd >= 0) close(fd);
    return whole;
}

/* Where a file lost its second name (an archive, another file system), the programs are copies of
 * each other. The head of a program has the number that the linker made of all of it
 * (--build-id). */
static bool is_this_program(const char *path)
{
    struct stat self, other;
    char a[HEAD], b[HEAD];
    if (stat(SELF, &self) != 0 || stat(path, &other) != 0 || self.st_size != other.st_size)
        return false;
    if (self.st_dev == other.st_dev && self.st_ino == other.st_ino) return true;
    return read_program_head(SELF, a) && read_program_head(path, b) && memcmp(a, b, HEAD) == 0;
}

const kiln_stage_program *kiln_program_own(const char *name)
{
    char path[KILN_PATH_MAX];
    const kiln_stage_program *p = kiln_stage_program_find(name);
    return p && kiln_program_path(name, path, NULL) == KILN_OK && is_this_program(path) ? p : NULL;
}

/* ---- starting -------------------------------------------------------------------------------- */

/* Between fork and exec: only calls that are safe there. Does not return. stdout_fd < 0: ours. */
static void become_child(const char *path, char **argv, int stdout_fd, const sigset_t *mask,
                         pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent) _exit(EXEC_FAILED);
    if (stdout_fd >= 0 && dup2(stdout_fd, STDOUT_FILENO) < 0) _exit(EXEC_FAILED);
    (void)sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(path, argv); /* which is safe there in glibc and musl, too */
    const char *const parts[] = {"kiln: cannot run '", path, "'\n"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (write(STDERR_FILENO, parts[i], strlen(parts[i])) < 0) break;
    _exit(EXEC_FAILED);
}

static kiln_status check_there(const char *path, kiln_error *err)
{
    if (access(path, X_OK) == 0) return KILN_OK;
    return kiln_fail(err, KILN_E_IO, "cannot run '%s': %s; is the installation complete?", path,
                     strerror(errno));
}

static kiln_status start_words(char **argv, int stdout_fd, const sigset_t *mask, pid_t *pid,
                               kiln_error *err)
{
    const pid_t parent = getpid();
    *pid = fork();
    if (*pid < 0)
        return kiln_fail(err, KILN_E_IO, "cannot start '%s': %s", argv[0], strerror(errno));
    if (*pid == 0) become_child(argv[0], argv, stdout_fd, mask, parent);
    return KILN_OK;
}

static kiln_status start_program(const char *name, char **argv, int stdout_fd, const sigset_t *mask,
                                 pid_t *pid, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    KILN_TRY(kiln_program_path(name, path, err));
    KILN_TRY(check_there(path, err));
    argv[0] = path;
    return start_words(argv, stdout_fd, mask, pid, err);
}

static int wait_for(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    return status;
}

kiln_status kiln_program_become(const char *name, char **argv, kiln_error *err)
{
    char path[KILN_PATH_MAX];
    KILN_TRY(kiln_program_path(name, path, err));
    KILN_TRY(check_there(path, err));
    argv[0] = path;
    execvp(path, argv); /* which is safe there in glibc and musl, too */
    return kiln_fail(err, KILN_E_IO, "cannot run '%s': %s", path, strerror(errno));
}

/* ---- asking ---------------------------------------------------------------------------------- */

static kiln_status read_answer(int fd, kiln_buffer *out, kiln_error *err)
{
    char part[16384];
    for (;;) {
        const ssize_t n = read(fd, part, sizeof part);
        if (n == 0) return KILN_OK;
        if (n < 0 && errno == EINTR) continue;
        if (n < 0)
            return kiln_fail(err, KILN_E_IO, "cannot read a program's answer: %s", strerror(errno));
        if (out->size + (size_t)n > ANSWER_MAX)
            return kiln_fail(err, KILN_E_IO, "a program's answer is too long");
        KILN_TRY(kiln_buffer_put(out, part, (size_t)n, err));
    }
}

static kiln_status listen_to_program(const char *name, kiln_buffer *out, kiln_error *err)
{
    char *argv[] = {NULL, (char[]){"--help-json"}, NULL};
    int ends[2];
    pid_t pid;
    sigset_t mask;
    (void)sigprocmask(SIG_BLOCK, NULL, &mask);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return kiln_fail(err, KILN_E_IO, "cannot make a pipe: %s", strerror(errno));
    kiln_status st = start_program(name, argv, ends[1], &mask, &pid, err);
    close(ends[1]);
    if (st == KILN_OK) {
        st = read_answer(ends[0], out, err);
        close(ends[0]);
        const int status = wait_for(pid);
        if (st == KILN_OK && status != 0)
            st = kiln_fail(err, KILN_E_IO,
                           PREFIX
                           "%s does not list its options; does it belong to this version of kiln?",
                           name);
    } else {
        close(ends[0]);
    }
    return st;
}

static kiln_status ask_own(const kiln_stage_program *p, kiln_buffer *out, kiln_error *err)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) return kiln_fail(err, KILN_E_NOMEM, "out of memory for the options of %s", p->name);
    kiln_status st = kiln_program_help_json(p, f, err);
    if (fclose(f) != 0 && st == KILN_OK)
        st = kiln_fail(err, KILN_E_NOMEM, "out of memory for the options of %s", p->name);
    if (st == KILN_OK) st = kiln_buffer_put(out, text, n, err);
    free(text);
    return st;
}

kiln_status kiln_program_ask(const char *name, json_t **out, kiln_error *err)
{
    const kiln_stage_program *own = kiln_program_own(name);
    kiln_buffer answer = {0};
    *out = NULL;
    kiln_status st = own ? ask_own(own, &answer, err) : listen_to_program(name, &answer, err);
    if (st == KILN_OK)
        st = kiln_json_parse((const char *)answer.data, answer.size, 0, "a program's options", out,
                             NULL, err);
    kiln_buffer_release(&answer);
    if (st == KILN_OK && !json_is_array(json_object_get(*out, "options"))) {
        json_decref(*out);
        *out = NULL;
        st = kiln_fail(err, KILN_E_IO,
                       "the answer of " PREFIX
                       "%s is not understood; does it belong to this version of kiln?",
                       name);
    }
    return st;
}

/* ---- running --------------------------------------------------------------------------------- */

/* Waits for the child, with SIGINT, SIGTERM, SIGHUP and SIGCHLD blocked and taken here one by one.
 * What the terminal sends (Ctrl-C), it sends to the child too; what another process sends to us
 * alone is passed on. */
static int wait_and_pass_on(pid_t pid, const sigset_t *taken)
{
    for (;;) {
        int status;
        siginfo_t info;
        const pid_t ended = waitpid(pid, &status, WNOHANG);
        if (ended == pid || (ended < 0 && errno != EINTR)) return ended == pid ? status : 0;
        if (sigwaitinfo(taken, &info) < 0 || info.si_signo == SIGCHLD) continue;
        if (info.si_code != SI_KERNEL) (void)kill(pid, info.si_signo);
    }
}

/* SIGINT, SIGTERM and SIGHUP come to this process, where the stage watches for them. */
static int run_own(const kiln_stage_program *p, const char **argv)
{
    int argc = 1;
    argv[0] = p->cli->program;
    while (argv[argc]) argc++;
    const int code = kiln_program_main(p, argc, (char **)argv);
    clearerr(stdout); /* the stage has told what could not be written */
    kiln_memory_trim();
    return code;
}

static bool is_ignored(int signal)
{
    struct sigaction was;
    return sigaction(signal, NULL, &was) == 0 && was.sa_handler == SIG_IGN;
}

/* name NULL: argv[0] is the program. stdout_fd -1: this process's own. */
static kiln_status run_child(const char *name, const char **argv, int stdout_fd, int *code,
                             int *signal, kiln_error *err)
{
    sigset_t taken, before;
    pid_t pid;
    sigemptyset(&taken);
    sigaddset(&taken, SIGINT);
    sigaddset(&taken, SIGTERM);
    if (!is_ignored(SIGHUP))
        sigaddset(&taken, SIGHUP); /* blocked, it would be taken all the same */
    sigaddset(&taken, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &taken, &before);
    const kiln_status st = name ? start_program(name, (char **)argv, stdout_fd, &before, &pid, err)
                                : start_words((char **)argv, stdout_fd, &before, &pid, err);
    if (st == KILN_OK) {
        const int status = wait_and_pass_on(pid, &taken);
        *signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        *code = *signal ? 128 + *signal : WEXITSTATUS(status);
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return st;
}

kiln_status kiln_program_run(const char *name, const char **argv, bool quiet, int *code,
                             int *signal, kiln_error *err)
{
    const kiln_stage_program *own = quiet ? NULL : kiln_program_own(name);
    int null = -1;
    *code = *signal = 0;
    if (own) {
        *code = run_own(own, argv);
        return KILN_OK;
    }
    if (quiet && (null = open("/dev/null", O_WRONLY | O_CLOEXEC)) < 0)
        return kiln_fail(err, KILN_E_IO, "cannot open /dev/null: %s", strerror(errno));
    const kiln_status st = run_child(name, argv, null, code, signal, err);
    if (null >= 0) close(null);
    return st;
}

kiln_status kiln_program_run_words(char **words, int *code, kiln_error *err)
{
    int signal;
    *code = 0;
    return run_child(NULL, (const char **)words, -1, code, &signal, err);
}
