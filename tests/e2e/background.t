#!/bin/bash
# Photos that have one colour where nothing is drawn, another than the background: one warning a run, with the option that fits.
# None for photos with alpha, which are put over the background, nor for those with a natural background, nor where it fits. Of a
# bake whose photos are white wherever nothing is drawn the background is white without being asked for: for one camera, all, any
# threads, and tasks.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
root=$PWD
export PYTHONPATH=$root/tests/e2e PYTHONDONTWRITEBYTECODE=1
cd "$KILN_TMP" || exit 1
python3 "$root/tests/e2e/ball.py" s 4 || fail ball
kiln import s first/m.db >/dev/null && for stage in knn prune chunk; do kiln $stage first/m.db >/dev/null || fail $stage; done
for i in 0 1 2 3; do kiln render first/m.db --camera cam$i --background black -o cam$i.npy >/dev/null || fail "cam$i.npy"; done
photos() { # expression of (pixel number, view) that gives the colour behind, or of the whole photo p for others
    py photos "$1" "${2:-}" || fail "photos: $1"
}
bake_to_chunks() {
    rm -rf m
    kiln import "$1" m/m.db >/dev/null || fail import
    for stage in knn prune chunk; do kiln $stage m/m.db >/dev/null || fail $stage; done
}
warns() { # colour or nothing, options: what kiln-render says of the photos that lie in s now, or with STORED=1 of those imported
    local want=$1 said from='first/m.db --cameras s/cameras.json'; shift
    [ -z "${STORED:-}" ] || from=m/m.db
    # shellcheck disable=SC2086 # a manifest and perhaps an option
    must 0 "$KILN_BIN/kiln-render" $from --format none --json "$@"
    said=$(grep -c 'warning: where nothing is drawn' err)
    grep -q '"psnr": [0-9]' out || fail 'nothing was measured'
    if [ -z "$want" ]; then
        [ "$said" = 0 ] && ! grep -q background_of_photos out || fail "no warning was due: $(cat err)"
    else
        [ "$said" = 1 ] && grep -q -- "--background $want fits" err || fail "not one warning of $want: $(cat err)"
        grep -q "\"background_of_photos\": \"$want\"" out || fail "not in the report: $want"
    fi
}
db_of() { python3 -c 'import json; d = json.load(open("out")); print(round(min(v["psnr"] or 99 for v in d["views"])))'; }

photos '(1, 1, 1)'

test_case 'photos that are white where nothing is drawn: one warning, with the option that fits' && (
    warns white
    [ "$(db_of)" -lt 10 ] || fail "over black these photos measure $(db_of) dB"
    warns white --camera cam2
); result

bake_to_chunks s
cp -r m chosen && cp -r m tasks && cp -r m alone
chosen() { grep -q 'the background is white, because the photos are white wherever nothing is drawn' err || fail "not chosen: $(cat err)"; }
images() { kiln verify "$1" --digest | grep '^image'; }

test_case 'a bake of such photos has its background chosen' && (
    STORED=1 warns '' && chosen
    grep -q '"background_chosen": "white"' out || fail 'the choice is not in the report'
    [ "$(db_of)" -gt 50 ] || fail "over the chosen background these photos measure $(db_of) dB"
    STORED=1 warns '' --background white
    STORED=1 warns white --background black
); result

test_step 'the choice is the same with one thread, and a second run does nothing' && (
    must 0 "$KILN_BIN/kiln-render" chosen/m.db --threads 1
    chosen
    must 0 "$KILN_BIN/kiln-render" chosen/m.db && grep -q 'nothing to do' err || fail "not up to date: $(cat err)"
); result

test_case 'a single camera is drawn over the chosen background' && (
    must 0 "$KILN_BIN/kiln-render" alone/m.db --camera cam2 -o alone.png # before any other picture
    chosen
    must 0 "$KILN_BIN/kiln-render" chosen/m.db --camera cam2 -o later.png
    must 0 "$KILN_BIN/kiln-render" chosen/m.db --cameras s/cameras.json --camera cam2 -o others.png
    for png in alone later others; do
        cmp <(python3 -c "from picture import *; print(read_png('$png.png'))") \
            <(python3 -c "from picture import *; print(read_png('chosen/renders/cam2.png'))") ||
            fail "$png.png is over another background"
    done
); result

test_case 'tasks draw over the chosen background' && (
    must 0 kiln render tasks/m.db --plan --tasks 2
    for i in 1 2; do must 0 kiln render tasks/m.db --shard $i/2 --part parts; done
    must 0 kiln render tasks/m.db --gather parts
    [ "$(images tasks/m.db)" = "$(images chosen/m.db)" ] || fail 'tasks drew other pictures'
); result

test_case 'gc keeps what the choice depends on' && (
    must 0 kiln gc chosen/m.db
    must 0 "$KILN_BIN/kiln-render" chosen/m.db && grep -q 'nothing to do' err || fail "gc took what decides: $(cat err)"
); result

test_case 'white photos over another background, and over white' && (
    warns white --background 128,128,128
    warns '' --background white # fits
    [ "$(db_of)" -gt 50 ] || fail "over white these photos measure $(db_of) dB"
); result

test_case 'photos with a colour behind' && (
    photos '(40 / 255, 200 / 255, 90 / 255)'
    warns 40,200,90
    warns '' --background 40,200,90
); result

test_case 'photos with black behind' && (
    photos '(0, 0, 0)'
    warns ''
    warns black --background white
); result

test_case 'a backdrop with noise is named by its colour' && (
    photos 'noise((.8, .8, .8), 9)' # a backdrop with noise, as in a photo of a rig
    warns '20[2-6],20[2-6],20[2-6]'
); result

test_case 'photos with alpha and nothing cut out' && (
    photos '(1, 1, 1)' opaque # alpha, and nothing is cut out
    warns white
); result

test_case 'photos that are cut out have no warning' && (
    photos '' cut-out
    warns ''
    warns '' --background white
); result

test_case 'natural backgrounds have no warning' && (
    photos '(.3 + .6 * y / height, .5 + .4 * y / height, .95) if y < height * .6 else noise((.3, .5, .2), 50)'
    warns ''
    photos 'noise((.4, .5, .3), 90)'
    warns ''
    photos '((1, 1, 1), (.2, .3, .9), (.7, .1, .1), (.1, .6, .2))[view]'
    warns ''
); result

test_case 'the chair: its background is chosen' && (
    [ -n "$KILN_SHARED" ] && [ -d "$KILN_SHARED/scenes/chair" ] || skip 'no scenes/chair'
    bake_to_chunks "$KILN_SHARED/scenes/chair"
    STORED=1 warns '' && chosen
    STORED=1 warns white --background black
); result
