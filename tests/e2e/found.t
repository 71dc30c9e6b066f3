#!/bin/bash
# What import says of a data set: cfg_args, the split, what is dropped and why, photos that are missing, lenses, a second PLY; and
# splat formats that are not read yet are named as what they are.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3 to write data sets with"
cd "$KILN_TMP" || exit 1
says() { grep -qE -- "$1" "$2" || fail "no '$1' in $2: $(cat "$2")"; }

kiln generate demo s --gaussians 500 --cameras 8 --size 64x48 >/dev/null &&
    kiln generate demo fewer --gaussians 100 --cameras 1 --size 32x24 >/dev/null ||
    fail generate
mkdir d d/images && mv s/images/view_0[0-4].png d/images && cp s/scene.ply d/much.ply && cp fewer/scene.ply d/less.ply
echo 'no picture' >d/images/view_05.png
python3 - <<'P'
import json
frames = [{'file_path': f'images/view_{k:02d}.png', 'transform_matrix': [[1, 0, 0, k], [0, 1, 0, 0], [0, 0, 1, 9], [0, 0, 0, 1]]} for k in range(8)]
json.dump({'camera_model': 'OPENCV', 'k1': 0.1, 'fl_x': 50, 'cx': 32, 'cy': 24, 'frames': frames}, open('d/transforms.json', 'w'))
P
echo "Namespace(eval=True, images='images', sh_degree=3, source_path='/far/away', white_background=True)" >d/cfg_args

test_case '--list says what a data set has and lacks' && (
    must 0 "$KILN_BIN/kiln-import" d x.db --list
    says "^uses +settings +cfg_args: white background, image folder 'images'$" out
    says '^uses +split +1 test, 4 train \(every 8th by name\)$' out
    says '^uses +lens +OPENCV, 5 of 5 distorted: photos are undistorted for metrics$' out
    says '^drops +frames +3 of 8: 2 without a photo, 1 with an unreadable photo$' out
    says '^misses +photos +2; the first: images/view_06.png$' out
    says '^uses +Gaussians +much.ply: ply, 500 Gaussians$' out
    says '^leaves +Gaussians +less.ply: ply, 100 Gaussians: much.ply has more: 500$' out
    [ -z "$(awk 'length > 80' out)" ] || fail "--list is wider than 80 columns: $(cat out)"
    says "3 of 8 frames are dropped, as the file has no size of them \(w and h\): 2 without a photo, 1 with a photo that cannot be read; the first: frame 5, " err
    says "photos not found: 2; the first is 'images/view_06.png', looked for in '\.', 'images'" err
    says "cfg_args names '/far/away' as the folder of the training data$" err
    [ ! -e x.db ] || fail '--list imported'
); result

test_case 'import says what a data set has and lacks' && (
    must 0 "$KILN_BIN/kiln-import" d x.db
    for line in "settings: cfg_args \(white" 'split: 1 test, 4 train' 'lens: OPENCV, 5 of 5' \
        'not used: less.ply .*: much.ply has more'; do
        says "$line" err
    done
    echo 'This folder holds a chair.' >d/test.txt
    must 0 "$KILN_BIN/kiln-import" d x.db --force
    says "not used: test.txt \(list of names\): none of its names belongs to a camera$" err
    rm d/test.txt
); result

test_case 'the report has what was found' && (
    must 0 kiln import d x.db --json --force
    py report || fail 'the report lacks what was found'
); result

test_case 'without any photo there is a sentence' && (
    rm d/images/view_0[0-5].png
    must 3 kiln import d y.db
    says "none of the 8 frames .* has its photo .*, and the file gives no picture size \(w and h\).*'images/view_00.png', looked for in '\.', 'images'$" err
); result

# ---- formats of others ----
py others
named() { # FILE SENTENCE: exit 3, and no manifest
    must 3 kiln import "$1" y.db
    says "'[^']*' is $2" err
    [ ! -e y.db ] || fail "$1 left a manifest"
}
yet=', which is not read; '
refused() { # FILE SENTENCE
    must 3 kiln import "$1" y.db
    says "$2" err
    [ ! -e y.db ] || fail "$1 left a manifest"
}

test_case 'SOG, levels and SPZ that are damaged' && (
    refused z.sog "z.sog' has no \"quats\" entry"
    refused sog "sog/meta.json' has no \"quats\" entry"
    refused sog/meta.json "sog/meta.json' has no \"quats\" entry"
    refused lod "the tree of '.*lod/lod-meta.json' has a node with neither"
    refused only "a.spz' says that it is SPZ version 9"
); result

test_case 'gzip data that hold something else' && (
    named other.gz 'gzip data and holds no splat or point file that we know'
    named twice.ply.gz.gz 'packed twice: it is gzip data and holds gzip data; unpack it once$'
); result

test_case 'files without a mark' && (
    known='no splat or point file that we know; '
    named splat.dat "${known}if it is a .splat, which has no mark, it needs that suffix; --list-formats names the formats$"
    named text.dat "$known--list-formats names the formats$"
    named cut.dat "$known--list-formats names the formats$"
); result

test_case 'a ZIP archive of something else' && (
    named z.zip 'a ZIP archive that holds no meta.json'
); result

test_case 'formats that are not read are named' && (
    named a.bin "a RAD file, levels for Spark's viewer$yet"
    named b.rad "a RAD file, levels for Spark's viewer$yet"
    named a.lcc "an LCC scene of XGRIDS$yet"
    named a.usda "a USD scene$yet"
    named a.usdz "a USD scene$yet"
    named tileset.json "a tileset of 3D Tiles$yet"
); result

test_case 'a mesh holds no splats' && (
    must 3 kiln import meshes/mesh.gltf y.db && says "mesh.gltf' holds no Gaussian splats: " err
    must 3 kiln import meshes y.db && says 'holds nothing to import' err
    ascii_ply 'float x float y float z' '1 2 3' >meshes/points.ply
    must 0 "$KILN_BIN/kiln-import" meshes y.db --list
    says '^leaves +Gaussians +mesh.gltf: no Gaussians: .*holds no Gaussian splats' out
); result

test_case 'a folder with nothing to import' && (
    must 3 kiln import other y.db && says 'holds nothing to import' err
); result

test_case 'beside Gaussians that can be read they are left, with a word' && (
    cp s/scene.ply only && must 0 "$KILN_BIN/kiln-import" only y.db --list
    says '^uses +Gaussians +scene.ply: ' out
    says "^leaves +Gaussians +a.spz: unreadable: .*SPZ version 9" out
    cp s/scene.ply sog && must 0 "$KILN_BIN/kiln-import" sog y.db --list
    says '^leaves +Gaussians +meta.json: unreadable: .* has no "quats" entry' out
); result
