/* planes -- see planes.h. */
#include "kernels/draw/planes.h"

#include "base/carve.h"
#include "base/harmonics.h"
#include "kernels/device.h"
#include "kernels/draw/settle.h"

#include <string.h>

uint64_t kiln_planes_lay_out(const kiln_draw_chunk_header *l, uint32_t sh_degree, char *at,
                             kiln_draw_chunk *out)
{
    kiln_carve c = {at, 0};
    const uint64_t harmonics = kiln_sh_components(sh_degree);
    memset(out, 0, sizeof *out);
    out->n = l->n;
    out->means = kiln_take(&c, 3 * l->n, sizeof *out->means);
    out->log_scales = kiln_take(&c, 3 * l->n, sizeof *out->log_scales);
    out->quats = kiln_take(&c, 4 * l->n, sizeof *out->quats);
    out->opacity_logits = kiln_take(&c, l->n, sizeof *out->opacity_logits);
    out->source_rows = kiln_take(&c, l->n, sizeof *out->source_rows);
    if (l->colour) out->sh0 = kiln_take(&c, 3 * l->n, sizeof *out->sh0);
    if (l->colour && harmonics > 0) out->shN = kiln_take(&c, harmonics * l->n, sizeof *out->shN);
    return c.used;
}

/* A plane in host memory, and where its rows go: of `rows` a column, from `first` on. */
typedef struct {
    const void *to, *from;
    uint64_t columns;
} plane;

/* Copies the columns of a plane; in one copy if there are no other rows. */
static kiln_status copy_plane(const kiln_exec *x, const plane *p, uint64_t rows, uint64_t n,
                              uint64_t first, kiln_error *err)
{
    const uint64_t pieces = rows == n ? 1 : p->columns, words = rows == n ? p->columns * n : n;
    for (uint64_t i = 0; i < pieces; i++)
        KILN_TRY(kiln_device_copy_in(x, (float *)(uintptr_t)p->to + i * rows + first,
                                     (const float *)p->from + i * n, words * sizeof(float), err));
    return KILN_OK;
}

static kiln_status copy_all_planes(const kiln_exec *x, const kiln_draw_chunk *from,
                                   const kiln_draw_chunk *to, uint64_t first, uint32_t sh_degree,
                                   kiln_error *err)
{
    const uint64_t harmonics = kiln_sh_components(sh_degree);
    const plane planes[] = {
        {to->means, from->means, 3},    {to->log_scales, from->log_scales, 3},
        {to->quats, from->quats, 4},    {to->opacity_logits, from->opacity_logits, 1},
        {to->sh0, from->sh0, 3},        {to->source_rows, from->source_rows, 1},
        {to->shN, from->shN, harmonics}};
    for (size_t i = 0; i < sizeof planes / sizeof *planes; i++)
        if (planes[i].to && planes[i].from)
            KILN_TRY(copy_plane(x, &planes[i], to->n, from->n, first, err));
    return kiln_device_wait(x, err); /* the caller may change its arrays afterwards */
}

kiln_status kiln_planes_copy(const kiln_exec *x, const kiln_draw_chunk *from,
                             const kiln_draw_chunk *to, uint64_t first, uint32_t sh_degree,
                             kiln_error *err)
{
    return kiln_settle(x, copy_all_planes(x, from, to, first, sh_degree, err));
}
