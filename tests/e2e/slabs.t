#!/usr/bin/env bash
# starts first
# A camera whose Gaussians do not fit into --ram is drawn in slabs of depth: the pictures and digests of one pass, within the cap,
# and said so; a cap that is too small for slabs names the least that is not.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
scene s 200000 2 320x200
kiln import s base.db >/dev/null && kiln knn base.db >/dev/null && kiln prune base.db >/dev/null || fail "bake"
kiln chunk base.db --max 16000 >/dev/null || fail "chunk"

# render DB options: the record in DB.json, pictures in DB.d
render() {
    local db=$1; shift
    mkdir -p "$db.d" && mv "$db" "$db.d/scene.db" || fail "move"
    (cd "$db.d" && "$KILN_BIN/kiln-render" scene.db --devices cpu --threads 1 --depth --json "$@" >../"$db.json" 2>../err) ||
        { cat err >&2; fail "render of $db"; }
}
# of the views: SLABS of each, 0 for none
slabs() { python3 -c 'import json, sys; print(*[v.get("slabs", 0) for v in json.load(open(sys.argv[1]))["views"]])' "$1.json"; }
number() { python3 -c 'import json, sys; print(json.load(open(sys.argv[2]))[sys.argv[1]])' "$1" "$2"; }

test_step 'with all memory there are no slabs' && (
    cp base.db free.db
    render free.db
    [ "$(slabs free.db)" = "0 0" ] || fail "slabs with all memory: $(slabs free.db)"
    ! grep -q 'slabs' err || fail "slabs are told where there are none: $(cat err)"
); result

for mib in 66; do
    test_case "with $mib MiB: slabs, and the pictures of one pass" && (
        cp base.db "capped$mib.db"
        render "capped$mib.db" --ram "${mib}M"
        read -r one two < <(slabs "capped$mib.db")
        ((one > 1 && two > 1)) || fail "with $mib MiB $one and $two slabs"
        grep -q 'of 2 of 2 pictures did not fit into memory at once' err || fail "it is not told: $(cat err)"
        [ "$(number ram_peak_bytes "capped$mib.db.json")" -le $((mib << 20)) ] || fail "more than $mib MiB were taken"
        same free.db.d/scene.db "capped$mib.db.d/scene.db"
        diff -r -x 'scene.db*' free.db.d "capped$mib.db.d" || fail "pictures differ"
    ); result
done

test_case "with --force the report is of this run's drawing" && (
    cp -r free.db.d again.db.d && mv again.db.d/scene.db again.db
    render again.db --ram 66M --force
    read -r one two < <(slabs again.db)
    ((one > 1 && two > 1)) || fail "forced with 66 MiB $one and $two slabs are told"
    [ "$(number frames_drawn again.db.json)" = 2 ] || fail "forced, $(number frames_drawn again.db.json) pictures were drawn"
    grep -q 'of 2 of 2 pictures did not fit into memory at once' err || fail "forced, it is not told: $(cat err)"
    same free.db.d/scene.db again.db.d/scene.db
); result

test_case 'a cap that is too small for slabs names the least that is not' && (
    cp base.db small.db
    must 5 kiln render small.db --devices cpu --threads 1 --depth --ram 50M
    mib=$(sed -n 's/.*the least that works is --ram \([0-9]*\)M$/\1/p' err)
    [ -n "$mib" ] || fail "the least that works is not told: $(cat err)"
    ((mib < 66)) || fail "the least that works is not that of slabs, $mib MiB"
    render small.db --ram "${mib}M"
    same free.db.d/scene.db small.db.d/scene.db
); result
