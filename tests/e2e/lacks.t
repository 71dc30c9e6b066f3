#!/usr/bin/env bash
# What a user reads of a bake that lacks something, and of options that cannot be meant: counts of what is quarantined, what binds
# the memory, and exit 2 for slips.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
scene s 150000 3 64x48
faulty() { local fault=$1; shift; KILN_FAULT=$fault "$@"; }
json() { python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert eval(sys.argv[2]), d' out "$1" || fail "$1"; }
says() { grep -q -- "$1" "$2" || fail "no '$1' in $2: $(cat "$2")"; }

test_case 'rows in quarantine are neither pruned nor dropped' && (
    must 7 faulty 'unit=block 1:abort' "$KILN_BIN/kiln-import" s import.db
    must 0 kiln info import.db
    says 'rows read 84464, .* quarantined 65536,' out
    must 4 kiln knn import.db
    says 'import finished partially .*, or give --allow-partial$' err
); result

must 0 kiln import s whole.db
must 0 kiln knn whole.db

test_step 'verify says what is missing' && (
    must 7 faulty 'unit=block 00000001:abort' "$KILN_BIN/kiln-prune" whole.db
    must 0 kiln info whole.db --json
    json 'd["counts"]["quarantined"] == 65536 and d["counts"]["pruned_away"] + d["counts"]["pruned"] == 150000 - 65536'
    must 0 kiln verify whole.db
    says ': complete but for 1 quarantined unit: 1 of prune;' out
    must 0 kiln verify whole.db --json
    json 'd["quarantined"] == 1'
); result

test_step 'a camera whose pairs cannot be counted costs its own line' && (
    must 7 faulty 'unit=pairs of *1*:abort' "$KILN_BIN/kiln-prune" whole.db --min-opacity 0.012 --json
    json '[c["pairs"] is None for c in d["cameras"]].count(True) == 1'
    must 7 faulty 'unit=pairs of *1*:abort' "$KILN_BIN/kiln-prune" whole.db --verbose
    says '64x48  *-  *-  *-$' out
    must 0 kiln prune whole.db
    must 0 kiln info whole.db --json
    json 'd["counts"]["quarantined"] == 0'
); result

test_case 'a unit that nothing goes on without is in the report, too' && (
    must 7 faulty 'unit=statistics:abort' "$KILN_BIN/kiln-prune" whole.db --force --json
    json 'd["status"] == "failed" and d["quarantine"][0]["unit"] == "statistics"'
); result

test_case 'slips end with 2 and do nothing' && (
    for units in 99 nosuch 0- -3 1-2-3; do
        must 2 kiln prune whole.db --min-opacity 0.011 "--units=$units"
    done
    says 'takes positions from 0' err
    must 0 kiln prune whole.db --min-opacity 0.011 --units 0
    must 2 kiln prune whole.db --ram 0
    must 2 kiln prune whole.db --scratch-dir no/such
    says "a folder that exists, not 'no/such'" err
    [ ! -e no ] || fail "--scratch-dir made a folder"
); result

test_case 'nothing to compute: nothing that could take too much' && (
    must 0 "$KILN_BIN/kiln-prune" whole.db --ram 1K
    ! grep -q 'report this' err || fail "a false alarm: $(cat err)"
); result

test_case 'more --ram cannot help under a limit' && (
    (ulimit -v 90000 && exec "$KILN_BIN/kiln-prune" whole.db --devices cpu --threads 1 --force) >out 2>err && code=0 || code=$?
    [ $code = 5 ] || fail "under ulimit -v: $(cat err)"
    says "no --ram helps, because the limit of 'ulimit -v' leaves .*: raise it$" err
); result

test_case 'a lock file that cannot be made' && (
    mkdir -p locked/whole.db.lock && cp whole.db locked || fail "locked"
    must 74 kiln prune locked/whole.db --force
    says "make that writable, or bake elsewhere" err
); result

test_case 'the man page has each exit status once' && (
    man=$("$KILN_BIN/kiln-prune" --man)
    [ "$(grep -c '^\\fB5\\fR$' <<<"$man")" = 1 ] || fail "the man page has exit status 5 more than once"
); result

# make goes on behind a partial stage when it is told to, and says so in the end
mk() {
    (cd "$OLDPWD" && make --no-print-directory -f "$KILN_TMP/mk" pipeline SCENE="$KILN_TMP/s" OUT="$KILN_TMP/made" DEVICE=cpu "$@")
}
printf 'all:\nO := %s\ninclude pipelines/pipeline.mk\n' "$(dirname "$KILN_BIN")" >mk

test_case 'make goes on behind a partial stage when it is told to, and says so in the end' && (
    ! KILN_FAULT='unit=block 1:exit' mk ALLOW_PARTIAL=1 >out 2>&1 || fail "make ended well with a part missing"
    says 'baked in part: .* lacks units that kiln-import gave up' out
    says 'Error 7' out
    must 0 kiln info made/manifest.db
    says '^render  *partial' out
); result
