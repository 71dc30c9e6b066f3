/* command -- see the header. */
#include "stages/front/command.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SAID_MAX = 512 << 20, NO_SUCH_PROGRAM = 127 };

bool kiln_command_exists(const char *name)
{
    const char *at = getenv("PATH");
    char path[KILN_PATH_MAX];
    while (at && *at) {
        const size_t n = strcspn(at, ":");
        const int length =
            snprintf(path, sizeof path, "%.*s/%s", n ? (int)n : 1, n ? at : ".", name);
        if (length > 0 && length < (int)sizeof path && kiln_is_file(path) &&
            access(path, X_OK) == 0)
            return true;
        at += n + (at[n] == ':');
    }
    return false;
}

/* Between fork and exec. Does not return. */
static void become_command(char **words, char *const *environment, int out, int complaint)
{
    const int null = open("/dev/null", O_RDONLY);
    sigset_t none;
    sigemptyset(&none);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(complaint, STDERR_FILENO) < 0)
        _exit(NO_SUCH_PROGRAM);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (environment)
        execvpe(words[0], words, environment);
    else
        execvp(words[0], words);
    const char *const parts[] = {"cannot run ", words[0], "\n"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (write(STDERR_FILENO, parts[i], strlen(parts[i])) < 0) break;
    _exit(NO_SUCH_PROGRAM);
}

/* What can be read of one of the two; *fd becomes -1 at its end. */
static kiln_status read_some(int *fd, kiln_buffer *b, kiln_error *err)
{
    char part[65536];
    const ssize_t n = read(*fd, part, sizeof part);
    if (n < 0 && errno == EINTR) return KILN_OK;
    if (n < 0)
        return kiln_fail(err, KILN_E_IO, "cannot read a program's answer: %s", strerror(errno));
    if (b->size + (size_t)n > SAID_MAX)
        return kiln_fail(err, KILN_E_IO, "a program's answer is too long");
    if (n > 0) return kiln_buffer_put(b, part, (size_t)n, err);
    (void)close(*fd); /* was only read */
    *fd = -1;
    return KILN_OK;
}

static kiln_status read_both(int fds[2], kiln_command_answer *a, kiln_error *err)
{
    kiln_buffer *const into[2] = {&a->out, &a->complaint};
    while (fds[0] >= 0 || fds[1] >= 0) {
        struct pollfd p[2] = {{.fd = fds[0], .events = POLLIN}, {.fd = fds[1], .events = POLLIN}};
        if (poll(p, 2, -1) < 0 && errno != EINTR)
            return kiln_fail(err, KILN_E_IO, "cannot wait for a program's answer: %s",
                             strerror(errno));
        for (int i = 0; i < 2; i++)
            if (fds[i] >= 0 && p[i].revents) KILN_TRY(read_some(&fds[i], into[i], err));
    }
    for (int i = 0; i < 2; i++) {
        KILN_TRY(kiln_buffer_put(into[i], NULL, 1, err)); /* a NUL, which `size` does not count */
        into[i]->size--;
    }
    return KILN_OK;
}

static void close_ends(int ends[2])
{
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0) (void)close(ends[i]); /* of a pipe */
}

static int code_of_child(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

kiln_status kiln_command_ask(const kiln_words *words, char *const *environment,
                             kiln_command_answer *a, kiln_error *err)
{
    int out[2] = {-1, -1}, complaint[2] = {-1, -1};
    *a = (kiln_command_answer){0};
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(complaint, O_CLOEXEC) != 0) {
        const int why = errno;
        close_ends(out);
        return kiln_fail(err, KILN_E_IO, "cannot make a pipe: %s", strerror(why));
    }
    const pid_t pid = fork();
    if (pid == 0) become_command(words->word, environment, out[1], complaint[1]);
    const int why = errno;
    (void)close(out[1]);
    (void)close(complaint[1]);
    int fds[2] = {out[0], complaint[0]};
    kiln_status st =
        pid < 0 ? kiln_fail(err, KILN_E_IO, "cannot start '%s': %s", words->word[0], strerror(why))
                : KILN_OK;
    if (st == KILN_OK) st = read_both(fds, a, err);
    close_ends(fds); /* a child that still writes ends then */
    if (pid > 0) a->code = code_of_child(pid);
    return st;
}

const char *kiln_command_text(const kiln_buffer *b) { return b->data ? (const char *)b->data : ""; }

void kiln_command_release(kiln_command_answer *a)
{
    kiln_buffer_release(&a->out);
    kiln_buffer_release(&a->complaint);
}
