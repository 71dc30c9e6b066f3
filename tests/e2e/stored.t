#!/bin/bash
# time-limit: 600
# Results of units that a stranger's manifest holds: with the right hash, and not what the unit would have made. The stage that
# reads them says which unit that is (74, never 70 or a signal), drops it, and the same command again makes what a clean bake has.
. tests/e2e/lib.sh
# 2604 rows: a plane of one float has as many bytes as 42 chunks of a plan, or 651 merged rows
scene "$KILN_TMP/s" 2604 2 64x48
clean=$KILN_TMP/clean/x.db
bake "$KILN_TMP/s" "$clean" --max 256
kiln prune "$clean" --merge --merge-distance 5 >/dev/null && kiln chunk "$clean" >/dev/null && kiln tiles "$clean" >/dev/null || fail "merges"
digest "$clean" | grep -v ^image >"$KILN_TMP/digest"
db=$KILN_TMP/spoilt/x.db

# spoil SQL [fresh]: a copy of the bake with this change, and all stages due unless they stay fresh
spoil() {
    rm -rf "$KILN_TMP/spoilt"
    cp -r "$KILN_TMP/clean" "$KILN_TMP/spoilt"
    python3 - "$db" "$1" "${2:-}" <<'END' || fail "$1"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
def unit(stage, name): return "(SELECT id FROM unit WHERE stage = '%s' AND name LIKE '%s' ORDER BY id DESC LIMIT 1)" % (stage, name)
# the bytes of one output in the place of another's
def put(stage, name, output, of_stage, of_name, of_output):
    return ("UPDATE unit_output SET (hash, raw_bytes, elem) = (SELECT hash, raw_bytes, elem FROM unit_output WHERE unit = %s AND name = '%s')"
            " WHERE unit = %s AND name = '%s'" % (unit(of_stage, of_name), of_output, unit(stage, name), output))
before = db.total_changes
db.execute(eval(sys.argv[2]))
if db.total_changes == before: sys.exit('nothing was changed')
if sys.argv[3] != 'fresh': db.execute("UPDATE stage SET input_key = randomblob(16)")
END
}
# refused STAGE UNIT WORDS [arguments]: 74 with this unit, once; then all is as in the clean bake
refused() {
    local stage=$1 unit=$2 words=$3 command; shift 3
    command=("$KILN_BIN/kiln-$stage" --quiet)
    if [ "$stage" = import ]; then command+=("$KILN_TMP/s" "$db"); else command+=("$db"); fi
    must 74 "${command[@]}" "$@"
    grep -q "^kiln-$stage: .*what is stored of unit '$unit' cannot be used: .*$words.*; the same command computes it again$" "$KILN_TMP/err" ||
        fail "kiln-$stage says: $(cat "$KILN_TMP/err")"
    [ ! -e "$db.lock" ] || fail "kiln-$stage left its lock"
    must 0 "${command[@]}" "$@"
    for s in knn prune chunk tiles; do must 0 "$KILN_BIN/kiln-$s" --quiet "$db"; done
    digest "$db" | grep -v ^image | diff "$KILN_TMP/digest" - >&2 || fail "kiln-$stage: another digest after '$words'"
}

spoil '"DELETE FROM unit_output WHERE name = \"means\" AND unit = " + unit("import", "block 0")'
refused import 'block 0' "no plane 'means'"
spoil 'put("import", "block 0", "stats", "import", "block 0", "opacity_logits")'
refused import 'block 0' "'stats' has 10416 bytes"
spoil '"UPDATE unit SET counters = replace(counters, \"2604\", \"-1\") WHERE id = " + unit("import", "block 0")'
refused import 'block 0' "no count 'rows'"

spoil 'put("knn", "spacing", "00000000", "knn", "spacing", "00000000").replace("raw_bytes, elem)", "raw_bytes, segment)").replace("raw_bytes, elem FROM", "4, 0 FROM")'
refused knn spacing "bytes for 2604 rows"
spoil '"UPDATE unit SET counters = \"[]\" WHERE id = " + unit("knn", "spacing")'
refused knn spacing "no JSON object"

spoil 'put("prune", "statistics", "statistics", "prune", "block%", "bounds")'
refused prune statistics "'statistics' has"
spoil 'put("prune", "near-duplicates", "merges", "import", "block 0", "sh0")'
refused prune near-duplicates "merges rows that the layer does not have"
spoil 'put("prune", "block 00000000", "quats", "prune", "block 00000000", "means")'
refused prune 'block 00000000' "plane 'quats' of '00000000' has"
spoil 'put("prune", "block 00000000", "tally", "prune", "block 00000000", "means")'
refused prune 'block 00000000' "'tally' has"

spoil 'put("chunk", "plan", "chunks", "import", "block 0", "opacity_logits")'
refused chunk plan "chunk 0 of the plan does not begin at row 0"
spoil 'put("chunk", "rows of block 0", "sums", "import", "block 0", "opacity_logits")'
refused chunk 'rows of block 0' "it has 10416 bytes of sums for [0-9]* chunks"
spoil 'put("chunk", "chunk %", "means", "chunk", "chunk %", "sh0").replace("raw_bytes, elem)", "raw_bytes, segment)").replace("raw_bytes, elem FROM", "7, 0 FROM")'
refused chunk 'chunk [^ ]*' "plane 'means'"

# several of them: all are dropped by the run that names the first
spoil '"DELETE FROM unit_output WHERE name = \"means\" AND unit IN (SELECT id FROM unit WHERE stage = \"chunk\" AND name LIKE \"chunk %\")"'
refused chunk 'chunk [^ ]*' "means"
spoil '"DELETE FROM unit_output WHERE name = \"bounds\" AND unit IN (SELECT id FROM unit WHERE stage = \"chunk\" AND name LIKE \"chunk %\")"'
refused chunk 'chunk [^ ]*' "bounds"

spoil '"UPDATE unit SET counters = json_set(counters, \"$.visible\", 1 << 61) WHERE stage = \"tiles\" AND name LIKE \"pairs of cam1\""'
refused tiles 'pairs of cam.' "visible Gaussians, the view may see"

# a run that changes no state drops nothing, and says so: as often as it runs, until the stage itself has run, which says the same
for state in due fresh; do
    spoil '"UPDATE unit SET counters = json_set(counters, \"$.visible\", 1 << 61) WHERE stage = \"tiles\" AND name LIKE \"pairs of cam1\""' $state
    command=("$KILN_BIN/kiln-tiles" --quiet "$db")
    for _ in 1 2; do
        must 74 "${command[@]}" --predict
        grep -q "what is stored of unit 'pairs of cam1' cannot be used: .*; a run that changes no state does not drop it, but kiln-tiles without such options does, with --force where it has nothing to do$" "$KILN_TMP/err" ||
            fail "kiln-tiles --predict says: $(cat "$KILN_TMP/err")"
    done
    must 74 "${command[@]}"
    must 0 "${command[@]}"
    must 0 "$KILN_BIN/kiln-tiles" --quiet "$db" --predict
done

# --force compares: what cannot be right is damage, what may be right is a difference. Both are dropped, all of them at once, and the
# same command stores what it computes; without --force the stage has nothing to do meanwhile.
# forced STATUS STAGE UNIT WORDS
forced() {
    local status=$1 stage=$2 unit=$3 words=$4 command
    command=("$KILN_BIN/kiln-$stage" --quiet "$db" --force)
    must 0 "${command[@]:0:3}"
    must "$status" "${command[@]}"
    grep -q "^kiln-$stage: .*'$unit' .*$words.*the same command .*$" "$KILN_TMP/err" || fail "kiln-$stage --force says: $(cat "$KILN_TMP/err")"
    [ "$(grep -c . "$KILN_TMP/err")" = 1 ] || fail "kiln-$stage --force: not one sentence: $(cat "$KILN_TMP/err")"
    must 0 "${command[@]}"
    must 0 "${command[@]}"
    digest "$db" | grep -v ^image | diff "$KILN_TMP/digest" - >&2 || fail "kiln-$stage --force: another digest after '$words'"
}
spoil 'put("chunk", "chunk %", "sh0", "chunk", "chunk %", "opacity_logits")' fresh
forced 74 chunk 'chunk [^ ]*' "cannot be used: its output 'sh0' has [0-9]* bytes"
spoil '"DELETE FROM unit_output WHERE name = \"means\" AND unit IN (SELECT id FROM unit WHERE stage = \"chunk\" AND name LIKE \"chunk %\")"' fresh
forced 74 chunk 'chunk [^ ]*' "cannot be used: its output 'opacity_logits' has"
spoil 'put("chunk", "chunk %", "sh0", "chunk", "chunk %", "means")' fresh
forced 70 chunk 'chunk [^ ]*' "computed again differs from what is stored: output 'sh0' was"

# a finished stage that names its layer no more, or wrong, has something to do without --force: it stores it again, of cached units
# lost STAGE KIND SQL
lost() {
    local stage=$1 kind=$2 lose=$3 command
    spoil "\"$lose WHERE role = '$kind'\"" fresh
    command=("$KILN_BIN/kiln-$stage" --quiet --json)
    if [ "$stage" = import ]; then command+=("$KILN_TMP/s" "$db"); else command+=("$db"); fi
    must 0 "${command[@]}"
    python3 -c 'import json, sys; r = json.load(sys.stdin); sys.exit(r["status"] != "done" or r["stored_bytes"] > 0)' <"$KILN_TMP/out" ||
        fail "kiln-$stage behind '$lose': $(cat "$KILN_TMP/out")"
    must 0 "$KILN_BIN/kiln-verify" --quiet "$db"
    digest "$db" | grep -v ^image | diff "$KILN_TMP/digest" - >&2 || fail "kiln-$stage: another digest behind '$lose'"
}
lost import source 'DELETE FROM stage_output'
lost knn spacing 'DELETE FROM stage_output'
lost prune pruned 'DELETE FROM stage_output'
lost chunk baked 'DELETE FROM stage_output'
lost chunk baked 'UPDATE stage_output SET layer = NULL'
lost chunk baked 'UPDATE stage_output SET digest = zeroblob(16)'

# rows that are read when there is nothing to do are looked at before that is said
# damaged STATUS SQL: that status, and no "nothing to do"
damaged() {
    local status=$1; shift
    spoil "\"$1\"" fresh
    must "$status" "$KILN_BIN/kiln-knn" "$db"
    grep -q 'is damaged: .*kiln-verify lists all' "$KILN_TMP/err" || fail "kiln-knn behind '$1': $(cat "$KILN_TMP/err")"
    grep -qi 'select\|nothing to do' "$KILN_TMP/out" "$KILN_TMP/err" && fail "kiln-knn behind '$1': $(cat "$KILN_TMP/out" "$KILN_TMP/err")"
}
damaged 3 "UPDATE run SET start_ns = -5"
damaged 74 "INSERT INTO quarantine VALUES (zeroblob(16), 'knn', 'x', 5000000000, 'cpu', 'r', 0)"
# outputs of units that are gone are in nobody's way: those of the next ids, of the names that chunk's units have
spoil '"INSERT INTO unit_output SELECT (SELECT max(id) FROM unit) + later.id, o.name, o.segment, o.hash, o.raw_bytes, o.elem FROM unit later, unit_output o WHERE o.unit IN (" + unit("chunk", "plan") + ", " + unit("chunk", "chunk %") + ")"'
must 0 "$KILN_BIN/kiln-chunk" --quiet "$db" --max 255
# stored parameters that no option of today is are told in one sentence
spoil '"INSERT INTO parameter VALUES (\"knn\", \"old\", \"1\"), (\"knn\", \"older\", \"2\")"' fresh
must 0 "$KILN_BIN/kiln-knn" "$db"
[ "$(grep -c 'stored parameter' "$KILN_TMP/err")" = 1 ] && grep -q "not used.*: 'old', 'older'" "$KILN_TMP/err" || fail "unknown parameters: $(cat "$KILN_TMP/err")"
