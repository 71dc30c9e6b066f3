#!/bin/bash
# A folder goes for an export only if an export of ours wrote all that is in it: a file with a name of the format that another
# program wrote stays, and the refusal names it, with --force too. --overwrite takes the folder. Over an export of ours an export
# goes as before: of other rows, after one that was killed, with files missing; and nothing of the one before is left.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
scene s 3000 2 32x24
kiln import s b.db >/dev/null && kiln knn b.db >/dev/null && kiln chunk b.db --layer source --max 600 >/dev/null || fail 'chunk'
kiln lod b.db --levels 3 --coarsest 200 --visibility off >/dev/null || fail 'lod'

# foreign FORMAT FILE...: a folder with a FILE of somebody else is left alone
foreign() {
    local format=$1 file; shift
    for file in "$@"; do
        rm -rf other && mkdir -p "other/$(dirname "$file")" && echo mine >"other/$file"
        must 2 kiln export b.db --format "$format" -o other
        grep -q "holds '$file'\|/$file' exists" err && grep -q -- '--overwrite' err ||
            fail "$format: the refusal does not name $file: $(cat err)"
        must 2 kiln export b.db --format "$format" -o other --force
        [ "$(find other -type f -exec cat {} +)" = mine ] || fail "$format: $file is not as it was"
    done
    must 0 kiln export b.db --format "$format" -o other --overwrite
    diff -r other "whole-$format" >&2 || fail "$format: --overwrite is not the whole export"
}
for format in 3dtiles lod sog-folder chunks; do must 0 kiln export b.db --format $format -o whole-$format; done

test_case 'a file of somebody else stays: 3dtiles' && (
    foreign 3dtiles root_L0.glb 0_L1.glb tileset.json
); result

test_case 'a file of somebody else stays: lod' && (
    foreign lod 1_0/meta.json lod-meta.json
); result

test_case 'a file of somebody else stays: sog-folder' && (
    foreign sog-folder means_l.webp meta.json
); result

test_case 'a file of somebody else stays: chunks' && (
    foreign chunks index.json
); result

test_case 'what another program says of itself does not make it ours' && (
    rm -rf other && mkdir other &&
        echo '{"asset":{"version":"1.1","generator":"another"},"root":{"content":{"uri":"root_L0.glb"}}}' >other/tileset.json
    must 2 kiln export b.db --format 3dtiles -o other
    grep -q "holds 'tileset.json'" err || fail "a tileset of another program: $(cat err)"
); result

test_case 'a file of ours by name alone, in a folder of ours' && (
    cp -r whole-3dtiles other3 && echo mine >other3/7_L9.glb
    must 2 kiln export b.db --format 3dtiles -o other3
    grep -q "holds '7_L9.glb'" err && [ "$(cat other3/7_L9.glb)" = mine ] || fail "a tile that no tileset of ours names: $(cat err)"
    cp -r whole-lod otherl && mkdir otherl/9_9 && echo mine >otherl/9_9/meta.json
    must 2 kiln export b.db --format lod -o otherl
    grep -q "holds '9_9/meta.json'" err || fail "a file of levels that lod-meta.json does not name: $(cat err)"
); result

test_case 'over an export of ours nothing of the one before is left' && (
    rm -f whole-3dtiles/*_L1.glb
    mkdir "whole-3dtiles${LEFT}999999999" && echo half >"whole-3dtiles${LEFT}999999999/root_L0.glb"
    kiln import s few.db >/dev/null && kiln knn few.db >/dev/null && kiln chunk few.db --layer source >/dev/null &&
        kiln lod few.db --visibility off >/dev/null ||
        fail 'few'
    for format in 3dtiles lod sog-folder chunks; do
        must 0 kiln export few.db --format $format -w -o whole-$format
        must 0 kiln export few.db --format $format -o fresh-$format
        diff -r fresh-$format whole-$format >&2 || fail "$format: something of the export before is left"
    done
    [ ! -e "whole-3dtiles${LEFT}999999999" ] || fail 'what a killed export left is still there'
); result

test_case 'beside the bake a first file that is gone is written again, a changed one with -w alone' && (
    must 0 kiln export b.db --format 3dtiles,chunks
    rm export/3dtiles/tileset.json export/chunks/index.json
    must 0 kiln export b.db --format 3dtiles,chunks
    rm export/3dtiles/tileset.json && echo '{}' >export/chunks/index.json
    must 2 kiln export b.db --format 3dtiles,chunks
    [ "$(cat export/chunks/index.json)" = '{}' ] || fail 'an index that was changed is another one'
    must 0 kiln export b.db --format 3dtiles,chunks -w
    [ -s export/3dtiles/tileset.json ] && grep -q splatkiln-chunks export/chunks/index.json || fail 'not written again'
); result
