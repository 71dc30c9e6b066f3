#include "tests/gpu/again.h"

#include "tests/gpu/call.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void be_again(int out, const char *a, const char *b, const char *c)
{
    if (dup2(out, STDOUT_FILENO) >= 0) execl("/proc/self/exe", "again", a, b, c, (char *)NULL);
    _exit(127);
}

int run_again(const char *a, const char *b, const char *c, char *said, size_t capacity)
{
    int ends[2], status = 0;
    size_t have = 0;
    ssize_t got = 0;
    if (pipe(ends) != 0) call_off("pipe", strerror(errno));
    const pid_t pid = fork();
    if (pid < 0) call_off("fork", strerror(errno));
    if (pid == 0) be_again(ends[1], a, b, c);
    (void)close(ends[1]); /* else the end of what it says would never come */
    while (have + 1 < capacity && (got = read(ends[0], said + have, capacity - 1 - have)) > 0)
        have += (size_t)got;
    if (got < 0) call_off("read", strerror(errno));
    said[have] = '\0';
    (void)close(ends[0]);
    if (waitpid(pid, &status, 0) != pid) call_off("waitpid", strerror(errno));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

int can_run_again(void)
{
    if (!getenv("KILN_GPU_SMALL")) return 1;
    printf("skipped: processes of their own do not come back beneath compute-sanitizer\n");
    return 0;
}
