/* export_options -- the options of kiln-export, and what they say of the rows. */
#ifndef KILN_STAGES_EXPORT_EXPORT_OPTIONS_H
#define KILN_STAGES_EXPORT_EXPORT_OPTIONS_H

#include "base/option.h"
#include "stages/formats/writer.h"

typedef struct {
    const char *format, *chunks, *output, *add, *geo, *level;
    const char *filter_boxes, *filter_spheres, *filter_values;
    double translate[3], rotate[3], scale, min_psnr, percent;
    uint64_t count;
    uint32_t layer, order, frame, sh_degree, report_loss, spz_version;
    bool keep_origin, for_viewers, no_normals, list_formats, overwrite;
    uint32_t columns;
} kiln_export_options;
extern kiln_export_options kiln_export_given; /* what the command line and the manifest say */
extern const kiln_cli kiln_export_cli;

/* --geo: a place on the globe; *placed: it is one. KILN_E_USAGE. */
kiln_status kiln_export_geo(const char *text, double at[3], bool *placed,
                            kiln_error *err) KILN_MUST_CHECK;
/* --spz-version: in list[*n], as chosen by --format and -o, the format spz becomes that of the
 * version, each once. KILN_E_USAGE: given, it contradicts a format of the list or fits none. */
kiln_status kiln_export_spz_version(const kiln_writer *list[], uint32_t *n,
                                    kiln_error *err) KILN_MUST_CHECK;
/* Fills in what the options say of all rows: order, columns, frame, filters, moves.
 * KILN_E_USAGE. */
kiln_status kiln_export_wishes(kiln_export *e, kiln_error *err) KILN_MUST_CHECK;

#endif
