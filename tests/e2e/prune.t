#!/bin/bash
# Pruning bites where it should and nowhere else: exploded Gaussians go, a sound scene keeps its bytes, one dropped row
# touches one block, merging keeps the rest, a dry run changes nothing, threads change nothing.
. tests/e2e/lib.sh
ok=$KILN_TMP/ok/manifest.db
ex=$KILN_TMP/ex/manifest.db
rows=80000 # two blocks
scene "$KILN_TMP/s" $rows 3 320x180
scene "$KILN_TMP/x" $rows 3 320x180 --explode 1 --explode-by 6.9078
for pair in "s $ok" "x $ex"; do
    set -- $pair
    kiln import "$KILN_TMP/$1" "$2" >/dev/null || fail "import $1"
    kiln knn "$2" >/dev/null || fail "knn $1"
    # by default they rest: what they touch has a tenth of the pairs
    limits=; [ $1 = s ] || limits='--max-spacing 32 --max-extent 0.5'
    kiln prune "$2" --json $limits >"$KILN_TMP/$1.json" || fail "prune $1"
done
number() { python3 -c "import json,sys; r=json.load(open(sys.argv[1])); print($2)" "$1"; }
pairs() { number "$1" "sum(c['pairs'][$2] for c in r['cameras'])"; }
plane() { digest "$1" | awk '/^layer pruned/ {print $3}'; }

test_case 'a sound scene: nothing happens' && (
    [ "$(number "$KILN_TMP/s.json" "r['kept']")" = $rows ] || fail "a sound scene lost rows"
    [ "$(number "$KILN_TMP/s.json" "sum(v['clamped'] for v in r['rules'].values())")" = 0 ] || fail "a sound scene was clamped"
); result

test_case "a plane that stays as it is keeps the source's blob" && (
    [ "$(py named "$ok" "$KILN_TMP/s.json")" = "0 True" ] ||
        fail "of a sound scene planes are packed: $(py named "$ok" "$KILN_TMP/s.json")"
    read -r packed few <<<"$(py named "$ex" "$KILN_TMP/x.json")"
    [ "$packed" -gt 10 ] && [ "$few" = False ] || fail "of a broken scene $packed planes are packed"
); result

test_case 'a block of which only scales change packs these alone' && (
    kiln prune "$ok" --max-scale 0.5 --max-scale-policy clamp --json >"$KILN_TMP/c.json" || fail "clamp"
    [ "$(py named "$ok" "$KILN_TMP/c.json")" = "2 False" ] ||
        fail "of two blocks with lower scales not two planes are packed: $(py named "$ok" "$KILN_TMP/c.json")"
); result

test_case 'a blob that is not there is not named' && (
    py lost_blob "$ok" "$KILN_TMP/lost.db" || fail "cannot take a blob out"
    must 74 kiln prune "$KILN_TMP/lost.db" --reset
    grep -q 'is missing' "$KILN_TMP/err" || fail "says: $(cat "$KILN_TMP/err")"
); result

kiln prune "$ok" --reset >/dev/null || fail "reset"

test_case 'a broken scene: at least 90 % of what it takes too much is gone' && (
    sound=$(pairs "$KILN_TMP/s.json" 0) before=$(pairs "$KILN_TMP/x.json" 0) after=$(pairs "$KILN_TMP/x.json" 1)
    [ $((before - sound)) -gt $((sound / 20)) ] || fail "the broken scene is not broken: $before pairs, $sound in the sound one"
    [ $((10 * (after - sound))) -le $((before - sound)) ] || fail "of $before pairs $after are left, $sound in the sound scene"
); result

# and the picture is the sound scene's
for name in ok ex; do
    kiln chunk "$KILN_TMP/$name/manifest.db" >/dev/null &&
        kiln render "$KILN_TMP/$name/manifest.db" --camera cam0 -o "$KILN_TMP/$name.npy" >/dev/null ||
        fail "picture of $name"
done
# the forecast is what kiln-tiles counts of the pruned layer, of blocks that the rules change and of those that they leave alone
for pair in "s ok" "x ex"; do
    test_case "the forecast is what kiln-tiles counts: $pair" && (
        set -- $pair
        kiln tiles "$KILN_TMP/$2/manifest.db" --predict --json >"$KILN_TMP/$2.tiles" || fail "tiles $2"
        counted=$(number "$KILN_TMP/$2.tiles" "[(c['name'], c['visible'], c['pairs']) for c in r['cameras']]")
        [ "$(number "$KILN_TMP/$1.json" "[(c['camera'], c['visible'][1], c['pairs'][1]) for c in r['cameras']]")" = "$counted" ] ||
            fail "prune forecasts other pairs than tiles counts of $2: $counted"
    ); result
done

test_case "the pruned picture is the sound scene's" && (
    db=$(kiln compare "$KILN_TMP/ex.npy" "$KILN_TMP/ok.npy" --json | python3 -c 'import json,sys
print(int(json.load(sys.stdin)["psnr"]))') || fail "compare"
    [ "$db" -ge 35 ] || fail "the pruned picture is $db dB from the sound one"
); result

test_case 'a dry run leaves the file alone' && (
    sum=$(md5sum <"$ok")
    "$KILN_BIN/kiln-prune" "$ok" --dry-run --min-opacity 0.5 >"$KILN_TMP/out" || fail "dry run"
    grep -q 'nothing is written' "$KILN_TMP/out" || fail "a dry run does not say so"
    [ "$sum" = "$(md5sum <"$ok")" ] || fail "a dry run wrote"
    "$KILN_BIN/kiln-prune" "$ok" 2>&1 | grep -q 'nothing to do' || fail "a dry run changed the stored rules"
); result

test_case 'tables have the rules that are auto and rest' && (
    must 0 "$KILN_BIN/kiln-prune" "$ok" --dry-run
    for rule in max-spacing max-extent; do
        grep -qE "^$rule +auto: off +0 +0  axis" "$KILN_TMP/out" || fail "no $rule: $(cat "$KILN_TMP/out")"
    done
    must 0 "$KILN_BIN/kiln-prune" "$ok" --dry-run --max-spacing off --max-extent off
    ! grep -q 'auto: off' "$KILN_TMP/out" || fail "off is no auto: $(cat "$KILN_TMP/out")"
); result

test_case 'one row of the second block: planes of the first keep their bytes' && (
    first=$(plane "$ok")
    kiln prune "$ok" --drop-row 70000 --json >"$KILN_TMP/one.json" || fail "drop-row"
    [ "$(number "$KILN_TMP/one.json" "r['kept']")" = $((rows - 1)) ] || fail "one row was to go"
    [ "$(number "$KILN_TMP/one.json" "r['units']['cached']")" -ge 2 ] || fail "statistics and the other block were computed again"
    [ "$first" != "$(plane "$ok")" ] || fail "the layer did not change"
    kiln prune "$ok" --drop-row none --threads 1 >/dev/null || fail "drop-row none"
    [ "$first" = "$(plane "$ok")" ] || fail "taking the row back did not bring the layer back"
    kiln prune "$ok" --force --threads 3 >/dev/null || fail "computed again with threads: other bytes"
); result

test_case 'merging, cropping, policies, and a second bake beside it' && (
    must 0 "$KILN_BIN/kiln-prune" "$ok" --merge --merge-distance 1 --crop-sphere 0,0,0,20 --max-scale 0.5 --max-scale-policy drop \
        --sizes 64,128 --against "$ex"
    grep -q '^merge ' "$KILN_TMP/out" || fail "nothing was merged"
    grep -q '^max-scale ' "$KILN_TMP/out" || fail "nothing was above --max-scale"
    [ "$(grep -c '^cam' "$KILN_TMP/out")" = 6 ] || fail "three cameras at two sizes are six lines"
    grep -q 'share of rows' "$KILN_TMP/out" || fail "the other bake is not shown"
    grep -q 'warning' "$KILN_TMP/err" || fail "no warning about scales that differ"
); result

test_case 'the largest axis is told exactly, not by the middle of a bin' && (
    must 0 "$KILN_BIN/kiln-prune" "$ok" --dry-run --max-scale 0.5 --max-scale-policy clamp --max-extent off --max-spacing off \
        --against "$ok"
    grep -qE '^largest +[0-9.]+ +0\.5 +' "$KILN_TMP/out" ||
        fail "the largest axis is not that of --max-scale: $(grep '^largest' "$KILN_TMP/out")"
); result

test_case 'a warning where everything is dropped' && (
    must 0 "$KILN_BIN/kiln-prune" "$ok" --max-extent off --max-spacing off --min-opacity 1
    grep -q 'ALL 80000 Gaussians' "$KILN_TMP/err" || fail "no warning when everything is dropped"
    kiln verify "$ok" >/dev/null || fail "an empty layer does not verify"
); result

test_case 'values of rules that are wrong' && (
    must 2 "$KILN_BIN/kiln-prune" "$ok" --crop-box 1,2,3
    must 2 "$KILN_BIN/kiln-prune" "$ok" --drop-row 1-3
); result

test_case 'filters keep what a plain count over the source keeps' && (
    read -r box sphere all <<<"$(py count "$KILN_TMP/s/scene.ply")"
    kiln prune "$ok" --reset >/dev/null || fail "reset"
    before=$(plane "$ok")
    kiln prune "$ok" --filter-box '-,-,-,-,-,0' --filter-sphere 0,0,0,2 --filter-value opacity,gte,0.5 --filter-value red,lt,0.5 \
        --json >"$KILN_TMP/f.json" ||
        fail "filters"
    [ "$(number "$KILN_TMP/f.json" "r['kept'], *(r['rules']['filter-' + k]['dropped'] for k in ('box', 'sphere', 'value'))")" = \
        "$all $((rows - box)) $((box - sphere)) $((sphere - all))" ] ||
        fail "filters keep $(number "$KILN_TMP/f.json" "r['kept'], r['rules']"), not $box $sphere $all"
    [ "$all" -gt 100 ] && [ "$all" -lt "$sphere" ] && [ "$sphere" -lt "$box" ] || fail "the filters say nothing: $box $sphere $all"
    [ "$(number "$KILN_TMP/f.json" "r['cameras'][0]['pairs'][1] < r['cameras'][0]['pairs'][0]")" = True ] ||
        fail "the prediction does not know the filters"
    "$KILN_BIN/kiln-prune" "$ok" 2>&1 | grep -q 'nothing to do' || fail "filters are not kept"
    kiln prune "$ok" --filter-box '' --filter-sphere '' --filter-value '' --json >"$KILN_TMP/f.json" || fail "filters off"
    [ "$before" = "$(plane "$ok")" ] || fail "filters left something"
    [ "$(number "$KILN_TMP/f.json" "r['units']['done']")" = 0 ] || fail "keys are others than before the filters"
); result

test_case 'a filter of a column that is not there' && (
    must 2 "$KILN_BIN/kiln-prune" "$ok" --filter-value confidence,gt,1
    grep -q "the column 'confidence' does not exist; there are x, y, z, opacity, scale_0" "$KILN_TMP/err" ||
        fail "says: $(cat "$KILN_TMP/err")"
); result
