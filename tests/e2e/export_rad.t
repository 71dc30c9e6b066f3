#!/bin/bash
# RAD: valid by what Spark reads (tests/validators/rad.py), the rows without children are those of the bake where they were, a row
# stands for what lies around it, the bytes are the same for any threads, workers and --ram; the validator finds faults.
. tests/e2e/lib.sh
valid() { python3 tests/validators/rad.py "$1"; }
out=$KILN_TMP
scene "$out/s" 6000 4 32x24
kiln import "$out/s" "$out/b.db" >/dev/null && kiln knn "$out/b.db" >/dev/null &&
    kiln chunk "$out/b.db" --layer source --max 900 >/dev/null ||
    fail 'chunk'

test_case 'without levels there is a sentence' && (
    must 4 kiln export "$out/b.db" -o "$out/t.rad"
    grep -q 'kiln-lod' "$out/err" || fail 'the refusal does not name kiln-lod'
); result

kiln lod "$out/b.db" --levels 3 --coarsest 300 >/dev/null || fail 'lod'
must 0 kiln export "$out/b.db" -o "$out/t.rad" --threads 1

test_case 'valid, and every row is in it' && (
    facts=$(valid "$out/t.rad") || fail "not valid: $facts"
    rows=$(sqlite3 "$out/b.db" "select sum(count) from chunk join stage_output using (layer) where role = 'baked'")
    [[ $facts = *"\"leaves\": $rows,"* ]] || fail "not $rows rows without children: $facts"
    [[ $facts =~ \"depth\":\ ([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -ge 6 ] || fail "too few rows above each other: $facts"
); result

test_case 'the same bytes for any threads, workers and --ram' && (
    for how in '--threads 2' '--workers 3' '--ram 100M'; do
        # shellcheck disable=SC2086
        must 0 kiln export "$out/b.db" -o "$out/u.rad" $how
        cmp "$out/t.rad" "$out/u.rad" >&2 || fail "other bytes with $how"
    done
); result

test_case 'the cap that a refusal names is enough' && (
    must 5 kiln export "$out/b.db" -o "$out/w.rad" --ram 8M
    [[ $(cat "$out/err") =~ --ram\ ([0-9]+[MG]) ]] || fail "the refusal of --ram names no cap: $(cat "$out/err")"
    must 0 kiln export "$out/b.db" -o "$out/w.rad" --ram "${BASH_REMATCH[1]}"
); result

test_case 'the cap that a refusal names is enough for hundreds of chunks' && (
    kiln import "$out/s" "$out/many.db" >/dev/null && kiln knn "$out/many.db" >/dev/null &&
        kiln chunk "$out/many.db" --layer source --max 64 >/dev/null &&
        kiln lod "$out/many.db" --visibility off >/dev/null || fail 'many chunks'
    must 5 kiln export "$out/many.db" -o "$out/many.rad" --ram 1M
    [[ $(cat "$out/err") =~ --ram\ ([0-9]+[MG]) ]] || fail "the refusal of --ram names no cap: $(cat "$out/err")"
    must 0 kiln export "$out/many.db" -o "$out/many.rad" --ram "${BASH_REMATCH[1]}"
); result

test_case 'the rows without children are those of the bake, and a row lies among its children' && (
    must 0 kiln export "$out/b.db" --order baked -o "$out/b.ply"
    py rows_of_bake "$out/t.rad" "$out/b.ply" || fail 'the rows are not those of the bake'
); result

test_case 'the validator finds each fault' && (
    py break_file "$out/t.rad" "$out" || fail 'cannot break a file'
    found=0
    for broken in "$out"/broken_*.rad; do
        ! valid "$broken" >/dev/null 2>&1 || fail "the validator does not see: $broken"
        found=$((found + 1))
    done
    [ $found -ge 4 ] || fail "only $found broken files"
); result
