#!/usr/bin/env bash
# Frames of a path: what a GPU hashes and filters itself is what the host makes of the CPU's floats. Digests with and without files,
# PNG files byte by byte, with and without alpha, of 8 and 16 bits; a size whose last piece the GPU does not hash (2 pixels); and
# pictures that are drawn chunk by chunk or fast.
. tests/gpu/lib.sh
cd "$KILN_TMP" || exit 1
pixels() { sed -n 's/.*"pixels": "\([0-9a-f]*\)".*/\1/p' report.json; }
draw() { # DEVICES FOLDER ARGUMENTS...: FOLDER - is none
    local devices=$1 to=(-o "$2"); shift 2
    [ "${to[1]}" != - ] || to=()
    on "$devices" render x.db --cameras s/cameras.json "${to[@]}" "$@"
}
for size in 645x401 331x198; do
    rm -rf s x.db cpu* cuda*
    scene s 60000 9 "$size"
    kiln import s x.db >/dev/null && kiln knn x.db >/dev/null && kiln prune x.db >/dev/null || fail 'bake'
    kiln chunk x.db --max 4000 >/dev/null || fail 'chunk'
    draw cpu - --format none
    pixels >cpu.pixels
    [ "$(sort -u cpu.pixels | wc -l)" = 9 ] || fail "$size: no 9 digests"
    for more in '' '--vram 24M'; do
        # shellcheck disable=SC2086 # words on purpose
        draw cuda - --format none $more
        pixels | cmp - cpu.pixels || fail "$size: digests without files differ, with '$more'"
    done
    for form in 'png' 'png --alpha' 'png16' 'png16 --alpha' 'png --depth' 'npy'; do
        rm -rf cpu cuda
        # shellcheck disable=SC2086
        draw cpu cpu --format $form --background white
        pixels >white.pixels
        # shellcheck disable=SC2086
        draw cuda cuda --format $form --background white
        [ "$(find cuda -type f | wc -l)" -ge 9 ] || fail "no 9 files of $form"
        pixels | cmp - white.pixels || fail "$size: digests with $form differ"
        diff -r cpu cuda || fail "$size: files of $form differ"
    done
    # Fast pictures have digests of their own: those of the floats in the files. The first is measured, so its floats are copied.
    draw cuda cuda_fast --fast --format npy
    pixels >fast.pixels
    draw cuda - --fast --format none
    pixels | cmp - fast.pixels || fail "$size: digests of fast pictures differ"
    echo "$size: 9 pictures in 6 forms, $(field draw_s) s for the last"
done
