#!/bin/bash
# Pruning by what training cameras see: which rows go is what schema/SCHEMA.md's formulas say in another arithmetic, on 50,000
# Gaussians; the same on any threads, under caps and without AVX2; masks, splits and changed cameras count; without cameras the rules
# are refused with the way out; a killed run goes on.
# starts first
. tests/e2e/lib.sh
. tests/e2e/pruning.sh
needs_numpy
root=$PWD T=$KILN_TMP
db=$T/b/manifest.db
rows=70000 # two blocks
split() { # all but one camera train: names tell (Blender's and INRIA's folders)
    sed -i 's/"cam0"/"test\/c0"/; s/"cam\([1-9]\)"/"train\/c\1"/g' "$1/cameras.json"
}
scene "$T/s" $rows 5 96x64
split "$T/s"
imported "$T/s" "$db"
cp "$db" "$T/start.db"

# all that the other rules leave, for the formulas
cp "$db" "$T/all.db"
kiln prune "$T/all.db" --max-spacing off --max-extent off >/dev/null && kiln chunk "$T/all.db" >/dev/null || fail "all"
# Both at once, since numpy takes ten seconds for it: without masks, and with those of the case that has some.
py make_masks "$T/pixels" 96 64 train/c1 train/c3
py score "$T/all.db" "$T/pixels" "$T/scores.npz" "$T/masked.npz" || fail "no scores"

test_case 'min-contribution drops what the formulas say' && (
    limit=$(py limit "$T/scores.npz" contribution)
    prune "$db" --max-spacing off --max-extent off --min-contribution "$limit"
    py dropped "$T/scores.npz" "$db" contribution "$limit" || fail "see above"
); result

test_case 'min-visibility drops what the formulas say' && (
    limit=$(py limit "$T/scores.npz" visibility)
    prune "$db" --min-contribution off --min-visibility "$limit"
    py dropped "$T/scores.npz" "$db" visibility "$limit" || fail "see above"
); result

test_step 'keep keeps the highest scores' && (
    prune "$db" --min-visibility off --keep 25%
    py kept "$T/scores.npz" "$db" 17500 || fail "see above"
); result

test_step 'of equal scores the first of the source stay' && (
    prune "$db" --keep 60000
    py kept "$T/scores.npz" "$db" 60000 || fail "see above"
); result

test_step 'the same on two threads, under a cap, without AVX2 and forced' && (
    prune "$db" --keep 25% --min-visibility 0.001 --min-contribution 0.001 --threads 1
    pruned "$db" >"$T/one"
    for how in '--threads 2' '--threads 2 --ram 128M'; do
        cp "$T/start.db" "$T/again.db"
        # shellcheck disable=SC2086
        prune "$T/again.db" --max-spacing off --max-extent off --keep 25% --min-visibility 0.001 --min-contribution 0.001 $how
        diff "$T/one" <(pruned "$T/again.db") || fail "another layer with $how"
    done
    KILN_ISA=baseline prune "$T/again.db" --force
    diff "$T/one" <(pruned "$T/again.db") || fail "another layer without AVX2"
    must 0 kiln verify "$T/again.db"
); result

test_step 'the options are stored, and a second run has nothing to do' && (
    must 0 "$KILN_BIN/kiln-prune" "$T/again.db"
    grep -q 'nothing to do' "$T/err" || fail "says: $(cat "$T/err")"
); result

test_step 'a dry run says the same, draws the curve and changes nothing' && (
    sum=$(md5sum <"$T/again.db")
    kiln prune "$T/again.db" --json >"$T/done.json" || fail "done"
    must 0 "$KILN_BIN/kiln-prune" "$T/again.db" --dry-run
    grep -q "against the pictures of all that the other rules leave" "$T/out" || fail "says: $(cat "$T/out")"
    prune "$T/again.db" --dry-run --min-visibility off --min-contribution off
    [ "$(awk '$3 ~ /dB|same/ || $4 == "dB" { print $1 }' "$T/out" | paste -sd ' ')" = 'kept 1/2 1/8' ] ||
        fail "what is kept is a quarter, once: $(cat "$T/out")"
    prune "$T/again.db" --dry-run --min-visibility off --min-contribution off --keep 100%
    grep -Eq '^kept +70000 +same$' "$T/out" || fail "all is no other picture: $(cat "$T/out")"
    prune "$T/again.db" --dry-run --json
    cp "$T/out" "$T/dry.json"
    [ "$(py value "$T/dry.json" "r['kept']")" = "$(py value "$T/done.json" "r['kept']")" ] || fail "a dry run keeps others"
    [ "$(py value "$T/dry.json" "[c['rows'] for c in r['curve']][1:], r['asked']")" = \
        "([35000, 17500, 8750], {'cameras': 4, 'masks': 0})" ] || fail "curve: $(py value "$T/dry.json" "r['curve'], r['asked']")"
    py value "$T/dry.json" "[c['psnr'] for c in r['curve']]"
    [ "$(py value "$T/dry.json" "r['curve'][1]['psnr'] > r['curve'][2]['psnr'] > r['curve'][3]['psnr'] > 10")" = True ] ||
        fail "the curve does not fall"
    [ "$sum" = "$(md5sum <"$T/again.db")" ] || fail "a dry run changed the bake"
); result

test_case 'they look at what the other rules leave' && (
    cp "$T/start.db" "$T/half.db"
    prune "$T/half.db" --max-spacing off --max-extent off --min-opacity 0.5 --keep 100% --json
    left=$(py value "$T/out" "r['kept']")
    prune "$T/half.db" --min-contribution 1 --keep off --json
    [ "$(py value "$T/out" "r['rules']['min-contribution']['dropped'], r['kept']")" = "($left, 0)" ] ||
        fail "of $left rows: $(py value "$T/out" "r['rules'], r['kept']")"
    prune "$T/half.db" --min-contribution off --keep "$((left - 7))" --json
    [ "$(py value "$T/out" "r['rules']['keep']['dropped'], r['kept']")" = "(7, $((left - 7)))" ] || fail "of $left rows not 7"
); result

test_case 'a share of a row leaves one, and a curve has no more rows than are left' && (
    cp "$T/start.db" "$T/one.db"
    prune "$T/one.db" --dry-run --keep 0.0001% --json
    [ "$(py value "$T/out" "r['kept']")" = 1 ] || fail "kept $(py value "$T/out" "r['kept']")"
    prune "$T/one.db" --dry-run --min-opacity 0.99 --keep 100% --json
    py value "$T/out" "max(c['rows'] for c in r['curve']) <= r['kept'] < r['rows'] / 2" | grep -qx True ||
        fail "the curve: $(py value "$T/out" "r['kept'], r['curve']")"
); result

test_case 'a value out of range is refused' && (
    for bad in '--keep 0' '--keep 101%' '--keep 50%%' '--keep -3' '--keep 3.5' '--keep %' '--min-contribution 2' '--min-visibility x'; do
        # shellcheck disable=SC2086
        must 2 "$KILN_BIN/kiln-prune" "$db" $bad
    done
); result

test_case 'without cameras of its own the rules are refused, with the way out' && (
    mkdir "$T/bare" && cp "$T/s/scene.ply" "$T/bare/" && imported "$T/bare" "$T/bare.db"
    for rule in '--keep 50%' '--min-contribution 0.1' '--min-visibility 0.1'; do
        # shellcheck disable=SC2086
        must 3 "$KILN_BIN/kiln-prune" "$T/bare.db" $rule
        grep -q 'has no cameras of its own.*--cameras FILE' "$T/err" || fail "says: $(cat "$T/err")"
    done
    prune "$T/bare.db"
); result

# photos, so that there can be masks
cp -r "$T/s" "$T/m"
kiln render "$T/all.db" --devices cpu -o "$T/m/" >/dev/null && [ -f "$T/m/train/c1.png" ] || fail "no photos"
imported "$T/m" "$T/photos.db"
cp "$T/photos.db" "$T/masks.db"
py make_masks "$T/m" 96 64 train/c1 train/c3
kiln import "$T/m" "$T/masks.db" >/dev/null && kiln knn "$T/masks.db" >/dev/null || fail "import with masks"

test_case 'masked pixels do not count' && (
    limit=$(py limit "$T/masked.npz" contribution)
    prune "$T/masks.db" --max-spacing off --max-extent off --min-contribution "$limit" --json
    [ "$(py value "$T/out" "r['asked']")" = "{'cameras': 4, 'masks': 2}" ] || fail "asked: $(py value "$T/out" "r['asked']")"
    py dropped "$T/masked.npz" "$T/masks.db" contribution "$limit" || fail "see above"
    prune "$T/photos.db" --max-spacing off --max-extent off --min-contribution "$limit"
    [ "$(pruned "$T/photos.db")" != "$(pruned "$T/masks.db")" ] || fail "masks change nothing"
); result

state() { kiln info "$1" --json | python3 -c 'import json, sys
print({s["name"]: s["state"] for s in json.load(sys.stdin)["stages"]}["prune"])'; }

test_step 'another mask makes pruning stale, another photo does not' && (
    was=$(pruned "$T/masks.db")
    cp "$T/m/train/c2.png" "$T/m/train/c4.png"
    kiln import "$T/m" "$T/masks.db" >/dev/null || fail "import of another photo"
    must 0 "$KILN_BIN/kiln-prune" "$T/masks.db" # the first import that knows of the rules
    grep -q 'nothing to do' "$T/err" || fail "another photo has pruning say: $(cat "$T/err")"
    cp "$T/m/train/c1.png" "$T/m/train/c4.png"
    kiln import "$T/m" "$T/masks.db" >/dev/null || fail "import of a third photo"
    [ "$(state "$T/masks.db")" = fresh ] || fail "a photo makes pruning $(state "$T/masks.db")"
    py make_masks "$T/m" 96 64 train/c2
    kiln import "$T/m" "$T/masks.db" >/dev/null || fail "import of another mask"
    [ "$(state "$T/masks.db")" = stale ] || fail "with another mask pruning is $(state "$T/masks.db")"
    prune "$T/masks.db"
    [ "$(pruned "$T/masks.db")" != "$was" ] || fail "another mask changes nothing"
); result

test_step 'a camera that no longer trains makes pruning stale' && (
    was=$(pruned "$T/masks.db")
    sed -i 's/"train\/c1"/"test\/c1"/' "$T/m/cameras.json" && mv "$T/m/train/c1.png" "$T/m/test/"
    kiln import "$T/m" "$T/masks.db" >/dev/null || fail "import with another split"
    [ "$(state "$T/masks.db")" = stale ] || fail "with another split pruning is $(state "$T/masks.db")"
    prune "$T/masks.db" --json
    [ "$(py value "$T/out" "r['asked']['cameras']")" = 3 ] || fail "asked: $(py value "$T/out" "r['asked']")"
    [ "$(pruned "$T/masks.db")" != "$was" ] || fail "another split changes nothing"
); result

test_case 'a mask that is no longer the imported one is refused' && (
    cp "$T/photos.db" "$T/gone.db"
    cp -r "$T/m" "$T/n"
    imported "$T/n" "$T/gone.db.2"
    py make_masks "$T/n" 96 64 train/c2 train/c3
    python3 -c 'import sys; p = sys.argv[1]; d = bytearray(open(p, "rb").read()); open(p, "wb").write(d + b"x")' "$T/n/masks/train/c3.png"
    must 3 "$KILN_BIN/kiln-prune" "$T/gone.db.2" --keep 50%
    grep -q 'masks/train/c3.png' "$T/err" || fail "says: $(cat "$T/err")"
); result

test_case 'killed again and again: the same bits' && (
    cp "$T/start.db" "$T/killed.db"
    rules='--max-spacing off --max-extent off --keep 25% --min-visibility 0.001 --min-contribution 0.001'
    kills=0
    for unit in 2 3 5 6; do
        # shellcheck disable=SC2086
        killed_when_stored "$T/killed.db" prune $(($(stored "$T/killed.db" prune) + 1)) env KILN_FAULT="unit=$unit:hang" \
            "$KILN_BIN/kiln-prune" "$T/killed.db" --quiet $rules --threads 2 && code=0 || code=$?
        [ $code != 0 ] || [ $kills -lt 2 ] || break
        [ $code = 137 ] || fail "the run that hangs in unit $unit ended with $code"
        kills=$((kills + 1))
        must 0 kiln verify "$T/killed.db"
    done
    # shellcheck disable=SC2086
    prune "$T/killed.db" $rules
    diff "$T/one" <(pruned "$T/killed.db") || fail "a killed run gives another layer"
); result

test_case 'over hosts: the same layer' && (
    export KILN_ROUND_S=0 # each list of cameras is worth a round
    cp "$T/start.db" "$T/hosts.db"
    rules='--max-spacing off --max-extent off --keep 25% --min-visibility 0.001 --min-contribution 0.001'
    # shellcheck disable=SC2086
    over_hosts "$T/hosts.db" $rules
    [ $rounds -gt 1 ] || fail "nothing is shared out"
    diff "$T/one" <(pruned "$T/hosts.db") || fail "hosts come to another layer"
); result
