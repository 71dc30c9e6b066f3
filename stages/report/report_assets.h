/* report_assets -- report.css and report.js, byte for byte. NUL-terminated. */
#ifndef KILN_STAGES_REPORT_ASSETS_H
#define KILN_STAGES_REPORT_ASSETS_H

extern const char kiln_report_css[], kiln_report_js[];

#endif
