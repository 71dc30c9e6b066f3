#!/bin/bash
# A --scratch-dir that is full: the sentence names that folder and what is free there, not the folder of the manifest, of the scene
# or of what is exported, where there is room.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
[ "$(id -u)" = 0 ] || skip "no tmpfs without root"
mkdir full && mount -t tmpfs -o size=64k none full 2>/dev/null || skip "a tmpfs cannot be mounted"
at_exit 'umount -l "$KILN_TMP/full"'
fill() { rm -rf full/* && head -c 65536 /dev/zero >full/x 2>/dev/null; [ "$(stat -f -c %a full)" = 0 ] || fail "not full"; }
fill
scene s 40000 2 64x48
bake s m.db
# full COMMAND...: ends with 74 and one sentence about the full folder
full() {
    must 74 "$@" --scratch-dir full
    [ "$(grep -vc 'warning: ' err)" = 1 ] || fail "not one sentence of $*: $(cat err)"
    grep -qE "'([^']*/)?full(/[^']*)?'" err || fail "$* does not name the full folder: $(cat err)"
    grep -qE '[^0-9]0 bytes are free' err || fail "$* does not say that nothing is free: $(cat err)"
    ! grep -oE '[0-9.]+ [KMGT]iB are free' err || fail "$* says what is free elsewhere: $(cat err)"
    grep -qE 'make room' err || fail "$* does not say what to do: $(cat err)"
    [ "$(ls full)" = x ] || fail "$* left $(ls full)"
}

gzip -k s/scene.ply
py ascii || fail "an ASCII PLY"
kiln export m.db -o s.sog >/dev/null && kiln export m.db -o s.spz >/dev/null || fail "export"
for file in s/scene.ply.gz ascii.ply s.sog s.spz; do
    test_case "import of $file" && (
        full kiln import $file i.db
        [ ! -e i.db ] || fail "import of $file left a manifest"
    ); result
done

for format in ply csv sog spz; do
    test_case "export to $format" && (
        full kiln export m.db -o out.$format
        [ ! -e out.$format ] || fail "export left out.$format"
    ); result
done

test_case 'a stage that lacks memory' && (
    full kiln chunk m.db --force --ram 30M
); result

mkdir net && cp m.db net/

test_case 'the copy of a manifest that lies on a network file system' && (
    KILN_NETWORK_FS=$PWD/net full kiln tiles net/m.db --plan --tasks 2 --near 0.125
); result

test_case 'the copy fits, what is to be written does not' && (
    mount -o remount,size=$(($(stat -c %s m.db) / 1024 + 200))k full && rm full/x || fail "remount"
    KILN_NETWORK_FS=$PWD/net must 74 kiln chunk net/m.db --plan --max 300 --scratch-dir full
    grep "cannot write 'net/m.db', of which '[^']*full/[^']*copy' is the copy to work on: " err |
        grep -q ": .* are free there; make room and run again, or name another folder with --scratch-dir" ||
        fail "a full copy: $(cat err)"
    cmp -s net/m.db m.db && [ -z "$(ls full)" ] || fail "the manifest changed, or the copy is left: $(ls full)"
); result
