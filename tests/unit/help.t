#!/usr/bin/env bash
# Every program: help that starts with Usage:, fits 80 columns and 50 lines, a line for each of its own options; --help-all lists each
# option of --help-json once; a man page
# that lists them too; a version; exit 2 with one sentence for an option it has not. What computes
# no units has no options about devices. docs/README.md names the program.
set -u
bad=0
say() { echo "$program: $*"; bad=1; }
lexgrog=$(command -v lexgrog)
shopt -s nullglob
programs=("$KILN_BIN"/kiln-*)
[ ${#programs[@]} -gt 0 ] || { echo 'no program was built'; exit 1; }
for path in "${programs[@]}"; do
    program=${path##*/}
    help=$("$path" --help) || say "--help ends with $?"
    all=$("$path" --help-all) || say "--help-all ends with $?"
    man=$("$path" --man) || say "--man ends with $?"
    json=$("$path" --help-json) || say "--help-json ends with $?"
    [[ $help == "Usage: $program "* ]] || say '--help does not start with Usage:'
    [[ $all == "Usage: $program "* ]] || say '--help-all does not start with Usage:'
    wide=$(awk 'length > 80' <<<"$help"$'\n'"$all")
    [ -z "$wide" ] || say "--help is wider than 80 columns: $wide"
    [ "$(wc -l <<<"$help")" -le 50 ] || say "--help has $(wc -l <<<"$help") lines"
    shown=$(grep -oE '^[* ] (-., |    )--(\[no-\])?[a-z-]+' <<<"$help" | sed -E 's/.*--(\[no-\])?//')
    listed=$(sed -n '/^Common options:/,$d; s/^[* ] \(-., \|    \)--\(\[no-\]\)\{0,1\}\([a-z-]*\).*/\3/p' <<<"$all")
    [ "$shown" = "$listed" ] || say "--help has other options than the program's own: $(diff <(echo "$shown") <(echo "$listed"))"
    [[ $("$path" --version) == "$program "[0-9]* ]] || say '--version is odd'
    grep -qF "\`$program\`" docs/README.md || say 'docs/README.md does not name it'
    names=$(sed -n 's/.*{"name": "\([^"]*\)".*/\1/p' <<<"$json")
    [ -n "$names" ] || say '--help-json lists no option'
    twice=$(sort <<<"$names" | uniq -d)
    [ -z "$twice" ] || say "options twice: $twice"
    letters=$(sed -n 's/.*"letter": "\(.\)".*/\1/p' <<<"$json" | sort | uniq -d)
    [ -z "$letters" ] || say "letters twice: $letters"
    for name in $names; do
        grep -qE -- "--(\[no-\])?$name( |\$)" <<<"$all" || say "--help-all lacks --$name"
        grep -qF -- "${name//-/\\-}\\fR" <<<"$man" || say "the man page lacks --$name"
    done
    case $program in kiln-compare | kiln-doctor | kiln-gc | kiln-generate | kiln-info | kiln-report | kiln-serve | kiln-verify) units=0 ;; *) units=1 ;; esac
    for name in devices device gpu vram sync; do
        [ $units = "$("$path" "--$name=" 2>&1 | grep -cv 'unknown option')" ] || say "--$name is $([ $units = 1 ] && echo 'not there' || echo there); what computes no units stands in a list in tests/unit/help.t"
    done
    sentence=$("$path" --no-such-option 2>&1 >/dev/null)
    code=$?
    [ $code -eq 2 ] || say "an unknown option ends with $code, not 2"
    [ "$(wc -l <<<"$sentence")" -eq 1 ] || say "an unknown option gets more than a sentence: $sentence"
    if [ -n "$lexgrog" ]; then
        "$path" --man >"$KILN_TMP/$program.1"
        lexgrog "$KILN_TMP/$program.1" >/dev/null || say 'man cannot find its NAME line'
    fi
done
exit $bad
