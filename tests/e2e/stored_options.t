#!/bin/bash
# Options that earlier runs stored are told: by kiln-info, by the stage at its start, by the pipeline at its end. Those that were
# just given, that have their default, or that --reset takes back are not.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
front() { "$KILN_BIN/kiln" "$@"; }
says() { grep -qxF -- "$1" err || fail "stderr lacks '$1': $(cat err)"; }
silent() { grep -q 'stored' err && fail "$1: $(cat err)"; return 0; }
scene s 3000 2 64x48
db=s/bake/manifest.db

test_step 'a first bake has no stored options' && (
    must 0 front pipeline s; silent "a first bake"
    must 0 front info $db && ! grep -q stored out || fail "a first bake has stored options: $(cat out)"
); result

test_step 'kiln-info names what is stored' && (
    must 0 front prune $db --min-opacity 0.3; silent "what was given on this line"
    must 0 front info $db
    grep -qx 'stored options, in force until kiln-STAGE MANIFEST --reset' out || fail "no heading: $(cat out)"
    grep -qx 'prune     --min-opacity 0.3' out || fail "kiln-info does not name the option: $(cat out)"
); result

test_case 'a stage says what is stored' && (
    must 0 front prune $db; says 'kiln-prune: stored options in force until --reset: --min-opacity 0.3'
    must 0 front prune $db --dry-run; says 'kiln-prune: stored options in force until --reset: --min-opacity 0.3'
    must 0 front prune $db --quiet && [ ! -s err ] || fail "--quiet says $(cat err)"
); result

test_step 'what is given on this line is not said' && (
    must 0 front prune $db --min-opacity 0.4; silent "the stored value gives way to that of this line"
    must 0 front knn $db; silent "options of another stage"
); result

test_step 'a switch, a switch that is off, a text and a default' && (
    must 0 front prune $db --merge --crop-sphere 0,0,0,50 --max-extent auto
    must 0 front prune $db
    says 'kiln-prune: stored options in force until --reset: --crop-sphere 0,0,0,50 --merge --min-opacity 0.4'
    must 0 front info $db
    grep -qx 'prune     --crop-sphere 0,0,0,50 --merge --min-opacity 0.4' out || fail "kiln-info: $(cat out)"
    must 0 front info $db --json
    python3 -c 'import json, sys
d = {s["name"]: s["stored_options"] for s in json.load(open("out"))["stages"]}
assert d["prune"] == {"crop-sphere": "0,0,0,50", "merge": "yes", "min-opacity": "0.4"} and d["knn"] == {}, d' || fail "kiln-info --json"
); result

test_step 'a value that is replaced' && (
    must 0 front prune $db --no-merge --crop-sphere 0,0,0,60
    must 0 front prune $db --merge
    says 'kiln-prune: stored options in force until --reset: --crop-sphere 0,0,0,60 --min-opacity 0.4'
    must 0 front prune $db --no-merge --min-opacity 0.25
); result

test_step 'a long value is cut, and what no option of today is, is not shown' && (
    must 0 front pipeline s --near 0.125
    py odd_parameters $db || fail "sqlite"
    must 0 front info $db
    ! grep -q '^chunk.*--max' out || fail "a value that the stage refuses is shown as one in force: $(cat out)"
    ! grep -q -- '--old' out || fail "an option that no stage has is shown: $(cat out)"
    grep -qE '^import    --photos (/p){20}\.\.\.$' out || fail "a long value is not cut: $(cat out)"
    [ -z "$(awk 'length > 80' out)" ] || fail "kiln-info is wider than 80 columns: $(awk 'length > 80' out)"
    python3 -c 'import sqlite3, sys; db = sqlite3.connect(sys.argv[1])
db.execute("DELETE FROM parameter WHERE name IN (\"old\", \"max\", \"photos\")")
db.commit()' $db || fail sqlite
); result

end='kiln pipeline: stored options in force until --reset: %s'

test_case 'the pipeline says what is stored, in its last line' && (
    must 0 front pipeline s
    # shellcheck disable=SC2059 # the format
    says "$(printf "$end" 'prune --crop-sphere 0,0,0,60 --min-opacity 0.25, tiles --near 0.125, render --near 0.125')"
    [ "$(tail -n 1 err)" = "$(grep 'kiln pipeline: stored' err)" ] || fail "it is not the last line: $(cat err)"
    must 0 front pipeline s --quiet && [ ! -s err ] || fail "--quiet says $(cat err)"
); result

test_case 'the pipeline says what is stored of the stages that ran' && (
    must 0 front pipeline s --near 0.125 --stages prune,tiles
    # shellcheck disable=SC2059
    says "$(printf "$end" 'prune --crop-sphere 0,0,0,60 --min-opacity 0.25')"
); result

test_step '--prune-reset' && (
    must 0 front pipeline s --prune-reset
    # shellcheck disable=SC2059
    says "$(printf "$end" 'tiles --near 0.125, render --near 0.125')"
); result

test_case 'export says the formats where it writes them, and not where a name says the format' && (
    must 0 front export $db --format splat,ply,spz --spz-version 4 --sh-degree 1
    all='kiln-export: stored options in force until --reset: --format splat,ply,spz --sh-degree 1 --spz-version 4'
    must 0 front export $db; says "$all"
    for name in x.ply x.glb; do
        must 0 front export $db -o $name; says 'kiln-export: stored options in force until --reset: --sh-degree 1'
    done
    must 0 front export $db -o x.spz; says 'kiln-export: stored options in force until --reset: --sh-degree 1 --spz-version 4'
    mkdir to && must 0 front export $db -o to; says "$all"
); result

test_case '--reset of all stages' && (
    must 0 front pipeline s --reset; silent "--reset of all stages"
    must 0 front info $db && ! grep -q stored out || fail "--reset left options: $(cat out)"
); result
