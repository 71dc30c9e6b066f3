#include "stages/import/dataset/sources.h"

#include "base/file.h"
#include "base/memory.h"
#include "stages/engine/hosts/decisions.h"
#include "stages/files/hash_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static kiln_status stat_source(kiln_source_file *f, kiln_error *err)
{
    kiln_file_info info;
    KILN_TRY(kiln_file_stat(f->path, &info, err));
    f->size = info.size;
    f->mtime_ns = info.mtime_ns;
    f->inode = info.inode;
    return KILN_OK;
}

static int source_files_by_path(const void *a, const void *b)
{
    return strcmp(((const kiln_source_file *)a)->path, ((const kiln_source_file *)b)->path);
}

kiln_status kiln_sources_collect(const kiln_dataset *d, kiln_sources *out, kiln_error *err)
{
    uint32_t n = 0;
    memset(out, 0, sizeof *out);
    KILN_TRY(KILN_ALLOC(&out->files, (uint64_t)d->set.n_sources + 1, "source files", err));
    KILN_TRY(KILN_ALLOC(&out->is_rows, (uint64_t)d->set.n_sources + 1, "source files", err));
    if (d->set.n_sources) memcpy(out->files, d->set.sources, d->set.n_sources * sizeof *out->files);
    out->n = d->set.n_sources;
    if (d->reader) {
        kiln_source_file *f = &out->files[out->n++];
        f->path = d->rows_path;
        snprintf(f->role, sizeof f->role, "rows");
        KILN_TRY(stat_source(f, err));
    }
    if (out->n) qsort(out->files, out->n, sizeof *out->files, source_files_by_path);
    for (uint32_t i = 0; i < out->n; i++) { /* a file that serves twice: its first role */
        const bool is_rows = strcmp(out->files[i].role, "rows") == 0;
        if (n == 0 || strcmp(out->files[n - 1].path, out->files[i].path) != 0)
            out->files[n++] = out->files[i];
        out->is_rows[n - 1] |= is_rows;
    }
    out->n = n;
    return KILN_OK;
}

void kiln_sources_release(kiln_sources *s)
{
    free(s->files);
    free(s->is_rows);
    memset(s, 0, sizeof *s);
}

const kiln_source_file *kiln_sources_find(const kiln_sources *s, const char *path)
{
    const kiln_source_file key = {.path = path};
    return bsearch(&key, s->files, s->n, sizeof key, source_files_by_path);
}

static bool same_state(const kiln_source_file *a, const kiln_source_file *b)
{
    return a->size == b->size && a->mtime_ns == b->mtime_ns && a->inode == b->inode;
}

static kiln_status reuse_hashes(kiln_sources *s, kiln_manifest *m, bool rehash, kiln_error *err)
{
    kiln_sources stored = {0};
    if (m) KILN_TRY(kiln_sources_get(m, &stored.files, &stored.n, err));
    if (stored.n) qsort(stored.files, stored.n, sizeof *stored.files, source_files_by_path);
    for (uint32_t i = 0; i < s->n; i++) {
        const kiln_source_file *f = stored.n ? kiln_sources_find(&stored, s->files[i].path) : NULL;
        bool same = f && same_state(f, &s->files[i]);
        if (same && !rehash) s->files[i].hash = f->hash;
        if (!same) s->touched = true;
    }
    kiln_sources_release(&stored);
    return KILN_OK;
}

typedef enum { ALL, ROWS, OTHERS } choice;

static bool is_due(const kiln_sources *s, uint32_t i, choice which)
{
    return kiln_hash_is_zero(s->files[i].hash) &&
           (which == ALL || s->is_rows[i] == (which == ROWS));
}

static kiln_status take_hashes(kiln_sources *s, choice which, kiln_run *r, const kiln_unit *u,
                               uint64_t n, kiln_error *err)
{
    kiln_hash *hashes = NULL;
    uint64_t bytes = 0, k = 0;
    KILN_TRY(kiln_unit_data(r, u, "hashes", (void **)&hashes, &bytes, err));
    kiln_status st = KILN_OK;
    if (bytes != n * sizeof *hashes)
        st = kiln_unit_refuse(r, u,
                              kiln_fail(err, u->volatile_result ? KILN_E_BUG : KILN_E_IO,
                                        "%llu bytes of hashes for %llu files",
                                        (unsigned long long)bytes, (unsigned long long)n),
                              err);
    for (uint32_t i = 0; i < s->n && st == KILN_OK; i++)
        if (is_due(s, i, which)) s->files[i].hash = hashes[k++];
    free(hashes);
    return st;
}

/* Of the files that are to be hashed. Without the inode, which a file may have another of on each
 * host. */
static kiln_hash hashes_key(kiln_run *r, const kiln_sources *s, choice which)
{
    kiln_hasher *h = kiln_run_key_bare(r, "sources");
    for (uint32_t i = 0; i < s->n; i++) {
        if (!is_due(s, i, which)) continue;
        kiln_key_text(h, "path", s->files[i].path);
        kiln_key_u64(h, "size", s->files[i].size);
        kiln_key_u64(h, "mtime", (uint64_t)s->files[i].mtime_ns);
    }
    return kiln_key_end(h);
}

/* Over several hosts the plan stores the hashes, so that tasks need not read the files. With
 * --rehash it stores them anew. */
static kiln_status store_for_tasks(kiln_run *r, const kiln_sources *s, choice which, kiln_unit *u,
                                   bool rehash, kiln_error *err)
{
    if (!kiln_run_is_round(r)) return KILN_OK;
    u->volatile_result = false;
    u->key = hashes_key(r, s, which);
    if (!rehash || !kiln_run_begins_rounds(r)) return KILN_OK;
    kiln_manifest *m = kiln_run_manifest(r);
    KILN_TRY(kiln_manifest_begin(m, err));
    kiln_status st = kiln_unit_forget(m, u->key, err);
    if (st == KILN_OK) st = kiln_manifest_commit(m, err);
    if (st != KILN_OK) kiln_manifest_rollback(m);
    return st;
}

static kiln_status hash_some(kiln_sources *s, choice which, kiln_run *r, bool rehash,
                             kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_buffer paths = {0};
    uint64_t n = 0;
    kiln_unit u = {.name = KILN_HASH_UNIT,
                   .ram = KILN_HASH_RAM,
                   .ram_thread = KILN_HASH_RAM,
                   .volatile_result = true};
    for (uint32_t i = 0; i < s->n; i++) {
        if (!is_due(s, i, which)) continue;
        KILN_GO(kiln_buffer_put(&paths, s->files[i].path, strlen(s->files[i].path) + 1, err));
        n++;
    }
    if (n == 0) goto done;
    KILN_GO(store_for_tasks(r, s, which, &u, rehash, err));
    u.payload = paths.data;
    u.payload_bytes = paths.size;
    KILN_GO(kiln_run_units(r, "reading the sources", &u, 1, err));
    KILN_GO(take_hashes(s, which, r, &u, n, err));
done:
    kiln_units_release(&u, 1);
    kiln_buffer_release(&paths);
    return st;
}

kiln_status kiln_sources_hash(kiln_sources *s, kiln_run *r, bool rehash, kiln_error *err)
{
    KILN_TRY(reuse_hashes(s, kiln_run_manifest(r), rehash, err));
    if (!kiln_run_is_round(r)) return hash_some(s, ALL, r, rehash, err);
    KILN_TRY(hash_some(s, ROWS, r, rehash, err));
    return hash_some(s, OTHERS, r, rehash, err);
}

kiln_status kiln_sources_unchanged(const kiln_sources *s, kiln_error *err)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const kiln_source_file *f = &s->files[i];
        const kiln_file_info then = {.size = f->size, .mtime_ns = f->mtime_ns, .inode = f->inode};
        KILN_TRY(kiln_file_unchanged(f->path, &then, err));
    }
    return KILN_OK;
}

/* Of which a thread alone would be busy long after the others. */
static bool is_large(const char *path)
{
    enum { LARGE = 64 << 20 };
    kiln_file_info info;
    kiln_error unread;
    return kiln_file_stat(path, &info, &unread) == KILN_OK && info.size > LARGE;
}

/* Large files one after the other, each by all threads; then the others, of which photos are many,
 * one by each thread. */
static kiln_status hash_files(const char *const *path, uint64_t n, unsigned threads,
                              kiln_hash *hashes, kiln_error *err)
{
    kiln_status st = KILN_OK;
    for (uint64_t i = 0; i < n; i++)
        if (is_large(path[i])) KILN_TRY(kiln_hash_file_with(path[i], threads, &hashes[i], err));
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (uint64_t i = 0; i < n; i++) {
        kiln_error e = {0};
        if (!kiln_hash_is_zero(hashes[i])) continue;
        kiln_status s = kiln_hash_file(path[i], &hashes[i], &e);
        if (s == KILN_OK) continue;
#pragma omp critical(kiln_sources_error)
        if (st == KILN_OK) st = kiln_fail(err, s, "%s", e.msg);
    }
    return st;
}

kiln_status kiln_sources_unit(kiln_worker *w, const char *paths, size_t bytes, kiln_error *err)
{
    kiln_status st = KILN_OK;
    kiln_hash *hashes = NULL;
    const char **path = NULL;
    uint64_t n = 0;
    if (bytes == 0 || paths[bytes - 1] != '\0')
        return kiln_fail(err, KILN_E_BUG, "a list of paths lacks its end");
    for (size_t i = 0; i < bytes; i++) n += paths[i] == '\0';
    KILN_GO(KILN_ALLOC(&hashes, n, "hashes", err));
    KILN_GO(KILN_ALLOC(&path, n, "paths", err));
    for (uint64_t i = 0; i < n; i++, paths += strlen(paths) + 1) path[i] = paths;
    KILN_GO(hash_files(path, n, kiln_worker_threads(w), hashes, err));
    KILN_GO(kiln_worker_put(w, "hashes", hashes, n * sizeof *hashes, 1, err));
done:
    free(path);
    free(hashes);
    return st;
}
