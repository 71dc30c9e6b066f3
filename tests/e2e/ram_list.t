#!/usr/bin/env bash
# A list of very many units is memory of the parent's own: it is counted before, measured, refused with a number that works, also
# where every unit is stored already and no worker starts.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
scene s 60000 1 64x64
number() { python3 -c 'import json, sys; print(json.load(open("out"))[sys.argv[1]])' "$1"; }
least() { sed -n 's/.*the least that works is --ram \([0-9]*\)M$/\1/p' err; }
chunk() { kiln chunk k.db --layer source --max 16 --min 1 --devices cpu --json "$@"; }
# fits CAP: refused with so many MiB, done with what the sentence names, and never above it
fits() {
    must 5 chunk --ram "$1M"
    local mib; mib=$(least)
    [ -n "$mib" ] || fail "the least that works is not named: $(cat err)"
    must 0 chunk --ram "${mib}M"
    [ "$(number ram_peak_bytes)" -le $((mib << 20)) ] || fail "$(number ram_peak_bytes) bytes were taken of $mib MiB"
    [ "$(number ram_peak_bytes)" -le "$(number ram_predicted_bytes)" ] ||
        fail "$(number ram_peak_bytes) bytes were taken, less was predicted"
    [ "$(number ram_peak_bytes)" -gt $((30 << 20)) ] || fail "the list was not measured: $(number ram_peak_bytes) bytes"
}
kiln import s k.db >/dev/null && kiln knn k.db >/dev/null || fail "import, knn"

test_step 'the list with what a refusal names' && (
    fits 80 # the planning unit has room
); result

test_case 'the same list, all of it stored' && (
    py stale || fail "chunk cannot be made stale"
    fits 60
    [ "$(python3 -c 'import json; print(json.load(open("out"))["units"]["done"])')" = 0 ] || fail "units were made again"
); result
