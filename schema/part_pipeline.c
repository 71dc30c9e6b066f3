/* part_pipeline -- the threads of a gather.
 *
 * Problem. Unpacking and hashing takes twice the processor time that storing takes, and reading
 * some more; one after the other they keep the disk waiting. Constraint: the manifest is used by
 * the caller's thread alone, the part by one thread at a time.
 *
 * Every thread looks for work under one lock, in this order: the caller stores batches that are
 * read and checked; whoever comes first reads the next batch if a place is free; else blobs are
 * checked. With enough threads the caller does nothing but store. A thread without work waits for
 * the next change. Order and contents of what is stored do not depend on the threads.
 *
 * A transaction costs two syncs, so it has several batches; and the first of a part is not to wait
 * long, so batches are small, the first the smallest. The caller begins a transaction with the
 * first batch and waits for the others within it. They stay until it has committed, because
 * kiln_bulk_store may want them once more.
 *
 * Memory. Packed bytes: KILN_PART_BATCHES batches, whose memory is used again; fewer are read ahead
 * where blobs are larger than a batch. Unpacked bytes: pieces of scratch that are used again too;
 * together they never exceed the largest blob, twice. A thread that finds no scratch leaves the
 * check to one that has some. Taking fresh memory for each blob cost a third of a gather's time in
 * page faults. */
#include "schema/part_pipeline.h"

#include "base/memory.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    /* one stores, one reads, four check what is stored meanwhile; more only take memory */
    THREADS_MOST = 6,
    HELPS_BELOW = 4,        /* threads: with fewer the caller checks, too */
    RUN_BYTES = 1 << 20,    /* raw bytes that a thread takes to check at a time */
    SCRATCH_STEP = 1 << 20, /* sizes of scratch are multiples of it */
    FIRST_BYTES = 2 << 20,  /* of the first batch; the others double up to KILN_PART_BATCH_BYTES */
    GROUP_BYTES = KILN_PART_GROUP * KILN_PART_BATCH_BYTES, /* a group that has so many is full */
    /* of batches that are not empty; with more no other is read */
    AHEAD_BYTES = 2 * GROUP_BYTES,
};

typedef struct {
    void *raw, *shuffled; /* room bytes each */
    uint64_t capacity;
    bool taken;
} scratch;

struct kiln_part_group {
    const kiln_part_stages *stages;
    unsigned threads;
    bool checks, reads; /* what the caller does beside storing */
    /* guards all below; not the contents of a batch, which belong to whom it is given */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* batch number k is in place k % KILN_PART_BATCHES */
    kiln_part_batch batches[KILN_PART_BATCHES];
    uint64_t n_read, n_stored; /* batches */
    /* batches behind those stored that `store` has been given */
    uint32_t n_group;
    bool reading, ended, stop;
    kiln_status status; /* the first failure */
    kiln_error why;
    scratch scratches[THREADS_MOST];
    uint64_t scratch_bytes; /* sum of their rooms, at most KILN_BLOB_MAX */
};
typedef kiln_part_group pipeline;

static kiln_part_batch *batch_of(pipeline *p, uint64_t k)
{
    return &p->batches[k % KILN_PART_BATCHES];
}

static void fail(pipeline *p, kiln_status st, const kiln_error *why)
{
    if (p->status == KILN_OK) {
        p->status = st;
        p->why = *why;
    }
    p->stop = true;
    (void)pthread_cond_broadcast(&p->changed);
}

/* ---- batches --------------------------------------------------------------------------------- */
static void empty(kiln_part_batch *b)
{
    for (uint32_t i = 0; i < b->n_units; i++) kiln_unit_result_release(&b->units[i].result);
    b->used = b->row_bytes = 0;
    b->n_units = b->n_blobs = b->next = b->checked = 0;
    b->is_full = false;
    if (b->capacity <= KILN_PART_BATCH_BYTES) return;
    free(b->data);
    b->data = NULL;
    b->capacity = 0;
}

static void release_batch(kiln_part_batch *b)
{
    empty(b);
    free(b->data);
    free(b->blobs);
    free(b->units);
}

bool kiln_part_batch_fits(const kiln_part_batch *b, size_t packed_bytes)
{
    if (b->n_blobs == KILN_PART_BATCH_BLOBS) return false;
    return b->used == 0 || (b->used < b->limit && packed_bytes <= b->limit - b->used);
}

/* Large arrays that are used again and again, on large pages where the system has them: one page
 * fault in place of 512. */
static kiln_status take_pages(void **out, size_t bytes, kiln_error *err)
{
    enum { LARGE_PAGE = 2 << 20 };
    *out = NULL;
    if (bytes < LARGE_PAGE) return kiln_alloc_unset(out, bytes, 1, "blobs", err);
    if (posix_memalign(out, LARGE_PAGE, bytes) != 0) {
        *out = NULL;
        return kiln_fail(err, KILN_E_NOMEM, "out of memory for %zu bytes of blobs", bytes);
    }
    (void)madvise(*out, bytes, MADV_HUGEPAGE); /* a hint */
    return KILN_OK;
}

/* A batch that is not empty has room for all that fits. */
static kiln_status reserve_packed(kiln_part_batch *b, size_t bytes, kiln_error *err)
{
    if (bytes <= b->capacity) return KILN_OK;
    free(b->data);
    b->data = NULL;
    b->capacity = bytes < KILN_PART_BATCH_BYTES ? KILN_PART_BATCH_BYTES : bytes;
    const kiln_status st = take_pages((void **)&b->data, b->capacity, err);
    if (st != KILN_OK) b->capacity = 0;
    return st;
}

kiln_status kiln_part_batch_blob(kiln_part_batch *b, const kiln_blob *blob, unsigned char **packed,
                                 kiln_error *err)
{
    KILN_TRY(reserve_packed(b, b->used + blob->packed_bytes, err));
    b->blobs[b->n_blobs++] = (kiln_part_blob){.blob = *blob, .at = b->used};
    *packed = b->data + b->used;
    b->used += blob->packed_bytes;
    return KILN_OK;
}

void kiln_part_batch_take_back(kiln_part_batch *b) { b->used = b->blobs[--b->n_blobs].at; }

/* ---- scratch --------------------------------------------------------------------------------- */
static void drop_scratch(pipeline *p, scratch *s)
{
    p->scratch_bytes -= s->capacity;
    free(s->raw);
    free(s->shuffled);
    *s = (scratch){0};
}

/* A piece for a blob of so many bytes, or NULL where others have too much of it. The largest blob
 * fits when no piece is taken, so somebody always goes on. */
static scratch *take_scratch(pipeline *p, uint64_t bytes)
{
    scratch *unused = NULL;
    bool alone = true;
    const uint64_t capacity =
        bytes ? (bytes + SCRATCH_STEP - 1) / SCRATCH_STEP * SCRATCH_STEP : SCRATCH_STEP;
    for (unsigned i = 0; i < p->threads; i++) {
        scratch *const s = &p->scratches[i];
        alone = alone && !s->taken;
        if (!s->taken && s->capacity >= capacity) return s->taken = true, s;
    }
    for (unsigned i = 0; i < p->threads; i++) { /* those that are too small make way */
        scratch *const s = &p->scratches[i];
        if (s->taken) continue;
        if (s->capacity && p->scratch_bytes + capacity > KILN_BLOB_MAX) drop_scratch(p, s);
        if (!unused || (unused->capacity && !s->capacity)) unused = s;
    }
    if (!unused || p->scratch_bytes - unused->capacity + capacity > KILN_BLOB_MAX) return NULL;
    if (unused->capacity) drop_scratch(p, unused);
    unused->capacity = capacity;
    p->scratch_bytes += capacity;
    kiln_error why = {0};
    kiln_status st = take_pages(&unused->raw, capacity, &why);
    if (st == KILN_OK) st = take_pages(&unused->shuffled, capacity, &why);
    if (st == KILN_OK) return unused->taken = true, unused;
    drop_scratch(p, unused);
    if (alone) fail(p, st, &why); /* else the others do it */
    return NULL;
}

/* ---- work: each is called and returns with the lock held ------------------------------------- */
static bool is_ready(pipeline *p, uint64_t k)
{
    const kiln_part_batch *b = batch_of(p, k);
    return k < p->n_read && b->checked == b->n_blobs;
}

static void store_group(pipeline *p)
{
    kiln_error why = {0};
    (void)pthread_mutex_unlock(&p->lock);
    const kiln_status st = p->stages->store(p->stages->context, p, &why);
    (void)pthread_mutex_lock(&p->lock);
    for (; p->n_group > 0; p->n_group--) empty(batch_of(p, p->n_stored++));
    if (st != KILN_OK) fail(p, st, &why);
    (void)pthread_cond_broadcast(&p->changed);
}

static kiln_status read_batch(pipeline *p, kiln_part_batch *b, kiln_error *err)
{
    enum { DOUBLINGS = 3 };
    b->limit = p->n_read < DOUBLINGS ? (size_t)FIRST_BYTES << p->n_read : KILN_PART_BATCH_BYTES;
    if (!b->blobs)
        KILN_TRY(KILN_ALLOC_UNSET(&b->blobs, KILN_PART_BATCH_BLOBS, "a batch of blobs", err));
    if (!b->units)
        KILN_TRY(KILN_ALLOC_UNSET(&b->units, KILN_PART_BATCH_UNITS, "a batch of units", err));
    const kiln_status st = p->stages->read(p->stages->context, b, err);
    for (uint32_t i = 0; i < b->n_blobs; i++) b->blobs[i].blob.packed = b->data + b->blobs[i].at;
    b->first_damaged = b->n_blobs;
    return st;
}

static void read_one_batch(pipeline *p)
{
    kiln_error why = {0};
    kiln_part_batch *b = batch_of(p, p->n_read);
    p->reading = true;
    (void)pthread_mutex_unlock(&p->lock);
    const kiln_status st = read_batch(p, b, &why);
    (void)pthread_mutex_lock(&p->lock);
    p->reading = false;
    p->ended = b->n_units == 0 && b->n_blobs == 0;
    p->n_read += !p->ended;
    if (st != KILN_OK) fail(p, st, &why);
    (void)pthread_cond_broadcast(&p->changed);
}

static void check_batch_blobs(pipeline *p, kiln_part_batch *b, uint32_t from, uint32_t end,
                              scratch *s)
{
    kiln_error why = {0}, damage = {0};
    uint32_t first = end;
    b->next = end;
    (void)pthread_mutex_unlock(&p->lock);
    for (uint32_t i = from; i < end; i++) {
        b->blobs[i].damaged =
            kiln_blob_unpack_with(&b->blobs[i].blob, s->shuffled, s->raw, &why) != KILN_OK;
        if (!b->blobs[i].damaged || first < end) continue;
        first = i;
        damage = why;
    }
    (void)pthread_mutex_lock(&p->lock);
    s->taken = false;
    if (first < end && first < b->first_damaged) {
        b->first_damaged = first;
        b->damage = damage;
    }
    b->checked += end - from;
    (void)pthread_cond_broadcast(&p->changed);
}

/* Checks some of the first batch that has blobs left. False: there are none, or no scratch. */
static bool check_some(pipeline *p)
{
    uint64_t k = p->n_stored, raw = 0, largest = 0;
    while (k < p->n_read && batch_of(p, k)->next == batch_of(p, k)->n_blobs) k++;
    if (k == p->n_read) return false;
    kiln_part_batch *b = batch_of(p, k);
    uint32_t end = b->next;
    for (; end < b->n_blobs && raw < RUN_BYTES; end++) {
        const uint64_t bytes = b->blobs[end].blob.raw_bytes;
        raw += bytes;
        if (bytes > largest) largest = bytes;
    }
    scratch *s = take_scratch(p, largest);
    if (s) check_batch_blobs(p, b, b->next, end, s);
    return s != NULL;
}

static bool read_next(pipeline *p)
{
    uint64_t ahead = 0;
    if (p->reading || p->ended || p->n_read - p->n_stored == KILN_PART_BATCHES) return false;
    for (uint64_t k = p->n_stored; k < p->n_read; k++) ahead += batch_of(p, k)->capacity;
    if (ahead > AHEAD_BYTES) return false; /* the caller waits for none: its group is full then */
    read_one_batch(p);
    return true;
}

static bool is_done(const pipeline *p) { return p->stop || (p->ended && p->n_stored == p->n_read); }

static void *help_pipeline(void *context)
{
    pipeline *p = context;
    (void)pthread_mutex_lock(&p->lock);
    while (!is_done(p))
        if (!read_next(p) && !check_some(p) && !is_done(p))
            (void)pthread_cond_wait(&p->changed, &p->lock);
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* The caller's work beside storing; false: there is none for it. */
static bool lend_a_hand(pipeline *p)
{
    return (p->checks && check_some(p)) || (p->reads && read_next(p));
}

kiln_part_batch *kiln_part_group_batch(kiln_part_group *p, uint32_t i)
{
    kiln_part_batch *b = NULL;
    uint64_t bytes = 0;
    /* of the caller's thread alone */
    const uint64_t k = p->n_stored + i;
    /* which nobody else changes now */
    for (uint32_t j = 0; j < i; j++) bytes += batch_of(p, p->n_stored + j)->used;
    if (i == KILN_PART_GROUP || bytes >= GROUP_BYTES) return NULL;
    (void)pthread_mutex_lock(&p->lock);
    while (!is_ready(p, k) && !p->stop && !(p->ended && k >= p->n_read))
        if (!lend_a_hand(p) && !is_ready(p, k) && !p->stop && !(p->ended && k >= p->n_read))
            (void)pthread_cond_wait(&p->changed, &p->lock);
    if (is_ready(p, k)) b = batch_of(p, k);
    if (b && p->n_group <= i) p->n_group = i + 1;
    (void)pthread_mutex_unlock(&p->lock);
    return b;
}

static void lead(pipeline *p)
{
    (void)pthread_mutex_lock(&p->lock);
    while (!is_done(p)) {
        if (is_ready(p, p->n_stored))
            store_group(p);
        else if (!lend_a_hand(p) && !is_done(p) && !is_ready(p, p->n_stored))
            (void)pthread_cond_wait(&p->changed, &p->lock);
    }
    (void)pthread_mutex_unlock(&p->lock);
}

/* The threads block all signals, so that they reach the caller's. */
static unsigned start_threads(pipeline *p, pthread_t *threads, unsigned n)
{
    sigset_t all, before;
    unsigned started = 0;
    (void)sigfillset(&all);
    if (n == 0 || pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return 0;
    while (started < n && pthread_create(&threads[started], NULL, help_pipeline, p) == 0) started++;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

void kiln_part_memory_free(kiln_part_memory *p)
{
    if (!p) return;
    for (unsigned i = 0; i < THREADS_MOST; i++) drop_scratch(p, &p->scratches[i]);
    for (unsigned i = 0; i < KILN_PART_BATCHES; i++) release_batch(&p->batches[i]);
    free(p);
}

/* All but the memory is as at the start of a gather. */
static void clear(pipeline *p)
{
    for (unsigned i = 0; i < KILN_PART_BATCHES; i++) empty(&p->batches[i]);
    p->n_read = p->n_stored = 0;
    p->n_group = 0;
    p->reading = p->ended = p->stop = false;
    p->status = KILN_OK;
}

static kiln_status open_pipeline(const kiln_part_stages *s, pipeline **out, kiln_error *err)
{
    *out = s->memory ? *s->memory : NULL;
    if (!*out) KILN_TRY(KILN_ALLOC(out, 1, "a gather", err));
    if (s->memory) *s->memory = NULL;
    (*out)->stages = s;
    (*out)->threads = s->threads < 1 ? 1 : s->threads < THREADS_MOST ? s->threads : THREADS_MOST;
    return KILN_OK;
}

static void close_pipeline(const kiln_part_stages *s, pipeline *p)
{
    clear(p);
    if (s->memory)
        *s->memory = p;
    else
        kiln_part_memory_free(p);
}

kiln_status kiln_part_pipeline(const kiln_part_stages *s, kiln_error *err)
{
    pipeline *p;
    pthread_t threads[THREADS_MOST];
    KILN_TRY(open_pipeline(s, &p, err));
    (void)pthread_mutex_init(&p->lock, NULL); /* neither can fail: default attributes */
    (void)pthread_cond_init(&p->changed, NULL);
    const unsigned n = start_threads(p, threads, p->threads - 1);
    p->checks = n + 1 < HELPS_BELOW; /* the other threads do not look at these */
    p->reads = n == 0;
    lead(p);
    /* cannot fail: it was created, and is joined once */
    for (unsigned i = 0; i < n; i++) (void)pthread_join(threads[i], NULL);
    const kiln_status st = p->status;
    if (st != KILN_OK && err) *err = p->why;
    (void)pthread_cond_destroy(&p->changed);
    (void)pthread_mutex_destroy(&p->lock);
    close_pipeline(s, p);
    return st;
}
