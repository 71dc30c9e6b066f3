/* report_assets -- see the header. report.mk makes this object depend on the files. */
#include "stages/report/report_assets.h"

#include "base/embed.h"

KILN_EMBED("kiln_report_css", "stages/report/report.css");
KILN_EMBED("kiln_report_js", "stages/report/report.js");
