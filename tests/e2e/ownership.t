#!/bin/bash
# What is the user's stays: each program on each kind of target, without and with -w. V=1 prints the table.
#   kept      exit 2 (74: no file can be put there), and the target is what it was, byte for byte
#   replaced  exit 0, and the target is what the program writes
#   inside    exit 0: -o is the folder that is there, and what lay in it still does
# starts first
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
programs=$(cd "$KILN_BIN" && pwd) here=$PWD
cd "$KILN_TMP" || exit 1
KILN_BIN=$programs
export KILN_VIEWER=$here/tests/data/viewer

# a scene with photos, whose Gaussians lie in a file called tower.ply
must 0 kiln generate demo s --gaussians 300 --cameras 4 --size 32x20
mv s/scene.ply s/tower.ply
bake s b.db
cp b.db other.db
db=b.db

# ---- programs: each writes one file, or one folder, at a path ----
picture()  { kiln render "$db" --camera '#0' -o "$1" "${@:2}"; }
orbit()    { kiln render "$db" --orbit 1,radius=4 --size 16x10 -o "$1" "${@:2}"; }
frames()   { kiln render "$db" --format raw -o "$1" "${@:2}"; }
npy()      { kiln render "$db" --camera '#0' -o "$1" "${@:2}"; }
ply()      { kiln export "$db" -o "$1" "${@:2}"; }
packed()   { kiln export "$db" -o "$1" "${@:2}"; }
glb()      { kiln export "$db" -o "$1" "${@:2}"; }
splat()    { kiln export "$db" -o "$1" "${@:2}"; }
html()     { kiln export "$db" -o "$1" "${@:2}"; }
sog()      { kiln export "$db" -o "$1" "${@:2}"; }
report()   { kiln report "$db" -o "$1" "${@:2}"; }
cameras()  { kiln info "$db" --cameras -o "$1" "${@:2}"; }
generate() { kiln generate points "$(dirname "$1")" --gaussians 20 "${@:2}"; }
suffix_of() {
    case $1 in
    picture | orbit) echo png ;;
    frames) echo raw ;;
    npy) echo npy ;;
    ply | generate) echo ply ;; splat) echo splat ;; packed) echo compressed.ply ;; glb) echo glb ;; html | report) echo html ;;
    sog) echo sog ;; cameras) echo json ;;
    esac
}
name_of() { [ "$1" = generate ] && echo points.ply || echo "x.$(suffix_of "$1")"; }

# ---- kinds of targets: makes it at $2 for program $1 ----
nothing()    { :; }
photo()      { :; }
foreign()    { printf 'not ours %s' "$1" >"$2"; }
folder()     { mkdir "$2"; echo mine >"$2/notes.txt"; }
link()       { echo 'behind the link' >behind; ln -s "$KILN_TMP/behind" "$2"; }
photo_link() { ln -s "$KILN_TMP/s/images/view_00.png" "$2"; }
hardlink()   { ln s/images/view_00.png "$2"; }
fifo()       { mkfifo "$2"; }
own()        { "$1" "$2" >/dev/null 2>&1 || fail "$1 does not write '$2'"; }
edited()     { own "$1" "$2"; printf 'by hand' >>"$2"; }
others()     { local db=other.db; "$1" "$2" --scale 2 >/dev/null 2>&1 || fail "$1 does not write '$2'"; }

state() {
    if [ -p "$1" ]; then echo pipe
    elif [ -L "$1" ]; then echo "link $(readlink "$1") $(md5sum <"$1")"
    elif [ -d "$1" ]; then tar -C "$1" -cf - . | md5sum
    elif [ -e "$1" ]; then md5sum <"$1"
    fi
}
photos=$(cat s/images/* s/tower.ply s/cameras.json | md5sum)

printf '%-9s %-11s %-10s %-10s\n' program target without with-w
# try PROGRAM KIND WITHOUT WITH: each kept or replaced
try() {
    local program=$1 kind=$2 without=$3 with=$4 target=w/$(name_of "$1") got said
    said=()
    for flag in '' -w; do
        rm -rf w; mkdir w
        "$kind" "$program" "$target"
        local before want=$without; before=$(state "$target")
        [ -z "$flag" ] || want=$with
        # shellcheck disable=SC2086
        "$program" "$target" $flag >out 2>err </dev/null; got=$?
        if [ "$want" = inside ]; then
            [ $got = 0 ] || { cat err >&2; fail "$program on $kind $flag: exit $got"; }
            grep -qx mine "$target/notes.txt" || fail "$program on $kind $flag: the file in it is gone"
            [ "$(ls "$target" | wc -l)" = 2 ] || fail "$program on $kind $flag: $(ls "$target")"
        elif [ "$want" = kept ]; then
            [ $got = 2 ] || { [ $got = 74 ] && [[ $kind = folder || $kind = fifo ]]; } ||
                { cat err >&2; fail "$program on $kind $flag: exit $got, not 2"; }
            [ "$before" = "$(state "$target")" ] || fail "$program on $kind $flag: refused, and changed"
            [ "$(wc -l <err)" = 1 ] || fail "$program on $kind $flag: $(cat err)"
        else
            [ $got = 0 ] || { cat err >&2; fail "$program on $kind $flag: exit $got"; }
            [ -f "$target" ] && [ ! -L "$target" ] || fail "$program on $kind $flag: no file"
            [ "$kind" = nothing ] || [ "$kind" = own ] || [ "$before" != "$(state "$target")" ] ||
                fail "$program on $kind $flag: still what it was"
        fi
        [ "$photos" = "$(cat s/images/* s/tower.ply s/cameras.json | md5sum)" ] ||
            fail "$program on $kind $flag: the scene is another one"
        [ ! -e behind ] || grep -qx 'behind the link' behind ||
            fail "$program on $kind $flag: what the link leads to is another file"
        [ -z "$(find w -name '*.tmp.*')" ] || fail "$program on $kind $flag leaves $(find w -name '*.tmp.*')"
        said+=("$want")
    done
    printf '%-9s %-11s %-10s %-10s\n' "$program" "$kind" "${said[0]}" "${said[1]}"
}
# target PROGRAM KIND WITHOUT WITH: a case of it
target() {
    test_case "$1 on $2" && (
        try "$@"
    ); result
}
# where the file system has extended attributes, formats without a seal have a note of size and time in one
noted=$(python3 -c 'import os; open("x","w"); os.setxattr("x", "user.a", b"b"); print("yes")' 2>/dev/null)
for program in picture orbit frames npy ply packed glb splat html sog report cameras generate; do
    case $program,$noted in
    frames,* | npy,* | splat,* | cameras,*) ours=kept changed=kept ;;       # no mark
    generate,*) ours=kept changed=kept ;;                                   # may be the source of a bake
    ply,) ours=kept changed=kept ;;                             # a PLY has the comments of its source
    picture,* | orbit,* | report,*) ours=replaced changed=kept ;;           # a mark and a seal
    ply,yes | packed,yes | glb,yes | sog,yes | html,yes) ours=replaced changed=kept ;; # a note
    *) ours=replaced changed=replaced ;;                                    # a mark
    esac
    case $program in frames | report | cameras | generate) in=kept ;; *) in=inside ;; esac # whose -o may be a folder
    target $program nothing replaced replaced
    target $program foreign kept replaced
    target $program folder $in $in
    target $program fifo kept kept
    target $program own $ours replaced
    target $program edited $changed replaced
    case $program,$noted in ply,yes | packed,yes | glb,yes | sog,yes | html,yes) target $program others kept replaced ;; esac
    target $program link kept replaced
    [ $program = generate ] && continue # knows no scene
    target $program photo_link kept kept
    target $program hardlink kept kept
done

# ---- targets inside of the scene ----
# refused COMMAND...: with and without -w, and nothing of the scene changes, nor is anything added to it
files=$(find s | sort)
refused() {
    for flag in '' -w; do
        # shellcheck disable=SC2086
        "$@" $flag >out 2>err; local got=$?
        [ $got = 2 ] || { cat err >&2; fail "exit $got, not 2: $* $flag"; }
        [ "$photos" = "$(cat s/images/* s/tower.ply s/cameras.json | md5sum)" ] || fail "$* $flag: the scene is another one"
        [ "$files" = "$(find s | sort)" ] || fail "$* $flag: $(find s | sort | comm -13 <(echo "$files") - | paste -sd ' ')"
    done
    printf '%-60s %s\n' "${*//$KILN_TMP\//}" 'kept, with -w too'
}
# kept COMMAND...: a case of it
kept() {
    test_case "refused: ${*//$KILN_TMP\//}" && (
        refused "$@"
    ); result
}
kept kiln render b.db -o s/images/
kept kiln render b.db --camera '#1' -o s/images/view_01.png
kept kiln render b.db --camera '#1' -o s/images/new.png      # import would look at it
kept kiln render b.db --camera '#1' -o s/images/view_01.npy  # beside the photo of this name
kept kiln render b.db --orbit 2 --size 16x10 -o s/images/
kept kiln render b.db --orbit 2 --size 16x10 -o s/images/more/
kept kiln render b.db --depth -o s/images/
kept kiln render b.db --format raw -o s/images/view_01.png
kept kiln render b.db --format raw -o s/tower.ply
kept kiln export b.db -o s/tower.ply
kept kiln export b.db -o s/cameras.json --format ply
kept kiln export b.db --format chunks -o s/images/
kept kiln export b.db --format spz -o s/images/
kept kiln export b.db --format chunks -o s/images/chunks
kept kiln export b.db --format sog-folder -o s/images/sog/
kept kiln export b.db --format sog-folder -o s/images/
kept kiln export b.db --format sog-folder -o s/
kept kiln report b.db -o s/images/view_01.png
kept kiln report b.db -o s/tower.ply
kept kiln info b.db --cameras -o s/cameras.json
kept kiln info b.db --cameras -o s/tower.ply

# trained again: another size, time and inode, and still the scene's
must 0 kiln generate scene again --gaussians 500 --cameras 2 --size 8x8
mv again/scene.ply s/tower.ply
photos=$(cat s/images/* s/tower.ply s/cameras.json | md5sum)

test_case "a file that was trained again is still the scene's" && (
    refused kiln export b.db -o s/tower.ply
    refused kiln render b.db --format raw -o s/tower.ply
    mkdir -p w
    ln s/tower.ply w/hard.ply
    refused kiln export b.db -o w/hard.ply
    must 2 kiln export b.db -o ./s/../s/tower.ply
); result

test_case 'what is new beside the scene is fine, where no photo lies' && (
    must 0 kiln export b.db -o s/other.ply
    must 0 kiln report b.db -o s/page.html
    must 0 kiln report b.db -o s/page.html
    must 2 kiln report b.db -o other.ply
    grep -q 'must end with .html' err || fail "$(cat err)"
    echo 'my page' >mine.htm
    must 2 kiln report b.db -o mine.htm
); result

test_case '--force computes again; it replaces nothing of others' && (
    echo mine >x.splat
    must 2 kiln export b.db --force -o x.splat
    mkdir o && echo '{}' >o/meta.json && echo x >o/means_l.webp
    must 2 kiln export b.db --force --format sog-folder -o o
    must 0 kiln export b.db -w --format sog-folder -o o
    [ -f o/shN_labels.webp ] || [ -f o/means_u.webp ] || fail "no export in o: $(ls o)"
    mkdir o2 && echo '{}' >o2/meta.json && echo letter >o2/letter.txt
    must 2 kiln export b.db -w --format sog-folder -o o2
    [ -f o2/letter.txt ] || fail "a folder that holds a letter was replaced"
); result

test_case 'generate never writes half a scene over another one' && (
    must 0 kiln generate scene other --gaussians 20 --cameras 2 --size 8x8
    before=$(cat other/* | md5sum)
    must 2 kiln generate scene other --gaussians 30 --cameras 2 --size 8x8
    grep -q "other/scene.ply' exists already; .* -w, --overwrite" err || fail "$(cat err)"
    must 2 kiln generate demo other --gaussians 30 --cameras 2 --size 8x8
    must 2 kiln generate demo s --gaussians 30 --cameras 2 --size 8x8
    [ "$before" = "$(cat other/* | md5sum)" ] && [ ! -e other/images ] || fail "another scene"
    must 0 kiln generate scene other -w --gaussians 30 --cameras 2 --size 8x8
    [ "$before" != "$(cat other/* | md5sum)" ] || fail "generate -w writes nothing"
); result

test_step 'two runs on one target' && (
    mkdir two
    for suffix in splat glb; do
        must 0 kiln export b.db -o two/one.$suffix
        must 0 kiln export b.db -o two/other.$suffix --scale 2
        kiln export b.db -o two/x.$suffix >/dev/null 2>err1 & first=$!
        kiln export b.db -o two/x.$suffix --scale 2 >/dev/null 2>err2 & second=$!
        wait $first && first=0 || first=$?
        wait $second && second=0 || second=$?
        case $suffix in splat) [ $((first + second)) = 2 ] ;; *) [ $((first + second)) = 0 ] ;; esac ||
            fail "$suffix: two runs ended with $first and $second: $(cat err1 err2)"
        cmp -s two/x.$suffix two/one.$suffix || cmp -s two/x.$suffix two/other.$suffix ||
            fail "$suffix: two runs leave another file"
    done
    [ "$(ls two)" = "$(printf '%s\n' one.glb one.splat other.glb other.splat x.glb x.splat)" ] || fail "two runs leave $(ls two)"
); result

test_case "a user's file that has the name of a temporary one stays" && (
    echo mine >two/y.splat.tmp.1; echo mine >two/y.splat.part
    must 0 kiln export b.db -o two/y.splat
    [ "$(cat two/y.splat.tmp.1 two/y.splat.part)" = "$(printf 'mine\nmine')" ] || fail "a user's file went with a temporary one"
); result
