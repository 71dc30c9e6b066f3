/* write_behind -- see the header.
 *
 * Problem. The thread that stores blobs spent two thirds of its time in pwrite, one for each page
 * of 64 KiB: the kernel makes pages for the file and copies into them. SQLite's own work waited for
 * that. Layout. A ring of blocks. The caller fills one with writes that are neighbours in the file;
 * full blocks are written from the other end by a thread, each by one call: larger writes make the
 * kernel's part cheaper, because it makes larger folios of the page cache. Without a thread a write
 * is done as it comes: the copy into a block costs more than larger writes gain.
 *
 *     first            first + n_full
 *     | full | full |  being filled  | empty ...
 *     thread ------>   caller
 *
 * One thread that copies, not several: file systems let one write into a file at a time (ext4, xfs
 * and tmpfs hold the inode's lock while they copy), and so writes stay in order. A second thread
 * lets the disk begin (start_disk): to hand pages to the disk takes longer than to copy them, and
 * needs no such lock. A page of memory that the kernel has not used before costs a write several
 * times what copying into it takes. So if the written data are not read soon (`passes`), their
 * pages leave the page cache once they are on the disk, and the next writes use them. After a
 * failure nothing more is written: what follows would only fill a disk that is full. */
#include "schema/write_behind.h"

#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The disk is asked to begin after so many bytes. */
enum { EARLY_BYTES = 8 << 20 };

typedef struct {
    unsigned char *data; /* NULL: not used yet */
    sqlite3_int64 at;
    size_t n;
} block;

/* A thread that is there from the first write on until kiln_behind_end. */
typedef struct {
    bool runs;
    pthread_t id;
    pthread_cond_t wake;
} side_thread;

struct kiln_behind {
    int fd;
    bool threaded, passes;
    /* on the disk, still in the page cache; the starter's while it runs */
    sqlite3_int64 synced_from, synced_to;
    side_thread writer,
        /* copies; lets the disk begin. Without a starter the writer does that, without a writer the
         * caller */
        starter;
    pthread_mutex_t lock; /* of what follows, while there is a thread */
    pthread_cond_t written;
    bool end;
    int rc; /* of the first write that failed */
    unsigned first, n_full;
    sqlite3_int64 early_from, early_to; /* written, the disk not asked */
    /* full ones are the writer's, the one being filled the caller's */
    block blocks[KILN_BEHIND_BLOCKS];
};

/* ---- writing --------------------------------------------------------------------------------- */
static bool is_early_due(const kiln_behind *b)
{
    return b->early_to - b->early_from >= EARLY_BYTES;
}

/* Notes what was written since the disk was asked the last time. The caller has the lock, if there
 * is a thread. */
static void note_written(kiln_behind *b, sqlite3_int64 at, size_t n)
{
    if (b->early_from == b->early_to) b->early_from = b->early_to = at;
    if (at < b->early_from) b->early_from = at;
    if (at + (sqlite3_int64)n > b->early_to) b->early_to = at + (sqlite3_int64)n;
}

/* Lets the disk begin with it, so that the sync has little left to wait for. A hint: what becomes
 * of it does not matter. Gives the lock away meanwhile; threaded: there is one. */
static void start_disk(kiln_behind *b, bool threaded)
{
    const sqlite3_int64 from = b->early_from, to = b->early_to;
    b->early_from = to;
    if (threaded) (void)pthread_mutex_unlock(&b->lock);
    (void)sync_file_range(b->fd, from, to - from, SYNC_FILE_RANGE_WRITE);
    if (threaded) (void)pthread_mutex_lock(&b->lock);
}

/* Pages that somebody else uses at this moment stay. */
static void leave_cache(kiln_behind *b)
{
    if (b->synced_from < b->synced_to)
        (void)posix_fadvise(b->fd, b->synced_from, b->synced_to - b->synced_from,
                            POSIX_FADV_DONTNEED);
    b->synced_from = b->synced_to = 0;
}

static int write_now(const kiln_behind *b, const block *w)
{
    for (size_t done = 0; done < w->n;) {
        const ssize_t n = pwrite(b->fd, w->data + done, w->n - done, w->at + (sqlite3_int64)done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno != ENOSPC) return SQLITE_IOERR_WRITE;
        if (n <= 0) return SQLITE_FULL;
        done += (size_t)n;
    }
    return SQLITE_OK;
}

/* Takes a block off the ring; the caller has the lock. */
static void write_first(kiln_behind *b)
{
    block *const w = &b->blocks[b->first];
    int rc = b->rc;
    if (rc == SQLITE_OK) {
        (void)pthread_mutex_unlock(&b->lock);
        rc = write_now(b, w);
        (void)pthread_mutex_lock(&b->lock);
    }
    if (rc == SQLITE_OK) note_written(b, w->at, w->n);
    b->rc = rc;
    w->n = 0;
    b->first = (b->first + 1) % KILN_BEHIND_BLOCKS;
    b->n_full--;
    (void)pthread_cond_signal(&b->written);
    if (!is_early_due(b)) return;
    if (b->starter.runs)
        (void)pthread_cond_signal(&b->starter.wake);
    else
        start_disk(b, true);
}

static void *write_full_blocks(void *behind)
{
    kiln_behind *b = behind;
    (void)pthread_mutex_lock(&b->lock);
    while (b->n_full || !b->end) {
        if (b->n_full)
            write_first(b);
        else
            (void)pthread_cond_wait(&b->writer.wake, &b->lock);
    }
    (void)pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* What is due at the end is left to the sync, which follows. */
static void *start_disk_early(void *behind)
{
    kiln_behind *b = behind;
    leave_cache(b);
    (void)pthread_mutex_lock(&b->lock);
    while (!b->end) {
        if (is_early_due(b))
            start_disk(b, true);
        else
            (void)pthread_cond_wait(&b->starter.wake, &b->lock);
    }
    (void)pthread_mutex_unlock(&b->lock);
    return NULL;
}

static void start_threads(kiln_behind *b)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    b->end = false;
    /* signals are for the thread that waits for them */
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return;
    b->writer.runs = pthread_create(&b->writer.id, NULL, write_full_blocks, b) == 0;
    b->starter.runs =
        b->writer.runs && pthread_create(&b->starter.id, NULL, start_disk_early, b) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- the caller's side ----------------------------------------------------------------------- */
/* The block being filled is full, or what comes is not its neighbour. */
static void hand_over(kiln_behind *b)
{
    (void)pthread_mutex_lock(&b->lock);
    b->n_full++;
    (void)pthread_cond_signal(&b->writer.wake);
    /* one is left to fill */
    while (b->n_full == KILN_BEHIND_BLOCKS) (void)pthread_cond_wait(&b->written, &b->lock);
    (void)pthread_mutex_unlock(&b->lock);
}

/* The block being filled: behind the full ones. */
static block *open_block(kiln_behind *b)
{
    (void)pthread_mutex_lock(&b->lock);
    block *const w = &b->blocks[(b->first + b->n_full) % KILN_BEHIND_BLOCKS];
    (void)pthread_mutex_unlock(&b->lock);
    return w;
}

static int failure_of(kiln_behind *b)
{
    (void)pthread_mutex_lock(&b->lock);
    const int rc = b->rc;
    (void)pthread_mutex_unlock(&b->lock);
    return rc;
}

/* Without a thread. data is only read. */
static int write_as_it_comes(kiln_behind *b, const void *data, size_t n, sqlite3_int64 at)
{
    b->rc = write_now(b, &(block){.data = (unsigned char *)data, .at = at, .n = n});
    if (b->rc != SQLITE_OK) return b->rc;
    note_written(b, at, n);
    if (is_early_due(b)) start_disk(b, false);
    return SQLITE_OK;
}

int kiln_behind_write(kiln_behind *b, const void *data, size_t n, sqlite3_int64 at)
{
    int rc = failure_of(b);
    if (rc != SQLITE_OK) return rc;
    if (b->threaded && !b->writer.runs) start_threads(b);
    if (!b->writer.runs) return write_as_it_comes(b, data, n, at);
    block *w = open_block(b);
    if (w->n && (at != w->at + (sqlite3_int64)w->n || w->n + n > KILN_BEHIND_BLOCK)) {
        hand_over(b);
        w = open_block(b);
    }
    if (!w->data &&
        kiln_alloc_unset((void **)&w->data, KILN_BEHIND_BLOCK, 1, "a block", NULL) != KILN_OK)
        return SQLITE_NOMEM;
    if (w->n == 0) w->at = at;
    memcpy(w->data + w->n, data, n);
    w->n += n;
    if (w->n < KILN_BEHIND_BLOCK) return SQLITE_OK;
    hand_over(b);
    return SQLITE_OK;
}

int kiln_behind_wait(kiln_behind *b)
{
    if (open_block(b)->n) hand_over(b);
    (void)pthread_mutex_lock(&b->lock);
    while (b->n_full) (void)pthread_cond_wait(&b->written, &b->lock);
    const int rc = b->rc;
    (void)pthread_mutex_unlock(&b->lock);
    return rc;
}

static void end_thread(side_thread *t)
{
    /* cannot fail: it was created, and is joined once */
    if (t->runs) (void)pthread_join(t->id, NULL);
    t->runs = false;
}

int kiln_behind_end(kiln_behind *b)
{
    const int rc = kiln_behind_wait(b);
    (void)pthread_mutex_lock(&b->lock);
    b->end = true;
    (void)pthread_cond_signal(&b->writer.wake);
    (void)pthread_cond_signal(&b->starter.wake);
    (void)pthread_mutex_unlock(&b->lock);
    end_thread(&b->writer);
    end_thread(&b->starter);
    b->rc = SQLITE_OK;
    return rc;
}

void kiln_behind_synced(kiln_behind *b, sqlite3_int64 from, sqlite3_int64 to)
{
    leave_cache(b); /* of a transaction without a starter */
    if (b->passes) b->synced_from = from, b->synced_to = to;
}

kiln_behind *kiln_behind_new(int fd, bool threaded, bool passes)
{
    kiln_behind *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    b->fd = fd;
    b->threaded = threaded;
    b->passes = passes;
    (void)pthread_mutex_init(&b->lock, NULL); /* these cannot fail on Linux */
    (void)pthread_cond_init(&b->writer.wake, NULL);
    (void)pthread_cond_init(&b->starter.wake, NULL);
    (void)pthread_cond_init(&b->written, NULL);
    return b;
}

void kiln_behind_free(kiln_behind *b)
{
    if (!b) return;
    (void)kiln_behind_end(b);
    leave_cache(b);
    for (unsigned i = 0; i < KILN_BEHIND_BLOCKS; i++) free(b->blocks[i].data);
    (void)pthread_cond_destroy(&b->written);
    (void)pthread_cond_destroy(&b->starter.wake);
    (void)pthread_cond_destroy(&b->writer.wake);
    (void)pthread_mutex_destroy(&b->lock);
    free(b);
}
