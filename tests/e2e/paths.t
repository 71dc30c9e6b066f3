#!/bin/bash
# Pictures from where nobody took a photo: an orbit, a path between cameras, other sizes, and the bake's cameras as a file.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
cd "$KILN_TMP" || exit 1
json() { python3 -c 'import json, sys; d = json.load(open("out")); assert eval(sys.argv[1]), d' "$1" || fail "$1"; }
size() { python3 -c 'import struct, sys; print("%dx%d" % struct.unpack(">II", open(sys.argv[1], "rb").read(24)[16:]))' "$1"; }
render() { must 0 kiln render m/x.db "$@"; }
refused() { local what=$1; shift; must 2 kiln render m/x.db "$@"; grep -q -e "$what" err || fail "$*: $(cat err)"; }
scene s 3000 4 96x64
mkdir m && bake s m/x.db --max 1024
before=$(digest m/x.db)

test_step 'an orbit' && (
    must 0 "$KILN_BIN/kiln-render" m/x.db --orbit 5 -o orbit/ --json
    json '[v["name"] for v in d["views"]] == ["orbit_000%d" % i for i in range(5)] and all(v["psnr"] is None for v in d["views"])'
    grep -q 'the orbit has radius=' err || fail "nothing says where the orbit is: $(cat err)"
    [ "$(ls orbit | wc -l)" = 5 ] && [ "$(size orbit/orbit_0004.png)" = 96x64 ] || fail "pictures: $(ls orbit)"
    [ "$(cat orbit/*.png | wc -c)" -gt 5000 ] || fail 'the pictures are empty'
    ! grep -q warning err || fail "an orbit around the scene is warned of: $(cat err)"
); result

test_case 'an orbit that is absurdly far away is warned of' && (
    for far in radius=1e9 height=1e7 centre=1e7:1e7:0; do
        must 0 "$KILN_BIN/kiln-render" m/x.db --orbit "4,$far" -o absurd/
        [ "$(grep -c 'warning: from [34] of 4 places on the orbit the scene lies outside' err)" = 1 ] ||
            fail "nothing is said of --orbit 4,$far: $(cat err)"
    done
); result

test_case 'what is said of the orbit, given, is that orbit' && (
    must 0 "$KILN_BIN/kiln-render" m/x.db --orbit 5 -o orbit/ --json
    where=$(sed -n 's/.*the orbit has \(radius=.*\); up is.*/\1/p' err)
    render --orbit "5,$where" -o again/ # what it says, given: the same to six digits
    for i in 0 3; do
        must 0 kiln compare orbit/orbit_000$i.png again/orbit_000$i.png --json
        json 'd["psnr"] is None or d["psnr"] > 40'
    done
    render --orbit "5,radius=50,height=-3" -o far/
    ! cmp -s orbit/orbit_0001.png far/orbit_0001.png || fail 'radius and height change nothing'
); result

test_case 'one picture of an orbit' && (
    render --orbit 5 --camera '#3' -o one.png # one of them
    cmp one.png orbit/orbit_0003.png || fail 'one picture of an orbit is another one'
); result

test_step 'a path between cameras' && (
    render --interpolate 5 --through 'cam2,#0,cam3' -o path/
    cmp path/path_0000.png m/renders/cam2.png && cmp path/path_0004.png m/renders/cam3.png ||
        fail 'the path does not begin and end at cameras'
    [ "$(ls path | wc -l)" = 5 ] || fail "pictures: $(ls path)"
); result

test_case 'constant speed' && (
    render --interpolate 5 --through 'cam2,#0,cam3' --constant-speed -o steady/
    cmp steady/path_0004.png m/renders/cam3.png || fail 'constant speed ends elsewhere'
    ! cmp -s steady/path_0001.png path/path_0001.png || fail '--constant-speed changes nothing'
); result

test_case 'numbers in names are ordered as numbers' && (
    python3 - <<'P'
import json
d = json.load(open('s/cameras.json'))
json.dump([dict(c, name='frame_%d' % n) for c, n in zip(d, (11, 2, 9, 10))], open('numbers.json', 'w'))
P
    render --cameras numbers.json --interpolate 4 -o numbers/ # 2, 9, 10, 11: by number
    cmp numbers/path_0000.png m/renders/cam1.png && cmp numbers/path_0003.png m/renders/cam0.png ||
        fail 'numbers in names are not ordered'
); result

test_case '--look-at turns a path to a point, and blank pictures are named' && (
    python3 "$E2E/ball.py" ball 2 || fail ball
    bake ball ball.db
    ball() { must 0 "$KILN_BIN/kiln-render" ball.db --interpolate 5 "$@" -w -o turned/; }
    ball --look-at 0,0,0
    ! grep -q blank err || fail "the ball is in all of them: $(cat err)"
    must 0 kiln compare turned/path_0000.png renders/cam0.png --json
    python3 -c 'import json; p = json.load(open("out"))["psnr"]; assert p is None or p == "inf" or p > 60, p' ||
        fail 'a camera that looks there was turned'
    ball --look-at 0,-1000,0
    grep -q "4 of 5 pictures of the path are blank, the first 'path_0000', the last 'path_0004': .*--look-at X,Y,Z turns the path" err ||
        fail "all are blank: $(cat err)"
    must 0 "$KILN_BIN/kiln-render" ball.db --orbit 3,centre=0:-1000:0,radius=1 -o aside/
    ! grep -q 'of the path' err || fail "an orbit is no path: $(cat err)"
); result

test_case '--scale' && (
    render --camera cam0 --scale 0.5 -o half.png
    [ "$(size half.png)" = 48x32 ] || fail "--scale: $(size half.png)"
); result

test_case '--size' && (
    render --size 64x64 -o square/
    [ "$(size square/cam3.png)" = 64x64 ] && [ "$(ls square | wc -l)" = 4 ] || fail '--size'
); result

test_case '--crop' && (
    render --camera cam0 -o full.npy
    render --camera cam0 --crop 48x32+16+16 -o part.npy
    py cropped || fail 'a crop shows other pixels'
); result

test_case 'an orbit with --scale and --crop' && (
    render --orbit 3 --scale 2 --crop 100x100+92+28 -o big/
    [ "$(size big/orbit_0002.png)" = 100x100 ] || fail 'an orbit has no size'
); result

test_step 'the cameras of the bake as a file' && (
    must 0 kiln info m/x.db --cameras
    cp out cameras.json
    must 0 "$KILN_BIN/kiln-info" m/x.db --cameras -o file.json
    cmp cameras.json file.json || fail 'the file and stdout differ'
    grep -q "4 cameras written to 'file.json'" err || fail "$(cat err)"
); result

test_case 'the file gives the same pictures' && (
    render --cameras file.json -o read/
    for i in 0 1 2 3; do cmp m/renders/cam$i.png read/cam$i.png || fail 'a round trip changes a picture'; done
); result

test_case 'the cameras of a moved scene' && (
    mkdir n && must 0 kiln import s n/x.db --rotate 10,20,30 --scale 3 --translate 1,2,3
    for k in $STAGES; do kiln $k n/x.db >/dev/null || fail $k; done
    must 0 kiln info n/x.db --cameras -o moved.json
    must 0 kiln render n/x.db --cameras moved.json -o moved/
    for i in 0 1 2 3; do cmp n/renders/cam$i.png moved/cam$i.png || fail 'a round trip of a moved scene changes a picture'; done
); result

test_case 'what --cameras cannot write' && (
    must 2 kiln info m/x.db -o file.json
    must 74 kiln info m/x.db --cameras -o nowhere/at/
); result

test_case 'what is refused, in front of everything else' && (
    refused 'needs -o' --orbit 4
    refused 'needs -o' --scale 0.5
    for wrong in 0 x 4, 4,radius=0 4,radius=-1 4,centre=1:2 4,height=inf 4,radius=1,radius=2 4,size=3 100001; do
        refused 'takes N' --orbit "$wrong" -o no/
    done
    for wrong in 64 64x 0x64 64x64x64 -1x4 9999999x1; do refused 'takes WxH' --size "$wrong" -o no/; done
    for wrong in 64x64 64x64+1 64x64-1+1 0x4+1+1; do refused 'takes WxH+X+Y' --crop "$wrong" -o no/; done
    refused 'not within' --crop 64x64+40+0 -o no/
    refused 'not go together' --orbit 4 --cameras file.json -o no/
    refused 'not go together' --orbit 4 --interpolate 4 -o no/
    refused 'not go together' --scale 0.5 --size 4x4 -o no/
    refused 'interpolate N' --through cam0,cam1 -o no/
    refused 'interpolate N' --constant-speed -o no/
    refused 'interpolate N' --look-at 0,0,0 -o no/
    refused 'takes X,Y,Z' --interpolate 4 --look-at 1e308,0,0 -o no/
    refused 'give --orbit a centre' --orbit 3 --look-at 0,0,0 -o no/
    for wrong in 1 1,2 1,2,3,4 1,2,x 1,2,inf; do refused 'takes X,Y,Z' --interpolate 4 --look-at "$wrong" -o no/; done
    refused 'at least 2' --interpolate 4 --through cam0 -o no/
    refused 'no camera' --interpolate 4 --through cam0,cam9 -o no/
    refused '2 to 100000' --interpolate 1 -o no/
    refused '0.001 to 64' --scale 0 -o no/
    ! [ -e no ] || fail 'something was written'
); result

test_case 'pictures of a path change nothing of the bake' && (
    [ "$(digest m/x.db)" = "$before" ] || fail 'pictures of a path change the bake'
); result
