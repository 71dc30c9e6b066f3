#!/bin/bash
# One of everything: no message says "1 cameras".
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
front() { "$KILN_BIN/kiln" "$@"; }
said=0
# one COMMAND...: what it says counts one thing as one
one() {
    "$KILN_BIN/kiln" "$@" >>all 2>&1 || fail "kiln $*: $(tail -n 3 all)"
    said=$((said + 1))
}

test_case 'no message counts one thing in the plural' && (
    one generate demo s --gaussians 1 --cameras 1 --size 64x48
    one generate points p --gaussians 1
    one generate demo two --gaussians 2 --cameras 1 --size 64x48
    one pipeline s --lod --verbose --export ply,csv,splat
    one pipeline s --lod --verbose --export ply,csv,splat --force --tiles-level 1
    one pipeline p --verbose
    one import s i.db --list
    one import two x.db --add s/scene.ply --verbose
    one info x.db
    db=s/bake/manifest.db
    for command in "info $db --lod --plots" "info $db --cameras -o cameras.json" "verify $db" \
        "prune $db --dry-run --merge --against $db" "tiles $db --predict" "lod $db --dry-run" \
        "render $db --orbit 1 -o frames/" "render $db --levels-against levels" "export $db -o o.ply --report-loss 1" \
        "gc $db --dry-run" "report $db -o r.html" "compare s/images s/bake/renders"; do
        # shellcheck disable=SC2086 # words
        one $command
    done
    one prune $db --drop-row 0
    one gc $db
    sed 's/<[^>]*>/\n/g' r.html | grep -v '[{}]' >>all
    bad=$(grep -nE '(^|[^0-9.,:x/_-])1 (more |other )?[A-Za-z]+[^s0-9 ]s( |$|[,;:.)])' all | grep -vE '1 (ms|KiB|MiB|is|has|was|stands|sees|needs|lies)\b') ||
        :
    [ -z "$bad" ] || fail "one thing in the plural: $bad"
    [ $said = 23 ] || fail "$said commands"
); result
