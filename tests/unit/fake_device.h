/* fake_device -- a CUDA device made of host memory, for tests of what runs operations on one:
 * runner, fit, draw. It takes the place of kernels/device.h and kiln_ops_cuda() in the program
 * whose one file includes it, in builds with CUDA and without, so no GPU is needed nor touched.
 *
 * It is as mean as a device may be: memory is counted, limited and full of poison with more poison
 * behind it; what is copied out arrives no sooner than the wait; an operation sees device memory
 * alone; and any step fails when the test says so. Operations compute by their CPU siblings, whose
 * bits a device has.
 */
#ifndef KILN_TESTS_FAKE_DEVICE_H
#define KILN_TESTS_FAKE_DEVICE_H

#include "base/memory.h"
#include "kernels/arrays.h"
#include "kernels/device.h"
#include "kernels/violation.h"
#include "kernels/runner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* FAKE_FULL: an allocation finds no memory although the device had some at the start. */
typedef enum {
    FAKE_NOTHING,
    FAKE_FULL,
    FAKE_COPY_IN,
    FAKE_LAUNCH,
    FAKE_COPY_OUT,
    FAKE_WAIT
} fake_step;

/* of the device; a test of worker processes, whose GPU is their first, says 0 */
#ifndef FAKE_NUMBER
#define FAKE_NUMBER 1
#endif
enum {
    FAKE_DEVICE = FAKE_NUMBER,
    FAKE_POISON = 0xA5,
    FAKE_EDGE = 256,
    FAKE_BLOCKS = 512,
    FAKE_COPIES = 32
};

typedef struct {
    unsigned char *at; /* NULL: free */
    size_t bytes;
} fake_block;

typedef struct {
    void *to;
    const void *from;
    size_t bytes;
} fake_copy;

static struct {
    /* what the test says */
    uint64_t capacity;  /* bytes of memory */
    fake_step fail;     /* this step fails, */
    unsigned fail_in;   /* at its fail_in-th time from now, once; 0: never */
    uint64_t violation; /* left by the next operation; 0: none */
    /* what it sees */
    uint64_t held, peak;
    unsigned streams, marks, launches, waits;
    uint64_t bytes_in, bytes_out; /* copied */
    unsigned in_flight;           /* copies and operations that nobody has waited for */
    /* what the device keeps */
    fake_block blocks[FAKE_BLOCKS];
    fake_copy copies[FAKE_COPIES]; /* out, due at the wait */
    unsigned n_copies;
} fake;

/* A new device; the old one must hold nothing any more. */
static inline void fake_reset(void)
{
    const uint64_t held = fake.held;
    const unsigned streams = fake.streams, marks = fake.marks;
    memset(&fake, 0, sizeof fake); /* also when that fails: it is told once */
    fake.capacity = UINT64_MAX;
    assert_int_equal(held, 0);
    assert_int_equal(streams, 0);
    assert_int_equal(marks, 0);
}

/* For before and after a group of tests. */
static inline int fake_nothing_is_left(void **state)
{
    (void)state;
    fake_reset();
    return 0;
}

static bool fake_fails(fake_step step)
{
    return fake.fail == step && fake.fail_in > 0 && --fake.fail_in == 0;
}

static kiln_status fake_step_done(fake_step step, const char *name, kiln_error *err)
{
    return fake_fails(step) ? kiln_fail(err, KILN_E_DEVICE, "the fake device fails in %s", name)
                            : KILN_OK;
}

/* The block that holds those bytes; a test that lets anything else be touched has failed. */
static const fake_block *fake_holds(const void *at, size_t bytes)
{
    for (unsigned i = 0; i < FAKE_BLOCKS; i++) {
        const fake_block *b = &fake.blocks[i];
        const uintptr_t from = (uintptr_t)b->at, to = (uintptr_t)at;
        if (b->at && to >= from && to - from <= b->bytes && bytes <= b->bytes - (to - from))
            return b;
    }
    fail_msg("%zu bytes at %p are not in device memory", bytes, at);
    return NULL;
}

/* ---- kernels/device.h ------------------------------------------------------------------------ */

uint32_t kiln_device_built_version(void) { return 13000; }
uint32_t kiln_device_built_arch(void) { return 90; }

/* A device's memory is none of this process's. Where a test measures that (FAKE_BALLAST), all of
 * the device's room is resident from when it is opened, as if the driver had it: what is allocated
 * on the device takes the place of so much ballast. */
static void fake_ballast(int64_t change)
{
#ifdef FAKE_BALLAST
    static char *at;
    static uint64_t bytes;
    if (!at) {
        at = mmap(NULL, fake.capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(at != MAP_FAILED);
        kiln_memory_use_large_pages(at, fake.capacity);
    }
    if (change < 0 && (uint64_t)-change <= bytes)
        assert_int_equal(madvise(at + (bytes + (uint64_t)change) / 4096 * 4096, (uint64_t)-change,
                                 MADV_DONTNEED),
                         0);
    if (change > 0 && bytes + (uint64_t)change <= fake.capacity)
        memset(at + bytes, 1, (size_t)change);
    bytes += (uint64_t)change;
#else
    (void)change;
#endif
}

kiln_status kiln_device_open(int device, kiln_device_info *out, kiln_error *err)
{
    static bool open;
    if (!open) fake_ballast(fake.capacity == UINT64_MAX ? 0 : (int64_t)fake.capacity);
    open = true;
    memset(out, 0, sizeof *out);
    if (device != FAKE_DEVICE)
        return kiln_fail(err, KILN_E_DEVICE, "there is no fake device %d", device);
    strcpy(out->name, "fake");
    out->total_bytes = out->free_bytes = fake.capacity;
    return KILN_OK;
}

kiln_status kiln_device_stream_new(int device, bool urgent, struct CUstream_st **out,
                                   kiln_error *err)
{
    (void)urgent;
    (void)err;
    assert_int_equal(device, FAKE_DEVICE);
    *out = malloc(1); /* so that one that is not freed shows */
    assert_non_null(*out);
    fake.streams++;
    return KILN_OK;
}

void kiln_device_stream_free(int device, struct CUstream_st *stream)
{
    assert_int_equal(device, FAKE_DEVICE);
    if (!stream) return;
    assert_int_equal(fake.in_flight, 0);
    fake.streams--;
    free(stream);
}

static void *fake_memory(size_t bytes)
{
    void *const p = aligned_alloc(FAKE_EDGE, bytes);
    assert_non_null(p);
    fake_ballast(-(int64_t)bytes);
    return p;
}

static void fake_memory_free(void *p, size_t bytes)
{
    free(p);
    fake_ballast((int64_t)bytes);
}

kiln_status kiln_device_alloc(int device, size_t bytes, void **out, kiln_error *err)
{
    fake_block *b = fake.blocks;
    assert_int_equal(device, FAKE_DEVICE);
    if (fake_fails(FAKE_FULL) || bytes > fake.capacity - fake.held)
        return kiln_fail(err, KILN_E_CAP, "the fake device has no %zu bytes", bytes);
    while (b->at) assert_true(++b < fake.blocks + FAKE_BLOCKS);
    b->at = fake_memory((bytes + 2 * FAKE_EDGE - 1) / FAKE_EDGE * FAKE_EDGE);
    memset(b->at, FAKE_POISON, bytes + FAKE_EDGE);
    b->bytes = bytes;
    fake.held += bytes;
    if (fake.held > fake.peak) fake.peak = fake.held;
    *out = b->at;
    return KILN_OK;
}

void kiln_device_free(int device, void *p)
{
    fake_block *b = fake.blocks;
    assert_int_equal(device, FAKE_DEVICE);
    if (!p) return;
    assert_int_equal(fake.in_flight, 0);
    while (b->at != p) assert_true(++b < fake.blocks + FAKE_BLOCKS);
    for (unsigned i = 0; i < FAKE_EDGE; i++) assert_int_equal(b->at[b->bytes + i], FAKE_POISON);
    fake.held -= b->bytes;
    fake_memory_free(b->at, (b->bytes + 2 * FAKE_EDGE - 1) / FAKE_EDGE * FAKE_EDGE);
    *b = (fake_block){NULL, 0};
}

kiln_status kiln_device_copy_in(const kiln_exec *x, void *device_to, const void *host_from,
                                size_t bytes, kiln_error *err)
{
    assert_int_equal(x->device, FAKE_DEVICE);
    if (bytes == 0) return KILN_OK;
    KILN_TRY(fake_step_done(FAKE_COPY_IN, "a copy in", err));
    (void)fake_holds(device_to, bytes);
    memcpy(device_to, host_from, bytes);
    fake.bytes_in += bytes;
    fake.in_flight++;
    return KILN_OK;
}

kiln_status kiln_device_copy_out(const kiln_exec *x, void *host_to, const void *device_from,
                                 size_t bytes, kiln_error *err)
{
    assert_int_equal(x->device, FAKE_DEVICE);
    if (bytes == 0) return KILN_OK;
    KILN_TRY(fake_step_done(FAKE_COPY_OUT, "a copy out", err));
    (void)fake_holds(device_from, bytes);
    assert_true(fake.n_copies < FAKE_COPIES);
    fake.bytes_out += bytes;
    fake.copies[fake.n_copies++] = (fake_copy){host_to, device_from, bytes};
    fake.in_flight++;
    return KILN_OK;
}

/* What is copied beside a stream is as due at the wait as what is copied on it. */
kiln_status kiln_device_copy_out_beside(const kiln_exec *x, struct CUevent_st *mark, void *host_to,
                                        const void *device_from, size_t bytes, kiln_error *err)
{
    assert_non_null(mark);
    return kiln_device_copy_out(x, host_to, device_from, bytes, err);
}

kiln_status kiln_device_mark_new(int device, struct CUevent_st **out, kiln_error *err)
{
    (void)err;
    assert_int_equal(device, FAKE_DEVICE);
    *out = malloc(1); /* as a stream */
    assert_non_null(*out);
    fake.marks++;
    return KILN_OK;
}

void kiln_device_mark_free(int device, struct CUevent_st *mark)
{
    if (!mark) return;
    assert_int_equal(device, FAKE_DEVICE);
    fake.marks--;
    free(mark);
}

kiln_status kiln_device_mark(const kiln_exec *x, struct CUevent_st *mark, kiln_error *err)
{
    (void)err;
    assert_int_equal(x->device, FAKE_DEVICE);
    assert_non_null(mark);
    return KILN_OK;
}

kiln_status kiln_device_fill_rows(const kiln_exec *x, void *device_to, size_t pitch,
                                  unsigned char byte, size_t width, size_t height, kiln_error *err)
{
    for (size_t i = 0; i < height; i++)
        KILN_TRY(kiln_device_fill(x, (char *)device_to + i * pitch, byte, width, err));
    return KILN_OK;
}

kiln_status kiln_device_fill(const kiln_exec *x, void *device_to, unsigned char byte, size_t bytes,
                             kiln_error *err)
{
    (void)err;
    assert_int_equal(x->device, FAKE_DEVICE);
    if (bytes == 0) return KILN_OK;
    (void)fake_holds(device_to, bytes);
    memset(device_to, byte, bytes);
    fake.in_flight++;
    return KILN_OK;
}

kiln_status kiln_device_wait(const kiln_exec *x, kiln_error *err)
{
    const unsigned due = fake.n_copies;
    fake.waits++;
    assert_int_equal(x->device, FAKE_DEVICE);
    fake.n_copies = fake.in_flight = 0;
    KILN_TRY(fake_step_done(FAKE_WAIT, "waiting", err));
    for (unsigned i = 0; i < due; i++)
        memcpy(fake.copies[i].to, fake.copies[i].from, fake.copies[i].bytes);
    return KILN_OK;
}

const char *kiln_device_built_archs(void) { return "90"; }
bool kiln_device_pin(int device, void *p, size_t bytes)
{
    (void)p;
    assert_int_equal(device, FAKE_DEVICE);
    return bytes > 0;
}
void kiln_device_unpin(int device, void *p)
{
    (void)p;
    assert_int_equal(device, FAKE_DEVICE);
}
bool kiln_device_is_lost(int device) { return device != FAKE_DEVICE; }
kiln_status kiln_device_provoke(const kiln_exec *x, kiln_error *err)
{
    (void)x;
    return kiln_fail(err, KILN_E_DEVICE, "the fake device is provoked");
}

void kiln_range_push(const char *name) { (void)name; }
void kiln_range_pop(void) {}

/* ---- kiln_ops_cuda() ------------------------------------------------------------------------- */

static kiln_status fake_operation(kiln_op_id op, const kiln_exec *x, const void *args, void *work,
                                  size_t *work_bytes, kiln_error *err)
{
    const kiln_exec cpu = {.device = -1, .threads = 1};
    kiln_op_array arrays[KILN_OP_ARRAYS_MAX];
    const unsigned n = kiln_op_arrays(op, args, arrays);
    kiln_raster_args exact;
    assert_int_equal(x->device, FAKE_DEVICE);
    if (op == KILN_OP_raster) { /* fast pictures are drawn here too, though exactly */
        exact = *(const kiln_raster_args *)args;
        exact.fast = false;
        args = &exact;
    }
    if (!work) return kiln_op_call(kiln_ops_cpu(), op, &cpu, args, NULL, work_bytes, err);
    for (unsigned i = 0; i < n; i++) {
        void *at;
        memcpy(&at, (const char *)args + arrays[i].field, sizeof at);
        (void)fake_holds(at, arrays[i].elements * arrays[i].elem);
    }
    (void)fake_holds(work, *work_bytes);
    (void)fake_holds(x->violation, sizeof *x->violation);
    KILN_TRY(fake_step_done(FAKE_LAUNCH, "a launch", err));
    fake.launches++;
    fake.in_flight++;
    if (fake.violation != 0) *x->violation = fake.violation;
    fake.violation = 0;
    return kiln_op_call(kiln_ops_cpu(), op, &cpu, args, work, work_bytes, err);
}

#define OP(op)                                                                              \
    static kiln_status fake_##op(const kiln_exec *x, const kiln_##op##_args *a, void *work, \
                                 size_t *work_bytes, kiln_error *err)                       \
    {                                                                                       \
        return fake_operation(KILN_OP_##op, x, a, work, work_bytes, err);                   \
    }
KILN_OP_MAP(OP)
#undef OP

const kiln_ops *kiln_ops_cuda(void)
{
    static const kiln_ops ops = {.name = "fake",
#define OP(op) .op = fake_##op,
                                 KILN_OP_MAP(OP)
#undef OP
    };
    return &ops;
}

/* cap_bytes 0: as much as the device says it has. */
static inline kiln_runner *fake_runner(int device, uint64_t cap_bytes)
{
    const kiln_runner_options as = {.device = device, .threads = 2, .cap_bytes = cap_bytes};
    kiln_runner *r = NULL;
    kiln_error err = {0};
    if (kiln_runner_new(&as, &r, &err) != KILN_OK) fail_msg("%s", err.msg);
    return r;
}

#endif
