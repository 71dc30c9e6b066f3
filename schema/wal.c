/* wal -- appends a commit to SQLite's write-ahead log.
 *
 *   log    header of 32 bytes, then frames: 24 bytes (page, size of the database after a commit or
 *          0, salt, checksum), the page
 *   index  regions of 32 KiB in shared memory. The first begins with two copies of kiln_wal_header
 *          and what checkpoints and readers say of themselves; then each region has the page of
 *          each frame, and a hash table from pages to frames.
 *
 * A frame counts if its salt is the header's and its checksum, which is that of the whole log up to
 * it, is right. So a commit whose frames are not all there does not exist, in whatever order a disk
 * has written them.
 *
 * The order of a commit. Problem: the frames are complete in the file before the index says so. A
 * crash between these two instants leaves a commit that a recovery of the log finds, but that other
 * live processes do not see. SQLite can afford that, because its commits have all of their pages in
 * the log. Ours have pages in the database file, behind its end as the others see it: a checkpoint
 * by one of them would cut them off, and a later recovery would find the commit without them. So:
 *   1. all frames are written, but zeros in place of the first one's 24 bytes: nothing of it
 *      counts;
 *   2. the second copy of the index's header is written. The copies differ now: if this process
 *      dies or fails, whoever looks next takes the writer's lock and recovers the index from the
 *      log, before it reads or writes anything or begins a checkpoint;
 *   3. the 24 bytes are written: the commit exists;
 *   4. the first copy is written: readers see the commit. From 2 to 4 are some microseconds; who
 *      looks meanwhile looks again;
 *   5. the log is synced. The writer is told that the commit is done only after this. As with
 *      SQLite's synchronous = NORMAL, others may see for some milliseconds what a power failure
 *      would take back. */
#include "schema/wal.h"

#include "base/endian.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
    REGION_BYTES = 32768,
    FRAMES_FIRST = 4062, /* of the first region, whose header takes the room of 34 */
    FRAMES_EACH = 4096,
    SLOTS = 8192,
    HASH_AT = 4 * FRAMES_EACH, /* in every region */
    INFO_AT = 2 * sizeof(kiln_wal_header),
    FIRST_PAGES_AT = 136,
    LOG_HEADER = 32,
    FRAME_HEADER = 24,
    LOCK_WRITE = 0, /* and the checkpoint's behind it */
    /* of readers that use the database file alone; the others of readers behind it */
    LOCK_READ = 3,
    N_READ = 5,
    INDEX_VERSION = 3007000,
};
#define LOG_MAGIC UINT32_C(0x377f0682) /* checksums of little-endian words */
#define NO_MARK UINT32_C(0xffffffff)

/* What is behind the two headers in the first region. */
typedef struct {
    uint32_t backfilled;
    uint32_t marks[N_READ];
    uint8_t locks[8];
    uint32_t attempted, unused;
} info;
_Static_assert(sizeof(kiln_wal_header) == 48 && INFO_AT + sizeof(info) == FIRST_PAGES_AT,
               "the index is SQLite's");
_Static_assert(FIRST_PAGES_AT + 4 * FRAMES_FIRST == HASH_AT && HASH_AT + 2 * SLOTS == REGION_BYTES,
               "the index is SQLite's");

/* ---- sums ------------------------------------------------------------------------------------ */
/* n: a multiple of 8. Words of the machine, which is little-endian (base/endian.h). */
static void add_to_sum(uint32_t sum[2], const void *data, size_t n)
{
    const unsigned char *p = data;
    uint32_t a = sum[0], b = sum[1], word[2];
    for (size_t i = 0; i < n; i += sizeof word) {
        memcpy(word, p + i, sizeof word);
        a += word[0] + b;
        b += word[1] + a;
    }
    sum[0] = a, sum[1] = b;
}

static sqlite3_int64 frame_at(uint32_t frame)
{
    return LOG_HEADER + (sqlite3_int64)(frame - 1) * (FRAME_HEADER + KILN_WAL_PAGE);
}

/* ---- the index ------------------------------------------------------------------------------- */
static uint32_t region_of(uint32_t frame)
{
    return (frame + FRAMES_EACH - FRAMES_FIRST - 1) / FRAMES_EACH;
}
static uint32_t frames_before(uint32_t region)
{
    return region ? FRAMES_FIRST + (region - 1) * FRAMES_EACH : 0;
}

static volatile uint32_t *pages_of(const kiln_wal *w, uint32_t region)
{
    return (volatile uint32_t *)(w->regions[region] + (region ? 0 : FIRST_PAGES_AT));
}

static volatile uint16_t *slots_of(const kiln_wal *w, uint32_t region)
{
    return (volatile uint16_t *)(w->regions[region] + HASH_AT);
}
static volatile info *info_of(const kiln_wal *w)
{
    return (volatile info *)(w->regions[0] + INFO_AT);
}
static void barrier(const kiln_wal *w) { w->db->pMethods->xShmBarrier(w->db); }
static uint32_t first_slot(uint32_t page) { return (page * 383) & (SLOTS - 1); }
static uint32_t next_slot(uint32_t slot) { return (slot + 1) & (SLOTS - 1); }

static int map_regions(kiln_wal *w, uint32_t n)
{
    if (n <= w->n_regions) return SQLITE_OK;
    volatile unsigned char **more = realloc(w->regions, n * sizeof *more);
    if (!more) return SQLITE_NOMEM;
    w->regions = more;
    while (w->n_regions < n) {
        volatile void *at = NULL;
        const int rc = w->db->pMethods->xShmMap(w->db, (int)w->n_regions, REGION_BYTES, 1, &at);
        if (rc != SQLITE_OK) return rc;
        if (!at) return SQLITE_PROTOCOL;
        w->regions[w->n_regions++] = at;
    }
    return SQLITE_OK;
}

static void read_copy(const kiln_wal *w, unsigned copy, kiln_wal_header *out)
{
    memcpy(out, (const void *)(w->regions[0] + copy * sizeof *out), sizeof *out);
}

static void write_copy(const kiln_wal *w, unsigned copy, const kiln_wal_header *h)
{
    memcpy((void *)(w->regions[0] + copy * sizeof *h), h, sizeof *h);
}

static void seal(kiln_wal_header *h)
{
    h->version = INDEX_VERSION;
    h->is_init = 1;
    h->page_size = 1;
    h->big_endian_sums = 0;
    h->sum[0] = h->sum[1] = 0;
    add_to_sum(h->sum, h, offsetof(kiln_wal_header, sum));
}

static int read_wal_header(kiln_wal *w)
{
    kiln_wal_header second;
    uint32_t sum[2] = {0, 0};
    read_copy(w, 0, &w->header);
    barrier(w);
    read_copy(w, 1, &second);
    const kiln_wal_header *h = &w->header;
    if (memcmp(h, &second, sizeof second) != 0 || !h->is_init || h->version != INDEX_VERSION)
        return SQLITE_PROTOCOL;
    add_to_sum(sum, h, offsetof(kiln_wal_header, sum));
    if (memcmp(sum, h->sum, sizeof sum) != 0) return SQLITE_PROTOCOL;
    if (h->last_frame && (h->page_size != 1 || h->big_endian_sums)) return SQLITE_PROTOCOL;
    return map_regions(w, region_of(h->last_frame ? h->last_frame : 1) + 1);
}

/* Forgets the frames behind last_frame in its region: a writer that was interrupted, or failed, has
 * entered them. */
static void forget_later(const kiln_wal *w)
{
    const uint32_t last = w->header.last_frame;
    if (last == 0) return; /* the first entry of a region clears it */
    const uint32_t region = region_of(last), limit = last - frames_before(region);
    const uint32_t most = region ? FRAMES_EACH : FRAMES_FIRST;
    volatile uint16_t *slots = slots_of(w, region);
    volatile uint32_t *pages = pages_of(w, region);
    for (uint32_t i = 0; i < SLOTS; i++)
        if (slots[i] > limit) slots[i] = 0;
    for (uint32_t i = limit; i < most; i++) pages[i] = 0;
}

static int enter(kiln_wal *w, uint32_t frame, uint32_t page)
{
    const uint32_t region = region_of(frame), i = frame - frames_before(region); /* i: from 1 */
    volatile uint16_t *slots = slots_of(w, region);
    volatile uint32_t *pages = pages_of(w, region);
    if (i == 1)
        memset(
            (void *)pages, 0,
            (size_t)((volatile unsigned char *)(slots + SLOTS) - (volatile unsigned char *)pages));
    if (pages[i - 1]) forget_later(w);
    uint32_t slot = first_slot(page);
    for (uint32_t looked = 0; slots[slot]; slot = next_slot(slot))
        if (looked++ == i) return SQLITE_CORRUPT; /* more entries than frames */
    pages[i - 1] = page;
    /* readers of older states search this table meanwhile */
    __atomic_store_n(&slots[slot], (uint16_t)i, __ATOMIC_RELEASE);
    return SQLITE_OK;
}

uint32_t kiln_wal_find(const kiln_wal *w, uint32_t page, int *rc)
{
    const uint32_t last = w->header.last_frame;
    *rc = SQLITE_OK;
    if (last == 0) return 0;
    for (uint32_t region = region_of(last) + 1; region-- > 0;) {
        const uint32_t before = frames_before(region);
        volatile const uint16_t *slots = slots_of(w, region);
        volatile const uint32_t *pages = pages_of(w, region);
        uint32_t found = 0, looked = 0;
        for (uint32_t slot = first_slot(page); slots[slot]; slot = next_slot(slot)) {
            const uint32_t i = slots[slot];
            if (i <= FRAMES_EACH && before + i <= last && pages[i - 1] == page &&
                before + i > found)
                found = before + i;
            if (looked++ == SLOTS) return *rc = SQLITE_CORRUPT, 0;
        }
        if (found) return found;
    }
    return 0;
}

int kiln_wal_read(kiln_wal *w, uint32_t frame, void *out, int n, int offset)
{
    return w->log->pMethods->xRead(w->log, out, n, frame_at(frame) + FRAME_HEADER + offset);
}

/* ---- locks ----------------------------------------------------------------------------------- */
static int take_wal_locks(const kiln_wal *w, int from, int n)
{
    return w->db->pMethods->xShmLock(w->db, from, n, SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE);
}

static void give_wal_locks(const kiln_wal *w, int from, int n)
{
    /* cannot fail in a way that helps */
    (void)w->db->pMethods->xShmLock(w->db, from, n, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE);
}

int kiln_wal_lock(kiln_wal *w)
{
    int rc = take_wal_locks(w, LOCK_WRITE, 2);
    if (rc != SQLITE_OK) return rc;
    w->locked = true;
    rc = read_wal_header(w);
    if (rc != SQLITE_OK) kiln_wal_unlock(w);
    return rc;
}

void kiln_wal_unlock(kiln_wal *w)
{
    if (w->locked) give_wal_locks(w, LOCK_WRITE, 2);
    w->locked = false;
}

bool kiln_wal_is_backfilled(const kiln_wal *w)
{
    /* A writer that was killed as it began the log anew may have left the number of the log
     * before. */
    return w->header.last_frame == 0 ||
           __atomic_load_n(&info_of(w)->backfilled, __ATOMIC_ACQUIRE) == w->header.last_frame;
}

int kiln_wal_has_no_readers(kiln_wal *w, bool *none)
{
    const int rc = take_wal_locks(w, LOCK_READ, N_READ);
    *none = rc == SQLITE_OK;
    if (*none) give_wal_locks(w, LOCK_READ, N_READ);
    return rc == SQLITE_BUSY ? SQLITE_OK : rc;
}

/* ---- the log --------------------------------------------------------------------------------- */
static int log_write(kiln_wal *w, const void *data, int n, sqlite3_int64 at)
{
    return w->log->pMethods->xWrite(w->log, data, n, at);
}

static int log_sync(kiln_wal *w) { return w->log->pMethods->xSync(w->log, SQLITE_SYNC_NORMAL); }

static int log_write_header(kiln_wal *w)
{
    unsigned char head[LOG_HEADER];
    uint32_t sum[2] = {0, 0};
    /* an empty log reads as zeros */
    const int rc = w->log->pMethods->xRead(w->log, head, sizeof head, 0);
    if (rc != SQLITE_OK && rc != SQLITE_IOERR_SHORT_READ) return rc;
    const uint32_t restarts = kiln_get_u32_be(head + 12) + 1;
    kiln_put_u32_be(head, LOG_MAGIC);
    kiln_put_u32_be(head + 4, INDEX_VERSION);
    kiln_put_u32_be(head + 8, KILN_WAL_PAGE);
    kiln_put_u32_be(head + 12, restarts);
    memcpy(head + 16, w->header.salt, sizeof w->header.salt);
    add_to_sum(sum, head, 24);
    kiln_put_u32_be(head + 24, sum[0]), kiln_put_u32_be(head + 28, sum[1]);
    memcpy(w->header.frame_sum, sum, sizeof sum);
    return log_write(w, head, sizeof head, 0);
}

/* Begins the log anew, with another salt, as SQLite's writers do: all of it is in the database
 * file, and no reader uses it. *done false: a reader does. The header is synced before any frame
 * may follow, or old frames would count behind it. */
static int restart(kiln_wal *w, bool *done)
{
    *done = false;
    int rc = take_wal_locks(w, LOCK_READ + 1, N_READ - 1);
    if (rc == SQLITE_BUSY) return SQLITE_OK;
    if (rc != SQLITE_OK) return rc;
    kiln_wal_header *h = &w->header;
    volatile info *i = info_of(w);
    h->last_frame = 0;
    kiln_put_u32_be(h->salt, kiln_get_u32_be(h->salt) + 1);
    sqlite3_randomness(4, h->salt + 4);
    seal(h);
    write_copy(w, 1, h);
    barrier(w);
    write_copy(w, 0, h);
    __atomic_store_n(&i->backfilled, 0, __ATOMIC_RELEASE);
    i->attempted = 0;
    i->marks[1] = 0;
    for (unsigned k = 2; k < N_READ; k++) i->marks[k] = NO_MARK;
    give_wal_locks(w, LOCK_READ + 1, N_READ - 1);
    *done = true;
    rc = log_write_header(w);
    return rc == SQLITE_OK ? log_sync(w) : rc;
}

int kiln_wal_prepare(kiln_wal *w)
{
    bool restarted;
    if (!kiln_wal_is_backfilled(w)) return SQLITE_OK;
    const int rc = restart(w, &restarted);
    if (rc != SQLITE_OK || restarted) return rc;
    /* A log without frames may lack its header; the reader that has the lock has it for an instant
     * only. */
    return w->header.last_frame ? SQLITE_OK : SQLITE_BUSY;
}

/* Writes the frames behind last_frame; the 24 bytes of the first go to `first`, and zeros to their
 * place. */
static int write_frames(kiln_wal *w, const kiln_wal_page *pages, uint32_t n, uint32_t n_pages,
                        uint32_t sum[2], unsigned char first[FRAME_HEADER])
{
    static const unsigned char zeros[FRAME_HEADER];
    for (uint32_t i = 0; i < n; i++) {
        unsigned char head[FRAME_HEADER];
        const sqlite3_int64 at = frame_at(w->header.last_frame + 1 + i);
        kiln_put_u32_be(head, pages[i].page);
        kiln_put_u32_be(head + 4, i + 1 == n ? n_pages : 0);
        memcpy(head + 8, w->header.salt, sizeof w->header.salt);
        add_to_sum(sum, head, 8);
        add_to_sum(sum, pages[i].data, KILN_WAL_PAGE);
        kiln_put_u32_be(head + 16, sum[0]), kiln_put_u32_be(head + 20, sum[1]);
        if (i == 0) memcpy(first, head, sizeof head);
        int rc = log_write(w, i == 0 ? zeros : head, sizeof head, at);
        if (rc == SQLITE_OK) rc = log_write(w, pages[i].data, KILN_WAL_PAGE, at + FRAME_HEADER);
        if (rc != SQLITE_OK) return rc;
    }
    return SQLITE_OK;
}

int kiln_wal_commit(kiln_wal *w, const kiln_wal_page *pages, uint32_t n, uint32_t n_pages,
                    bool *visible)
{
    const kiln_wal_header before = w->header;
    kiln_wal_header after = before;
    unsigned char first[FRAME_HEADER];
    *visible = false;
    int rc = map_regions(w, region_of(before.last_frame + n) + 1);
    if (rc == SQLITE_OK) rc = write_frames(w, pages, n, n_pages, after.frame_sum, first);
    for (uint32_t i = 0; i < n && rc == SQLITE_OK; i++)
        rc = enter(w, before.last_frame + 1 + i, pages[i].page);
    if (rc != SQLITE_OK) return rc;
    after.change++;
    after.last_frame += n;
    after.n_pages = n_pages;
    seal(&after);
    barrier(w);
    write_copy(w, 1, &after);
    barrier(w);
    rc = log_write(w, first, sizeof first, frame_at(before.last_frame + 1));
    /* the copies stay different: the bytes may be there all the same, as the next one will see */
    if (rc != SQLITE_OK) return rc;
    write_copy(w, 0, &after);
    barrier(w);
    w->header = after;
    *visible = true;
    return log_sync(w);
}

/* ---- open and close -------------------------------------------------------------------------- */
int kiln_wal_open(kiln_wal *w, sqlite3_vfs *vfs, sqlite3_file *db, const char *log_name)
{
    *w = (kiln_wal){.db = db};
    if (db->pMethods->iVersion < 2) return SQLITE_PROTOCOL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_WAL;
    w->log = calloc(1, (size_t)vfs->szOsFile);
    if (!w->log) return SQLITE_NOMEM;
    int rc = vfs->xOpen(vfs, log_name, w->log, flags, &flags);
    if (rc == SQLITE_OK && !(flags & SQLITE_OPEN_READWRITE)) rc = SQLITE_READONLY;
    return rc == SQLITE_OK ? map_regions(w, 1) : rc;
}

void kiln_wal_close(kiln_wal *w)
{
    if (!w->db) return;
    kiln_wal_unlock(w);
    (void)w->db->pMethods->xShmUnmap(w->db, 0); /* accepts what was never mapped */
    if (w->log && w->log->pMethods) (void)w->log->pMethods->xClose(w->log);
    free(w->log);
    free(w->regions);
    *w = (kiln_wal){0};
}
