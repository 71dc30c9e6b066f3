/* The rule of what may be replaced: files of the scene by path and inode, folders of photos, the
 * list of the manifest, marks and seals, and what happens where something appears between the
 * question and the rename. */
#include "base/file.h"
#include "manifest_fixture.h"
#include "schema/products.h"
#include "stages/image/image.h"
#include "stages/products/product_guard.h"
#include "stages/products/product_mark.h"
#include "stages/products/product_records.h"
#include "stages/products/scene_files.h"
#include "stages/products/stale_products.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>

static char root[400];

static const char *at(const char *name)
{
    static char path[8][1300];
    static unsigned next;
    char *const out = path[next++ % 8];
    snprintf(out, sizeof path[0], "%s/%s", root, name);
    return out;
}

static void write_text(const char *name, const char *text)
{
    kiln_error err = {0};
    OK(kiln_file_write(at(name), text, strlen(text), &err));
}

/* A path that lasts: a kiln_source_file and a kiln_camera borrow theirs. */
static const char *kept_at(const char *name)
{
    static char kept[64][800];
    static unsigned n;
    assert_true(n < sizeof kept / sizeof *kept);
    snprintf(kept[n], sizeof kept[n], "%s", at(name));
    return kept[n++];
}

static kiln_source_file source(const char *name, const char *role)
{
    kiln_error err = {0};
    kiln_source_file f = {.hash = {{1}}};
    kiln_file_info info;
    f.path = kept_at(name);
    snprintf(f.role, sizeof f.role, "%s", role);
    OK(kiln_file_stat(f.path, &info, &err));
    f.size = info.size;
    f.mtime_ns = info.mtime_ns;
    f.inode = info.inode;
    return f;
}

static void put_sources(kiln_manifest *m, const char *const names[][2], uint32_t n)
{
    kiln_error err = {0};
    kiln_source_file *files = calloc(n, sizeof *files);
    assert_non_null(files);
    for (uint32_t i = 0; i < n; i++) files[i] = source(names[i][0], names[i][1]);
    OK(kiln_sources_put(m, files, n, &err));
    free(files);
}

/* A scene of a PLY, cameras and two photos, and a bake beside it. */
static kiln_manifest *bake(void)
{
    static const char *const names[][2] = {{"scene/cam/cameras.json", "cameras"},
                                           {"scene/images/left/a.jpg", "photo"},
                                           {"scene/images/left/b.jpg", "photo"},
                                           {"scene/tower.ply", "splats"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) write_text(names[i][0], names[i][0]);
    assert_int_equal(mkdir(at("bake"), 0777), 0);
    kiln_manifest *m = open_manifest(at("bake/m.db"), KILN_OPEN_CREATE);
    put_sources(m, names, sizeof names / sizeof *names);
    return m;
}

static int make_root(void **state)
{
    if (make_scratch(state) != 0) return -1;
    char *const real = realpath(*state, NULL);
    snprintf(root, sizeof root, "%s", real);
    free(real);
    return 0;
}

static kiln_status ask(kiln_manifest *m, const char *name, bool overwrite)
{
    kiln_error err = {0};
    return kiln_product_guard_ask(m, overwrite, at(name), NULL, &err);
}

#define KEPT(m, name)                                        \
    do {                                                     \
        assert_int_equal(ask(m, name, false), KILN_E_USAGE); \
        assert_int_equal(ask(m, name, true), KILN_E_USAGE);  \
    } while (0)
#define WITH_W(m, name)                                      \
    do {                                                     \
        assert_int_equal(ask(m, name, false), KILN_E_USAGE); \
        assert_int_equal(ask(m, name, true), KILN_OK);       \
    } while (0)
#define FREE(m, name) assert_int_equal(ask(m, name, false), KILN_OK)

/* ---- the scene ------------------------------------------------------------------------------- */
static void files_of_the_scene_are_known_by_path_and_inode(void **state)
{
    (void)state;
    kiln_manifest *m = bake();
    KEPT(m, "scene/tower.ply");
    KEPT(m, "scene/images/left/a.jpg");
    KEPT(m, "scene/cam/cameras.json");
    assert_int_equal(link(at("scene/tower.ply"), at("hard.ply")), 0);
    KEPT(m, "hard.ply");
    assert_int_equal(symlink(at("scene/tower.ply"), at("soft.ply")), 0);
    KEPT(m, "soft.ply");
    /* moved away: by its inode, size and time */
    assert_int_equal(rename(at("scene/images/left/b.jpg"), at("moved.jpg")), 0);
    KEPT(m, "moved.jpg");
    /* trained again: by its path; and by another name of what lies there now */
    unlink(at("hard.ply"));
    write_text("scene/tower.ply", "trained again, longer than before");
    KEPT(m, "scene/tower.ply");
    assert_int_equal(link(at("scene/tower.ply"), at("again.ply")), 0);
    KEPT(m, "again.ply");
    /* through a linked folder, and by detours */
    assert_int_equal(symlink(at("scene"), at("way")), 0);
    KEPT(m, "way/tower.ply");
    KEPT(m, "scene/images/../tower.ply");
    /* gone: the place is free, and so is a file that got the number */
    unlink(at("scene/tower.ply"));
    unlink(at("again.ply"));
    FREE(m, "scene/tower.ply");
    kiln_manifest_close(m);
}

static void an_inode_alone_says_nothing(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_manifest *m = bake();
    write_text("new.raw", "something else");
    kiln_source_file f = source("new.raw", "splats");
    f.path = kept_at("scene/gone.ply");
    f.size += 1;
    OK(kiln_sources_put(m, &f, 1, &err));
    WITH_W(m, "new.raw");
    f.size -= 1;
    OK(kiln_sources_put(m, &f, 1, &err));
    KEPT(m, "new.raw");
    kiln_manifest_close(m);
}

static void no_picture_goes_where_photos_are_looked_for(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_product_guard *g;
    kiln_manifest *m = bake();
    KEPT(m, "scene/images/left/new.png");
    KEPT(m, "scene/images/left/a.npy");
    KEPT(m, "scene/images/left/deep/new.png"); /* not there yet */
    FREE(m, "scene/images/left/table.csv");
    write_text("scene/images/left/notes.csv", "mine");
    KEPT(m, "scene/images/left/notes.csv"); /* what lies among photos or cameras stays */
    write_text("scene/cam/other.json", "mine");
    KEPT(m, "scene/cam/other.json");
    FREE(m, "scene/cam/new.ply");
    write_text("scene/cam/work.spz", "mine"); /* often the folder that people work in */
    WITH_W(m, "scene/cam/work.spz");
    FREE(m, "scene/renders/new.png");
    OK(kiln_product_guard_open(m, true, &g, &err));
    assert_int_equal(kiln_product_guard_folder(g, at("scene/images/left"), true, &err),
                     KILN_E_USAGE);
    /* photos lie below it */
    assert_int_equal(kiln_product_guard_folder(g, at("scene/images"), true, &err), KILN_E_USAGE);
    assert_int_equal(kiln_product_guard_folder(g, at("scene"), true, &err), KILN_E_USAGE);
    assert_int_equal(kiln_product_guard_folder(g, at("scene/cam"), true, &err), KILN_E_USAGE);
    assert_int_equal(kiln_product_guard_folder(g, at("scene/cam"), false, &err), KILN_OK);
    assert_int_equal(kiln_product_guard_folder(g, at("scene/images/left/chunks"), true, &err),
                     KILN_E_USAGE);
    assert_int_equal(kiln_product_guard_folder(g, at("scene/chunks"), true, &err), KILN_OK);
    assert_int_equal(kiln_product_guard_folder(g, at("bake/export"), true, &err), KILN_OK);
    kiln_product_guard_close(g);
    kiln_manifest_close(m);
}

/* Cameras left/a: their photos' names begin in images/, where no photo lies itself. */
static void names_of_cameras_say_where_photos_begin(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_manifest *m = bake();
    kiln_camera c = {.r = {1, 0, 0, 0, 1, 0, 0, 0, 1},
                     .width = 8,
                     .height = 8,
                     .fx = 8,
                     .fy = 8,
                     .cx = 4,
                     .cy = 4,
                     .n_params = 4};
    for (int i = 0; i < 4; i++) c.params[i] = i < 2 ? 8 : 4;
    FREE(m, "scene/images/right/c.png");
    c.name = "left/a";
    snprintf(c.model, sizeof c.model, "PINHOLE");
    snprintf(c.split, sizeof c.split, "train");
    c.photo = kept_at("scene/images/left/a.jpg");
    c.mask = "";
    OK(kiln_cameras_put(m, &c, 1, &err));
    KEPT(m, "scene/images/right/c.png");
    KEPT(m, "scene/images/c.png");
    FREE(m, "scene/c.png");
    kiln_manifest_close(m);
}

/* kiln pipeline s --out s: the bake lies in the folder of the photos. */
static void a_bake_may_lie_among_the_photos(void **state)
{
    (void)state;
    static const char *const names[][2] = {{"flat/a.jpg", "photo"},
                                           {"flat/transforms.json", "cameras"}};
    write_text("flat/a.jpg", "photo");
    write_text("flat/transforms.json", "cameras");
    kiln_manifest *m = open_manifest(at("flat/manifest.db"), KILN_OPEN_CREATE);
    put_sources(m, names, 2);
    FREE(m, "flat/renders/a.png"); /* not there yet */
    FREE(m, "flat/export/scene.ply");
    FREE(m, "flat/report.html");
    assert_int_equal(mkdir(at("flat/renders"), 0777), 0);
    FREE(m, "flat/renders/a.png");
    KEPT(m, "flat/a.png");
    KEPT(m, "flat/a.jpg");
    kiln_manifest_close(m);
}

/* ---- ours ------------------------------------------------------------------------------------ */
static const float grey[12] = {0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f,
                               0.5f, 0.5f, 0.5f, 0.5f, 0.5f, 0.5f};

static void write_picture(const char *name, bool marked)
{
    kiln_error err = {0};
    const kiln_picture_text text = KILN_PICTURE_SOFTWARE;
    const kiln_product_seen any = {.overwrite = 1};
    OK(kiln_picture_write(&(kiln_picture_job){.path = at(name),
                                              .format = KILN_PNG8,
                                              .width = 2,
                                              .height = 2,
                                              .step = 3,
                                              .channels = 3,
                                              .data = grey,
                                              .text = &text,
                                              .n_text = marked,
                                              .seen = &any},
                          &err));
}

static void append(const char *name, const char *text)
{
    FILE *f = fopen(at(name), "ab");
    assert_non_null(f);
    assert_int_not_equal(fputs(text, f), EOF);
    assert_int_equal(fclose(f), 0);
}

/* Changes one byte; the size stays. */
static void change_byte(const char *name, long where)
{
    FILE *f = fopen(at(name), "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, where, where < 0 ? SEEK_END : SEEK_SET), 0);
    const int c = getc(f);
    assert_int_equal(fseek(f, -1, SEEK_CUR), 0);
    assert_int_not_equal(putc(c ^ 1, f), EOF);
    assert_int_equal(fclose(f), 0);
}

static void a_mark_and_a_seal_say_whose_it_is(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_buffer page = {0};
    write_picture("a.png", true);
    assert_int_equal(kiln_product_mark(at("a.png")), KILN_MARK_SEALED);
    FREE(NULL, "a.png");
    for (long where = 60; where > -100; where -= 20) { /* in the head, the pixels, the seal */
        write_picture("a.png", true);
        change_byte("a.png", where);
        const kiln_mark mark = kiln_product_mark(at("a.png"));
        if (mark == KILN_MARK_SEALED || mark == KILN_MARK_OURS)
            fail_msg("a change at %ld is not seen", where);
        WITH_W(NULL, "a.png");
    }
    write_picture("a.png", true);
    append("a.png", "more");
    assert_int_equal(kiln_product_mark(at("a.png")), KILN_MARK_BROKEN);
    write_picture("photo.png", false);
    assert_int_equal(kiln_product_mark(at("photo.png")), KILN_MARK_NONE);
    WITH_W(NULL, "photo.png");
    OK(kiln_buffer_printf(&page, &err,
                          "<!doctype html>\n" KILN_PRODUCT_META_BEGIN "0" KILN_PRODUCT_META_END
                          "<p>text"));
    OK(kiln_product_seal_html(&page, &err));
    OK(kiln_file_write(at("p.html"), page.data, page.size, &err));
    assert_int_equal(kiln_product_mark(at("p.html")), KILN_MARK_SEALED);
    change_byte("p.html", 60);
    assert_int_equal(kiln_product_mark(at("p.html")), KILN_MARK_BROKEN);
    kiln_buffer_release(&page);
    static const struct {
        const char *text;
        bool ours;
    } texts[] = {
        {"ply\nformat ascii 1.0\ncomment Generated by SplatKiln 1\nelement vertex 0\nend_header\n",
         true},
        {"ply\nformat ascii 1.0\nend_header\ncomment Generated by SplatKiln 1\n", false},
        {"ply\nformat ascii 1.0\ncomment made with SplatKiln\nend_header\n", false},
        {"{\"asset\":{\"generator\":\"SplatKiln 1\"}}", true},
        {"{\"asset\":{\"generator\":\"other\"}}", false},
        {"{\n \"format\": \"splatkiln-chunks\"}", true},
        {"<!doctype html>\n<p>SplatKiln</p>", false},
        {"SplatKiln 1", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        write_text("text", texts[i].text);
        if ((kiln_product_mark(at("text")) != KILN_MARK_NONE) != texts[i].ours)
            fail_msg("text %zu", i);
    }
    assert_int_equal(kiln_product_mark(at("not there")), KILN_MARK_NONE);
    assert_int_equal(kiln_product_mark(root), KILN_MARK_NONE);
}

static void a_copy_of_a_file_with_a_mark_is_not_ours(void **state)
{
    (void)state;
    static const char ply[] = "ply\ncomment Generated by SplatKiln 1\nend_header\n";
    write_text("copy.ply", ply);
    if (setxattr(at("copy.ply"), "user.test", "1", 1, 0) != 0) { /* the mark has to do */
        assert_int_equal(kiln_product_mark(at("copy.ply")), KILN_MARK_OURS);
        return;
    }
    static const char *const names[] = {"copy.ply", "copy"}; /* it is known by its content, too */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        write_text(names[i], ply);
        assert_int_equal(kiln_product_mark(at(names[i])), KILN_MARK_COPIED);
        assert_false(kiln_product_was_written(at(names[i])));
        WITH_W(NULL, names[i]);
        kiln_product_note(at(names[i]), at(names[i]));
        assert_int_equal(kiln_product_mark(at(names[i])), KILN_MARK_SEALED);
        FREE(NULL, names[i]);
    }
    write_text("tileset.json", "{\"asset\":{\"generator\":\"SplatKiln 1\"}}"); /* has no note */
    assert_int_equal(kiln_product_mark(at("tileset.json")), KILN_MARK_OURS);
}

static void list_file(kiln_manifest *m, const char *path, kiln_product_state s, bool describe)
{
    kiln_error err = {0};
    kiln_product_list list;
    kiln_product *p;
    char file[700];
    OK(kiln_product_list_get(m, &list, &err));
    OK(kiln_product_list_add(&list, path, "export", &p, &err));
    p->state = s;
    p->described = false;
    snprintf(file, sizeof file, "%s/bake/%s", root, path);
    if (describe) OK(kiln_product_describe_path(p, file, &err));
    OK(kiln_product_list_put(m, &list, &err));
    kiln_product_list_release(&list);
}

/* Every %s is the root. */
static void run_shell(const char *format)
{
    char command[4096];
    snprintf(command, sizeof command, format, root, root, root, root, root);
    assert_int_equal(system(command), 0);
}

static void set_time(const char *name, time_t seconds)
{
    const struct timespec t[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    assert_int_equal(utimensat(AT_FDCWD, at(name), t, 0), 0);
}

static void what_is_listed_is_ours_until_it_changes(void **state)
{
    (void)state;
    kiln_manifest *m = bake();
    write_text("bake/export/scene.splat", "thirty two bytes");
    WITH_W(m, "bake/export/scene.splat");
    list_file(m, "export/scene.splat", KILN_PRODUCT_CURRENT, true);
    FREE(m, "bake/export/scene.splat");
    set_time("bake/export/scene.splat", 1000); /* as in a copy of the bake */
    FREE(m, "bake/export/scene.splat");
    write_text("bake/export/scene.splat", "Thirty two bytes");
    WITH_W(m, "bake/export/scene.splat");
    /* of a run that was killed before it could describe it */
    list_file(m, "export/scene.splat", KILN_PRODUCT_BEGUN, false);
    FREE(m, "bake/export/scene.splat");
    write_text("bake/export/scene.ply", "ply\nend_header\n"); /* with the header of its source */
    list_file(m, "export/scene.ply", KILN_PRODUCT_BEGUN, false);
    FREE(m, "bake/export/scene.ply");
    /* what would carry a mark has to */
    write_text("bake/renders/a.png", "not ours");
    list_file(m, "renders/a.png", KILN_PRODUCT_BEGUN, false);
    WITH_W(m, "bake/renders/a.png");
    write_picture("bake/renders/a.png", true);
    FREE(m, "bake/renders/a.png");
    /* changed by a later -o of ours: the seal says so */
    list_file(m, "renders/a.png", KILN_PRODUCT_CURRENT, true);
    unlink(at("bake/renders/a.png"));
    write_picture("bake/renders/a.png", true);
    set_time("bake/renders/a.png", 1000);
    FREE(m, "bake/renders/a.png");
    append("bake/renders/a.png", "by hand");
    WITH_W(m, "bake/renders/a.png");
    kiln_manifest_close(m);
}

static void a_folder_is_ours_until_somebody_puts_something_into_it(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_product_guard *g;
    kiln_manifest *m = bake();
    write_text("bake/export/sog/meta.json", "{}");
    write_text("bake/export/sog/means_l.webp", "pixels");
    list_file(m, "export/sog/", KILN_PRODUCT_CURRENT, true);
    OK(kiln_product_guard_open(m, false, &g, &err));
    assert_int_equal(kiln_product_guard_listed(g, at("bake/export/sog")), KILN_LISTED_UNCHANGED);
    unlink(at("bake/export/sog/meta.json")); /* removed: nothing of anybody's is in its place */
    assert_int_equal(kiln_product_guard_listed(g, at("bake/export/sog")), KILN_LISTED_UNCHANGED);
    write_text("mine.webp", "pixels");
    set_time("mine.webp", 1000);
    /* older, and of the same size */
    assert_int_equal(rename(at("mine.webp"), at("bake/export/sog/means_l.webp")), 0);
    assert_int_equal(kiln_product_guard_listed(g, at("bake/export/sog")), KILN_LISTED_CHANGED);
    write_text("bake/export/sog/meta.json", "{}");
    list_file(m, "export/sog/", KILN_PRODUCT_CURRENT, true);
    kiln_product_guard_close(g);
    OK(kiln_product_guard_open(m, false, &g, &err));
    /* a copy of the bake, which keeps the times of content */
    run_shell("cp -a '%s/bake/export/sog' '%s/new' && rm -r '%s/bake/export/sog' && mv '%s/new' "
              "'%s/bake/export/sog'");
    assert_int_equal(kiln_product_guard_listed(g, at("bake/export/sog")), KILN_LISTED_UNCHANGED);
    write_text("bake/export/sog/mine.webp", "new");
    assert_int_equal(kiln_product_guard_listed(g, at("bake/export/sog")), KILN_LISTED_CHANGED);
    unlink(at("bake/export/sog/mine.webp"));
    assert_int_equal(kiln_product_guard_listed(g, at("bake")), KILN_LISTED_NOT);
    kiln_product_guard_close(g);
    kiln_manifest_close(m);
}

/* ---- the list -------------------------------------------------------------------------------- */
static void a_list_comes_back_as_it_was_stored(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_manifest *m = bake();
    kiln_product_list list = {.n = 0};
    kiln_product *p;
    char path[64];
    for (int i = 299; i >= 0; i--) { /* in no order */
        snprintf(path, sizeof path, "renders/%d/a \"b\".png", i * 7 % 300);
        OK(kiln_product_list_add(&list, path, "render", &p, &err));
        *p = (kiln_product){.path = p->path,
                            .stage = "render",
                            .state = KILN_PRODUCT_SUPERSEDED,
                            .described = true,
                            .size = UINT32_MAX,
                            .mtime_ns = -5,
                            .hash = kiln_hash_of(path, strlen(path)),
                            .of = kiln_hash_of("of", 2)};
    }
    assert_int_equal(list.n, 300);
    OK(kiln_product_list_put(m, &list, &err));
    OK(kiln_product_list_put(m, &list, &err));
    kiln_product_list_release(&list);
    kiln_manifest_close(m);
    m = open_manifest(at("bake/m.db"), KILN_OPEN_READ);
    OK(kiln_product_list_get(m, &list, &err));
    assert_int_equal(list.n, 300);
    p = kiln_product_list_find(&list, "renders/77/a \"b\".png");
    assert_non_null(p);
    assert_true(p->described && p->state == KILN_PRODUCT_SUPERSEDED && p->size == UINT32_MAX &&
                p->mtime_ns == -5);
    assert_true(kiln_hash_equal(p->hash, kiln_hash_of("renders/77/a \"b\".png", 20)));
    assert_null(kiln_product_list_find(&list, "renders/77/a"));
    kiln_product_list_remove(&list, p);
    assert_null(kiln_product_list_find(&list, "renders/77/a \"b\".png"));
    kiln_product_list_release(&list);
    kiln_manifest_close(m);
}

/* Stores the text as the list. */
static void put_list_text(kiln_manifest *m, const char *text)
{
    kiln_error err = {0};
    kiln_product_list none = {.n = 0};
    OK(kiln_product_list_put(m, &none, &err)); /* for its key */
    sqlite3_stmt *s = NULL;
    assert_int_equal(
        sqlite3_prepare_v2(
            kiln_manifest_sqlite(m),
            "UPDATE unit SET counters = json_object('list', ?) WHERE stage = 'product'", -1, &s,
            NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_bind_text(s, 1, text, -1, SQLITE_STATIC), SQLITE_OK);
    assert_int_equal(sqlite3_step(s), SQLITE_DONE);
    sqlite3_finalize(s);
}

#define ZERO "00000000000000000000000000000000"
#define LINE(path) "c\texport\t1\t5\t6\t" ZERO "\t" ZERO "\t" path "\n"

static void a_list_of_a_stranger_speaks_for_no_file_elsewhere(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "another head\n",
        "kiln-products 1\n" LINE("../home/me/thesis.tex"),
        "kiln-products 1\n" LINE("/etc/passwd"),
        "kiln-products 1\n" LINE("renders/../../x"),
        "kiln-products 1\n" LINE("images/a.jpg"),
        "kiln-products 1\n" LINE("renders"),
        "kiln-products 1\n" LINE("manifest.db"),
        "kiln-products 1\n" LINE("renders/b") LINE("renders/a"),
        "kiln-products 1\n" LINE("renders/a") LINE("renders/a"),
        "kiln-products 1\nx\texport\t1\t5\t6\t" ZERO "\t" ZERO "\trenders/a\n",
        "kiln-products 1\nc\tEXPORT;\t1\t5\t6\t" ZERO "\t" ZERO "\trenders/a\n",
        "kiln-products 1\nc\texport\t2\t5\t6\t" ZERO "\t" ZERO "\trenders/a\n",
        "kiln-products 1\nc\texport\t1\t-5\t6\t" ZERO "\t" ZERO "\trenders/a\n",
        "kiln-products 1\nc\texport\t1\t5\t99999999999999999999\t" ZERO "\t" ZERO "\trenders/a\n",
        "kiln-products 1\nc\texport\t1\t5\t6\t00\t" ZERO "\trenders/a\n",
        "kiln-products 1\nc\texport\t1\t5\t6\t" ZERO "\t" ZERO "\trenders/a",
    };
    kiln_error err = {0};
    kiln_product_list list;
    kiln_manifest *m = bake();
    put_list_text(m, "kiln-products 1\n" LINE("renders/a"));
    OK(kiln_product_list_get(m, &list, &err));
    assert_int_equal(list.n, 1);
    kiln_product_list_release(&list);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put_list_text(m, bad[i]);
        if (kiln_product_list_get(m, &list, &err) != KILN_E_INPUT) fail_msg("list %zu is taken", i);
        kiln_product_list_release(&list);
        FREE(m, "bake/renders/new.npy"); /* it is warned of, and counts as empty */
    }
    kiln_manifest_close(m);
}

static void what_is_superseded_is_named_and_removed_unless_changed(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_stale_list stale;
    uint32_t removed;
    char text[1024];
    kiln_manifest *m = bake();
    write_text("bake/renders/left/a.npy", "a");
    write_text("bake/renders/b.npy", "b");
    write_text("bake/export/scene.splat", "c");
    write_text("bake/export/now.splat", "d");
    write_text("elsewhere.npy", "e");
    list_file(m, "renders/left/a.npy", KILN_PRODUCT_SUPERSEDED, true);
    list_file(m, "renders/b.npy", KILN_PRODUCT_SUPERSEDED, true);
    list_file(m, "export/scene.splat", KILN_PRODUCT_SUPERSEDED, true);
    list_file(m, "export/now.splat", KILN_PRODUCT_CURRENT, true);
    list_file(m, "renders/gone.npy", KILN_PRODUCT_SUPERSEDED, false);
    write_text("bake/renders/b.npy", "by hand");
    unlink(at("bake/export/scene.splat"));
    assert_int_equal(symlink(at("elsewhere.npy"), at("bake/export/scene.splat")), 0);
    OK(kiln_stale_products_get(m, &stale, &err));
    assert_int_equal(stale.n, 2);
    kiln_stale_products_text(&stale, text);
    assert_string_equal(text, "2 files of the bake's folder do not belong to the bake any more: "
                              "renders/b.npy, renders/left/a.npy");
    OK(kiln_stale_products_remove(m, &stale, &removed, &err));
    assert_int_equal(removed, 1);
    kiln_stale_list_release(&stale);
    assert_false(kiln_is_dir(at("bake/renders/left")));
    assert_true(kiln_is_file(at("bake/renders/b.npy")) &&
                kiln_is_file(at("bake/export/now.splat")) && kiln_is_file(at("elsewhere.npy")));
    OK(kiln_stale_products_get(m, &stale, &err));
    assert_int_equal(stale.n, 0);
    kiln_stale_list_release(&stale);
    kiln_manifest_close(m);
}

/* ---- the rename ------------------------------------------------------------------------------ */
static void what_appears_meanwhile_stays(void **state)
{
    (void)state;
    kiln_error err = {0};
    kiln_product_seen seen;
    OK(kiln_product_guard_ask(NULL, false, at("x.splat"), &seen, &err));
    write_text("x.splat", "of somebody else");
    assert_int_equal(kiln_product_write(at("x.splat"), "new", 3, &seen, &err), KILN_E_USAGE);
    assert_says(&err, "during this run");
    /* nothing is lost */
    OK(kiln_product_write(at("x.splat"), "of somebody else", 16, &seen, &err));
    assert_int_equal(kiln_product_guard_ask(NULL, false, at("x.splat"), &seen, &err), KILN_E_USAGE);
    OK(kiln_product_guard_ask(NULL, true, at("x.splat"), &seen, &err));
    OK(kiln_product_write(at("x.splat"), "new", 3, &seen, &err));
    /* of a second run of ours: its mark says so */
    OK(kiln_product_guard_ask(NULL, false, at("x.ply"), &seen, &err));
    write_text("x.ply", "ply\ncomment Generated by SplatKiln 1\nend_header\n");
    kiln_product_note(at("x.ply"), at("x.ply"));
    seen.keeps_ours = 1; /* where a person names a new file it stays all the same */
    assert_int_equal(kiln_product_write(at("x.ply"), "new", 3, &seen, &err), KILN_E_USAGE);
    seen.keeps_ours = 0;
    OK(kiln_product_write(at("x.ply"), "new", 3, &seen, &err));
    /* what stood there is the same */
    const char *const same = at("y.splat");
    write_text("y.splat", "ours");
    kiln_product_seen stood = {0};
    kiln_product_look(same, &stood);
    OK(kiln_product_write(same, "new", 3, &stood, &err));
    /* gone meanwhile */
    kiln_product_look(same, &stood);
    unlink(same);
    OK(kiln_product_write(same, "new", 3, &stood, &err));
    /* a folder in its place, with -w too */
    seen.overwrite = 1;
    assert_int_equal(mkdir(at("z.splat"), 0777), 0);
    assert_int_equal(kiln_product_write(at("z.splat"), "new", 3, &seen, &err), KILN_E_IO);
}

/* One bake, and another one that is not there yet. */
static void an_export_replaces_those_of_its_bake_to_its_place(void **state)
{
    (void)state;
    static const char ply[] = "ply\ncomment Generated by SplatKiln 1\nend_header\n";
    kiln_error err = {0};
    kiln_product_guard *g;
    kiln_product_seen mine, others;
    kiln_manifest *const m = bake();
    write_text("probe", "1");
    const bool noted = setxattr(at("probe"), "user.test", "1", 1, 0) == 0;
    OK(kiln_product_guard_open(m, false, &g, &err));
    kiln_product_guard_export(g, at("other/m.db"));
    OK(kiln_product_guard_check(g, at("x.ply"), &others, &err));
    kiln_product_guard_export(g, at("bake/../bake/m.db"));
    OK(kiln_product_guard_check(g, at("x.ply"), &mine, &err));
    OK(kiln_product_write(at("x.ply"), ply, sizeof ply - 1, &mine, &err));
    if (noted) { /* it came since `others` was asked for */
        assert_int_equal(kiln_product_write(at("x.ply"), "new", 3, &others, &err), KILN_E_USAGE);
        assert_says(&err, "during this run");
    }
    kiln_product_guard_export(g, at("bake/m.db"));
    OK(kiln_product_guard_check(g, at("x.ply"), NULL, &err));
    OK(kiln_product_write(at("x.ply"), ply, sizeof ply - 1, &mine, &err));
    kiln_product_guard_export(g, at("other/m.db"));
    const kiln_status st = kiln_product_guard_check(g, at("x.ply"), NULL, &err);
    assert_int_equal(st, noted ? KILN_E_USAGE : KILN_OK);
    if (noted) assert_says(&err, "was not exported to this place from this bake");
    kiln_product_guard_export(g, NULL);
    OK(kiln_product_guard_check(g, at("x.ply"), NULL, &err));
    assert_int_equal(rename(at("x.ply"), at("y.ply")), 0);
    kiln_product_guard_export(g, at("bake/m.db"));
    assert_int_equal(kiln_product_guard_check(g, at("y.ply"), NULL, &err), st);
    kiln_product_guard_close(g);
    kiln_manifest_close(m);
}

static void a_temporary_name_is_nobodys(void **state)
{
    (void)state;
    kiln_error err = {0};
    char name[KILN_PATH_MAX], mine[KILN_PATH_MAX], again[KILN_PATH_MAX], killed[KILN_PATH_MAX + 16];
    int fd;
    OK(kiln_temporary_path(at("x.png"), mine, &err));
    OK(kiln_file_write(mine, "mine", 4, &err));
    OK(kiln_temporary_create(at("x.png"), name, &fd, &err));
    assert_string_not_equal(name, mine);
    OK(kiln_temporary_path(at("x.png"), again, &err));
    assert_string_not_equal(again, name);
    close(fd);
    kiln_file_info info;
    OK(kiln_file_stat(mine, &info, &err));
    assert_int_equal(info.size, 4);
    kiln_leftovers_drop(at("x.png")); /* of this process, which runs */
    assert_true(kiln_is_file(mine) && kiln_is_file(name));
    static const char *const numbers[] = {"999999999-2", "999999999-x"};
    for (int i = 0; i < 2; i++) { /* of one that was killed, and of nobody */
        snprintf(killed, sizeof killed, "%.*s%s", (int)(strrchr(mine, '-') + 1 - mine), mine,
                 numbers[i]);
        OK(kiln_file_write(killed, "half", 4, &err));
        kiln_leftovers_drop(at("x.png"));
        assert_int_equal(kiln_is_file(killed), i);
    }
    write_text("x.png.tmp.999999999", "of another program");
    kiln_leftovers_drop(at("x.png"));
    assert_true(kiln_is_file(at("x.png.tmp.999999999")));
}

/* 20,000 photos in 100 folders: opened and asked for 20,000 pictures in a fraction of a second. */
static void many_photos_cost_little(void **state)
{
    (void)state;
    enum { N = 20000, FOLDERS = 100 };
    kiln_error err = {0};
    kiln_product_guard *g;
    char path[800], folder[800];
    struct timespec begin, end;
    kiln_manifest *m = open_manifest(at("m.db"), KILN_OPEN_CREATE);
    kiln_source_file *files = calloc(N, sizeof *files);
    char(*paths)[600] = calloc(N, sizeof *paths);
    assert_non_null(files);
    assert_non_null(paths);
    for (int i = 0; i < N; i++) {
        snprintf(paths[i], sizeof *paths, "%s/photos/%03d/%05d.jpg", root, i / (N / FOLDERS), i);
        files[i].path = paths[i];
        strcpy(files[i].role, "photo");
        files[i].inode = (uint64_t)i + 1;
    }
    for (int i = 0; i < FOLDERS; i++) {
        snprintf(folder, sizeof folder, "photos/%03d/x", i);
        OK(kiln_make_parents(at(folder), &err));
    }
    OK(kiln_sources_put(m, files, N, &err));
    free(files);
    free(paths);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    OK(kiln_product_guard_open(m, false, &g, &err));
    for (int i = 0; i < N; i++) {
        snprintf(path, sizeof path, "%s/renders/%05d.png", root, i);
        OK(kiln_product_guard_check(g, path, NULL, &err));
    }
    snprintf(path, sizeof path, "%s/photos/042/new.png", root);
    assert_int_equal(kiln_product_guard_check(g, path, NULL, &err), KILN_E_USAGE);
    kiln_product_guard_close(g);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    const double seconds =
        (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9;
    const char *const slow = getenv("KILN_SLOW");
    print_message("20,000 photos and pictures: %.3f s\n", seconds);
    if (seconds > 0.5 * (slow ? atof(slow) : 1)) fail_msg("%.3f s", seconds);
    kiln_manifest_close(m);
}

int main(void)
{
#define CLAIM(f) cmocka_unit_test_setup_teardown(f, make_root, remove_scratch)
    const struct CMUnitTest tests[] = {
        CLAIM(files_of_the_scene_are_known_by_path_and_inode),
        CLAIM(an_inode_alone_says_nothing),
        CLAIM(no_picture_goes_where_photos_are_looked_for),
        CLAIM(names_of_cameras_say_where_photos_begin),
        CLAIM(a_bake_may_lie_among_the_photos),
        CLAIM(a_mark_and_a_seal_say_whose_it_is),
        CLAIM(a_copy_of_a_file_with_a_mark_is_not_ours),
        CLAIM(what_is_listed_is_ours_until_it_changes),
        CLAIM(a_folder_is_ours_until_somebody_puts_something_into_it),
        CLAIM(a_list_comes_back_as_it_was_stored),
        CLAIM(a_list_of_a_stranger_speaks_for_no_file_elsewhere),
        CLAIM(what_is_superseded_is_named_and_removed_unless_changed),
        CLAIM(what_appears_meanwhile_stays),
        CLAIM(an_export_replaces_those_of_its_bake_to_its_place),
        CLAIM(a_temporary_name_is_nobodys),
        CLAIM(many_photos_cost_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
