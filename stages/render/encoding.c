/* encoding -- see encoding.h. */
#include "stages/render/encoding.h"

#include "stages/engine/engine.h"
#include "stages/frame/canvas.h"

_Static_assert(KILN_RENDER_ANSWERS *KILN_RENDER_ENCODING_MAX <= KILN_DEFERRED_MAX,
               "as many as the engine has room for");

uint32_t kiln_render_encoding_most(uint32_t threads, uint64_t pictures)
{
    /* at the end of a run all wait for the slowest picture; with so many rounds that is a small
     * part */
    enum { ROUNDS = 4 };
    const uint64_t few = pictures / ROUNDS > 2 ? pictures / ROUNDS : 2;
    const uint32_t busy = threads > 1 ? threads - threads / 4 : 1,
                   most = busy < KILN_RENDER_ENCODING_MAX ? busy : KILN_RENDER_ENCODING_MAX;
    return most < few ? most : (uint32_t)few;
}

/* Counts threads for every unanswered unit, because deferred work that waits with its answer keeps
 * its threads. */
static uint64_t bytes_of(const kiln_render_encoding *t, uint32_t n)
{
    return n * (t->writing + KILN_RENDER_ANSWERS * kiln_deferred_ram(n));
}

uint64_t kiln_render_encoding_bytes(const kiln_render_encoding *t)
{
    return bytes_of(t, t->most) + ((uint64_t)t->most + 1) * kiln_canvas_bytes(t->pixels);
}

uint32_t kiln_render_encoding_in(const kiln_render_encoding *t, uint64_t may, uint64_t *beside)
{
    enum { ALWAYS = 2 };
    const uint64_t left = may > t->drawing ? may - t->drawing : 0;
    for (uint32_t n = t->most; n > 0; n--) {
        *beside = t->drawing + bytes_of(t, n);
        if (bytes_of(t, n) + (n + 1) * kiln_canvas_bytes(t->pixels) <=
            (n > ALWAYS ? left / 2 : left))
            return n;
    }
    return 0;
}
