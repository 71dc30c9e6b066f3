#!/bin/bash
# tests/bench/frames, small: it renders each camera of its path to a file, says a time and a size, and finds its scene again.
. tests/e2e/lib.sh
export O=${KILN_BIN%/bin} FRAMES=3 GAUSSIANS=4000 SIZE=160x96 DEVICES=cpu THREADS=1 RUNS=1 JSON=$KILN_TMP/json

test_step 'each camera of the path in a file, and the figures' && (
    must 0 tests/bench/frames "$KILN_TMP/w"
    [ "$(find "$KILN_TMP/w/png" -name '*.png' | wc -l)" = 3 ] || fail "not 3 pictures"
    python3 - "$JSON" <<'PY' || fail "the figures: $(cat "$JSON")"
import json, sys
f = json.load(open(sys.argv[1]))
sys.exit(not (f["frames"] == 3 and f["threads"] == 1 and f["ms"] > 0 and 0.5 < f["size_over_level6"] < 2))
PY
); result

test_case 'the scene is found again' && (
    scene=$(stat -c '%i %Y' "$KILN_TMP/w/scene.db")
    must 0 tests/bench/frames "$KILN_TMP/w"
    [ "$(stat -c '%i %Y' "$KILN_TMP/w/scene.db")" = "$scene" ] || fail "the scene was made anew"
); result

test_case 'sizes beside level 6' && (
    read -r have level6 < <("$O/tests/bench/png_level6" "$KILN_TMP"/w/png/*.png) || fail "png_level6"
    [ "$have" = "$(cat "$KILN_TMP"/w/png/*.png | wc -c)" ] && [ "$level6" -gt 3000 ] || fail "sizes: $have $level6"
); result

test_case 'a picture that is none' && (
    printf 'no picture' >"$KILN_TMP/bad.png"
    must 74 "$O/tests/bench/png_level6" "$KILN_TMP/bad.png"
); result

test_case 'a manifest that is none' && (
    rm "$KILN_TMP/w/scene.db"
    mkdir "$KILN_TMP/w/scene.db"
    ! tests/bench/frames "$KILN_TMP/w" >/dev/null 2>&1 || fail "a manifest that is none, and no failure"
); result
