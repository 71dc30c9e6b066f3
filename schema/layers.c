/* layers -- layers.def as arrays, and what is asked of the order of its rows. */
#include "schema/layers.h"

#include <string.h>

const kiln_layer_info kiln_layer_kinds[KILN_LAYER_KINDS] = {
#define LAYER(kind, stage, made, form, what) {#kind, #stage, what, KILN_FORM_##form},
#include "schema/layers.def"
};

#define LAYER(name, ...)                                                                       \
    _Static_assert(sizeof #name <= sizeof((kiln_layer *)0)->kind, "the name of a kind is too " \
                                                                  "long");
#include "schema/layers.def"

#define NOT_MEASURE(text)
#define NOT_LEVELS(text)
#define NOT_ROWS(text) text
#define NOT_BLOCKS(text) text
#define NOT_CHUNKS(text) text
const char kiln_drawable_names[] = ""
#define LAYER(kind, stage, made, form, what) NOT_##form("|" #kind)
#include "schema/layers.def"
    ;

#undef NOT_CHUNKS
#define NOT_CHUNKS(text)
const char kiln_block_layer_names[] = ""
#define LAYER(kind, stage, made, form, what) NOT_##form("|" #kind)
#include "schema/layers.def"
    ;

static kiln_layer_kind find_layer_kind(const char *name, size_t length)
{
    int k = 0;
    for (; k < KILN_LAYER_KINDS; k++)
        if (strlen(kiln_layer_kinds[k].name) == length &&
            memcmp(kiln_layer_kinds[k].name, name, length) == 0)
            break;
    return (kiln_layer_kind)k;
}

kiln_layer_kind kiln_layer_kind_find(const char *name)
{
    return find_layer_kind(name, strlen(name));
}

kiln_layer_kind kiln_layer_kind_chosen(const char *names, uint32_t i)
{
    const char *name = names + 1; /* each begins with '|' */
    for (; i > 0 && *name; i--) {
        name += strcspn(name, "|");
        if (*name) name++;
    }
    return find_layer_kind(name, strcspn(name, "|"));
}

bool kiln_layer_is_levels(const kiln_layer *l)
{
    const kiln_layer_kind kind = kiln_layer_kind_find(l->kind);
    return kind != KILN_LAYER_KINDS && kiln_layer_kinds[kind].form == KILN_FORM_LEVELS;
}

kiln_status kiln_layer_current(kiln_manifest *m, kiln_layer_kind kind, kiln_layer **out,
                               kiln_error *err)
{
    return kiln_layer_get(m, kiln_layer_kinds[kind].name, out, err);
}

/* Where there is none, the sentence is that of the oldest kind: it is the one that every bake
 * makes. */
kiln_status kiln_layer_newest(kiln_manifest *m, kiln_layer_form least, kiln_layer **out,
                              kiln_error *err)
{
    kiln_status st = KILN_E_STALE;
    for (int k = KILN_LAYER_KINDS; k-- > 0 && st == KILN_E_STALE;)
        if (kiln_layer_kinds[k].form >= least)
            st = kiln_layer_get(m, kiln_layer_kinds[k].name, out, err);
    return st;
}

kiln_status kiln_layer_get_drawn(kiln_manifest *m, kiln_layer **out, kiln_error *err)
{
    return kiln_layer_newest(m, KILN_FORM_CHUNKS, out, err);
}
