/* colmap_text -- cameras.txt, images.txt, rigs.txt, frames.txt (COLMAP's doc/format.rst).
 *
 *   cameras  ID MODEL WIDTH HEIGHT PARAMS...
 *   images   ID QW QX QY QZ TX TY TZ CAMERA_ID NAME, then a line of triples X Y POINT3D_ID, which
 *            may be empty
 *   rigs     ID N CAMERA REF_ID [CAMERA ID HAS_POSE [7 numbers]]...
 *   frames   ID RIG_ID 7 numbers N (CAMERA SENSOR_ID DATA_ID)...
 * Lines that begin with # and blank lines are skipped, but for the second line of an image; when
 * the file ends in its place the image has no keypoints. A name is the rest of its line: COLMAP
 * writes names with blanks so.
 */
#include "stages/cameras/colmap/colmap_model.h"
#include "stages/files/text_lines.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

typedef struct {
    const char *path;
    int fd;
    kiln_lines lines;
    kiln_error *err;
} text;

static kiln_status open_text(text *t, const char *path, kiln_error *err)
{
    *t = (text){.path = path, .fd = -1, .err = err};
    KILN_TRY(kiln_file_open(path, &t->fd, err));
    kiln_status st = kiln_lines_init(&t->lines, t->fd, path, err);
    if (st != KILN_OK) {
        kiln_lines_release(&t->lines);
        close(t->fd);
    }
    return st;
}

static void close_text(text *t)
{
    kiln_lines_release(&t->lines);
    close(t->fd);
}

/* The next line that holds a record; *more false at the end. */
static kiln_status next_record(text *t, kiln_token_line *w, bool *more)
{
    for (;;) {
        const char *line;
        size_t size;
        KILN_TRY(kiln_lines_next(&t->lines, &line, &size, t->err));
        *more = line != NULL;
        if (!line) return KILN_OK;
        *w = (kiln_token_line){line, line + size};
        kiln_token_line ahead = *w;
        if (kiln_token_next(&ahead, &line, &size) && line[0] != '#') return KILN_OK;
    }
}

static kiln_status take_u64(text *t, kiln_token_line *w, uint64_t limit, const char *what,
                            uint64_t *out)
{
    const char *word;
    size_t size;
    if (!kiln_token_next(w, &word, &size))
        return kiln_fail(t->err, KILN_E_INPUT, "'%s': a line has too few fields: %s is missing",
                         t->path, what);
    if (kiln_parse_u64(word, size, out) != KILN_NUMBER_OK || *out > limit)
        return kiln_fail(t->err, KILN_E_INPUT,
                         "'%s': %s '%.*s' is not an unsigned number of at most %llu", t->path, what,
                         (int)(size < 40 ? size : 40), word, (unsigned long long)limit);
    return KILN_OK;
}

static kiln_status take_id(text *t, kiln_token_line *w, const char *what, uint32_t *out)
{
    uint64_t v;
    KILN_TRY(take_u64(t, w, UINT32_MAX, what, &v));
    *out = (uint32_t)v;
    return KILN_OK;
}

/* As C libraries of Windows write what is not a number: -nan(ind), nan(snan), -1.#IND, 1.#QNAN. */
static bool is_windows_nan(const char *word, size_t size)
{
    char start[16];
    snprintf(start, sizeof start, "%.*s", (int)(size < sizeof start ? size : sizeof start - 1),
             word);
    const char *plain = start + strspn(start, "+-");
    return strncasecmp(plain, "nan(", 4) == 0 || strncasecmp(plain, "1.#", 3) == 0;
}

static kiln_status take_number(text *t, kiln_token_line *w, const char *what, uint32_t id,
                               double *out)
{
    const char *word;
    size_t size;
    if (!kiln_token_next(w, &word, &size))
        return kiln_fail(t->err, KILN_E_INPUT, "'%s': the line of %s %u has too few fields",
                         t->path, what, id);
    switch (kiln_parse_f64(word, size, out)) {
    case KILN_NUMBER_OK:
        return KILN_OK;
    case KILN_NUMBER_TOO_LARGE:
        *out = INFINITY;
        return KILN_OK; /* refused as not finite where it is used */
    default:
        break;
    }
    if (is_windows_nan(word, size)) {
        *out = NAN;
        return KILN_OK;
    }
    return kiln_fail(t->err, KILN_E_INPUT,
                     "'%s': %s %u has a parameter that is not a number: '%.*s'", t->path, what, id,
                     (int)(size < 40 ? size : 40), word);
}

static kiln_status read_camera(text *t, kiln_token_line *w, kiln_colmap *m)
{
    uint32_t id, n = 0;
    uint64_t width, height;
    char name[64];
    const char *word;
    size_t size;
    double params[KILN_CAMERA_PARAMS], v;
    KILN_TRY(take_id(t, w, "a camera id", &id));
    if (!kiln_token_next(w, &word, &size))
        return kiln_fail(t->err, KILN_E_INPUT, "'%s': the line of camera %u has too few fields",
                         t->path, id);
    snprintf(name, sizeof name, "%.*s", (int)(size < sizeof name ? size : sizeof name - 1), word);
    const kiln_camera_model *model = kiln_camera_model_by_name(name);
    if (!model)
        return kiln_fail(t->err, KILN_E_INPUT, "'%s': camera model %s of camera %u is unknown",
                         t->path, name, id);
    KILN_TRY(take_u64(t, w, UINT64_MAX, "a camera's width", &width));
    KILN_TRY(take_u64(t, w, UINT64_MAX, "a camera's height", &height));
    for (kiln_token_line rest = *w; kiln_token_next(&rest, &word, &size); n++) {
        KILN_TRY(take_number(t, w, "camera", id, &v));
        if (n < KILN_CAMERA_PARAMS) params[n] = v;
    }
    if (n != model->n_params &&
        /* of COLMAP's forks, whose parameters differ: the picture decides */
        strcmp(name, "SPHERICAL") == 0) {
        params[0] = (double)width;
        params[1] = (double)height;
        n = model->n_params;
    }
    if (n != model->n_params)
        return kiln_fail(t->err, KILN_E_INPUT,
                         "'%s': camera %u has %u parameters instead of the %u of %s", t->path, id,
                         n, model->n_params, model->name);
    return kiln_colmap_put_camera(m, id, model, width, height, params, t->err);
}

/* The second line of an image, taken word by word. */
typedef struct {
    kiln_colmap *m; /* NULL, or who wants the keypoints */
    kiln_error *err;
    uint64_t words;
    bool in_word, strange;
    /* the one in hand; one that fills this is too long for a number */
    char word[KILN_TOKEN_MAX + 1];
    size_t size;
    double xy[2];
    bool usable; /* both are numbers */
} keypoint_line;

/* A keypoint whose numbers are invalid, or that observes no point (-1), is left out, unless every
 * one is wanted. */
static kiln_status end_word(keypoint_line *k)
{
    const uint64_t part = (k->words - 1) % 3;
    const size_t size = k->size;
    uint64_t point;
    k->in_word = false;
    k->size = 0;
    if (!k->m) return KILN_OK;
    if (part == 0) k->usable = true;
    if (part < 2) {
        k->usable &= kiln_parse_f64(k->word, size, &k->xy[part]) == KILN_NUMBER_OK;
        return KILN_OK;
    }
    if (kiln_parse_u64(k->word, size, &point) != KILN_NUMBER_OK || !k->usable) {
        if (!kiln_colmap_wants_every_keypoint(k->m)) return KILN_OK;
        if (!k->usable) k->xy[0] = k->xy[1] = (double)NAN;
        point = UINT64_MAX;
    }
    return kiln_colmap_put_keypoint(k->m, k->xy[0], k->xy[1], point, k->err);
}

static kiln_status take_keypoint_words(keypoint_line *k, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const bool blank = s[i] == ' ' || s[i] == '\t' || s[i] == '\r';
        if (blank && k->in_word) KILN_TRY(end_word(k));
        if (blank) continue;
        if (!k->in_word) k->words++;
        k->in_word = true;
        if (!memchr("0123456789+-.eEnaifNAIF", s[i], 23)) k->strange = true;
        if (k->m && k->size < sizeof k->word) k->word[k->size++] = s[i];
    }
    return KILN_OK;
}

/* A line that is not whole in the buffer is read past it, in pieces: it has no bound (60 bytes a
 * keypoint). */
static kiln_status read_long_line(text *t, keypoint_line *k)
{
    char piece[1 << 14];
    uint64_t at = kiln_lines_offset(&t->lines);
    for (bool ended = false; !ended;) {
        const ssize_t got = pread(t->fd, piece, sizeof piece, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return kiln_fail(t->err, KILN_E_IO, "cannot read '%s': %s", t->path, strerror(errno));
        const char *lf = memchr(piece, '\n', (size_t)got);
        KILN_TRY(take_keypoint_words(k, piece, lf ? (size_t)(lf - piece) : (size_t)got));
        at += lf ? (uint64_t)(lf - piece) + 1 : (uint64_t)got;
        ended = lf || got == 0;
    }
    kiln_lines_seek(&t->lines, at);
    return KILN_OK;
}

/* The second line of an image; m NULL: only to get past it. */
static kiln_status read_keypoints(text *t, uint32_t image, kiln_colmap *m)
{
    kiln_lines *l = &t->lines;
    keypoint_line k = {.m = m && kiln_colmap_wants_keypoints(m) ? m : NULL, .err = t->err};
    if (l->at_end || memchr(l->data + l->at, '\n', l->have - l->at)) {
        const char *line;
        size_t size;
        KILN_TRY(kiln_lines_next(l, &line, &size, t->err));
        if (line) KILN_TRY(take_keypoint_words(&k, line, size));
    } else {
        KILN_TRY(read_long_line(t, &k));
    }
    if (k.in_word) KILN_TRY(end_word(&k));
    if (k.words % 3 || k.strange)
        return kiln_fail(t->err, KILN_E_INPUT,
                         "'%s': the keypoint line of image %u is not a list of triples of numbers",
                         t->path, image);
    return KILN_OK;
}

/* The rest of the line without blanks around it. */
static kiln_status take_name(text *t, kiln_token_line *w, uint32_t image, char name[1100])
{
    const char *word, *end = w->end;
    size_t size;
    if (!kiln_token_next(w, &word, &size))
        return kiln_fail(t->err, KILN_E_INPUT, "'%s': the line of image %u has too few fields",
                         t->path, image);
    while (end[-1] == ' ' || end[-1] == '\t') end--;
    size = (size_t)(end - word);
    if (size >= 1100)
        return kiln_fail(t->err, KILN_E_INPUT,
                         "'%s': the name of image %u is longer than 1024 bytes", t->path, image);
    if (memchr(word, 0, size))
        return kiln_fail(t->err, KILN_E_INPUT, "'%s': the name of image %u has a NUL byte", t->path,
                         image);
    memcpy(name, word, size);
    name[size] = 0;
    return KILN_OK;
}

static kiln_status read_text_image(text *t, kiln_token_line *w, kiln_colmap *m)
{
    uint32_t id, camera;
    double pose[7];
    char name[1100];
    KILN_TRY(take_id(t, w, "an image id", &id));
    for (int i = 0; i < 7; i++) KILN_TRY(take_number(t, w, "image", id, &pose[i]));
    KILN_TRY(take_id(t, w, "the camera id of an image", &camera));
    KILN_TRY(take_name(t, w, id, name));
    KILN_TRY(kiln_colmap_put_image(m, id, pose, camera, name, t->err));
    return read_keypoints(t, id, m);
}

static kiln_status read_rig(text *t, kiln_token_line *w, kiln_colmap *m)
{
    uint32_t id;
    KILN_TRY(take_id(t, w, "a rig id", &id));
    return kiln_colmap_put_rig(m, id, t->err);
}

static kiln_status read_frame(text *t, kiln_token_line *w, kiln_colmap *m)
{
    uint32_t id, rig, n, sensor;
    double pose;
    KILN_TRY(take_id(t, w, "a frame id", &id));
    KILN_TRY(take_id(t, w, "the rig id of a frame", &rig));
    for (int i = 0; i < 7; i++) KILN_TRY(take_number(t, w, "frame", id, &pose));
    KILN_TRY(take_id(t, w, "the data count of a frame", &n));
    KILN_TRY(kiln_colmap_put_frame(m, id, rig, t->err));
    for (uint32_t i = 0; i < n; i++) {
        const char *type;
        size_t size;
        uint64_t data;
        if (!kiln_token_next(w, &type, &size))
            return kiln_fail(t->err, KILN_E_INPUT, "'%s': the line of frame %u has too few fields",
                             t->path, id);
        KILN_TRY(take_id(t, w, "the sensor id of a frame", &sensor));
        KILN_TRY(take_u64(t, w, UINT64_MAX, "the data id of a frame", &data));
        if (size == 6 && memcmp(type, "CAMERA", 6) == 0)
            KILN_TRY(kiln_colmap_put_frame_image(m, id, data, t->err));
    }
    return KILN_OK;
}

static kiln_status read_text_records(const char *path, kiln_colmap *m,
                                     kiln_status (*read)(text *, kiln_token_line *, kiln_colmap *),
                                     kiln_error *err)
{
    text t;
    kiln_token_line w;
    kiln_status st = KILN_OK;
    bool more = true;
    KILN_TRY(open_text(&t, path, err));
    while (st == KILN_OK && more) {
        st = next_record(&t, &w, &more);
        if (st == KILN_OK && more) st = read(&t, &w, m);
    }
    close_text(&t);
    return st;
}

kiln_status kiln_colmap_txt_cameras(const char *path, kiln_colmap *m, kiln_error *err)
{
    return read_text_records(path, m, read_camera, err);
}
kiln_status kiln_colmap_txt_images(const char *path, kiln_colmap *m, kiln_error *err)
{
    return read_text_records(path, m, read_text_image, err);
}
kiln_status kiln_colmap_txt_rigs(const char *path, kiln_colmap *m, kiln_error *err)
{
    return read_text_records(path, m, read_rig, err);
}
kiln_status kiln_colmap_txt_frames(const char *path, kiln_colmap *m, kiln_error *err)
{
    return read_text_records(path, m, read_frame, err);
}

uint64_t kiln_colmap_txt_count(const char *path)
{
    text t;
    kiln_token_line w;
    uint64_t n = 0;
    bool more = true;
    if (open_text(&t, path, NULL) != KILN_OK) return 0;
    while (next_record(&t, &w, &more) == KILN_OK && more && read_keypoints(&t, 0, NULL) == KILN_OK)
        n++;
    close_text(&t);
    return n;
}
