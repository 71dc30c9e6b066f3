#!/usr/bin/env bash
# Progress of `kiln pipeline`: stage k of n and about how long the bake still takes, as lines in a file and as a bar of at most 80
# columns on a terminal. The workers are stopped for a while, so that there is time to tell something. Where nothing is to be done,
# and with --quiet, nothing is told.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
command -v python3 >/dev/null || skip 'python3 is missing'
scene s 3000 3 96x64

# slow SECONDS STAGE HOW command...: its workers are stopped for so long when they first work for a stage; stderr is a file or a pty
# of 80 columns. Writes `told`.

test_step 'a file: a line every few seconds' && (
    must 0 py slow 5.2 import file "$KILN_BIN/kiln" pipeline s
    grep -qE '^kiln-[a-z]+: .*: [0-9]+ of [0-9]+ units, .*; stage [1-7] of 7(, bake: about [0-9]+ (s|min) left)?$' told ||
        fail "no line of the whole: $(cat told)"
    ! grep -q $'[\r\x1b]' told || fail "a file has a bar: $(cat -v told)"
); result

# A worker may end before it is stopped: then another option is tried.
stopped() { # PATTERN command...: on a terminal, with --min-opacity, until what is told has PATTERN
    local pattern=$1 i
    for i in 1 2 3 4 5 6 7 8; do
        opacity=$((opacity + 1))
        must 0 py slow 0.8 prune pty "${@:2}" --min-opacity 0.$opacity
        grep -q "$pattern" told && return
    done
    fail "'$pattern' is never told: $(cat -v told)"
}
opacity=300

test_case 'a terminal: a bar, and how long it takes' && (
    stopped 'stage . of 7: .*\[' "$KILN_BIN/kiln" pipeline s
    py bar || fail "on a terminal: $(cat -v told)"
); result

test_case 'nothing to do' && (
    must 0 "$KILN_BIN/kiln" pipeline s
    ! grep -qE 'stage [0-9] of|left' err || fail "nothing is done, but: $(cat err)"
); result

test_case '--quiet' && (
    must 0 py slow 0.8 prune pty "$KILN_BIN/kiln" pipeline s --min-opacity 0.25 --quiet
    [ ! -s told ] || fail "--quiet tells $(cat -v told)"
); result

test_case 'a single stage has its own line alone' && (
    opacity=600
    stopped units/s "$KILN_BIN/kiln-prune" s/bake/manifest.db
    ! grep -qE 'stage [0-9]|bake:' told || fail "a single stage tells $(cat -v told)"
); result
