#!/bin/bash
# kiln-serve: who is answered and who is not, what the answers hold, a stranger's manifest, a stage that runs meanwhile, many
# connections at a time, how it ends. tests/soak/serve_load.t has what takes longer.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip 'no python3'
export PYTHONDONTWRITEBYTECODE=1
T=$KILN_TMP
ask() { local check=$1; shift; timeout 120 python3 tests/e2e/serve.py "$check" "$KILN_BIN/kiln-serve" "$@" || fail "$check"; }
must 0 kiln generate demo "$T/demo" --gaussians 6000 --cameras 5 --size 256x160
M=$T/demo/bake/manifest.db
bake "$T/demo" "$M" --max 3000
must 0 kiln lod "$M"
for s in tiles render; do must 0 kiln $s "$M"; done

test_case 'who is answered and who is not' && (
    ask rules "$M"
); result

test_case 'what the answers hold' && (
    mkdir "$T/ply"
    for i in $(seq 0 30); do
        kiln export "$M" --format ply -o "$T/ply/$i.ply" --chunks "#$i" --order baked --keep-origin --no-normals >"$T/out" 2>&1 ||
            break
    done
    [ "$i" -gt 3 ] || fail "too few chunks: $(cat "$T/out")"
    before=$(cksum "$M")
    ask data "$M" "$T/ply"
    [ "$(cksum "$M")" = "$before" ] || fail 'the manifest was changed'
); result

test_case 'many connections at a time' && (
    ask many "$M" 300
); result

test_case 'how it ends' && (
    ask ends "$M"
); result

test_case 'a bake that has begun, and a stage that runs meanwhile' && (
    must 0 kiln import "$T/demo" "$T/new.db"
    ask begun "$T/new.db"
    for s in knn prune chunk; do must 0 kiln $s "$T/new.db"; done
    ask changing "$T/new.db" "$KILN_BIN/kiln-tiles"
); result

test_case 'the file is another one, or has other cameras, from one request to the next' && (
    must 0 kiln generate demo "$T/other" --gaussians 1000 --cameras 2 --size 64x64
    bake "$T/other" "$T/other/bake/manifest.db" --max 500
    cp "$M" "$T/demo/bake/first.db"
    ask replaced "$T/demo/bake/first.db" "$T/other/bake/manifest.db"
    ask moved "$T/demo/bake/first.db"
); result

test_case "a stranger's: names are markup, photos and pictures lead elsewhere" && (
    cp "$T/demo/images/view_00.png" "$T/secret.png"
    printf 'TOP SECRET' >>"$T/secret.png"
    mkfifo "$T/pipe.png"
    ln -s "$T/secret.png" "$T/link.png"
    cp "$M" "$T/demo/bake/evil.db"
    py stranger "$T/demo/bake/evil.db" "$T" || fail 'cannot make the stranger'
    ask stranger "$T/demo/bake/evil.db" 'TOP SECRET'
); result

test_case 'what is wrong is said by an exit code' && (
    must 2 kiln serve
    must 2 kiln serve "$M" --port 65536
    must 2 kiln serve "$M" --listen localhost.example
    must 2 kiln serve "$M" --listen 192.0.2.77
    must 3 kiln serve "$T/demo/scene.ply"
    must 3 kiln serve "$T/none.db"
); result

test_case 'kiln help lists it' && (
    "$KILN_BIN/kiln" help | grep -q '^ *serve ' || fail 'kiln help does not list it'
); result

test_case 'other programs are not linked with what kiln-serve alone needs' && (
    for p in kiln kiln-info kiln-report; do
        ! ldd "$KILN_BIN/$p" | grep -q microhttpd || fail "$p is linked with what kiln-serve alone needs"
    done
); result
