#!/bin/bash
# What kiln-export selects, moves and joins: filters keep what a plain count keeps, in each layer; a scene moved on export is the
# one that is moved on import; several bakes in one file; another filter makes the export due, the same one does not.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
rows=8000
scene "$KILN_TMP/s" $rows 1 64x64
scene "$KILN_TMP/t" 3000 1 64x64 --seed 7
db=$KILN_TMP/a/x.db other=$KILN_TMP/b/x.db
for pair in "s $db" "t $other"; do
    set -- $pair
    kiln import "$KILN_TMP/$1" "$2" >/dev/null && kiln knn "$2" >/dev/null && kiln chunk "$2" --layer source --max 500 >/dev/null ||
        fail "bake of $1"
done
to() { local out=$1; shift; kiln export "$db" -w -o "$KILN_TMP/$out" "$@" >/dev/null || fail "export $*"; }

py filters "$KILN_TMP" >"$KILN_TMP/cases" || fail "cases"
body() { python3 -c 'import sys; sys.stdout.buffer.write(open(sys.argv[1], "rb").read().split(b"end_header\n", 1)[1])' "$1"; }
while read -r k options; do
    test_case "filters: $options" && (
        want=$(($(stat -c %s "$KILN_TMP/case$k") / 248))
        if [ "$want" = 0 ]; then # of the generated scene all normals are 0
            must 3 "$KILN_BIN/kiln-export" "$db" -o "$KILN_TMP/none.ply" $options
            grep -q "there is no row to export: of the layer 'baked', --filter-value keeps nothing" "$KILN_TMP/err" &&
                [ ! -e "$KILN_TMP/none.ply" ] ||
                fail "nothing is kept: $(cat "$KILN_TMP/err")"
            exit 0
        fi
        [ "$want" -lt $rows ] || fail "case $k keeps all rows"
        for layer in baked source; do
            to f.ply --layer $layer $options
            body "$KILN_TMP/f.ply" | cmp - "$KILN_TMP/case$k" ||
                fail "$options of $layer: other rows than a plain loop keeps ($want)"
        done
        to g.ply --order baked --threads 1 $options
        [ "$(body "$KILN_TMP/g.ply" | wc -c)" = $((want * 248)) ] || fail "$options in baked order: not $want rows"
    ); result
done <"$KILN_TMP/cases"

test_case 'filters: workers change no bytes' && (
    to f.ply --filter-value opacity,gte,0.5 --threads 1 --workers 1
    to g.ply --filter-value opacity,gte,0.5 --workers 3
    cmp "$KILN_TMP/f.ply" "$KILN_TMP/g.ply" || fail "workers change the bytes"
); result

test_case 'wrong filters' && (
    must 2 "$KILN_BIN/kiln-export" "$db" -o "$KILN_TMP/no.ply" --filter-box 0,0,0,-1,1,1
    grep -q "lower corner" "$KILN_TMP/err" || fail "says: $(cat "$KILN_TMP/err")"
    must 2 "$KILN_BIN/kiln-export" "$db" -o "$KILN_TMP/no.ply" --filter-value confidence,gt,0
    grep -q "the column 'confidence' does not exist; there are x, y, z, opacity, scale_0.*f_rest_0 to f_rest_44, nx, ny, nz" "$KILN_TMP/err" ||
        fail "says: $(cat "$KILN_TMP/err")"
    must 2 "$KILN_BIN/kiln-export" "$db" -o "$KILN_TMP/no.ply" --filter-value opacity,gt,2
    must 3 "$KILN_BIN/kiln-export" "$db" -o "$KILN_TMP/raw" --format chunks --filter-value opacity,gt,0.5
    [ ! -e "$KILN_TMP/no.ply" ] && [ ! -e "$KILN_TMP/raw" ] || fail "a refused export left something"
); result

test_case 'degrees of spherical harmonics' && (
    to f.ply --sh-degree 1
    to g.ply --sh-degree 1 --order baked
    to h.ply --sh-degree 4
    cmp "$KILN_TMP/h.ply" "$KILN_TMP/s/scene.ply" || fail "a degree above the scene's changes something"
    py degrees "$KILN_TMP" || fail "degrees"
); result

for move in '--scale 2 --rotate 10,20,30 --translate 1,2,3' '--rotate 90,0,-180' '--scale 0.001' '--translate 0,0,500' \
    '--translate 4e5,5e6,0'; do
    test_case "moved on export as on import: $move" && (
        rm -rf "$KILN_TMP/m"
        kiln import "$KILN_TMP/s" "$KILN_TMP/m/x.db" $move >/dev/null || fail "import $move"
        kiln export "$KILN_TMP/m/x.db" --layer source -w -o "$KILN_TMP/m.ply" >/dev/null || fail "export of what import moved"
        for layer in baked source; do
            to f.ply --layer $layer $move
            if [ "$move" = '--translate 4e5,5e6,0' ]; then # doubles, measured from two origins
                grep -aq '^property double x' "$KILN_TMP/f.ply" || fail "$move: coordinates are floats"
                py moved "$KILN_TMP" || fail "$move of $layer"
            else
                cmp "$KILN_TMP/f.ply" "$KILN_TMP/m.ply" || fail "$move of $layer: not what import makes of it"
            fi
        done
    ); result
done

test_case 'a scale of 0' && (
    must 2 "$KILN_BIN/kiln-export" "$db" -o "$KILN_TMP/no.ply" --scale 0
); result

test_case 'the axis that points up turns along, in every format' && (
    # the axis that points up turns along ("y" only names the vertical axis, of which -y is up), and every format has the bytes that
    # it has of the scene that import moved
    turn='--rotate 90,0,0 --scale 2'
    sed 's/^element vertex/comment Vertical axis: y\n&/' "$KILN_TMP/t/scene.ply" >"$KILN_TMP/up.ply"
    kiln import "$KILN_TMP/up.ply" "$KILN_TMP/u1.db" >/dev/null &&
        kiln import "$KILN_TMP/up.ply" "$KILN_TMP/u2.db" $turn >/dev/null ||
        fail "import"
    mkdir "$KILN_TMP/u1" "$KILN_TMP/u2"
    # (but html's: its cameras are made by import here, around the octree of the scene that it read; e2e/export_html moves given
    # ones)
    formats=$("$KILN_BIN/kiln-export" --list-formats | awk '$1 != "chunks" && $1 != "html" && $3 != "levels" { printf "%s%s", n++ ? "," : "", $1 }')
    kiln export "$KILN_TMP/u1.db" --layer source $turn --filter-value opacity,gte,0.3 --format "$formats" -o "$KILN_TMP/u1/" \
        >/dev/null ||
        fail "export to all formats"
    kiln export "$KILN_TMP/u2.db" --layer source --filter-value opacity,gte,0.3 --format "$formats" -o "$KILN_TMP/u2/" >/dev/null ||
        fail "export to all formats"
    grep -aq '^comment Vertical axis: -z$' "$KILN_TMP/u1/scene.ply" ||
        fail "up is still y: $(grep -a '^comment' "$KILN_TMP/u1/scene.ply")"
    diff -r "$KILN_TMP/u1" "$KILN_TMP/u2" >&2 || fail "a format is not what it is of the moved scene"
    [ "$(ls "$KILN_TMP/u1" | wc -l)" -ge 8 ] || fail "formats are missing: $formats"
); result

test_case 'no chunk can have a row, or the survey finds none' && (
    for box in 1e6,1e6,1e6,1e7,1e7,1e7 0,0,0,0,0,0; do
        must 3 "$KILN_BIN/kiln-export" "$db" -o "$KILN_TMP/none.ply" --filter-box=$box --filter-value=opacity,gt,0.1
        grep -q "of the layer 'baked', --filter-box, --filter-value keeps nothing" "$KILN_TMP/err" ||
            fail "$box: $(cat "$KILN_TMP/err")"
    done
    to f.ply --filter-value=source_row,eq,7
    must 0 "$KILN_BIN/kiln-export" "$db" -w -o "$KILN_TMP/f.ply" --filter-value=source_row,eq,7 --force
    grep -q ' 1 row of layer' "$KILN_TMP/err" || fail "one row: $(cat "$KILN_TMP/err")"
); result

test_case 'filters look at the rows before they are moved' && (
    to f.ply --filter-box=-,-,-,0,-,- --translate 100,0,0
    to g.ply --filter-box=-,-,-,0,-,-
    [ "$(body "$KILN_TMP/f.ply" | wc -c)" = "$(body "$KILN_TMP/g.ply" | wc -c)" ] || fail "filters look at moved rows"
); result

test_case 'several bakes are their rows one after the other' && (
    to ab.ply --add "$other"
    cmp <(body "$KILN_TMP/ab.ply") <(body "$KILN_TMP/s/scene.ply"; body "$KILN_TMP/t/scene.ply") ||
        fail "two bakes are not their rows one after the other"
    [ ! -e "$other.lock" ] || fail "a bake that is only read was locked"
    to ba.ply --add "$other" --order baked --workers 1
    to ab2.ply --add "$other" --order baked --workers 3
    cmp "$KILN_TMP/ba.ply" "$KILN_TMP/ab2.ply" || fail "workers change the bytes of several bakes"
); result

test_step 'bakes joined on export are files joined on import' && (
    to f.ply --add "$other" --filter-value opacity,gte,0.5 --scale 3 --chunks '/**'
    kiln import "$KILN_TMP/s" --add "$KILN_TMP/t/scene.ply" --scale 3 "$KILN_TMP/j.db" >/dev/null || fail "import --add"
    kiln export "$KILN_TMP/j.db" --layer source --filter-value opacity,gte,0.5 -w -o "$KILN_TMP/g.ply" >/dev/null ||
        fail "export of joined files"
    cmp <(body "$KILN_TMP/f.ply") <(body "$KILN_TMP/g.ply") || fail "bakes joined on export are not files joined on import"
); result

test_case 'a bake that is not there or not ready' && (
    must 3 "$KILN_BIN/kiln-export" "$db" --add "$KILN_TMP/nowhere.db" -o "$KILN_TMP/no.ply"
    must 4 "$KILN_BIN/kiln-export" "$db" --add "$KILN_TMP/j.db" -o "$KILN_TMP/no.ply"
    grep -q "chunk has not run for '$KILN_TMP/j.db'" "$KILN_TMP/err" || fail "says: $(cat "$KILN_TMP/err")"
); result

# other columns, other degrees, other origins
py sources "$KILN_TMP" || fail "sources"
for f in p q; do kiln import "$KILN_TMP/$f.ply" "$KILN_TMP/$f.db" >/dev/null || fail "import $f"; done

test_case 'bakes with other columns, degrees and origins' && (
    must 0 "$KILN_BIN/kiln-export" "$KILN_TMP/p.db" --layer source --add "$KILN_TMP/q.db" -o "$KILN_TMP/pq.ply"
    for c in mine label; do
        grep -q "column '$c' of the source is not in all bakes and left out" "$KILN_TMP/err" ||
            fail "'$c' is not named: $(cat "$KILN_TMP/err")"
    done
    ! grep -q "column '[xyz]'" "$KILN_TMP/err" || fail "coordinates are said to be left out: $(cat "$KILN_TMP/err")"
    py joined "$KILN_TMP" || fail "bakes with other columns, degrees and origins"
); result

test_case "a filter on a column of the source's own" && (
    kiln export "$KILN_TMP/q.db" --layer source --filter-value confidence,gte,2990 --filter-value label,eq,3 --filter-value \
        confidence,neq,2995 -w -o "$KILN_TMP/f.ply" >/dev/null ||
        fail "a filter of the source's own column"
    py own_column "$KILN_TMP" || fail "a filter of the source's own column"
); result

said() { "$KILN_BIN/kiln-export" "$db" "$@" 2>&1; }

test_step 'an export is remembered' && (
    [[ $(said) == *written* && $(said) == *"nothing to do"* ]] || fail "an export is not remembered"
); result

test_step 'a filter is stored, and another one has something to do' && (
    [[ $(said --filter-sphere 0,0,0,1) == *written* && $(said) == *"nothing to do"* ]] || fail "a filter is not stored"
    [[ $(said --filter-sphere 0,0,0,1) == *"nothing to do"* ]] || fail "the same filter is another one"
    [[ $(said --filter-sphere 0,0,0,1.5) == *written* && $(said --filter-sphere '') == *written* ]] ||
        fail "another filter has nothing to do"
    cmp "$KILN_TMP/s/scene.ply" "$KILN_TMP/a/export/scene.ply" || fail "a filter that is taken back left something"
); result

test_case '--add is stored by its absolute path, and another bake there has something to do' && (
    (cd "$KILN_TMP/b" && "$KILN_BIN/kiln-export" ../a/x.db --add x.db --quiet) || fail "--add by a relative path"
    [[ $(said) == *"nothing to do"* ]] || fail "--add is not stored by its absolute path"
    kiln chunk "$other" --max 300 >/dev/null || fail "chunk"
    [[ $(said) == *written* && $(said) == *"nothing to do"* ]] || fail "another bake of --add changed, and nothing was done"
); result
