/* bytes -- the file and what lies beside it: pages, its header, its size, a log of writes, a
 * journal that waits to be rolled back, a lock. */
#include "tests/mutate/mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEADER = 100 };

static bool read_all(const char *path, unsigned char **data, size_t *bytes)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    *bytes = fstat(fileno(f), &st) == 0 ? (size_t)st.st_size : 0;
    *data = malloc(2 * *bytes + 65536);
    const bool done = *data && fread(*data, 1, *bytes, f) == *bytes;
    (void)fclose(f);
    if (!done) free(*data);
    return done;
}

static bool write_all(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    if (!f) return false;
    const bool done = fwrite(data, 1, bytes, f) == bytes;
    return fclose(f) == 0 && done;
}

static const char *beside(const mutation *m, const char *suffix)
{
    static char path[4096];
    (void)snprintf(path, sizeof path, "%s%s", m->path, suffix);
    return path;
}

static size_t page_size(const unsigned char *data)
{
    const size_t n = (size_t)data[16] << 8 | data[17];
    return n == 1 ? 65536 : n >= 512 ? n : 65536;
}

static void scatter(mutation *m, unsigned char *at, size_t bytes, size_t n)
{
    for (size_t i = 0; i < n && bytes; i++)
        at[below(m, bytes)] = chance(m, 30) ? 0xff : (unsigned char)any(m);
}

static void change_pages(mutation *m, unsigned char *data, size_t *bytes)
{
    const size_t page = page_size(data), n_pages = *bytes / page,
                 k = (size_t)below(m, n_pages ? n_pages : 1);
    unsigned char *at = data + k * page;
    const size_t capacity = *bytes - k * page < page ? *bytes - k * page : page;
    switch (below(m, 9)) {
    case 0:
        scatter(m, data, HEADER, 1 + (size_t)below(m, 4));
        say("bytes: of the header");
        break;
    case 1:
        scatter(m, at, capacity, 1 + (size_t)below(m, 50));
        say("bytes: of page %zu", k + 1);
        break;
    case 2: /* where a page says what it is */
        scatter(m, at + (k ? 0 : HEADER), 12, 1 + (size_t)below(m, 4));
        say("bytes: head of page %zu", k + 1);
        break;
    case 3: /* where its cells are */
        scatter(m, at + (k ? 8 : HEADER + 8), 64, 1 + (size_t)below(m, 10));
        say("bytes: cell pointers of page %zu", k + 1);
        break;
    case 4:
        memset(at, chance(m, 50) ? 0 : 0xff, capacity);
        say("bytes: page %zu filled", k + 1);
        break;
    case 5:
        *bytes = (size_t)below(m, *bytes);
        say("bytes: cut to %zu", *bytes);
        break;
    case 6:
        if (chance(m, 50)) *bytes = (size_t)below(m, n_pages) * page;
        scatter(m, data + 28, 4, 4); /* pages in the file */
        say("bytes: %zu of them, another number of pages", *bytes);
        break;
    case 7:
        memcpy(at, data + (size_t)below(m, n_pages ? n_pages : 1) * page, capacity);
        say("bytes: page %zu is another page", k + 1);
        break;
    default:
        scatter(m, data + *bytes, 65536, 65536);
        *bytes += 65536;
        say("bytes: 65536 more");
    }
}

bool change_bytes(mutation *m)
{
    unsigned char *data;
    size_t bytes;
    if (!read_all(m->path, &data, &bytes) || bytes < 4096) return false;
    change_pages(m, data, &bytes);
    const bool done = write_all(m->path, data, bytes);
    free(data);
    return done;
}

/* ---- the log --------------------------------------------------------------------------------- */
/* Leaves a log with a committed change in it. */
static bool leave_log(mutation *m)
{
    if (sqlite3_open(m->path, &m->db) != SQLITE_OK) return false;
    (void)sqlite3_db_config(m->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    const bool done = sql(m, "PRAGMA journal_mode = wal; PRAGMA wal_autocheckpoint = 0; PRAGMA "
                             "ignore_check_constraints = on;"
                             " UPDATE camera SET width = width + 1; UPDATE run SET exit_code = 1; "
                             "UPDATE unit SET name = name || ' '");
    (void)sqlite3_close(m->db);
    m->db = NULL;
    (void)unlink(beside(m, "-shm"));
    return done && access(beside(m, "-wal"), F_OK) == 0;
}

bool change_wal(mutation *m)
{
    unsigned char *data, random[4096];
    size_t bytes;
    if (chance(m, 25)) {
        for (size_t i = 0; i < sizeof random; i++) random[i] = (unsigned char)any(m);
        say("-wal: 4096 random bytes");
        return write_all(beside(m, "-wal"), random, sizeof random);
    }
    if (!leave_log(m)) return false;
    if (chance(m, 25)) {
        say("-wal: with changes");
        return true;
    }
    if (!read_all(beside(m, "-wal"), &data, &bytes)) return false;
    const size_t was = bytes;
    if (chance(m, 30)) bytes = (size_t)below(m, bytes);
    scatter(m, data, chance(m, 50) ? 32 : bytes, 1 + (size_t)below(m, 30));
    say("-wal: spoilt, %zu of %zu bytes", bytes, was);
    const bool done = write_all(beside(m, "-wal"), data, bytes);
    free(data);
    if (chance(m, 30)) {
        scatter(m, random, sizeof random, sizeof random);
        say(", a -shm of random bytes");
        (void)write_all(beside(m, "-shm"), random, sizeof random);
    }
    return done;
}

/* ---- other companions ------------------------------------------------------------------------ */
static void put_big(unsigned char *at, uint32_t v)
{
    for (int i = 0; i < 4; i++) at[i] = (unsigned char)(v >> (24 - 8 * i));
}

/* A journal that waits to be rolled back and names a file as its super-journal: SQLite deletes that
 * file when it is done. */
static bool leave_journal(mutation *m)
{
    static const unsigned char magic[8] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
    unsigned char data[512 + 4096] = {0}, *at = data + 512;
    char name[3000];
    uint32_t sum = 0;
    (void)snprintf(name, sizeof name, "%s/victim.png", m->victims);
    const size_t n = strlen(name);
    memcpy(data, magic, 8);
    put_big(data + 16, (uint32_t)below(m, 3)); /* pages in the file before */
    put_big(data + 20, 512);                   /* a sector */
    put_big(data + 24, 65536);                 /* a page */
    put_big(at, 0x40000000 / 65536 + 1);       /* the page of the locks: here comes a name */
    memcpy(at + 4, name, n);
    for (size_t i = 0; i < n; i++) sum += (uint32_t)(signed char)name[i];
    put_big(at + 4 + n, (uint32_t)n);
    put_big(at + 8 + n, sum);
    memcpy(at + 12 + n, magic, 8);
    say("-journal: to roll back, with '%s' to delete", name);
    return write_all(beside(m, "-journal"), data, 512 + n + 20);
}

bool change_companion(mutation *m)
{
    static const char text[] = "pid 1 host x\x1b]0;pwned\x07 stage\nknn since never\n";
    switch (below(m, 3)) {
    case 0:
        return leave_journal(m);
    case 1:
        say(".lock: text that acts");
        return write_all(beside(m, ".lock"), text, sizeof text);
    default:
        say("a folder of the name of the lock");
        return mkdir(beside(m, ".lock"), 0700) == 0;
    }
}

/* A claim beside the manifest: the one that is there, spoilt, or another. */
bool change_claim(mutation *m)
{
    static const char *const texts[] = {
        "splatkiln-claim 1\n",
        "splatkiln-claim 1\nstage \x1b]0;pwned\x07\nplan 0123456789abcdef0123456789abcdef\nhost "
        "h\npid 1\nstart now\ntasks "
        "1\nunits 2\ndue "
        "0-1\nwhat x\nend\n",
        "splatkiln-claim 1\nstage tiles\nplan 0123456789abcdef0123456789abcdef\nhost h\npid "
        "1\nstart now\ntasks 1000000\n"
        "units 18446744073709551615\ndue 0-18446744073709551614\nwhat counting pairs\nend\n",
    };
    char target[4096];
    unsigned char *data;
    size_t bytes;
    switch (below(m, 4)) {
    case 0:
        if (!read_all(beside(m, ".claim"), &data, &bytes) || bytes == 0) return false;
        if (chance(m, 30)) bytes = 1 + (size_t)below(m, bytes);
        scatter(m, data, bytes, 1 + (size_t)below(m, 3));
        say(".claim: spoilt");
        const bool done = write_all(beside(m, ".claim"), data, bytes);
        free(data);
        return done;
    case 1:
        say(".claim: a link");
        (void)snprintf(target, sizeof target, "%s/victim.png", m->victims);
        (void)unlink(beside(m, ".claim"));
        return symlink(target, beside(m, ".claim")) == 0;
    case 2:
        say(".claim: a folder");
        (void)unlink(beside(m, ".claim"));
        return mkdir(beside(m, ".claim"), 0700) == 0;
    default: {
        const char *text = texts[below(m, sizeof texts / sizeof *texts)];
        (void)unlink(beside(m, ".claim"));
        say(".claim: another");
        return write_all(beside(m, ".claim"), (const unsigned char *)text, strlen(text));
    }
    }
}
