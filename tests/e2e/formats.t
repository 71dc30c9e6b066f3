#!/bin/bash
# Every format that kiln-export --list-formats names is written by --format NAME and by its suffix, of the kinds of rows that it
# says it holds. Where kiln-import reads its suffix, export, import, export gives the first file again; of a format that is exact
# the imported layer is the exported one.
. tests/e2e/lib.sh
page=$PWD/docs/export.md
cd "$KILN_TMP" || exit 1
scene s 500 2 48x32
kiln import s splats.db >/dev/null || fail 'import'
ascii_ply 'float x float y float z uchar red uchar green uchar blue' '0 0 0 255 0 7' '1 2 3 4 5 6' '-1 0.5 0.25 128 127 1' >p.ply
kiln import p.ply points.db >/dev/null || fail 'import of points'
"$KILN_BIN/kiln-export" --list-formats >formats || fail '--list-formats fails'
[ "$(wc -l <formats)" -ge 2 ] || fail "--list-formats names too few: $(cat formats)"
read_suffixes=$("$KILN_BIN/kiln-import" --list-formats | awk '$1 != "(packed)" { print $2 }' | tr , '\n')
"$KILN_BIN/kiln-export" --help-all | tr -s ' \n' ' ' >help

test_case 'a format that there is not' && (
    must 2 kiln export splats.db --format none-such
); result

source_of() { kiln verify "$1" --digest | sed -n 's/^layer source //p'; }
trip() { # kind, name, suffix, exact: there and back
    local db=$1-$2-$3.db again=$1-$2-again.$3
    kiln import "$1-$2.$3" "$db" >/dev/null || fail "what is written as $2 is not read: $1"
    must 0 kiln export "$db" --layer source --format "$2" -o "$again"
    if [ "$3" = sog ]; then # the entries of a palette have no order of their own, and those that are alike become one
        kiln import "$again" "again-$db" >/dev/null && [ "$(source_of "$db")" = "$(source_of "again-$db")" ] ||
            fail "$2 there and back is another scene: $1"
    else
        cmp "$1-$2.$3" "$again" || fail "$2 there and back is another file: $1"
    fi
    [ "$4" != exact ] || [ "$(source_of "$1.db")" = "$(source_of "$db")" ] || fail "$2 is not exact: $1"
}
while read -r name suffixes splats points exact what; do
    test_case "$name is in --help and in docs/export.md" && (
        grep -qE "suffix of -o\):[a-z0-9 -]* $name " help || fail "--help does not name $name"
        grep -qE "(--format|,) ?$name\`|, \`$name\`" "$page" || fail "docs/export.md has no \`--format $name\`"
    ); result

    for kind in splats points; do
        test_case "$name of $kind" && (
            if [ "${!kind}" = - ]; then
                must 3 kiln export $kind.db --layer source --format "$name" -o refused
                grep -q "the format $name holds no" err && [ ! -e refused ] || fail "$name of $kind: $(cat err)"
                exit 0
            fi
            if [ "${!kind}" = levels ]; then # tests of its own
                must 2 kiln export $kind.db --layer source --format "$name" -o refused
                grep -q "the format $name needs levels" err && [ ! -e refused ] || fail "$name of $kind: $(cat err)"
                exit 0
            fi
            must 0 kiln export $kind.db --layer source --format "$name" -o "$kind-$name"
            [ "$suffixes" != '(folder)' ] || exit 0
            for suffix in ${suffixes//,/ }; do
                # of several formats with a suffix the first has it where --format is not given
                first=$(awk -v s="$suffix" 'index("," $2 ",", "," s ",") { print $1; exit }' formats)
                [ "$first" = "$name" ] && said=() || said=(--format "$name")
                must 0 kiln export $kind.db --layer source "${said[@]}" -o "$kind-$name.$suffix"
                cmp "$kind-$name" "$kind-$name.$suffix" || fail "-o NAME.$suffix gives another file than --format $name"
                ! grep -qx "$suffix" <<<"$read_suffixes" || trip $kind "$name" "$suffix" "$exact"
            done
        ); result
    done
done <formats

test_case 'some of the formats are read again' && (
    [ "$(awk '{ print $2 }' formats | tr , '
    ' | grep -cxFf <(echo "$read_suffixes"))" -ge 2 ] || fail 'fewer than two formats come back'
); result
