#!/bin/bash
# Rows at the limits of float32 (a log scale of 87.9, positions of 3e38) go through every stage. Lengths made of them may be
# infinite: the record and --json say null, as JSON has no infinity, and the text says inf.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
cd "$KILN_TMP" || exit 1
py scenes || fail "scenes"
strict() { n=$((n + 1)); cp out "said$n" && echo "$1" >"must$n"; }
for name in wide far both place; do
    test_case "$name: rows at the limits of float32 go through every stage" && (
        n=0
        db=$name/m.db
        must 0 kiln import $name.ply $db --json
        for stage in $STAGES; do
            must 0 kiln "$stage" $db --json
            strict 'd["status"] == "done" and d["units"]["quarantined"] == 0'
            [ $stage != prune ] ||
                strict "d['rows'] == d['kept'] and d['extent'] $([ $name = place ] && echo '> 0' || echo 'is None')"
        done
        must 0 kiln export $db --format chunks -o $name/chunks
        cp $name/chunks/index.json out && strict 'd["chunks"]'
        must 0 kiln info $db --json
        strict 'all(s["state"] == "fresh" for s in d["stages"] if s["name"] in ("prune", "render", "export"))'
        must 0 "$KILN_BIN/kiln-prune" $db --dry-run
        [ $name = place ] || grep -q 'extent inf' out || fail "the report of $name: $(head -n 1 out)"
        must 0 kiln verify $db
        kiln export $db -o $name/again.ply >/dev/null && cmp $name.ply $name/again.ply || fail "$name came back different"
    [ $n = $(($(wc -w <<<"$STAGES") + 3)) ] || fail "$n sentences are judged"
    py judge $n || fail "see above"
    ); result
done
