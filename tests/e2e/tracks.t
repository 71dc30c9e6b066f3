#!/bin/bash
# Points of a COLMAP model that have no colour get it from the photos along their tracks; those without any stay black.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3 to write a COLMAP model with"
tracks() { python3 tests/e2e/tracks.py "$@"; }
state() { kiln info "$1" --json | python3 -c 'import json, sys
print(*(s["state"] for s in json.load(sys.stdin)["stages"] if s["name"] == "knn"))'; }
coloured() { # check|check-many MANIFEST [RED]: as expected
    local check=$1 db=$2; shift 2
    rm -f "$KILN_TMP/x.ply"
    kiln export "$db" --format ply --layer initial -o "$KILN_TMP/x.ply" >/dev/null || fail "export"
    tracks "$check" "$KILN_TMP/x.ply" "$@" || fail "colours of $db"
}
digest_of() { digest "$1" | grep "^layer $2 "; }

for e in txt bin; do
    test_step "a model in $e" && (
        tracks write "$KILN_TMP/$e" $e || fail "write"
        kiln import "$KILN_TMP/$e" "$KILN_TMP/$e.db" >/dev/null || fail "import"
        said=$("$KILN_BIN/kiln-knn" "$KILN_TMP/$e.db" 2>/dev/null | tail -n 1)
        [ "$said" = '5 points without colour: 3 coloured from 2 photos, 2 stay black' ] || fail "it said: $said"
        coloured check "$KILN_TMP/$e.db"
    ); result
done

test_case 'both kinds of models are the same' && (
    same "$KILN_TMP/txt.db" "$KILN_TMP/bin.db"
); result

test_case 'points of several blocks, in another order than their ids' && (
    tracks write "$KILN_TMP/many" many || fail "write"
    kiln import "$KILN_TMP/many" "$KILN_TMP/many.db" >/dev/null && kiln knn "$KILN_TMP/many.db" >/dev/null || fail "many"
    coloured check-many "$KILN_TMP/many.db"
); result

test_case 'another photo: new colours and the same spacing' && (
    spacing=$(digest_of "$KILN_TMP/txt.db" spacing)
    tracks photos "$KILN_TMP/txt" 0 || fail "write"
    kiln import "$KILN_TMP/txt" "$KILN_TMP/txt.db" >/dev/null || fail "import"
    [ "$(state "$KILN_TMP/txt.db")" = stale ] || fail "knn is $(state "$KILN_TMP/txt.db") after a photo changed"
    kiln knn "$KILN_TMP/txt.db" >/dev/null || fail "knn"
    coloured check "$KILN_TMP/txt.db" 0
    [ "$(digest_of "$KILN_TMP/txt.db" spacing)" = "$spacing" ] || fail "the spacing changed with a photo"
); result

test_case "a photo that changed behind the manifest's back" && (
    tracks photos "$KILN_TMP/bin" 0 || fail "write"
    must 3 kiln knn --force "$KILN_TMP/bin.db"
    grep -q 'import again' "$KILN_TMP/err" || fail "$(cat "$KILN_TMP/err")"
); result

test_case 'a photo that is damaged, and was when it was imported' && (
    tracks write "$KILN_TMP/hurt" txt || fail "write"
    photo=$(find "$KILN_TMP/hurt" -name '*.png' | sort | head -n 1)
    truncate -s "$(($(stat -c %s "$photo") - 20))" "$photo"
    kiln import "$KILN_TMP/hurt" "$KILN_TMP/hurt.db" >/dev/null || fail "import of a damaged photo"
    must 0 "$KILN_BIN/kiln-knn" "$KILN_TMP/hurt.db"
    grep -q 'damaged photos that give no colours: 1; the first is .*' "$KILN_TMP/err" ||
        fail "a damaged photo: $(cat "$KILN_TMP/err")"
    grep -q 'coloured from 1 photo,' "$KILN_TMP/out" || fail "a damaged photo: $(cat "$KILN_TMP/out")"
); result

test_case 'keypoints in what a mask leaves out give no colour' && (
    tracks write "$KILN_TMP/masked" txt || fail "write"
    py masks "$KILN_TMP/masked" || fail "masks"
    kiln import "$KILN_TMP/masked" "$KILN_TMP/masked.db" >/dev/null || fail "import with masks"
    must 0 "$KILN_BIN/kiln-knn" "$KILN_TMP/masked.db"
    grep -q '5 points without colour: 0 coloured from 2 photos, 5 stay black' "$KILN_TMP/out" ||
        fail "masked: $(cat "$KILN_TMP/out")"
); result

test_case 'a photo that --ram has no room for' && (
    tracks write "$KILN_TMP/large" txt || fail "write"
    py large "$KILN_TMP/large" || fail "a large photo"
    kiln import "$KILN_TMP/large" "$KILN_TMP/large.db" >/dev/null || fail "import of large photos"
    must 5 "$KILN_BIN/kiln-knn" "$KILN_TMP/large.db" --ram 300M
    grep -q "of 3000 x 3000 pixels takes 274 MiB to read; give more --ram" "$KILN_TMP/err" || fail "large: $(cat "$KILN_TMP/err")"
    must 0 "$KILN_BIN/kiln-knn" "$KILN_TMP/large.db" --ram 1500M
); result
