#!/bin/bash
# Exports for strict readers: INRIA's 62 columns in their order, an origin that the pipeline keeps, SPZ 2, .splat by importance.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3 to write files with"
python3 tests/e2e/dialects.py "$KILN_TMP" || fail 'no files'
cd "$KILN_TMP" || exit 1
says() { grep -qE -- "$1" "$2" || fail "no '$1' in $2: $(cat "$2")"; }
chunked() { must 0 kiln knn "$1.db" && must 0 kiln chunk "$1.db" --layer source --max 64 --min 16; }
baked() { must 0 kiln import "$1.ply" "$1.db" && chunked "$1"; }
header() { sed '/end_header/q' "$1" | grep -a ^property | cut -d' ' -f2- | paste -sd' '; }

want=$(python3 -c "
c = list('xyz') + ['nx', 'ny', 'nz'] + [f'f_dc_{i}' for i in range(3)] + [f'f_rest_{i}' for i in range(45)]
print(' '.join('float ' + n for n in c + ['opacity'] + [f'scale_{i}' for i in range(3)] + [f'rot_{i}' for i in range(4)]))")
for f in plain few degree4 rgb one_scale far; do
    test_step "INRIA's columns of $f" && (
        baked $f && must 0 "$KILN_BIN/kiln-export" $f.db --columns inria -o $f.inria.ply
        [ "$(header $f.inria.ply)" = "$want" ] || fail "$f: $(header $f.inria.ply)"
        cp err $f.err
    ); result
done

test_case "what INRIA's columns leave out is said" && (
    says '1 column of unknown meaning is left out: label' few.err
    says 'spherical harmonics above degree 3 are left out' degree4.err
); result

test_case 'values keep their places' && (
    py values || fail 'values move'
); result

test_case '--columns source' && (
    must 0 "$KILN_BIN/kiln-export" plain.db --columns source -o plain.out.ply &&
        header plain.out.ply | grep -q 'f_rest_8 float opacity' ||
        fail 'source columns'
); result

test_case 'kiln pipeline writes positions relative to an origin' && (
    must 0 "$KILN_BIN/kiln" pipeline far.ply --out far.bake
    says 'export: positions are written relative to the scene.s origin, 5000[0-9]* 53000[0-9]* ' err
    header far.bake/export/scene.ply | grep -q '^float x float y float z' || fail "doubles: $(header far.bake/export/scene.ply)"
); result

test_case '--no-keep-origin, by hand and --reset' && (
    must 0 "$KILN_BIN/kiln" pipeline far.ply --out far2.bake --no-keep-origin
    ! grep -q 'relative to the scene' err || fail 'not asked for'
    header far2.bake/export/scene.ply | grep -q '^double x' || fail 'absolute places'
    must 0 kiln export far.db -o far.hand.ply && header far.hand.ply | grep -q '^double x' || fail 'by hand'
    must 0 "$KILN_BIN/kiln" pipeline far.ply --out far2.bake --reset # what was said is forgotten
    header far2.bake/export/scene.ply | grep -q '^float x float y float z' ||
        fail "after --reset: $(header far2.bake/export/scene.ply)"
); result

test_case "INRIA's columns are floats: what that costs far out is said" && (
    must 0 "$KILN_BIN/kiln-export" far.db -o far.inria.ply --columns inria
    says 'readers hold positions as float32, whose steps are up to 0.5 where' err
    must 0 "$KILN_BIN/kiln-export" far.db -o far.inria.ply -w --columns inria --keep-origin
    ! grep -q 'readers hold positions as float32' err || fail 'kept'
); result

test_case 'a scene without an origin' && (
    must 0 "$KILN_BIN/kiln" pipeline plain.ply --out plain.bake && ! grep -q 'relative to the scene' err ||
        fail 'a scene without an origin'
); result

test_step 'the header and size of SPZ 2' && (
    must 0 kiln export plain.db --format spz2 -o plain.v2.spz && must 0 kiln export plain.db --format spz -o plain.v3.spz
    [ "$(zcat plain.v2.spz 2>/dev/null | head -c 13 | od -An -tx1 | tr -d ' \n')" = 4e475350020000002c01000001 ] ||
        fail 'the header of version 2'
    [ "$(zcat plain.v2.spz | wc -c)" = $((16 + 300 * (9 + 1 + 3 + 3 + 3 + 9))) ] || fail 'the size of version 2'
    for v in v2 v3; do must 0 kiln import plain.$v.spz $v.db && must 0 kiln export $v.db --layer source -o $v.ply; done
    chunked v2 && must 0 kiln export v2.db --order baked --format spz2 -o again.spz && must 0 kiln import again.spz again.db
    must 0 kiln export again.db --layer source -o again.ply
); result

test_case 'SPZ 2 holds the same Gaussians' && (
    py version_2 || fail 'version 2 holds other Gaussians'
); result

test_case 'SPZ 2 of degree 4' && (
    must 0 kiln export degree4.db --format spz2 -o degree4.spz
); result

baked ties
for f in plain ties; do
    test_step ".splat of $f: threads and memory change no order" && (
        must 0 kiln export $f.db -o $f.splat && must 0 kiln export $f.db --order baked -o $f.baked.ply
        must 0 kiln export $f.db --threads 1 --ram 60M -o $f.one.splat && cmp $f.splat $f.one.splat ||
            fail "$f: threads or memory change the order"
    ); result
done

test_case '.splat by importance' && (
    py importance || fail 'not in the order of importance'
); result

test_case '--list-formats tells versions of SPZ apart' && (
    must 0 kiln export --list-formats
    ! grep -q 'which all readers' out || fail 'not all readers take version 3'
    says '^spz2 .*version 2' out
); result
