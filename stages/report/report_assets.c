/* report_assets -- see the header. Paths are relative to the repository root, where every build runs; report.mk makes this object
 * depend on them. */
#include "stages/report/report_assets.h"

#define TEXT(symbol, path)                             \
    __asm__(".pushsection .rodata\n"                   \
            ".global " symbol "\n"                     \
            ".type " symbol ", @object\n" symbol ":\n" \
            ".incbin \"" path "\"\n"                   \
            ".byte 0\n"                                \
            ".size " symbol ", . - " symbol "\n"       \
            ".popsection\n")

TEXT("kiln_report_css", "stages/report/report.css");
TEXT("kiln_report_js", "stages/report/report.js");
