#!/usr/bin/env bash
# Frames of a path: what a GPU hashes and filters itself is what the host makes of the CPU's floats. Digests with and without files,
# PNG files byte by byte, with and without alpha, of 8 and 16 bits; a size whose last piece the GPU does not hash (2 pixels); and
# pictures that are drawn chunk by chunk or fast. The same for
# the frames of streams.
. tests/gpu/lib.sh
cd "$KILN_TMP" || exit 1
pixels() { sed -n 's/.*"pixels": "\([0-9a-f]*\)".*/\1/p' report.json; }
draw() { # DEVICES FOLDER ARGUMENTS...: FOLDER - is none
    local devices=$1 to=(-w -o "$2"); shift 2
    [ "${to[2]}" != - ] || to=()
    on "$devices" render x.db --cameras s/cameras.json "${to[@]}" "$@"
}
# forms FORMAT...: files and digests of both devices are the same
forms() {
    rm -rf cpu cuda
    draw cpu cpu --format "$@" --background white
    pixels >white.pixels
    draw cuda cuda --format "$@" --background white
    [ "$(find cuda -type f | wc -l)" -ge 9 ] || fail "no 9 files of $*"
    pixels | cmp - white.pixels || fail "$size: digests with $* differ"
    diff -r cpu cuda
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
        # One process in about a hundred packs some blocks of equal rows into other bytes, on the CPU alone, too (ISA-L 2.30 on a
        # machine with many more processes than cores, 2026-11-23; the cause is not known). Rows that differ do so every time.
        # shellcheck disable=SC2086
        forms $form || { echo "$size: files of $form differ; once more"; forms $form; } || fail "$size: files of $form differ twice"
    done
    for stream in raw y4m 'raw --crop 101x77+30+20' 'raw --background white'; do # whose bytes the GPU makes, where nothing is cut out
        for devices in cpu cuda; do
            # shellcheck disable=SC2086
            on "$devices" render x.db --cameras s/cameras.json -w -o "$devices.stream" --format $stream
        done
        [ "$(stat -c %s cpu.stream)" -ge $((9 * 101 * 77 * 3 / 2)) ] && cmp cpu.stream cuda.stream || fail "$size: streams of $stream differ"
    done
    # Fast pictures have digests of their own: those of the floats in the files. The first is measured, so its floats are copied.
    draw cuda cuda_fast --fast --format npy
    pixels >fast.pixels
    draw cuda - --fast --format none
    pixels | cmp - fast.pixels || fail "$size: digests of fast pictures differ"
    echo "$size: 9 pictures in 6 forms, $(field draw_s) s for the last"
done
