#!/bin/bash
# Every format that kiln-export --list-formats names is written by --format NAME and by its suffix.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
scene s 500 2 48x32
bake s m/manifest.db
db=m/manifest.db
"$KILN_BIN/kiln-export" --list-formats >formats || fail '--list-formats fails'
[ "$(wc -l <formats)" -ge 2 ] || fail "--list-formats names too few: $(cat formats)"
"$KILN_BIN/kiln-export" --help | tr -s ' \n' ' ' >help
grep -qF "($(cut -d ' ' -f 1 formats | paste -sd '|')" help || fail "--help has other formats: $(cat help)"
must 2 kiln export $db --format none-such
while read -r name suffixes what; do
    grep -qF "$name: $what" help || fail "--help does not say what $name is"
    [ "$suffixes" != '(folder)' ] || suffixes=''
    must 0 kiln export $db --format "$name" -o "out-$name"
    for suffix in $suffixes; do
        must 0 kiln export $db -o "by.$suffix" && cmp "out-$name" "by.$suffix" || fail "-o by.$suffix gives another file than --format $name"
    done
done <formats
