#!/usr/bin/env bash
# What is wrong with an option is told before the first stage runs: exit 2 (or what the thing that it names is worth), one sentence
# with the option as it was typed, no manifest, no folder. The stage's own program says the same. Names of the bake (cameras,
# chunks) are told as soon as the bake has some, before the work behind that.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
pipeline() { PATH=${FIND:-$PATH} "$KILN_BIN/kiln" pipeline "$@"; } # FIND: where it looks for ffmpeg
scene s 3000 4 64x48
kiln generate points p --gaussians 3000 >/dev/null || fail "points"
find s p | sort >before
# told CODE OPTION command...: one sentence that begins with the program and names the option
told() {
    local code=$1 option=$2; shift 2
    must "$code" "$@"
    [ "$(wc -l <err)" = 1 ] || fail "not one sentence: $*: $(cat err)"
    grep -q -e "$option" err || fail "'$option' is not named by $*: $(cat err)"
    [ ! -s out ] || fail "$* printed $(cat out)"
}
# early CODE OPTION SCENE options: nothing is left
early() {
    local code=$1 option=$2 from=$3; shift 3
    told "$code" "$option" pipeline "$from" "$@"
    find s p | sort | cmp - before || fail "$* left $(find s p | sort | comm -13 before -)"
}
# a table: the stage (- where it needs no program of its own), its option, a text that it refuses
bake s base.db
while read -r stage option value; do
    case $stage in ''|'#'*) continue ;; esac
    lod=; [ "$stage" = lod ] && lod=--lod

    test_case "--$stage-$option=$value" && (
        early 2 "--$stage-$option" s "--$stage-$option=$value" $lod # by the name that each option has
        cp base.db one.db
        if [ "$stage" = import ]; then told 2 "--$option" "$KILN_BIN/kiln-import" s one.db "--$option=$value"
        else told 2 "--$option" "$KILN_BIN/kiln-$stage" one.db "--$option=$value"; fi
        cmp one.db base.db || fail "--$option=$value has changed the manifest"
    ); result
done <<'TABLE'
import split foo
import split every:0
import split every:
import split names:
import frame sideways
import lod 64
import add ;scale=2
import add x.ply;scale=no
import translate 1,2
import scale 0
import undistort-blank 2
import devices foo
import devices 0,
import ram nothing
import shard 3/2
import shard 1/0
import units -
knn neighbors 0
knn neighbors 33
knn initial-opacity 1
knn devices 1,x
prune min-opacity 2
prune max-scale-policy burn
prune crop-box 1,2
prune crop-box 2,0,0,1,1,1
prune crop-box inf,0,0,1,1,1
prune crop-sphere 0,0,0
prune crop-sphere 0,0,0,-1
prune drop-row x
prune drop-row 1,,2
prune filter-box 1,1
prune filter-box 1,0,0,0,1,1
prune filter-sphere 0,0,0,0
prune filter-value opacity
prune filter-value opacity,like,1
prune filter-value opacity,gt,2
prune filter-value scale_0,gt,-1
prune sizes 3
prune sizes 100,x
chunk layer baked
chunk max 0
chunk max 65537
chunk min 70000
lod levels 9
lod visibility often
lod near 0
lod near abc
tiles profile blender
tiles near -1
tiles near inf
tiles level foo
tiles level 33
tiles level dB:x
tiles level dB:201
tiles tables ,cam0
tiles tables cam0,,cam1
render background blue
render background 1,2
render background 1,2,300
render near abc
render level foo
render format gif
render orbit 0
render orbit 5,radius=0
render orbit 5,radius=1,radius=2
render orbit 5,centre=1:2
render size 3x
render size 0x5
render size 1000000x1000000
render crop 10x10
render crop 10x10+1
render through a,,b
render interpolate 1
render scale 0
render fps 0
export format bogus
export format ply,bogus
export chunks /0,,/1
export chunks nope
export chunks #x
export geo 1,2
export geo 91,0,0
export geo here
export filter-box 1,1
export filter-sphere 1
export filter-value x,gt
export sh-degree 5
export report-loss many
export min-psnr -1
TABLE

test_case 'options alone and by the title' && (
    # the same names as they are typed otherwise: alone, by the title, as variables of make
    early 2 "--background takes" s --background blue
    early 2 "--background takes" s -b blue
    early 2 "--near takes" s --near abc
    early 2 "--level takes" s --level foo
    early 2 "--size takes" s --size 3x
    early 2 "--chunks takes" s --chunks nope
    early 2 "--geo '1,2'" s --geo 1,2
    early 2 "--export takes" s --export bogus
); result

test_case 'options as variables of make' && (
    must 2 "$KILN_BIN/kiln" pipeline --make SCENE=s RENDER_BACKGROUND=blue
    grep -q 'RENDER_BACKGROUND takes' err || fail "make is told $(cat err)"
    must 2 "$KILN_BIN/kiln" pipeline --make SCENE=s NEAR=abc
    grep -q ' NEAR takes' err || fail "make is told $(cat err)"
); result

test_case 'options that do not go together' && (
    early 2 "--chunk-min 70 is above --chunk-max 60" s --chunk-min 70 --chunk-max 60
    early 2 "--min-psnr needs --report-loss" s --min-psnr 30
    early 2 "--geo only applies to the format 3dtiles" s --geo 47,8,400
    early 2 "--fps needs --video" s --fps 20
    early 2 "--size needs" s --size 32x32
    early 2 "--orbit needs" s --orbit 4
    early 2 "--orbit and --interpolate" s --orbit 4 --interpolate 5
    early 2 "--render-scale and --size" s --render-scale 2 --size 9x9
    early 2 "--through" s --through cam0,cam1
    early 2 "--constant-speed" s --constant-speed
    early 2 "--crop 40x40+0+0 is not within pictures of --size 32x32" s --crop 40x40+0+0 --size 32x32 --render-format none
    early 2 "--render-format y4m" s --render-format y4m
    early 2 "--fast draws only on a GPU" s --fast --render-devices cpu
    early 2 "needs levels of detail" s --level 2 --no-lod
    early 2 "needs levels of detail" s --export lod --no-lod
    early 2 "needs levels of detail" s --level auto --stages import,knn,prune,chunk,render
    early 2 "'x.gif'" s --export-output x.gif
    early 2 "'x.gif'" s --render-output x.gif
    early 2 "several formats" s --export ply,spz --export-output x.ply
    early 2 "names the format spz" s --export ply --export-output x.spz
    early 2 "--video 'x.gif'" s --video x.gif
    early 2 "--video and --render-format" s --video x.mp4 --render-format png
    early 2 "--ram 0" s --ram 0
    early 2 "--scratch-dir takes" s --scratch-dir missing
); result

test_case 'files that are not there' && (
    early 3 "--render-cameras" s --render-cameras missing.json --render-format none
    echo '{"frames": 3}' >bad.json
    early 3 "--render-cameras" s --render-cameras bad.json --render-format none
    early 3 "--import-cameras\|cannot open 'missing.json'" s --import-cameras missing.json
    early 3 "of --split" s --split names:missing
    early 3 "of --export-add" s --export-add missing.db
    early 3 "of --import-add" s --import-add missing.ply
); result

test_case 'a viewer that is not there' && (
    KILN_VIEWER=$PWD/none early 3 "--export html" s --export html
    KILN_VIEWER=$PWD/none early 3 "--export-format html" s --export-format html
); result

test_case 'a program that is not there, and sizes of a video' && (
    mkdir none tools
    FIND=$PWD/none early 74 "--video 'x.mp4'" s --video x.mp4
    printf '#!/bin/sh\necho ffmpeg version 9\n' >tools/ffmpeg && chmod +x tools/ffmpeg
    FIND=$PWD/tools:$PATH early 2 "--size asks for 31x31 pixels, but the size of a video must be even" s --video x.mp4 --size 31x31
    FIND=$PWD/tools:$PATH early 2 "--crop asks for 31x32" s --video x.mp4 --crop 31x32+0+0
); result

test_case 'a device that is not there' && (
    CUDA_VISIBLE_DEVICES='' early 6 "--devices 5" s --devices 5
); result

test_case 'other options are told before the machine' && (
    must 2 "$KILN_BIN/kiln" pipeline s --prune-against missing.db --lod-near x
    must 2 "$KILN_BIN/kiln-prune" base.db --sizes 3
); result

test_case '--print-commands looks at texts alone' && (
    must 0 pipeline s --print-commands --devices 5 --scratch-dir /nowhere --render-cameras missing.json --render-format none
    told 2 "--near takes" pipeline s --print-commands --near abc
); result

test_case 'a stored value takes part in what goes together' && (
    must 0 pipeline s -q --render-format none
    must 0 pipeline s -q --orbit 3
    told 2 "--chunk-min 70 is above" pipeline s --chunk-min 70 --chunk-max 60
    sqlite3 s/bake/manifest.db "INSERT INTO parameter (stage, name, value) VALUES ('render', 'background', 'blue')" ||
        fail "sqlite3"
    told 3 "stored parameter" pipeline s
    grep -q 'stored parameter' err || fail "a stored value is blamed as $(cat err)"
    rm -r s/bake
); result

# names of the bake, as soon as it has some
late() { # STAGES CODE OPTION SCENE options: just these stages have run
    local stages=$1 code=$2 option=$3 from=$4; shift 4
    must "$code" pipeline "$from" -q "$@"
    grep -q -e "$option" err || fail "'$option' is not named by $*: $(cat err)"
    [ "$(sqlite3 "$from/bake/manifest.db" "SELECT group_concat(stage, ' ') FROM (SELECT DISTINCT stage FROM run ORDER BY id)")" = \
        "$stages" ] ||
        fail "with $* other stages have run than $stages"
    rm -r "$from/bake"
}

test_case 'names of the bake are told as soon as it has some' && (
    late "import" 2 "--render-camera: there is no camera 'nope'" s --render-camera nope --render-output x/
    late "import" 2 "--through: there is no camera 'nope'" s --interpolate 5 --through cam0,nope --render-output x/
    late "import" 2 "--tables: there is no camera 'nope'" s --tables cam0,nope
    late "import" 3 "use --chunk-layer source" s --chunk-layer initial
    late "import" 3 "use --chunk-layer initial" p --chunk-layer source
    late "import knn prune chunk" 2 "--chunks: the layer 'baked' has no chunk '/9'" s --chunks /9
); result

test_case 'names that this run will bring are not missed' && (
    must 0 pipeline s -q --stages import,knn,prune,chunk
    py later_camera || fail "another camera"
    must 0 pipeline s -q --tables later --chunk-max 512 --chunks '/0**'
    told 2 "--tables: there is no camera 'never'" pipeline s -q --stages tiles --tables never
    told 2 "--chunks: the layer 'baked' has no chunk '/9'" pipeline s -q --stages export --chunks /9
    rm -r s/bake
); result

test_case 'nothing is wrong' && (
    must 0 pipeline s -q --background 1,0.5,0 --near 0.1 --level 0 --export ply,csv --export-filter-box=-1,-1,-1,-,-,- --chunks \
        '**' --tables none
); result
