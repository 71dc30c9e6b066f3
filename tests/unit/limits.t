#!/bin/bash
# Time limits are watchdogs against hangs (tests/run): no test states one below the common limit, which would cut off a healthy test
# on a busy machine.
set -u
common=$(sed -n 's/^WATCHDOG=\([0-9]*\)$/\1/p' tests/run)
[ "${common:-0}" -ge 600 ] || { echo "tests/run ends every test after '$common' seconds"; exit 1; }
low=$(grep -rnE '^(#| \*) .*time-limit: *[0-9]+' tests --include='*.t' --include='*.c' --include=cmd |
    awk -F 'time-limit: *' -v common="$common" '$2 + 0 < common')
[ -z "$low" ] || { printf 'these time limits are below %s seconds:\n%s\n' "$common" "$low"; exit 1; }
