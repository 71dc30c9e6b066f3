#!/bin/bash
# An illegal access in a worker on a real GPU: the bake goes on and ends partially, the unit is named, what is left is as in a
# clean bake; with the fault gone a rerun completes it to the digest of a clean bake.
. tests/gpu/lib.sh
DEVICES=${ILLEGAL_DEVICES:-cuda}
scene "$KILN_TMP/s" 60000 6 640x360
bake_on "$DEVICES" "$KILN_TMP/s" "$KILN_TMP/clean.db" --max 4096
for s in import knn prune chunk; do
    case $s in import) set -- "$KILN_TMP/s" "$KILN_TMP/m.db" ;; chunk) set -- "$KILN_TMP/m.db" --max 4096 ;; *) set -- "$KILN_TMP/m.db" ;; esac
    on "$DEVICES" $s "$@"
done
# without CAMERA FILE: the digest's lines, but those of that camera
without() { digest "$2" | grep -v " $1:"; }
# faulty STAGE UNIT: partial, and the unit is named with its reason
faulty() {
    must 7 env "KILN_FAULT=unit=$2:illegal" "$KILN_BIN/kiln-$1" "$KILN_TMP/m.db" --devices "$DEVICES" --json
    cp "$KILN_TMP/out" "$KILN_TMP/report.json"
    grep -q "${2%%\**}" "$KILN_TMP/err" || { cat "$KILN_TMP/err" >&2; fail "kiln-$1 does not name the unit '$2'"; }
    grep -qiE 'illegal|700' "$KILN_TMP/err" || { cat "$KILN_TMP/err" >&2; fail "kiln-$1 does not say what happened"; }
}
faulty tiles 'visible list of cam2'
diff <(without cam2 "$KILN_TMP/clean.db" | grep -v '^image ') <(without cam2 "$KILN_TMP/m.db") >&2 || fail 'the other tables differ'
digest "$KILN_TMP/m.db" | grep -q '^table cam2:' && fail 'the camera whose unit failed has a table'
on "$DEVICES" tiles "$KILN_TMP/m.db"
same_tables "$KILN_TMP/clean.db" "$KILN_TMP/m.db"

faulty render 'camera cam4'
diff <(without cam4 "$KILN_TMP/clean.db") <(without cam4 "$KILN_TMP/m.db") >&2 || fail 'the other pictures differ'
digest "$KILN_TMP/m.db" | grep -q '^image cam4:' && fail 'the camera whose unit failed has a picture'
on "$DEVICES" render "$KILN_TMP/m.db"
same "$KILN_TMP/clean.db" "$KILN_TMP/m.db"
kiln verify "$KILN_TMP/m.db" >/dev/null || fail 'the bake does not verify'
nothing_left
