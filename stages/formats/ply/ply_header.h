/* ply_header -- the text in front of a PLY file's rows, parsed and checked against the size of the
 * file.
 *
 *   ply LF
 *   format (ascii | binary_little_endian | binary_big_endian) 1.0 LF
 *   comment any text LF                 obj_info any text LF
 *   element NAME COUNT LF               then its properties
 *   property TYPE NAME LF               property list COUNTTYPE ITEMTYPE NAME LF
 *   end_header LF                       the rows follow, in header order, without padding
 *
 * Lines end with LF or CR LF. The element `vertex` is kept in detail, and what a compressed PLY
 * packs beside it; other elements matter by their size.
 */
#ifndef KILN_STAGES_FORMATS_PLY_PLY_HEADER_H
#define KILN_STAGES_FORMATS_PLY_PLY_HEADER_H

#include "base/memory.h"
#include "base/status.h"
#include "schema/manifest.h"

#include <stdbool.h>
#include <stdint.h>

enum { KILN_PLY_HEADER_MAX = 1 << 20, KILN_PLY_COLUMNS_MAX = 1024, KILN_PLY_PACKED_MAX = 64 };

typedef enum { KILN_PLY_ASCII, KILN_PLY_LITTLE, KILN_PLY_BIG } kiln_ply_format;

typedef struct {
    char name[64];
    kiln_type type;
    uint32_t offset; /* in a binary row */
} kiln_ply_property;

/* `chunk` or `sh` of a compressed PLY. */
typedef struct {
    bool there;
    /* declared twice, a property twice, or more than KILN_PLY_PACKED_MAX properties */
    bool unusable;
    bool behind; /* vertex */
    uint64_t n_rows;
    uint64_t offset;    /* binary: of its first row in the file */
    uint64_t row_bytes; /* at most 512 where not unusable */
    uint32_t n_columns;
    kiln_ply_property columns[KILN_PLY_PACKED_MAX];
} kiln_ply_element;

typedef struct {
    kiln_ply_format format;
    uint64_t file_bytes;
    uint64_t data_offset;    /* first byte behind the header */
    uint64_t n_rows;         /* of vertex */
    uint32_t row_bytes;      /* of vertex; ascii rows are decoded to the same layout */
    uint64_t vertex_offset;  /* binary: first vertex row */
    uint64_t lines_before;   /* ascii: rows of elements in front of vertex */
    uint64_t trailing_bytes; /* binary: behind the last element, where its end is known */
    bool more_elements;      /* something follows vertex */
    bool has_lists;          /* in any element: what lies where is not known */
    bool has_codebook;       /* an element of INRIA's reduced dialect */
    kiln_ply_element chunk, sh;
    uint32_t n_columns;
    kiln_ply_property *columns; /* owned */
    /* "c text\0" and "o text\0" for each comment and obj_info line, as bytes */
    kiln_buffer comments;
    uint32_t n_comments;
} kiln_ply_header;

/* KILN_E_INPUT with the line and what is wrong with it. kiln_ply_header_release afterwards in any
 * case. */
kiln_status kiln_ply_header_read(int fd, const char *path, kiln_ply_header *out,
                                 kiln_error *err) KILN_MUST_CHECK;
void kiln_ply_header_release(kiln_ply_header *h);
/* Of readers of PLY: all is said by the first word. What is more certain than that is above it. */
enum { KILN_PLY_SCORE = 95 };
/* By the beginning of a file: a PLY. */
bool kiln_ply_begins(const unsigned char *head, size_t len);
/* Of a PLY: a compressed PLY, which has an element `chunk` or properties packed_... */
bool kiln_ply_is_compressed(const unsigned char *head, size_t len);

/* "float" <-> KILN_TYPE_F32; every spelling in use. */
bool kiln_ply_type_find(const char *word, kiln_type *out);
const char *kiln_ply_type_name(kiln_type t);

#endif
