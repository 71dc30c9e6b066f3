/* http_server -- see the header.
 *
 * The library calls handle() when the head of a request is there, for each part of a body, when the
 * request is whole, and, of one that a lane answers, when the lane is done. While the lane works,
 * the connection is suspended, and the exchange, which is the request's own, is the lane's. */
#include "stages/serve/http_server.h"

#include "base/memory.h"
#include "stages/serve/deadlines.h"
#include "stages/serve/lane.h"
#include "stages/serve/token.h"
#include "stages/serve/viewer_files.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    REQUEST_BYTES = 16 << 10,
    HEAD_MS = 10000,
    NEXT_MS = 30000,
    ANSWER_MS = 30000,
    ANSWER_BYTES_PER_MS = 64,
    DATA_QUEUE = 1024,
    PAINT_QUEUE = 32
};
#define ANSWERS_BYTES ((uint64_t)512 << 20)

struct kiln_http_server {
    kiln_serve_address address;
    const char *token;
    kiln_answer_pool pool;
    kiln_deadlines deadlines;
    bool has_deadlines;
    kiln_viewer_files viewer;
    kiln_lane lanes[KILN_LANES];
    struct MHD_Daemon *daemon;
};

typedef struct {
    kiln_http_server *server;
    struct MHD_Connection *connection;
    const char *target_end; /* the first NUL of the target as it came, in the library's buffer */
    bool checked, asked;    /* its head; what there is for it has been looked for */
    kiln_serve_job job;
} exchange;

/* ---- time ------------------------------------------------------------------------------------ */
static void set_deadline(kiln_http_server *s, struct MHD_Connection *c, uint64_t ms)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    if (info && info->socket_context) kiln_deadlines_set(&s->deadlines, info->socket_context, ms);
}

static void on_connection(void *server, struct MHD_Connection *c, void **context,
                          enum MHD_ConnectionNotificationCode code)
{
    kiln_http_server *s = server;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (*context) kiln_deadlines_remove(&s->deadlines, *context);
        *context = NULL;
        return;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    *context = info ? kiln_deadlines_add(&s->deadlines, info->connect_fd, HEAD_MS) : NULL;
    /* no memory: it could stay for ever */
    if (info && !*context) (void)shutdown(info->connect_fd, SHUT_RDWR);
}

static void on_completed(void *server, struct MHD_Connection *c, void **context,
                         enum MHD_RequestTerminationCode code)
{
    exchange *x = *context;
    (void)code;
    set_deadline(server, c, NEXT_MS);
    *context = NULL;
    if (x) kiln_answer_drop(x->job.answer);
    free(x);
}

/* ---- sending --------------------------------------------------------------------------------- */
static bool add_headers(struct MHD_Response *r, const kiln_reply *reply)
{
    const struct {
        const char *name, *value; /* value NULL: left out */
    } headers[] = {
        {"Content-Type", reply->type ? reply->type : "text/html; charset=utf-8"},
        {"Content-Security-Policy", reply->policy ? reply->policy : KILN_POLICY_NOTHING},
        {"X-Content-Type-Options", "nosniff"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
        {"Referrer-Policy", "no-referrer"},
        {"Cache-Control", reply->immutable ? "private, max-age=31536000, immutable" : "no-store"},
        {"Location", reply->location},
        {"Retry-After", reply->again ? "1" : NULL},
        {"Allow", reply->status == MHD_HTTP_METHOD_NOT_ALLOWED ? "GET, HEAD" : NULL},
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        if (headers[i].value &&
            MHD_add_response_header(r, headers[i].name, headers[i].value) == MHD_NO)
            return false;
    return true;
}

static enum MHD_Result send_answer(kiln_http_server *s, struct MHD_Connection *c, kiln_answer *a)
{
    if (!a) return MHD_NO; /* no memory: the connection is closed */
    const kiln_buffer *body = &a->reply.body;
    struct MHD_Response *r = MHD_create_response_from_buffer_with_free_callback_cls(
        body->size, body->data, kiln_answer_drop, kiln_answer_use(a));
    if (!r) {
        kiln_answer_drop(a);
        return MHD_NO;
    }
    set_deadline(s, c, ANSWER_MS + body->size / ANSWER_BYTES_PER_MS);
    const enum MHD_Result sent =
        add_headers(r, &a->reply) ? MHD_queue_response(c, a->reply.status, r) : MHD_NO;
    MHD_destroy_response(r);
    return sent;
}

static enum MHD_Result send_text(kiln_http_server *s, struct MHD_Connection *c, unsigned status,
                                 const char *text)
{
    kiln_answer *a = NULL;
    if (kiln_answer_text(&s->pool, status, text, &a, NULL) != KILN_OK) return MHD_NO;
    const enum MHD_Result sent = send_answer(s, c, a);
    kiln_answer_drop(a);
    return sent;
}

/* ---- checking -------------------------------------------------------------------------------- */
typedef struct {
    const char *host; /* the last one */
    unsigned hosts;
    bool foreign_origin;
} senders;

static enum MHD_Result note_host(void *context, enum MHD_ValueKind kind, const char *name,
                                 const char *value)
{
    senders *x = context;
    (void)kind;
    if (strcasecmp(name, "Host") != 0) return MHD_YES;
    x->hosts++;
    x->host = value ? value : "";
    return MHD_YES;
}

static enum MHD_Result note_origin(void *context, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    senders *x = context;
    (void)kind;
    if (strcasecmp(name, "Origin") == 0 && !kiln_origin_is_ours(value ? value : "", x->host))
        x->foreign_origin = true;
    return MHD_YES;
}

/* The status with which a request is refused, and why; 0: it is not. */
static unsigned refuse_request(const kiln_http_server *s, struct MHD_Connection *c,
                               const char *path, const char *method, const char **why)
{
    senders x = {.hosts = 0};
    /* how many there are says nothing here */
    (void)MHD_get_connection_values(c, MHD_HEADER_KIND, note_host, &x);
    if (x.hosts != 1 || !kiln_host_is_ours(&s->address, x.host)) {
        *why = "this server does not answer to that name or port; a tunnel must use the same port "
               "at both ends";
        return MHD_HTTP_FORBIDDEN;
    }
    (void)MHD_get_connection_values(c, MHD_HEADER_KIND, note_origin, &x);
    *why = "requests from pages of other sites are refused";
    if (x.foreign_origin) return MHD_HTTP_FORBIDDEN;
    *why = "this server only answers GET and HEAD";
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return MHD_HTTP_METHOD_NOT_ALLOWED;
    *why = "nothing is at this address; use the complete address that kiln-serve has printed";
    const bool ours = kiln_target_is_plain(path) && path[0] == '/' &&
                      kiln_token_equal(s->token, path + 1, strcspn(path + 1, "/")) &&
                      path[1 + KILN_TOKEN_LENGTH] == '/';
    return ours ? 0 : MHD_HTTP_NOT_FOUND;
}

/* ---- a request ------------------------------------------------------------------------------- */
/* On the lane's thread. */
static void on_answered(kiln_serve_job *job)
{
    exchange *x = job->context;
    MHD_resume_connection(x->connection);
}

static uint32_t asked_degree(struct MHD_Connection *c)
{
    const char *sh = MHD_lookup_connection_value(c, MHD_GET_ARGUMENT_KIND, "sh");
    return sh && sh[0] >= '0' && sh[0] <= '8' && !sh[1] ? (uint32_t)(sh[0] - '0') : KILN_SH_ALL;
}

static enum MHD_Result ask_lane(exchange *x, const kiln_route *route, const char *path)
{
    static const char busy[] = "the server is busy; try again";
    kiln_http_server *s = x->server;
    x->job = (kiln_serve_job){.route = route,
                              .sh_degree = asked_degree(x->connection),
                              .done = on_answered,
                              .context = x};
    memcpy(x->job.path, path, strlen(path) + 1); /* fits: KILN_TARGET_MAX */
    MHD_suspend_connection(x->connection);
    if (kiln_lane_add(&s->lanes[route->lane], &x->job)) return MHD_YES;
    if (kiln_answer_text(&s->pool, MHD_HTTP_SERVICE_UNAVAILABLE, busy, &x->job.answer, NULL) !=
        KILN_OK)
        x->job.answer = NULL;
    MHD_resume_connection(x->connection);
    return MHD_YES;
}

/* The request is whole and may be answered. */
static enum MHD_Result answer_exchange(exchange *x, const char *url)
{
    kiln_http_server *s = x->server;
    const char *path = url + 1 + KILN_TOKEN_LENGTH + 1;
    kiln_path_parts parts;
    x->asked = true;
    set_deadline(s, x->connection, KILN_NO_DEADLINE);
    kiln_answer *file = kiln_viewer_files_find(&s->viewer, path);
    if (file) return send_answer(s, x->connection, file);
    const kiln_route *route = kiln_route_find(path, &parts);
    if (!route)
        return send_text(s, x->connection, MHD_HTTP_NOT_FOUND, "nothing is at this address");
    return ask_lane(x, route, path);
}

/* Makes the exchange, which is *context of handle(). */
static void *on_target(void *server, const char *target, struct MHD_Connection *c)
{
    exchange *x = NULL;
    if (KILN_ALLOC(&x, 1, "a request", NULL) != KILN_OK) return NULL;
    *x = (exchange){.server = server, .connection = c, .target_end = target + strlen(target)};
    return x;
}

/* The library gives a target with a NUL in it as the text before. The version stands in the same
 * buffer, right behind the target, unless there is more of it. */
static bool hides_bytes(const exchange *x, const char *version)
{
    const uintptr_t end = (uintptr_t)x->target_end, at = (uintptr_t)version;
    return at > end + 1 && at - end < REQUEST_BYTES;
}

static enum MHD_Result handle(void *server, struct MHD_Connection *c, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_bytes, void **context)
{
    exchange *x = *context;
    const char *why = NULL;
    (void)upload;
    if (!x) return MHD_NO; /* no memory */
    if (!x->checked) {
        x->checked = true;
        if (hides_bytes(x, version))
            return send_text(server, c, MHD_HTTP_BAD_REQUEST, "an address cannot contain a NUL");
        const unsigned refused = refuse_request(server, c, url, method, &why);
        /* an answer at this point ends the connection */
        return refused ? send_text(server, c, refused, why) : MHD_YES;
    }
    if (*upload_bytes) { /* a body, which nobody reads; the deadline stands until it is over */
        *upload_bytes = 0;
        return MHD_YES;
    }
    return x->asked ? send_answer(server, c, x->job.answer) : answer_exchange(x, url);
}

/* Addresses are compared as they came: nothing is decoded. */
static size_t leave_escaped(void *context, struct MHD_Connection *c, char *text)
{
    (void)context, (void)c;
    return strlen(text);
}

/* ---- begin and end --------------------------------------------------------------------------- */
static kiln_status start_lanes(kiln_http_server *s, const kiln_http_options *o, kiln_error *err)
{
    for (int i = 0; i < KILN_LANES; i++) {
        const kiln_lane_options lane = {.manifest = o->manifest,
                                        .allow_network = o->allow_network,
                                        .pool = &s->pool,
                                        .threads = o->threads,
                                        .queue_max =
                                            i == KILN_LANE_DATA ? DATA_QUEUE : PAINT_QUEUE};
        KILN_TRY(kiln_lane_start(&s->lanes[i], &lane, err));
    }
    return KILN_OK;
}

static kiln_status start_server(kiln_http_server *s, const kiln_http_options *o, kiln_error *err)
{
    KILN_TRY(kiln_deadlines_init(&s->deadlines, err));
    s->has_deadlines = true;
    KILN_TRY(kiln_viewer_files_load(&s->pool, &s->viewer, err));
    KILN_TRY(start_lanes(s, o, err));
    s->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle, s,
        MHD_OPTION_LISTEN_SOCKET, o->fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)o->connections_max,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, NULL, MHD_OPTION_URI_LOG_CALLBACK, on_target,
        s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_NOTIFY_COMPLETED,
        on_completed, s, MHD_OPTION_END);
    return s->daemon
               ? KILN_OK
               : kiln_fail(
                     err, KILN_E_IO,
                     "cannot start the server; is the limit of open files or memory too low?");
}

kiln_status kiln_http_server_start(const kiln_http_options *o, kiln_http_server **out,
                                   kiln_error *err)
{
    kiln_http_server *s = NULL;
    *out = NULL;
    KILN_TRY(KILN_ALLOC(&s, 1, "a server", err));
    s->address = o->address;
    s->token = o->token;
    s->pool.limit = ANSWERS_BYTES;
    const kiln_status st = start_server(s, o, err);
    if (st == KILN_OK)
        *out = s;
    else
        kiln_http_server_stop(s);
    return st;
}

bool kiln_http_server_has_viewer(const kiln_http_server *s) { return s->viewer.installed; }

void kiln_http_server_tick(kiln_http_server *s) { (void)kiln_deadlines_sweep(&s->deadlines); }

/* Lanes first: the library wants no connection to rest when it is stopped. */
void kiln_http_server_stop(kiln_http_server *s)
{
    if (!s) return;
    for (int i = 0; i < KILN_LANES; i++) kiln_lane_stop(&s->lanes[i]);
    if (s->daemon) MHD_stop_daemon(s->daemon);
    for (int i = 0; i < KILN_LANES; i++) kiln_lane_release(&s->lanes[i]);
    kiln_viewer_files_release(&s->viewer);
    if (s->has_deadlines) kiln_deadlines_release(&s->deadlines);
    free(s);
}
