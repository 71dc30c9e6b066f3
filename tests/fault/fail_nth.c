/* fail_nth -- a preloaded library (LD_PRELOAD) that makes one call of a program fail, or all calls
 * from one on. Not part of the product; tests/fault/lib.sh builds and loads it.
 *
 *   KILN_TEST_FAIL=KIND:N:WHO:FILE
 *
 *   KIND  a row of kinds[], or "space": the disk is full once the files written have grown by N
 *         bytes in all
 *   N     the N-th call of that kind fails, all processes together; N+: that one and every later
 *         one; 0: calls are only counted
 *   WHO   parent, worker (its argv[1] begins with --worker=), any
 *   FILE  two 64-bit numbers shared by all processes: calls (for space: bytes) so far, failures so
 *         far
 *
 * Calls that a library makes inside itself without its symbol table are not seen: stdio's own
 * write(2), so fwrite, fflush and fclose stand for it. Allocations of libgomp are left alone,
 * because it ends the process when it has no memory for a thread; that is a worker's death, and
 * kills are tested elsewhere. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef enum {
    MALLOC,
    MAP,
    SHARED,
    WRITE,
    SHORT,
    SYNC,
    READ,
    OPEN,
    RENAME,
    SWAP,
    CLOSE,
    PROCESS,
    STEP,
    HANG,
    SPACE
} kind;
static const struct {
    const char *name;
    int error;
} kinds[] = {
    [MALLOC] = {"malloc", ENOMEM}, /* malloc, calloc, realloc, aligned_alloc, posix_memalign */
    [MAP] = {"mmap", ENOMEM},      /* of a file */
    [SHARED] = {"memfd", ENOSPC},  /* memfd_create, and write to one */
    [WRITE] = {"write", ENOSPC},   /* write, pwrite, fwrite, ftruncate, fallocate of files */
    /* write and pwrite of files and memfds take half: no failure at all */
    [SHORT] = {"short", 0},
    [SYNC] = {"fsync", EIO},         /* fsync, fdatasync */
    [READ] = {"read", EIO},          /* read, pread, fread of files */
    [OPEN] = {"open", EMFILE},       /* open, fopen, opendir */
    [RENAME] = {"rename", EIO},      /* rename, renameat2 */
    [SWAP] = {"swap", EINVAL},       /* renameat2, as on a file system that cannot exchange names */
    [CLOSE] = {"close", EIO},        /* close and fclose of files; they are closed all the same */
    [PROCESS] = {"process", EAGAIN}, /* fork, socketpair, sendmsg, recvmsg */
    /* sqlite3_step, sqlite3_exec: SQLITE_FULL, SQLITE_IOERR_READ, SQLITE_NOMEM by turns */
    [STEP] = {"step", 0},
    [HANG] = {"hang", 0}, /* fsync never returns */
    [SPACE] = {"space", ENOSPC},
};

/* ---- what was asked for, and how far it has come --------------------------------------------- */
static bool active, for_ever;
static kind wanted;
static uint64_t nth;
static uint64_t *shared_counts; /* calls, failures */
static uintptr_t gomp_begin, gomp_end;

static bool is_role(const char *who)
{
    char line[4096] = "";
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY);
    const long n = syscall(SYS_read, fd, line, sizeof line - 1);
    (void)syscall(SYS_close, fd);
    const char *second = n > 0 ? line + strlen(line) + 1 : line;
    const bool worker = strncmp(second, "--worker=", 9) == 0;
    return !strcmp(who, "any") || worker == !strcmp(who, "worker");
}

static int find_gomp(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size, (void)context;
    if (!strstr(info->dlpi_name, "/libgomp")) return 0;
    gomp_begin = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const uintptr_t end =
            info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && end > gomp_end) gomp_end = end;
    }
    return 1;
}

static void stop(const char *why)
{
    (void)fprintf(stderr, "fail_nth: %s\n", why);
    _exit(99); /* no exit code of ours: the test fails */
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("KILN_TEST_FAIL");
    char name[32] = "", number[32] = "", who[32] = "", file[4096] = "";
    if (!text) return;
    if (sscanf(text, "%31[^:]:%31[^:]:%31[^:]:%4095s", name, number, who, file) != 4)
        stop("KILN_TEST_FAIL is no KIND:N:WHO:FILE");
    if (!is_role(who)) return;
    char *end;
    nth = strtoull(number, &end, 10);
    for_ever = *end == '+';
    while (wanted <= SPACE && strcmp(kinds[wanted].name, name) != 0) wanted++;
    if (wanted > SPACE) stop("no such kind");
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || syscall(SYS_ftruncate, fd, 2 * sizeof *shared_counts) != 0)
        stop("no file to count in");
    shared_counts = (void *)syscall(SYS_mmap, NULL, 2 * sizeof *shared_counts,
                                    PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if ((intptr_t)shared_counts < 0 && (intptr_t)shared_counts > -4096)
        stop("no memory to count in");
    (void)syscall(SYS_close, fd);
    (void)dl_iterate_phdr(find_gomp, NULL);
    active = true;
}

static bool count(void)
{
    const uint64_t i = __atomic_add_fetch(&shared_counts[0], 1, __ATOMIC_RELAXED);
    const bool hit = nth && (i == nth || (for_ever && i > nth));
    if (hit) __atomic_add_fetch(&shared_counts[1], 1, __ATOMIC_RELAXED);
    return hit;
}

/* Counts a call; true: it is the one to fail, and errno says so. */
static bool fails(kind k)
{
    if (!active || wanted != k || !count()) return false;
    errno = kinds[k].error;
    return true;
}

/* The function behind ours. */
static void *next(void **kept, const char *name)
{
    if (!*kept) *kept = dlsym(RTLD_NEXT, name);
    if (!*kept) stop(name);
    return *kept;
}
#define NEXT(function) ((__typeof__(&function))next(&(static_##function), #function))
#define DECLARE(function) static void *static_##function

/* ---- memory ---------------------------------------------------------------------------------- */
/* glibc's own names: dlsym itself allocates. */
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static bool no_memory(const void *caller)
{
    const uintptr_t at = (uintptr_t)caller;
    return !(at >= gomp_begin && at < gomp_end) && fails(MALLOC);
}
#define NO_MEMORY (active && wanted == MALLOC && no_memory(__builtin_return_address(0)))

void *malloc(size_t n) { return NO_MEMORY ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t size) { return NO_MEMORY ? NULL : __libc_calloc(n, size); }
void *realloc(void *p, size_t n) { return NO_MEMORY ? NULL : __libc_realloc(p, n); }
void *aligned_alloc(size_t align, size_t n) { return NO_MEMORY ? NULL : __libc_memalign(align, n); }
int posix_memalign(void **p, size_t align, size_t n)
{
    if (NO_MEMORY) return ENOMEM;
    *p = __libc_memalign(align, n);
    return *p ? 0 : ENOMEM;
}

DECLARE(mmap);
void *mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    if (fd >= 0 && fails(MAP)) return MAP_FAILED;
    return NEXT(mmap)(at, n, protection, flags, fd, offset);
}
void *mmap64(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    return mmap(at, n, protection, flags, fd, offset);
}

/* ---- writing --------------------------------------------------------------------------------- */
typedef enum { OTHER, FILE_ON_DISK, MEMFD } what;
static what what_is(int fd)
{
    struct stat s;
    char link[32], target[64];
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode)) return OTHER;
    if (s.st_nlink > 0) return FILE_ON_DISK;
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, target, sizeof target);
    return n > 7 && !memcmp(target, "/memfd:", 7) ? MEMFD : FILE_ON_DISK;
}

/* Bytes of n that still fit before the disk is full. */
static size_t capacity_for(size_t n)
{
    const uint64_t after = __atomic_add_fetch(&shared_counts[0], n, __ATOMIC_RELAXED);
    if (nth == 0 || after <= nth) return n;
    __atomic_add_fetch(&shared_counts[1], 1, __ATOMIC_RELAXED);
    return after - n < nth ? nth - (after - n) : 0;
}

/* How many of n bytes may be written to fd; -1: the call fails, errno is set. */
static ssize_t admit(int fd, size_t n)
{
    if (!active || (wanted != WRITE && wanted != SHARED && wanted != SHORT && wanted != SPACE))
        return (ssize_t)n;
    const what w = what_is(fd);
    if (w == FILE_ON_DISK && fails(WRITE)) return -1;
    if (w == MEMFD && fails(SHARED)) return -1;
    if (w != OTHER && n > 1 && fails(SHORT)) return (ssize_t)(n / 2);
    if (w != FILE_ON_DISK || wanted != SPACE) return (ssize_t)n;
    const size_t capacity = capacity_for(n);
    if (capacity > 0 || n == 0) return (ssize_t)capacity;
    errno = ENOSPC;
    return -1;
}

DECLARE(write);
ssize_t write(int fd, const void *data, size_t n)
{
    const ssize_t m = admit(fd, n);
    return m < 0 ? m : NEXT(write)(fd, data, (size_t)m);
}
DECLARE(pwrite);
ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
    const ssize_t m = admit(fd, n);
    return m < 0 ? m : NEXT(pwrite)(fd, data, (size_t)m, at);
}
ssize_t pwrite64(int fd, const void *data, size_t n, off_t at) { return pwrite(fd, data, n, at); }

DECLARE(fwrite);
size_t fwrite(const void *data, size_t size, size_t n, FILE *f)
{
    const ssize_t m = active ? admit(fileno(f), size * n) : (ssize_t)(size * n);
    if (m == (ssize_t)(size * n) || wanted == SHORT) return NEXT(fwrite)(data, size, n, f);
    f->_flags |= _IO_ERR_SEEN; /* as glibc leaves it, for ferror */
    return 0;
}

/* A sparse file takes no room, but a full disk refuses to make one longer all the same often
 * enough. */
DECLARE(ftruncate);
int ftruncate(int fd, off_t size)
{
    if (active && wanted == WRITE && what_is(fd) == FILE_ON_DISK && fails(WRITE)) return -1;
    return NEXT(ftruncate)(fd, size);
}
int ftruncate64(int fd, off_t size) { return ftruncate(fd, size); }
DECLARE(fallocate);
int fallocate(int fd, int mode, off_t at, off_t n)
{
    if (active && wanted == WRITE && what_is(fd) == FILE_ON_DISK && fails(WRITE)) return -1;
    return NEXT(fallocate)(fd, mode, at, n);
}
int fallocate64(int fd, int mode, off_t at, off_t n) { return fallocate(fd, mode, at, n); }
DECLARE(posix_fallocate);
int posix_fallocate(int fd, off_t at, off_t n)
{
    if (active && wanted == WRITE && fails(WRITE)) return ENOSPC;
    if (active && wanted == SPACE && capacity_for((size_t)n) < (size_t)n) return ENOSPC;
    return NEXT(posix_fallocate)(fd, at, n);
}
DECLARE(memfd_create);
int memfd_create(const char *name, unsigned flags)
{
    return fails(SHARED) ? -1 : NEXT(memfd_create)(name, flags);
}

DECLARE(fsync);
int fsync(int fd)
{
    while (fails(HANG)) (void)pause();
    return fails(SYNC) ? -1 : NEXT(fsync)(fd);
}
DECLARE(fdatasync);
int fdatasync(int fd) { return fails(SYNC) ? -1 : NEXT(fdatasync)(fd); }
DECLARE(rename);
int rename(const char *from, const char *to) { return fails(RENAME) ? -1 : NEXT(rename)(from, to); }

DECLARE(renameat2);
int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
    return fails(RENAME) || fails(SWAP) ? -1 : NEXT(renameat2)(from_dir, from, to_dir, to, flags);
}

/* ---- reading, opening, closing --------------------------------------------------------------- */
static bool no_read(int fd)
{
    return active && wanted == READ && what_is(fd) == FILE_ON_DISK && fails(READ);
}

DECLARE(read);
ssize_t read(int fd, void *data, size_t n) { return no_read(fd) ? -1 : NEXT(read)(fd, data, n); }
DECLARE(pread);
ssize_t pread(int fd, void *data, size_t n, off_t at)
{
    return no_read(fd) ? -1 : NEXT(pread)(fd, data, n, at);
}
ssize_t pread64(int fd, void *data, size_t n, off_t at) { return pread(fd, data, n, at); }
DECLARE(fread);
size_t fread(void *data, size_t size, size_t n, FILE *f)
{
    if (!active || wanted != READ || !no_read(fileno(f))) return NEXT(fread)(data, size, n, f);
    f->_flags |= _IO_ERR_SEEN;
    return 0;
}

DECLARE(open);
int open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    const mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return fails(OPEN) ? -1 : NEXT(open)(path, flags, mode);
}
int open64(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    const mode_t mode = flags & (O_CREAT | __O_TMPFILE) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return open(path, flags, mode);
}
DECLARE(fopen);
FILE *fopen(const char *path, const char *mode)
{
    return fails(OPEN) ? NULL : NEXT(fopen)(path, mode);
}
FILE *fopen64(const char *path, const char *mode) { return fopen(path, mode); }
DECLARE(close);
int close(int fd)
{
    const bool fail = active && wanted == CLOSE && what_is(fd) == FILE_ON_DISK && fails(CLOSE);
    const int rc = NEXT(close)(fd);
    if (!fail) return rc;
    errno = kinds[CLOSE].error;
    return -1;
}
DECLARE(fclose);
int fclose(FILE *f)
{
    const bool fail =
        active && wanted == CLOSE && what_is(fileno(f)) == FILE_ON_DISK && fails(CLOSE);
    const int rc = NEXT(fclose)(f);
    if (!fail) return rc;
    errno = kinds[CLOSE].error;
    return EOF;
}

/* ---- processes ------------------------------------------------------------------------------- */
DECLARE(fork);
pid_t fork(void) { return fails(PROCESS) ? -1 : NEXT(fork)(); }
DECLARE(socketpair);
int socketpair(int domain, int type, int protocol, int pair[2])
{
    return fails(PROCESS) ? -1 : NEXT(socketpair)(domain, type, protocol, pair);
}
DECLARE(sendmsg);
ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
    return fails(PROCESS) ? -1 : NEXT(sendmsg)(fd, m, flags);
}
DECLARE(recvmsg);
ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
    return fails(PROCESS) ? -1 : NEXT(recvmsg)(fd, m, flags);
}

/* ---- SQLite ---------------------------------------------------------------------------------- */
/* sqlite3_exec counts as one step: it throws the code of its own steps away and asks the statement
 * instead. */
static _Thread_local bool in_exec;

static int step_failure(void)
{
    static const int codes[] = {SQLITE_FULL, SQLITE_IOERR_READ, SQLITE_NOMEM};
    if (!active || in_exec || wanted != STEP) return SQLITE_OK;
    return count() ? codes[nth % 3] : SQLITE_OK;
}

DECLARE(sqlite3_step);
int sqlite3_step(sqlite3_stmt *s)
{
    const int rc = step_failure();
    return rc != SQLITE_OK ? rc : NEXT(sqlite3_step)(s);
}
DECLARE(sqlite3_exec);
int sqlite3_exec(sqlite3 *db, const char *sql, int (*row)(void *, int, char **, char **),
                 void *context, char **text)
{
    int rc = step_failure();
    if (rc != SQLITE_OK) return rc;
    const bool was = in_exec;
    in_exec = true;
    rc = NEXT(sqlite3_exec)(db, sql, row, context, text);
    in_exec = was;
    return rc;
}
