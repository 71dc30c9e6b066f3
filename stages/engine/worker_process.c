/* Starting, ending and mourning worker processes; what they took.
 *
 * A worker is this executable again (/proc/self/exe), forked from the main thread, with every option resolved to text
 * and the socket as descriptor 3. One on a GPU sees no other: CUDA_VISIBLE_DEVICES is set before exec. It dies with its parent:
 * PR_SET_PDEATHSIG, checked again with getppid because the parent may have died between fork and prctl, and end of file on the
 * socket. It inherits no other descriptor, above all not the manifest's lock. */
#include "stages/engine/engine_internal.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORKER_FD = 3, EXEC_FAILED = 127, STOP_MS = 3000 };

/* ---- the command line of a worker --------------------------------------------------------------------------------- */
typedef struct {
    char **items;
    size_t n, room;
} argument_list;

static void arguments_release(argument_list *a)
{
    for (size_t i = 0; i < a->n; i++) free(a->items[i]);
    free(a->items);
}

static kiln_status add_argument(argument_list *a, const char *before, const char *name, const char *between, const char *value,
                                kiln_error *err)
{
    kiln_buffer text = {0};
    if (a->n + 1 >= a->room) { /* one more than asked: the list stays NULL-terminated */
        size_t room = a->room ? 2 * a->room : 64;
        char **items;
        KILN_TRY(KILN_ALLOC(&items, room, "a worker's arguments", err));
        if (a->n) memcpy(items, a->items, a->n * sizeof *items);
        free(a->items);
        a->items = items;
        a->room = room;
    }
    kiln_status st = kiln_buffer_printf(&text, err, "%s%s%s%s", before, name, between, value);
    if (st != KILN_OK) {
        kiln_buffer_release(&text);
        return st;
    }
    a->items[a->n++] = (char *)text.data;
    return KILN_OK;
}

/* Rows such as --help, which print something and end the program, share one storage. */
static const void *printer_storage(const kiln_opt *o)
{
    for (; o && o->name; o++)
        if (!strcmp(o->name, "help")) return o->where;
    return NULL;
}

static kiln_status add_option(argument_list *a, const kiln_opt *o, kiln_error *err)
{
    if (o->kind == KILN_OPT_BOOL) return add_argument(a, *(const bool *)o->where ? "--" : "--no-", o->name, "", "", err);
    if (o->kind == KILN_OPT_TEXT || o->kind == KILN_OPT_PATH) {
        const char *text = *(const char *const *)o->where;
        return text && *text ? add_argument(a, "--", o->name, "=", text, err) : KILN_OK;
    }
    char text[256];
    kiln_opt_text(o, text, sizeof text);
    return *text ? add_argument(a, "--", o->name, "=", text, err) : KILN_OK;
}

/* Several workers share the threads; given last, this wins over what was typed. */
static kiln_status add_threads(argument_list *a, unsigned n_devices, kiln_error *err)
{
    char number[16];
    const unsigned share = kiln_devices_threads(kiln_common_values.threads) / n_devices;
    (void)snprintf(number, sizeof number, "%u", share ? share : 1);
    return add_argument(a, "--threads", "=", "", number, err);
}

static kiln_status make_arguments(const kiln_run *r, const kiln_device *device, argument_list *a, kiln_error *err)
{
    char fd[16];
    (void)snprintf(fd, sizeof fd, "%d", WORKER_FD);
    KILN_TRY(add_argument(a, "", r->cli.program, "", "", err));
    KILN_TRY(add_argument(a, KILN_WORKER_FLAG, device->kind == KILN_DEVICE_CUDA ? "cuda" : "cpu", ":", fd, err));
    for (const kiln_opt *o = r->cli.options; o && o->name; o++) KILN_TRY(add_option(a, o, err));
    const void *printers = printer_storage(r->cli.common);
    for (const kiln_opt *o = r->cli.common; o && o->name; o++)
        if (o->where != printers) KILN_TRY(add_option(a, o, err));
    if (r->devices.n > 1) KILN_TRY(add_threads(a, r->devices.n, err));
    KILN_TRY(add_argument(a, "--", "", "", "", err));
    for (unsigned i = 0; i < r->parsed.n_positional; i++) KILN_TRY(add_argument(a, "", r->parsed.positional[i], "", "", err));
    return KILN_OK;
}

/* ---- start ---------------------------------------------------------------------------------------------------------- */
/* Between fork and exec: only calls that are safe there. Does not return. */
static void become_worker(char **argv, int fd, const kiln_device *device, pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(EXEC_FAILED);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0) _exit(EXEC_FAILED);
    if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0) _exit(EXEC_FAILED); /* stdout is the parent's data */
    if (fd == WORKER_FD) {
        if (fcntl(fd, F_SETFD, 0) != 0) _exit(EXEC_FAILED);
    } else if (dup2(fd, WORKER_FD) < 0) {
        _exit(EXEC_FAILED);
    }
    (void)close_range(WORKER_FD + 1, ~0U, 0); /* where the kernel lacks it: ours are close-on-exec anyway */
    if (*device->visible && setenv("CUDA_VISIBLE_DEVICES", device->visible, 1) != 0) _exit(EXEC_FAILED);
    if (device->chosen && setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1) != 0) _exit(EXEC_FAILED);
    kiln_cpus_bind(device->cpus);
    (void)setenv("OMP_WAIT_POLICY", "passive", 0); /* threads that wait leave the core to others; without: only slower */
    execv("/proc/self/exe", argv);
    _exit(EXEC_FAILED);
}

kiln_status kiln_worker_await(kiln_worker_process *w, kiln_error *err)
{
    kiln_message m;
    int memfd;
    bool closed;
    struct pollfd p = {.fd = w->fd, .events = POLLIN};
    while (!p.revents) KILN_TRY(kiln_interrupt_poll(&p, 1, err)); /* opening a GPU can take long, or hang */
    KILN_TRY(kiln_message_receive(w->fd, &m, &memfd, &closed, err));
    if (closed) return kiln_worker_death(w, NULL, err);
    if (memfd >= 0) (void)close(memfd);
    if (m.kind == KILN_MSG_FAILED) {
        (void)kiln_fail(err, (kiln_status)m.status, "%s", m.text);
        if (*w->device->visible) kiln_note(err, "the worker on GPU '%s'", w->device->visible);
        kiln_devices_advise(err);
        return (kiln_status)m.status;
    }
    if (m.kind != KILN_MSG_HELLO) return kiln_fail(err, KILN_E_BUG, "the worker began with message %u", m.kind);
    (void)snprintf(w->device_text, sizeof w->device_text, "%.159s", m.text);
    w->use = m.use;
    w->ready = true;
    kiln_chat("worker %d: %s", (int)w->pid, w->device_text);
    return KILN_OK;
}

kiln_status kiln_worker_start(const kiln_run *r, const kiln_device *device, kiln_worker_process *w, kiln_error *err)
{
    kiln_status st = KILN_OK;
    argument_list a = {0};
    int pair[2] = {-1, -1};
    KILN_GO(make_arguments(r, device, &a, err));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        st = kiln_fail(err, KILN_E_IO, "cannot make a socket for the worker: %s", strerror(errno));
        goto done;
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) become_worker(a.items, pair[1], device, parent);
    if (pid < 0) {
        st = kiln_fail(err, KILN_E_NOMEM, "cannot start a worker: %s", strerror(errno));
        goto done;
    }
    *w = (kiln_worker_process){.pid = pid, .fd = pair[0], .device = device};
    pair[0] = -1;
done: /* pair[1] too: its end of file is how we learn of a worker's death */
    for (int i = 0; i < 2; i++)
        if (pair[i] >= 0) (void)close(pair[i]);
    arguments_release(&a);
    return st;
}

/* ---- end ------------------------------------------------------------------------------------------------------------ */
/* Waits so long for the end, then kills. The wait status. */
static int reap(pid_t pid, int patience_ms)
{
    int status = 0;
    for (int ms = 0; ms < patience_ms; ms++) {
        pid_t got = waitpid(pid, &status, WNOHANG);
        if (got == pid) return status;
        if (got < 0 && errno != EINTR) return 0;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    return status;
}

static void say_use(const kiln_worker_process *w)
{
    char peak[32], cap[32];
    if (w->use.vram_cap == 0) return;
    kiln_chat("worker %d: took %s of device memory at most, %s allowed; %llu operations needed more and ran on the CPU",
              (int)w->pid, kiln_size_text(w->use.vram_peak, peak), kiln_size_text(w->use.vram_cap, cap),
              (unsigned long long)w->use.n_host);
}

/* All are told before the first is waited for: giving a GPU back takes its time. */
void kiln_workers_stop(kiln_worker_process *workers, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (workers[i].pid > 0) (void)close(workers[i].fd);
    for (unsigned i = 0; i < n; i++) {
        kiln_worker_process *w = &workers[i];
        if (w->pid <= 0) continue;
        (void)reap(w->pid, w->n_flight || !w->ready ? 0 : STOP_MS);
        say_use(w);
        w->pid = 0;
        w->n_flight = 0;
    }
}

/* How it ended: status, and the sentence as far as that goes. */
static kiln_status say_end(int status, bool on_gpu, kiln_error *err)
{
    const kiln_status of_device = on_gpu ? KILN_E_DEVICE : KILN_E_BUG;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
        return kiln_fail(err, KILN_E_NOMEM, "the worker was killed (signal 9), perhaps because the machine ran out of memory,");
    if (WIFSIGNALED(status))
        return kiln_fail(err, of_device, "the worker died of signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return kiln_fail(err, of_device, "the worker ended with exit code %d", WEXITSTATUS(status));
}

kiln_status kiln_worker_death(kiln_worker_process *w, const char *unit, kiln_error *err)
{
    kiln_error end = {0};
    const int status = reap(w->pid, STOP_MS);
    (void)close(w->fd);
    w->pid = 0;
    w->n_flight = 0;
    if (!WIFSIGNALED(status) && WEXITSTATUS(status) == EXEC_FAILED)
        return kiln_fail(err, KILN_E_IO, "the worker could not be started; is /proc mounted and the program still in its place?");
    const kiln_status st = say_end(status, w->device->kind == KILN_DEVICE_CUDA, &end);
    if (unit)
        (void)kiln_fail(err, st, "%.300s while it computed '%s'; finished units are kept, run the same command to go on", end.msg,
                        unit);
    else
        (void)kiln_fail(err, st, "%.300s before it was ready%s%s%s", end.msg, *w->device->visible ? ", on GPU '" : "",
                        w->device->visible, *w->device->visible ? "'" : "");
    if (st == KILN_E_DEVICE) kiln_devices_advise(err);
    return st;
}

/* ---- what they took ------------------------------------------------------------------------------------------------- */
kiln_worker_use kiln_workers_use(const kiln_worker_process *workers, unsigned n)
{
    kiln_worker_use all = {0};
    for (unsigned i = 0; i < n; i++) {
        const kiln_worker_use *u = &workers[i].use;
        if (u->peak_rss > all.peak_rss) all.peak_rss = u->peak_rss;
        if (u->vram_peak > all.vram_peak) all.vram_peak = u->vram_peak;
        if (u->vram_cap > all.vram_cap) all.vram_cap = u->vram_cap;
        all.n_host += u->n_host;
    }
    return all;
}

void kiln_workers_devices(const kiln_worker_process *workers, unsigned n, char *out, size_t size)
{
    size_t used = 0;
    *out = '\0';
    for (unsigned i = 0; i < n && used < size; i++) {
        const int more = snprintf(out + used, size - used, "%s%s", used ? "; " : "", workers[i].device_text);
        used += more > 0 ? (size_t)more : 0;
    }
}
