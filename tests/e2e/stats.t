#!/bin/bash
# kiln-stats: numbers of columns as Python counts them, what is not finite, any format, a layer, and pairs as kiln-tiles counts them.
. tests/e2e/lib.sh
root=$PWD
export PYTHONPATH=$root/tests/e2e PYTHONDONTWRITEBYTECODE=1
cd "$KILN_TMP" || exit 1
scene s 70000 2 96x64
ply=s/scene.ply
stats() { kiln stats "$@"; }
must 0 stats "$ply" --json
cp out whole

test_case 'numbers of columns are those that Python counts' && (
    py numbers "$ply" whole || fail 'numbers'
); result

for threads in 1 3; do
    test_case "the same numbers with --threads $threads" && (
        must 0 stats "$ply" --json --threads $threads
        py same_numbers out whole || fail "other numbers with $threads threads"
    ); result
done

test_case 'nothing is left beside the file, nor where it runs' && (
    mkdir empty && cd empty
    before=$(ls -A .. ../s)
    must 0 stats "../$ply" --json
    [ "$(ls -A .. ../s)" = "$before" ] && [ -z "$(ls -A)" ] || fail "something is left: $(ls -A . .. ../s)"
); result

test_case 'numbers that are not finite are counted, and in no histogram' && (
    cp "$ply" bad.ply
    edit_ply bad.ply x 3 'float("nan")'; edit_ply bad.ply scale_0 5 'float("inf")'; edit_ply bad.ply opacity 6 'float("-inf")'
    must 0 stats bad.ply --json
    py not_finite out || fail 'numbers that are not finite'
); result

test_case 'a column of one number shows no digits that rounding made' && (
    py even "$PWD" || fail even
    must 0 stats even.ply
    grep -q '^scale_0  *0.01  *0.01  *0.01  *0.01  *0.01 ' out || fail "$(cat out)"
); result

test_case 'far coordinates are told apart, of floats and of doubles' && (
    py far "$PWD" || fail far
    for what in float double; do
        must 0 stats far_$what.ply
        py table out || fail "the table of $what: $(cat out)"
        must 0 stats far_$what.ply --json
        py far_numbers out far_$what.ply || fail "the JSON of $what"
        cp out of_file
        must 0 "$KILN_BIN/kiln-import" far_$what.ply far_$what.db
        must 0 stats far_$what.db --json
        py same_columns out of_file || fail "the layer of $what"
    done
); result

test_case 'what is odd is explained' && (
    cp "$ply" odd.ply
    edit_ply odd.ply opacity 6 'float("inf")'
    must 0 stats odd.ply
    grep -q '^bad: values that are not finite' out && grep -q '^opacities of 0 and 1 have infinite logits' out || fail "$(cat out)"
    must 0 "$KILN_BIN/kiln-stats" "$ply"
    ! grep -q '^bad: \|^opacities of' out && ! grep -q warning err || fail "nothing is odd: $(cat out err)"
    scene one 1 1 16x16
    must 0 stats one/scene.ply
    grep -q '^fill ratio inf: the positions span no area' out || fail "$(cat out)"
    python3 "$root/tests/e2e/dialects.py" "$PWD" || fail dialects
    must 0 "$KILN_BIN/kiln-stats" activated.ply
    grep -q 'warning: the values look activated already' err || fail "$(cat err)"
); result

test_case 'another format' && (
    must 0 "$KILN_BIN/kiln" convert --quiet "$ply" x.spz
    must 0 stats x.spz
    grep -q '^x.spz: spz, 70000 Gaussians of SH degree 3$' out && grep -q '^scale_2 ' out && grep -q '^fill ratio' out || fail "$(cat out)"
); result

kiln import s s.db >/dev/null || fail import

test_case 'a layer has the numbers of its file' && (
    must 0 stats s.db --json
    py layer out whole || fail 'a layer has other numbers than its file'
); result

test_case 'pairs are those of kiln-tiles on the same cameras' && (
    for stage in knn prune chunk; do kiln $stage s.db >/dev/null || fail $stage; done
    must 0 kiln tiles s.db --predict --profile gsplat-1.5 --json; cp out tiles
    must 0 stats s.db --layer baked --pairs own --json; cp out of_layer
    must 0 stats "$ply" --cameras s/cameras.json --pairs own --json
    py pairs tiles of_layer out || fail 'other pairs than kiln-tiles counts'
); result

test_case 'pairs of a sound scene' && (
    must 0 stats "$ply" --pairs 512x512
    grep -q '^inner_7 ' out && grep -q "^gsplat-1.5 lists [0-9]* pairs in 'inner_[0-7]' at 512 x 512" out || fail "$(cat out)"
    grep -q '^the average Gaussian covers 0.[0-9]* % of that picture, as in sound scenes$' out || fail "a sound scene: $(cat out)"
); result

test_case 'without cameras, pairs are those of the cameras that import places' && (
    kiln generate demo d --gaussians 150000 --cameras 1 --size 64x48 >/dev/null && cp d/scene.ply sky.ply || fail generate
    cp "$ply" object.ply
    while read -r file options; do
        rm -f own.db*
        # shellcheck disable=SC2086
        must 0 "$KILN_BIN/kiln-import" "$file" own.db $options
        grep -c 'within a sky' err >said || true
        must 0 stats own.db --pairs own --json; cp out of_manifest
        # shellcheck disable=SC2086
        must 0 "$KILN_BIN/kiln-stats" "$file" --pairs own --json $options
        [ "$(grep -c 'within a sky' err)" = "$(cat said)" ] || fail "$file $options: $(cat err)"
        py same_pairs out of_manifest || fail "other pairs of $file $options"
    done <<'END'
sky.ply
sky.ply --orbit-at outside
object.ply
object.ply --orbit-at inside --up z
END
    for bad in --orbit-at=outside --up=z; do
        for what in sky.ply "$ply --cameras s/cameras.json --pairs own" 'own.db --pairs own'; do
            # shellcheck disable=SC2086
            must 2 stats $what $bad
            grep -q -- "${bad%%=*} is for" err || fail "$what $bad: $(cat err)"
        done
    done
); result

test_case 'pairs of a scene of exploded scales' && (
    scene exploded 2000 1 16x16 --explode 400 --explode-by 6
    must 0 stats exploded/scene.ply --pairs 512x512 --profile gsplat-1.5
    grep -q '^the average Gaussian covers [1-9][0-9.]* % of that picture, as exploded scales do' out || fail "exploded scales: $(cat out)"
); result

test_case 'what does not fit has its exit code' && (
    for size in 512 -4294967295x5 5x-4294967295 +5x5 ' 5x5' 5x 0x5 5x5x5 4294967297x5 1048577x1; do
        must 2 stats "$ply" --pairs="$size"
        grep -q 'pairs takes a size such as 512x512' err || fail "$size: $(cat err)"
    done
    must 2 stats "$ply" --cameras s/cameras.json
    must 3 stats none.ply
    must 3 stats s/cameras.json
); result

test_case "README's words about exploded scales are what is printed" && (
    must 0 kiln generate scene readme -n 20000 -c 1 --explode 200 --explode-by 8
    must 0 stats readme/scene.ply --pairs 512x512 --profile gsplat-1.5
    tr -s ' \n' ' ' <"$E2E/../../README.md" | grep -oE '"(gsplat takes|the average Gaussian)[^"]*"' | tr -d '"' >words
    [ "$(wc -l <words)" = 2 ] || fail "README says: $(cat words)"
    while read -r line; do grep -qF "$line" out || fail "not '$line': $(tail -n 2 out)"; done <words
    must 0 kiln generate scene sound -n 20000 -c 1
    must 0 stats sound/scene.ply --pairs 512x512 --profile gsplat-1.5
    grep -q ' 9.[5-9] MiB for them' out || fail "a sound one: $(tail -n 2 out)"
); result
