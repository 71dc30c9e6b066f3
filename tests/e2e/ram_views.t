#!/usr/bin/env bash
# Programs that take no --ram are small with many cameras, seen from outside: what they hold of a camera is its texts and numbers,
# not rows with room for the longest path. 3,000 cameras with tile tables and rows of pictures; as they were, serve took 168 MiB
# here, report 114, info 66 and verify 47.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip 'no python3'
export PYTHONDONTWRITEBYTECODE=1
. tests/e2e/ram.sh
SERVE=$PWD/tests/e2e/serve.py
cd "$KILN_TMP" || exit 1
scene s 3000 3000 32x32
bake s s.db
kiln lod s.db >/dev/null || fail "lod"

mib() { echo "$((($1 + 1048575) >> 20))"; }
# small MIB PROGRAM [arguments]
small() {
    local most=$1; shift
    "$RAM_WATCH" peak "$KILN_BIN/kiln-$1" "${@:2}" --threads 2 >out 2>err || { cat err >&2; fail "exit $?: $*"; }
    read -r ram_outside _ _ _ <peak
    [ "$(mib "$ram_outside")" -le "$most" ] || fail "$*: $(mib "$ram_outside") MiB were taken, not $most at most"
}

test_case 'kiln-report is small' && (
    small 40 report s.db -o report.html
); result

test_case 'kiln-info is small' && (
    small 20 info s.db
); result

test_case 'kiln-info --json is small' && (
    small 40 info s.db --json
); result

test_case 'kiln-verify is small' && (
    small 30 verify s.db --ram 200M
); result

test_case 'kiln-gc is small' && (
    small 20 gc s.db
); result

test_case 'kiln-serve is small' && (
    read -r idle ram_outside < <(python3 "$SERVE" ram "$KILN_BIN/kiln-serve" s.db "$RAM_WATCH") || fail "serve"
    [ "$(mib "$idle")" -le 20 ] && [ "$(mib "$ram_outside")" -le 60 ] ||
        fail "serve: $(mib "$idle") MiB idle, $(mib "$ram_outside") asked"
); result

test_case 'a page with the cameras in it, under the least --ram that is named' && (
    refused 1M 2 export s.db --format html -o page.html
    watched "${ram_least}M" 2 export s.db --format html -o page.html ||
        { cat err >&2; fail "--ram ${ram_least}M was named, and is refused"; }
    [ "$ram_outside" -le "$ram_cap" ] || fail "html: $(mib "$ram_outside") MiB were taken under --ram ${ram_least}M"
    [ "$ram_least" -le 90 ] || fail "html: ${ram_least}M is named as the least"
); result
