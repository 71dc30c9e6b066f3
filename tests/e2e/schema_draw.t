#!/bin/bash
# schema/SCHEMA.md is enough to draw a bake: pictures that schema_draw.py makes from the page alone are kiln-render's, in each profile,
# classic and antialiased, with a principal point beside the middle. Each number of the page is seen to matter.
. tests/e2e/lib.sh
needs_numpy
db=$KILN_TMP/b/manifest.db
scene "$KILN_TMP/s" 400 2 96x64
sed -i 's/"cx": 48, "cy": 32/"cx": 40, "cy": 35/; s/67\.1[0-9]*/40/g' "$KILN_TMP/s/cameras.json"
grep -q '"fx": 40, "fy": 40, "cx": 40, "cy": 35' "$KILN_TMP/s/cameras.json" || fail "cameras.json is another"
python3 tests/e2e/schema_draw.py --scene "$KILN_TMP/s/scene.ply" || fail "no scene"
kiln import "$KILN_TMP/s" "$db" >/dev/null && kiln knn "$db" >/dev/null && kiln prune "$db" >/dev/null &&
    kiln chunk "$db" --max 128 >/dev/null || fail "bake"
for profile in inria gsplat-1.5 gsplat-1.6; do
    for antialiased in 0 1; do
        on=off vary=
        [ $antialiased = 0 ] || on=on
        [ "$profile$antialiased" != inria1 ] && [ "$profile$antialiased" != gsplat-1.61 ] || vary=--vary
        test_case "the page alone draws $profile, antialiased $on${vary:+, and each number matters}" && (
            kiln render "$db" --profile $profile --antialiased $on --camera cam0 --devices cpu --background black \
                -w -o "$KILN_TMP/p.npy" >/dev/null || fail "render"
            python3 tests/e2e/schema_draw.py $vary "$db" cam0 "$KILN_TMP/p.npy" $profile $antialiased || fail "see above"
        ); result
    done
done
