/* The worker: waits for units, computes them with the stage's own function, sends results, and ends
 * when its socket is closed. It writes no files, except those that the stage's unit writes, and
 * reads the manifest through a connection of its own.
 *
 * The flag names its device: the CPU, or the one GPU that its CUDA_VISIBLE_DEVICES lets through,
 * which is CUDA's device 0 here. */
#include "stages/engine/worker/worker.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "kernels/device.h"
#include "stages/engine/devices/containment.h"
#include "stages/engine/engine_options.h"
#include "stages/engine/json_text.h"
#include "stages/engine/memory/memfd.h"
#include "stages/engine/memory/ram_use.h"
#include "stages/engine/memory/scratch.h"
#include "stages/engine/worker/fault.h"
#include "stages/engine/worker/worker_early.h"
#include "stages/engine/worker/worker_internal.h"
#include "stages/engine/worker/worker_open.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- what a stage's unit may ask ------------------------------------------------------------- */
kiln_runner *kiln_worker_runner(kiln_worker *w) { return w->runner; }
unsigned kiln_worker_threads(const kiln_worker *w) { return w->threads; }

bool kiln_worker_is_of_part(const kiln_worker *w) { return w->options->part != NULL; }
uint64_t kiln_worker_ram(const kiln_worker *w) { return w->ram; }
void *kiln_worker_state(kiln_worker *w) { return w->state; }

/* A worker's --ram is the whole cap in bytes, which its parent resolved. With a single thread the
 * unit could also have the memory of the other threads. */
kiln_status kiln_worker_need_ram(const kiln_worker *w, uint64_t bytes, uint64_t after,
                                 const char *what, kiln_error *err)
{
    enum { MIB = 1 << 20 };
    char needs[32], has[32];
    const uint64_t share = kiln_worker_ram(w) + kiln_ram_of_threads(kiln_worker_threads(w) - 1);
    const uint64_t all = kiln_max_u64(bytes, after);
    if (all <= share) return KILN_OK;
    return kiln_fail(
        err, KILN_E_CAP,
        "%s needs %s of host memory, but --ram leaves it %s; the least that works is --ram %lluM",
        what, kiln_size_text(all, needs), kiln_size_text(share, has),
        (unsigned long long)((w->common->ram.bytes + all - share) / MIB + 2));
}

void kiln_worker_set_state(kiln_worker *w, void *state, void (*free_fn)(void *))
{
    if (w->state && w->free_state && w->state != state) w->free_state(w->state);
    w->state = state;
    w->free_state = free_fn;
}

static kiln_status find_manifest(const kiln_worker *w, const char **path, kiln_error *err)
{
    *path = NULL;
    if (w->program->manifest_arg >= w->parsed.n_positional)
        return kiln_fail(err, KILN_E_BUG, "%s has no manifest to read", w->program->name);
    *path = w->parsed.positional[w->program->manifest_arg];
    return KILN_OK;
}

kiln_status kiln_worker_scratch(kiln_worker *w, const char *stage, kiln_hash key, char *path,
                                kiln_error *err)
{
    const char *manifest;
    KILN_TRY(find_manifest(w, &manifest, err));
    return kiln_scratch_folder_path(w->options, manifest, stage, key, path, err);
}

kiln_status kiln_worker_reader(const kiln_worker *w, kiln_manifest **out, kiln_error *err)
{
    const char *path;
    *out = NULL;
    KILN_TRY(find_manifest(w, &path, err));
    return kiln_worker_open(w->options, path, w->program->name, out, err);
}

kiln_status kiln_worker_manifest(kiln_worker *w, kiln_manifest **out, kiln_error *err)
{
    if (!w->manifest) KILN_TRY(kiln_worker_reader(w, &w->manifest, err));
    *out = w->manifest;
    return KILN_OK;
}

kiln_status kiln_worker_put(kiln_worker *w, const char *name, const void *raw, size_t bytes,
                            uint32_t elem, kiln_error *err)
{
    return kiln_outputs_put(&w->outputs, name, raw, bytes, elem, KILN_PUT_COPY, err);
}

kiln_status kiln_worker_lend(kiln_worker *w, const char *name, const void *raw, size_t bytes,
                             uint32_t elem, kiln_error *err)
{
    return kiln_outputs_put(&w->outputs, name, raw, bytes, elem, KILN_PUT_LEND, err);
}

/* The hash is the content's own, so a blob that is there under it is the output. Whether its bytes
 * are sound, its readers check. */
kiln_status kiln_worker_put_stored(kiln_worker *w, const char *name, const kiln_array *stored,
                                   uint32_t elem, bool *named, kiln_error *err)
{
    kiln_manifest *m;
    *named = false;
    if (w->outputs.keep_raw || stored->n_segments != 1 || stored->raw_bytes > KILN_BLOB_MAX)
        return KILN_OK;
    KILN_TRY(kiln_worker_manifest(w, &m, err));
    *named = kiln_manifest_has_blob(m, stored->segments[0]);
    return *named ? kiln_outputs_name(&w->outputs, name, stored->segments[0], stored->raw_bytes,
                                      elem, err)
                  : KILN_OK;
}

kiln_status kiln_worker_counters(kiln_worker *w, json_t *counters, kiln_error *err)
{
    free(w->counters);
    w->counters = kiln_json_text(counters, JSON_COMPACT | JSON_SORT_KEYS);
    if (!w->counters) return kiln_fail(err, KILN_E_NOMEM, "cannot write a unit's counters as JSON");
    return KILN_OK;
}

void kiln_worker_defer(kiln_worker *w, unsigned most, unsigned threads, kiln_deferred_fn *run,
                       kiln_deferred_drop_fn *drop, void *context)
{
    w->deferred_run = run;
    w->deferred_drop = drop;
    w->deferred_most = most < 1 ? 1 : most > KILN_DEFERRED_MAX ? KILN_DEFERRED_MAX : most;
    w->deferred_threads = threads ? threads : 1;
    w->deferred_context = context;
}

/* ---- the device ------------------------------------------------------------------------------ */
/* Resolves --vram to bytes: a share of what is free before this process takes any, and never more
 * than that. So operations that do not fit run on the CPU instead of failing. --vram 0 becomes 1
 * byte, because 0 means no cap to the runner. */
static kiln_status vram_cap(const kiln_worker *w, uint64_t *cap, kiln_error *err)
{
    kiln_device_info info;
    KILN_TRY(kiln_device_open(0, &info, err));
    *cap = kiln_size_resolve(w->common->vram, info.free_bytes);
    if (*cap > info.free_bytes) *cap = info.free_bytes;
    if (*cap == 0) *cap = 1;
    return KILN_OK;
}

/* Sets what the CUDA runtime takes, when the stage has nothing. */
static void measure_cuda(kiln_worker *w, uint64_t early)
{
    const uint64_t now = kiln_ram_mapped(), before = w->ram_bare + early;
    w->ram_cuda = now > before ? now - before : 0;
}

/* Makes the context, while the program reads for its first unit (`early`). A worker that was
 * another stage's has it. */
static kiln_status open_gpu(kiln_worker *w, uint64_t *cap, kiln_error *err)
{
    kiln_early early;
    if (w->ram_bare) return vram_cap(w, cap, err);
    w->ram_bare = kiln_ram_mapped();
    kiln_early_begin(&early, w);
    const kiln_status st = vram_cap(w, cap, err); /* makes the context */
    measure_cuda(w, kiln_early_end(&early));
    return st;
}

static kiln_status open_runner(kiln_worker *w, kiln_error *err)
{
    kiln_runner_options o = {
        .device = KILN_RUNNER_CPU, .threads = w->threads, .sync = w->common->sync};
    if (w->device == KILN_DEVICE_CUDA) {
        o.device = 0;
        KILN_TRY(open_gpu(w, &o.cap_bytes, err));
    }
    return kiln_runner_new(&o, &w->runner, err);
}

static kiln_worker_use tell_use(const kiln_worker *w)
{
    const kiln_runner_info info = kiln_runner_get_info(w->runner);
    const bool gpu = w->device == KILN_DEVICE_CUDA;
    return (kiln_worker_use){.peak_rss = kiln_peak_rss(),
                             .ram_cuda = w->ram_cuda,
                             .vram_peak = info.peak_bytes,
                             .vram_cap = gpu ? info.cap_bytes : 0,
                             .n_host = gpu ? info.n_host : 0};
}

static void say_device(const kiln_worker *w, char *text, size_t size)
{
    const char *name = kiln_runner_name(w->runner);
    const kiln_runner_info info = kiln_runner_get_info(w->runner);
    char uuid[sizeof(((kiln_device *)0)->uuid)];
    if (w->device == KILN_DEVICE_CUDA)
        (void)snprintf(
            text, size, "%s, %s, %s", name, info.device.name,
            kiln_devices_uuid(getenv("CUDA_VISIBLE_DEVICES"), info.device.uuid, uuid, sizeof uuid));
    else
        (void)snprintf(text, size, "%s, %u thread%s", name, w->threads, w->threads == 1 ? "" : "s");
}

/* Sends the first message: the device, or why it cannot be used. */
static kiln_status say_hello(kiln_worker *w, kiln_error *err)
{
    kiln_error why = {0};
    kiln_message m = {.version = KILN_PROTOCOL_VERSION, .kind = KILN_MSG_HELLO};
    const kiln_status st = open_runner(w, &why);
    if (st == KILN_OK) {
        m.use = tell_use(w);
        say_device(w, m.text, sizeof m.text);
    } else {
        m.kind = KILN_MSG_FAILED;
        m.status = (int32_t)st;
        memcpy(m.text, why.msg, sizeof m.text);
    }
    return kiln_message_send(w->fd, &m, -1, err);
}

/* Adjusts to the unit's memory: how much freed memory is kept, and how many bytes of outputs may
 * wait to be compressed (an eighth).
 */
static void use_share(kiln_worker *w)
{
    const uint64_t share = kiln_worker_ram(w);
    if (!kiln_deferred_pending(w)) kiln_memory_tidy(share);
    w->outputs.wait_most = share / 8 < KILN_OUTPUTS_WAIT ? share / 8 : KILN_OUTPUTS_WAIT;
}

/* ---- the loop -------------------------------------------------------------------------------- */
/* Takes the unit's threads and memory, which are more when fewer workers are busy. The CPUs near a
 * GPU may be fewer than the threads.
 */
static void take_share(kiln_worker *w, const kiln_message *unit)
{
    const unsigned most = w->common->threads ? unit->threads : kiln_devices_threads(0);
    w->threads = unit->threads < most ? unit->threads : most;
    w->outputs.threads = w->threads;
    kiln_runner_set_threads(w->runner, w->threads);
    w->ram = unit->ram;
}

/* Computes a unit. Work that it defers is left to the caller, unless no other unit may run beside
 * it: then it is done here. */
static kiln_status compute(kiln_worker *w, const kiln_message *unit, int payload_fd,
                           kiln_message *reply, kiln_error *err)
{
    kiln_status st = KILN_OK;
    void *payload = NULL;
    bool lost = false;
    w->begun_ns = kiln_now_ns();
    kiln_outputs_clear(&w->outputs);
    w->outputs.keep_raw = unit->flags & KILN_MSG_VOLATILE;
    free(w->counters);
    w->counters = NULL;
    take_share(w, unit);
    use_share(w);
    KILN_GO(kiln_fault_fire(unit, w->runner, &lost, err));
    if (unit->bytes) KILN_GO(kiln_memfd_map(payload_fd, unit->bytes, &payload, err));
    KILN_GO(w->program->unit(w, unit->text, payload ? payload : "", unit->bytes, err));
    if (unit->flags & KILN_MSG_ALONE) KILN_GO(kiln_deferred_run(w, err));
done:
    if (st == KILN_E_DEVICE && !lost && w->device == KILN_DEVICE_CUDA)
        lost = kiln_device_is_lost(0);
    if (lost) reply->flags |= KILN_MSG_LOST;
    if (payload) (void)munmap(payload, unit->bytes);
    if (st != KILN_OK) kiln_deferred_drop(w);
    return st;
}

/* The same, in a range that profilers show by its name. */
static kiln_status compute_named(kiln_worker *w, const kiln_message *unit, int payload_fd,
                                 kiln_message *reply, kiln_error *err)
{
    char range[256];
    (void)snprintf(range, sizeof range, "%s: %.200s", w->program->name, unit->text);
    kiln_range_push(range);
    const kiln_status st = compute(w, unit, payload_fd, reply, err);
    kiln_range_pop();
    return st;
}

/* What has come of a unit. */
typedef struct {
    kiln_message reply;
    int memfd; /* -1: none */
    kiln_status computed;
    kiln_error why; /* it failed */
    uint64_t begun_ns;
} outcome;

/* Sends RESULT or FAILED and closes the memfd. Time during which two units ran counts for the
 * first. *end: the worker must end, because a fresh process should try the unit or because the
 * parent is gone. */
static kiln_status answer(kiln_worker *w, outcome *o, bool *end, kiln_error *err)
{
    const uint64_t now = kiln_now_ns();
    o->reply.wall_ns = now - (o->begun_ns > w->answered_ns ? o->begun_ns : w->answered_ns);
    w->answered_ns = now;
    if (o->computed != KILN_OK) {
        o->reply.kind = KILN_MSG_FAILED;
        o->reply.status = (int32_t)o->computed;
        memcpy(o->reply.text, o->why.msg, sizeof o->reply.text);
    }
    o->reply.use = tell_use(w);
    const kiln_status sent = kiln_message_send(w->fd, &o->reply, o->memfd, err);
    if (o->memfd >= 0) (void)close(o->memfd);
    *end = sent == KILN_E_TERMINATED || kiln_failure_is_contained(o->computed);
    return sent == KILN_E_TERMINATED ? KILN_OK : sent;
}

static kiln_status answer_oldest(kiln_worker *w, bool *end, kiln_error *err)
{
    outcome o = {.memfd = -1};
    o.computed = kiln_deferred_end(w, &o.reply, &o.memfd, &o.begun_ns, &o.why);
    return answer(w, &o, end, err);
}

/* Answers the oldest units with deferred work until at most `most` are pending. */
static kiln_status answer_deferred(kiln_worker *w, unsigned most, bool *end, kiln_error *err)
{
    *end = false;
    while (!*end && kiln_deferred_pending(w) > most) KILN_TRY(answer_oldest(w, end, err));
    return KILN_OK;
}

/* Waits for a unit. Meanwhile answers units whose deferred work is done. */
static kiln_status wait_for_unit(kiln_worker *w, bool *end, kiln_error *err)
{
    *end = false;
    while (!*end && kiln_deferred_pending(w)) {
        struct pollfd fds[] = {{.fd = kiln_deferred_descriptor(w), .events = POLLIN},
                               {.fd = w->fd, .events = POLLIN}};
        while (poll(fds, 2, -1) < 0)
            if (errno != EINTR)
                return kiln_fail(err, KILN_E_IO, "the worker cannot wait: %s", strerror(errno));
        if (!fds[0].revents) return KILN_OK;
        KILN_TRY(answer_oldest(w, end, err));
    }
    return KILN_OK;
}

/* Says that a unit is computed while deferred work of earlier units runs. If this process dies,
 * each of them may be the cause, so the parent must know. */
static kiln_status say_begun(const kiln_worker *w, const kiln_message *unit, bool *end,
                             kiln_error *err)
{
    const kiln_message m = {
        .version = KILN_PROTOCOL_VERSION, .kind = KILN_MSG_BEGUN, .unit = unit->unit};
    const kiln_status sent = kiln_message_send(w->fd, &m, -1, err);
    *end = sent == KILN_E_TERMINATED;
    return *end ? KILN_OK : sent;
}

/* Handles a unit until it is answered or its deferred work has begun. */
static kiln_status serve_unit(kiln_worker *w, const kiln_message *unit, int payload_fd, bool *end,
                              kiln_error *err)
{
    outcome o = {
        .reply = {.version = KILN_PROTOCOL_VERSION, .kind = KILN_MSG_RESULT, .unit = unit->unit},
        .memfd = -1};
    *end = false;
    if (unit->flags & KILN_MSG_ALONE) KILN_TRY(answer_deferred(w, 0, end, err));
    if (!*end && kiln_deferred_pending(w)) KILN_TRY(say_begun(w, unit, end, err));
    if (*end) return KILN_OK;
    o.computed = compute_named(w, unit, payload_fd, &o.reply, &o.why);
    const bool has_deferred = o.computed == KILN_OK && w->deferred_run;
    KILN_TRY(answer_deferred(w, has_deferred ? w->deferred_most - 1 : 0, end, err));
    if (*end) return KILN_OK;
    if (has_deferred) {
        if (kiln_deferred_begin(w, &o.reply, unit->text, &o.why) == KILN_OK) return KILN_OK;
        KILN_TRY(answer_deferred(w, 0, end, err)); /* no thread to be had */
        if (*end) return KILN_OK;
        o.computed = kiln_deferred_run(w, &o.why);
    }
    if (o.computed == KILN_OK)
        o.computed = kiln_outputs_finish(&w->outputs, w->counters ? w->counters : "{}", &o.reply,
                                         &o.memfd, &o.why);
    kiln_outputs_clear(&w->outputs);
    o.begun_ns = w->begun_ns;
    return answer(w, &o, end, err);
}

static bool is_socket(int fd)
{
    int type = 0;
    socklen_t size = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

/* Reads "cuda:3:1000000": kind of device, descriptor of the socket, host memory of a unit in bytes,
 * or that it rests. */
static bool read_flag(kiln_worker *w, const char *flag, bool *rests)
{
    const char *colon = strchr(flag, ':'), *ram = colon ? strchr(colon + 1, ':') : NULL;
    if (!ram) return false;
    *rests = !strcmp(ram + 1, KILN_WORKER_RESTS);
    w->ram = strtoull(ram + 1, NULL, 10);
    w->device = strncmp(flag, "cuda:", 5) == 0 ? KILN_DEVICE_CUDA : KILN_DEVICE_CPU;
    w->fd = atoi(colon + 1);
    return is_socket(w->fd);
}

/* For top and ps, which would show "exe": a worker is started through /proc/self/exe. Threads that
 * come later inherit it. */
static void name_process(const char *program)
{
    char name[16]; /* more is not kept */
    (void)snprintf(name, sizeof name, "%.13s:w", program);
    (void)prctl(PR_SET_NAME, name);
}

/* Releases all that belongs to the stage; the device stays open. */
static void lay_down(kiln_worker *w)
{
    kiln_deferred_free(w); /* they may read what the state owns */
    kiln_worker_set_state(w, NULL, NULL);
    kiln_outputs_release(&w->outputs);
    kiln_manifest_close(w->manifest);
    kiln_runner_free(w->runner);
    free(w->counters);
    w->manifest = NULL;
    w->runner = NULL;
    w->counters = NULL;
}

/* ---- between two stages (worker_rest.c) ------------------------------------------------------ */
static kiln_status rest(kiln_worker *w, kiln_error *err)
{
    kiln_message m = {.version = KILN_PROTOCOL_VERSION, .kind = KILN_MSG_RESTED};
    lay_down(w);
    kiln_memory_trim();
    if (w->device == KILN_DEVICE_CUDA) measure_cuda(w, 0);
    m.use.ram_cuda = w->ram_cuda;
    m.ram = kiln_ram_mapped();
    m.ram -= m.ram < w->ram_cuda ? m.ram : w->ram_cuda;
    const kiln_status st = kiln_message_send(w->fd, &m, -1, err);
    return st == KILN_E_TERMINATED ? KILN_OK : st; /* the parent is gone: the socket says so next */
}

/* Opens the device of a worker that has no stage yet. */
static kiln_status open_at_rest(kiln_worker *w, kiln_error *err)
{
    kiln_device_info info;
    if (w->device != KILN_DEVICE_CUDA) return KILN_OK;
    w->ram_bare = kiln_ram_mapped();
    KILN_TRY(kiln_device_open(0, &info, err));
    measure_cuda(w, 0);
    return KILN_OK;
}

/* Reads the command line and says hello: what a worker begins with. flag: argv[1] behind
 * KILN_WORKER_FLAG. */
static kiln_status begin(kiln_worker *w, const kiln_cli *cli, const char *flag, int argc,
                         char **argv, kiln_error *err)
{
    bool rests;
    if (!w->program->unit || !read_flag(w, flag, &rests))
        return kiln_fail(err, KILN_E_USAGE, "%s is for %s's own use", KILN_WORKER_FLAG,
                         cli->program);
    name_process(cli->program);
    if (rests) return open_at_rest(w, err);
    argv[1] = argv[0]; /* what is left is a command line without the marker */
    KILN_TRY(kiln_cli_parse(cli, argc - 1, argv + 1, &w->parsed, err));
    kiln_log_init(cli->program, w->common->quiet     ? KILN_LOG_QUIET
                                : w->common->verbose ? KILN_LOG_VERBOSE
                                                     : KILN_LOG_NORMAL);
    w->threads = kiln_devices_threads(w->common->threads);
    kiln_outputs_init(&w->outputs, w->threads);
    return say_hello(w, err);
}

static kiln_status split_arguments(char *text, size_t bytes, char ***argv, int *argc,
                                   kiln_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++) n += text[i] == '\0';
    if (n < 2 || text[bytes - 1])
        return kiln_fail(err, KILN_E_BUG, "a worker got %zu arguments for its next stage", n);
    KILN_TRY(KILN_ALLOC(argv, n + 1, "a worker's arguments", err));
    for (size_t i = 0; i < n; text += strlen(text) + 1) (*argv)[i++] = text;
    *argc = (int)n;
    return KILN_OK;
}

/* Becomes the worker of another stage. */
static kiln_status change_program(kiln_worker *w, const char *name, const char *text, size_t bytes,
                                  kiln_error *err)
{
    static kiln_cli cli; /* its rows are static, too */
    const kiln_stage_program *p;
    const size_t flag = strlen(KILN_WORKER_FLAG);
    char *copy = NULL, **argv = NULL;
    int argc = 0;
    kiln_status st = KILN_OK;
    KILN_TRY(w->become(name, &p, &cli, err));
    *w = (kiln_worker){.program = p,
                       .become = w->become,
                       .options = w->options,
                       .common = w->common,
                       .fd = w->fd,
                       .outputs = {.memfd = -1},
                       .ram_cuda = w->ram_cuda,
                       .ram_bare = w->ram_bare};
    kiln_peak_rss_forget();
    KILN_GO(KILN_ALLOC(&copy, bytes, "a worker's arguments", err));
    memcpy(copy, text, bytes);
    KILN_GO(split_arguments(copy, bytes, &argv, &argc, err));
    if (strncmp(argv[1], KILN_WORKER_FLAG, flag) != 0)
        KILN_GO(kiln_fail(err, KILN_E_BUG, "a worker got '%s' first", argv[1]));
    KILN_GO(begin(w, &cli, argv[1] + flag, argc, argv, err));
done:
    free(argv);
    free(copy);
    return st;
}

static kiln_status take_program(kiln_worker *w, const kiln_message *m, int memfd, kiln_error *err)
{
    void *text;
    KILN_TRY(kiln_memfd_map(memfd, m->bytes, &text, err));
    const kiln_status st = change_program(w, m->text, text, m->bytes, err);
    (void)munmap(text, m->bytes);
    return st;
}

/* ---- the loop -------------------------------------------------------------------------------- */
static kiln_status take_message(kiln_worker *w, const kiln_message *m, int memfd, bool *end,
                                kiln_error *err)
{
    switch (m->kind) {
    case KILN_MSG_UNIT:
        if (!w->runner) break;
        return serve_unit(w, m, memfd, end, err);
    case KILN_MSG_REST:
        return rest(w, err);
    case KILN_MSG_PROGRAM:
        if (w->runner) break;
        KILN_TRY(take_program(w, m, memfd, err));
        *end = !w->runner; /* it has said why it cannot */
        return KILN_OK;
    default:
        break;
    }
    return kiln_fail(err, KILN_E_BUG, "the worker got message %u%s", m->kind,
                     w->runner ? "" : " while it rests");
}

static kiln_status serve(kiln_worker *w, kiln_error *err)
{
    for (bool end = false; !end;) {
        kiln_message m;
        int memfd;
        bool closed;
        KILN_TRY(wait_for_unit(w, &end, err));
        if (end) return KILN_OK;
        KILN_TRY(kiln_message_receive(w->fd, &m, &memfd, &closed, err));
        if (closed) return KILN_OK;
        const kiln_status st = take_message(w, &m, memfd, &end, err);
        if (memfd >= 0) (void)close(memfd);
        KILN_TRY(st);
    }
    return KILN_OK;
}

int kiln_worker_main(const kiln_stage_program *p, const kiln_cli *cli,
                     kiln_worker_become_fn *become, const char *flag, int argc, char **argv)
{
    kiln_error err = {0};
    kiln_worker w = {.program = p,
                     .become = become,
                     .options = &kiln_engine_values,
                     .common = &kiln_common_values,
                     .outputs = {.memfd = -1}};
    (void)signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the whole group; the parent decides */
    /* so do timeout(1) and batch systems; a worker ends with its socket or its parent */
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN); /* so does the end of a terminal */
    kiln_status st = begin(&w, cli, flag, argc, argv, &err);
    /* if it cannot open its device, it is silent: a stage that wants one will say it */
    const bool rests = argc == 2;
    if (st == KILN_OK && (w.runner || rests)) st = serve(&w, &err);
    if (st != KILN_OK && !(rests && w.program == p))
        kiln_tell_error(w.program->cli->program, "worker: ", &err);
    lay_down(&w);
    return kiln_exit_code(st);
}
