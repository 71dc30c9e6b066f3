#!/bin/bash
# What the stages say fits a terminal of 80 columns, is short by default, and is nothing with --quiet.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
front() { "$KILN_BIN/kiln" "$@"; }
# WHAT: out and err have no line of more than 80 characters, but for warnings, which a terminal gets in several lines, and what is
# told of a slow stage's progress
narrow() {
    local wide
    wide=$(awk 'length > 80 && !/^kiln[- ][a-z]*: warning: / && !/ of [0-9]+ units, /' out err)
    [ -z "$wide" ] || fail "$1 is wider than 80 columns: $wide"
}
lines() { wc -l <out; }

kiln generate demo s --gaussians 3000 --cameras 5 --size 64x48 &&
    kiln generate demo many --gaussians 2000 --cameras 30 --size 32x24 ||
    fail generate

test_step 'few cameras with photos: a line for each' && (
    must 0 front pipeline s --out a && narrow 'kiln pipeline'
    [ "$(lines)" -le 24 ] || fail "the output of five cameras has $(lines) lines: $(cat out)"
    for k in 0 1 2 3 4; do
        [ "$(grep -c "^view_0$k  *[0-9.]* *[0-9.]*$" out)" = 1 ] || fail "camera $k has no line of its own: $(cat out)"
    done
); result

test_step 'thirty cameras: a summary that names the worst' && (
    must 0 front pipeline many --out b && narrow 'kiln pipeline with 30 cameras'
    ! grep -q '^view_' out || fail "30 cameras have a line each: $(cat out)"
    grep -qE '^  psnr from [0-9.]+ dB \(view_[0-9]+\) to [0-9.]+ dB$' out || fail "the worst camera is not named: $(cat out)"
); result

test_case '--verbose has a line for each camera' && (
    must 0 front pipeline many --out b --verbose --render-force && mv out all
    [ "$(grep -c '^view_' all)" -ge 30 ] || fail "--verbose has no line for each camera"
    [ -z "$(awk 'length > 80' all)" ] || fail "--verbose is wider than 80 columns: $(awk 'length > 80' all)"
); result

test_step 'a scene without photos, and a file without cameras' && (
    rm -r many/images && must 0 front pipeline many --out c && narrow 'a scene without photos'
    must 0 front pipeline s/scene.ply --out d && narrow 'a file without cameras'
); result

test_case 'nothing to do is one line a stage, and no table' && (
    must 0 front pipeline s --out a && narrow 'a second run'
    [ "$(grep -c ': nothing to do, ' err)" = "$(wc -l <err)" ] ||
        fail "a second run says more than that there is nothing to do: $(cat err)"
    [ "$(lines)" = 5 ] || fail "a second run prints more than four places and what looks at them: $(cat out)"
); result

test_case 'sentences are wrapped on a terminal, and one line in a file' && (
    command -v script >/dev/null || skip 'no script, which stands in for a terminal'
    must 0 "$KILN_BIN/kiln-render" a/manifest.db --background white --format none
    grep -q 'warning: where nothing is drawn.* fits the photos$' err || fail "no sentence on one line: $(cat err)"
    script -qec "'$KILN_BIN/kiln-render' a/manifest.db --background white --format none --force" typescript >/dev/null ||
        fail script
    # a progress line that is drawn again begins with a carriage return, and is a line of its own here: a slow machine draws many
    sed 's/\r$//; s/\x1b\[K//g; 1d; $d' typescript | tr '\r' '\n' >err
    grep -q '^kiln-render: warning: where nothing is drawn' err || fail "no warning on a terminal: $(cat err)"
    [ -z "$(awk 'length > 80' err)" ] || fail "a terminal gets a line of more than 80 columns: $(cat err)"
    tr -s '\n ' ' ' <err | grep -q 'warning: where nothing is drawn.* fits the photos ' ||
        fail "words are lost on a terminal: $(cat err)"
); result

test_step 'what changed has its row and no other: no table of zeros' && (
    must 0 "$KILN_BIN/kiln-prune" a/manifest.db --force
    ! grep -q '^rule' out || fail "a table of zeros: $(cat out)"
    must 0 "$KILN_BIN/kiln-prune" a/manifest.db --min-opacity 0.5 && narrow 'kiln-prune'
    grep -qE '^min-opacity +0.5 +[1-9][0-9]* +0 ' out || fail "the rule that dropped has no row: $(cat out)"
    ! grep -qE '^[a-z-]+ +[^ ]+ +0 +0 ' out || fail "a rule that did nothing has a row: $(cat out)"
); result

test_case 'runs that only look say everything' && (
    must 0 "$KILN_BIN/kiln-prune" a/manifest.db --dry-run --merge --against b/manifest.db && narrow 'kiln-prune --dry-run'
    grep -q '^longest axis  *before  *after$' out || fail "a dry run has no histogram: $(cat out)"
    must 0 "$KILN_BIN/kiln-tiles" d/manifest.db --predict && narrow 'kiln-tiles --predict'
    [ "$(grep -cE '^(orbit|inner)_' out)" = 8 ] || fail "a prediction has no line for each camera: $(cat out)"
); result

# --quiet: nothing is printed, by runs that only look neither; --json is
silent() { # PROGRAM [argument...]
    local program=$1; shift
    must 0 "$KILN_BIN/kiln-$program" "$@" --quiet
    [ ! -s out ] && [ ! -s err ] || fail "kiln-$program $* --quiet says $(cat out err)"
}

test_case '--quiet: runs that only look print nothing; --json is' && (
    must 0 "$KILN_BIN/kiln-gc" a/manifest.db -n && grep -q '^layers  *[1-9]' out ||
        fail "there is nothing for gc to drop: $(cat out)"
    for options in '' --json; do
        for run in 'prune a/manifest.db --dry-run --merge --against b/manifest.db' 'tiles d/manifest.db --predict' \
            'lod d/manifest.db --dry-run' 'gc a/manifest.db --dry-run'; do
            # shellcheck disable=SC2086 # words
            [ "$options" ] || silent $run
            # shellcheck disable=SC2086
            [ ! "$options" ] ||
                { must 0 "$KILN_BIN/kiln" $run --quiet --json && python3 -m json.tool out >/dev/null || fail "no JSON: $run"; }
        done
    done
); result

test_step '--quiet: runs that do something print nothing' && (
    silent gc a/manifest.db
    silent report a/manifest.db
    silent generate points points --gaussians 10
    silent generate scene scene --gaussians 10 --cameras 1 --size 16x16
    silent import s e.db
    for stage in $STAGES; do silent "$stage" e.db; done
); result

# kiln-info fits the terminal, and names some of many cameras; --verbose and --json name all
info() { must 0 "$KILN_BIN/kiln-info" "$@" && narrow "kiln-info $*"; }

test_case 'kiln-info names some of many cameras' && (
    info a/manifest.db && [ "$(grep -c '^view_' out)" = 5 ] || fail "not all of five cameras: $(cat out)"
    info b/manifest.db && [ "$(grep -c '^view_' out)" = 20 ] || fail "not 20 of 30 cameras: $(cat out)"
    grep -qx '... and 10 more: --verbose or --json' out || fail "it does not say how many more there are: $(cat out)"
    grep -qE '^mean +test' b/manifest.db out || fail "no mean: $(cat out)"
); result

test_case 'kiln-info --verbose and --json name all cameras' && (
    info b/manifest.db --verbose && [ "$(grep -c '^view_' out)" = 30 ] || fail "--verbose lacks cameras"
    must 0 "$KILN_BIN/kiln-info" b/manifest.db --json
    python3 -c 'import json; assert len(json.load(open("out"))["cameras"]) == 30' || fail "--json lacks cameras"
); result

test_case 'kiln-info --lod fits the terminal' && (
    kiln lod b/manifest.db >/dev/null && info b/manifest.db --lod
); result

test_case 'long names of cameras are cut, in characters' && (
    kiln import s f.db >/dev/null && py long_names f.db || fail "long names"
    must 0 "$KILN_BIN/kiln-info" f.db
    grep -q '^\.\.\.cture_one_of_the_most train ' out || fail "the end of a long name is not shown: $(cat out)"
    python3 - out <<'P' || fail "wider than 80 columns"
import sys
lines = open(sys.argv[1], encoding="utf-8").read().splitlines()
assert max(map(len, lines)) <= 80 and any(l.startswith("..." + "\u00e4\u00f6\u00fc" * 7 + " train") for l in lines), lines
P
); result

test_case '--quiet: what answers a question answers it' && (
    for run in 'info e.db' 'verify e.db' 'verify e.db --digest' 'compare b/renders/view_00.png b/renders/view_01.png' \
        'import s new.db --list'; do
        # shellcheck disable=SC2086 # words
        must 0 "$KILN_BIN/kiln" $run --quiet && [ -s out ] || fail "kiln $run --quiet is silent"
    done
); result
