/* Versions of what SplatKiln is made of: where a library says both, the one that is loaded and the
 * one it was compiled with. */
#include "base/option.h"
#include "stages/doctor/doctor.h"

#include <isa-l.h>
#include <jansson.h>
#include <stdio.h> /* before jpeglib.h, which lacks it */

#include <jpeglib.h>
#include <png.h>
#include <sqlite3.h>
#include <string.h>
#include <xxhash.h>
#include <zlib.h>
#include <zstd.h>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#ifdef LIBJPEG_TURBO_VERSION
#define JPEG_VERSION "turbo " TEXT(LIBJPEG_TURBO_VERSION)
#else
#define JPEG_VERSION TEXT(JPEG_LIB_VERSION)
#endif
#define ISAL TEXT(ISAL_MAJOR_VERSION) "." TEXT(ISAL_MINOR_VERSION) "." TEXT(ISAL_PATCH_VERSION)

enum { SQLITE_MULTI_THREAD_LEAST = 1 }; /* sqlite3_threadsafe(): 0 has no mutexes at all */

static void compare_library(kiln_doctor *d, const char *name, const char *loaded,
                            const char *compiled)
{
    if (strcmp(loaded, compiled) == 0) return;
    kiln_doctor_find(
        d, KILN_NOTE, KILN_OK,
        "%s %s is loaded, but SplatKiln was compiled with %s: this works if both have the same "
        "major version",
        name, loaded, compiled);
}

static void check_sqlite(kiln_doctor *d)
{
    if (sqlite3_threadsafe() < SQLITE_MULTI_THREAD_LEAST)
        kiln_doctor_find(
            d, KILN_ILL, KILN_E_BUG,
            "SQLite %s was compiled with THREADSAFE=0, which several threads cannot share; "
            "install your distribution's libsqlite3",
            sqlite3_libversion());
    if (sqlite3_compileoption_used("OMIT_WAL"))
        kiln_doctor_find(d, KILN_ILL, KILN_E_BUG,
                         "SQLite %s was compiled without WAL, which SplatKiln needs to write a "
                         "manifest; install "
                         "your distribution's libsqlite3",
                         sqlite3_libversion());
}

void kiln_doctor_libraries(kiln_doctor *d)
{
    char xxhash[32], png[32];
    const unsigned x = XXH_versionNumber(), p = (unsigned)png_access_version_number();
    (void)snprintf(xxhash, sizeof xxhash, "%u.%u.%u", x / 10000, x / 100 % 100, x % 100);
    (void)snprintf(png, sizeof png, "%u.%u.%u", p / 10000, p / 100 % 100, p % 100);
    kiln_doctor_line(d, "SplatKiln %s", kiln_version);
    kiln_doctor_line(d,
                     "libraries: SQLite %s (THREADSAFE=%d), zstd %s, libpng %s, libjpeg %s, zlib "
                     "%s, ISA-L %s, xxHash %s, jansson %s",
                     sqlite3_libversion(), sqlite3_threadsafe(), ZSTD_versionString(), png,
                     JPEG_VERSION, zlibVersion(), ISAL, xxhash, JANSSON_VERSION);
    kiln_doctor_set(d, "splatkiln", json_string(kiln_version));
    kiln_doctor_set(d, "libraries",
                    json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "sqlite",
                              sqlite3_libversion(), "sqlite_threadsafe", sqlite3_threadsafe(),
                              "zstd", ZSTD_versionString(), "libpng", png, "libjpeg", JPEG_VERSION,
                              "zlib", zlibVersion(), "isal", ISAL, "xxhash", xxhash, "jansson",
                              JANSSON_VERSION));
    compare_library(d, "SQLite", sqlite3_libversion(), SQLITE_VERSION);
    compare_library(d, "zstd", ZSTD_versionString(), ZSTD_VERSION_STRING);
    compare_library(d, "libpng", png, PNG_LIBPNG_VER_STRING);
    compare_library(d, "zlib", zlibVersion(), ZLIB_VERSION);
    check_sqlite(d);
}
