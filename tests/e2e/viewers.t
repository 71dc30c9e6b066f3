#!/bin/bash
# What kiln-export writes looks right in web viewers, and other programs read it: the part of tests/viewers that --quick names. A case
# of that part is a case here. All that are wanted are opened by one run, because a browser takes seconds to start.
# starts first
# time-limit: 1800
. tests/cases.sh
said=$(mktemp); at_exit 'rm -f "$said"'
quick=$(sed -n '/^export const quick = \[/,/^\];/p' tests/viewers/cases.mjs | grep -o "'[^']*'" | tr -d "'")
[ -n "$quick" ] || fail 'tests/viewers/cases.mjs has no quick cases'
wanted=$(while read -r name; do ! case_is_wanted "$name" || echo "$name"; done <<<"$quick")
[ -n "$wanted" ] || exit 0
# The run takes words that all of its names must have: the name itself, if one case alone is wanted.
words=()
[ "$(wc -l <<<"$wanted")" != 1 ] || words=("$wanted")
O=${KILN_BIN%/bin} tests/viewers/run --quick "${words[@]}" >"$said" && status=0 || status=$?
cat "$said"
[ $status != 77 ] || skip "$(sed -n '$s/^SKIP: //p' "$said")"

# verdict NAME: ok, FAIL or skip, and the reason, as run.mjs prints it
verdict() {
    awk -v name="$1" 'substr($0, 6, length(name)) == name && substr($0, 6 + length(name)) ~ /^( |$)/ {
        print $1, substr($0, 6 + length(name)) }' "$said"
}
while read -r name; do
    test_case "$name" && (
        line=$(verdict "$name")
        case $line in
        ok*) ;;
        skip*) skip "${line#skip }" ;;
        *) fail "${line:-it was not tried}" ;;
        esac
    ); result
done <<<"$quick"
# It ends badly without a failed case, too: a browser that does not start.
[ $status = 0 ] || grep -q '^FAIL ' "$said" || fail "tests/viewers/run ends with $status"
