/* Workers between two stages of one process (`kiln pipeline`).
 *
 * A new worker costs time: on a GPU, making its context takes a fifth of a second and more. When a
 * stage ends well, its idle workers are told to rest: they free what belongs to the stage (state,
 * reader of the manifest, workspace on the GPU) and keep the open device. The parent closes the
 * manifest only after all of them have answered, so nobody has it open between two stages. The next
 * stage that wants a worker on the same device sends one of them its command line instead of
 * starting a process. From then on it is a worker like any other: it says HELLO, and has the same
 * deadline for that.
 *
 * A process that has failed does not rest, and what replaces it is always a new process.
 *
 * A worker may rest from its start. The first stages compute on the CPU, and meanwhile the parent
 * opens GPUs for the later ones. When the first worker on the CPU has been started, so that there
 * is work, the parent asks which GPUs there are and goes on; the answer starts a worker on each. */
#include "stages/engine/parent/worker_rest.h"

#include "base/log.h"
#include "kernels/device.h"
#include "stages/engine/devices/gpus.h"
#include "stages/engine/devices/work.h"
#include "stages/engine/interrupt.h"
#include "stages/engine/memory/memfd.h"
#include "stages/engine/parent/run.h"
#include "stages/engine/parent/worker_end.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    REST_MS = 3000, /* most time that a worker may take to free what belongs to the stage */
    MIB = 1 << 20,
    /* with more than this and LEAN_THREAD for each thread, a CPU's worker ends: a new one takes
     * less */
    LEAN_BYTES = 6 * MIB,
    LEAN_THREAD = MIB / 2,
    START_BYTES = 32 * MIB, /* counted for a worker that has not said what it holds */
    /* a 16th of --ram is what workers may hold that the stage does not use */
    SPARE_SHARE = 16,
};

typedef struct {
    kiln_worker_process process; /* pid 0: no worker */
    kiln_device device;
    bool at_rest;        /* it has answered */
    uint64_t held_bytes; /* host memory that it has while it rests, without the CUDA runtime's */
} resting;

static struct {
    resting at[KILN_SLOTS_MAX];
    bool keeps;
    /* --devices of a later stage; NULL: no later stage takes a GPU, or its workers have been
     * started */
    const char *expected;
} rest;

void kiln_rest_keep(bool on) { rest.keeps = on; }
bool kiln_rest_keeps(void) { return rest.keeps; }

static bool is_there(const resting *x) { return x->process.pid > 0; }

/* Empties the places of workers that have ended. */
static void bury_ended(void)
{
    int status;
    for (unsigned i = 0; i < KILN_SLOTS_MAX; i++)
        if (is_there(&rest.at[i]) && rest.at[i].process.end_ns)
            (void)kiln_worker_ended(&rest.at[i].process, &status);
}

static void leave(resting *x)
{
    x->at_rest = false;
    kiln_worker_dismiss(&x->process);
}

/* ---- a stage ends ---------------------------------------------------------------------------- */
static resting *free_place(void)
{
    for (unsigned i = 0; i < KILN_SLOTS_MAX; i++)
        if (!is_there(&rest.at[i])) return &rest.at[i];
    return NULL;
}

bool kiln_rest_begin(kiln_worker_process *w)
{
    const kiln_message m = {.version = KILN_PROTOCOL_VERSION, .kind = KILN_MSG_REST};
    bury_ended();
    resting *x = rest.keeps && w->pid > 0 && w->ready && w->n_flight == 0 ? free_place() : NULL;
    if (!x || kiln_message_send(w->fd, &m, -1, NULL) != KILN_OK) return false;
    *x = (resting){.process = *w, .device = *w->device};
    x->process.device = &x->device;
    /* the slot has told the rest */
    x->process.use = (kiln_worker_use){.ram_cuda = w->use.ram_cuda};
    w->pid = 0;
    w->fd = -1;
    w->ready = false;
    return true;
}

static bool is_lean(const resting *x)
{
    const unsigned threads = kiln_devices_threads(kiln_common_values.threads);
    return x->device.kind == KILN_DEVICE_CUDA ||
           x->held_bytes <= LEAN_BYTES + (uint64_t)LEAN_THREAD * threads;
}

static void hear_answer(resting *x)
{
    kiln_message m;
    int memfd;
    bool closed;
    const kiln_status st = kiln_message_receive(x->process.fd, &m, &memfd, &closed, NULL);
    if (memfd >= 0) (void)close(memfd);
    if (st != KILN_OK || closed || m.kind != KILN_MSG_RESTED) {
        leave(x);
        return;
    }
    x->process.use.ram_cuda = m.use.ram_cuda;
    x->held_bytes = m.ram;
    x->at_rest = true;
    if (!is_lean(x)) leave(x);
}

/* Waits for the answers, or until a signal comes. */
void kiln_rest_wait(void)
{
    const uint64_t end = kiln_now_ns() + REST_MS * UINT64_C(1000000);
    for (;;) {
        struct pollfd fds[KILN_SLOTS_MAX];
        bool awaited = false;
        for (unsigned i = 0; i < KILN_SLOTS_MAX; i++) {
            const resting *x = &rest.at[i];
            const bool open = is_there(x) && !x->process.end_ns && !x->at_rest;
            fds[i] = (struct pollfd){.fd = open ? x->process.fd : -1, .events = POLLIN};
            awaited |= open;
        }
        if (!awaited) return;
        if (kiln_now_ns() > end || kiln_interrupt_poll(fds, KILN_SLOTS_MAX, NULL) != KILN_OK) break;
        for (unsigned i = 0; i < KILN_SLOTS_MAX; i++)
            if (fds[i].revents) hear_answer(&rest.at[i]);
    }
    for (unsigned i = 0; i < KILN_SLOTS_MAX; i++)
        if (is_there(&rest.at[i]) && !rest.at[i].at_rest) kiln_workers_stop(&rest.at[i].process, 1);
}

/* ---- the next begins ------------------------------------------------------------------------- */
static bool same_home(const kiln_device *a, const kiln_device *b)
{
    return a->kind == b->kind && a->chosen == b->chosen && !strcmp(a->visible, b->visible) &&
           !strcmp(a->cpus, b->cpus);
}

static resting *find_for(const kiln_device *device)
{
    for (unsigned i = 0; i < KILN_SLOTS_MAX; i++)
        if (is_there(&rest.at[i]) && rest.at[i].at_rest && same_home(&rest.at[i].device, device))
            return &rest.at[i];
    return NULL;
}

/* The arguments, each with its NUL. */
static kiln_status hand_over(const resting *x, const char *program, char *const *arguments,
                             kiln_error *err)
{
    kiln_message m = {.version = KILN_PROTOCOL_VERSION, .kind = KILN_MSG_PROGRAM};
    int memfd;
    kiln_status st = KILN_OK;
    (void)snprintf(m.text, sizeof m.text, "%s", program);
    KILN_TRY(kiln_memfd_new(&memfd, err));
    for (; *arguments && st == KILN_OK; arguments++) {
        const size_t n = strlen(*arguments) + 1;
        st = kiln_memfd_write(memfd, m.bytes, *arguments, n, err);
        m.bytes += n;
    }
    if (st == KILN_OK) st = kiln_message_send(x->process.fd, &m, memfd, err);
    (void)close(memfd);
    return st;
}

bool kiln_rest_take(const kiln_device *device, const char *program, char *const *arguments,
                    pid_t *pid, int *fd)
{
    resting *x;
    bury_ended();
    while ((x = find_for(device))) {
        if (hand_over(x, program, arguments, NULL) == KILN_OK) {
            *pid = x->process.pid;
            *fd = x->process.fd;
            *x = (resting){0};
            return true;
        }
        leave(x);
    }
    return false;
}

/* Workers that the list can take stay. Of the others, those of GPUs may stay for a later stage if
 * there is room. */
uint64_t kiln_rest_fit(const kiln_home *home, unsigned n_slots, uint64_t cap)
{
    bool wanted[KILN_SLOTS_MAX] = {false};
    uint64_t spare = 0;
    bury_ended();
    for (unsigned slot = 0; slot < n_slots; slot++)
        for (unsigned i = 0; i < KILN_SLOTS_MAX && home->workers[slot].pid <= 0; i++) {
            const resting *x = &rest.at[i];
            if (wanted[i] || !is_there(x) || !x->at_rest ||
                !same_home(&x->device, kiln_home_device(home, slot)))
                continue;
            wanted[i] = true;
            break;
        }
    for (unsigned i = 0; i < KILN_SLOTS_MAX; i++) {
        resting *x = &rest.at[i];
        if (wanted[i] || !is_there(x) || !x->at_rest) continue;
        const bool fits = spare + x->held_bytes <= cap / SPARE_SHARE;
        if (x->device.kind == KILN_DEVICE_CUDA && fits && rest.keeps) {
            spare += x->held_bytes;
            continue;
        }
        leave(x);
        if (!fits) kiln_workers_stop(&x->process, 1); /* its memory is needed now */
    }
    return spare;
}

/* ---- from the start -------------------------------------------------------------------------- */
void kiln_rest_start(const char *program, const kiln_device *device)
{
    bury_ended();
    resting *x = free_place();
    if (!x || find_for(device)) return;
    *x = (resting){.device = *device, .held_bytes = START_BYTES};
    /* the stage will say why */
    if (kiln_worker_start_resting(program, &x->device, &x->process, NULL) != KILN_OK) {
        *x = (resting){0};
        return;
    }
    x->process.greeted = true; /* it ends by itself when its socket is closed */
    x->at_rest = true;
}

void kiln_rest_expect(const char *devices) { rest.expected = devices; }

bool kiln_rest_has_gpu(void)
{
    for (unsigned i = 0; i < KILN_SLOTS_MAX; i++)
        if (is_there(&rest.at[i]) && !rest.at[i].process.end_ns &&
            rest.at[i].device.kind == KILN_DEVICE_CUDA)
            return true;
    return false;
}

/* Says whether the later stage will be on the CPU, because it has little to do. */
static bool has_little_left(const kiln_run *r)
{
    kiln_scene_size size;
    /* as this stage says, or by what the manifest has; 0: not known */
    double work = r->devices.later_s;
    if (kiln_devices_named_kind(rest.expected)) return false;
    if (!(work > 0) && r->manifest && kiln_scene_size_get(r->manifest, &size, NULL) == KILN_OK)
        work = kiln_work_later(
            &(kiln_work_scene){.rows = size.rows, .cameras = size.cameras, .pixels = size.pixels});
    return work > 0 && !kiln_work_pays(work, kiln_devices_threads(r->common->threads), false);
}

uint64_t kiln_rest_start_bytes(void) { return START_BYTES; }

bool kiln_rest_fits(kiln_ram_use *ram, unsigned n)
{
    const uint64_t cap = kiln_ram_cap(ram), bytes = (uint64_t)n * START_BYTES;
    return ram->predicted + bytes <= cap && bytes <= cap / SPARE_SHARE;
}

/* Only if --ram has plenty left: what such a worker takes is in no plan. */
void kiln_rest_begin_expected(kiln_run *r)
{
    if (!rest.expected || !rest.keeps || !r->devices.home->devices.n ||
        r->devices.home->devices.items[0].kind != KILN_DEVICE_CPU)
        return;
    if (has_little_left(r)) rest.expected = NULL;
    if (!rest.expected) return;
    if (!kiln_rest_fits(&r->ram, 1)) return;
    const char *kind = kiln_devices_named_kind(rest.expected);
    if ((kind && !strcmp(kind, "cpu")) || kiln_device_built_version() == 0 ||
        !kiln_gpus_ask_ahead())
        rest.expected = NULL;
    else if (kiln_gpus_ahead_descriptor() < 0)
        kiln_rest_start_expected(r); /* they are known */
}

int kiln_rest_descriptor(void) { return rest.expected ? kiln_gpus_ahead_descriptor() : -1; }

void kiln_rest_start_expected(const kiln_run *r)
{
    kiln_device_list d;
    const char *devices = rest.expected;
    rest.expected = NULL;
    /* the stage will say why */
    if (!devices || kiln_devices_resolve(devices, &d, NULL) != KILN_OK) return;
    for (unsigned i = 0; i < d.n; i++)
        if (d.items[i].kind == KILN_DEVICE_CUDA) kiln_rest_start(r->cli.program, &d.items[i]);
}

/* ---- the end --------------------------------------------------------------------------------- */
void kiln_rest_dismiss(void)
{
    for (unsigned i = 0; i < KILN_SLOTS_MAX; i++)
        if (is_there(&rest.at[i])) leave(&rest.at[i]);
}

void kiln_rest_stop(void)
{
    kiln_rest_dismiss();
    for (unsigned i = 0; i < KILN_SLOTS_MAX; i++)
        if (is_there(&rest.at[i])) kiln_workers_stop(&rest.at[i].process, 1);
}

unsigned kiln_rest_processes(const kiln_worker_process *out[KILN_SLOTS_MAX])
{
    unsigned n = 0;
    for (unsigned i = 0; i < KILN_SLOTS_MAX; i++)
        if (is_there(&rest.at[i])) out[n++] = &rest.at[i].process;
    return n;
}
