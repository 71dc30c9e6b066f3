/* canvas -- see canvas.h. */
#include "stages/frame/canvas.h"

#include "base/checked.h"
#include "base/memory.h"
#include "kernels/device.h"
#include "kernels/runner.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

/* the kernel zeroes and locks one of them in much less time than 512 small ones */
#define HUGE_PAGE ((uint64_t)2 << 20)

struct kiln_canvas {
    kiln_canvases *home;
    float *at;
    bool taken, pinned;
};

struct kiln_canvases {
    int device;
    uint64_t pixels;
    unsigned asked, most; /* most: 1 if no thread could be started */
    pthread_t maker;
    bool has_maker;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under the lock */
    unsigned n; /* canvases that exist; the others belong to the thread that makes them */
    bool stop;  /* no more are made: the set ends, or there was no memory */
    kiln_canvas items[KILN_CANVASES_MAX];
};

static uint64_t exact_bytes(uint64_t pixels) { return 4 * pixels * sizeof(float); }

uint64_t kiln_canvas_bytes(uint64_t pixels)
{
    return kiln_div_up(exact_bytes(pixels), HUGE_PAGE) * HUGE_PAGE;
}

/* ---- made ------------------------------------------------------------------------------------ */
/* Allocates a canvas. One of several uses huge pages if the kernel has some. A single one does not,
 * because there is only one when memory is short. */
static uint64_t bytes_each(const kiln_canvases *c)
{
    return c->most == 1 ? exact_bytes(c->pixels) : kiln_canvas_bytes(c->pixels);
}

static bool make_canvas(kiln_canvases *c, kiln_canvas *canvas)
{
    const uint64_t bytes = bytes_each(c);
    canvas->home = c;
    if (c->most == 1) {
        if (kiln_alloc_unset((void **)&canvas->at, bytes, 1, "picture", NULL) != KILN_OK)
            return false;
    } else {
        canvas->at = aligned_alloc(HUGE_PAGE, bytes);
        if (!canvas->at) return false;
        (void)madvise(canvas->at, bytes, MADV_HUGEPAGE); /* where it fails: small pages */
    }
    canvas->pinned = c->device >= 0 && kiln_device_pin(c->device, canvas->at, bytes);
    return true;
}

static void make_next(kiln_canvases *c)
{
    const bool made = make_canvas(c, &c->items[c->n]);
    (void)pthread_mutex_lock(&c->lock);
    if (made) c->n++;
    if (!made || c->n == c->most) c->stop = true;
    (void)pthread_cond_broadcast(&c->changed);
    (void)pthread_mutex_unlock(&c->lock);
}

static kiln_canvas *find_free(kiln_canvases *c)
{
    for (unsigned i = 0; i < c->n; i++)
        if (!c->items[i].taken) return &c->items[i];
    return NULL;
}

/* Waits until all existing canvases are taken. Returns whether another one is to be made. */
static bool is_canvas_wanted(kiln_canvases *c)
{
    (void)pthread_mutex_lock(&c->lock);
    while (!c->stop && find_free(c)) (void)pthread_cond_wait(&c->changed, &c->lock);
    const bool wanted = !c->stop;
    (void)pthread_mutex_unlock(&c->lock);
    return wanted;
}

static void *make_all(void *context)
{
    while (is_canvas_wanted(context)) make_next(context);
    return NULL;
}

kiln_status kiln_canvases_new(int device, uint64_t pixels, unsigned most, kiln_canvases **out,
                              kiln_error *err)
{
    kiln_canvases *c;
    KILN_TRY(KILN_ALLOC(&c, 1, "canvases", err));
    c->device = device;
    c->pixels = pixels;
    c->asked = most;
    c->most = most < KILN_CANVASES_MAX ? most : KILN_CANVASES_MAX;
    (void)pthread_mutex_init(&c->lock, NULL); /* these cannot fail with default attributes */
    (void)pthread_cond_init(&c->changed, NULL);
    c->has_maker = c->most > 1 && pthread_create(&c->maker, NULL, make_all, c) == 0;
    if (!c->has_maker) { /* a single canvas works, only slower */
        c->most = 1;
        make_next(c);
    }
    *out = c;
    return KILN_OK;
}

static unsigned count_taken(const kiln_canvases *c)
{
    unsigned n = 0;
    for (unsigned i = 0; i < c->n; i++) n += c->items[i].taken;
    return n;
}

void kiln_canvases_free(kiln_canvases *c)
{
    if (!c) return;
    (void)pthread_mutex_lock(&c->lock);
    c->stop = true;
    (void)pthread_cond_broadcast(&c->changed);
    while (count_taken(c) > 0) (void)pthread_cond_wait(&c->changed, &c->lock);
    (void)pthread_mutex_unlock(&c->lock);
    /* cannot fail: it is ours and was not joined */
    if (c->has_maker) (void)pthread_join(c->maker, NULL);
    for (unsigned i = 0; i < c->n; i++) {
        if (c->items[i].pinned) kiln_device_unpin(c->device, c->items[i].at);
        free(c->items[i].at);
    }
    (void)pthread_cond_destroy(&c->changed);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}

bool kiln_canvases_are(const kiln_canvases *c, uint64_t pixels, unsigned most)
{
    return c && c->pixels == pixels && c->asked == most;
}

uint64_t kiln_canvases_bytes(const kiln_canvases *c) { return c ? c->most * bytes_each(c) : 0; }

/* ---- taken and given ------------------------------------------------------------------------- */
kiln_status kiln_canvas_take(kiln_canvases *c, kiln_canvas **out, kiln_error *err)
{
    (void)pthread_mutex_lock(&c->lock);
    while (!(*out = find_free(c)) && (c->n > 0 || !c->stop))
        (void)pthread_cond_wait(&c->changed, &c->lock);
    if (*out) (*out)->taken = true;
    (void)pthread_cond_broadcast(&c->changed); /* another may be wanted */
    (void)pthread_mutex_unlock(&c->lock);
    return *out ? KILN_OK
                : kiln_fail(err, KILN_E_NOMEM, "out of memory for a picture of %llu pixels",
                            (unsigned long long)c->pixels);
}

void kiln_canvas_give(kiln_canvas *canvas)
{
    if (!canvas) return;
    kiln_canvases *c = canvas->home;
    (void)pthread_mutex_lock(&c->lock);
    canvas->taken = false;
    (void)pthread_cond_broadcast(&c->changed);
    (void)pthread_mutex_unlock(&c->lock);
}

float *kiln_canvas_pixels(const kiln_canvas *canvas) { return canvas->at; }
