/* kiln-serve -- shows a bake in a browser, while it is baked, too: the report, and an interactive
 * view where the viewer is installed. stages/serve/ answers; this is the command line. Reads
 * only. */
#include "base/log.h"
#include "base/quote.h"
#include "stages/engine/engine.h"
#include "stages/engine/program.h"
#include "stages/engine/json_text.h"
#include "stages/serve/http_server.h"
#include "stages/serve/listener.h"
#include "stages/serve/token.h"

#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static struct {
    const char *listen;
    uint32_t port, connections;
} o;

static const kiln_opt options[] = {
    KILN_OPTION_NUMBER("port", &o.port, "N", "port to listen on; 0: any free port", .letter = 'p',
                       .def = "0", .range = "0..65535"),
    KILN_OPTION_TEXT("listen", &o.listen, "ADDRESS",
                     "numeric address to listen on. 127.0.0.1: only this machine; 0.0.0.0: every "
                     "machine that can reach it, over HTTP without "
                     "encryption",
                     .letter = 'l', .def = "127.0.0.1", .brief = "numeric address to listen on"),
    KILN_OPTION_NUMBER("max-connections", &o.connections, "N",
                       "most connections at a time; further ones wait", .def = "2048",
                       .range = "1..65536"),
    KILN_OPTION_END,
};

static const char *const notes[] = {
    "The first line on stdout is the address to open. It contains a secret word, new each time; "
    "requests without it are refused, "
    "because other users of the machine can reach 127.0.0.1, too.",
    "From another machine: ssh -L PORT:127.0.0.1:PORT HOST, with the same port twice, and the "
    "printed address in the browser "
    "there.",
    "The interactive view needs the viewer, which `make viewer` makes and `make install` installs; "
    "without it the address leads to "
    "the report.",
    "kiln-serve only reads, and may run during a bake. SIGINT (Ctrl-C), SIGTERM and SIGHUP end it "
    "with 130, 143 and 129.",
    NULL,
};

static const kiln_opt_check checks[] = {{"listen", kiln_listen_check}, {NULL, NULL}};

static const kiln_cli cli = {.program = "kiln-serve",
                             .summary = "shows a bake in a browser, also while it is being baked",
                             .positionals = "MANIFEST",
                             .n_positionals = 1,
                             .tables_note = notes,
                             .options = options,
                             .common = kiln_common_options,
                             .checks = checks};

static unsigned threads(void)
{
    return kiln_common_values.threads ? kiln_common_values.threads : (unsigned)omp_get_num_procs();
}

/* Of the whole address: what is listened on where a browser can open that, else this machine by
 * name of its loopback. */
static void write_address(const kiln_serve_address *a, const char *token, char *out, size_t size)
{
    const char *host = a->any ? "127.0.0.1" : a->listen;
    const bool v6 = strchr(host, ':') != NULL;
    (void)snprintf(out, size, "http://%s%s%s:%u/%s/", v6 ? "[" : "", host, v6 ? "]" : "", a->port,
                   token);
}

/* Scripts read it from a pipe while the program runs, so it is flushed. */
static kiln_status print_address(const kiln_run *r, const kiln_serve_address *a, const char *url,
                                 kiln_error *err)
{
    if (kiln_run_json(r)) {
        json_t *v =
            json_pack("{s:i, s:s, s:s, s:o, s:o, s:i, s:i}", "version", 1, "stage", "serve",
                      "status", "serving", "address", kiln_json_string(url), "listen",
                      kiln_json_string(a->listen), "port", (int)a->port, "pid", (int)getpid());
        char *text = kiln_json_text(v, JSON_COMPACT);
        json_decref(v);
        if (!text) return kiln_fail(err, KILN_E_NOMEM, "cannot write the address as JSON");
        kiln_print_json(text);
        free(text);
    } else {
        kiln_print("%s", url);
    }
    if (fflush(stdout) == 0 && !ferror(stdout)) return KILN_OK;
    return kiln_fail(err, KILN_E_IO, "cannot write the address to stdout; is the pipe closed?");
}

static void tell_address(const kiln_http_server *s, const kiln_serve_address *a)
{
    char host[256] = "HOST";
    if (gethostname(host, sizeof host - 1) != 0) (void)strcpy(host, "HOST");
    kiln_say("open the address in a browser; everybody who has it can read this bake. Ctrl-C ends");
    const bool v6 = strchr(a->listen, ':') != NULL;
    if (kiln_address_is_loopback(a->listen))
        kiln_say("from another machine: ssh -L %u:%s%s%s:%u %s, then open it there", a->port,
                 v6 ? "[" : "", a->listen, v6 ? "]" : "", a->port, host);
    else
        kiln_warn("other machines can reach this address, and what is sent is not encrypted; "
                  "without --listen only this one can");
    if (!kiln_http_server_has_viewer(s))
        kiln_say("the interactive view is not installed, so the address shows the report; `make "
                 "viewer` in SplatKiln's sources "
                 "makes it");
}

/* Until a signal comes. */
static kiln_status serve(kiln_run *r, kiln_http_server *s, kiln_error *err)
{
    const struct timespec tick = {.tv_nsec = 200000000};
    kiln_status st;
    while ((st = kiln_run_interrupted(r, NULL)) == KILN_OK) {
        (void)nanosleep(&tick, NULL); /* a signal ends it early */
        kiln_http_server_tick(s);
    }
    return kiln_fail(err, st, "%s", kiln_status_text(st));
}

static kiln_status run_serve(kiln_run *r, kiln_error *err)
{
    kiln_http_server *s = NULL;
    kiln_http_options ask = {.manifest = kiln_manifest_path(kiln_run_manifest(r)),
                             .allow_network = kiln_run_allow_network(r),
                             .connections_max = kiln_connections_fit(o.connections),
                             .threads = threads()};
    char token[KILN_TOKEN_LENGTH + 1], url[256];
    (void)signal(SIGPIPE, SIG_IGN); /* a client that goes away; of stdout the write says it */
    if (ask.connections_max < o.connections)
        kiln_warn("the limit of open files allows %u connections at a time instead of %u; `ulimit "
                  "-Hn` shows it",
                  ask.connections_max, o.connections);
    KILN_TRY(kiln_token_make(token, err));
    KILN_TRY(kiln_listener_open(o.listen, o.port, &ask.address, &ask.fd, err));
    ask.token = token;
    KILN_TRY(kiln_http_server_start(&ask, &s, err));
    write_address(&ask.address, token, url, sizeof url);
    kiln_status st = print_address(r, &ask.address, url, err);
    if (st == KILN_OK) tell_address(s, &ask.address);
    if (st == KILN_OK) st = serve(r, s, err);
    kiln_http_server_stop(s);
    return st;
}

static const kiln_stage_program program = {.name = "serve",
                                           .cli = &cli,
                                           .open = KILN_OPEN_READ,
                                           .flags = KILN_PROGRAM_WATCHES,
                                           .run = run_serve};

int main(int argc, char **argv) { return kiln_program_main(&program, argc, argv); }
