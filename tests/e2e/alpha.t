#!/bin/bash
# --alpha: a PNG has straight alpha, so that composing it over any background gives the picture drawn over that background. .npy keeps
# the colours over the background, as it says. Only pictures with alpha are drawn again for a bake of before.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
export PYTHONPATH=$PWD/tests/e2e PYTHONDONTWRITEBYTECODE=1
cd "$KILN_TMP" || exit 1
python3 "$OLDPWD/tests/e2e/ball.py" s || fail ball
bake s m/manifest.db
db=m/manifest.db
for drawn in black white 40,200,90; do
    must 0 kiln render $db --camera cam0 --background $drawn -o "over-$drawn.npy"
    for format in png png16; do
        must 0 kiln render $db --camera cam0 --background $drawn --alpha --format $format -o "$format-$drawn.png"
    done
done
python3 - <<'P' || fail 'a composed picture is not the picture over that background'
from picture import *
colours = {'black': (0, 0, 0), 'white': (1, 1, 1), '40,200,90': (40 / 255, 200 / 255, 90 / 255)}
truth = {name: read_npy('over-%s.npy' % name)[2] for name in colours}
alphas = [p[3] for p in truth['black']]
assert 0 in alphas and 0 < sum(0 < a < .9 for a in alphas) < len(alphas), 'the scene has no edges to look at'
worst = {8: math.inf, 16: math.inf}
for format, bits in (('png', 8), ('png16', 16)):
    for drawn in colours:
        pixels = read_png('%s-%s.png' % (format, drawn))[2]
        assert all(p[:3] == [0, 0, 0] for p in pixels if p[3] == 0), 'a colour where nothing is'
        for over in colours: worst[bits] = min(worst[bits], db(compose(pixels, colours[over]), truth[over]))
print('worst of all compositions: %.2f dB at 8 bits, %.2f dB at 16' % (worst[8], worst[16]))
assert worst[8] >= 48 and worst[16] >= 85, worst
# .npy: what the help says of it
for drawn, back in colours.items():
    back_of = [[p[c] - (1 - p[3]) * back[c] for c in range(3)] for p in truth[drawn]]
    alone = [[p[c] for c in range(3)] for p in truth['black']]
    assert db(back_of, alone) > 120
P

# a picture with alpha is another picture, and is drawn once
drawn() { grep -o '"frames_drawn": [0-9]*' out; }
pixels=$(kiln verify $db --digest | grep ^image)
must 0 kiln render $db --alpha --json && [ "$(drawn)" = '"frames_drawn": 1' ] || fail "--alpha: $(drawn)"
must 0 kiln render $db --json && grep -q 'nothing to do' out || fail '--alpha was drawn twice'
must 0 kiln render $db --no-alpha --json && [ "$(drawn)" = '"frames_drawn": 1' ] || fail "--no-alpha: $(drawn)"
[ "$(kiln verify $db --digest | grep ^image)" = "$pixels" ] || fail 'the pixels are not those of before'
