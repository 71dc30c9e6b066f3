#!/bin/bash
# Pages and comments name what is there: each kiln_ and KILN_ name is one of the code, each link and path of a page leads to a file.
# A DESIGN.md has at most 150 lines of 120 characters, all of them together 220 KB. pages.py has the rules and tries each of them.
set -u
command -v python3 >/dev/null || { echo 'no python3'; exit 77; }
python3 tests/unit/pages.py --try && python3 tests/unit/pages.py
