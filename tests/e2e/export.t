#!/bin/bash
# What kiln-export writes: dialects byte by byte, far doubles, orders, chosen chunks, raw planes; and when it has nothing to do.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
db=$KILN_TMP/x.db
reimport() { rm -rf "$db" "$db"-* "$KILN_TMP/export"; kiln import "$1" "$db" >/dev/null || fail "import $1"; }

test_case 'nothing chunked yet: the imported rows can be written' && (
    reimport tests/data/ply/golden_ply_inria_sh1.ply
    must 4 kiln export "$db" -o "$KILN_TMP/o.ply"
    grep -q 'run kiln-chunk .* first, or write the imported rows with --layer source$' "$KILN_TMP/err" || fail "$(cat "$KILN_TMP/err")"
    must 4 kiln export "$db" --layer pruned -o "$KILN_TMP/o.ply"
    ! grep -q 'layer source' "$KILN_TMP/err" || fail "of another layer: $(cat "$KILN_TMP/err")"
); result

test_case 'whole files come back, headers included' && (
    for f in reversed_extra_sh1 mip_filter3d_sh0 2dgs_sh0 inria_sh1; do
        f=tests/data/ply/golden_ply_$f.ply
        reimport "$f"
        kiln export "$db" --layer source -w -o "$KILN_TMP/o.ply" >/dev/null || fail "export $f"
        cmp "$f" "$KILN_TMP/o.ply" || fail "$f came back different"
    done
); result

test_case 'a column of bytes comes back in source order of a chunked layer' && (
    f=tests/data/ply/golden_ply_reversed_extra_sh1.ply
    reimport "$f"
    must 0 kiln knn "$db"
    must 0 kiln chunk "$db" --layer source --max 32
    must 0 kiln export "$db" -o "$KILN_TMP/bytes.ply"
    cmp "$f" "$KILN_TMP/bytes.ply" || fail "$f came back different"
); result

test_case 'doubles far from 0, more than one block of them' && (
    py wide "$KILN_TMP/wide.ply" || fail "wide.ply"
    reimport "$KILN_TMP/wide.ply"
    kiln export "$db" --layer source -w -o "$KILN_TMP/o.ply" >/dev/null || fail "export"
    cmp "$KILN_TMP/wide.ply" "$KILN_TMP/o.ply" || fail "far doubles came back different"
    kiln export "$db" --layer source --keep-origin -w -o "$KILN_TMP/o.ply" >/dev/null || fail "export --keep-origin"
    grep -aq '^property float x' "$KILN_TMP/o.ply" && grep -aq '^comment Origin: 500025 4000020 ' "$KILN_TMP/o.ply" ||
        fail "--keep-origin: $(grep -a -m 6 '^[cp]' "$KILN_TMP/o.ply")"
); result

# chunked and back: source order restores the file, baked order has the same rows
scene "$KILN_TMP/s" 20000 1 64x64
reimport "$KILN_TMP/s"
kiln knn "$db" >/dev/null && kiln chunk "$db" --layer source --max 1000 >/dev/null || fail "chunk"
kiln export "$db" >/dev/null || fail "export"

test_case 'source order restores the file' && (
    cmp "$KILN_TMP/s/scene.ply" "$KILN_TMP/export/scene.ply" || fail "source order does not restore the file"
); result

test_case 'source order over several buckets and windows: all rows, some chunks, two bakes' && (
    cd "$KILN_TMP" || exit
    scene wide 70001 1 64x64
    must 0 kiln import wide wide.db
    must 0 kiln knn wide.db
    must 0 kiln chunk wide.db --layer source --max 4000
    must 0 kiln export wide.db -o all.ply
    cmp wide/scene.ply all.ply || fail "source order does not restore the file"
    for order in source baked; do
        must 0 kiln export wide.db --chunks '#0,#2,#5,#6,#7,#9,#11,#12' --order $order --workers 1 -o some_$order.ply
    done
    must 0 kiln export wide.db --chunks '#0,#2,#5,#6,#7,#9,#11,#12' --workers 3 --threads 3 -o same.ply
    cmp some_source.ply same.ply || fail "other bytes by three workers"
    cp wide.db copy.db
    must 0 kiln export wide.db --add copy.db --workers 2 -o two.ply
    py in_source_order "$KILN_TMP" || fail "rows"
); result

kiln export "$db" --order baked -o "$KILN_TMP/b.ply" >/dev/null || fail "export --order baked"
kiln export "$db" --order baked --chunks '#0,#2' -o "$KILN_TMP/part.ply" >/dev/null || fail "export --chunks"
kiln export "$db" --format chunks -o "$KILN_TMP/raw" >/dev/null || fail "export chunks"

# told FORMAT: the size that is said of a file or folder, to the bytes that it has
told() {
    must 0 "$KILN_BIN/kiln-export" "$db" --format "$1" -w -o "$KILN_TMP/told.$1"
    local want
    want=$(find "$KILN_TMP/told.$1" -type f -printf '%s\n' | awk '{ n++; b += $1 } END { b /= 1024; u = "KiB"
        if (b >= 1024) { b /= 1024; u = "MiB" }; printf (b < 10 ? "%d %.1f %s" : "%d %.0f %s"), n, b, u }')
    [ -f "$KILN_TMP/told.$1" ] && want=", ${want#* }" || want=", a folder of ${want%% *} files, ${want#* }"
    grep -q "written to '$KILN_TMP/told.$1'$want$" "$KILN_TMP/err" || fail "not '$want': $(cat "$KILN_TMP/err")"
}
test_case 'what is written is said with its size' && (
    told splat
    told sog-folder
    told chunks
    "$KILN_BIN/kiln" convert "$KILN_TMP/s/scene.ply" - 2>"$KILN_TMP/err" >"$KILN_TMP/o.ply" || fail convert
    grep -q 'written to standard output, 4.7 MiB$' "$KILN_TMP/err" || fail "a stream: $(cat "$KILN_TMP/err")"
); result

test_step "of what a stranger's index names, only files of ours go" && (
    # An index may be a stranger's: of what it names, only files that are named by a hash go, and none behind a link.
    mkdir "$KILN_TMP/outside" && touch "$KILN_TMP/outside/key" "$KILN_TMP/raw/notes.txt" "$KILN_TMP/raw/$(printf '%032d' 7).bin" &&
        ln -s ../outside "$KILN_TMP/raw/x" || fail "files for a stranger's index"
    py stranger_index "$KILN_TMP/raw/index.json" || fail "a stranger's index"
    kiln export "$db" --format chunks -o "$KILN_TMP/raw" >/dev/null || fail "export chunks over a stranger's index"
    [ -e "$KILN_TMP/outside/key" ] && [ -e "$KILN_TMP/raw/notes.txt" ] ||
        fail "an index made kiln-export delete a file that is not its own"
    [ ! -e "$KILN_TMP/raw/$(printf '%032d' 7).bin" ] || fail "a plane that is no longer needed stayed"
    rm "$KILN_TMP/raw/notes.txt" "$KILN_TMP/raw/x"
); result

test_case 'rows in baked order, of chosen chunks and of raw planes are those of the file' && (
    py same_rows "$KILN_TMP" || fail "rows"
); result

# due or not
said() { "$KILN_BIN/kiln-export" "$db" "$@" 2>&1; }

test_step 'an export is written when it is due' && (
    [[ $(said) == *"nothing to do"* ]] || fail "an export that is there was written again"
    rm "$KILN_TMP/export/scene.ply"
    [[ $(said) == *written* && -f $KILN_TMP/export/scene.ply ]] || fail "a missing export was not written again"
    echo x >>"$KILN_TMP/export/scene.ply"
    [[ $(said) == *"was changed since"* ]] || fail "a changed export was replaced unasked"
    [[ $(said -w) == *written* ]] || fail "a changed export was not written again"
); result

test_step '--format is kept, and a missing plane is written again' && (
    [[ $(said --format chunks) == *written* && $(said) == *"nothing to do"* ]] || fail "--format was not kept"
    rm "$(find "$KILN_TMP/export/chunks" -name '*.bin' | head -n 1)"
    [[ $(said) == *written* ]] || fail "a missing plane was not written again"
); result

test_case "what a killed export left goes, others' files stay" && (
    mkdir "$KILN_TMP/left"
    (cd "$KILN_TMP/left" && touch "scene${LEFT}999999999" "scene$LEFT$$" "other${LEFT}999999999" "scene${LEFT}9x" scene.tmp.999999999 \
        scene.tmp.kiln-00000000-999999999 && ln -s /none "scene${LEFT}999999998") || fail "leftovers"
    kiln export "$db" --format ply -o "$KILN_TMP/left/scene" >/dev/null || fail "a target without suffix"
    [ ! -e "$KILN_TMP/left/scene${LEFT}999999999" ] || fail 'of a process that was killed'
    for other in "scene$LEFT$$" "other${LEFT}999999999" "scene${LEFT}9x" scene.tmp.999999999 scene.tmp.kiln-00000000-999999999; do
        [ -e "$KILN_TMP/left/$other" ] || fail "$other went: of another process, file, program or host"
    done
    [ -L "$KILN_TMP/left/scene${LEFT}999999998" ] || fail 'a link went'
    [ "$(id -u)" != 0 ] || { # a file of another user
        touch "$KILN_TMP/left/scene${LEFT}999999999" && chown 12345 "$KILN_TMP/left/scene${LEFT}999999999"
        kiln export "$db" --format ply -w -o "$KILN_TMP/left/scene" >/dev/null || fail "a target without suffix"
        [ -e "$KILN_TMP/left/scene${LEFT}999999999" ] || fail 'a file of another user went'
    }
    rm -r "$KILN_TMP/left"
); result

test_case 'facts of the scene are part of what was written' && (
    for change in "unit = 'm'" "background_r = 0.5, background_g = 0.5, background_b = 0.5" "rows_read = rows_read + 1" \
        "source_format = 'spz'"; do
        [[ $(said) == *"nothing to do"* ]] || fail "before $change: it was written again"
        py change "$db" "$change" || fail "$change"
        [[ $(said) == *written* ]] || fail "$change: nothing was written again"
    done
); result

test_case 'a refused export leaves nothing' && (
    must 2 "$KILN_BIN/kiln-export" "$db" --chunks nowhere -o "$KILN_TMP/no.ply"
    [ ! -e "$KILN_TMP/no.ply" ] || fail "a refused export left a file"
    [ -z "$(find "$KILN_TMP" -name '*.tmp.*')" ] || fail "a temporary file was left"
); result
