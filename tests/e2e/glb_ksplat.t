#!/bin/bash
# GLB and .ksplat: what is read back from them is what was baked, within half a step of each level; the bytes are the same for any
# threads, workers and --ram; what was read from them is written again as it was; --frame and the antialiased flag come back.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
scene s 9000 1 32x24
kiln import s b.db >/dev/null || fail 'import'
kiln knn b.db >/dev/null && kiln prune b.db >/dev/null && kiln chunk b.db --max 1500 >/dev/null || fail 'chunk'
must 0 kiln export b.db --order baked -o b.ply

for format in glb ksplat ksplat0 ksplat2; do
    suffix=${format%[0-9]}

    test_step "$format: the same bytes for any threads, workers and --ram" && (
        must 0 kiln export b.db --format $format -w -o one.$suffix --threads 1
        for how in '--threads 2' '--workers 3' '--ram 200M'; do
            # shellcheck disable=SC2086
            must 0 kiln export b.db --format $format -w -o other.$suffix $how
            cmp one.$suffix other.$suffix || fail "$format: other bytes with $how"
        done
    ); result

    test_step "$format: what is read is written again as it was" && (
        kiln import one.$suffix $format.db >/dev/null || fail "import of $format"
        must 0 kiln export $format.db --layer source -o $format.ply
        # from the file and back: the rows of the first trip
        must 0 kiln export $format.db --layer source --format $format -w -o again.$suffix
        kiln import again.$suffix again-$format.db >/dev/null || fail "import of $format again"
        [ "$(kiln verify $format.db --digest | grep '^layer source')" = \
            "$(kiln verify again-$format.db --digest | grep '^layer source')" ] ||
            fail "$format: what was read is written as something else"
    ); result
done

test_case 'values are within half a step of each level' && (
    py values || fail 'values'
); result

test_case '--report-loss draws from the file beside the bake' && (
    for format in glb ksplat0; do
        must 0 "$KILN_BIN/kiln-export" b.db --format $format --report-loss 1 -o loss.${format%[0-9]}
        grep -qE '[0-9] dB$| equal$' err out || fail "$format: no loss is told: $(cat err out)"
    done
); result

py far || fail 'far.ply'
kiln import far.ply far.db >/dev/null || fail 'import of far.ply'

test_case 'rows far away cost their neighbours their places, which is said' && (
    for format in ksplat ksplat2; do
        must 0 "$KILN_BIN/kiln-export" far.db --layer source --format $format -w -o far.ksplat
        grep -q ': 255 rows are rounded to position steps larger than themselves; .*--filter-box' err ||
            fail "$format with far rows: $(cat err)"
        must 0 "$KILN_BIN/kiln-export" far.db --layer source --format $format -w -o near.ksplat --filter-box=-,-,-,1,-,-
        ! grep -q 'steps larger' err || fail "$format without far rows: $(cat err)"
    done
); result

test_case 'compressed PLY with rows far away' && (
    must 0 "$KILN_BIN/kiln-export" far.db --layer source -o far.compressed.ply
    grep -q '[0-9] rows are rounded to position steps larger than themselves; .*--filter-box' err ||
        fail "compressed PLY with far rows: $(cat err)"
    must 0 "$KILN_BIN/kiln-export" far.db --layer source -o far.compressed.ply --filter-box=-,-,-,1,-,-
    ! grep -q 'steps larger' err || fail "compressed PLY without far rows: $(cat err)"
); result

test_case 'level 0 of .ksplat has no steps' && (
    must 0 "$KILN_BIN/kiln-export" far.db --layer source --format ksplat0 -w -o far.ksplat
    ! grep -q 'steps larger' err || fail "level 0 has no steps: $(cat err)"
); result

test_case 'axes as the PLY has them, both ways' && (
    must 0 kiln export b.db --frame as-is -o as-is.glb
    ! cmp -s as-is.glb one.glb || fail '--frame as-is changes nothing'
    kiln import as-is.glb as-is.db --frame as-is >/dev/null || fail 'import as-is'
    [ "$(kiln verify as-is.db --digest | grep '^layer source')" = "$(kiln verify glb.db --digest | grep '^layer source')" ] ||
        fail 'turned and turned back is not what was never turned'
); result

test_case 'the antialiased flag is read and written' && (
    py flag || fail 'extras'
    kiln import flag.glb flag.db >/dev/null || fail 'import of the flag'
    must 0 "$KILN_BIN/kiln-export" flag.db --layer source -o flag-again.glb
    grep -q 'antialiased' err || fail "nothing is said of the flag: $(cat err)"
    grep -aq '"extras":{"antialiased":true}' flag-again.glb || fail 'the flag is lost'
    ! grep -aq '"extras"' one.glb || fail 'a scene that is not antialiased has the flag'
    must 0 "$KILN_BIN/kiln-export" flag.db --layer source -o flag.ksplat
    grep -q 'antialiased' err || fail "nothing is said of the flag in .ksplat: $(cat err)"
); result
