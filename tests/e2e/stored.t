#!/bin/bash
# time-limit: 600
# Results of units that a stranger's manifest holds: with the right hash, and not what the unit would have made. The stage that
# reads them says which unit that is (74, never 70 or a signal), drops it, and the same command again makes what a clean bake has.
. tests/e2e/lib.sh
# 2604 rows: a plane of one float has as many bytes as 42 chunks of a plan, or 651 merged rows
scene "$KILN_TMP/s" 2604 2 64x48
clean=$KILN_TMP/clean/x.db
bake "$KILN_TMP/s" "$clean" --max 256
kiln prune "$clean" --merge --merge-distance 5 >/dev/null && kiln chunk "$clean" >/dev/null && kiln tiles "$clean" >/dev/null ||
    fail "merges"
digest "$clean" | grep -v ^image >"$KILN_TMP/digest"
db=$KILN_TMP/spoilt/x.db

# spoil SQL [fresh]: a copy of the bake with this change, and all stages due unless they stay fresh
spoil() {
    rm -rf "$KILN_TMP/spoilt"
    cp -r "$KILN_TMP/clean" "$KILN_TMP/spoilt"
    py spoil "$db" "$1" "${2:-}" || fail "$1"
}
# refused STAGE UNIT WORDS [arguments]: 74 with this unit, once; then all is as in the clean bake
refused() {
    local stage=$1 unit=$2 words=$3 command; shift 3
    command=("$KILN_BIN/kiln-$stage" --quiet)
    if [ "$stage" = import ]; then command+=("$KILN_TMP/s" "$db"); else command+=("$db"); fi
    must 74 "${command[@]}" "$@"
    grep -q "^kiln-$stage: .*the stored results of unit '$unit' cannot be used: .*$words.*; run the same command to compute them again$" \
        "$KILN_TMP/err" ||
        fail "kiln-$stage says: $(cat "$KILN_TMP/err")"
    [ ! -e "$db.lock" ] || fail "kiln-$stage left its lock"
    must 0 "${command[@]}" "$@"
    for s in knn prune chunk tiles; do must 0 "$KILN_BIN/kiln-$s" --quiet "$db"; done
    digest "$db" | grep -v ^image | diff "$KILN_TMP/digest" - >&2 || fail "kiln-$stage: another digest after '$words'"
}

test_case 'import: a plane is gone' && (
    spoil '"DELETE FROM unit_output WHERE name = \"means\" AND unit = " + unit("import", "block 0")'
    refused import 'block 0' "no plane 'means'"
); result

test_case 'import: statistics of another size' && (
    spoil 'put("import", "block 0", "stats", "import", "block 0", "opacity_logits")'
    refused import 'block 0' "'stats' has 10416 bytes"
); result

test_case 'import: a count below 0' && (
    spoil '"UPDATE unit SET counters = replace(counters, \"2604\", \"-1\") WHERE id = " + unit("import", "block 0")'
    refused import 'block 0' "no count 'rows'"
); result

test_case 'knn: bytes of too few rows' && (
    spoil 'cut(4, "knn", "spacing", "00000000", "knn", "spacing", "00000000")'
    refused knn spacing "bytes for 2604 rows"
); result

test_case 'knn: counters that are no object' && (
    spoil '"UPDATE unit SET counters = \"[]\" WHERE id = " + unit("knn", "spacing")'
    refused knn spacing "no JSON object"
); result

test_case 'prune: statistics of another unit' && (
    spoil 'put("prune", "statistics", "statistics", "prune", "block%", "bounds")'
    refused prune statistics "'statistics' has"
); result

test_case 'prune: merges of rows that are not there' && (
    spoil 'put("prune", "near-duplicates", "merges", "import", "block 0", "sh0")'
    refused prune near-duplicates "merges rows that the layer does not have"
); result

test_case 'prune: a plane of another size' && (
    spoil 'put("prune", "block 00000000", "quats", "prune", "block 00000000", "means")'
    refused prune 'block 00000000' "plane 'quats' of '00000000' has"
); result

test_case 'prune: a tally of another size' && (
    spoil 'put("prune", "block 00000000", "tally", "prune", "block 00000000", "means")'
    refused prune 'block 00000000' "'tally' has"
); result

test_case 'chunk: a plan that does not begin at row 0' && (
    spoil 'put("chunk", "plan", "chunks", "import", "block 0", "opacity_logits")'
    refused chunk plan "chunk 0 of the plan does not begin at row 0"
); result

test_case 'chunk: sums of another size' && (
    spoil 'put("chunk", "rows of block 0", "sums", "import", "block 0", "opacity_logits")'
    refused chunk 'rows of block 0' "it has 10416 bytes of sums for [0-9]* chunks"
); result

test_case 'chunk: a plane of another size' && (
    spoil 'cut(7, "chunk", "chunk %", "means", "chunk", "chunk %", "sh0")'
    refused chunk 'chunk [^ ]*' "plane 'means'"
); result

test_case 'chunk: several units without a plane are dropped together' && (
    spoil 'without("means")'
    refused chunk 'chunk [^ ]*' "means"
); result

test_case 'chunk: several units without bounds are dropped together' && (
    spoil 'without("bounds")'
    refused chunk 'chunk [^ ]*' "bounds"
); result

test_case 'tiles: more visible Gaussians than there are' && (
    spoil 'too_many_visible()'
    refused tiles 'pairs of cam.' "visible Gaussians, but the view can see at most"
); result

# a run that changes no state drops nothing, and says so: as often as it runs, until the stage itself has run, which says the same
for state in due fresh; do
    test_case "a run that changes no state drops nothing: $state" && (
        spoil 'too_many_visible()' $state
        command=("$KILN_BIN/kiln-tiles" --quiet "$db")
        for _ in 1 2; do
            must 74 "${command[@]}" --predict
            grep "the stored results of unit 'pairs of cam1' cannot be used: " "$KILN_TMP/err" | grep -q "; run kiln-tiles without options\
 that keep the state (and with --force if it has nothing to do) to drop them$" ||
                fail "kiln-tiles --predict says: $(cat "$KILN_TMP/err")"
        done
        must 74 "${command[@]}"
        must 0 "${command[@]}"
        must 0 "$KILN_BIN/kiln-tiles" --quiet "$db" --predict
    ); result
done

# --force compares: what cannot be right is damage, what may be right is a difference. Both are dropped, all of them at once, and
# the same command stores what it computes; without --force the stage has nothing to do meanwhile.
# forced STATUS STAGE UNIT WORDS
forced() {
    local status=$1 stage=$2 unit=$3 words=$4 command
    command=("$KILN_BIN/kiln-$stage" --quiet "$db" --force)
    must 0 "${command[@]:0:3}"
    must "$status" "${command[@]}"
    grep -q "^kiln-$stage: .*'$unit' .*$words.*the same command .*$" "$KILN_TMP/err" ||
        fail "kiln-$stage --force says: $(cat "$KILN_TMP/err")"
    [ "$(grep -c . "$KILN_TMP/err")" = 1 ] || fail "kiln-$stage --force: not one sentence: $(cat "$KILN_TMP/err")"
    must 0 "${command[@]}"
    must 0 "${command[@]}"
    digest "$db" | grep -v ^image | diff "$KILN_TMP/digest" - >&2 || fail "kiln-$stage --force: another digest after '$words'"
}

test_case '--force: an output of another size' && (
    spoil 'put("chunk", "chunk %", "sh0", "chunk", "chunk %", "opacity_logits")' fresh
    forced 74 chunk 'chunk [^ ]*' "cannot be used: its output 'sh0' has [0-9]* bytes"
); result

test_case '--force: a plane is gone' && (
    spoil 'without("means")' fresh
    forced 74 chunk 'chunk [^ ]*' "cannot be used: its output 'opacity_logits' has"
); result

test_case '--force: other bytes' && (
    spoil 'put("chunk", "chunk %", "sh0", "chunk", "chunk %", "means")' fresh
    forced 70 chunk 'chunk [^ ]*' "again gave another result than the stored one: output 'sh0' was"
); result

# a finished stage that names its layer no more, or wrong, has something to do without --force: it stores it again, of cached units
# lost STAGE KIND SQL
lost() {
    local stage=$1 kind=$2 lose=$3 command
    spoil "\"$lose WHERE role = '$kind'\"" fresh
    command=("$KILN_BIN/kiln-$stage" --quiet --json)
    if [ "$stage" = import ]; then command+=("$KILN_TMP/s" "$db"); else command+=("$db"); fi
    must 0 "${command[@]}"
    python3 -c 'import json, sys
r = json.load(sys.stdin)
sys.exit(r["status"] != "done" or r["stored_bytes"] > 0)' <"$KILN_TMP/out" ||
        fail "kiln-$stage behind '$lose': $(cat "$KILN_TMP/out")"
    must 0 "$KILN_BIN/kiln-verify" --quiet "$db"
    digest "$db" | grep -v ^image | diff "$KILN_TMP/digest" - >&2 || fail "kiln-$stage: another digest behind '$lose'"
}

test_case 'a finished stage that lost its layer: import' && (
    lost import source 'DELETE FROM stage_output'
); result

test_case 'a finished stage that lost its layer: knn' && (
    lost knn spacing 'DELETE FROM stage_output'
); result

test_case 'a finished stage that lost its layer: prune' && (
    lost prune pruned 'DELETE FROM stage_output'
); result

test_case 'a finished stage that lost its layer: chunk' && (
    lost chunk baked 'DELETE FROM stage_output'
); result

test_case 'a finished stage that names no layer' && (
    lost chunk baked 'UPDATE stage_output SET layer = NULL'
); result

test_case 'a finished stage whose digest is another' && (
    lost chunk baked 'UPDATE stage_output SET digest = zeroblob(16)'
); result

# rows that are read when there is nothing to do are looked at before that is said
# damaged STATUS SQL: that status, and no "nothing to do"
damaged() {
    local status=$1; shift
    spoil "\"$1\"" fresh
    must "$status" "$KILN_BIN/kiln-knn" "$db"
    grep -q 'is damaged: .*kiln-verify lists all' "$KILN_TMP/err" || fail "kiln-knn behind '$1': $(cat "$KILN_TMP/err")"
    ! grep -qi 'select\|nothing to do' "$KILN_TMP/out" "$KILN_TMP/err" ||
        fail "kiln-knn behind '$1': $(cat "$KILN_TMP/out" "$KILN_TMP/err")"
}

test_case 'a run that began before 1970' && (
    damaged 3 "UPDATE run SET start_ns = -5"
); result

test_case 'a quarantine with too many attempts' && (
    damaged 74 "INSERT INTO quarantine VALUES (zeroblob(16), 'knn', 'x', 5000000000, 'cpu', 'r', 0)"
); result

test_case "outputs of units that are gone are in nobody's way" && (
    spoil 'outputs_of_later_units()'
    must 0 "$KILN_BIN/kiln-chunk" --quiet "$db" --max 255
); result

test_case 'stored parameters that no option of today is' && (
    spoil '"INSERT INTO parameter VALUES (\"knn\", \"old\", \"1\"), (\"knn\", \"older\", \"2\")"' fresh
    must 0 "$KILN_BIN/kiln-knn" "$db"
    [ "$(grep -c 'stored parameter' "$KILN_TMP/err")" = 1 ] && grep -q "ignored.*: 'old', 'older'" "$KILN_TMP/err" ||
        fail "unknown parameters: $(cat "$KILN_TMP/err")"
); result
