#!/bin/bash
# Compressed PLY, .splat and CSV: what is written holds the rows of the bake within half a step, whatever chunks they lie in, has
# the same bytes for any number of threads and workers, says what it cannot hold, and comes again from what was read of it.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
here=$PWD
cd "$KILN_TMP" || exit 1
formats='compressed.ply splat csv'
export_all() { for f in $formats; do must 0 kiln export "$@" -o "$out.$f"; done; }
check() { for f in $formats; do python3 "$here/tests/e2e/packed_rows.py" "$1" "$2.$f" || fail "$2.$f"; done; }

# chunks that end anywhere: long ones, and many to a group of 256 rows
scene s 1500 1 32x32
kiln import s s.db >/dev/null && kiln knn s.db >/dev/null || fail "import"
for most in 700 40; do
    test_step "chunks of at most $most rows hold the rows of the bake" && (
        kiln chunk s.db --layer source --max $most --min 1 >/dev/null || fail "chunk --max $most"
        must 0 kiln export s.db --order baked -o baked.ply
        out=a$most export_all s.db --threads 1
        check baked.ply a$most
        out=b$most export_all s.db --threads 4 --workers 3
        for f in $formats; do cmp a$most.$f b$most.$f || fail "$f differs with three workers"; done
    ); result
done

# rows of a chunk that are whole groups are put into an order in which these are narrower than along the curve
kiln chunk s.db --layer source --max 1500 --min 1 >/dev/null || fail "chunk --max 1500"
must 0 kiln export s.db --order baked -o baked.ply
must 0 kiln export s.db -o one.compressed.ply

test_case 'rows of whole groups are put into a narrower order' && (
    share=$(python3 "$here/tests/e2e/packed_rows.py" baked.ply one.compressed.ply) || fail "one.compressed.ply"
    awk "BEGIN { exit !($share < 0.8) }" || fail "the diagonals of groups are together $share of those along the curve"
); result

test_case 'a part of the rows, moved and of a lower degree' && (
    part=(--filter-value x,gt,0 --sh-degree 1 --translate 1,2,3 --scale 2)
    must 0 kiln export s.db --order baked "${part[@]}" -o part.ply
    out=part export_all s.db "${part[@]}"
    check part.ply part
); result

# the layer of a file in its own order: groups are kept, and with them every code
for f in compressed.ply splat; do
    test_case "$f there and back is the same file" && (
        kiln import a40.$f again.db >/dev/null || fail "a40.$f is not read"
        must 0 kiln export again.db --layer source -o again.$f
        py same a40.$f again.$f || fail "$f there and back is another file"
        rm -rf again.db*
    ); result
done

ascii_ply 'float x float y float z uchar red uchar green uchar blue' '0.1 -2 1e-7 255 0 7' '16777216 0.25 3 1 127 254' >points.ply

test_case 'points: CSV alone' && (
    kiln import points.ply points.db >/dev/null || fail "import of points"
    must 0 kiln export points.db --layer source -o points.csv
    printf 'x,y,z,red,green,blue,source_row\n0.1,-2,1e-7,255,0,7,0\n16777216,0.25,3,1,127,254,1\n' | cmp - points.csv ||
        fail "points.csv: $(cat points.csv)"
); result

py hard >hard.ply
kiln import hard.ply hard.db >/dev/null || fail "import of hard.ply"

test_case 'what a compressed PLY does not hold is counted' && (
    must 0 "$KILN_BIN/kiln-export" hard.db --layer source -o hard.compressed.ply
    tr -s ' \n' ' ' <err >said
    for words in 'holds no spherical harmonics above degree 3' ': 2 log scales were clamped to -20 .. 20' \
        ': 45 SH coefficients were clamped to -4 .. 4'; do
        grep -qF -- "$words" said || fail "not said: $words: $(cat said)"
    done
); result

test_case 'what a .splat does not hold is counted' && (
    must 0 "$KILN_BIN/kiln-export" hard.db --layer source -o hard.splat
    tr -s ' \n' ' ' <err >said
    for words in 'holds no spherical harmonics above degree 0' ': 2 colours were clamped to 0 .. 1'; do
        grep -qF -- "$words" said || fail "not said: $words: $(cat said)"
    done
); result

test_case 'one is not called several; --json has one name for either' && (
    sed -e 's/^1 2 3 9 0 -9 \(5 \)*/1 2 3 9 0 0 5 '"$(printf '0 %.0s' {1..71})"'/' -e 's/ 0 -25 0 88 / 100 -25 0 0 /' hard.ply \
        >one.ply
    kiln import one.ply one.db >/dev/null || fail "import of one.ply"
    for pair in 'compressed.ply:1 log scale was clamped to' 'compressed.ply:1 SH coefficient was clamped to' \
        'splat:1 colour was clamped to' \
                'spz:1 row has a log scale that was clamped to' 'spz:1 row has a spherical harmonic that was clamped to' \
                'glb:1 opacity was clamped to'; do
        must 0 "$KILN_BIN/kiln-export" one.db --layer source -o one.${pair%%:*} -w --json
        tr -s ' \n' ' ' <err | grep -qF -- "': ${pair#*:}" || fail "not said: $pair: $(cat err)"
        ! grep -qE ': 1 [a-z ]*s (were|have)' err || fail "one is called several: $(cat err)"
    done
    must 0 "$KILN_BIN/kiln-export" one.db --layer source -o one.splat -w --json
    grep -q '"colours were clamped to 0 .. 1": *1\b' out || fail "--json: $(cat out)"
); result

test_case 'a CSV of degree 4 holds everything' && (
    must 0 "$KILN_BIN/kiln-export" hard.db --layer source -o hard.csv
    ! grep -v " written to " err || fail "a CSV of degree 4 holds everything: $(cat err)"
    [ "$(head -n 1 hard.csv | tr , '\n' | wc -l)" = 87 ] || fail "columns of hard.csv"
); result

# far from 0: floats are coarse there, which is said; relative ones are not
ascii_ply 'double x double y double z uchar red uchar green uchar blue' \
    '500000.125 4000000.3 7 1 2 3' '500010 4000020 9 4 5 6' >far.ply
kiln import far.ply far.db >/dev/null && kiln knn far.db >/dev/null || fail "import of far.ply"

test_case 'far from 0: CSV' && (
    must 0 kiln export far.db --layer source -o far.csv
    sed -n 2p far.csv | grep -q '^500000\.125,4000000\.[23][0-9]*,7,1,2,3,0$' || fail "far.csv: $(cat far.csv)"
); result

test_case 'far from 0: floats are coarse, which is said; relative ones are not' && (
    for f in compressed.ply splat; do
        must 0 "$KILN_BIN/kiln-export" far.db --layer initial -o far.$f
        tr -s ' \n' ' ' <err | grep -qF 'whose steps are up to 0.25 where' || fail "$f far from 0: $(cat err)"
        must 0 "$KILN_BIN/kiln-export" far.db --layer initial --keep-origin -w -o far.$f
        ! grep -q apart err || fail "$f near its origin: $(cat err)"
    done
    grep -aq '^comment Origin: ' far.compressed.ply || fail "the origin of a compressed PLY"
); result

test_case 'targets that cannot be written leave nothing' && (
    for f in $formats; do
        must 74 bash -c "ulimit -f 8; trap '' XFSZ; exec '$KILN_BIN/kiln-export' --quiet s.db -o full.$f"
        [ -z "$(ls | grep '^full')" ] || fail "$f: $(ls | grep '^full')"
        must 74 kiln export s.db -o points.ply/x.$f
    done
); result

test_case 'what was written is read again to be measured' && (
    must 0 "$KILN_BIN/kiln-export" s.db -o loss.compressed.ply --report-loss 1
    grep -q 'dB' err || fail "the loss of a compressed PLY: $(cat err)"
); result
