/* layers -- layers.def as data: which kinds of layers there are, which stage makes each, and which
 * of them can be drawn.
 *
 * The tables are constant. Functions that take a manifest are called by one thread at a time, as in
 * manifest.h. */
#ifndef KILN_SCHEMA_LAYERS_H
#define KILN_SCHEMA_LAYERS_H

#include "schema/manifest.h"

typedef enum {
#define LAYER(kind, ...) KILN_LAYER_##kind,
#include "schema/layers.def"
    KILN_LAYER_KINDS /* how many there are; also the kind of a name that is none */
} kiln_layer_kind;

/* What a layer holds (layers.def), in ascending order: a layer of a form can do what those of the
 * forms before it can. */
typedef enum {
    KILN_FORM_MEASURE,
    KILN_FORM_LEVELS,
    KILN_FORM_ROWS,
    KILN_FORM_BLOCKS,
    KILN_FORM_CHUNKS,
    KILN_FORM_DRAWABLE = KILN_FORM_ROWS /* the first of them that may hold Gaussians */
} kiln_layer_form;

typedef struct {
    const char *name, *stage, *what;
    kiln_layer_form form;
} kiln_layer_info;

/* by kiln_layer_kind, in the order in which they are made */
extern const kiln_layer_info kiln_layer_kinds[KILN_LAYER_KINDS];

/* Values of options that name a layer (base/option.h): "|source|initial|...". All kinds that can be
 * drawn; those of them in blocks.
 */
extern const char kiln_drawable_names[], kiln_block_layer_names[];

/* KILN_LAYER_KINDS when there is no kind of that name. The second takes the i-th name of one of the
 * lists above. */
kiln_layer_kind kiln_layer_kind_find(const char *name);
kiln_layer_kind kiln_layer_kind_chosen(const char *names, uint32_t i);

/* Is the layer of form LEVELS? */
bool kiln_layer_is_levels(const kiln_layer *l);

/* kiln_layer_get by the kind's number. */
kiln_status kiln_layer_current(kiln_manifest *m, kiln_layer_kind kind, kiln_layer **out,
                               kiln_error *err) KILN_MUST_CHECK;
/* The current layer of the newest kind of at least this form. KILN_E_STALE when there is none;
 * kiln_layer_free. */
kiln_status kiln_layer_newest(kiln_manifest *m, kiln_layer_form least, kiln_layer **out,
                              kiln_error *err) KILN_MUST_CHECK;

#endif
