/* filters -- which rows are meant: --filter-box, --filter-sphere and --filter-value, with the
 * meaning that they have in splat-transform.
 *
 *   box     x,y,z,X,Y,Z       x <= row's x <= X, and so on; "-" or nothing leaves that side open
 *   sphere  x,y,z,radius      nearer to the centre than the radius: a row on the border is outside
 *   value   NAME,CMP,VALUE    NAME CMP VALUE, CMP one of lt lte gt gte eq neq
 *
 * A row is kept when all filters keep it. Coordinates are the scene's, origin added, before any
 * move. NAME is a column of a PLY:
 *
 *   x y z                     coordinates
 *   opacity scale_0..2        opacity 0..1, lengths of the axes; opacity_raw, scale_0_raw as the
 *                             file has them: logit, logarithm
 *   f_dc_0..2                 colour 0..1 (0.5 + 0.282 f_dc); f_dc_0_raw as the file has it; red
 *                             green blue mean the same of Gaussians, and the colour 0..1 of points
 *   rot_0..3 f_rest_N         as the file has them
 *   source_row spacing2       the planes of these names
 *   any other                 the kept column extra/NAME; extra/NAME in full means that plane
 *                             whatever NAME is
 *
 * A number of a row is compared as the double that it is: float32 0.1 is above 0.1. With a value
 * that is not a number no comparison holds but neq.
 *
 * The arithmetic is pinned: the same rows on every machine. All functions are pure; any thread may
 * call them.
 */
#ifndef KILN_STAGES_SELECT_FILTERS_H
#define KILN_STAGES_SELECT_FILTERS_H

#include "base/option.h"
#include "base/status.h"
#include "schema/manifest.h"

#include <stdbool.h>
#include <stdint.h>

enum { KILN_FILTERS_MAX = 32, KILN_FILTER_NAME_MAX = 96 };

typedef enum {
    KILN_FILTER_BOX,
    KILN_FILTER_SPHERE,
    KILN_FILTER_VALUE,
    KILN_FILTER_KINDS
} kiln_filter_kind;
typedef enum {
    KILN_CMP_LT,
    KILN_CMP_LTE,
    KILN_CMP_GT,
    KILN_CMP_GTE,
    KILN_CMP_EQ,
    KILN_CMP_NEQ
} kiln_filter_cmp;

typedef struct {
    kiln_filter_kind kind;
    kiln_filter_cmp cmp; /* of a value */
    /* box: lower, upper corner; sphere: centre, radius; value: as the plane holds it */
    double numbers[6];
    char name[KILN_FILTER_NAME_MAX]; /* of a value: the column as typed */
    uint32_t plane, component;       /* filled by kiln_filters_bind: index of kiln_filters.planes */
} kiln_filter;

/* Without pointers, so that it can be a part of a worker's request. */
typedef struct {
    uint32_t n, n_planes;
    kiln_filter filters[KILN_FILTERS_MAX];
    struct {
        char name[KILN_FILTER_NAME_MAX];
        kiln_type type;
    } planes[KILN_FILTERS_MAX]; /* what the filters look at; filled by kiln_filters_bind */
} kiln_filters;

typedef enum { KILN_CHUNK_NONE, KILN_CHUNK_SOME, KILN_CHUNK_ALL } kiln_chunk_part;

/* The options, for the table of a program that has them; where_...: const char *. make and `kiln
 * pipeline` have them with the stage's name in front, as several stages filter. */
/* clang-format off */
#define KILN_FILTER_OPTIONS(where_boxes, where_spheres, where_values, verb) \
    KILN_OPTION_LIST("filter-box", where_boxes, "x,y,z,X,Y,Z", \
                     verb " only Gaussians with their mean in this box, borders included; '-' leaves a side open", \
                     .brief = verb " only Gaussians in this box", .flags = KILN_FILTER_FLAGS), \
    KILN_OPTION_LIST("filter-sphere", where_spheres, "x,y,z,radius", \
                     verb " only Gaussians with their mean in this sphere, without its border", .brief = verb " only Gaussians in this sphere", .flags = KILN_FILTER_FLAGS), \
    KILN_OPTION_LIST("filter-value", where_values, "NAME,CMP,VALUE", \
                     verb " only Gaussians whose column NAME is lt, lte, gt, gte, eq or neq VALUE; opacity is 0..1, " \
                          "scale_0 a length, f_dc_0 a colour 0..1; opacity_raw and so on, x, source_row and all other " \
                          "columns are as a PLY holds them", \
                     .brief = verb " only rows such as opacity,gte,0.1", .flags = KILN_FILTER_FLAGS)
/* clang-format on */
#define KILN_FILTER_FLAGS (KILN_KEYED | KILN_LATER | KILN_NAMED)

/* Check an item of each list. KILN_E_USAGE. */
kiln_status kiln_filter_box_check(const char *item, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_filter_sphere_check(const char *item, kiln_error *err) KILN_MUST_CHECK;
kiln_status kiln_filter_value_check(const char *item, kiln_error *err) KILN_MUST_CHECK;
/* clang-format off */
#define KILN_FILTER_CHECKS \
    {"filter-box", kiln_filter_box_check}, {"filter-sphere", kiln_filter_sphere_check}, {"filter-value", kiln_filter_value_check}
/* clang-format on */

/* Each text is that of a KILN_OPT_LIST, or NULL. KILN_E_USAGE: an item that cannot be read, or more
 * than KILN_FILTERS_MAX. */
kiln_status kiln_filters_parse(const char *boxes, const char *spheres, const char *values,
                               kiln_filters *out, kiln_error *err) KILN_MUST_CHECK;
/* Finds the planes in a chunk of the layer; other chunks of it have the same. A value of colour
 * needs sample and degree to know what it is compared with, so binding is done once, from a parsed
 * copy. KILN_E_USAGE: the layer has no such column; the sentence lists those that it has. */
kiln_status kiln_filters_bind(kiln_filters *f, const kiln_chunk *sample, uint32_t sh_degree,
                              kiln_error *err) KILN_MUST_CHECK;
/* Does the chunk lie wholly inside or outside, as far as its box and greatest values tell? Says the
 * same of each row as kiln_filters_keep does, to the last bit. f: bound. */
kiln_chunk_part kiln_filters_chunk(const kiln_filters *f, const kiln_chunk *chunk,
                                   const double origin[3]);
/* keep[i] becomes 1 or 0; returns the number of ones. planes[k]: whole plane f->planes[k],
 * [components][n]. f: bound. */
uint64_t kiln_filters_keep(const kiln_filters *f, uint64_t n, const double origin[3],
                           const void *const planes[], uint8_t *keep);

/* Moves the kept rows of a plane of n rows together, component after component, in place; the
 * stride becomes `kept`. */
void kiln_filters_compact(void *plane, kiln_type type, uint32_t components, uint64_t n,
                          const uint8_t *keep, uint64_t kept);

#endif
