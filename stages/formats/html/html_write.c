/* html_write -- one page with a viewer and the scene inside, to be sent to somebody and opened from
 * disk, without a network.
 *
 * The rounds of SOG (sog_write.c) write an archive from the beginning of the file on. When it is
 * whole, its length is known, and so is where everything goes:
 *
 *   head: policy, style, the scene as JSON | <script class="splats"> base64 of a piece </script>
 *       ... | viewer.js | end
 *
 * The pieces are moved to their places, the last one first: a piece's place is behind where it was,
 * so none is written over before it was read. That takes a piece's memory, whatever the size of the
 * scene.
 *
 * What runs in the page is viewer.js (stages/viewer), which the policy names by its hash; nothing
 * of the bake is ever script.
 */
#include "stages/formats/html/html_scene.h"
#include "stages/formats/sog/sog_rounds.h"

#include "base/minmax.h"
#include "stages/page/html.h"
#include "stages/page/sha256.h"
#include "stages/products/product_mark.h"
#include "stages/viewer/viewer_folder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of the archive: a multiple of 3, so that base64 has no padding before the last piece. Strings of
 * browsers end at 512 MiB (Chromium) or 1 GiB; a piece stays far below. */
enum { PIECE = 3 << 20 };
/* What a browser opens without running out of memory: the page, the archive and what the viewer
 * makes of it are in memory. */
#define ARCHIVE_MAX ((uint64_t)256 << 20)

#define PIECE_BEGIN "<script type=\"text/plain\" class=\"splats\">"
#define PIECE_END "</script>\n"
enum { AROUND = sizeof PIECE_BEGIN + sizeof PIECE_END - 2 };

/* ---- before anything is written -------------------------------------------------------------- */

/* Adds the viewer to the key: where a new one is installed, pages with the old one are written
 * again. */
static kiln_status key_viewer(kiln_hasher *h, kiln_error *err)
{
    static const char *const files[] = {KILN_VIEWER_SCRIPT, KILN_VIEWER_STYLE};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *text;
        size_t size;
        KILN_TRY(kiln_viewer_read(files[i], &text, &size, err));
        kiln_key_bytes(h, files[i], text, size);
        free(text);
    }
    return KILN_OK;
}

static kiln_status plan_html(kiln_export_parent *p, kiln_error *err)
{
    const uint64_t bytes = kiln_sog_archive_bytes(p->e);
    if (bytes > ARCHIVE_MAX)
        return kiln_fail(
            err, KILN_E_INPUT,
            "%llu Gaussians make a page of about %llu MiB, but browsers open at most %llu MiB; "
            "write fewer (--chunks, "
            "--filter-box, --sh-degree 0), or --format sog, lod or rad for a viewer that loads it",
            (unsigned long long)p->e->n_rows, (unsigned long long)(bytes / 3 * 4 >> 20),
            (unsigned long long)(ARCHIVE_MAX / 3 * 4 >> 20));
    return kiln_sog_plan_archive(p, err);
}

/* ---- the page -------------------------------------------------------------------------------- */

typedef struct {
    char *script, *style;
    size_t script_bytes, style_bytes;
} viewer;

/* Can the text stand in an element as it is? It comes from a folder that anybody may have
 * changed. */
static kiln_status check_inline(const char *text, size_t size, const char *name, kiln_error *err)
{
    bool fits = strlen(text) == size && !strcasestr(text, "<!--") &&
                !strcasestr(text, "</script") && !strcasestr(text, "</style");
    for (size_t i = 0; fits && i < size; i++)
        fits = text[i] == '\n' || text[i] == '\t' || (text[i] >= 0x20 && text[i] < 0x7f);
    if (fits) return KILN_OK;
    return kiln_fail(
        err, KILN_E_INPUT,
        "the viewer's %s cannot be put into a page; build the viewer again with `make viewer`",
        name);
}

static kiln_status read_viewer(viewer *v, kiln_error *err)
{
    KILN_TRY(kiln_viewer_read(KILN_VIEWER_SCRIPT, &v->script, &v->script_bytes, err));
    KILN_TRY(kiln_viewer_read(KILN_VIEWER_STYLE, &v->style, &v->style_bytes, err));
    KILN_TRY(check_inline(v->script, v->script_bytes, KILN_VIEWER_SCRIPT, err));
    return check_inline(v->style, v->style_bytes, KILN_VIEWER_STYLE, err);
}

static void write_hash(kiln_html *h, const char *text, size_t size)
{
    unsigned char hash[32];
    kiln_sha256(text, size, hash);
    KILN_HTML(h, "'sha256-");
    kiln_html_base64(h, hash, sizeof hash);
    KILN_HTML(h, "'");
}

/* The library is WebAssembly and has workers of its own, made from blob: addresses. */
static void write_page_head(kiln_html *h, const viewer *v, const char *name)
{
    KILN_HTML(h, "<!doctype html>\n<html lang=\"en\"><head><meta "
                 "charset=\"utf-8\">" KILN_PRODUCT_META_BEGIN);
    kiln_html_text(h, kiln_version);
    KILN_HTML(h,
              KILN_PRODUCT_META_END "<meta http-equiv=\"Content-Security-Policy\" "
                                    "content=\"default-src 'none'; img-src data: blob:; worker-src "
                                    "blob:; style-src ");
    write_hash(h, v->style, v->style_bytes);
    KILN_HTML(h, "; script-src 'wasm-unsafe-eval' ");
    write_hash(h, v->script, v->script_bytes);
    KILN_HTML(h, "; base-uri 'none'; form-action 'none'\">\n<meta name=\"viewport\" "
                 "content=\"width=device-width, initial-scale=1\">\n"
                 "<meta name=\"referrer\" content=\"no-referrer\"><meta name=\"color-scheme\" "
                 "content=\"light dark\">\n"
                 "<link rel=\"icon\" href=\"data:,\"><title>");
    kiln_html_text(h, name);
    KILN_HTML(h, "</title>\n<style>");
    kiln_html_markup(h, v->style, v->style_bytes);
    KILN_HTML(h, "</style></head>\n<body><div id=\"viewer\"><noscript>This page shows a scene in "
                 "3D, which needs "
                 "JavaScript.</noscript></div>\n"
                 "<script type=\"application/json\" id=\"scene\">");
}

static void write_tail(kiln_html *h, const viewer *v)
{
    KILN_HTML(h, "<script>");
    kiln_html_markup(h, v->script, v->script_bytes);
    KILN_HTML(h, "</script></body></html>\n");
}

/* ---- the pieces ------------------------------------------------------------------------------ */

static uint64_t base64_bytes(uint64_t bytes) { return (bytes + 2) / 3 * 4; }

/* Puts a piece of the archive at `to`. */
static kiln_status put_piece(kiln_export_parent *p, const unsigned char *piece, size_t bytes,
                             uint64_t to, kiln_html *h, kiln_error *err)
{
    h->out.size = 0;
    KILN_HTML(h, PIECE_BEGIN);
    kiln_html_base64(h, piece, bytes);
    KILN_HTML(h, PIECE_END);
    KILN_TRY(kiln_html_status(h));
    return kiln_export_put(p, h->out.data, h->out.size, to, err);
}

/* Moves the archive of so many bytes from the file's beginning to `at`, and sets *end to what is
 * behind it there. */
static kiln_status move_archive(kiln_export_parent *p, uint64_t bytes, uint64_t at, uint64_t *end,
                                kiln_error *err)
{
    const uint64_t n = (bytes + PIECE - 1) / PIECE, stride = base64_bytes(PIECE) + AROUND;
    unsigned char *piece = NULL;
    kiln_html h;
    kiln_status st = KILN_OK;
    int fd;
    KILN_TRY(kiln_file_open(p->e->temporary, &fd, err)); /* the parent's is for writing */
    *end = at + base64_bytes(bytes) + n * AROUND;
    kiln_html_init(&h, err);
    KILN_GO(KILN_ALLOC_UNSET(&piece, PIECE, "a piece of the scene", err));
    for (uint64_t i = n; i-- > 0;) {
        const size_t piece_bytes = (size_t)kiln_min_u64(bytes - i * PIECE, PIECE);
        KILN_GO(kiln_file_read_at(fd, p->e->temporary, i * PIECE, piece, piece_bytes, err));
        KILN_GO(put_piece(p, piece, piece_bytes, at + i * stride, &h, err));
    }
done:
    (void)close(fd);
    kiln_html_release(&h);
    free(piece);
    return st;
}

/* ---- the scene ------------------------------------------------------------------------------- */

static kiln_status put_scene(kiln_export_parent *p, uint64_t bytes, uint64_t at, kiln_error *err)
{
    kiln_text_file f = {.fd = p->fd, .path = p->e->temporary, .at = at};
    kiln_status st = kiln_html_scene_write(p->e, bytes, kiln_text_file_put, &f, err);
    if (st == KILN_OK) st = kiln_text_file_flush(&f, err);
    kiln_text_file_release(&f);
    return st;
}

/* The scene is written twice: its length says where the archive goes, which must make room for
 * it. */
static kiln_status put_page(kiln_export_parent *p, kiln_html *h, uint64_t bytes, kiln_error *err)
{
    static const char behind[] = "</script>\n";
    const kiln_scene *s = kiln_export_scene(p->e);
    viewer v = {0};
    uint64_t end = 0, scene = 0;
    kiln_status st = KILN_OK;
    KILN_GO(read_viewer(&v, err));
    write_page_head(h, &v, s->name[0] ? s->name : kiln_path_base(p->e->bakes[0].path));
    KILN_GO(kiln_html_status(h));
    KILN_GO(kiln_html_scene_write(p->e, bytes, kiln_text_count, &scene, err));
    const uint64_t head = h->out.size;
    KILN_GO(move_archive(p, bytes, head + scene + strlen(behind), &end, err));
    KILN_GO(kiln_export_put(p, h->out.data, head, 0, err));
    KILN_GO(put_scene(p, bytes, head, err));
    KILN_GO(kiln_export_put(p, behind, strlen(behind), head + scene, err));
    h->out.size = 0;
    write_tail(h, &v);
    KILN_GO(kiln_html_status(h));
    KILN_GO(kiln_export_put(p, h->out.data, h->out.size, end, err));
done:
    free(v.script);
    free(v.style);
    return st;
}

static kiln_status finish_html(kiln_export_parent *p, kiln_error *err)
{
    struct stat archive;
    kiln_html h;
    if (fstat(p->fd, &archive) != 0) return kiln_file_write_failed(p->e->temporary, errno, err);
    kiln_html_init(&h, err);
    const kiln_status st = put_page(p, &h, (uint64_t)archive.st_size, err);
    kiln_html_release(&h);
    return st;
}

const kiln_writer_functions kiln_writer_html = {.place = KILN_PLACE_FILE,
                                                .scratch = true,
                                                .views = true,
                                                .relative = true,
                                                .counts = kiln_sog_lost,
                                                .foresee = kiln_sog_foresee,
                                                .key = key_viewer,
                                                .plan = plan_html,
                                                .rounds = kiln_sog_rounds,
                                                .n_rounds = KILN_SOG_ROUNDS,
                                                .finish = finish_html};
