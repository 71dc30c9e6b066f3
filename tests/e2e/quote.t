#!/bin/bash
# time-limit: 600
# Texts of other people's files on their way to the terminal: whatever a scene or a manifest says, no program writes a control
# byte, a mark that reorders text or a byte that is no UTF-8, and no text begins a line of its own.
# starts first
. tests/e2e/lib.sh
EVIL=$'\x1b]0;pwned\x07\nkiln-import: done \x7f\xc2\x9b31m\xe2\x80\xae\r\t'
export EVIL

mkdir "$KILN_TMP/said"
group=none
tell() { # PROGRAM ARGUMENTS...: both streams are kept for the end; a failure has a sentence
    local program=$1 code said; shift
    said=$(mktemp --suffix=".$program" "$KILN_TMP/said/$group.XXXXXX")
    "$KILN_BIN/kiln-$program" "$@" >"$said" 2>&1; code=$?
    [ $code -lt 128 ] && [ $code -ne 70 ] || fail "exit $code of kiln-$program $*"
    [ $code -eq 0 ] || [ -s "$said" ] || fail "exit $code of kiln-$program $* without a word"
}
# all that was told in this group: no control character but the line feeds, no byte that is no UTF-8, no line that the evil text
# began
are_clean() {
    py are_clean "$KILN_TMP/said" "$group"
}

write_ply() { # FILE WHERE
    py write_ply "$1" "$2"
}
for where in comment format element column utf8 type; do
    test_case "a PLY with evil text in its $where" && (
        group=ply-$where
        mkdir "$KILN_TMP/ply"
        write_ply "$KILN_TMP/ply/scene.ply" $where
        tell import "$KILN_TMP/ply/scene.ply" "$KILN_TMP/ply/x.db" --list
        tell import "$KILN_TMP/ply/scene.ply" "$KILN_TMP/ply/x.db" --verbose
        tell import "$KILN_TMP/ply/scene.ply" "$KILN_TMP/ply/x.db" --json
        if [ -e "$KILN_TMP/ply/x.db" ]; then
            for s in info verify; do
                tell $s "$KILN_TMP/ply/x.db"
                tell $s "$KILN_TMP/ply/x.db" --json
            done
            for s in knn prune chunk; do tell $s "$KILN_TMP/ply/x.db" --verbose; done
            tell tiles "$KILN_TMP/ply/x.db" --verbose --camera '#0' # eight cameras of an orbit are many pixels
            tell export "$KILN_TMP/ply/x.db" --verbose
        fi
        rm -rf "$KILN_TMP/ply"
    are_clean || fail "see above"
    ); result
done

test_case 'evil names of folders and files' && (
    group=names
    mkdir "$KILN_TMP/folder" "$KILN_TMP/folder/$EVIL"
    write_ply "$KILN_TMP/folder/$EVIL/$EVIL.ply" comment
    for option in --list --json --verbose; do tell import "$KILN_TMP/folder/$EVIL" "$KILN_TMP/$EVIL.db" $option; done
    for s in info verify doctor knn; do tell $s "$KILN_TMP/$EVIL.db"; done
    rm -f "$KILN_TMP/$EVIL.db"
    are_clean || fail "see above"
); result

mkdir "$KILN_TMP/json"
py cameras "$KILN_TMP/json"
for file in "$KILN_TMP"/json/*.json; do
    test_case "evil text in ${file##*/}" && (
        group=${file##*/}
        mkdir "$KILN_TMP/one"
        case $file in */cameras.json) cp "$file" "$KILN_TMP/one/" ;; *) cp "$file" "$KILN_TMP/one/transforms.json" ;; esac
        write_ply "$KILN_TMP/one/scene.ply" comment
        tell import "$KILN_TMP/one" "$KILN_TMP/one.db" --list
        tell import "$KILN_TMP/one" "$KILN_TMP/one.db"
        rm -rf "$KILN_TMP/one" "$KILN_TMP/one.db"
    are_clean || fail "see above"
    ); result
done

test_case 'evil text in files of COLMAP' && (
    group=colmap
    mkdir -p "$KILN_TMP/colmap/sparse/0"
    echo "1 $EVIL 32 24 30 30 16 12" >"$KILN_TMP/colmap/sparse/0/cameras.txt"
    echo "1 1 0 0 0 0 0 3 1 $EVIL" >"$KILN_TMP/colmap/sparse/0/images.txt"
    echo "1 0 0 0 $EVIL" >"$KILN_TMP/colmap/sparse/0/points3D.txt"
    tell import "$KILN_TMP/colmap" "$KILN_TMP/colmap.db" --list
    tell import "$KILN_TMP/colmap" "$KILN_TMP/colmap.db"
    are_clean || fail "see above"
); result

scene "$KILN_TMP/s" 300 2 48x32
bake "$KILN_TMP/s" "$KILN_TMP/clean.db" --max 64
# a copy for each of them, all made by one python, whose start takes longer than a program
py columns "$KILN_TMP/clean.db" "$KILN_TMP/m" >"$KILN_TMP/columns" || fail "columns"
[ "$(wc -l <"$KILN_TMP/columns")" -ge 40 ] || fail "few columns"

test_case 'evil text in every column of a manifest' && (
    group=manifest
    while read -r table column; do
        db=$KILN_TMP/m/$table.$column/x.db
        for s in info verify; do tell $s "$db"; done
        tell info "$db" --json
        tell verify "$db" --digest
        case $table in camera | scene | parameter | run | photo | quarantine)
            for s in prune tiles render export; do tell $s "$db" --verbose; done ;;
        esac
        rm -rf "${db%/*}"
    done <"$KILN_TMP/columns"
    are_clean || fail "see above"
); result

[ -n "$cases_wanted" ] || [ "$(ls "$KILN_TMP/said" | wc -l)" -gt 250 ] || fail "only $(ls "$KILN_TMP/said" | wc -l) runs"
