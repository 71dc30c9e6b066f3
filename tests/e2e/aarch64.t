#!/bin/bash
# Kernels for aarch64 under emulation, where tests/soak/arm.t has made a sysroot: a few unit tests, of those whose arithmetic has
# constants from x86-64 or is compared with it, and which take seconds under emulation. soak/arm.t compares whole bakes.
. tests/e2e/lib.sh
. tests/soak/aarch64.sh
aarch64_needs_tools
[ -e "$aarch64_root" ] && [ -e "$aarch64_bin" ] || skip "no $aarch64: make soak-arm makes one"
tests='backward bounds codec knn_select'

test_step 'they compile' && (
    build=$aarch64/build
    objects=$(for t in $tests; do echo "$build/tests/unit/${t}_test.c.o"; done)
    # shellcheck disable=SC2086 # names are words
    aarch64_make -j"$(nproc)" $objects "$build/tests/filter.c.o" "$build/libsplatkiln.a"
    for t in $tests; do
        "$aarch64_cc" --sysroot="$aarch64_root" -fopenmp "$build/tests/unit/${t}_test.c.o" "$build/tests/filter.c.o" "$build/libsplatkiln.a" \
            -lcmocka -lsqlite3 -lzstd -lxxhash -lm -o "$KILN_TMP/$t" || fail "$t"
    done
); result

for t in $tests; do
    test_case "$t" && (
        must 0 emulated "$KILN_TMP/$t"
        grep -q '^ok 1\|\[  PASSED  \]' "$KILN_TMP/out" "$KILN_TMP/err" || fail "no test ran"
    ); result
done
