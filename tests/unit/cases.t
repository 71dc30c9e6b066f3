#!/usr/bin/env bash
# tests/cases.sh: what fails a case, what of it the others see, and which cases are selected.
. tests/cases.sh
root=$PWD
# script NAME: a script of cases, from stdin
script() { { echo ". '$root/tests/cases.sh'"; cat; } >"$KILN_TMP/$1.t"; }
# gives WANT SCRIPT [PATTERN]: its lines of TAP, then its exit code
gives() {
    local got
    got=$(KILN_TEST=${3:-} bash "$KILN_TMP/$2.t" 2>"$KILN_TMP/err"; echo "exit $?")
    [ "$(grep -E '^(ok|not ok|exit) ' <<<"$got")" = "$1" ] || fail "$2 gives: $got $(cat "$KILN_TMP/err")"
}
says() { grep -qE -- "$1" "$KILN_TMP/err" || fail "stderr lacks '$1': $(cat "$KILN_TMP/err")"; }

script several <<'END'
shared=$(mktemp -d); at_exit 'rm -r "$shared"; echo "exit of all" >&2'
test_case 'one that holds' && (
    quietly() { false; true; }
    quietly
    ! grep -q x /dev/null || fail never
); result
test_case 'one that fails' && (
    [ 1 = 2 ] || fail 'a sentence'
    echo 'ok 9 - not reached'
); result
test_step 'a step' && (
    touch "$shared/file"
); result
test_case 'a command that nobody asks' && (
    grep -q x /dev/null
    true
); result
test_case 'one behind the step' && (
    [ -e "$shared/file" ] || fail 'the step was not run'
); result
test_case 'one that is skipped' && (
    skip 'there is no moon'
); result
END
all='ok 1 - one that holds
not ok 2 - one that fails
ok 3 - a step
not ok 4 - a command that nobody asks
ok 5 - one behind the step
ok 6 - one that is skipped # SKIP there is no moon
exit 1'

test_case 'a failure fails its case alone' && (
    gives "$all" several
    says 'several.t:9: a sentence$'
    says 'several.t:16: status 1: grep -q x /dev/null$'
    says '^exit of all$'
); result

test_case 'a case that is selected, and the steps before it' && (
    gives $'ok 1 - one behind the step\nexit 0' several '*behind*'
    gives $'not ok 1 - one that fails\nexit 1' several 'one that fails'
    gives $'ok 1 - a step\nexit 0' several 'a step'
    gives 'exit 0' several 'none of them'
); result

test_case 'what stands outside of cases fails the file' && (
    script outside <<'END'
test_case 'first' && (
    true
); result
fail 'the setup'
test_case 'second' && (
    true
); result
END
    gives $'ok 1 - first\nnot ok 2 - what stands outside of the cases\nexit 1' outside
    says 'outside.t:5: the setup$'
); result

test_case 'a skip outside of cases skips what follows' && (
    script rest <<'END'
test_case 'first' && (
    true
); result
skip 'no ship'
END
    gives $'ok 1 - first\nok 2 - what follows # SKIP no ship\nexit 0' rest
    script none <<<"skip 'no sea'"
    gives 'exit 77' none
); result

test_case 'a case without its end, and two of one name' && (
    script open <<'END'
test_case 'first' && (
    true
)
test_case 'second' && (
    true
); result
END
    gives 'exit 1' open
    says "'first' ends without"
    script twice <<'END'
for i in 1 2; do test_case 'same' && (true); result; done
END
    gives $'ok 1 - same\nnot ok 2 - what stands outside of the cases\nexit 1' twice
    says "two cases are named 'same'"
); result

# runs STATUS SUMMARY NAME [WORD]: tests/run over a tree of tests of its own
runs() {
    local got
    CASE=${4:-} O=$KILN_TMP/o "$KILN_TMP/tests/run" "$3" >"$KILN_TMP/out" 2>"$KILN_TMP/err" && got=0 || got=$?
    [ "$got $(tail -n 1 "$KILN_TMP/out")" = "$1 $2" ] || fail "$3 '${4:-}' gives $got: $(cat "$KILN_TMP/out" "$KILN_TMP/err")"
}
mkdir -p "$KILN_TMP/tests/unit"
cp tests/run tests/cases.sh "$KILN_TMP/tests"
for name in two skipped; do
    { echo '#!/usr/bin/env bash'; echo '. tests/cases.sh'; [ $name = two ] || echo "skip 'no ship'"
        for n in first second; do printf "test_case 'the %s' && (\n    true\n); result\n" "$n"; done; } >"$KILN_TMP/tests/unit/$name.t"
    chmod +x "$KILN_TMP/tests/unit/$name.t"
done

test_case 'tests/run: a word that no case has is named, and fails' && (
    runs 0 '2 passed, 0 failed' unit/two
    runs 0 '1 passed, 0 failed' unit/two second
    runs 1 '0 passed, 0 failed' unit/two third
    says "no case of these tests has 'third' in its name"
    runs 1 '0 passed, 0 failed' 'unit/two:the third'
    says 'no test or case has such a name: unit/two:the third'
); result

test_case 'tests/run: of a file that is skipped whole, too' && (
    runs 0 '0 passed, 0 failed, 1 skipped' unit/skipped second
    runs 1 '0 passed, 0 failed' unit/skipped third
    says "no case of these tests has 'third' in its name"
    runs 0 '1 passed, 0 failed, 1 skipped' unit second
    runs 1 '0 passed, 0 failed' unit third
); result

test_case 'tests/run: what killed runs have left is removed, and nothing else' && (
    export KILN_TEST_SCRATCH=$KILN_TMP/scratch
    mkdir -p "$KILN_TEST_SCRATCH"/kiln-run.{killed,failed,atwork}/inner
    touch "$KILN_TEST_SCRATCH"/kiln-run.{killed.out,failed/output,atwork.out}
    exec {lock}<"$KILN_TEST_SCRATCH/kiln-run.atwork"
    flock -n "$lock"
    runs 0 '2 passed, 0 failed' unit/two
    [ "$(ls "$KILN_TEST_SCRATCH" | xargs)" = 'kiln-run.atwork kiln-run.atwork.out kiln-run.failed' ] ||
        fail "$(ls "$KILN_TEST_SCRATCH")"
); result
