#!/bin/bash
# Where kiln-export does not write: over the bake, over the scene it was made from; and that nothing is written where one of several
# formats is refused. What -o means with a stored list of formats; --no-normals; no --shard.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
scene s 300 2 40x24
bake s x.db
cp x.db mani; cp x.db other

test_case 'over the bake itself' && (
    must 2 kiln export mani -o mani --format ply
    grep -q "'mani' is the bake itself" err || fail "$(cat err)"
    must 2 kiln export mani --add other --format splat -o other
); result

cp s/scene.ply before.ply

test_case 'over a file of the scene' && (
    must 2 kiln export x.db -o s/scene.ply
    grep -q "'s/scene.ply' is a file of the scene" err || fail "$(cat err)"
); result

test_case 'other programs over the bake and its files' && (
    must 2 kiln info mani --cameras -o mani
    must 2 kiln report mani -o mani
    ln -s mani link
    must 2 kiln report link -o ./mani
    must 2 kiln report mani --against other -o other
    must 2 kiln report mani -o mani-wal
    must 2 kiln report mani -o s/scene.ply
    [ ! -e mani-wal ] || fail "a page has the name of the manifest's log"
); result

test_case 'nothing was written over' && (
    cmp s/scene.ply before.ply || fail 'the scene was written over'
    kiln verify mani >/dev/null && kiln verify other >/dev/null || fail 'a bake was written over'
); result

test_case 'one format refused: none written' && (
    mkdir o
    must 4 kiln export x.db --format splat,lod -o o/ # of levels, which are not there
    [ -z "$(ls o)" ] || fail "one of two formats was refused, and there is: $(ls o)"
); result

test_case 'a stored list of formats' && (
    must 0 kiln export x.db --format csv,splat
    must 2 kiln export x.db -o noext
    grep -q 'several formats (csv,splat)' err && ! grep -q 'stored parameter' err || fail "$(cat err)"
    must 2 kiln export x.db -o x.foo
    grep -q "'.foo' is not a format" err && ! grep -q 'stored parameter' err || fail "$(cat err)"
    must 2 kiln export x.db -o -
); result

test_case 'names as long as the file system takes them' && (
    for n in 101 248 249 255; do
        odd=$([ $((n % 2)) = 0 ] || echo x)
        for to in "$(printf 'ü%.0s' $(seq $(((n - 4) / 2))))$odd.ply" "$(printf 'ü%.0s' $(seq $((n / 2))))$odd"; do
            [ "$(printf %s "$to" | wc -c)" = $n ] || fail "a name of $(printf %s "$to" | wc -c) bytes"
            format=ply; [[ $to = *.ply ]] || format=sog-folder
            rm -rf long; mkdir long
            must 0 kiln export x.db --format $format -o "long/$to"
            [ "$(ls long)" = "$to" ] || fail "$n bytes: $(ls long)"
        done
    done
    must 74 kiln export x.db --format ply -o "none/$(printf 'x%.0s' {1..256})"
    [ ! -e none ] || fail "a name of 256 bytes: $(find none)"
); result

test_case 'what a killed run left of a file with a long name' && (
    stem=$(printf 'x%.0s' {1..100})
    for format in ply sog-folder; do
        rm -rf long; mkdir long
        for left in "$stem" "${stem:0:96}.ply" "${stem:1}y"; do
            if [ $format = ply ]; then touch "long/$left${LEFT}999999999"; else mkdir "long/$left${LEFT}999999999"; fi
        done
        must 0 kiln export x.db --format $format -o "long/$stem${stem}"
        [ "$(ls long)" = "$(printf '%s\n' "${stem:0:96}.ply${LEFT}999999999" "$stem$stem" "${stem:1}y${LEFT}999999999" | LC_ALL=C sort)" ] ||
            fail "leftovers: $(ls long)"
    done
); result

test_case 'a file is written as a whole' && (
    for part in '--shard 1/2' '--units 0'; do
        # shellcheck disable=SC2086
        must 2 kiln export x.db $part -o part.ply
        grep -q -e "has no ${part% *}:" err && [ ! -e part.ply ] || fail "$part: $(cat err)"
    done
); result

must 0 kiln export x.db -o one.ply

test_case '--no-normals' && (
    must 0 kiln export x.db -o less.ply --no-normals
    head -c 2000 one.ply | grep -aq 'float nx' || fail 'the scene has no normals'
    ! head -c 2000 less.ply | grep -aq 'float n[xyz]' || fail 'normals are there'
    kiln import less.ply less.db >/dev/null || fail 'a PLY without normals is not read'
); result

# normals FILE yes|no: whether it has the columns nx, ny and nz
normals() {
    local is=no
    ! head -c 2000 "$1" | grep -aq 'float n[xyz]' || is=yes
    [ $is = "$2" ] || fail "$1: normals: $is"
}

test_case 'a PLY has normals where a source has some, or names no columns' && (
    must 0 kiln import s/scene.ply with.db
    must 0 "$KILN_BIN/kiln" convert s/scene.ply x.spz
    must 0 kiln import x.spz spz.db
    must 0 "$KILN_BIN/kiln" convert s/scene.ply --no-normals less.ply -w
    must 0 kiln import less.ply without.db
    export_source() { kiln export "$1" --layer source -w -o n.ply "${@:2}"; }
    must 0 export_source without.db --add without.db; normals n.ply no
    must 0 export_source without.db --sh-degree 0; normals n.ply no
    must 0 export_source with.db --add with.db; normals n.ply yes
    must 0 export_source with.db --sh-degree 0; normals n.ply yes
    must 0 export_source spz.db; normals n.ply yes # INRIA's columns
    must 0 export_source spz.db --add without.db; normals n.ply no
    must 0 export_source without.db --add without.db --columns inria; normals n.ply yes
    for pair in 'with.db without.db' 'without.db with.db'; do
        must 0 "$KILN_BIN/kiln-export" ${pair% *} --add ${pair#* } --layer source -w -o n.ply; normals n.ply no
        grep -q "column 'nx' of the source is not in all bakes and left out" err || fail "$pair: $(cat err)"
    done
    must 0 kiln import less.ply joined.db --add less.ply
    must 0 export_source joined.db; normals n.ply no
    must 0 kiln import less.ply half.db --add s/scene.ply # those that one lacks are 0
    must 0 export_source half.db; normals n.ply yes
); result

test_case 'a folder that holds a scene is refused with a name to give' && (
    must 0 kiln export x.db --format spz -o a.spz
    mkdir tower bare web own
    cp s/cameras.json tower/
    cp a.spz web/
    cp x.db own/manifest.db
    ascii_ply 'float x float y float z' '0 0 0' >bare/other.ply
    for folder in tower bare s; do
        before=$(ls -l $folder)
        for w in '' -w; do
            # shellcheck disable=SC2086
            must 2 kiln export x.db $w --format spz -o $folder/
            grep -q "the folder '$folder/' holds a scene ('.*'); name the file .*, such as '$folder/export/scene.spz'" err ||
                fail "$(cat err)"
            # shellcheck disable=SC2086
            must 2 kiln export x.db $w --format splat,spz -o $folder
            grep -q "name the folder .*, such as '$folder/export/'" err || fail "$(cat err)"
            # shellcheck disable=SC2086
            must 2 kiln export x.db $w --format chunks -o $folder
        done
        [ "$before" = "$(ls -l $folder)" ] || fail "$folder has changed"
    done
    must 0 kiln export x.db --format spz -o tower/scene.spz # where it has a name
    must 2 "$KILN_BIN/kiln" pipeline s --out p.bake --export-output tower/
    grep -q "the folder 'tower/' holds a scene" err && [ ! -e p.bake ] || fail "$(cat err)"
    for _ in 1 2; do # what it exported itself is no scene, and the bake's own folder has none by its manifest
        must 0 kiln export x.db --format ply,compressed-ply,chunks -o web/
        (cd own && must 0 kiln export manifest.db --format ply -o .) || exit 1
    done
); result
