#!/bin/bash
# Pictures as a stream: through ffmpeg into a video, to stdout and into a file, in order, whoever is slow, and what happens when one
# end is gone.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
cd "$KILN_TMP" || exit 1
json() { python3 -c 'import json, sys; d = json.load(open("out")); assert eval(sys.argv[1]), d' "$1" || fail "$1"; }
render() { must 0 kiln render m/x.db "$@"; }
refused() { local what=$1; shift; must 2 kiln render m/x.db "$@"; grep -q -e "$what" err || fail "$*: $(cat err)"; }
bytes() { stat -c %s "$1"; }
scene s 3000 4 97x64
mkdir m && bake s m/x.db --max 1024
before=$(digest m/x.db)
N=40
render --orbit $N --format raw -o all.raw --threads 1

test_case 'frames have the bytes of their pixels' && (
    [ "$(bytes all.raw)" = $((N * 97 * 64 * 3)) ] || fail "raw frames: $(bytes all.raw) bytes"
); result

test_case 'the frames are the pictures, in their order' && (
    render --orbit $N -o png/
    py frames $N || fail 'frames differ from the pictures'
); result

test_case 'frames on many threads' && (
    render --orbit $N --format raw -o again.raw --threads 8
    cmp all.raw again.raw || fail 'frames depend on threads'
); result

test_case 'frames to stdout' && (
    kiln render m/x.db --orbit $N --format raw -o - 2>err >out.raw || fail "stdout: $(cat err)"
    cmp all.raw out.raw || fail 'frames on stdout differ'
); result

test_case 'frames to a slow reader' && (
    kiln render m/x.db --orbit $N --format raw -o - --threads 8 2>err | (sleep 1; cat) >slow.raw # a slow reader
    cmp all.raw slow.raw || fail 'frames to a slow reader differ'
); result

test_step 'y4m' && (
    kiln render m/x.db --orbit $N --format y4m -o - --fps 29.97 2>err | cat >all.y4m
    [ "$(head -n 1 all.y4m)" = 'YUV4MPEG2 W97 H64 F30000:1001 Ip A1:1 C420jpeg XYSCSS=420JPEG XCOLORRANGE=LIMITED' ] ||
        fail "$(head -n 1 all.y4m)"
    [ "$(bytes all.y4m)" = $((82 + N * (6 + 97 * 64 + 2 * 49 * 32))) ] || fail "y4m: $(bytes all.y4m) bytes"
); result

test_case 'what is printed beside a stream goes to stderr' && (
    "$KILN_BIN/kiln-render" m/x.db --orbit 3 --format y4m -o - 2>err >three.y4m || fail "$(cat err)"
    grep -q '3 frames of 97x64, 30 a second -> stdout' err || fail "what is printed beside a stream goes to stderr: $(cat err)"
    [ "$(head -c 9 three.y4m)" = YUV4MPEG2 ] || fail 'text is mixed into the stream'
); result

test_case 'numbers in names are ordered as numbers' && (
    python3 - <<'P'
import json
d = json.load(open('s/cameras.json'))
json.dump([dict(c, name='frame_%d' % n) for c, n in zip(d, (11, 2, 9, 10))], open('numbers.json', 'w'))
P
    render --cameras numbers.json --format raw -o numbers.raw # 2, 9, 10, 11
    python3 - <<'P' || fail 'frames are not in the order of numbers in names'
whole, n = open('numbers.raw', 'rb').read(), 97 * 64 * 3
open('last.raw', 'wb').write(whole[3 * n:])
P
    render --camera cam0 --format raw -o cam0.raw
    cmp cam0.raw last.raw || fail 'the last frame is not frame_11'
); result

test_case '--crop' && (
    render --orbit 3 --crop 20x10+4+5 --format raw -o crop.raw --json
    json 'd["video"]["frames"] == 3 and d["video"]["width"] == 20 and d["video"]["fps"] == 30 and d["video"]["ffmpeg"] is None'
    [ "$(bytes crop.raw)" = $((3 * 20 * 10 * 3)) ] || fail '--crop'
); result

test_case 'the program that reads is gone' && (
    (kiln render m/x.db --orbit 400 --format raw -o - 2>err; echo $? >status) | head -c 1000 >/dev/null
    [ "$(cat status)" = 74 ] && grep -q 'the program that reads the frames from stdout has ended' err ||
        fail "$(cat status): $(cat err)"
); result

test_case 'what does not go together' && (
    refused 'not go together' --orbit 3 --video x.mp4 -o x/
    refused 'not go together' --orbit 3 --video x.mp4 --format png
    refused 'not go together' --orbit 3 --video x.mp4 --depth
    refused 'ends in .mp4' --orbit 3 --video x.gif
    refused 'ends in .mp4' --orbit 3 --video x
    refused 'size asks for 101x77 pixels.*100x76 is possible' --orbit 3 --size 101x77 --video x.mp4
    refused 'crop asks for 11x20 pixels.*10x20 is possible' --orbit 3 --size 96x64 --crop 11x20+1+1 --video x.mp4
    refused 'at least 2x2 pixels' --orbit 3 --size 1x64 --video x.mp4
    refused 'one stream' --orbit 3 --format y4m
    refused 'one stream' --orbit 3 --format y4m -o folder/
    refused 'one stream' --format raw
    refused 'needs --format y4m or raw' --orbit 3 -o -
    refused 'both write to stdout' --orbit 3 --format raw -o - --json
    refused 'fps needs' --orbit 3 --fps 24 -o x/
    refused 'fps needs' --orbit 3 --fps 24 --format raw -o x.raw
); result

test_case 'pictures of several sizes' && (
    py sizes
    refused 'size 97x64 makes them equal' --cameras sizes.json --format raw -o x.raw
    render --cameras sizes.json --size 96x64 --format raw -o sizes.raw
); result

stand_in() {
    mkdir -p fake && printf '#!/bin/bash\n[ "$1" = -version ] && { echo "%s"; exit; }\n%s\n' "$1" "$2" >fake/ffmpeg &&
        chmod +x fake/ffmpeg
}
video() { PATH=$PWD/fake:$PATH must "$1" "$KILN_BIN/kiln-render" m/x.db --quiet --orbit 300 --video "${2:-x.mp4}"; }
none() { [ ! -e x.mp4 ] && ! ls x.mp4.tmp.* 2>/dev/null || fail "a video is there: $(ls x.mp4*)"; }

test_case 'there is no ffmpeg' && (
    mkdir empty
    PATH=$PWD/empty must 74 "$KILN_BIN/kiln-render" m/x.db --orbit 3 --video x.mp4
    grep -q 'cannot run ffmpeg.*No such file' err && grep -q 'format y4m -o -' err || fail "$(cat err)"
    none
); result

test_case 'a program that is not ffmpeg' && (
    stand_in 'something else' 'cat >/dev/null'
    video 74
    grep -q "is not FFmpeg: its version is 'something else'" err || fail "$(cat err)"
); result

test_case 'an ffmpeg that is killed' && (
    stand_in 'ffmpeg version 9.9 (c)' 'head -c 5000 >/dev/null; kill -9 $$'
    video 74; none
    [ "$(wc -l <err)" = 1 ] && grep -q 'ffmpeg was ended by signal 9' err || fail "killed: $(cat err)"
); result

test_case 'an ffmpeg that fails: its words, quoted' && (
    stand_in 'ffmpeg version 9.9 (c)' "printf 'no room for\\033[2J this\\nNo space left on device' >&2; exit 28"
    video 74; none
    grep -q 'ffmpeg ended with exit code 28.*it says: No space left on device' err || fail "its words: $(cat err)"
    PATH=$PWD/fake:$PATH must 74 "$KILN_BIN/kiln-render" m/x.db --orbit 300 --video x.mp4
    grep -qF 'ffmpeg: no room for\x1b[2J this' err || fail "its words are not passed on, quoted: $(cat err)"
); result

test_case 'an ffmpeg that fails behind the last frame' && (
    stand_in 'ffmpeg version 9.9 (c)' 'cat >/dev/null; exit 3' # fails behind the last frame
    video 74; none
    grep -q 'ffmpeg ended with exit code 3' err || fail "$(cat err)"
); result

takes='for f; do :; done; sleep 0.5; cat >"${f#file:}"; printf "%s\n" "$@" >arguments'

test_case 'a video of an odd size lacks the last column' && (
    stand_in 'ffmpeg version 9.9 (c)' "$takes"
    PATH=$PWD/fake:$PATH must 0 "$KILN_BIN/kiln-render" m/x.db --orbit 3 --video ./-odd.mp4
    head -n 2 err | grep -q '97x64 pixels.* shows 96x64 pixels, without the last column' || fail "$(cat err)"
    [ "$(stat -c %s ./-odd.mp4)" = $((3 * 96 * 64 * 3)) ] || fail 'an odd picture keeps its last column'
); result

test_case 'ffmpeg is given all frames' && (
    stand_in 'ffmpeg version 9.9 (c)' "$takes"
    PATH=$PWD/fake:$PATH must 0 "$KILN_BIN/kiln-render" m/x.db --orbit $N --size 96x64 --video x.mp4 --json
    json 'd["video"]["ffmpeg"] == "9.9" and d["video"]["frames"] == 40'
    [ "$(bytes x.mp4)" = $((N * 96 * 64 * 3)) ] || fail 'frames are lost'
    grep -qx 96x64 arguments && grep -qx 30/1 arguments || fail "arguments: $(cat arguments)"
    case $(tail -n 1 arguments) in file:*x.mp4.tmp.*) ;; *) fail "arguments: $(cat arguments)" ;; esac
    rm x.mp4
); result

test_case 'an ffmpeg that takes nothing: an interrupt ends it' && (
    stand_in 'ffmpeg version 9.9 (c)' 'exec sleep 60' # one that takes nothing: an interrupt ends it
    PATH=$PWD/fake:$PATH py interrupt "$KILN_BIN/kiln-render" || fail "an interrupt: $(cat err)"
    none
); result

test_case 'videos change nothing of the bake, and leave nothing' && (
    [ "$(digest m/x.db)" = "$before" ] || fail 'a video changes the bake'
    ! ls ./*.tmp.* 2>/dev/null || fail 'something is left'
); result

command -v ffmpeg >/dev/null && command -v ffprobe >/dev/null || skip 'the rest: there is no ffmpeg here (apt-get install ffmpeg)'
render --orbit $N --video deep/in/fly.mp4 --fps 25

test_case 'ffmpeg itself: the video is what was asked for' && (
    probed=$(ffprobe -v error -count_frames -select_streams v -show_entries stream=width,height,nb_read_frames,r_frame_rate -of csv=p=0 deep/in/fly.mp4)
    [ "$probed" = 96,64,25/1,$N ] || fail "the video: $probed"
); result

test_case 'ffmpeg itself: the video shows the frames' && (
    ffmpeg -v error -i deep/in/fly.mp4 -f rawvideo -pix_fmt rgb24 fly.raw
    ffmpeg -v error -i all.y4m -vf scale=in_color_matrix=bt601 -f rawvideo -pix_fmt rgb24 y4m.raw
    py shows $N || fail 'the video shows something else'
); result
