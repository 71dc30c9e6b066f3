#!/bin/bash
# README.md and docs: every command that a page shows is run, but for those of blocks that are marked with a reason; every program,
# option and make target that it names exists, also of the marked ones; pages are short. (unit/pages has the links.)
# starts first
. tests/e2e/lib.sh
MARKED_MAX=42 # a command that is not run is a command that may be wrong
root=$PWD

test_case 'what pages name is there, and pages are short' && (
    python3 tests/e2e/docs.py check >"$KILN_TMP/check" || { cat "$KILN_TMP/check"; fail "see above"; }
    cat "$KILN_TMP/check"
    marked=$(sed -n 's/^commands: .* run, \([0-9]*\) marked.*/\1/p' "$KILN_TMP/check")
    [ "${marked:-99}" -le $MARKED_MAX ] || fail "$marked commands are not run, more than $MARKED_MAX"
); result

# What pages name: a scene, its bake, files of Gaussians. Each page finds them as they were, in the same place.
export HOME=$KILN_TMP/home PATH=$KILN_BIN:$PATH
mkdir "$HOME" "$KILN_TMP/page"
cd "$KILN_TMP/page" || fail "cd"
kiln generate demo tower --gaussians 3000 --cameras 12 --size 96x60 >/dev/null || fail "generate"
must 0 "$KILN_BIN/kiln" pipeline tower
cp tower/scene.ply tower.ply
scene other 500 1 48x32
must 0 kiln import other other.db
must 0 kiln export other.db --layer source --format ply,spz -o files/
mv files/scene.ply garden.ply
mv files/scene.spz street.spz
rm -r other other.db* files
cp -a "$KILN_TMP/page" "$KILN_TMP/start"
cd "$root" || fail "cd"
for page in $(python3 tests/e2e/docs.py pages); do
    test_case "the commands of $page" && (
        script=$KILN_TMP/script said=$KILN_TMP/said
        python3 tests/e2e/docs.py script "$page" >"$script"
        rm -r "$KILN_TMP/page"
        cp -a "$KILN_TMP/start" "$KILN_TMP/page"
        cd "$KILN_TMP/page" || fail "cd"
        ! grep -q '^kiln generate demo tower' "$script" || rm -r tower # this page makes it
        bash "$script" >"$said" 2>&1 </dev/null || { tail -n 20 "$said"; fail "a command fails"; }
    ); result
done
