#!/bin/bash
# 3D Tiles: valid by the specification (tests/validators/tileset.py), the leaves hold every Gaussian where it was, the bytes are the
# same for any threads, workers and --ram; --geo puts the scene on the globe; without levels there is a sentence; the validator
# finds faults.
. tests/e2e/lib.sh
valid() { python3 tests/validators/tileset.py "$1"; }
out=$KILN_TMP
scene "$out/s" 6000 4 32x24
kiln import "$out/s" "$out/b.db" >/dev/null && kiln knn "$out/b.db" >/dev/null &&
    kiln chunk "$out/b.db" --layer source --max 900 >/dev/null ||
    fail 'chunk'

test_case 'without levels there is a sentence' && (
    must 4 kiln export "$out/b.db" --format 3dtiles -o "$out/t"
    grep -q 'kiln-lod' "$out/err" || fail 'the refusal does not name kiln-lod'
    [ ! -e "$out/t" ] || fail 'a refused export left something'
); result

kiln lod "$out/b.db" --levels 3 --coarsest 300 >/dev/null || fail 'lod'
must 0 kiln export "$out/b.db" --format 3dtiles -o "$out/t" --threads 1

test_case 'valid, and the leaves hold every row' && (
    facts=$(valid "$out/t/tileset.json") || fail "not valid: $facts"
    rows=$(sqlite3 "$out/b.db" "select sum(count) from chunk join stage_output using (layer) where role = 'baked'")
    [[ $facts = *"\"leaf_rows\": $rows,"* ]] || fail "not $rows rows in the leaves: $facts"
    [[ $facts =~ \"depth\":\ ([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -ge 6 ] || fail "too few tiles above each other: $facts"
    [[ $facts =~ \"root_rows\":\ ([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -le 300 ] || fail "the root is too large: $facts"
); result

test_case 'the same bytes for any threads, workers and --ram' && (
    for how in '--threads 2' '--workers 3' '--ram 200M'; do
        rm -rf "$out/u"
        # shellcheck disable=SC2086
        must 0 kiln export "$out/b.db" --format 3dtiles -o "$out/u" $how
        diff -r "$out/t" "$out/u" >&2 || fail "other bytes with $how"
    done
); result

test_case "errors are of the scene's size, and differ from level to level" && (
    py errors "$out/t/tileset.json" || fail 'errors out of all proportion'
); result

test_case 'a leaf is its chunk, turned as glTF has it' && (
    chunk=$(sqlite3 "$out/b.db" "select chunk.name from chunk join stage_output using (layer) where role = 'baked' order by ordinal limit 1")
    file=${chunk#/} && file=$out/t/${file//\//_}_L0.glb
    kiln import "$file" "$out/leaf.db" --frame as-is >/dev/null || fail 'import of a leaf'
    must 0 kiln export "$out/leaf.db" --layer source -o "$out/leaf.ply"
    must 0 kiln export "$out/b.db" --chunks "$chunk" --order baked -o "$out/chunk.ply"
    py one_leaf "$out/leaf.ply" "$out/chunk.ply" || fail 'a leaf is not its chunk'
); result

test_case '--geo puts the scene on the globe' && (
    rm -rf "$out/u"
    must 0 kiln export "$out/b.db" --format 3dtiles --geo 47.37,8.54,410 -o "$out/u"
    valid "$out/u/tileset.json" >/dev/null || fail 'not valid with --geo'
    py on_the_globe \
        "$out/u/tileset.json" || fail '--geo is not on the ground'
    for bad in 91,0,0 1,2 1,2,x 1,2,3,4; do must 2 kiln export "$out/b.db" --format 3dtiles --geo $bad -o "$out/w"; done
); result

test_case '--geo is refused where no format has a place' && (
    must 2 kiln export "$out/b.db" --format ply --geo 47.37,8.54,410
    grep -q 'format is ply' "$out/err" || fail 'the refusal of --geo does not name the format'
    must 2 kiln export "$out/b.db" --format ply,spz --geo 47.37,8.54,410
    grep -q 'format is ply,spz' "$out/err" || fail 'the refusal of --geo does not name both formats'
    must 2 kiln export "$out/b.db" --geo 47.37,8.54,410 -o "$out/w.glb"
    grep -q 'format is glb' "$out/err" && [ ! -e "$out/w.glb" ] ||
        fail 'the refusal of --geo does not name the format of the suffix'
    cp "$out/b.db" "$out/placed.db"
    must 0 kiln export "$out/placed.db" --format ply,3dtiles --geo 47.37,8.54,410
    must 0 "$KILN_BIN/kiln-export" "$out/placed.db" --format ply
    grep -q 'stored --geo' "$out/err" || fail 'nothing said of the stored --geo'
    rm -rf "$out/export"
); result

test_case "--frame as-is says that axes are never the PLY's, and --geo none takes the place back" && (
    rm -rf "$out/u"
    must 0 "$KILN_BIN/kiln-export" "$out/b.db" --format 3dtiles --frame as-is --geo none -o "$out/u"
    grep -q 'frame as-is' "$out/err" && diff -r "$out/t" "$out/u" >&2 || fail '--frame as-is'
); result

test_case "a stranger's names reach neither files nor JSON" && (
    cp "$out/b.db" "$out/bad.db" &&
        sqlite3 "$out/bad.db" "update chunk set name = replace(name, '/0', '/\"0'), parent = replace(parent, '/0', '/\"0')"
    must 3 kiln export "$out/bad.db" --format 3dtiles -o "$out/w"
    [ ! -e "$out/w" ] || fail 'a refused export left something'
); result

test_case 'the validator finds each fault' && (
    py break_tileset "$out/t/tileset.json" "$out/t" || fail 'cannot break a tileset'
    for fault in larger rest gone box old; do
        ! valid "$out/t/$fault.json" >/dev/null || fail "the validator does not see: $fault"
    done
); result
