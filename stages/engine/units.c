/* kiln_run_units: finds the units that are done, hands the others to the workers, stores what comes back.
 *
 * Each worker has one unit in work and one waiting, so that it never idles while the parent stores. Results wait for a
 * common transaction until they are BATCH_BYTES or the oldest is BATCH_MS old: one fsync for many small units, and a
 * kill costs no more than that. Whatever ends the list, results that arrived are stored first. */
#include "stages/engine/engine_internal.h"
#include "stages/engine/json_text.h"

#include "base/log.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BATCH_BYTES = 64 << 20, BATCH_MS = 200, BATCH_UNITS = 256 };

typedef struct {
    kiln_unit *unit;
    void *map; /* the memfd that the blobs point into */
    uint64_t map_bytes;
    kiln_blob *blobs;
    uint64_t wall_ns;
} arrival; /* a result that waits for its transaction */

typedef struct {
    kiln_run *run;
    kiln_unit *units;
    uint64_t *due; /* indices of the units to compute, in order */
    uint64_t n_due, next, n_back;
    arrival batch[BATCH_UNITS];
    unsigned n_batch;
    uint64_t batch_bytes, batch_since_ns;
    kiln_progress progress;
} job;

static bool in_memory(const kiln_run *r, const kiln_unit *u) { return u->volatile_result || !r->manifest || kiln_run_is_once(r); }

/* ---- what is due -------------------------------------------------------------------------------------------------------- */
static kiln_status find_due(job *j, uint64_t n, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&j->due, n, "the list of units", err));
    for (uint64_t i = 0; i < n; i++) {
        kiln_unit *u = &j->units[i];
        u->was_cached = false;
        u->result = (kiln_unit_result){0};
        u->volatile_data = NULL;
        if (!u->volatile_result && j->run->manifest)
            KILN_TRY(kiln_unit_find(j->run->manifest, u->key, &u->was_cached, &u->result, err));
        if (!u->was_cached || kiln_run_force(j->run))
            j->due[j->n_due++] = i;
        else
            j->run->units_cached++;
    }
    return KILN_OK;
}

/* ---- results ------------------------------------------------------------------------------------------------------------ */
static void arrival_release(arrival *a)
{
    free(a->blobs);
    if (a->map) (void)munmap(a->map, a->map_bytes);
    *a = (arrival){0};
}

static kiln_status store_batch(job *j, kiln_error *err)
{
    kiln_run *r = j->run;
    kiln_status st = KILN_OK;
    if (j->n_batch == 0) return KILN_OK;
    KILN_GO(kiln_manifest_begin(r->manifest, err));
    for (unsigned i = 0; i < j->n_batch; i++) {
        const arrival *a = &j->batch[i];
        KILN_GO(kiln_unit_store(r->manifest, a->unit->key, r->program->name, a->unit->name, &a->unit->result, a->blobs,
                                (int64_t)a->wall_ns, err));
    }
    KILN_GO(kiln_manifest_commit(r->manifest, err));
    r->units_stored += j->n_batch;
done:
    if (st != KILN_OK) kiln_manifest_rollback(r->manifest);
    for (unsigned i = 0; i < j->n_batch; i++) arrival_release(&j->batch[i]);
    j->n_batch = 0;
    j->batch_bytes = 0;
    return st;
}

static bool batch_is_ripe(const job *j)
{
    return j->n_batch == BATCH_UNITS || j->batch_bytes >= BATCH_BYTES ||
           (j->n_batch && kiln_now_ns() - j->batch_since_ns >= BATCH_MS * UINT64_C(1000000));
}

/* --force: what is stored must be what came out again. */
static kiln_status compare(const kiln_unit *u, const kiln_unit_result *again, kiln_error *err)
{
    char was[33], is[33];
    uint32_t n = u->result.n < again->n ? u->result.n : again->n;
    for (uint32_t i = 0; i < n; i++) {
        const kiln_unit_output *a = &u->result.outputs[i], *b = &again->outputs[i];
        if (!strcmp(a->name, b->name) && a->segment == b->segment && kiln_hash_equal(a->hash, b->hash)) continue;
        return kiln_fail(err, KILN_E_BUG,
                         "'%s' computed again differs from what is stored: output '%s' was %s, '%s' is %s now; "
                         "report this, unless the machine's memory is failing",
                         u->name, a->name, kiln_hash_hex(a->hash, was), b->name, kiln_hash_hex(b->hash, is));
    }
    if (u->result.n != again->n)
        return kiln_fail(err, KILN_E_BUG, "'%s' computed again has %u outputs where %u are stored", u->name, again->n, u->result.n);
    return KILN_OK;
}

static kiln_status keep_in_memory(kiln_unit *u, const kiln_blob *blobs, kiln_error *err)
{
    KILN_TRY(KILN_ALLOC(&u->volatile_data, u->result.n, "a result", err));
    for (uint32_t i = 0; i < u->result.n; i++) {
        KILN_TRY(kiln_alloc(&u->volatile_data[i], blobs[i].packed_bytes, 1, "a result", err));
        if (blobs[i].packed_bytes) memcpy(u->volatile_data[i], blobs[i].packed, blobs[i].packed_bytes);
    }
    return KILN_OK;
}

static kiln_status take_result(job *j, const kiln_message *m, int memfd, kiln_error *err)
{
    kiln_unit *u = &j->units[m->unit];
    kiln_status st = KILN_OK;
    arrival a = {.unit = u, .map_bytes = m->bytes, .wall_ns = m->wall_ns};
    kiln_unit_result result = {0};
    KILN_GO(kiln_memfd_map(memfd, m->bytes, &a.map, err));
    KILN_GO(KILN_ALLOC(&a.blobs, m->n_outputs, "a unit's outputs", err));
    KILN_GO(kiln_outputs_read(m, a.map, &result, a.blobs, err));
    j->run->units_done++;
    if (u->was_cached) { /* --force */
        KILN_GO(compare(u, &result, err));
    } else {
        u->result = result;
        result = (kiln_unit_result){0};
        if (in_memory(j->run, u)) {
            KILN_GO(keep_in_memory(u, a.blobs, err));
        } else {
            if (j->n_batch == BATCH_UNITS) KILN_GO(store_batch(j, err)); /* several workers may answer between two looks */
            if (j->n_batch == 0) j->batch_since_ns = kiln_now_ns();
            j->batch_bytes += m->bytes;
            j->batch[j->n_batch++] = a;
            a = (arrival){0};
        }
    }
    kiln_chat("%s: %.3f s", u->name, (double)m->wall_ns * 1e-9);
done:
    arrival_release(&a);
    kiln_unit_result_release(&result);
    return st;
}

/* ---- the conversation --------------------------------------------------------------------------------------------------- */
static kiln_status send_unit(job *j, kiln_worker_process *w, kiln_error *err)
{
    uint64_t index = j->due[j->next];
    const kiln_unit *u = &j->units[index];
    kiln_message m = {.version = KILN_PROTOCOL_VERSION, .kind = KILN_MSG_UNIT, .unit = index, .bytes = u->payload_bytes};
    /* a unit that is compared must come back in the form in which it was stored */
    if (in_memory(j->run, u) && !u->was_cached) m.flags = KILN_MSG_VOLATILE;
    memcpy(m.text, u->name, sizeof u->name);
    int memfd = -1;
    kiln_status st = KILN_OK;
    if (u->payload_bytes) {
        KILN_TRY(kiln_memfd_new(&memfd, err));
        st = kiln_memfd_append(memfd, u->payload, u->payload_bytes, err);
    }
    if (st == KILN_OK) st = kiln_message_send(w->fd, &m, memfd, err);
    if (memfd >= 0) (void)close(memfd);
    if (st == KILN_E_TERMINATED) return KILN_OK; /* hear() first takes the results that it sent before it died */
    if (st != KILN_OK) return st;
    w->flight[w->n_flight++] = index;
    j->next++;
    return KILN_OK;
}

/* Every worker gets one unit before any gets a second: few units are shared out too. */
static kiln_status hand_out(job *j, kiln_error *err)
{
    kiln_run *r = j->run;
    for (unsigned depth = 1; depth <= KILN_IN_FLIGHT; depth++)
        for (unsigned i = 0; i < r->n_workers && j->next < j->n_due; i++)
            if (r->workers[i].n_flight < depth) KILN_TRY(send_unit(j, &r->workers[i], err));
    return KILN_OK;
}

static kiln_status hear(job *j, kiln_worker_process *w, kiln_error *err)
{
    kiln_message m;
    int memfd;
    bool closed;
    KILN_TRY(kiln_message_receive(w->fd, &m, &memfd, &closed, err));
    const char *oldest = w->n_flight          ? j->units[w->flight[0]].name
                         : j->next < j->n_due ? j->units[j->due[j->next]].name
                                              : "nothing";
    if (closed) return kiln_worker_death(w, oldest, err);
    kiln_status st = KILN_OK;
    if (w->n_flight == 0 || m.unit != w->flight[0] || (m.kind != KILN_MSG_RESULT && m.kind != KILN_MSG_FAILED)) {
        st = kiln_fail(err, KILN_E_BUG, "the worker answered with message %u for unit %llu while it had '%s'", m.kind,
                       (unsigned long long)m.unit, oldest);
    } else {
        w->n_flight--;
        memmove(w->flight, w->flight + 1, w->n_flight * sizeof *w->flight);
        w->use = m.use;
        j->n_back++;
        if (m.kind == KILN_MSG_RESULT) {
            st = take_result(j, &m, memfd, err);
            kiln_progress_add(&j->progress, 1);
        } else {
            st = kiln_fail(err, (kiln_status)m.status, "%s", m.text);
            kiln_note(err, "%s", oldest);
            kiln_devices_advise(err);
        }
    }
    if (memfd >= 0) (void)close(memfd);
    return st;
}

/* One for each device, but not more than there are units; all open their devices at the same time. */
static kiln_status start_workers(const job *j, kiln_error *err)
{
    kiln_run *r = j->run;
    KILN_TRY(kiln_run_find_devices(r, err));
    const unsigned wanted = j->n_due < r->devices.n ? (unsigned)j->n_due : r->devices.n;
    if (r->n_workers < wanted) r->n_workers = wanted;
    for (unsigned i = 0; i < r->n_workers; i++)
        if (r->workers[i].pid <= 0) KILN_TRY(kiln_worker_start(r, &r->devices.items[i], &r->workers[i], err));
    for (unsigned i = 0; i < r->n_workers; i++)
        if (!r->workers[i].ready) KILN_TRY(kiln_worker_await(&r->workers[i], err));
    return KILN_OK;
}

static kiln_status converse(job *j, kiln_error *err)
{
    kiln_run *r = j->run;
    struct pollfd fds[KILN_DEVICES_MAX];
    while (j->n_back < j->n_due) {
        KILN_TRY(hand_out(j, err));
        for (unsigned i = 0; i < r->n_workers; i++) fds[i] = (struct pollfd){.fd = r->workers[i].fd, .events = POLLIN};
        if (batch_is_ripe(j)) KILN_TRY(store_batch(j, err));
        KILN_TRY(kiln_interrupt_poll(fds, r->n_workers, err));
        for (unsigned i = 0; i < r->n_workers; i++)
            if (fds[i].revents) KILN_TRY(hear(j, &r->workers[i], err));
        kiln_progress_add(&j->progress, 0);
    }
    return KILN_OK;
}

kiln_status kiln_run_units(kiln_run *r, const char *what, kiln_unit *units, uint64_t n, kiln_error *err)
{
    kiln_status st = KILN_OK;
    job *j = NULL;
    KILN_TRY(kiln_interrupt_check(err));
    if (!r->program->unit) return kiln_fail(err, KILN_E_BUG, "%s has no units", r->program->name);
    KILN_TRY(KILN_ALLOC(&j, 1, "the list of units", err)); /* too big for the stack */
    j->run = r;
    j->units = units;
    KILN_GO(find_due(j, n, err));
    if (j->n_due == 0) goto done;
    KILN_GO(start_workers(j, err));
    kiln_progress_start(&j->progress, what, "units", j->n_due);
    st = converse(j, err);
    kiln_progress_stop(&j->progress);
    if (st == KILN_OK) {
        st = store_batch(j, err);
    } else {
        kiln_status stored = store_batch(j, NULL); /* what arrived is kept; the first failure is the one to report */
        if (stored != KILN_OK) kiln_warn("results that had arrived could not be stored (%s)", kiln_status_text(stored));
        kiln_workers_stop(r->workers, r->n_workers);
    }
done:
    for (unsigned i = 0; i < j->n_batch; i++) arrival_release(&j->batch[i]);
    free(j->due);
    free(j);
    return st;
}

/* ---- reading results ------------------------------------------------------------------------------------------------------ */
void kiln_units_release(kiln_unit *units, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        kiln_unit *u = &units[i];
        for (uint32_t k = 0; u->volatile_data && k < u->result.n; k++) free(u->volatile_data[k]);
        free(u->volatile_data);
        u->volatile_data = NULL;
        kiln_unit_result_release(&u->result);
    }
}

kiln_status kiln_unit_data(kiln_run *r, const kiln_unit *u, const char *name, void **data, uint64_t *bytes, kiln_error *err)
{
    if (!u->volatile_data) return kiln_unit_result_read(r->manifest, &u->result, name, data, bytes, err);
    for (uint32_t i = 0; i < u->result.n; i++) {
        if (strcmp(u->result.outputs[i].name, name)) continue;
        *bytes = u->result.outputs[i].raw_bytes;
        KILN_TRY(kiln_alloc(data, *bytes, 1, "a result", err));
        if (*bytes) memcpy(*data, u->volatile_data[i], *bytes);
        return KILN_OK;
    }
    return kiln_fail(err, KILN_E_STALE, "'%s' has no output '%s'", u->name, name);
}

kiln_status kiln_unit_counters(const kiln_unit *u, json_t **out, kiln_error *err)
{
    json_error_t why;
    const char *text = u->result.counters ? u->result.counters : "{}";
    KILN_TRY(kiln_json_parse(text, strlen(text), JSON_REJECT_DUPLICATES, "counters", out, &why, err));
    if (!json_is_object(*out)) {
        json_decref(*out);
        *out = NULL;
        return kiln_fail(err, KILN_E_IO, "the counters of '%s' are no JSON object: %s", u->name, why.text);
    }
    return KILN_OK;
}
