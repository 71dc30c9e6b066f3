/* runner -- one block of device memory: violation word, arrays, workspace, laid out anew for each
 * operation. */
#include "kernels/runner.h"

#include "base/carve.h"
#include "base/memory.h"
#include "kernels/violation.h"

#include <stdlib.h>
#include <string.h>

/* Host memory that is kept on the device. */
typedef struct kept {
    struct kept *next;
    char *host, *device;
    uint64_t bytes;
    bool there; /* the device has what is in it; else it is copied before the next use */
} kept;

struct kiln_runner {
    kiln_exec host, exec; /* exec is host on the CPU */
    const kiln_ops *host_ops, *ops;
    kiln_runner_info info;
    void *block; /* device memory */
    /* device memory of kiln_runner_take; block and taken together stay below the cap */
    uint64_t taken_bytes;
    kiln_runner_spare_fn *spare;
    void *spare_context;
    kept *kept;
    void *work; /* host memory */
    size_t work_bytes;
};

/* The block as an operation sees it. base NULL: measured only. */
typedef struct {
    kiln_op_array arrays[KILN_OP_ARRAYS_MAX];
    void *at[KILN_OP_ARRAYS_MAX];
    kept *kept[KILN_OP_ARRAYS_MAX]; /* NULL: the array is in the block */
    unsigned n;
    uint64_t *violation;
    void *work;
    size_t work_bytes;
    uint64_t bytes;
    /* the caller's, with the pointers of the block */
    _Alignas(16) unsigned char args[KILN_OP_ARGS_BYTES_MAX];
} layout;

/* What is kept of these bytes; NULL: not all are. */
static kept *find_kept_bytes(const kiln_runner *r, const void *host, uint64_t bytes)
{
    const uintptr_t from = (uintptr_t)host;
    for (kept *k = r->kept; k; k = k->next) {
        const uintptr_t begin = (uintptr_t)k->host;
        if (from >= begin && from - begin <= k->bytes && bytes <= k->bytes - (from - begin))
            return k;
    }
    return NULL;
}

static void *device_of(const kept *k, const void *host)
{
    return k->device + ((const char *)host - k->host);
}

static const void *array_of(const void *args, const kiln_op_array *a)
{
    const void *host;
    memcpy(&host, (const char *)args + a->field, sizeof host);
    return host;
}

static kiln_status lay_out_arrays(const kiln_runner *r, kiln_op_id op, const void *args, char *base,
                                  layout *l, kiln_error *err)
{
    kiln_carve c = {base, 0};
    const size_t args_bytes = kiln_op_args_bytes(op);
    memcpy(l->args, args, args_bytes);
    l->n = kiln_op_arrays(op, args, l->arrays);
    l->violation = kiln_take(&c, 1, sizeof *l->violation);
    for (unsigned i = 0; i < l->n; i++) {
        const kiln_op_array *a = &l->arrays[i];
        const void *host = array_of(args, a);
        l->kept[i] = find_kept_bytes(r, host, a->elements * a->elem);
        l->at[i] = l->kept[i] ? device_of(l->kept[i], host) : kiln_take(&c, a->elements, a->elem);
        if (base) memcpy(l->args + l->arrays[i].field, &l->at[i], sizeof l->at[i]);
    }
    KILN_TRY(kiln_op_call(r->ops, op, &r->exec, l->args, NULL, &l->work_bytes, err));
    l->work = kiln_take(&c, l->work_bytes, 1);
    l->bytes = c.used;
    return c.used == SIZE_MAX ? kiln_fail(err, KILN_E_CAP, "%s: its arrays do not fit into memory",
                                          kiln_op_name(op))
                              : KILN_OK;
}

static void drop_block(kiln_runner *r)
{
    kiln_device_free(r->exec.device, r->block);
    r->block = NULL;
    r->info.block_bytes = 0;
}

static void note_peak(kiln_runner *r)
{
    const uint64_t held = r->info.block_bytes + r->taken_bytes;
    if (held > r->info.peak_bytes) r->info.peak_bytes = held;
}

static kiln_status grow_runner_block(kiln_runner *r, uint64_t bytes, kiln_error *err)
{
    if (bytes <= r->info.block_bytes) return KILN_OK;
    drop_block(r); /* first: both together might exceed the cap */
    KILN_TRY(kiln_device_alloc(r->exec.device, bytes, &r->block, err));
    r->info.block_bytes = bytes;
    note_peak(r);
    return KILN_OK;
}

/* Copies what is kept to the device, if it is not there. */
static kiln_status bring(const kiln_runner *r, kept *k, kiln_error *err)
{
    if (k->there) return KILN_OK;
    KILN_TRY(kiln_device_copy_in(&r->exec, k->device, k->host, k->bytes, err));
    k->there = true;
    return KILN_OK;
}

static kiln_status copy_in(const kiln_runner *r, const layout *l, const void *args, kiln_error *err)
{
    for (unsigned i = 0; i < l->n; i++) {
        const kiln_op_array *a = &l->arrays[i];
        if (l->kept[i])
            KILN_TRY(bring(r, l->kept[i], err));
        else if (a->direction & KILN_ARRAY_IN)
            KILN_TRY(kiln_device_copy_in(&r->exec, l->at[i], array_of(args, a),
                                         a->elements * a->elem, err));
    }
    return KILN_OK;
}

static bool comes_back(const layout *l, unsigned i, bool counted)
{
    const kiln_op_array *a = &l->arrays[i];
    return !l->kept[i] && (a->direction & KILN_ARRAY_OUT) && counted == (a->used != NULL);
}

static bool any_comes_back(const layout *l, bool counted)
{
    for (unsigned i = 0; i < l->n; i++)
        if (comes_back(l, i, counted)) return true;
    return false;
}

/* Arrays with a count of their own follow when the count is here. */
static kiln_status copy_out(const kiln_runner *r, const layout *l, const void *args, bool counted,
                            kiln_error *err)
{
    for (unsigned i = 0; i < l->n; i++) {
        const kiln_op_array *a = &l->arrays[i];
        void *host;
        if (!comes_back(l, i, counted)) continue;
        const uint64_t elements = a->used && *a->used < a->elements ? *a->used : a->elements;
        memcpy(&host, (const char *)args + a->field, sizeof host);
        KILN_TRY(kiln_device_copy_out(&r->exec, host, l->at[i], elements * a->elem, err));
    }
    return KILN_OK;
}

/* Everything on the stream; the caller waits. */
static kiln_status put_on_stream(const kiln_runner *r, kiln_op_id op, const void *args,
                                 const layout *l, uint64_t *violation, kiln_error *err)
{
    kiln_exec x = r->exec;
    size_t work_bytes = l->work_bytes;
    x.violation = l->violation;
    KILN_TRY(kiln_device_copy_in(&x, l->violation, violation, sizeof *violation, err));
    KILN_TRY(copy_in(r, l, args, err));
    KILN_TRY(kiln_op_call(r->ops, op, &x, l->args, l->work, &work_bytes, err));
    KILN_TRY(kiln_device_copy_out(&x, violation, l->violation, sizeof *violation, err));
    return copy_out(r, l, args, false, err);
}

static kiln_status run_in_block(kiln_runner *r, kiln_op_id op, const void *args, layout *l,
                                kiln_error *err)
{
    uint64_t violation = KILN_VIOLATION_NONE;
    KILN_TRY(lay_out_arrays(r, op, args, r->block, l, err));
    kiln_status st = put_on_stream(r, op, args, l, &violation, err);
    const kiln_status waited =
        /* copies read and write the caller's memory */
        kiln_device_wait(&r->exec, st == KILN_OK ? err : NULL);
    if (st == KILN_OK) st = waited;
    if (st == KILN_OK) st = kiln_violation_fail(violation, err);
    if (st != KILN_OK || !any_comes_back(l, true)) return st;
    st = copy_out(r, l, args, true, err);
    const kiln_status again = kiln_device_wait(&r->exec, st == KILN_OK ? err : NULL);
    return st == KILN_OK ? again : st;
}

void kiln_runner_trim(kiln_runner *r)
{
    free(r->work);
    r->work = NULL;
    r->work_bytes = 0;
}

static kiln_status run_on_host(kiln_runner *r, kiln_op_id op, const void *args, kiln_error *err)
{
    size_t need = 0;
    KILN_TRY(kiln_op_call(r->host_ops, op, &r->host, args, NULL, &need, err));
    if (need > r->work_bytes || !r->work) {
        kiln_runner_trim(r);
        KILN_TRY(kiln_alloc_unset(&r->work, need, 1, "the workspace of an operation", err));
        r->work_bytes = need;
    }
    size_t have = r->work_bytes;
    return kiln_op_call(r->host_ops, op, &r->host, args, r->work, &have, err);
}

/* *fits: false where the operation needs more than the cap, or than the device has left by now. */
static kiln_status run_on_device(kiln_runner *r, kiln_op_id op, const void *args, bool *fits,
                                 kiln_error *err)
{
    layout l;
    KILN_TRY(lay_out_arrays(r, op, args, NULL, &l, err));
    if (l.bytes > kiln_runner_left(r) && r->spare) r->spare(r->spare_context, l.bytes);
    *fits = l.bytes <= kiln_runner_left(r);
    if (!*fits) return KILN_OK;
    kiln_status st = grow_runner_block(r, l.bytes, err);
    if (st == KILN_E_CAP) { /* others have taken memory since the cap was set */
        r->info.cap_bytes = r->taken_bytes + l.bytes - 1;
        *fits = false;
        return KILN_OK;
    }
    if (st == KILN_OK) st = run_in_block(r, op, args, &l, err);
    if (st == KILN_OK) r->info.n_device++;
    if (st == KILN_E_DEVICE) kiln_note(err, "%s", kiln_op_name(op));
    return st;
}

/* For an operation that runs on the host although its arrays are kept: they are brought back to the
 * device when it uses them again.
 */
static kiln_status fetch_arrays(kiln_runner *r, kiln_op_id op, const void *args, kiln_error *err)
{
    kiln_op_array arrays[KILN_OP_ARRAYS_MAX];
    const unsigned n = kiln_op_arrays(op, args, arrays);
    for (unsigned i = 0; i < n; i++) {
        kept *k =
            find_kept_bytes(r, array_of(args, &arrays[i]), arrays[i].elements * arrays[i].elem);
        if (!k) continue;
        KILN_TRY(kiln_runner_fetch(r, k->host, k->bytes, err));
        k->there = false;
    }
    return KILN_OK;
}

kiln_status kiln_runner_run(kiln_runner *r, kiln_op_id op, const void *args, kiln_error *err)
{
    bool fits = false;
    if (r->exec.device >= 0) {
        KILN_TRY(run_on_device(r, op, args, &fits, err));
        if (fits) return KILN_OK;
        r->info.n_host++;
        KILN_TRY(fetch_arrays(r, op, args, err));
    }
    return run_on_host(r, op, args, err);
}

kiln_status kiln_runner_need(kiln_runner *r, kiln_op_id op, const void *args, uint64_t *bytes,
                             kiln_error *err)
{
    layout l;
    *bytes = 0;
    if (r->exec.device < 0) return KILN_OK;
    KILN_TRY(lay_out_arrays(r, op, args, NULL, &l, err));
    *bytes = l.bytes;
    return KILN_OK;
}

/* ---- arrays that stay on the device ---------------------------------------------------------- */
uint64_t kiln_runner_left(const kiln_runner *r)
{
    if (r->exec.device < 0 || r->taken_bytes > r->info.cap_bytes) return 0;
    return r->info.cap_bytes - r->taken_bytes; /* the block gives way */
}

kiln_status kiln_runner_take(kiln_runner *r, uint64_t bytes, void **out, kiln_error *err)
{
    *out = NULL;
    if (bytes > kiln_runner_left(r)) return KILN_OK;
    if (r->info.block_bytes > kiln_runner_left(r) - bytes) drop_block(r);
    const kiln_status st = kiln_device_alloc(r->exec.device, bytes, out, err);
    if (st == KILN_E_CAP) { /* others have taken memory since the cap was set */
        *out = NULL;
        r->info.cap_bytes =
            r->taken_bytes + (bytes > r->info.block_bytes ? bytes - 1 : r->info.block_bytes);
        return KILN_OK;
    }
    KILN_TRY(st);
    r->taken_bytes += bytes;
    note_peak(r);
    return KILN_OK;
}

void kiln_runner_give(kiln_runner *r, void *p, uint64_t bytes)
{
    if (!p) return;
    kiln_device_free(r->exec.device, p);
    r->taken_bytes -= bytes;
}

void kiln_runner_on_need(kiln_runner *r, kiln_runner_spare_fn *spare, void *context)
{
    r->spare = spare;
    r->spare_context = context;
}

kiln_status kiln_runner_work(kiln_runner *r, kiln_op_id op, const void *args, size_t *bytes,
                             kiln_error *err)
{
    return kiln_op_call(r->ops, op, &r->exec, args, NULL, bytes, err);
}

kiln_status kiln_runner_launch(kiln_runner *r, kiln_op_id op, const void *args, void *work,
                               size_t work_bytes, uint64_t *violation, kiln_error *err)
{
    kiln_exec x = r->exec;
    x.violation = violation;
    const kiln_status st = kiln_op_call(r->ops, op, &x, args, work, &work_bytes, err);
    if (st == KILN_OK) r->info.n_device++;
    if (st == KILN_E_DEVICE) kiln_note(err, "%s", kiln_op_name(op));
    return st;
}

/* ---- arrays that are kept -------------------------------------------------------------------- */
kiln_status kiln_runner_keep(kiln_runner *r, void *host, uint64_t bytes, bool undefined,
                             kiln_error *err)
{
    void *device = NULL;
    kept *k;
    /* operations need room, too */
    if (r->exec.device < 0 || bytes == 0 || bytes > kiln_runner_left(r) / 2) return KILN_OK;
    KILN_TRY(kiln_runner_take(r, bytes, &device, err));
    if (!device) return KILN_OK;
    const kiln_status st = KILN_ALLOC(&k, 1, "arrays on a device", err);
    if (st != KILN_OK) {
        kiln_runner_give(r, device, bytes);
        return st;
    }
    *k =
        (kept){.next = r->kept, .host = host, .device = device, .bytes = bytes, .there = undefined};
    r->kept = k;
    return KILN_OK;
}

kiln_status kiln_runner_fetch(kiln_runner *r, void *host, uint64_t bytes, kiln_error *err)
{
    const kept *k = find_kept_bytes(r, host, bytes);
    if (!k || !k->there) return KILN_OK;
    const kiln_status st = kiln_device_copy_out(&r->exec, host, device_of(k, host), bytes, err);
    const kiln_status waited = kiln_device_wait(&r->exec, st == KILN_OK ? err : NULL);
    return st == KILN_OK ? waited : st;
}

void kiln_runner_drop(kiln_runner *r, const void *host)
{
    if (!r || !host) return;
    for (kept **at = &r->kept; *at; at = &(*at)->next) {
        kept *k = *at;
        if (k->host != host) continue;
        *at = k->next;
        kiln_runner_give(r, k->device, k->bytes);
        free(k);
        return;
    }
}

kiln_status kiln_runner_fill(kiln_runner *r, void *host, size_t pitch, unsigned char byte,
                             size_t width, uint64_t height, kiln_error *err)
{
    if (height == 0) return KILN_OK;
    kept *k = find_kept_bytes(r, host, (height - 1) * pitch + width);
    if (k && k->there)
        return kiln_device_fill_rows(&r->exec, device_of(k, host), pitch, byte, width, height, err);
    for (uint64_t i = 0; i < height; i++) memset((char *)host + i * pitch, byte, width);
    return KILN_OK;
}

/* ---- a runner -------------------------------------------------------------------------------- */
static kiln_status open_device(kiln_runner *r, const kiln_runner_options *o, kiln_error *err)
{
    KILN_TRY(kiln_device_open(o->device, &r->info.device, err));
    KILN_TRY(kiln_device_stream_new(o->device, false, &r->exec.stream, err));
    r->exec.device = o->device;
    KILN_TRY(kiln_device_stream_new(o->device, true, &r->exec.side, err));
    r->exec.sync = o->sync;
    r->ops = kiln_ops_cuda();
    r->info.cap_bytes = o->cap_bytes ? o->cap_bytes : r->info.device.free_bytes / 5 * 4;
    return KILN_OK;
}

kiln_status kiln_runner_new(const kiln_runner_options *o, kiln_runner **out, kiln_error *err)
{
    kiln_runner *r;
    *out = NULL;
    KILN_TRY(KILN_ALLOC(&r, 1, "a runner", err));
    r->host = r->exec =
        (kiln_exec){.device = KILN_RUNNER_CPU, .threads = o->threads ? o->threads : 1};
    r->host_ops = r->ops = kiln_ops_cpu();
    r->info.cap_bytes = UINT64_MAX;
    r->info.threads = r->host.threads;
    const kiln_status st = o->device == KILN_RUNNER_CPU ? KILN_OK : open_device(r, o, err);
    if (st == KILN_OK)
        *out = r;
    else
        kiln_runner_free(r);
    return st;
}

void kiln_runner_free(kiln_runner *r)
{
    if (!r) return;
    while (r->kept) kiln_runner_drop(r, r->kept->host);
    if (r->exec.device >= 0) {
        kiln_device_free(r->exec.device, r->block);
        kiln_device_stream_free(r->exec.device, r->exec.side);
        kiln_device_stream_free(r->exec.device, r->exec.stream);
    }
    free(r->work);
    free(r);
}

kiln_runner_info kiln_runner_get_info(const kiln_runner *r) { return r->info; }
const char *kiln_runner_name(const kiln_runner *r) { return r->ops->name; }
kiln_exec kiln_runner_exec(const kiln_runner *r) { return r->exec; }

void kiln_runner_set_threads(kiln_runner *r, unsigned threads)
{
    r->host.threads = threads ? threads : 1;
    r->info.threads = r->host.threads;
    if (r->exec.device < 0) r->exec.threads = r->host.threads;
}
