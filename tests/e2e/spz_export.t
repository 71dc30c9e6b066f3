#!/bin/bash
# What kiln-export writes as SPZ, versions 3 and 4: every value within half a step, in both frames and all degrees; what was read
# from an SPZ comes out with its codes; the same bytes whatever packs them; what does not fit is refused or counted.
steps="python3 $PWD/tests/e2e/spz_steps.py"
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
cd "$KILN_TMP" || exit 1

for degree in 0 1 2 3 4; do
    $steps make "$degree.ply" $degree 1500 || fail 'cannot write the scene'
    kiln import $degree.ply $degree.db >/dev/null || fail "import of degree $degree"
    for frame in rub as-is; do
        for format in spz spz4; do
            to=$degree-$format-$frame
            must 0 kiln export $degree.db --layer source --format $format --frame $frame -o "$to.spz"
            [ ! -s err ] || fail "a scene that fits is warned of: $(cat err)"
            must 0 kiln import "$to.spz" "$to.db" --frame $frame
            must 0 kiln export "$to.db" --layer source -o "$to.ply"
            $steps near $degree.ply "$to.ply" $degree || fail "$to is not near"
            must 0 kiln export "$to.db" --layer source --format $format --frame $frame -w -o again.spz
            cmp "$to.spz" again.spz || fail "$to there and back is another file"
        done
        same $degree-spz-$frame.db $degree-spz4-$frame.db
    done
    ! cmp -s $degree-spz-rub.spz $degree-spz-as-is.spz || fail '--frame changes nothing'
done
kiln import 3-spz-as-is.spz rub.db >/dev/null && [ "$(digest rub.db)" != "$(digest 3-spz-as-is.db)" ] || fail 'as-is is RUB'
$steps planes 3-spz-rub.spz >planes || fail 'version 3 is no gzip stream'
[ "$(head -c 16 planes | od -An -tx1 | tr -d ' ')" = 4e47535003000000dc050000030c0000 ] || fail "header: $(head -c 16 planes | od -An -tx1)"
[ "$(wc -c <planes)" = $((16 + 65 * 1500)) ] || fail "planes have $(wc -c <planes) bytes"
[ "$(head -c 20 3-spz4-rub.spz | od -An -tx1 | tr -d ' \n')" = 4e47535004000000dc050000030c000620000000 ] || fail "version 4: $(head -c 20 3-spz4-rub.spz | od -An -tx1)"
[ "$(head -c 16 0-spz4-rub.spz | od -An -tx1 | tr -d ' \n')" = 4e47535004000000dc050000000c0005 ] || fail 'version 4, degree 0'
must 0 kiln export 3.db --layer source --format spz,spz4 -o both/
cmp both/scene.spz 3-spz-rub.spz && cmp both/scene.v4.spz 3-spz4-rub.spz || fail 'a list of both versions'
must 0 "$KILN_BIN/kiln-export" 3.db --layer source -o said.spz && grep -q 'are RUB (right, up, back)' err || fail "which axes: $(cat err)"

# chunks, threads, memory
scene s 30000 1 32x32
kiln import s s.db >/dev/null && kiln knn s.db >/dev/null && kiln chunk s.db --layer source --max 4000 >/dev/null || fail 'chunk'
for format in spz spz4; do
    must 0 kiln export s.db --format $format -w -o all.spz --threads 4
    for how in '--threads 1' '--ram 90M' '--threads 3 --workers 3'; do
        must 0 kiln export s.db --format $format -w -o again.spz $how
        cmp all.spz again.spz || fail "$format has other bytes with $how"
    done
    must 0 kiln import all.spz $format.db
    must 0 "$KILN_BIN/kiln-export" s.db --format $format -w -o again.spz --report-loss 1 --min-psnr 25
    grep -qE "camera '.*' [0-9.]+ dB" err && cmp all.spz again.spz || fail "$format: its loss: $(cat err)"
done
same spz.db spz4.db

# harmonics that are alike in rows far apart: matches are looked for, where runs alone would make twice as much
python3 - >alike.ply <<'P'
import random
random.seed(3)
kinds = [' '.join('%.3f' % random.uniform(-1, 1) for _ in range(45)) for _ in range(16)]
print('ply\nformat ascii 1.0\nelement vertex 3000')
for name in ['x', 'y', 'z', 'f_dc_0', 'f_dc_1', 'f_dc_2'] + ['f_rest_%d' % i for i in range(45)] + ['opacity', 'scale_0', 'scale_1', 'scale_2', 'rot_0', 'rot_1', 'rot_2', 'rot_3']:
    print('property float', name)
print('end_header')
for i in range(3000):
    print(i, 0, 0, 0, 0, 0, random.choice(kinds), 0, -3, -3, -3, '1 0 0 0')
P
kiln import alike.ply alike.db >/dev/null || fail 'import of alike.ply'
must 0 kiln export alike.db --layer source -o alike.spz
$steps planes alike.spz | python3 -c '
import sys, zlib
runs = zlib.compressobj(1, zlib.DEFLATED, -15, 9, zlib.Z_RLE)
data = sys.stdin.buffer.read()
sys.exit(2 * int(sys.argv[1]) > len(runs.compress(data) + runs.flush()))' "$(stat -c %s alike.spz)" || fail "alike.spz has $(stat -c %s alike.spz) bytes"

# codes of files that others made
for sample in ${KILN_SHARED:+"$KILN_SHARED"/samples/golden_spz_v[34]_sh?.spz}; do
    [ -e "$sample" ] || continue
    rm -rf golden.db* again.db*
    must 0 kiln import "$sample" golden.db
    must 0 kiln export golden.db --layer source -w -o again.spz
    $steps planes again.spz >planes || fail "of $sample"
    case $sample in
    *_v3_*) $steps planes "$sample" >theirs && cmp theirs planes || fail "other codes than $sample" ;;
    *) must 0 kiln import again.spz again.db && same golden.db again.db ;;
    esac
done

# what does not fit
edited() { # FILE ROW COLUMN VALUE...: of 3.ply
    python3 - "$@" <<'P' || fail 'cannot edit'
import struct, sys
b = bytearray(open('3.ply', 'rb').read())
at = b.index(b'end_header\n') + 11
for i in range(2, len(sys.argv), 3):
    struct.pack_into('<f', b, at + 4 * (62 - 3) * int(sys.argv[i]) + 4 * int(sys.argv[i + 1]), float(sys.argv[i + 2]))
open(sys.argv[1], 'wb').write(b)
P
    rm -rf edited.db*
    kiln import "$1" edited.db >/dev/null || fail "import of $1"
}
for format in spz spz4; do
    edited far.ply 7 1 1e6
    must 3 kiln export edited.db --layer source --format $format -o no.spz
    grep -q '24 bits for a coordinate: with one of 1e+06 its steps are 0.125 units' err && [ ! -e no.spz ] || fail "far: $(cat err)"
    edited farther.ply 7 1 3000
    must 0 "$KILN_BIN/kiln-export" edited.db --layer source --format $format -w -o farther.spz
    grep -q 'steps of 1/2048 instead of 1/4096, because they reach as far as 3000' err || fail "farther: $(cat err)"
    edited clamped.ply 3 52 -11 3 53 7 9 54 6.5 4 20 1.5 5 3 9
    must 0 "$KILN_BIN/kiln-export" edited.db --layer source --format $format -w -o clamped.spz --json
    python3 -c 'import json; c = list(json.load(open("out"))["changed"].values()); assert c == [2, 1, 1], c' || fail "$(cat out)"
    grep -q "2 rows have log scales that were clamped to -10 .. 5.9375" err || fail "clamped: $(cat err)"
done
# the box of the positions alone is no measure: one row, many at one place; what Gaussians are is asked
at() { # ROWS PLACE SCALE FAR: rows of different colours at one place, five of them FAR away
    python3 - "$@" <<'P' && kiln import at.ply at.db --force >/dev/null || fail "import of $*"
import struct, sys
n, place, scale, far = int(sys.argv[1]), *map(float, sys.argv[2:5])
names = ['x', 'y', 'z', 'f_dc_0', 'f_dc_1', 'f_dc_2', 'opacity', 'scale_0', 'scale_1', 'scale_2', 'rot_0', 'rot_1', 'rot_2', 'rot_3']
with open('at.ply', 'wb') as f:
    f.write(b'ply\nformat binary_little_endian 1.0\nelement vertex %d\n' % n)
    f.write(b''.join(b'property float %s\n' % c.encode() for c in names) + b'end_header\n')
    for i in range(n):
        f.write(struct.pack('<14f', place + (far if i < 5 else 0), place, place, i / n, 0, 0, 1, scale, scale, scale, 1, 0, 0, 0))
P
}
for format in spz spz4; do
    for where in '1 1.44945 -5 0' '1 0 -5 0' '1000 3.25 -5 0' '500 -1000.5 -4 0'; do
        # shellcheck disable=SC2086
        at $where
        must 0 kiln export at.db --layer source --format $format -w -o at.spz
        must 0 kiln import at.spz atspz.db --force --frame rub
        must 0 kiln export atspz.db --layer source -w -o again.ply
        place=${where#* }
        python3 - "${place%% *}" <<'P' || fail "$format of '$where' lies elsewhere"
import struct, sys
b = open('again.ply', 'rb').read()
x = struct.unpack_from('<3f', b, b.index(b'end_header\n') + 11)
assert all(abs(v - float(sys.argv[1])) <= 1e-3 * max(abs(v), 1e-3) for v in x), x
P
    done
    for where in '1 100000 -9 0' '500 0.5 -4 9e6'; do
        # shellcheck disable=SC2086
        at $where
        must 3 kiln export at.db --layer source --format $format -o no.spz
        grep -q 'too coarse .* Gaussians of about .*--filter-box.*--translate' err && [ ! -e no.spz ] || fail "$where: $(cat err)"
    done
done
[ -z "$(find . -name '*.tmp.*')" ] || fail 'a temporary file was left'
exit 0
