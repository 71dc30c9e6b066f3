#!/bin/bash
# kiln-report: one file that loads nothing, of a whole bake, of one that has just begun and of a stranger's whose texts are markup.
# starts first
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip 'no python3'
export PYTHONPATH=tests/e2e PYTHONDONTWRITEBYTECODE=1
T=$KILN_TMP
scene "$T/scene" 3000 3 96x64
bake "$T/scene" "$T/m.db"
page() { python3 tests/e2e/report.py "$1" || fail "the page $1"; }
has() { grep -qF -- "$2" "$1" || fail "$1 lacks '$2'"; }
lacks() { ! grep -qF -- "$2" "$1" || fail "$1 has '$2'"; }

test_step 'one file beside the manifest or where -o says, the same bytes twice' && (
    must 0 kiln report "$T/m.db"
    page "$T/report.html"
    must 0 kiln report "$T/m.db" -o "$T/deep/er/r.html"
    cmp -s "$T/report.html" "$T/deep/er/r.html" || fail 'two reports of one bake differ'
    before=$(cksum "$T/m.db")
    must 0 kiln report "$T/m.db" --json -o "$T/r.html"
    python3 -c 'import json, os, sys
r = json.load(open(sys.argv[1]))
assert r["bytes"] == os.path.getsize(r["path"]), r' "$T/out" || fail '--json'
    [ "$(cksum "$T/m.db")" = "$before" ] || fail 'the manifest was changed'
    for word in '<h2>Import</h2>' '<h2>Pruning</h2>' '<h2>Cameras</h2>' '<h2>Chunks</h2>' '<h2>Runs</h2>' '<h2>Record</h2>' \
        'From above' 'counting pairs' 'Predicted' '3,000' 'min-opacity' 'kiln-render 0' '--max-spacing'; do
        has "$T/report.html" "$word"
    done
    digest "$T/m.db" | while read -r _ _ hash; do has "$T/report.html" "$hash" || exit 1; done || exit 1
); result

test_case 'the page begins with pictures, the worst first, the photo beside the picture' && (
    mkdir -p "$T/shot/images"
    cp -r "$T/scene/." "$T/shot/"
    for i in 0 1 2; do must 0 kiln render "$T/m.db" --camera cam$i --background $((80 * i)),0,0 -o "$T/shot/images/cam$i.png"; done
    bake "$T/shot" "$T/shot.db"
    must 0 kiln report "$T/shot.db" -o "$T/shot.html"
    page "$T/shot.html"
    py begins_with_pictures "$T/shot.html" || fail 'the page does not begin with pictures'
); result

test_case 'on a screen of 390 pixels nothing is cut: tables and pictures scroll by themselves' && (
    chromium=$(command -v "${KILN_CHROMIUM:-chromium}") || skip 'no Chromium'
    py narrow "$T/report.html" "$T/narrow"
    timeout 60 "$chromium" --headless --no-sandbox --disable-gpu --user-data-dir="$T/chromium" --virtual-time-budget=3000 \
        --dump-dom "file://$T/narrow/frame.html" >"$T/narrow/dom" 2>/dev/null || skip 'Chromium does not run here'
    py nothing_is_cut "$T/narrow/dom" || fail "cut: $(cat "$T/narrow/dom")"
); result

test_case 'a bake that has just begun has no section of what is to come' && (
    must 0 kiln import "$T/scene" "$T/new.db"
    must 0 kiln report "$T/new.db" -o "$T/new.html"
    page "$T/new.html"
    for word in Pruning Cameras Chunks; do lacks "$T/new.html" "<h2>$word</h2>"; done
    lacks "$T/report.html" 'quarantined'
    lacks "$T/report.html" 'Levels of detail'
); result

test_case 'what is wrong is said by an exit code and leaves no file' && (
    must 2 kiln report
    must 2 kiln report "$T/m.db" -o "$T/scene"
    must 2 kiln report "$T/m.db" -o "$T/"
    must 3 kiln report "$T/scene/scene.ply" -o "$T/none.html"
    must 3 kiln report "$T/not-there.db" -o "$T/none.html"
    mkfifo "$T/pipe.html"
    must 74 kiln report "$T/m.db" -o "$T/pipe.html"
    [ ! -e "$T/none.html" ] || fail 'a report of nothing'
    ln -s "$T/elsewhere.html" "$T/deep/report.html"
    cp "$T/m.db" "$T/deep/m.db"
    must 3 kiln report "$T/deep/m.db"
    [ ! -e "$T/elsewhere.html" ] || fail 'a link in a stranger'"'"'s folder was followed'
); result

# a stranger's: every text is markup
cp "$T/m.db" "$T/evil.db"
py stranger "$T/evil.db" || fail 'cannot make the stranger'

test_case "a stranger's: every text is markup, and is told as it is" && (
    must 0 kiln report "$T/evil.db" -o "$T/evil.html"
    page "$T/evil.html"
    py told "$T/evil.html" || fail 'what a stranger wrote is not told as it is'
); result

test_case 'counters of other types than ours' && (
    py counters "$T/evil.db" || fail 'cannot make the stranger'
    must 0 kiln report "$T/evil.db" -o "$T/odd.html"
    page "$T/odd.html"
); result

test_case 'rules at other limits and distributions, counted in what prune read' && (
    mkdir "$T/rows"
    py rows "$T/rows/scene.ply" || fail 'cannot write the scene'
    must 0 kiln import "$T/rows" "$T/rows.db"
    must 0 kiln knn "$T/rows.db"
    must 0 kiln prune "$T/rows.db" --min-opacity 0.04
    must 0 kiln report "$T/rows.db" -o "$T/rows.html"
    page "$T/rows.html"
    for word in '<small>0.02</small><b>0</b>' '<td class="n now"><small>0.04</small><b>40</b>' '<small>0.05</small><b>40</b>' \
        '<small>20</small><b>7</b>' '<small>50</small><b>0</b>' 'Longest axis'; do
        has "$T/rows.html" "$word"
    done
); result

# photo, picture, difference and tiles of each camera, encoded anew; the worst first
must 0 kiln generate demo "$T/demo" --gaussians 4000 --cameras 5 --size 160x96
bake "$T/demo" "$T/demo/bake/manifest.db"
M=$T/demo/bake/manifest.db
must 0 kiln report "$M"
page "$T/demo/bake/report.html"
# shown PAGE NAME...: cameras that show a layer, "NAME:layer layer ..."
shown() {
    py shown "$1"
}
said() { [ "$(shown "$1")" = "$2" ] || fail "$1 shows $(shown "$1"), not $2"; }

test_case 'photo, picture, difference and tiles of each camera, the worst first' && (
    said "$T/demo/bake/report.html" 'difference:5 photo:5 picture:5 tiles:5'
    python3 - "$M" "$T/demo/bake/report.html" <<'PY' || fail 'the worst is not the first'
import re, sqlite3, sys
names = [n for n, in sqlite3.connect(sys.argv[1]).execute("SELECT camera FROM image ORDER BY psnr")]
assert re.findall("<h3 class=\"name\">(\\w+)", open(sys.argv[2]).read()) == names, names
PY
); result

test_step 'levels of detail are drawn beside the full scene' && (
    cp "$M" "$T/lod.db"
    must 0 kiln lod "$T/lod.db"
    must 0 kiln report "$T/lod.db" -o "$T/lod.html"
    page "$T/lod.html"
    has "$T/lod.html" '<h2>Levels of detail</h2>'
    said "$T/lod.html" 'difference:3 full:3 level:3 photo:5 tiles:5'
); result

test_case 'levels are drawn as kiln-render draws them' && (
    must 0 kiln render "$T/lod.db" --levels-against "$T/against" --format none --devices cpu --json
    py levels "$T/out" "$T/lod.html" || fail 'levels are not drawn as kiln-render draws them'
); result

test_case 'pictures of another level than the tile maps, and cameras far from the scene' && (
    lacks "$T/lod.html" 'Pictures are of --level'
    must 0 kiln render "$T/lod.db" --level 1 --format none
    py move_camera "$T/lod.db" || fail 'cannot move a camera'
    must 0 kiln report "$T/lod.db" -o "$T/lod.html"
    page "$T/lod.html"
    has "$T/lod.html" 'Pictures are of --level 1, tile maps of --level 0: they do not show the same Gaussians.'
    has "$T/lod.html" '1 camera is farther away than the maps reach'
    [ "$(grep -o '<circle r="2.6" class="far"[^>]*><title>view_03, farther away' "$T/lod.html" | wc -l)" = 2 ] ||
        fail 'the far camera is not a ring in both maps'
); result

test_case 'tasks of several hosts stand in the time line' && (
    cp "$M" "$T/hosts.db"
    export KILN_ROUND_S=0
    must 0 kiln tiles "$T/hosts.db" --profile gsplat-1.6 --plan --tasks 2
    for round in 1 2; do
        for i in 1 2; do must 0 kiln tiles "$T/hosts.db" --profile gsplat-1.6 --shard $i/2 --part "$T/parts"; done
        must 0 kiln tiles "$T/hosts.db" --profile gsplat-1.6 --gather "$T/parts"
    done
    unset KILN_ROUND_S
    [ "$(python3 -c 'import json, socket, sqlite3, sys
print({json.loads(c)["host"] for c, in sqlite3.connect(sys.argv[1]).execute("SELECT counters FROM run")} == {socket.gethostname()})' "$T/hosts.db")" = True ] ||
        fail 'a run does not say on which host it was'
    py hosts "$T/hosts.db" || fail 'cannot name the hosts'
    must 0 kiln report "$T/hosts.db" -o "$T/hosts.html"
    page "$T/hosts.html"
    for word in '15 units in 4 tasks on 2 hosts' '>counting pairs</th>' ' in 1 task on node&lt;1&gt;' '<td>node&lt;0&gt;</td>'; do
        has "$T/hosts.html" "$word"
    done
); result

test_step "photos of a stranger's manifest" && (
    cp "$T/demo/images/view_00.png" "$T/secret.png"
    mkfifo "$T/pipe.png"
    ln -s "$T/secret.png" "$T/link.png"
    cp "$M" "$T/demo/bake/evil.db"
    py strange_photos "$T/demo/bake/evil.db" "$T" || fail 'cannot make the stranger'
    must 0 timeout 60 "$KILN_BIN/kiln-report" --quiet "$T/demo/bake/evil.db" -o "$T/evil.html"
    page "$T/evil.html"
    said "$T/evil.html" 'difference:1 photo:1 picture:1 tiles:5'
    has "$T/evil.html" 'The photo is not among the files that import read.'
); result

test_case 'a photo that has changed since' && (
    cp "$T/demo/images/view_04.png" "$T/view_04.png"
    echo changed >>"$T/demo/images/view_04.png"
    must 0 kiln report "$T/demo/bake/evil.db" -o "$T/evil.html"
    said "$T/evil.html" 'picture:1 tiles:5'
    has "$T/evil.html" 'The file has changed since it was imported.'
    cp "$T/view_04.png" "$T/demo/images/view_04.png"
); result

test_case 'another picture with as many bytes' && (
    py change_photo "$T/demo/images" "$T/was" || fail 'cannot change a photo'
    must 0 kiln report "$M" -o "$T/evil.html"
    said "$T/evil.html" 'difference:4 photo:4 picture:5 tiles:5'
    rm -r "$T/demo/images" && mv "$T/was" "$T/demo/images"
); result

test_step '--max-mb leaves out cameras, and says so' && (
    must 2 kiln report "$M" --max-mb 0
    must 0 kiln generate demo "$T/many" --gaussians 8000 --cameras 26 --size 256x160
    bake "$T/many" "$T/many/bake/manifest.db"
    must 0 kiln report "$T/many/bake/manifest.db"
    page "$T/many/bake/report.html"
    said "$T/many/bake/report.html" 'difference:24 photo:24 picture:24 tiles:24'
    has "$T/many/bake/report.html" '24 of 26 cameras'
    must 0 kiln report "$T/many/bake/manifest.db" --max-mb 1
    page "$T/many/bake/report.html"
    has "$T/many/bake/report.html" 'left out because of --max-mb'
    [ "$(stat -c %s "$T/many/bake/report.html")" -le 1000000 ] || fail 'the page is larger than --max-mb'
); result

test_case '--against the same bake' && (
    must 0 kiln report "$M" --against "$M" -o "$T/same.html"
    page "$T/same.html"
    has "$T/same.html" 'as before'
    for word in 'Other parameters' 'class="worse"'; do lacks "$T/same.html" "$word"; done
); result

test_step '--against another bake' && (
    cp "$M" "$T/demo/bake/other.db"
    for s in import knn prune chunk tiles render; do
        case $s in
        import) must 0 kiln import "$T/demo" "$T/demo/bake/other.db" ;;
        prune) must 0 kiln prune "$T/demo/bake/other.db" --min-opacity 0.9 ;;
        *) must 0 kiln $s "$T/demo/bake/other.db" ;;
        esac
    done
    must 0 kiln report "$T/demo/bake/other.db" --against "$M" -o "$T/other.html"
    page "$T/other.html"
    for word in '<h2>Compared</h2>' \
        '<th scope="row">kiln-prune --min-opacity</th><td class="hash">0.00392156862745098</td><td class="hash">0.9</td>' \
        'class="worse"' '<th scope="row">min-opacity</th><td class="n">0</td>'; do
        has "$T/other.html" "$word"
    done
    has "$T/other.html" 'Both bakes write their pictures into one folder'
); result

test_case '--against a bake in another folder' && (
    mkdir "$T/apart"
    cp "$T/demo/bake/other.db" "$T/apart/manifest.db"
    cp -r "$T/demo/bake/renders" "$T/apart/renders"
    must 0 kiln render "$M" --force
    must 0 kiln report "$T/apart/manifest.db" --against "$M" -o "$T/other.html"
    page "$T/other.html"
    said "$T/other.html" 'difference:9 other:4 photo:5 picture:5 this:4 tiles:5'
); result

test_case '--against what is no bake' && (
    must 0 kiln report "$T/demo/bake/other.db" --against "$T/evil.db" -o "$T/other.html"
    page "$T/other.html"
    must 3 kiln report "$M" --against "$T/not-there.db" -o "$T/none.html"
    must 3 kiln report "$M" --against "$T/scene/scene.ply" -o "$T/none.html"
    [ ! -e "$T/none.html" ] || fail 'a report against nothing'
); result

test_case 'a folder that nothing can be written into' && (
    [ "$(id -u)" = 0 ] && mkdir "$T/fixed" && mount -t tmpfs -o size=64m none "$T/fixed" 2>/dev/null ||
        skip 'no tmpfs can be mounted'
    trap 'umount -l "$T/fixed"' EXIT
    cp -r "$T/many/bake" "$T/fixed/bake" && rm -f "$T/fixed/bake/report.html" && mount -o remount,ro "$T/fixed" || fail remount
    must 74 kiln report "$T/fixed/bake/manifest.db"
    grep -q "cannot write '$T/fixed/bake/report.html': Read-only file system; -o FILE writes the report elsewhere$" \
        "$KILN_TMP/err" ||
        fail "no hint: $(cat "$KILN_TMP/err")"
    must 74 kiln report "$T/fixed/bake/manifest.db" -o "$T/fixed/r.html"
    grep -q "'$T/fixed/r.html': Read-only file system; -o FILE writes the report elsewhere$" "$KILN_TMP/err" ||
        fail "no hint: $(cat "$KILN_TMP/err")"
    must 0 kiln report "$T/fixed/bake/manifest.db" -o "$T/elsewhere/r.html"
    for command in "export $T/fixed/bake/manifest.db -o $T/fixed/x.ply" \
        "info $T/fixed/bake/manifest.db --cameras -o $T/fixed/x.json" "generate demo $T/fixed/demo" \
        "render $T/fixed/bake/manifest.db --camera view_00 -o $T/fixed/v.png" \
        "render $T/fixed/bake/manifest.db --orbit 2 -o $T/fixed/o/"; do
        # shellcheck disable=SC2086 # words
        must 74 kiln $command
        grep -q 'Read-only file system; make the folder writable, or choose another place$' "$KILN_TMP/err" ||
            fail "no hint: $(cat "$KILN_TMP/err")"
    done
); result
