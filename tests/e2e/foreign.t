#!/bin/bash
# Files of other programs that import does not read: each is known by its content, under its own name and under another, in a folder
# and a few folders down, and the sentence has what helps. None is sent to splat-transform but what that reads.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3 to write files with"
python3 "tests/e2e/foreign.py" "$KILN_TMP" >"$KILN_TMP/kinds" || fail 'no files'
cd "$KILN_TMP" || exit 1
says() { grep -qE -- "$1" "$2" || fail "no '$1' in $2: $(cat "$2")"; }
refused() { # WHAT PATTERN COMMAND...: exit 3 with that sentence, and no manifest
    local what=$1 pattern=$2
    shift 2
    must 3 "$@"
    says ', which is not read; ' err
    says "$pattern" err
    [ ! -e y.db ] || fail "$what left a manifest"
    ! grep -q 'convert it with\|not read yet' err || fail "$what: an empty promise: $(cat err)"
    case $what in
    lcc*) ;;
    *) ! grep -q 'splat-transform [a-zA-Z.]* *scene.ply' err || fail "$what is sent to splat-transform: $(cat err)" ;;
    esac
}
while IFS=$'\t' read -r kind path pattern; do
    test_case "$kind is known under its own name, in a folder and under another name" && (
        refused "$kind" "$pattern" kiln import "$path" y.db
        refused "$kind in a folder" "$pattern" kiln import "$kind" y.db
        case $kind in
        sog3zip | png | sog3 | polycam*) ;; # a reader finds out what it is, or its place says it
        *) cp "$path" "other.dat" && refused "$kind under another name" "$pattern" kiln import other.dat y.db ;;
        esac
    ); result
done <kinds

test_case 'a few folders down, where trainers leave them' && (
    mkdir -p run/results/ckpts && cp gsplat/ckpt_29999_rank0.pt run/results/ckpts
    refused 'a trained folder' "run/results/ckpts/ckpt_29999_rank0.pt' is a checkpoint of gsplat" kiln import run y.db
); result

kiln generate demo s --gaussians 200 --cameras 2 --size 32x24 >/dev/null || fail generate

test_case 'lists of cameras as --cameras' && (
    for kind in bundler csv metashape nvm opensfm meshroom; do
        path=$(awk -F'\t' -v k=$kind '$1 == k { print $2 }' kinds)
        must 3 kiln import s/scene.ply y.db --cameras "$path" && says ', which is not read; ' err
    done
    must 3 kiln import s/scene.ply y.db --cameras polycam && says 'ns-process-data polycam' err
); result

test_case 'beside Gaussians: cameras that are left out are said' && (
    mkdir beside && cp s/scene.ply metashape/cameras.xml gsplat/ckpt_29999_rank0.pt beside
    must 0 "$KILN_BIN/kiln-import" beside z.db
    says "the cameras in '.*cameras.xml' are left out: the file is a list of cameras of Metashape" err
    must 0 "$KILN_BIN/kiln-import" beside z.db --list
    says '^leaves +other +ckpt_29999_rank0.pt: a checkpoint of gsplat' out
); result

test_case 'tiles of a tileset are no scenes, under whatever name it has' && (
    must 0 "$KILN_BIN/kiln" pipeline s/scene.ply --out bake --export 3dtiles --up y
    tiles=$(find bake -name '*.glb' | head -1)
    [ -n "$tiles" ] || fail 'no tiles'
    mkdir tiled && cp "$(dirname "$tiles")"/* tiled/
    refused 'a tileset' "tileset.json' is a tileset of 3D Tiles" kiln import tiled y.db
    mv tiled/tileset.json tiled/root.json
    refused 'a tileset by another name' "root.json' is a tileset of 3D Tiles" kiln import tiled y.db
    must 0 kiln import "$(find tiled -name '*.glb' | head -1)" one.db
    cp s/scene.ply tiled && must 0 "$KILN_BIN/kiln-import" tiled two.db
    says '200 Gaussians' err
); result

test_case '--list-formats names what is not read' && (
    must 0 kiln import --list-formats
    says '^\(not read\) +\*\.pt \*\.pth \*\.ckpt a checkpoint of nerfstudio; .*ns-export' out
); result
