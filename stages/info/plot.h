/* plot -- a histogram of one or two sets of numbers, as JSON and as text for a terminal. Pure: it
 * reads no manifest and prints nothing. */
#ifndef KILN_STAGES_INFO_PLOT_H
#define KILN_STAGES_INFO_PLOT_H

#include "base/memory.h"
#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    KILN_PLOT_BARS = 12,
    KILN_PLOT_SERIES = 2,
    KILN_PLOT_COLUMNS_LEAST = 20,
    KILN_PLOT_COLUMNS = 80
};

typedef struct {
    const char *name; /* "before"; "": there is one series, which needs no name */
    /* numbers that were counted, and how many there are; equal where all are counted */
    uint64_t n, of;
    double least, median, most;
    uint64_t bars[KILN_PLOT_BARS];
} kiln_plot_series;

typedef struct {
    const char *title, *unit, *what; /* of the numbers; what is counted: "Gaussians" */
    int n_bars, n_series;
    /* bar i counts numbers from borders[i] to borders[i + 1], ascending */
    double borders[KILN_PLOT_BARS + 1];
    kiln_plot_series series[KILN_PLOT_SERIES];
} kiln_plot;

/* Adds a series of these numbers to plots that have none or were made by this function with the
 * same numbers in `all`: borders are round numbers about all of them. Sorts values. Numbers that
 * are not finite are left out, and count in `of` alone. A series without numbers is not added. */
void kiln_plot_add_values(kiln_plot *p, const char *name, double *values, uint64_t n, double least,
                          double most);
/* The least and most finite one of n values; false: there is none. */
bool kiln_plot_range(const double *values, uint64_t n, double *least, double *most);

/* Makes the JSON of it. NULL: no memory. */
json_t *kiln_plot_json(const kiln_plot *p);
/* The other way round; texts are borrowed from the JSON. False: it is not of kiln_plot_json. */
bool kiln_plot_of_json(const json_t *json, kiln_plot *out);

/* Appends the plot as lines of text, each with its line feed, no wider than `columns` (20 to 80;
 * others count as the nearest of these) characters. ascii: without characters outside ASCII.
 * KILN_E_NOMEM. */
kiln_status kiln_plot_text(const kiln_plot *p, int columns, bool ascii, kiln_buffer *out,
                           kiln_error *err) KILN_MUST_CHECK;

#endif
