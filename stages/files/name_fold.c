/* name_fold -- see the header. Marks stay in the order in which they stand: names with two marks on
 * a letter in an order that is not canonical are other names here, and rare. */
#include "stages/files/name_fold.h"

#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES_MAX = 100000 };

/* ---- one name -------------------------------------------------------------------------------- */
static const struct {
    uint16_t character, base, mark;
} decompositions[] = {
#define D(character, base, mark) {character, base, mark},
#include "stages/files/decompositions.def"
#undef D
};

static uint32_t small_letter(uint32_t c)
{
    if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
    if (c >= 0xC0 && c <= 0xDE && c != 0xD7) return c + 32;
    if (c == 0x3A3 || c == 0x3C2) return 0x3C3;                /* the small sigmas are one letter */
    if (c >= 0x391 && c <= 0x3A9 && c != 0x3A2) return c + 32; /* 3A2 is no letter */
    if (c >= 0x400 && c <= 0x40F) return c + 80;
    return c >= 0x410 && c <= 0x42F ? c + 32 : c;
}

typedef struct {
    char *at, *end;
} sink;

static void put_codepoint(sink *s, uint32_t c)
{
    char b[4];
    size_t n = 0;
    if (c < 0x80) {
        b[n++] = (char)c;
    } else if (c < 0x800) {
        b[n++] = (char)(0xC0 | c >> 6);
        b[n++] = (char)(0x80 | (c & 63));
    } else {
        if (c < 0x10000)
            b[n++] = (char)(0xE0 | c >> 12);
        else
            b[n++] = (char)(0xF0 | c >> 18), b[n++] = (char)(0x80 | (c >> 12 & 63));
        b[n++] = (char)(0x80 | (c >> 6 & 63));
        b[n++] = (char)(0x80 | (c & 63));
    }
    if (s->at + n < s->end) memcpy(s->at, b, n);
    s->at = s->at + n < s->end ? s->at + n : s->end;
}

static void decompose_codepoint(sink *s, uint32_t c)
{
    /* Unicode, 3.12: Hangul */
    enum { S = 0xAC00, L = 0x1100, V = 0x1161, T = 0x11A7, N_S = 11172, N_VT = 588, N_T = 28 };
    size_t lo = 0, hi = sizeof decompositions / sizeof *decompositions;
    if (c >= S && c < S + N_S) {
        put_codepoint(s, L + (c - S) / N_VT);
        put_codepoint(s, V + (c - S) % N_VT / N_T);
        if ((c - S) % N_T) put_codepoint(s, T + (c - S) % N_T);
        return;
    }
    while (lo < hi) {
        const size_t middle = lo + (hi - lo) / 2;
        if (decompositions[middle].character < c)
            lo = middle + 1;
        else
            hi = middle;
    }
    if (lo == sizeof decompositions / sizeof *decompositions || decompositions[lo].character != c) {
        put_codepoint(s, small_letter(c));
        return;
    }
    /* of a few steps at most: a base comes apart into a base and a mark */
    decompose_codepoint(s, decompositions[lo].base);
    if (decompositions[lo].mark) put_codepoint(s, decompositions[lo].mark);
}

bool kiln_name_fold(const char *name, size_t n, char *out, size_t capacity)
{
    sink s = {out, out + capacity};
    for (size_t i = 0; i < n;) {
        const unsigned char *u = (const unsigned char *)name + i;
        const size_t k = kiln_utf8_sequence(u, n - i);
        if (k == 0 && s.at + 1 < s.end) *s.at++ = name[i];
        if (k == 0) {
            if (s.at + 1 >= s.end) return false;
            i++;
            continue;
        }
        uint32_t c = k == 1 ? u[0] : u[0] & (0x7Fu >> k);
        for (size_t b = 1; b < k; b++) c = c << 6 | (u[b] & 63u);
        decompose_codepoint(&s, c);
        i += k;
    }
    if (s.at >= s.end) return false;
    *s.at = '\0';
    return true;
}

/* ---- a folder -------------------------------------------------------------------------------- */
typedef struct {
    char *folded; /* owned, with the name as it is behind its NUL */
} entry;

struct kiln_folded_folder {
    char path[KILN_PATH_MAX];
    entry *entries; /* [n] owned, by folded name */
    uint32_t n;
    bool whole; /* the entries are all that is there, but for names that begin with a dot */
};

static int by_folded(const void *a, const void *b)
{
    return strcmp(((const entry *)a)->folded, ((const entry *)b)->folded);
}

static kiln_status add_entry(kiln_folded_folder *f, const char *name, kiln_error *err)
{
    char folded[1024];
    entry *more;
    const size_t n = strlen(name);
    if (!kiln_name_fold(name, n, folded, sizeof folded)) {
        f->whole = false;
        return KILN_OK;
    }
    if ((f->n & (f->n - 1)) == 0) { /* room for the next power of two */
        more = realloc(f->entries, (f->n ? (size_t)f->n * 2 : 1) * sizeof *more);
        if (!more)
            return kiln_fail(err, KILN_E_NOMEM, "out of memory for the names in '%s'", f->path);
        f->entries = more;
    }
    const size_t first = strlen(folded) + 1;
    KILN_TRY(
        kiln_alloc_unset((void **)&f->entries[f->n].folded, first + n + 1, 1, "a file name", err));
    memcpy(f->entries[f->n].folded, folded, first);
    memcpy(f->entries[f->n++].folded + first, name, n + 1);
    return KILN_OK;
}

static kiln_status list_folder_names(kiln_folded_folder *f, kiln_error *err)
{
    kiln_status st = KILN_OK;
    DIR *d = opendir(f->path);
    f->whole = d || errno == ENOENT || errno == ENOTDIR; /* one that is not there holds nothing */
    if (!d) return KILN_OK;
    while (st == KILN_OK && f->n < ENTRIES_MAX) {
        errno = 0;
        const struct dirent *e = readdir(d);
        if (!e && errno) f->whole = false;
        if (!e) break;
        if (e->d_name[0] != '.') st = add_entry(f, e->d_name, err);
    }
    closedir(d); /* opened for reading: nothing to lose */
    if (f->n == ENTRIES_MAX || st != KILN_OK) f->whole = false;
    if (f->n) qsort(f->entries, f->n, sizeof *f->entries, by_folded);
    return st;
}

void kiln_folded_names_release(kiln_folded_names *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        kiln_folded_folder *folder = &f->folders[i];
        for (uint32_t k = 0; k < folder->n; k++) free(folder->entries[k].folded);
        free(folder->entries);
    }
    free(f->folders);
    *f = (kiln_folded_names){0};
}

static kiln_status folder_at(kiln_folded_names *f, const char *path, const kiln_folded_folder **out,
                             kiln_error *err)
{
    for (uint32_t i = f->n; i-- > 0;)
        if (strcmp(f->folders[i].path, path) == 0) {
            *out = &f->folders[i];
            return KILN_OK;
        }
    kiln_folded_folder *more = realloc(f->folders, ((size_t)f->n + 1) * sizeof *more);
    if (!more) return kiln_fail(err, KILN_E_NOMEM, "out of memory for the names in '%s'", path);
    f->folders = more;
    kiln_folded_folder *made = &f->folders[f->n++];
    *made = (kiln_folded_folder){0};
    snprintf(made->path, sizeof made->path, "%s", path);
    *out = made;
    return list_folder_names(made, err);
}

/* The name of the only entry that folds to it; NULL: none, or several. */
static const char *only_entry(const kiln_folded_folder *f, const char *folded)
{
    const entry key = {(char *)folded},
                *e = f->n ? bsearch(&key, f->entries, f->n, sizeof key, by_folded) : NULL;
    if (!e || (e > f->entries && by_folded(e - 1, &key) == 0) ||
        (e + 1 < f->entries + f->n && by_folded(e + 1, &key) == 0))
        return NULL;
    return e->folded + strlen(e->folded) + 1;
}

/* Does an entry begin so? They are in bytewise order. */
static bool any_name_begins(const kiln_folded_folder *f, const char *folded)
{
    const size_t n = strlen(folded);
    uint32_t lo = 0, hi = f->n;
    while (lo < hi) {
        const uint32_t middle = lo + (hi - lo) / 2;
        if (strcmp(f->entries[middle].folded, folded) < 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo < f->n && strncmp(f->entries[lo].folded, folded, n) == 0;
}

static const char *find_last(const kiln_folded_folder *f, const char *name, size_t stem,
                             const char *const *extensions)
{
    char folded[1100];
    /* so do all that are tried */
    if (!kiln_name_fold(name, stem, folded, 1024) || !any_name_begins(f, folded)) return NULL;
    if (!kiln_name_fold(name, strlen(name), folded, 1024)) return NULL;
    const char *found = only_entry(f, folded);
    for (; !found && *extensions; extensions++) {
        if (!kiln_name_fold(name, stem, folded, 1024)) return NULL;
        (void)snprintf(folded + strlen(folded), sizeof folded - strlen(folded), "%s", *extensions);
        found = only_entry(f, folded);
    }
    return found;
}

kiln_status kiln_folded_find(kiln_folded_names *f, const char *dir, const char *relative,
                             size_t stem, const char *const *extensions, char out[KILN_PATH_MAX],
                             kiln_error *err)
{
    char folded[1024], path[KILN_PATH_MAX];
    const char *at = relative;
    out[0] = '\0';
    (void)snprintf(path, sizeof path, "%s", dir);
    for (size_t n; *at; at += n + strspn(at + n, "/")) {
        const kiln_folded_folder *folder = NULL;
        const char *name = NULL;
        const size_t used = strlen(path), left = sizeof path - used;
        n = strcspn(at, "/");
        KILN_TRY(folder_at(f, path, &folder, err));
        if (at[n] && kiln_name_fold(at, n, folded, sizeof folded))
            name = only_entry(folder, folded);
        if (!at[n]) name = find_last(folder, at, stem - (size_t)(at - relative), extensions);
        if (!name || (size_t)snprintf(path + used, left, "/%s", name) >= left) return KILN_OK;
    }
    memcpy(out, path, strlen(path) + 1);
    return KILN_OK;
}

/* Folders that fold names otherwise than we do fold those of ASCII alike. */
static bool is_plain(const char *name, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] >= 0x80) return false;
    return true;
}

kiln_status kiln_folded_may_hold(kiln_folded_names *f, const char *dir, const char *relative,
                                 size_t stem, bool *may, kiln_error *err)
{
    enum { FEW = 64 };
    char folder[KILN_PATH_MAX], folded[1024];
    const kiln_folded_folder *listed = NULL;
    const char *name = kiln_path_base(relative);
    const size_t above = (size_t)(name - relative), n = stem > above ? stem - above : 0;
    *may = true;
    if (f->n >= FEW || n == 0 || name[0] == '.' || !is_plain(name, n)) return KILN_OK;
    const int length = snprintf(folder, sizeof folder, "%s%s%.*s", dir, above ? "/" : "",
                                above ? (int)above - 1 : 0, relative);
    if (length < 0 || (size_t)length >= sizeof folder ||
        !kiln_name_fold(name, n, folded, sizeof folded))
        return KILN_OK;
    KILN_TRY(folder_at(f, folder, &listed, err));
    *may = !listed->whole || any_name_begins(listed, folded);
    return KILN_OK;
}
