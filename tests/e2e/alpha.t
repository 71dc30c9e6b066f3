#!/bin/bash
# --alpha: a PNG has straight alpha, so that composing it over any background gives the picture drawn over that background. .npy
# keeps the colours over the background, as it says. Only pictures with alpha are drawn again for a bake of before.
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

test_case 'composing a picture with alpha gives the picture drawn over that background' && (
    py composed || fail 'a composed picture is not the picture over that background'
); result

drawn() { grep -o '"frames_drawn": [0-9]*' out; }
pixels=$(kiln verify $db --digest | grep ^image)

test_case 'a picture with alpha is another picture, and is drawn once' && (
    must 0 kiln render $db --alpha --json && [ "$(drawn)" = '"frames_drawn": 1' ] || fail "--alpha: $(drawn)"
    must 0 kiln render $db --json && grep -q 'nothing to do' out || fail '--alpha was drawn twice'
    must 0 kiln render $db --no-alpha --json && [ "$(drawn)" = '"frames_drawn": 1' ] || fail "--no-alpha: $(drawn)"
    [ "$(kiln verify $db --digest | grep ^image)" = "$pixels" ] || fail 'the pixels are not those of before'
); result
