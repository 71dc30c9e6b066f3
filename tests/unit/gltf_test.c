/* gltf -- the glTF reader: nodes and instances, layouts of accessors, buffers in data URIs and
 * beside the file, what is refused. The golden files are samples_test's. */
#include "import_source.h"

#include "base/file.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* position 3, x y z w 4, linear scale 3, alpha, SH of degree 1 */
enum { ROWS = 3, ROW_FLOATS = 23 };

static const float values[ROWS][ROW_FLOATS] = {
    {1,    2,    3,    0,     0,    0,    1,    1,     2,     4,    0.5f, 0.1f,
     0.2f, 0.3f, 0.4f, -0.5f, 0.6f, 0.7f, 0.8f, -0.9f, 0.25f, 0.5f, 0.75f},
    {-1, 0.5f, 7, 0.5f, 0.5f, 0.5f, 0.5f, 0.1f,  0.2f, 0.3f, 0.9f, 1,
     1,  1,    0, 0,    0,    -1,   0.5f, 0.25f, 1,    0,    -1},
    {4, 5, 6, 0, 0.6f, 0, 0.8f, 1, 1, 1, 0.1f, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
};

static const struct {
    const char *name, *type;
    unsigned at, n;
} attributes[] = {
    {"POSITION", "VEC3", 0, 3},
    {"KHR_gaussian_splatting:ROTATION", "VEC4", 3, 4},
    {"KHR_gaussian_splatting:SCALE", "VEC3", 7, 3},
    {"KHR_gaussian_splatting:OPACITY", "SCALAR", 10, 1},
    {"KHR_gaussian_splatting:SH_DEGREE_0_COEF_0", "VEC3", 11, 3},
    {"KHR_gaussian_splatting:SH_DEGREE_1_COEF_0", "VEC3", 14, 3},
    {"KHR_gaussian_splatting:SH_DEGREE_1_COEF_1", "VEC3", 17, 3},
    {"KHR_gaussian_splatting:SH_DEGREE_1_COEF_2", "VEC3", 20, 3},
};
enum { ATTRIBUTES = sizeof attributes / sizeof *attributes };

/* What a test changes of the file. */
typedef struct {
    const char *nodes;    /* of scene 0; NULL: one node, not moved */
    const char *uri;      /* of the buffer; NULL: the BIN chunk */
    const char *accessor; /* more of the first accessor: ", \"sparse\": {}" */
    const char *top;      /* more of the file */
    unsigned primitives;  /* of the mesh; the second has degree 0 */
    bool interleaved;
    bool zeros; /* not blanks behind the JSON */
} wishes;

static kiln_buffer json, bin;

static void say(const char *fmt, ...)
{
    char text[4096];
    kiln_error err;
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < sizeof text);
    assert_int_equal(kiln_buffer_put(&json, text, (size_t)n, &err), KILN_OK);
}

static void put_values(bool interleaved)
{
    kiln_error err;
    if (interleaved) assert_int_equal(kiln_buffer_put(&bin, values, sizeof values, &err), KILN_OK);
    for (unsigned a = 0; a < ATTRIBUTES && !interleaved; a++)
        for (unsigned i = 0; i < ROWS; i++)
            assert_int_equal(kiln_buffer_put(&bin, &values[i][attributes[a].at],
                                             attributes[a].n * sizeof(float), &err),
                             KILN_OK);
}

static void say_accessors(const wishes *w)
{
    for (unsigned a = 0; a < ATTRIBUTES; a++)
        say("%s{\"bufferView\": %u, \"byteOffset\": %u, \"componentType\": 5126, \"count\": %d, "
            "\"type\": \"%s\"%s}",
            a ? ", " : "", w->interleaved ? 0 : a, w->interleaved ? attributes[a].at * 4 : 0, ROWS,
            attributes[a].type, a == 0 && w->accessor ? w->accessor : "");
    say("], \"bufferViews\": [");
    if (w->interleaved)
        say("{\"buffer\": 0, \"byteLength\": %zu, \"byteStride\": %d}", bin.size, 4 * ROW_FLOATS);
    for (unsigned a = 0; a < ATTRIBUTES && !w->interleaved; a++)
        say("%s{\"buffer\": 0, \"byteOffset\": %u, \"byteLength\": %u}", a ? ", " : "",
            attributes[a].at * 4 * ROWS, attributes[a].n * 4 * ROWS);
}

static void say_json(const wishes *w)
{
    say("{\"asset\": {\"version\": \"2.0\", \"generator\": \"the test\"}, \"extensionsUsed\": "
        "[\"KHR_gaussian_splatting\"], "
        "\"scene\": 0, "
        "\"scenes\": [{\"nodes\": [0]}], \"nodes\": [%s], \"meshes\": [{\"primitives\": [",
        w->nodes ? w->nodes : "{\"mesh\": 0}");
    for (unsigned p = 0; p < (w->primitives ? w->primitives : 1); p++) {
        say("%s{\"mode\": 0, \"extensions\": {\"KHR_gaussian_splatting\": {\"kernel\": "
            "\"ellipse\"}}, \"attributes\": {",
            p ? ", " : "");
        for (unsigned a = 0; a < (p ? 5 : ATTRIBUTES); a++)
            say("%s\"%s\": %u", a ? ", " : "", attributes[a].name, a);
        say("}}");
    }
    say("]}], \"accessors\": [");
    say_accessors(w);
    say("], \"buffers\": [{\"byteLength\": %zu", bin.size);
    if (w->uri) say(", \"uri\": \"%s\"", w->uri);
    say("}]%s}", w->top ? w->top : "");
}

static void put_u32(kiln_buffer *b, size_t v)
{
    kiln_error err;
    const uint32_t u = (uint32_t)v;
    assert_int_equal(kiln_buffer_put(b, &u, sizeof u, &err), KILN_OK);
}

/* The file, in a scratch folder; the path is static. */
static const char *make(const wishes *w)
{
    kiln_error err;
    kiln_buffer file = {0};
    const char *path;
    json.size = bin.size = 0;
    put_values(w->interleaved);
    say_json(w);
    if (json.size % 4 == 0) say(" ");
    while (json.size % 4)
        assert_int_equal(kiln_buffer_put(&json, w->zeros ? "" : " ", 1, &err), KILN_OK);
    if (w->uri) {
        path = import_source_file("x.gltf", json.data, json.size);
    } else {
        put_u32(&file, 0x46546c67);
        put_u32(&file, 2);
        put_u32(&file, 28 + json.size + bin.size);
        put_u32(&file, json.size);
        put_u32(&file, 0x4e4f534a);
        assert_int_equal(kiln_buffer_put(&file, json.data, json.size, &err), KILN_OK);
        put_u32(&file, bin.size);
        put_u32(&file, 0x004e4942);
        assert_int_equal(kiln_buffer_put(&file, bin.data, bin.size, &err), KILN_OK);
        path = import_source_file("x.glb", file.data, file.size);
    }
    kiln_buffer_release(&file);
    return path;
}

static void read_all(const wishes *w, import_source *s)
{
    kiln_error err = {0};
    const char *path = make(w);
    if (import_source_read(path, s, &err) != KILN_OK) fail_msg("%s", err.msg);
    assert_int_equal(remove(path), 0);
}

static void is_refused(const wishes *w, const char *why)
{
    import_source s;
    kiln_error err = {0};
    const char *path = make(w);
    assert_int_equal(import_source_read(path, &s, &err), KILN_E_INPUT);
    if (!strstr(err.msg, why) || !strstr(err.msg, kiln_path_base(path)))
        fail_msg("\"%s\" lacks \"%s\"", err.msg, why);
    import_source_free(&s);
    assert_int_equal(remove(path), 0);
}

static void near(double a, double b)
{
    if (!(fabs(a - b) < 1e-5)) fail_msg("%.9g is not %.9g", a, b);
}

/* ---- what is read ---------------------------------------------------------------------------- */

static void rows_are_those_of_the_file(void **state)
{
    import_source s;
    (void)state;
    read_all(&(wishes){0}, &s);
    assert_int_equal(s.n, ROWS);
    assert_int_equal(s.scan.info.sh_degree, 1);
    assert_string_equal(s.scan.info.writer, "the test");
    for (unsigned i = 0; i < ROWS; i++) {
        const float *row = s.rows + i * s.floats, *v = values[i];
        assert_memory_equal(row, v, 3 * sizeof(float));
        assert_true(row[3] == v[6] && row[4] == v[3] && row[5] == v[4] && row[6] == v[5]);
        for (unsigned c = 0; c < 3; c++) near((double)row[7 + c], log((double)v[7 + c]));
        near(1 / (1 + exp(-(double)row[10])), (double)v[10]);
        assert_memory_equal(row + 11, v + 11, 12 * sizeof(float));
    }
    import_source_free(&s);
}

/* Behind what is in uri. */
static void put_base64(char *uri, const unsigned char *data, size_t bytes)
{
    static const char base64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = strlen(uri);
    for (size_t i = 0; i < bytes; i += 3) {
        uint32_t v = 0;
        for (size_t k = 0; k < 3; k++) v = v << 8 | (i + k < bytes ? data[i + k] : 0);
        for (size_t k = 0; k < 4; k++) {
            const char c = i + k > bytes ? '=' : base64[v >> (18 - 6 * k) & 63];
            if (c == '/') uri[n++] = '\\';
            uri[n++] = c;
        }
    }
    uri[n] = '\0';
}

static void every_layout_gives_the_same_bits(void **state)
{
    /* as writers that escape slashes have it */
    char uri[2048] = "data:application\\/octet-stream;base64,";
    import_source planar, other;
    (void)state;
    read_all(&(wishes){0}, &planar);
    put_base64(uri, bin.data, bin.size);
    char beside[512];
    snprintf(beside, sizeof beside, "%s/import-%d-b in.bin", test_folder_parent(), (int)getpid());
    kiln_error err;
    assert_int_equal(kiln_file_write(beside, bin.data, bin.size, &err), KILN_OK);
    char name[512];
    snprintf(name, sizeof name, "import-%d-b%%20in%%2Ebin", (int)getpid());
    const wishes layouts[] = {{.interleaved = true}, {.zeros = true}, {.uri = uri}, {.uri = name}};
    for (unsigned k = 0; k < sizeof layouts / sizeof *layouts; k++) {
        read_all(&layouts[k], &other);
        assert_int_equal(other.n, planar.n);
        assert_memory_equal(other.rows, planar.rows, planar.n * planar.floats * sizeof(float));
        import_source_free(&other);
    }
    assert_int_equal(remove(beside), 0);
    import_source_free(&planar);
}

/* Degree 1 at a direction. */
static double colour(const float *row, unsigned channel, const double d[3])
{
    const double c1 = 0.4886025119029199;
    return -c1 * d[1] * (double)row[14 + channel] + c1 * d[2] * (double)row[17 + channel] -
           c1 * d[0] * (double)row[20 + channel];
}

static void nodes_move_rotate_and_scale(void **state)
{
    /* a child that is turned by 90 degrees about z, of a parent that doubles and moves */
    static const char nodes[] =
        "{\"children\": [1], \"matrix\": [2,0,0,0, 0,2,0,0, 0,0,2,0, 10,20,30,1]}, "
        "{\"mesh\": 0, \"rotation\": [0, 0, 0.7071067811865476, 0.7071067811865476]}";
    const double d[3] = {0.36, 0.48, 0.8}, turned[3] = {-0.48, 0.36, 0.8};
    import_source s;
    (void)state;
    read_all(&(wishes){.nodes = nodes}, &s);
    for (unsigned i = 0; i < ROWS; i++) {
        const float *row = s.rows + i * s.floats, *v = values[i];
        float before[ROW_FLOATS];
        memcpy(before, v, sizeof before);
        near((double)row[0] + s.scan.origin[0], 10 - 2 * (double)v[1]);
        near((double)row[1] + s.scan.origin[1], 20 + 2 * (double)v[0]);
        near((double)row[2] + s.scan.origin[2], 30 + 2 * (double)v[2]);
        for (unsigned c = 0; c < 3; c++) near((double)row[7 + c], log(2 * (double)v[7 + c]));
        for (unsigned c = 0; c < 3; c++) near(colour(row, c, turned), colour(before, c, d));
        const double h = sqrt(0.5), w = (double)v[6], x = (double)v[3], y = (double)v[4],
                     z = (double)v[5];
        const double q[4] = {h * (w - z), h * (x - y), h * (x + y), h * (w + z)};
        double dot = 0;
        for (unsigned c = 0; c < 4; c++) dot += q[c] * (double)row[3 + c];
        near(fabs(dot), 1);
    }
    import_source_free(&s);
}

static void instances_and_primitives_stand_in_document_order(void **state)
{
    static const char nodes[] = "{\"mesh\": 0, \"children\": [2, 1]}, {\"mesh\": 0, "
                                "\"translation\": [100, 0, 0]}, {\"name\": \"none\"}";
    import_source s;
    (void)state;
    read_all(&(wishes){.nodes = nodes, .primitives = 2}, &s);
    assert_int_equal(s.n, 4 * ROWS);
    assert_non_null(strstr(s.scan.info.notes, "lower SH degree"));
    for (unsigned k = 0; k < 4 * ROWS; k++) {
        const float *row = s.rows + k * s.floats, *v = values[k % ROWS];
        near((double)row[0] + s.scan.origin[0], (double)v[0] + (k < 2 * ROWS ? 0 : 100));
        for (unsigned c = 0; c < 12; c++)
            near((double)row[11 + c], k / ROWS % 2 && c >= 3 ? 0 : (double)v[11 + c]);
    }
    import_source_free(&s);
}

/* text with `from`, which stands there once, made `to`. */
static void put_changed(const char **text, const char *from, const char *to)
{
    const char *at = strstr(*text, from);
    assert_non_null(at);
    say("%.*s%s", (int)(at - *text), *text, to);
    *text = at + strlen(from);
}

static void an_spz_in_a_data_uri_is_moved_like_other_rows(void **state)
{
    static const char glb[] = "tests/data/fuzz/reader-gltf/golden_gltf_spz2.glb";
    unsigned char *file = NULL;
    size_t size;
    uint32_t length;
    char uri[4096] = "\"buffers\":[{\"uri\":\"data:;base64,";
    import_source plain, moved;
    kiln_error err = {0};
    (void)state;
    if (import_source_read(glb, &plain, &err) != KILN_OK) fail_msg("%s", err.msg);
    assert_int_equal(kiln_file_read(glb, 1 << 20, &file, &size, &err), KILN_OK);
    memcpy(&length, file + 12, sizeof length);
    put_base64(uri, file + 28 + length, size - 28 - length);
    strcat(uri, "\",");
    const char *text = (const char *)file + 20;
    json.size = 0;
    file[20 + length] = '\0';
    put_changed(&text, "{\"mesh\":0}", "{\"mesh\":0,\"translation\":[10,0,0],\"scale\":[2,2,2]}");
    put_changed(&text, "\"buffers\":[{", uri);
    say("%s", text);
    const char *path = import_source_file("spz.gltf", json.data, json.size);
    if (import_source_read(path, &moved, &err) != KILN_OK) fail_msg("%s", err.msg);
    assert_true(moved.n == plain.n && moved.n == 48 && moved.scan.info.sh_degree == 1);
    for (unsigned i = 0; i < moved.n; i++) {
        const float *a = plain.rows + i * plain.floats, *b = moved.rows + i * moved.floats;
        near((double)b[0] + moved.scan.origin[0], 2 * (double)a[0] + 10);
        near((double)b[1] + moved.scan.origin[1], 2 * (double)a[1]);
        near((double)b[7], (double)a[7] + log(2));
        assert_memory_equal(b + 10, a + 10, 13 * sizeof(float));
    }
    assert_int_equal(remove(path), 0);
    import_source_free(&plain);
    import_source_free(&moved);
    free(file);
}

static void without_a_scene_all_nodes_or_meshes_are_shown(void **state)
{
    static const char *const changes[][2] = {
        {"\"scene\": 0, \"scenes\"", "\"others\""},
        {"\"scene\": 0, \"scenes\": [{\"nodes\": [0]}], \"nodes\"", "\"others\""}};
    static const uint64_t rows[] = {2 * ROWS, ROWS};
    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        import_source s;
        kiln_error err = {0};
        char *uri = calloc(1, 2048), *before;
        assert_non_null(uri);
        strcpy(uri, "data:;base64,");
        (void)remove(make(&(wishes){0}));
        put_base64(uri, bin.data, bin.size);
        (void)remove(make(
            &(wishes){.uri = uri, .nodes = "{\"mesh\": 0, \"children\": [2]}, {\"mesh\": 0}, {}"}));
        assert_int_equal(kiln_buffer_put(&json, "", 1, &err), KILN_OK);
        before = strdup((const char *)json.data);
        const char *text = before;
        json.size = 0;
        put_changed(&text, changes[k][0], changes[k][1]);
        say("%s", text);
        const char *path = import_source_file("scene.gltf", json.data, json.size);
        if (import_source_read(path, &s, &err) != KILN_OK) fail_msg("%s", err.msg);
        assert_int_equal(s.n, rows[k]);
        assert_int_equal(remove(path), 0);
        import_source_free(&s);
        free(before);
        free(uri);
    }
}

static void the_frame_is_turned_to_that_of_ply(void **state)
{
    import_source as_is, turned;
    kiln_error err = {0};
    (void)state;
    read_all(&(wishes){0}, &as_is);
    assert_string_equal(as_is.scan.info.up_axis, "y");
    const char *path = make(&(wishes){0});
    assert_int_equal(
        import_source_read_with(path, &(kiln_read_options){.frame = KILN_FRAME_RUB}, &turned, &err),
        KILN_OK);
    assert_string_equal(turned.scan.info.up_axis, "-y");
    for (unsigned i = 0; i < ROWS; i++) {
        const float *a = as_is.rows + i * as_is.floats, *b = turned.rows + i * turned.floats;
        assert_true(b[0] == -a[0] && b[1] == -a[1] && b[2] == a[2]);
        for (unsigned c = 0; c < 3; c++)
            assert_true(b[14 + c] == -a[14 + c] && b[17 + c] == a[17 + c] &&
                        b[20 + c] == -a[20 + c]);
    }
    assert_int_equal(remove(path), 0);
    import_source_free(&as_is);
    import_source_free(&turned);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void nodes_that_no_gaussian_can_follow_are_refused(void **state)
{
    static const struct {
        const char *node, *why;
    } cases[] = {
        {"{\"mesh\": 0, \"scale\": [1, 1, -1]}", "mirrors its splats"},
        {"{\"mesh\": 0, \"scale\": [1, 2, 1]}", "scales them differently by axis"},
        {"{\"mesh\": 0, \"matrix\": [1,0,0,0, 0.5,1,0,0, 0,0,1,0, 0,0,0,1]}", "shears its splats"},
        {"{\"mesh\": 0, \"scale\": [0, 0, 0]}", "flat"},
        {"{\"mesh\": 0, \"matrix\": [1,0,0,1, 0,1,0,0, 0,0,1,0, 0,0,0,1]}", "last row"},
        {"{\"mesh\": 0, \"rotation\": [0, 0, 0, 0]}", "valid numbers"},
        {"{\"mesh\": 0, \"children\": [0]}", "below itself"},
        {"{\"mesh\": 0, \"children\": [1, 1]}, {}", "two parents"},
        {"{\"mesh\": 0, \"children\": [9]}", "out of range"},
        {"{\"mesh\": 9}", "mesh does not exist"},
    };
    import_source s;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        is_refused(&(wishes){.nodes = cases[i].node}, cases[i].why);
    /* where there are no splats, it does not matter */
    read_all(&(wishes){.nodes = "{\"mesh\": 0, \"children\": [1]}, {\"scale\": [1, 2, -1]}"}, &s);
    import_source_free(&s);
}

static void buffers_elsewhere_are_refused(void **state)
{
    static const struct {
        const char *uri, *why;
    } cases[] = {
        {"../x.bin", "lies outside of the folder"},
        {"a/%2e%2e/%2E./x.bin", "lies outside of the folder"},
        {"/etc/passwd", "lies outside of the folder"},
        {"a\\\\b.bin", "lies outside of the folder"},
        {"%00.bin", "bad % code"},
        {"a%2", "bad % code"},
        {"https://example.invalid/x.bin", "has an address"},
        {"file:x.bin", "has an address"},
        {"nothing-there.bin", "is missing"},
        {"data:application/octet-stream,abc", "not base64"},
        {"data:application/octet-stream;base64,AAAA", "its data URI holds only 3"},
        {"DATA:application/octet-stream;base64,AAAA", "its data URI holds only 3"},
        {"data:application/octet-stream;base64,@@@@", "not base64"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        is_refused(&(wishes){.uri = cases[i].uri}, cases[i].why);
}

/* folder/in has the scene, folder/out what it may not reach. NULL: it is read. */
static void buffers_behind_links_that_lead_out_are_refused(void **state)
{
    static const struct {
        const char *uri, *why;
    } cases[] = {
        {"file.bin", NULL},
        {"inner.bin", NULL},
        {"inner/x.bin", NULL},
        {"link.bin", "leads out of the folder through a link"},
        {"ldir/x.bin", "leads out of the folder through a link"},
        {"sibling/x.bin", "leads out of the folder through a link"},
        {"dangling.bin", "is missing"},
        {"fifo.bin", "is not a regular file"},
        {"folder.bin", "is not a regular file"},
    };
    char folder[TEST_FOLDER_MAX], path[TEST_PATH_MAX], command[1024];
    kiln_error err = {0};
    (void)state;
    assert_int_equal(test_folder_new(folder, "gltf"), 0);
    (void)snprintf(command, sizeof command,
                   "cd '%s' && mkdir -p in/real in/folder.bin in-2 out && ln -s ../out/x.bin "
                   "in/link.bin && ln -s ../out in/ldir && "
                   "ln -s ../in-2 in/sibling && ln -s file.bin in/inner.bin && ln -s real in/inner "
                   "&& ln -s none in/dangling.bin && "
                   "mkfifo in/fifo.bin",
                   folder);
    assert_int_equal(system(command), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        import_source s;
        (void)remove(make(&(wishes){.uri = cases[i].uri}));
        (void)snprintf(path, sizeof path, "%s/in/x.gltf", folder);
        assert_int_equal(kiln_file_write(path, json.data, json.size, &err), KILN_OK);
        for (size_t k = 0; k < 4 && i == 0; k++) {
            static const char *const files[] = {"in/file.bin", "in/real/x.bin", "in-2/x.bin",
                                                "out/x.bin"};
            char bytes[TEST_PATH_MAX];
            (void)snprintf(bytes, sizeof bytes, "%s/%s", folder, files[k]);
            assert_int_equal(kiln_file_write(bytes, bin.data, bin.size, &err), KILN_OK);
        }
        const kiln_status st = import_source_read(path, &s, &err);
        if (st != (cases[i].why ? KILN_E_INPUT : KILN_OK))
            fail_msg("%s: %d %s", cases[i].uri, (int)st, err.msg);
        if (cases[i].why && !strstr(err.msg, cases[i].why))
            fail_msg("\"%s\" lacks \"%s\"", err.msg, cases[i].why);
        import_source_free(&s);
    }
    assert_int_equal(test_folder_remove(folder), 0);
}

static void a_damaged_data_uri_is_refused(void **state)
{
    char uri[1024] = "data:;base64,";
    (void)state;
    const size_t n = strlen(uri);
    memset(uri + n, 'A', 400);
    uri[n + 200] = '*';
    is_refused(&(wishes){.uri = uri}, "is not base64");
}

static void what_is_not_understood_is_refused_by_name(void **state)
{
    (void)state;
    is_refused(&(wishes){.accessor = ", \"sparse\": {\"count\": 1}"},
               "POSITION is a sparse accessor");
    is_refused(&(wishes){.accessor = ", \"normalized\": true"}, "POSITION has a type");
    is_refused(&(wishes){.top = ", \"extensionsRequired\": [\"KHR_gaussian_splatting\", "
                                "\"EXT_meshopt_compression\"]"},
               "needs the extension EXT_meshopt_compression");
    is_refused(&(wishes){.nodes = "{\"name\": \"empty\"}"}, "holds no Gaussian splats");
    is_refused(&(wishes){.nodes = "{\"name\": \"empty\"}",
                         .top = ", \"extensionsRequired\": [\"KHR_draco_mesh_compression\"]"},
               "holds no Gaussian splats");
}

/* 900 KB that would take 66 MiB. */
static void a_document_of_too_many_values_is_refused(void **state)
{
    enum { N = 300000 };
    char *many = malloc(3 * N + 1);
    kiln_error err = {0};
    import_source s;
    (void)state;
    assert_non_null(many);
    for (unsigned i = 0; i < N; i++) memcpy(many + 3 * i, "{},", 3);
    (void)remove(make(&(wishes){.uri = "x.bin"}));
    json.size = 0;
    say("{\"asset\": {\"version\": \"2.0\"}, \"nodes\": [");
    assert_int_equal(kiln_buffer_put(&json, many, 3 * N - 1, &err), KILN_OK);
    say("]}");
    free(many);
    const char *path = import_source_file("scene.gltf", json.data, json.size);
    assert_int_equal(import_source_read(path, &s, &err), KILN_E_INPUT);
    if (!strstr(err.msg, "so many values")) fail_msg("%s", err.msg);
    assert_int_equal(remove(path), 0);
    import_source_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_of_the_file),
        cmocka_unit_test(every_layout_gives_the_same_bits),
        cmocka_unit_test(nodes_move_rotate_and_scale),
        cmocka_unit_test(instances_and_primitives_stand_in_document_order),
        cmocka_unit_test(an_spz_in_a_data_uri_is_moved_like_other_rows),
        cmocka_unit_test(without_a_scene_all_nodes_or_meshes_are_shown),
        cmocka_unit_test(the_frame_is_turned_to_that_of_ply),
        cmocka_unit_test(nodes_that_no_gaussian_can_follow_are_refused),
        cmocka_unit_test(buffers_elsewhere_are_refused),
        cmocka_unit_test(buffers_behind_links_that_lead_out_are_refused),
        cmocka_unit_test(a_damaged_data_uri_is_refused),
        cmocka_unit_test(what_is_not_understood_is_refused_by_name),
        cmocka_unit_test(a_document_of_too_many_values_is_refused),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kiln_buffer_release(&json);
    kiln_buffer_release(&bin);
    return failed;
}
