/* Starting worker processes.
 *
 * A worker is this executable again (/proc/self/exe), forked from the main thread. It gets every
 * option as text and the socket as descriptor 3. A worker on a GPU sees only this GPU, because
 * CUDA_VISIBLE_DEVICES is set before exec. A worker ends with its parent, by PR_SET_PDEATHSIG and
 * by end of file on the socket; getppid is checked after prctl because the parent may have died
 * between fork and prctl. It inherits no other descriptor; above all it must not hold the
 * manifest's lock.
 *
 * For the first process of a slot, one that rests since an earlier stage does as well
 * (worker_rest.c). It gets the same arguments.
 */
#include "stages/engine/parent/worker_process.h"

#include "base/log.h"
#include "base/memory.h"
#include "stages/engine/memory/memfd.h"
#include "stages/engine/parent/run.h"
#include "stages/engine/parent/worker_end.h"
#include "stages/engine/parent/worker_rest.h"
#include "stages/engine/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WORKER_FD = 3 };

/* ---- the command line of a worker ------------------------------------------------------------ */
typedef struct {
    char **items;
    size_t n, capacity;
} argument_list;

static void arguments_release(argument_list *a)
{
    for (size_t i = 0; i < a->n; i++) free(a->items[i]);
    free(a->items);
}

static kiln_status add_argument(argument_list *a, const char *before, const char *name,
                                const char *between, const char *value, kiln_error *err)
{
    kiln_buffer text = {0};
    if (a->n + 1 >= a->capacity) { /* one more than asked: the list stays NULL-terminated */
        size_t capacity = a->capacity ? 2 * a->capacity : 64;
        char **items;
        KILN_TRY(KILN_ALLOC(&items, capacity, "a worker's arguments", err));
        if (a->n) memcpy(items, a->items, a->n * sizeof *items);
        free(a->items);
        a->items = items;
        a->capacity = capacity;
    }
    kiln_status st = kiln_buffer_printf(&text, err, "%s%s%s%s", before, name, between, value);
    if (st != KILN_OK) {
        kiln_buffer_release(&text);
        return st;
    }
    a->items[a->n++] = (char *)text.data;
    return KILN_OK;
}

/* Returns the storage that rows such as --help share, which print something and end the program. */
static const void *printer_storage(const kiln_opt *o)
{
    for (; o && o->name; o++)
        if (!strcmp(o->name, "help")) return o->where;
    return NULL;
}

/* Item by item, as a user would type them; `text` is scratch. */
static kiln_status add_items(argument_list *a, const kiln_opt *o, kiln_buffer *text,
                             kiln_error *err)
{
    const char *at = *(const char *const *)o->where;
    if (!at) return KILN_OK;
    KILN_TRY(kiln_buffer_put(text, at, strlen(at) + 1, err)); /* as long as any of its items */
    while (kiln_opt_list_next(&at, (char *)text->data, text->size))
        KILN_TRY(add_argument(a, "--", o->name, "=", (const char *)text->data, err));
    return KILN_OK;
}

static kiln_status add_option(argument_list *a, const kiln_opt *o, kiln_error *err)
{
    if (o->kind == KILN_OPT_LIST) {
        kiln_buffer text = {0};
        const kiln_status st = add_items(a, o, &text, err);
        kiln_buffer_release(&text);
        return st;
    }
    if (o->kind == KILN_OPT_BOOL)
        return add_argument(a, *(const bool *)o->where ? "--" : "--no-", o->name, "", "", err);
    if (o->kind == KILN_OPT_TEXT || o->kind == KILN_OPT_PATH) {
        const char *text = *(const char *const *)o->where;
        return text && *text ? add_argument(a, "--", o->name, "=", text, err) : KILN_OK;
    }
    char text[256];
    kiln_opt_text(o, text, sizeof text);
    return *text ? add_argument(a, "--", o->name, "=", text, err) : KILN_OK;
}

/* Passes --ram in bytes: the parent has resolved a share of the machine. */
static kiln_status add_ram(argument_list *a, uint64_t cap, kiln_error *err)
{
    char number[32];
    if (cap == 0) return KILN_OK;
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)cap);
    return add_argument(a, "--ram", "=", "", number, err);
}

static const char *device_word(const kiln_device *d)
{
    return d->kind == KILN_DEVICE_CUDA ? "cuda" : "cpu";
}

static kiln_status make_arguments(const kiln_run *r, const kiln_device *device, uint64_t unit_ram,
                                  argument_list *a, kiln_error *err)
{
    char rest[64];
    (void)snprintf(rest, sizeof rest, "%d:%llu", WORKER_FD, (unsigned long long)unit_ram);
    /* whatever its sentences call it */
    KILN_TRY(add_argument(a, "kiln-", r->program->name, "", "", err));
    KILN_TRY(add_argument(a, KILN_WORKER_FLAG, device_word(device), ":", rest, err));
    for (const kiln_opt *o = r->cli.options; o && o->name; o++) KILN_TRY(add_option(a, o, err));
    const void *printers = printer_storage(r->cli.common);
    for (const kiln_opt *o = r->cli.common; o && o->name; o++)
        if (o->where != printers) KILN_TRY(add_option(a, o, err));
    KILN_TRY(add_ram(a, r->ram.cap, err));
    KILN_TRY(add_argument(a, "--", "", "", "", err));
    for (unsigned i = 0; i < r->parsed.n_positional; i++)
        KILN_TRY(add_argument(a, "", r->parsed.positional[i], "", "", err));
    return KILN_OK;
}

/* ---- the environment of a worker ------------------------------------------------------------- */
static bool is_variable(const char *entry, const char *name)
{
    const size_t length = strlen(name);
    return !strncmp(entry, name, length) && entry[length] == '=';
}

/* Sets a variable in the list; "": leaves it unchanged. */
static kiln_status set_variable(argument_list *env, const char *name, const char *value,
                                kiln_error *err)
{
    size_t n = 0;
    if (!*value) return KILN_OK;
    for (size_t i = 0; i < env->n; i++) {
        if (is_variable(env->items[i], name))
            free(env->items[i]);
        else
            env->items[n++] = env->items[i];
    }
    env->n = n;
    for (; n < env->capacity; n++) env->items[n] = NULL;
    return add_argument(env, "", name, "=", value, err);
}

/* Makes the worker's environment before the fork. setenv may allocate, which is not safe between
 * fork and exec if another thread held malloc's lock. */
static kiln_status make_environment(const kiln_device *device, argument_list *env, kiln_error *err)
{
    for (char **entry = environ; *entry; entry++)
        KILN_TRY(add_argument(env, "", *entry, "", "", err));
    KILN_TRY(set_variable(env, "CUDA_VISIBLE_DEVICES", device->visible, err));
    KILN_TRY(set_variable(env, "CUDA_DEVICE_ORDER", device->chosen ? "PCI_BUS_ID" : "", err));
    /* threads that wait leave the core to other threads; results do not depend on it */
    return set_variable(env, "OMP_WAIT_POLICY", getenv("OMP_WAIT_POLICY") ? "" : "passive", err);
}

/* ---- start ----------------------------------------------------------------------------------- */
/* Runs between fork and exec, so it makes only calls that are safe there. Does not return. */
static void become_worker(char **argv, char **env, int fd, const kiln_device *device, pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(KILN_EXEC_FAILED);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0) _exit(KILN_EXEC_FAILED);
    /* stdout is the parent's data */
    if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0) _exit(KILN_EXEC_FAILED);
    if (fd == WORKER_FD) {
        if (fcntl(fd, F_SETFD, 0) != 0) _exit(KILN_EXEC_FAILED);
    } else if (dup2(fd, WORKER_FD) < 0) {
        _exit(KILN_EXEC_FAILED);
    }
    /* where the kernel lacks it: ours are close-on-exec anyway */
    (void)close_range(WORKER_FD + 1, ~0U, 0);
    kiln_cpus_bind(device->cpus);
    execve("/proc/self/exe", argv, env);
    _exit(KILN_EXEC_FAILED);
}

kiln_status kiln_worker_greet(kiln_worker_process *w, const kiln_message *m, kiln_error *err)
{
    if (m->kind == KILN_MSG_FAILED) {
        (void)kiln_fail(err, (kiln_status)m->status, "%s", m->text);
        if (*w->device->visible) kiln_note(err, "the worker on GPU '%s'", w->device->visible);
        kiln_devices_advise(err);
        return (kiln_status)m->status;
    }
    if (m->kind != KILN_MSG_HELLO)
        return kiln_fail(err, KILN_E_BUG, "the worker began with message %u", m->kind);
    (void)snprintf(w->device_text, sizeof w->device_text, "%.159s", m->text);
    w->use = m->use;
    w->greeted = w->ready = true;
    if (!w->open_ns) w->open_ns = kiln_now_ns() - w->start_ns;
    kiln_chat("worker %d: %s", (int)w->pid, w->device_text);
    return KILN_OK;
}

/* Puts a process into an empty slot. The totals of earlier processes stay. */
static void fill_slot(kiln_worker_process *w, const kiln_device *device, pid_t pid, int fd)
{
    kiln_worker_use_add(&w->past, &w->use);
    w->use = (kiln_worker_use){0};
    w->pid = pid;
    w->fd = fd;
    w->greeted = w->ready = w->died = w->hung = w->handed_over = false;
    w->n_flight = w->n_beside = 0;
    w->start_ns = kiln_now_ns();
    w->unit_ns = w->end_ns = 0;
    w->device = device;
}

/* Starts a process with these arguments. */
static kiln_status spawn(char **arguments, const kiln_device *device, kiln_worker_process *w,
                         kiln_error *err)
{
    kiln_status st = KILN_OK;
    argument_list env = {0};
    int pair[2] = {-1, -1};
    KILN_GO(make_environment(device, &env, err));
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        st = errno == EMFILE || errno == ENFILE
                 ? kiln_no_descriptor("make a socket for the worker", err)
                 : kiln_fail(err, KILN_E_IO, "cannot make a socket for the worker: %s",
                             strerror(errno));
        goto done;
    }
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) become_worker(arguments, env.items, pair[1], device, parent);
    if (pid < 0) {
        st = kiln_fail(err, KILN_E_NOMEM, "cannot start a worker: %s", strerror(errno));
        goto done;
    }
    fill_slot(w, device, pid, pair[0]);
    pair[0] = -1;
done: /* pair[1] too: else a worker's death would give no end of file */
    for (int i = 0; i < 2; i++)
        if (pair[i] >= 0) (void)close(pair[i]);
    arguments_release(&env);
    return st;
}

kiln_status kiln_worker_start(const kiln_run *r, const kiln_device *device, uint64_t unit_ram,
                              kiln_worker_process *w, kiln_error *err)
{
    argument_list a = {0};
    pid_t pid;
    int fd;
    w->deadline_s = r->options->deadline_s;
    kiln_status st = make_arguments(r, device, unit_ram, &a, err);
    if (st == KILN_OK && !w->device &&
        kiln_rest_take(device, r->program->name, a.items, &pid, &fd)) {
        fill_slot(w, device, pid, fd);
        w->handed_over = true;
    } else if (st == KILN_OK) {
        st = spawn(a.items, device, w, err);
    }
    arguments_release(&a);
    return st;
}

kiln_status kiln_worker_start_resting(const char *program, const kiln_device *device,
                                      kiln_worker_process *w, kiln_error *err)
{
    char name[64], flag[64];
    (void)snprintf(name, sizeof name, "%s", program);
    (void)snprintf(flag, sizeof flag, KILN_WORKER_FLAG "%s:%d:" KILN_WORKER_RESTS,
                   device_word(device), WORKER_FD);
    char *arguments[] = {name, flag, NULL};
    return spawn(arguments, device, w, err);
}
