#!/bin/bash
# Points without any colour become grey Gaussians; one coloured point is enough for black to stay black.
. tests/e2e/lib.sh
cloud() { # COLUMNS of the five rows' colours, property lines
    printf 'ply\nformat ascii 1.0\nelement vertex 5\nproperty float x\nproperty float y\nproperty float z\n%send_header\n' "$2"
    for p in '0 0 0' '1 0 0' '0 1 0' '0 0 1' '1 1 1'; do echo "$p $1"; done
}
rgb=$'property uchar red\nproperty uchar green\nproperty uchar blue\n'
first_sh0() { # sh0 of the layer that knn made, first component of the first row
    rm -rf "$KILN_TMP"/x.db* "$KILN_TMP/out.ply"
    kiln import "$KILN_TMP/p.ply" "$KILN_TMP/x.db" >/dev/null && kiln knn "$KILN_TMP/x.db" >/dev/null || fail "knn"
    kiln chunk "$KILN_TMP/x.db" --layer initial >/dev/null || fail "chunk"
    kiln export "$KILN_TMP/x.db" --format ply -o "$KILN_TMP/out.ply" >/dev/null || fail "export"
    LC_ALL=C sed '1,/^end_header$/d' "$KILN_TMP/out.ply" | od -A n -t f4 -j 24 -N 4 | tr -d ' ' # x y z nx ny nz, then f_dc_0
}

test_case 'points without colours are grey' && (
    cloud '' '' >"$KILN_TMP/p.ply"
    [ "$(first_sh0)" = 0 ] || fail "points without colours are not grey: $(first_sh0)"
); result

test_case 'a cloud that is all black is grey' && (
    cloud '0 0 0' "$rgb" >"$KILN_TMP/p.ply"
    [ "$(first_sh0)" = 0 ] || fail "an all-black cloud is not grey: $(first_sh0)"
); result

test_case 'black beside a colour stays black' && (
    cloud '0 0 0' "$rgb" | sed '$s/0 0 0$/9 9 9/' >"$KILN_TMP/p.ply"
    case $(first_sh0) in -1.77*) ;; *) fail "black beside a colour is not black: $(first_sh0)" ;; esac
); result
