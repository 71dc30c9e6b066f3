/* scan_check -- a scan that another run has stored: its bytes are a stranger's until they are
 * checked (scan.h). */
#include "stages/import/scan.h"

#include "base/checked.h"
#include "base/harmonics.h"

#include <math.h>
#include <string.h>

enum { SH_DEGREE_MOST = 4 };

static bool text_ends(const char *text, size_t capacity)
{
    return memchr(text, '\0', capacity) != NULL;
}
#define ENDS(array) text_ends(array, sizeof(array))

/* Reading a bool of another value than 0 and 1 is undefined, so its byte is looked at. */
static bool is_bool(const bool *b)
{
    unsigned char byte;
    memcpy(&byte, b, 1);
    return byte <= 1;
}

/* Enumerations may hold any number. */
static bool is_extra(const kiln_extra *e)
{
    return ENDS(e->name) && e->name[0] && (unsigned)e->type <= KILN_TYPE_F64 &&
           (unsigned)e->keep <= KILN_KEEP_IF_LOSSY && e->axis >= -1 && e->axis <= 2 &&
           is_bool(&e->raw);
}

static bool is_info(const kiln_source_info *info)
{
    bool sound = (unsigned)info->kind <= KILN_SCENE_SPLATS &&
                 (unsigned)info->dialect <= KILN_DIALECT_2DGS && info->n_rows < UINT32_MAX &&
                 info->sh_degree <= SH_DEGREE_MOST && info->n_extras <= KILN_EXTRAS_MAX;
    sound = sound && is_bool(&info->antialiased) && is_bool(&info->wide) &&
            is_bool(&info->has_rgb) && is_bool(&info->rgb_u8) && is_bool(&info->logs_as_read) &&
            is_bool(&info->folded) && is_bool(&info->has_none) && is_bool(&info->needs_full_scan);
    sound = sound && ENDS(info->up_axis) && ENDS(info->axes) && ENDS(info->writer) &&
            ENDS(info->layout) && ENDS(info->notes) && ENDS(info->remarks);
    for (uint32_t e = 0; sound && e < info->n_extras; e++) sound = is_extra(&info->extras[e]);
    return sound;
}

static bool is_scan(const kiln_scan *s)
{
    bool sound = is_info(&s->info) && s->n_blocks == kiln_div_up(s->info.n_rows, KILN_BLOCK_ROWS);
    for (int a = 0; a < 3; a++) sound = sound && isfinite(s->origin[a]);
    for (uint32_t e = 0; e < KILN_EXTRAS_MAX; e++) sound = sound && s->keep[e] <= 1;
    return sound;
}

kiln_status kiln_scan_check(const kiln_scan *scans, uint32_t n, kiln_error *err)
{
    for (uint32_t k = 0; k < n; k++)
        if (!is_scan(&scans[k]))
            return kiln_fail(err, KILN_E_IO, "the scan names file %u, which does not exist", k);
    return KILN_OK;
}
