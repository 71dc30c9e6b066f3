#!/bin/bash
# kiln convert, where OUT may not go: a file or folder that the inputs are read from, by whatever name; and what is left of a run
# whose reader goes away, whose disk is full or which is told to end.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
export TMPDIR=$KILN_TMP/tmp
mkdir "$TMPDIR"
convert() { "$KILN_BIN/kiln" convert --quiet "$@"; }
scene s 3000 1 48x32
A=s/scene.ply
sums() { find "$1" -type f -exec sha256sum {} + | sort; }
# xattr FILE: it is made, and takes an extended attribute
xattr() { python3 -c 'import os, sys; open(sys.argv[1], "w"); os.setxattr(sys.argv[1], "user.x", b"1")' "$1" 2>/dev/null; }
# spared FOLDER arguments...: refused as an input, with -w and without, and the folder is as it was
spared() {
    local folder=$1 before; shift
    before=$(sums "$folder")
    for w in '' -w; do
        must 2 convert $w "$@"
        grep -q 'an input; choose another place' err || fail "$w $*: $(cat err)"
        [ "$(sums "$folder")" = "$before" ] || fail "$w $*: $folder has changed"
    done
}

test_case 'a folder that holds the input' && (
    must 0 convert -f sog-folder $A f1
    spared f1 -f sog-folder --filter-value x,gt,0 f1/meta.json f1
    spared f1 -f sog-folder --filter-value x,gt,0 f1 f1
    spared f1 -f sog-folder --filter-value x,gt,0 f1 f1/
    ln -s f1 link
    spared f1 -f sog-folder f1/meta.json link
    spared f1 -f sog-folder link "$PWD/f1"
    spared f1 -f sog-folder $A f1/meta.json f1
    spared f1 -f sog-folder $A 'f1/meta.json;translate=1,2,3' f1
    ln f1/means_l.webp hard.splat
    spared f1 f1/meta.json hard.splat
    spared f1 -f chunks f1/meta.json f1
); result

test_case 'a file of the folder that is read' && (
    mkdir d p
    must 0 convert $A d/scene.ply
    spared d --filter-value x,gt,0 -f ply d d/scene.ply
    echo mine >d/there.spz # of which nobody knows
    spared d d d/there.spz
    cp $A p/a.ply
    cp $A p/b.ply
    spared p --parts p p/b.ply
    ln p/b.ply hl.ply
    ln -s p/b.ply sl.ply
    spared p --parts p hl.ply
    spared p --parts p sl.ply
    spared p $A 'p/b.ply;translate=1,0,0' hl.ply
    [ -z "$(find . -maxdepth 2 -name '*.tmp.*')" ] || fail "left: $(find . -maxdepth 2 -name '*.tmp.*')"
); result

# kept FILE arguments...: refused without -w with these words, which `says` has, and the file is as it was
kept() {
    local file=$1 before; shift
    before=$(sha256sum <"$file")
    must 2 convert "$@"
    grep -qF -- "$says" err || fail "$*: $(cat err)"
    [ "$(sha256sum <"$file")" = "$before" ] || fail "$*: '$file' has changed"
}

test_case 'an OUT that is there is replaced with -w alone, whoever wrote it' && (
    mkdir there
    must 0 convert $A there/k.ply --sh-degree 1
    for suffix in ply sog spz html; do must 0 convert $A -w there/k.$suffix --sh-degree 1; done
    must 0 "$KILN_BIN/kiln" pipeline there/k.ply --quiet --devices cpu # it is the source of a bake now
    says="exists already; choose another place, or replace it with -w"
    for suffix in ply sog spz html; do
        kept there/k.$suffix $A there/k.$suffix
        kept there/k.$suffix $A there/k.$suffix --sh-degree 1
    done
    kept there/k.ply $A there/k.ply --count 100 # by way of a bake
    must 0 convert $A -f sog-folder there/folder
    kept there/folder/meta.json $A -f sog-folder there/folder --sh-degree 0
    must 0 convert $A -f chunks there/chunks
    kept there/chunks/index.json $A -f chunks there/chunks
    must 0 convert -w $A -f sog-folder there/folder --sh-degree 0
    must 0 convert -w $A there/k.ply
    cmp $A there/k.ply || fail 'it was not replaced'
); result

test_case 'of cameras nothing is said where none is written' && (
    mkdir chair
    cp $A chair/chair.ply
    echo '[]' >chair/cameras.json
    must 0 "$KILN_BIN/kiln" convert chair/chair.ply few.spz --percent 20
    grep -q 'levels of detail' err || fail "$(cat err)"
    ! grep -q 'no cameras found\|lies beside\|orbit' err || fail "$(cat err)"
    must 0 "$KILN_BIN/kiln" convert chair/chair.ply few.html
    grep -q "'chair/cameras.json' lies beside " err && grep -q "'chair' instead of the file$" err || fail "$(cat err)"
); result

test_case 'a folder with files of others: -w is not advised, as it is refused, too' && (
    mkdir notes
    echo mine >notes/notes.txt
    for w in '' -w; do
        # shellcheck disable=SC2086
        must 2 convert $w $A -f sog-folder notes
        grep -q "holds 'notes.txt', which this format does not write; name another folder$" err || fail "$w: $(cat err)"
    done
    [ "$(ls -A notes)" = notes.txt ] || fail "$(ls -A notes)"
); result

test_case 'of two conversions into one folder the second to end replaces nothing' && (
    must 0 "$KILN_BIN/kiln-generate" --quiet scene two -n 100000 -c 1 -s 16x16
    "$KILN_BIN/kiln" convert --quiet two/scene.ply -f sog-folder both 2>err.first & first=$!
    stop_once_begun $first both
    must 0 convert $A -f sog-folder both
    before=$(sums both)
    kill -CONT $first
    got=0; wait $first || got=$?
    [ $got = 2 ] && grep -q "both' was made or changed by another program during this run" err.first || fail "$got $(cat err.first)"
    [ "$(sums both)" = "$before" ] && [ -z "$(find . -maxdepth 1 -name 'both.tmp.*')" ] || fail "$(ls -A . both)"
); result

# comes_meanwhile OUT arguments...: another conversion writes OUT while a bake is made for this one
comes_meanwhile() {
    local out=$1 run got before; shift
    "$KILN_BIN/kiln" convert --quiet two/scene.ply "$out" "$@" 2>err.first & run=$!
    for _ in $(seq 2000); do [ -z "$(find . -maxdepth 2 -path "./$out.tmp.*/manifest.db")" ] || break; sleep 0.01; done
    kill -STOP $run
    [ ! -e "$out" ] || fail "$out: it had ended"
    must 0 convert $A "$out" "$@"
    before=$(sums "$out")
    kill -CONT $run
    got=0; wait $run || got=$?
    [ $got = 2 ] && grep -q "$out.*' exists already\|$out' was made or changed by another program" err.first ||
        fail "$out: $got $(cat err.first)"
    [ "$(sums "$out")" = "$before" ] && [ -z "$(find . -maxdepth 1 -name "$out.tmp.*")" ] || fail "$out: $(ls -A . "$out")"
}

test_case 'what comes to OUT while a bake is made for it stays' && (
    [ -e two/scene.ply ] || must 0 "$KILN_BIN/kiln-generate" --quiet scene two -n 100000 -c 1 -s 16x16
    comes_meanwhile page.html
    comes_meanwhile few.sog --count 100
    comes_meanwhile few -f sog-folder --count 100
    comes_meanwhile arrays -f chunks
); result

test_case 'of two conversions into one folder of chunks the second to end leaves nothing there' && (
    must 0 "$KILN_BIN/kiln-generate" --quiet scene three -n 300000 -c 1 -s 16x16
    must 0 convert $A -f chunks alone
    "$KILN_BIN/kiln" convert --quiet three/scene.ply -f chunks shared 2>err.first & first=$!
    for _ in $(seq 4000); do [ ! -e shared/index.json.unfinished ] || break; sleep 0.005; done
    kill -STOP $first
    [ -e shared/index.json.unfinished ] && [ ! -e shared/index.json ] || fail "it had ended: $(cat err.first)"
    must 0 convert $A -f chunks shared
    kill -CONT $first
    got=0; wait $first || got=$?
    [ $got = 2 ] && grep -q "index.json' was made or changed by another program during this run" err.first ||
        fail "$got $(cat err.first)"
    [ "$(cd shared && sums .)" = "$(cd alone && sums .)" ] || fail "$(ls -A shared)"
); result

test_case 'an OUT that is the folder of a scene is refused with the name of a file' && (
    mkdir tower photos bare
    cp $A tower/scene.ply
    cp $A bare/other.ply
    mkdir photos/images
    cp $A guitar.ply
    must 0 convert guitar.ply guitar.compressed.ply
    for folder in tower bare photos s; do
        for w in '' -w; do
            before=$(sums $folder)
            # shellcheck disable=SC2086
            must 2 convert $w guitar.compressed.ply $folder
            grep -q "the folder '$folder' holds a scene ('.*'); name the file .*, such as '$folder/guitar.ply'" err || fail "$(cat err)"
            must 2 convert guitar.ply $folder/ -f html
            grep -q "such as '$folder/guitar.html'" err || fail "$(cat err)"
            must 2 convert guitar.ply $folder -f chunks
            grep -q "such as '$folder/chunks'" err || fail "$(cat err)"
            [ "$(sums $folder)" = "$before" ] || fail "$folder has changed"
        done
    done
    must 0 convert guitar.compressed.ply tower/guitar.ply # which it says
); result

test_case 'in a folder a file has the name of the first input' && (
    must 0 convert -w $A guitar.compressed.ply
    gzip -c $A >packed.ply.gz
    mkdir -p scenes/v1.2 to
    cp $A scenes/v1.2/scene.ply
    must 0 convert guitar.compressed.ply to
    must 0 convert guitar.compressed.ply to -f spz4
    must 0 convert packed.ply.gz guitar.compressed.ply to/ -f html
    must 0 convert scenes/v1.2/ to -f spz
    (cd scenes/v1.2 && must 0 convert . ../../to -f sog) || exit 1
    must 0 convert - to -f csv <$A
    must 0 convert - newly/made/ <$A
    [ "$(ls to)" = "$(printf '%s\n' guitar.ply guitar.v4.spz packed.html scene.csv v1.2.sog v1.2.spz)" ] || fail "$(ls to)"
    [ "$(ls newly/made)" = scene.ply ] || fail "$(ls newly/made)"
    must 2 convert guitar.compressed.ply to
    grep -q "to/guitar.ply' exists already" err || fail "$(cat err)"
); result

test_case 'what is new in a folder that is read is allowed, and is no input' && (
    mkdir n q
    must 0 convert $A n/scene.ply
    (cd n && must 0 convert . x.spz) || exit 1
    must 0 convert n/scene.ply same.spz
    cmp same.spz n/x.spz || fail 'another scene was read'
    must 0 convert n n/new/deep.spz
    must 0 convert n -f sog-folder n/sog
    must 0 convert n n/page.html
    cp $A q/a.ply
    cp $A q/b.ply
    must 0 convert --parts q q/one.ply
    must 0 convert q/a.ply q/b.ply joined.ply
    cmp joined.ply q/one.ply || fail '--parts joined something else'
    must 2 convert --parts q q/one.ply # which is one of the parts now
    grep -q 'an input; choose' err || fail "$(cat err)"
    must 0 convert --parts q q/page.html
    [ -z "$(find . -maxdepth 3 -name '*.tmp.*')" ] || fail "left: $(find . -maxdepth 3 -name '*.tmp.*')"
); result

test_case 'an OUT of before is replaced by -w, and is no input of the folder that it lies in' && (
    xattr a || skip 'this file system has no extended attributes'
    mkdir again parts
    cp $A again/scene.ply
    (cd again && must 0 convert . x.spz) || exit 1
    cp again/x.spz first.spz
    must 2 convert again again/x.spz
    must 0 "$KILN_BIN/kiln" convert -w again again/x.spz
    grep -q "x.spz' is of an earlier run and is replaced, so it is no input" err || fail "$(cat err)"
    cmp first.spz again/x.spz || fail 'another scene was read'
    cp $A parts/a.ply
    cp $A parts/b.ply
    must 0 convert --parts parts parts/one.ply
    cp parts/one.ply first.ply
    must 0 convert -w --parts parts parts/one.ply
    cmp first.ply parts/one.ply || fail 'the OUT of before is one of the parts'
    touch again/x.spz # it was changed, as far as its note tells
    spared again again again/x.spz
    cp $A again/x.spz
    spared again again again/x.spz
    ln again/scene.ply again/link.ply # the input by another name
    spared again again again/link.ply
); result

test_case 'folders above an OUT that failed are taken away again' && (
    mkdir -p keep/empty
    printf 'ply\n' >broken.ply
    for out in made/in/x.spz keep/made/x.spz keep/empty/x.spz keep//more//x.html keep/sog/; do
        must 3 convert broken.ply -f "$(case $out in *html) echo html ;; */) echo sog-folder ;; *) echo spz ;; esac)" "$out"
    done
    KILN_FAULT='unit=chunk*:enospc' must 74 convert $A made/in/x.spz
    [ "$(find made keep 2>/dev/null | sort)" = $'keep\nkeep/empty' ] || fail "left: $(find made keep)"
    must 0 convert $A keep/made/x.spz
    must 3 convert broken.ply keep/made/y.spz
    [ "$(ls keep/made)" = x.spz ] || fail 'a file that was there'
); result

test_case 'folders that --scratch-dir made go again, those that were there stay' && (
    mkdir -p was
    must 0 convert --scratch-dir new/scr $A s.html
    must 0 convert --scratch-dir was/scr -w $A s.html
    KILN_FAULT='unit=chunk*:enospc' must 74 convert --scratch-dir new/scr -w $A s.html
    must 0 convert --scratch-dir was -w $A s.html
    [ ! -e new ] && [ -d was ] && [ -z "$(ls -A was)" ] || fail "left: $(find new was)"
); result

test_case 'what a killed convert left goes with the next, which needs no folder' && (
    mkdir -p was k "k/x.csv${LEFT}999999999/inner" "was/x.csv${LEFT}999999999"
    echo half >"k/x.csv${LEFT}999999999/manifest.db"
    must 0 convert $A k/x.csv
    [ "$(ls -A k)" = x.csv ] || fail "left: $(ls -A k)"
    must 0 convert -w --scratch-dir was $A k/x.csv
    [ -z "$(ls -A was)" ] || fail "left: $(ls -A was)"
); result

test_case 'a folder of a streamed scene' && (
    must 0 kiln import $A lod.db
    for stage in knn prune chunk lod; do must 0 kiln $stage lod.db; done
    must 0 kiln export lod.db --format lod -o L/lod
    [ -d L/lod/0_0 ] || fail "$(ls L/lod)"
    spared L -f sog-folder L/lod L/lod/0_0
    spared L -f sog-folder L/lod/lod-meta.json L/lod/0_0
    spared L -f sog-folder L/lod/lod-meta.json L/lod
    must 0 convert L/lod/lod-meta.json L/lod/beside.spz
); result

test_case 'what lies beside a single file is allowed' && (
    mkdir e
    cp $A e/a.ply
    must 0 convert e/a.ply e/a.spz
    must 0 convert e/a.ply -f sog-folder e/sog
    must 0 convert -w e/a.ply -f sog-folder e/sog
    must 0 convert e/sog/meta.json e/sog/a.ply
    must 0 convert e/a.ply e/sog/../b.spz
    must 0 convert e/sog sog.ply
); result

# tidy: nothing lies in TMPDIR, nor beside an OUT that was not written
tidy() { [ -z "$(ls -A "$TMPDIR")" ] && [ -z "$(find . -name '*.tmp.*')" ] || fail "left: $(ls -A "$TMPDIR") $(find . -name '*.tmp.*')"; }

test_case 'a reader that goes away' && (
    got=$( (convert $A - 2>err; echo $? >code) | head -c1 | wc -c; cat code)
    [ "$got" = $'1\n74' ] || fail "$got $(cat err)"
    grep -q 'standard output' err || fail "$(cat err)"
    tidy
); result

test_case 'ulimit -f while standard input is copied' && (
    got=0
    (ulimit -f 100; trap - XFSZ; convert - o.spz <$A 2>err) || got=$?
    [ $got = 74 ] || fail "$got $(cat err)"
    tidy
    [ ! -e o.spz ] || fail 'a file was written'
); result

# held COMMAND...: a convert that waits for the end of its standard input, as process $run, once its folder is there
held() {
    mkdir held
    mkfifo pipe
    "$@" "$KILN_BIN/kiln" convert - held/o.spz <pipe >/dev/null 2>err & run=$!
    exec 3>pipe
    cat $A >&3
    for _ in $(seq 1000); do [ -z "$(ls -A held)" ] || return 0; sleep 0.01; done
    fail 'no folder'
}

test_case 'nohup keeps it, a closed terminal ends it' && (
    held nohup
    kill -HUP $run
    exec 3>&-
    got=0; wait $run || got=$?
    [ $got = 0 ] && [ "$(ls -A held)" = o.spz ] || fail "nohup: $got $(ls -A held) $(cat err)"
    rm -r held pipe
    held env --default-signal=HUP
    kill -HUP $run
    for _ in $(seq 1000); do kill -0 $run 2>/dev/null || break; sleep 0.01; done
    ! kill -0 $run 2>/dev/null || fail 'it waits for its input'
    exec 3>&-
    got=0; wait $run || got=$?
    [ $got = 129 ] && [ -z "$(ls -A held)" ] || fail "hangup: $got $(ls -A held) $(cat err)"
); result

test_case 'a run in another PID namespace keeps its folder, and so do all without /proc' && (
    unshare -p -f -m --mount-proc true 2>/dev/null || skip 'no PID namespaces for this user'
    rm -rf held pipe
    held env
    must 0 unshare -p -f --mount-proc "$KILN_BIN/kiln" convert --quiet - held/o.spz <$A
    [ -n "$(find held -name '*.tmp.kiln-*')" ] || fail 'the folder of a running convert went'
    exec 3>&-
    wait $run || true # its target is newer
    rm -r held pipe
    mkdir held "held/o.spz${LEFT}999999999"
    # shellcheck disable=SC2016 # of the inner shell
    unshare -m sh -c 'mount -t tmpfs none /proc/sys/kernel/random && exec "$@"' sh \
        "$KILN_BIN/kiln" convert --quiet - held/o.spz <$A 2>err || fail "$(cat err)"
    [ -e "held/o.spz${LEFT}999999999" ] || fail 'removed where the boot is not known'
    must 0 convert -w - held/o.spz <$A
    [ "$(ls -A held)" = o.spz ] || fail "left: $(ls -A held)"
); result

test_case 'a report and a scene do not share standard output' && (
    must 2 convert --json $A -
    grep -q 'json prints its report to standard output' err || fail "$(cat err)"
    [ ! -s out ] || fail "$(cat out)"
    tidy
    must 0 convert --json $A json.spz
    grep -q '"status"' out || fail "$(cat out)"
    "$KILN_BIN/kiln" convert $A - 2>err >o.ply
    cmp $A o.ply
    grep -q 'written to standard output' err || fail "$(cat err)"
    ! grep -qF "$TMPDIR" err || fail "$(cat err)"
); result

# chunks_ended STATUS ACTION: the export into c ends so at its third chunk, while others are written
chunks_ended() {
    local got=0 run
    KILN_FAULT="unit=chunk*2:$2" "$KILN_BIN/kiln" convert -w big/scene.ply -f chunks c 2>err & run=$!
    if [ "$2" = hang ]; then
        for _ in $(seq 2000); do [ -z "$(find c -name '*.bin' -newer mark 2>/dev/null)" ] || break; sleep 0.01; done
        [ -n "$(find c -name '*.bin' -newer mark)" ] || fail 'no file was written'
        kill -TERM $run
    fi
    wait $run || got=$?
    [ $got = "$1" ] || fail "$2: $got $(cat err)"
    ! grep -q 'run the same command' err || fail "$(cat err)"
    tidy
}

test_case 'chunks that are not whole are removed' && (
    must 0 "$KILN_BIN/kiln-generate" --quiet scene big -n 300000 -c 1 -s 16x16
    touch mark
    for how in '74 enospc' '143 hang' '7 exit'; do
        # shellcheck disable=SC2086 # words
        chunks_ended $how
        [ ! -e c ] || fail "$how left $(ls -A c)"
    done
    must 0 convert $A -f chunks c
    echo mine >c/mine.txt
    before=$(sums c)
    sleep 0.02; touch mark
    for how in '74 enospc' '143 hang'; do
        # shellcheck disable=SC2086 # words
        chunks_ended $how
        [ "$(sums c)" = "$before" ] || fail "$how changed the folder: $(ls -A c)"
    done
    must 0 convert -w big/scene.ply -f chunks c
    [ -e c/mine.txt ] || fail "a stranger's file"
); result
