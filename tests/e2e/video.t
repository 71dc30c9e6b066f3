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
[ "$(bytes all.raw)" = $((N * 97 * 64 * 3)) ] || fail "raw frames: $(bytes all.raw) bytes"

# ---- the frames are the pictures, in their order, on any number of workers and under a cap that has room for few ----
render --orbit $N -o png/
python3 - $N <<'P' || fail 'frames differ from the pictures'
import sys, struct, zlib
def pixels(path):  # 8-bit RGB, filtered by rows
    data, out, at = open(path, 'rb').read(), b'', 8
    while at < len(data):
        n, kind = struct.unpack('>I4s', data[at:at + 8])
        if kind == b'IHDR': w, h = struct.unpack('>II', data[at + 8:at + 16])
        if kind == b'IDAT': out += data[at + 8:at + 8 + n]
        at += 12 + n
    out, rows, above = zlib.decompress(out), [], bytes(3 * w)
    for y in range(h):
        f, row = out[y * (3 * w + 1)], bytearray(out[y * (3 * w + 1) + 1:(y + 1) * (3 * w + 1)])
        for i in range(3 * w):
            a, b, c = (row[i - 3] if i > 2 else 0), above[i], (above[i - 3] if i > 2 else 0)
            p = a + b - c
            best = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            row[i] = (row[i] + (0, a, b, (a + b) // 2, best)[f]) & 255
        rows.append(bytes(row)); above = row
    return b''.join(rows)
raw, n = open('all.raw', 'rb').read(), 97 * 64 * 3
for i in range(0, int(sys.argv[1]), 3):
    assert raw[i * n:(i + 1) * n] == pixels('png/orbit_%04d.png' % i), i
P
render --orbit $N --format raw -o again.raw --threads 8
cmp all.raw again.raw || fail 'frames depend on threads'
kiln render m/x.db --orbit $N --format raw -o - 2>err >out.raw || fail "stdout: $(cat err)"
cmp all.raw out.raw || fail 'frames on stdout differ'
kiln render m/x.db --orbit $N --format raw -o - --threads 8 2>err | (sleep 1; cat) >slow.raw # a slow reader
cmp all.raw slow.raw || fail 'frames to a slow reader differ'
kiln render m/x.db --orbit $N --format y4m -o - --fps 29.97 2>err | cat >all.y4m
[ "$(head -n 1 all.y4m)" = 'YUV4MPEG2 W97 H64 F30000:1001 Ip A1:1 C420jpeg XYSCSS=420JPEG XCOLORRANGE=LIMITED' ] || fail "$(head -n 1 all.y4m)"
[ "$(bytes all.y4m)" = $((82 + N * (6 + 97 * 64 + 2 * 49 * 32))) ] || fail "y4m: $(bytes all.y4m) bytes"
"$KILN_BIN/kiln-render" m/x.db --orbit 3 --format y4m -o - 2>err >three.y4m || fail "$(cat err)"
grep -q '3 frames of 97x64, 30 a second -> stdout' err || fail "what is printed beside a stream goes to stderr: $(cat err)"
[ "$(head -c 9 three.y4m)" = YUV4MPEG2 ] || fail 'text is mixed into the stream'
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
render --orbit 3 --crop 20x10+4+5 --format raw -o crop.raw --json
json 'd["video"]["frames"] == 3 and d["video"]["width"] == 20 and d["video"]["fps"] == 30 and d["video"]["ffmpeg"] is None'
[ "$(bytes crop.raw)" = $((3 * 20 * 10 * 3)) ] || fail '--crop'

# ---- who reads is gone, who writes fails ----
(kiln render m/x.db --orbit 400 --format raw -o - 2>err; echo $? >status) | head -c 1000 >/dev/null
[ "$(cat status)" = 74 ] && grep -q 'the program that reads the frames from stdout has ended' err || fail "$(cat status): $(cat err)"

# ---- what is refused ----
refused 'not go together' --orbit 3 --video x.mp4 -o x/
refused 'not go together' --orbit 3 --video x.mp4 --format png
refused 'not go together' --orbit 3 --video x.mp4 --depth
refused 'ends in .mp4' --orbit 3 --video x.gif
refused 'ends in .mp4' --orbit 3 --video x
refused 'size asks for 101x77 pixels.*100x76 would do' --orbit 3 --size 101x77 --video x.mp4
refused 'crop asks for 11x20 pixels.*10x20 would do' --orbit 3 --size 96x64 --crop 11x20+1+1 --video x.mp4
refused 'at least 2x2 pixels' --orbit 3 --size 1x64 --video x.mp4
refused 'one stream' --orbit 3 --format y4m
refused 'one stream' --orbit 3 --format y4m -o folder/
refused 'one stream' --format raw
refused 'for --format y4m' --orbit 3 -o -
refused 'both write to stdout' --orbit 3 --format raw -o - --json
refused 'fps is of' --orbit 3 --fps 24 -o x/
refused 'fps is of' --orbit 3 --fps 24 --format raw -o x.raw
python3 - <<'P'
import json
d = json.load(open('s/cameras.json'))
d[2]['width'] = 80
json.dump(d, open('sizes.json', 'w'))
P
refused 'size 97x64 makes them equal' --cameras sizes.json --format raw -o x.raw
render --cameras sizes.json --size 96x64 --format raw -o sizes.raw

# ---- ffmpeg: stand-ins ----
stand_in() { mkdir -p fake && printf '#!/bin/bash\n[ "$1" = -version ] && { echo "%s"; exit; }\n%s\n' "$1" "$2" >fake/ffmpeg && chmod +x fake/ffmpeg; }
video() { PATH=$PWD/fake:$PATH must "$1" "$KILN_BIN/kiln-render" m/x.db --quiet --orbit 300 --video "${2:-x.mp4}"; }
none() { [ ! -e x.mp4 ] && ! ls x.mp4.tmp.* 2>/dev/null || fail "a video is there: $(ls x.mp4*)"; }
mkdir empty
PATH=$PWD/empty "$KILN_BIN/kiln-render" m/x.db --orbit 3 --video x.mp4 >out 2>err
[ $? = 74 ] && grep -q 'cannot run ffmpeg.*No such file' err && grep -q 'format y4m -o -' err || fail "$(cat err)"
none
stand_in 'something else' 'cat >/dev/null'
video 74
grep -q "is another one.*'something else'" err || fail "$(cat err)"
stand_in 'ffmpeg version 9.9 (c)' 'head -c 5000 >/dev/null; kill -9 $$'
video 74; none
[ "$(wc -l <err)" = 1 ] && grep -q 'ffmpeg was ended by signal 9' err || fail "killed: $(cat err)"
stand_in 'ffmpeg version 9.9 (c)' "printf 'no room for\\033[2J this\\nNo space left on device' >&2; exit 28"
video 74; none
grep -q 'ffmpeg ended with 28.*it says: No space left on device' err || fail "its words: $(cat err)"
PATH=$PWD/fake:$PATH must 74 "$KILN_BIN/kiln-render" m/x.db --orbit 300 --video x.mp4
grep -qF 'ffmpeg: no room for\x1b[2J this' err || fail "its words are not passed on, quoted: $(cat err)"
stand_in 'ffmpeg version 9.9 (c)' 'cat >/dev/null; exit 3' # fails behind the last frame
video 74; none
grep -q 'ffmpeg ended with 3' err || fail "$(cat err)"
takes='for f; do :; done; sleep 0.5; cat >"${f#file:}"; printf "%s\n" "$@" >arguments'
stand_in 'ffmpeg version 9.9 (c)' "$takes"
PATH=$PWD/fake:$PATH must 0 "$KILN_BIN/kiln-render" m/x.db --orbit 3 --video ./-odd.mp4
head -n 2 err | grep -q '97x64 pixels.* shows 96x64 of them, without the last column' || fail "$(cat err)"
[ "$(stat -c %s ./-odd.mp4)" = $((3 * 96 * 64 * 3)) ] || fail 'an odd picture keeps its last column'
PATH=$PWD/fake:$PATH must 0 "$KILN_BIN/kiln-render" m/x.db --orbit $N --size 96x64 --video x.mp4 --json
json 'd["video"]["ffmpeg"] == "9.9" and d["video"]["frames"] == 40'
[ "$(bytes x.mp4)" = $((N * 96 * 64 * 3)) ] || fail 'frames are lost'
grep -qx 96x64 arguments && grep -qx 30/1 arguments || fail "arguments: $(cat arguments)"
case $(tail -n 1 arguments) in file:*x.mp4.tmp.*) ;; *) fail "arguments: $(cat arguments)" ;; esac
rm x.mp4
stand_in 'ffmpeg version 9.9 (c)' 'exec sleep 60' # one that takes nothing: an interrupt ends it
PATH=$PWD/fake:$PATH python3 - "$KILN_BIN/kiln-render" <<'P' || fail "an interrupt: $(cat err)"
import os, signal, subprocess, sys, time
p = subprocess.Popen([sys.argv[1], 'm/x.db', '--orbit', '300', '--size', '640x400', '--video', 'x.mp4'], stderr=open('err', 'w'), stdout=subprocess.DEVNULL)
def sleeps(child):
    try: return 'sleep' in open('/proc/%s/comm' % child).read()
    except OSError: return False # it has ended meanwhile
while not any(sleeps(c) for c in open('/proc/%d/task/%d/children' % (p.pid, p.pid)).read().split()):
    assert p.poll() is None
    time.sleep(0.05)
p.send_signal(signal.SIGINT)
assert p.wait() == 130, p.returncode
P
none
[ "$(digest m/x.db)" = "$before" ] || fail 'a video changes the bake'
ls ./*.tmp.* 2>/dev/null && fail 'something is left'

# ---- ffmpeg itself ----
command -v ffmpeg >/dev/null && command -v ffprobe >/dev/null || skip 'the rest: there is no ffmpeg here (apt-get install ffmpeg)'
render --orbit $N --video deep/in/fly.mp4 --fps 25
probed=$(ffprobe -v error -count_frames -select_streams v -show_entries stream=width,height,nb_read_frames,r_frame_rate -of csv=p=0 deep/in/fly.mp4)
[ "$probed" = 96,64,25/1,$N ] || fail "the video: $probed"
ffmpeg -v error -i deep/in/fly.mp4 -f rawvideo -pix_fmt rgb24 fly.raw
ffmpeg -v error -i all.y4m -vf scale=in_color_matrix=bt601 -f rawvideo -pix_fmt rgb24 y4m.raw
python3 - $N <<'P' || fail 'the video shows something else'
import sys
raw, mp4, y4m = (open(f + '.raw', 'rb').read() for f in ('all', 'fly', 'y4m'))
n, m = 97 * 64 * 3, 96 * 64 * 3
def apart(a, b): return sum(abs(p - q) for p, q in zip(a, b)) / len(a)
assert len(raw) == len(y4m) and len(mp4) == int(sys.argv[1]) * m, (len(raw), len(y4m), len(mp4))
for i in (0, 17, 39):
    want = b''.join(raw[i * n + y * 291:i * n + y * 291 + 288] for y in range(64))
    same, other = apart(want, mp4[i * m:(i + 1) * m]), apart(want, mp4[(i + 20) % 40 * m:((i + 20) % 40 + 1) * m])
    y = apart(raw[i * n:(i + 1) * n], y4m[i * n:(i + 1) * n])
    print(i, same, other, y)
    assert same < 6 and other > same + 3 and y < 6
P
exit 0
