#!/bin/bash
# Streamed SOG: valid by the specification (tests/validators/lod_meta.py), each level has its rows once and the finest is what is in
# the bake, the bytes are the same for any threads, workers and --ram, and come again only where something changed; the validator
# finds faults.
. tests/e2e/lib.sh
valid() { python3 tests/validators/lod_meta.py "$1"; }
out=$KILN_TMP
scene "$out/s" 4000 4 32x24
kiln import "$out/s" "$out/b.db" >/dev/null && kiln knn "$out/b.db" >/dev/null &&
    kiln chunk "$out/b.db" --layer source --max 600 >/dev/null ||
    fail 'chunk'

test_case 'without levels there is a sentence' && (
    must 4 kiln export "$out/b.db" --format lod -o "$out/t/"
    grep -q 'kiln-lod' "$out/err" || fail 'the refusal does not name kiln-lod'
    [ ! -e "$out/t" ] || fail 'a refused export left something'
); result

kiln lod "$out/b.db" --levels 3 --coarsest 200 >/dev/null || fail 'lod'

test_case 'what levels do not go with is refused' && (
    for bad in '--layer source' '--chunks #0' '--filter-box -1,-1,-1,1,1,1'; do
        # shellcheck disable=SC2086
        must 2 kiln export "$out/b.db" --format lod $bad -o "$out/t/"
    done
); result

must 0 kiln export "$out/b.db" --format lod --sh-degree 1 -o "$out/t/" --threads 1
facts=$(valid "$out/t/lod-meta.json") || fail "not valid: $facts"

test_case 'valid, and level 0 has every row' && (
    rows=$(sqlite3 "$out/b.db" "select sum(count) from chunk join stage_output using (layer) where role = 'baked'")
    [[ $facts = *"\"counts\": [$rows, "* ]] || fail "level 0 has not $rows rows: $facts"
); result

[[ $facts =~ \"levels\":\ ([0-9]+) ]] && levels=${BASH_REMATCH[1]} && [ "$levels" -ge 5 ] || fail "too few levels: $facts"

test_case 'errors are there where the bake has them' && (
    errors=$(sqlite3 "$out/b.db" 'select count(*) > 0 from level_error')
    [[ $facts = *"\"errors\": $([ "$errors" = 1 ] && echo true || echo false)"* ]] || fail "errors of $errors: $facts"
); result

test_case 'the same bytes for any threads, workers and --ram' && (
    for how in '--threads 2' '--workers 3 --ram 300M'; do
        rm -rf "$out/u"
        # shellcheck disable=SC2086
        must 0 kiln export "$out/b.db" --format lod --sh-degree 1 -o "$out/u/" $how
        diff -r "$out/t" "$out/u" >&2 || fail "other bytes with $how"
    done
); result

test_case 'the cap that a refusal names is enough' && (
    must 5 kiln export "$out/b.db" --format lod --sh-degree 0 -o "$out/w/" --ram 8M
    [[ $(cat "$out/err") =~ --ram\ ([0-9]+[MG]) ]] || fail "the refusal of --ram names no cap: $(cat "$out/err")"
    must 0 kiln export "$out/b.db" --format lod --sh-degree 0 -o "$out/w/" --ram "${BASH_REMATCH[1]}"
); result

test_case 'the file of level 0 is what the SOG writer makes' && (
    must 0 kiln export "$out/b.db" --format sog-folder --sh-degree 1 -o "$out/sog/"
    diff -r "$out/sog" "$out/t/0_0" >&2 || fail 'level 0 is not the SOG of the bake'
); result

test_case 'what importers find: levels whole, the finest within half a step of its code' && (
    for k in 0 $((levels - 1)); do
        kiln import "$out/t/lod-meta.json" "$out/l.db" --lod $k --force >/dev/null || fail "import of level $k"
        got=$(sqlite3 "$out/l.db" "select sum(count) from chunk join stage_output using (layer) where role = 'source'")
        [[ $facts =~ \"counts\":\ \[([^]]*)\] ]]
        [ "$got" = "$(echo "${BASH_REMATCH[1]}" | cut -d, -f$((k + 1)) | tr -d ' ')" ] || fail "level $k has $got rows"
        must 0 kiln export "$out/l.db" --layer source -o "$out/l$k.ply"
    done
    must 0 kiln export "$out/b.db" --order baked -o "$out/b.ply"
    py levels_in_place "$out/t/lod-meta.json" "$out/l0.ply" "$out/l$((levels - 1)).ply" "$out/b.ply" ||
        fail 'levels are not where they should be'
); result

test_case "a file that is gone is written again, a stranger's file stays" && (
    must 0 "$KILN_BIN/kiln-export" "$out/b.db" --format lod --sh-degree 0
    must 0 "$KILN_BIN/kiln-export" "$out/b.db" --format lod --sh-degree 0
    grep -q 'nothing to do' "$out/err" || fail 'written twice'
    rm "$out/export/lod/1_0/quats.webp"
    must 0 "$KILN_BIN/kiln-export" "$out/b.db" --format lod --sh-degree 0
    [ -s "$out/export/lod/1_0/quats.webp" ] || fail 'a file that was gone is not there again'
    echo mine >"$out/t/1_0/notes.txt"
    must 2 kiln export "$out/b.db" --format lod -o "$out/t/"
    [ "$(cat "$out/t/1_0/notes.txt")" = mine ] || fail "a stranger's file is gone"
    rm "$out/t/1_0/notes.txt"
); result

test_case 'the validator finds each fault' && (
    py break_set "$out/t" || fail 'cannot break a set'
    for broken in count offset file missing bound child away; do
        ! valid "$out/t/$broken.json" 2>/dev/null || fail "the validator does not see: $broken"
    done
); result
