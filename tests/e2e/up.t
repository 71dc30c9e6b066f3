#!/bin/bash
# --up: round which axis the synthetic cameras of a scene without any stand. It is kept, and bakes of before it stay fresh.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3 to look at cameras with"
db=$KILN_TMP/m.db
ups() { # the axis that is up in all pictures, and that of the scene row
    py ups "$db" || fail "up is not what it should be"
}
kiln generate points "$KILN_TMP/p" --gaussians 500 >/dev/null || fail generate
cloud=$KILN_TMP/p/points.ply

test_case 'without --up' && (
    must 0 kiln import "$cloud" "$db"
    [ "$(ups)" = '-y ' ] || fail "without --up it is '$(ups)'"
); result

for axis in z -z x -x y; do
    test_case "--up $axis" && (
        must 0 kiln import "$cloud" "$db" --up "$axis"
        [ "$(ups)" = "$axis $axis" ] || fail "--up $axis gives '$(ups)'"
    ); result
done

test_case '--up is kept' && (
    must 0 kiln import "$cloud" "$db" --up y
    must 0 "$KILN_BIN/kiln-import" "$cloud" "$db"
    grep -q 'nothing to do' "$KILN_TMP/err" && [ "$(ups)" = 'y y' ] || fail "--up is not kept: $(ups)"
); result

test_case '--reset forgets it' && (
    must 0 kiln import "$cloud" "$db" --reset
    [ "$(ups)" = '-y ' ] || fail "--reset leaves '$(ups)'"
); result

for stray in 0 1000; do
    test_case "the orbit shows all of an object, with a point at $stray" && (
        py write_neck "$KILN_TMP/neck.ply" $stray
        must 0 kiln import "$KILN_TMP/neck.ply" "$KILN_TMP/neck.db"
        py neck_is_seen "$KILN_TMP/neck.db"
    ); result
done

test_case 'cameras beside a lone file are named' && (
    kiln generate scene "$KILN_TMP/s" -n 200 -c 2 --size 16x16 >/dev/null || fail generate
    must 0 "$KILN_BIN/kiln-import" "$KILN_TMP/s/scene.ply" "$KILN_TMP/lone.db"
    grep -q "'$KILN_TMP/s/cameras.json' lies beside the scene" "$KILN_TMP/err" && grep -q "give the folder '$KILN_TMP/s' instead" "$KILN_TMP/err" || fail "$(cat "$KILN_TMP/err")"
    must 0 "$KILN_BIN/kiln-import" "$KILN_TMP/s" "$KILN_TMP/whole.db"
    ! grep -q 'lies beside' "$KILN_TMP/err" || fail "they are read: $(cat "$KILN_TMP/err")"
    rm "$KILN_TMP/s/scene.ply"
    must 0 kiln import "$KILN_TMP/s" "$KILN_TMP/none.db" --list
    grep -q '^misses   rows      no Gaussians and no points; --random-points N makes points$' "$KILN_TMP/out" || fail "$(cat "$KILN_TMP/out")"
); result

test_case 'an axis that there is not' && (
    must 2 kiln import "$cloud" "$db" --up w
); result
