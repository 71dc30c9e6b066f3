#!/usr/bin/env bash
# kiln-chunk over several hosts: the plan leaves order and scatter in a folder that the tasks read and never change. What is damaged
# there, lost, or made for other options ends a task with an error, not with wrong chunks, and the gather makes it again.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
said() { grep -q -- "$1" err || { cat err >&2; fail "it does not say '$1'"; }; }
left() { ! ls -d "$1".scratch "$1".claim 2>/dev/null || fail "left beside $1"; }
cut="--layer source --max 4000"
scene s 70000 1 64x64 # two blocks
kiln import s base.db >/dev/null && kiln knn base.db >/dev/null || fail "bake"
cp base.db one.db
kiln chunk one.db $cut >/dev/null || fail "chunk"

cp base.db m.db

test_case 'without a plan of these options nothing is made' && (
    must 4 kiln chunk m.db $cut --gather parts
    must 4 kiln chunk m.db $cut --shard 1/3 --part parts
    left m.db
); result

test_step "the plan's folder is read by the tasks and never changed" && (
    mkdir node all
    must 0 kiln chunk m.db $cut --plan --tasks 3 --ram 100M --scratch-dir node
    [ -z "$(ls node)" ] || fail "the plan has used the scratch of its node"
    cp -r m.db.scratch kept
    [ "$(ls kept/chunk-*/group-* | wc -l)" = 2 ] || fail "the plan has scattered $(ls kept/chunk-*)"
    must 0 kiln chunk m.db $cut --plan
    must 4 kiln chunk m.db $cut --min 7 --gather parts
    must 4 kiln chunk m.db --layer source --max 9000 --shard 1/3 --part parts
    for i in 1 2 3; do must 0 kiln chunk m.db $cut --shard $i/3 --part parts --scratch-dir node; done
    [ -z "$(ls node)" ] || fail "a task has left $(ls node)"
    diff -r kept m.db.scratch || fail "the plan's folder was changed"
); result

# a torn file, a flipped byte: an error each; the file stays, because others may see it whole. tell FILE WORDS
folder=$(echo m.db.scratch/chunk-*)
groups=("$folder"/group-*)
tell() {
    rm -f parts/*-1-of-3.part
    must 74 kiln chunk m.db $cut --shard 1/3 --part parts
    said "$2" && said "the data that the plan left"
    [ -e "$1" ] || fail "a task has removed $1"
    ls parts | grep -- -1-of-3 && fail "a task that failed left a part"
    cp "kept/${1#*/}" "$1"
}
flip() {
    dd if="$1" bs=1 skip="$2" count=1 status=none | tr '\000-\377' '\001-\377\000' |
        dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

test_case 'a torn file of the plan' && (
    truncate -s -1 "${groups[0]}"
    tell "${groups[0]}" "is incomplete"
); result

test_case 'a flipped byte in the rows of the plan' && (
    flip "$folder/rows" 40
    tell "$folder/rows" "not those of the plan"
); result

test_case 'a flipped byte in the groups of the plan' && (
    flip "${groups[0]}" 4000 # a row of one of the first chunks
    tell "${groups[0]}" "damaged"
); result

test_case 'the gather makes what is lost of the folder' && (
    rm "${groups[0]}" "$folder/places"
    must 7 kiln chunk m.db $cut --gather parts --no-compute
    ! [ -e "${groups[0]}" ] || fail "a gather that computes nothing has scattered"
    must 0 kiln chunk m.db $cut --gather parts --remove-parts
    same one.db m.db
    left m.db
); result

test_case '--shared-dir: another folder that all see' && (
    cp base.db n.db
    must 0 kiln chunk n.db $cut --plan --shared-dir all
    ! [ -e n.db.scratch ] || fail "the plan has not used --shared-dir"
    must 4 kiln chunk n.db $cut --shard 1/2 --part parts
    must 4 kiln chunk n.db $cut --gather parts
    said "--shared-dir"
    ! [ -e n.db.scratch ] || fail "a gather without --shared-dir has made its own folder"
    must 0 kiln chunk n.db $cut --shard 1/2 --part parts --shared-dir all
    must 0 kiln chunk n.db $cut --gather parts --shared-dir all
    same one.db n.db
    [ -z "$(ls all)" ] || fail "left in --shared-dir: $(ls all)"
    left n.db
); result

test_case 'a plan that is given up leaves nothing' && (
    cp base.db o.db
    must 0 kiln chunk o.db $cut --plan
    must 2 kiln chunk o.db --shared-dir missing
    must 0 kiln tiles o.db --break-claim # of another stage
    ! [ -e o.db.scratch ] || fail "--break-claim left the folder of the plan"
); result
