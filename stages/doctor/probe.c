/* Does a GPU compute? A child of its own tries, as a worker would: the same program, bound to the
 * one GPU before exec. A GPU or driver that is ill can crash or hang it without harm here. What it
 * finds comes back as text, its exit code says whether all was well. */
#include "base/log.h"
#include "base/memory.h"
#include "kernels/runner.h"
#include "stages/doctor/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 4099, BLOCK = 1 << 20, CAP = 64 << 20, EXEC_FAILED = 127, END_MS = 5000 };

/* ---- the child ------------------------------------------------------------------------------- */
/* xorshift32 (Marsaglia, "Xorshift RNGs", 2003). */
static uint32_t next(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* 1 MiB there and back. */
static kiln_status copy_block(kiln_exec *x, kiln_error *err)
{
    uint32_t *sent = NULL, *got = NULL, state = 1;
    void *block = NULL;
    kiln_status st = KILN_OK;
    const uint64_t n = BLOCK / sizeof *sent;
    KILN_GO(KILN_ALLOC(&sent, n, "a block to send", err));
    KILN_GO(KILN_ALLOC(&got, n, "a block to receive", err));
    for (uint64_t i = 0; i < n; i++) sent[i] = next(&state);
    KILN_GO(kiln_device_alloc(x->device, BLOCK, &block, err));
    KILN_GO(kiln_device_copy_in(x, block, sent, BLOCK, err));
    KILN_GO(kiln_device_copy_out(x, got, block, BLOCK, err));
    KILN_GO(kiln_device_wait(x, err));
    if (memcmp(sent, got, BLOCK) != 0)
        st = kiln_fail(err, KILN_E_DEVICE,
                       "1 MiB copied to the GPU and back came back changed, so its memory or the "
                       "bus is faulty");
done:
    kiln_device_free(x->device, block);
    free(sent);
    free(got);
    return st;
}

typedef struct {
    float means[3 * ROWS];
    uint32_t order[ROWS];
    uint64_t codes[ROWS];
} sorted_rows;

/* Rows along the Hilbert curve: doubles, integers, CUB's sort. */
static kiln_status sort_rows(int device, sorted_rows *s, kiln_runner_info *info, kiln_error *err)
{
    uint32_t state = 2463534242u;
    kiln_runner *r = NULL;
    const kiln_runner_options o = {.device = device, .threads = 1, .sync = true, .cap_bytes = CAP};
    const kiln_spatial_order_args a = {.n = ROWS,
                                       .means = s->means,
                                       .centre = {0.5, 0.5, 0.5},
                                       .half = 0.5,
                                       .order = s->order,
                                       .codes = s->codes};
    for (size_t i = 0; i < sizeof s->means / sizeof *s->means; i++)
        s->means[i] = (float)(next(&state) >> 8) * 0x1p-24f;
    KILN_TRY(kiln_runner_new(&o, &r, err));
    const kiln_status st = kiln_runner_run(r, KILN_OP_spatial_order, &a, err);
    *info = kiln_runner_get_info(r);
    kiln_runner_free(r);
    return st;
}

static kiln_status compare_bits(kiln_runner_info *info, kiln_error *err)
{
    sorted_rows *there = NULL, *here = NULL;
    kiln_runner_info host;
    kiln_status st = KILN_OK;
    KILN_GO(KILN_ALLOC(&there, 1, "rows for the GPU", err));
    KILN_GO(KILN_ALLOC(&here, 1, "rows for the CPU", err));
    KILN_GO(sort_rows(0, there, info, err));
    KILN_GO(sort_rows(KILN_RUNNER_CPU, here, &host, err));
    if (info->n_device == 0)
        st = kiln_fail(err, KILN_E_DEVICE,
                       "it has less than %d MiB of memory left; end the other programs on it",
                       CAP >> 20);
    else if (memcmp(there, here, sizeof *here) != 0)
        st = kiln_fail(
            err, KILN_E_DEVICE,
            "it does not compute the same bits as the CPU; do not bake on it, and test its memory");
done:
    free(there);
    free(here);
    return st;
}

kiln_status kiln_doctor_probe_here(char *text, size_t size, kiln_error *err)
{
    kiln_device_info device;
    kiln_runner_info info;
    kiln_exec x = {.device = 0, .threads = 1, .sync = true};
    KILN_TRY(kiln_device_open(0, &device, err));
    KILN_TRY(kiln_device_stream_new(0, false, &x.stream, err));
    const kiln_status st = copy_block(&x, err);
    kiln_device_stream_free(0, x.stream);
    KILN_TRY(st);
    KILN_TRY(compare_bits(&info, err));
    (void)snprintf(text, size, "%.100s, compute capability %u.%u, gives the CPU's bits",
                   device.name, device.major, device.minor);
    return KILN_OK;
}

/* ---- the parent ------------------------------------------------------------------------------ */
/* Between fork and exec, as the engine's workers (stages/engine/parent/worker_process.c). Does not
 * return. */
static void become_child(int fd, const kiln_device *device, pid_t parent)
{
    char *const argv[] = {"kiln-doctor", KILN_DOCTOR_PROBE, NULL};
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(EXEC_FAILED);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0)
        _exit(EXEC_FAILED);
    if (dup2(fd, STDOUT_FILENO) < 0) _exit(EXEC_FAILED);
    /* where the kernel lacks it: ours are close-on-exec anyway */
    (void)close_range(STDERR_FILENO + 1, ~0U, 0);
    if (setenv("CUDA_VISIBLE_DEVICES", device->visible, 1) != 0) _exit(EXEC_FAILED);
    if (device->chosen && setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1) != 0) _exit(EXEC_FAILED);
    kiln_cpus_bind(device->cpus);
    execv("/proc/self/exe", argv);
    _exit(EXEC_FAILED);
}

/* Until end of file; false: it did not come in time. The first line stays. */
static bool listen_to_probe(int fd, unsigned timeout_ms, char *text, size_t size)
{
    char rest[256];
    size_t used = 0;
    const uint64_t end = kiln_now_ns() + timeout_ms * UINT64_C(1000000);
    text[0] = '\0';
    while (kiln_now_ns() < end) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        if (poll(&p, 1, 100) <= 0) continue;
        const bool full = used + 1 >= size;
        const ssize_t n =
            full ? read(fd, rest, sizeof rest) : read(fd, text + used, size - 1 - used);
        if (n == 0) {
            text[strcspn(text, "\n")] = '\0';
            return true;
        }
        if (n < 0 && errno != EINTR && errno != EAGAIN) return false;
        if (n > 0 && !full) text[used += (size_t)n] = '\0';
    }
    return false;
}

static bool has_ended(pid_t pid, int *status)
{
    for (int ms = 0; ms < END_MS; ms++) {
        if (waitpid(pid, status, WNOHANG) == pid) return true;
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return false;
}

/* The sentence where the child had none. */
static void say_end(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status))
        (void)snprintf(text, size, "the process that tried it died of signal %d (%s)",
                       WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (!*text)
        (void)snprintf(text, size, "the process that tried it ended with exit code %d",
                       WEXITSTATUS(status));
}

bool kiln_doctor_probe(const kiln_device *device, unsigned timeout_ms, char *text, size_t size)
{
    int ends[2], status = 0;
    const pid_t parent = getpid();
    text[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) != 0) {
        (void)snprintf(text, size, "no pipe can be made to try it: %s", strerror(errno));
        return false;
    }
    const pid_t pid = fork();
    if (pid == 0) become_child(ends[1], device, parent);
    (void)close(ends[1]);
    const bool heard = pid > 0 && listen_to_probe(ends[0], timeout_ms, text, size);
    (void)close(ends[0]);
    if (pid < 0) {
        (void)snprintf(text, size, "no process can be started to try it: %s", strerror(errno));
        return false;
    }
    if (!heard || !has_ended(pid, &status)) {
        /* inside an ill driver it may outlive even that: it is left to init then */
        (void)kill(pid, SIGKILL);
        (void)snprintf(text, size, "it did not answer within %u s", timeout_ms / 1000);
        return false;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    say_end(status, text, size);
    return false;
}
