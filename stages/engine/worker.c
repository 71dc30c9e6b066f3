/* The worker: waits for units, computes them with the stage's own function, sends results, ends with its socket.
 * It writes no file but what the stage's unit writes, and reads the manifest through a connection of its own. */
#include "stages/engine/engine_internal.h"

#include "base/log.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

struct kiln_worker {
    const kiln_stage_program *program;
    kiln_parsed parsed;
    int fd;
    kiln_exec exec;
    const kiln_ops *ops;
    kiln_manifest *manifest;
    void *state;
    void (*free_state)(void *);
    void *work; /* workspace of operations, kept between units */
    size_t work_bytes;
    kiln_outputs outputs;
    char *counters; /* of the unit in hand; NULL: "{}" */
};

/* ---- what a stage's unit may ask ------------------------------------------------------------------------------------- */
const kiln_exec *kiln_worker_exec(kiln_worker *w) { return &w->exec; }
const kiln_ops *kiln_worker_ops(kiln_worker *w) { return w->ops; }
void *kiln_worker_state(kiln_worker *w) { return w->state; }

void kiln_worker_set_state(kiln_worker *w, void *state, void (*free_fn)(void *))
{
    if (w->state && w->free_state && w->state != state) w->free_state(w->state);
    w->state = state;
    w->free_state = free_fn;
}

kiln_status kiln_worker_manifest(kiln_worker *w, kiln_manifest **out, kiln_error *err)
{
    if (!w->manifest) {
        if (w->program->manifest_arg >= w->parsed.n_positional)
            return kiln_fail(err, KILN_E_BUG, "%s has no manifest to read", w->program->name);
        KILN_TRY(kiln_manifest_open(w->parsed.positional[w->program->manifest_arg], KILN_OPEN_READ, w->program->name,
                                    kiln_engine_values.allow_network, &w->manifest, err));
    }
    *out = w->manifest;
    return KILN_OK;
}

kiln_status kiln_worker_put(kiln_worker *w, const char *name, const void *raw, size_t bytes, uint32_t elem, kiln_error *err)
{
    return kiln_outputs_put(&w->outputs, name, raw, bytes, elem, err);
}

kiln_status kiln_worker_counters(kiln_worker *w, json_t *counters, kiln_error *err)
{
    free(w->counters);
    w->counters = json_dumps(counters, JSON_COMPACT | JSON_SORT_KEYS);
    if (!w->counters) return kiln_fail(err, KILN_E_NOMEM, "cannot write a unit's counters as JSON");
    return KILN_OK;
}

kiln_status kiln_worker_work(kiln_worker *w, kiln_status (*op)(const kiln_exec *, const void *, void *, size_t *, kiln_error *),
                             const void *args, kiln_error *err)
{
    size_t need = 0;
    KILN_TRY(op(&w->exec, args, NULL, &need, err));
    if (need > w->work_bytes || !w->work) {
        free(w->work);
        w->work = NULL;
        w->work_bytes = 0;
        KILN_TRY(kiln_alloc(&w->work, need, 1, "the workspace of an operation", err));
        w->work_bytes = need;
    }
    size_t have = w->work_bytes;
    return op(&w->exec, args, w->work, &have, err);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------------- */
static kiln_status compute(kiln_worker *w, const kiln_message *unit, int payload_fd, kiln_message *reply, int *memfd,
                           kiln_error *err)
{
    kiln_status st = KILN_OK;
    void *payload = NULL;
    uint64_t start = kiln_now_ns();
    kiln_outputs_clear(&w->outputs);
    w->outputs.keep_raw = unit->flags & KILN_MSG_VOLATILE;
    free(w->counters);
    w->counters = NULL;
    if (unit->bytes) KILN_GO(kiln_memfd_map(payload_fd, unit->bytes, &payload, err));
    KILN_GO(w->program->unit(w, unit->text, payload ? payload : "", unit->bytes, err));
    KILN_GO(kiln_outputs_finish(&w->outputs, w->counters ? w->counters : "{}", reply, memfd, err));
    reply->wall_ns = kiln_now_ns() - start;
done:
    if (payload) (void)munmap(payload, unit->bytes);
    kiln_outputs_clear(&w->outputs);
    return st;
}

static kiln_status serve(kiln_worker *w, kiln_error *err)
{
    for (;;) {
        kiln_message unit, reply = {.version = KILN_PROTOCOL_VERSION, .kind = KILN_MSG_RESULT};
        int payload_fd, memfd = -1;
        bool closed;
        kiln_error unit_error = {0};
        KILN_TRY(kiln_message_receive(w->fd, &unit, &payload_fd, &closed, err));
        if (closed) return KILN_OK;
        if (unit.kind != KILN_MSG_UNIT) return kiln_fail(err, KILN_E_BUG, "the worker got message %u", unit.kind);
        reply.unit = unit.unit;
        kiln_status st = compute(w, &unit, payload_fd, &reply, &memfd, &unit_error);
        if (payload_fd >= 0) (void)close(payload_fd);
        if (st != KILN_OK) {
            reply.kind = KILN_MSG_FAILED;
            reply.status = (int32_t)st;
            memcpy(reply.text, unit_error.msg, sizeof reply.text);
        }
        reply.peak_rss = kiln_peak_rss();
        st = kiln_message_send(w->fd, &reply, memfd, err);
        if (memfd >= 0) (void)close(memfd);
        if (st == KILN_E_TERMINATED) return KILN_OK; /* nobody is left to tell */
        if (st != KILN_OK) return st;
    }
}

static kiln_status say_hello(kiln_worker *w, kiln_error *err)
{
    kiln_message m = {.version = KILN_PROTOCOL_VERSION, .kind = KILN_MSG_HELLO};
    (void)snprintf(m.text, sizeof m.text, "%s, %u thread%s", w->ops->name, w->exec.threads, w->exec.threads == 1 ? "" : "s");
    return kiln_message_send(w->fd, &m, -1, err);
}

static bool is_socket(int fd)
{
    int type = 0;
    socklen_t size = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

int kiln_worker_main(const kiln_stage_program *p, const kiln_cli *cli, const char *fd_text, int argc, char **argv)
{
    kiln_error err = {0};
    kiln_worker w = {.program = p, .fd = atoi(fd_text), .exec = {.device = -1, .threads = 1}, .ops = kiln_ops_cpu()};
    kiln_status st = KILN_OK;
    if (!p->unit || !is_socket(w.fd)) {
        st = kiln_fail(&err, KILN_E_USAGE, "%s is for %s's own use", KILN_WORKER_FLAG, cli->program);
        goto done;
    }
    (void)signal(SIGINT, SIG_IGN);  /* Ctrl-C reaches the whole group; the parent decides */
    (void)signal(SIGTERM, SIG_IGN); /* so do timeout(1) and batch systems; a worker ends with its socket or its parent */
    argv[1] = argv[0];              /* what is left is a command line without the marker */
    KILN_GO(kiln_cli_parse(cli, argc - 1, argv + 1, &w.parsed, &err));
    kiln_log_init(cli->program, kiln_common_values.quiet     ? KILN_LOG_QUIET
                                : kiln_common_values.verbose ? KILN_LOG_VERBOSE
                                                             : KILN_LOG_NORMAL);
    w.exec.threads = w.outputs.threads = kiln_devices_threads(kiln_common_values.threads);
    w.exec.sync = kiln_common_values.sync;
    KILN_GO(say_hello(&w, &err));
    KILN_GO(serve(&w, &err));
done:
    if (st != KILN_OK) (void)fprintf(stderr, "%s: worker: %s\n", cli->program, err.msg);
    kiln_worker_set_state(&w, NULL, NULL);
    kiln_outputs_release(&w.outputs);
    kiln_manifest_close(w.manifest);
    free(w.work);
    free(w.counters);
    return kiln_exit_code(st);
}
