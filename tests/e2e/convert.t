#!/bin/bash
# kiln convert: each format that is read into each flat format that is written gives the bytes of kiln-import and kiln-export of the
# layer source; with filters, moves and a degree; of several files; through streams; and it leaves nothing else, also when it is ended.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
convert() { "$KILN_BIN/kiln" convert --quiet "$@"; }
scene s 3000 1 48x32
written=$("$KILN_BIN/kiln-export" --list-formats | awk '$3 == "splats" && $2 != "(folder)" { split($2, s, ","); print $1 ":" s[1] }')
kiln import s/point_cloud.ply all.db >/dev/null 2>&1 || kiln import s all.db >/dev/null || fail import
mkdir in made two
for pair in ply:ply splat:splat spz:spz spz4:spz compressed-ply:compressed.ply glb:glb ksplat:ksplat sog:sog; do
    kiln export all.db --layer source --format "${pair%%:*}" -o "in/${pair%%:*}.${pair#*:}" || fail "export $pair"
done
gzip -k in/ply.ply
pairs=0
for from in in/*; do
    rm -f two.db*
    kiln import "$from" two.db >/dev/null || fail "import $from"
    for pair in $written; do
        name=${pair%%:*} suffix=${pair#*:}
        kiln export two.db --layer source --format "$name" -w -o "two/x.$suffix" || fail "export of $from as $name"
        must 0 convert "$from" "made/x.$suffix" --format "$name"
        cmp "two/x.$suffix" "made/x.$suffix" || fail "$from as $name is not what kiln-export writes"
        [ "$(echo made/*)" = "made/x.$suffix" ] || fail "$from as $name left $(echo made/*)"
        rm "made/x.$suffix" "two/x.$suffix"
        pairs=$((pairs + 1))
    done
done
[ $pairs -ge 90 ] || fail "only $pairs pairs"
