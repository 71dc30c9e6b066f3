/* version_1 -- makes a manifest of schema version 1 of an open one, as a program of that time would
 * have left it: later tables stay. The text of what version 2 has replaced is that of
 * schema/manifest.sql. */
#ifndef KILN_TESTS_VERSION_1_H
#define KILN_TESTS_VERSION_1_H

#include "manifest_fixture.h"
#include "schema/manifest_internal.h"

static inline void make_version_1(kiln_manifest *m)
{
    const char *const view = strstr(kiln_manifest_sql, "\nCREATE VIEW digest_line"),
                      *const end = strstr(view, "\n-- LATER TABLES");
    char *sql = calloc(1, (size_t)(end - view) + 1);
    assert_non_null(sql);
    memcpy(sql, view, (size_t)(end - view));
    run_sql(m, "DROP TABLE level_error; DROP TABLE level_origin; DROP VIEW digest_line; PRAGMA "
               "user_version = 1");
    run_sql(m, strstr(sql, "CREATE"));
    free(sql);
}

#endif
