#!/bin/bash
# kiln convert: each format that is read into each flat format that is written gives the bytes of kiln-import and kiln-export of the
# layer source; with filters, moves and a degree; of several files; through streams; and it leaves nothing else, also when it is ended.
# starts first
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
convert() { "$KILN_BIN/kiln" convert --quiet "$@"; }
scene s 3000 1 48x32
written=$("$KILN_BIN/kiln-export" --list-formats | awk '$3 == "splats" && $2 != "(folder)" { split($2, s, ","); print $1 ":" s[1] }')
kiln import s all.db >/dev/null || fail import
mkdir in made two
for pair in ply:ply splat:splat spz:spz spz4:spz compressed-ply:compressed.ply glb:glb ksplat:ksplat sog:sog; do
    kiln export all.db --layer source --format "${pair%%:*}" -o "in/${pair%%:*}.${pair#*:}" || fail "export $pair"
done
gzip -k in/ply.ply
must 0 kiln import in/ply.ply one.db

test_case 'nine files and ten formats, at the least, are tried' && (
    [ "$(ls in | wc -l)" -ge 9 ] || fail "only $(ls in | wc -l) files"
    [ "$(wc -l <<<"$written")" -ge 10 ] || fail "only these formats: $written"
); result

# Each case has folders of its own: what one that fails leaves is not found by the next one.
for from in in/*; do
    name=${from#in/}
    test_case "$name into each flat format is what kiln-import and kiln-export write" && (
        mkdir "made/$name" "two/$name"
        kiln import "$from" "two/$name/two.db" >/dev/null || fail "import $from"
        for pair in $written; do
            format=${pair%%:*} suffix=${pair#*:}
            kiln export "two/$name/two.db" --layer source --format "$format" -w -o "two/$name/x.$suffix" ||
                fail "export of $from as $format"
            must 0 convert "$from" "made/$name/x.$suffix" --format "$format"
            cmp "two/$name/x.$suffix" "made/$name/x.$suffix" || fail "$from as $format is not what kiln-export writes"
            [ "$(ls -A "made/$name")" = "x.$suffix" ] || fail "$from as $format left $(ls -A "made/$name")"
            rm "made/$name/x.$suffix" "two/$name/x.$suffix"
        done
    ); result
done

as_exported() { # suffix, options
    local suffix=$1; shift
    must 0 kiln export one.db --layer source "$@" -w -o "two/o.$suffix"
    must 0 convert in/ply.ply "made/o.$suffix" -w "$@"
    cmp "two/o.$suffix" "made/o.$suffix" || fail "$* is not what kiln-export writes"
}

test_case 'filters, moves and the degree are those of kiln-export' && (
    as_exported ply --filter-value opacity,gt,0.5 --filter-box '-2,-2,-2,2,2,2' --sh-degree 1
    as_exported spz --translate 1,2,3 --rotate 30,40,50 --scale 2 --filter-sphere 0,0,0,3
    as_exported ply --columns inria --no-normals
    must 0 convert in/ply.ply made/order.ply --order source
    must 2 convert in/ply.ply made/order.ply --order baked
    grep -qF "kiln pipeline 'in/ply.ply' --export ply --order baked" err || fail "$(cat err)"
); result

test_case 'the frame of what is read and of what is written have an option each' && (
    must 2 convert in/ply.ply made/f.glb --frame as-is
    must 0 convert in/ply.ply made/a.spz --export-frame as-is
    must 0 kiln export one.db --layer source --frame as-is -w -o two/a.spz
    cmp two/a.spz made/a.spz || fail '--export-frame'
    must 0 convert made/a.spz made/b.ply --import-frame as-is
    must 0 "$KILN_BIN/kiln" convert in/ply.ply made/say.spz
    grep -q '; --export-frame as-is keeps' err || fail "$(cat err)"
    must 0 "$KILN_BIN/kiln" convert made/say.spz made/say.ply
    grep -q ', --import-frame as-is leaves' err || fail "$(cat err)"
    must 0 "$KILN_BIN/kiln-import" made/say.spz made/say.db && grep -q ', --frame as-is leaves' err || fail "$(cat err)"
); result

test_case 'letters are those of splat-transform where they mean the same' && (
    must 0 convert in/ply.ply -V opacity,gt,0.5 -s 2 -H 1 -N made/c.ply
    must 0 convert in/ply.ply --filter-value opacity,gt,0.5 --scale 2 --sh-degree 1 made/d.ply
    cmp made/c.ply made/d.ply || fail 'letters of splat-transform'
    for letter in -t -r -B -S; do
        must 2 convert in/ply.ply $letter 1,2,3 made/e.ply
        grep -q 'turned by 180 degrees' err || fail "$letter: $(cat err)"
    done
); result

test_case 'several files, one of them moved and one packed' && (
    must 0 kiln import in/ply.ply join.db --add 'in/splat.splat;translate=5,0,0' --add in/ply.ply.gz
    must 0 kiln export join.db --layer source -o two/join.ply
    must 0 convert in/ply.ply 'in/splat.splat;translate=5,0,0' in/ply.ply.gz made/join.ply
    cmp two/join.ply made/join.ply || fail 'several files'
); result

test_case 'to standard output' && (
    convert in/ply.ply - <in/ply.ply >made/s.ply && cmp in/ply.ply made/s.ply || fail 'to standard output'
    must 2 convert in/ply.ply - --format sog-folder
); result

test_case 'from standard input' && (
    convert - - --format spz <in/ply.ply >made/s.spz && cmp in/spz.spz made/s.spz || fail 'from standard input'
    must 2 convert - - made/stream.ply <in/ply.ply
    must 3 convert - made/stream.ply </dev/null
    [ ! -e made/stream.ply ] || fail 'a file after a failure'
); result

test_case 'standard input of a format without a mark is named by an option' && (
    got=0; convert - made/pipe.spz <in/splat.splat 2>err || got=$?
    [ $got = 3 ] && grep -q '^kiln convert: standard input is no splat .* --import-format splat$' err || fail "$got $(cat err)"
    [ ! -e made/pipe.spz ] || fail 'a file after a failure'
    must 0 convert - made/pipe.spz --import-format splat <in/splat.splat
    must 0 convert in/splat.splat made/named.spz
    cmp made/named.spz made/pipe.spz || fail 'another scene was read'
    must 0 convert - made/pipe.html --import-format splat <in/splat.splat # by way of a bake
    must 3 convert - made/pipe.ply --import-format splat <in/ply.ply
    grep -q 'standard input is of the format ply, but --import-format says splat' err || fail "$(cat err)"
    must 3 convert - made/pipe.ply --import-format ply <in/splat.splat
    grep -q 'standard input is no ply, as .* if it is a .splat, .*: --import-format splat$' err || fail "$(cat err)"
    must 0 convert in/ply.ply made/packed.compressed.ply
    must 0 convert made/packed.compressed.ply made/unpacked.ply
    for word in ply compressed-ply; do # which is a PLY, too
        must 0 convert - made/pipe.$word.ply --import-format $word <made/packed.compressed.ply
        cmp made/unpacked.ply made/pipe.$word.ply || fail "$word: another scene was read"
    done
    must 3 convert - made/pipe.ply --import-format compressed-ply <in/ply.ply
    grep -q 'standard input is of the format ply, but --import-format says compressed-ply' err || fail "$(cat err)"
    must 2 convert in/splat.splat made/pipe.ply --import-format splat
    grep -q "import-format is for standard input" err || fail "$(cat err)"
    must 2 convert - made/pipe.ply --import-format sogg <in/splat.splat
    grep -q 'import-format takes a format of one file (ply, .*splat' err || fail "$(cat err)"
    [ ! -e made/pipe.ply ] || fail 'a file after a failure'
); result

test_case 'what is wrong with standard input is said of it, not of a file of ours' && (
    for out in ply html; do
        head -c 5000 in/ply.ply >short
        must 3 convert - made/short.$out <short
        grep -q '^kiln convert: standard input is shorter than' err || fail "$(cat err)"
        ! grep -q 'tmp' err || fail "$(cat err)"
    done
); result

test_case 'a page without a viewer is refused before the scene is read' && (
    got=0; KILN_VIEWER=$KILN_TMP/none "$KILN_BIN/kiln" convert in/ply.ply made/none.html 2>err || got=$?
    [ $got = 3 ] && grep -q 'make viewer' err && [ "$(grep -c . err)" = 1 ] || fail "$got $(cat err)"
); result

test_case 'a folder' && (
    must 0 convert in/ply.ply made/sog --format sog-folder
    [ -s made/sog/meta.json ] || fail 'a folder'
); result

test_case 'a page' && (
    must 0 convert in/ply.ply made/page.html
    must 0 kiln export one.db --layer source -w -o two/page.html
    cmp two/page.html made/page.html || fail 'a page is not what kiln-export writes'
); result

test_case 'what takes a bake names the command' && (
    for format in lod rad 3dtiles; do
        must 2 convert in/ply.ply "made/x.$format" --format $format
        grep -qF "kiln pipeline 'in/ply.ply' --export $format" err || fail "$format: $(cat err)"
    done
); result

test_case 'a file that is there is replaced by --overwrite only, the one that is read never' && (
    cp in/ply.ply made/mine.splat
    must 2 convert in/ply.ply made/mine.splat
    grep -q 'exists already; .* -w' err || fail "$(cat err)"
    echo mine >made/mine.sog
    must 2 convert in/ply.ply made/mine.sog
    cmp in/ply.ply made/mine.splat || fail 'a file that is not ours was replaced'
    must 0 convert in/ply.ply made/mine.splat -w
    must 2 convert in/ply.ply in/ply.ply -w
); result

test_case 'without a place to write, or a file to read' && (
    must 2 convert in/ply.ply
    must 3 convert in/none.ply made/none.ply
    [ ! -e made/none.ply ] || fail 'a file after a failure'
); result

must 0 "$KILN_BIN/kiln-generate" --quiet scene large -n 300000 -c 1 -s 16x16
# in_the_middle SIGNAL FILE: a conversion gets the signal when the first of its files is there; the status of it is in $got
in_the_middle() {
    local folder run
    folder=$(dirname "$2")
    "$KILN_BIN/kiln" convert --quiet large/scene.ply "$2" 2>err & run=$!
    for _ in $(seq 1000); do [ -z "$(ls -A "$folder")" ] || break; sleep 0.01; done
    kill "-$1" $run
    wait $run 2>/dev/null; got=$?
}
test_case 'a semicolon in a name, and what stands behind one' && (
    mkdir semi && cp large/scene.ply 'semi/IN;x.ply' && cp large/scene.ply semi/in.ply && cp large/scene.ply 'semi/p;scale=3' || fail copy
    must 0 convert --quiet 'semi/IN;x.ply' 'semi/IN;x.ply' 'semi/OUT;x.spz'
    must 0 "$KILN_BIN/kiln" pipeline --quiet 'semi/IN;x.ply' --devices cpu
    [ -f 'semi/IN;x.bake/manifest.db' ] || fail "$(ls semi)"
    must 2 convert semi/in.ply 'semi/in.ply;x' semi/o.ply
    grep -q "convert: 'semi/in.ply;x': ';x' is none of ;translate=X,Y,Z ;rotate=X,Y,Z ;scale=S" err || fail "$(cat err)"
    must 3 convert semi/in.ply 'semi/none;x' semi/o.ply
    grep -q "convert: cannot open 'semi/none;x': No such file" err || fail "$(cat err)"
    must 2 convert semi/in.ply 'semi/in.ply;scale=x' semi/o.ply
    grep -q "convert: semi/in.ply;scale=x: --scale takes" err || fail "$(cat err)"
    must 2 convert 'semi/in.ply;scale=2' semi/o.ply
    grep -q "'semi/in.ply;scale=2' is the first input, which no ';scale=2' moves; --translate" err || fail "$(cat err)"
    must 2 convert semi/in.ply 'semi/p;scale=3' semi/o.ply
    grep -q "the file of that name is 'semi/p;scale=3;scale=1'" err || fail "$(cat err)"
    must 0 convert --quiet semi/in.ply 'semi/p;scale=3;scale=1' semi/o.ply
    must 0 convert --quiet 'semi/p;scale=3' semi/in.ply semi/o2.ply
    must 3 convert semi/in.ply semi semi/o.spz --level 1
    grep -q "semi' is a folder; only the first input may be one" err || fail "$(cat err)"
); result

for to in csv html; do # without and with a bake
    test_case "$to, ended in the middle: nothing is left" && (
        mkdir "ended_$to"
        in_the_middle TERM "ended_$to/x.$to"
        [ $got = 143 ] && [ -z "$(ls -A "ended_$to")" ] || fail "$to, ended: $got, $(ls -A "ended_$to") $(cat err)"
    ); result

    test_case "$to, killed in the middle: what is left goes with the next" && (
        mkdir "killed_$to"
        in_the_middle KILL "killed_$to/x.$to"
        must 0 convert in/ply.ply "killed_$to/x.$to"
        [ "$(ls -A "killed_$to")" = "x.$to" ] || fail "$to, killed: $(ls -A "killed_$to")"
    ); result
done

test_case 'kiln-export names kiln convert where it is given no manifest, or standard output' && (
    must 3 kiln export in/ply.ply -o made/x.spz
    grep -q 'kiln convert IN OUT' err || fail "kiln-export of a PLY: $(cat err)"
    must 2 kiln export one.db --layer source -o -
    grep -q 'kiln convert IN -' err || fail "kiln-export to standard output: $(cat err)"
); result

test_case 'messages are for users of kiln convert, who know no layers' && (
    must 2 convert in/ply.ply made/x.lod
    grep -q "^kiln convert: 'made/x.lod': '.lod' is not a format that kiln convert writes; it writes NAME.ply, .*; and as folders: " err ||
        fail "a suffix of no format: $(cat err)"
    ! grep -q 'NAME.rad\|3dtiles\|-o ' err || fail "kiln convert writes no levels and has no -o: $(cat err)"
    must 0 "$KILN_BIN/kiln" convert in/ply.ply made/told.sog
    grep -q "^kiln convert: [0-9]* Gaussians written to 'made/told.sog', [0-9.]* [KM]*iB$" err && ! grep -q layer err ||
        fail "what is written: $(cat err)"
    must 0 "$KILN_BIN/kiln" convert in/ply.ply made/told.ply --count 20
    grep -q '^kiln convert: [0-9]* Gaussians stand for [0-9]* ([0-9]* parts* of the scene; [0-9]* w[a-z]* made for this file)$' err ||
        fail "what stands for all: $(cat err)"
); result

test_case 'a name without a suffix is no PLY without a word' && (
    must 2 convert in/ply.ply made/plain
    grep -q "'made/plain' has no suffix that names a format; these are written: NAME.ply, .*; or name one with --format" err ||
        fail "$(cat err)"
    [ ! -e made/plain ] || fail 'it was written'
    must 0 convert in/ply.ply -f spz made/plain
    cmp in/spz.spz made/plain || fail 'another format'
); result

test_case 'a standard input that does not wait is waited for' && (
    mkfifo slow
    exec 3<>slow
    python3 -c 'import os; os.dup2(os.open("slow", os.O_RDONLY | os.O_NONBLOCK), 0)
os.execv(os.environ["KILN_BIN"] + "/kiln", ["kiln", "convert", "--quiet", "-", "made/slow.spz"])' 3>&- 2>slow.err & run=$!
    head -c 5000 in/ply.ply >&3
    sleep 0.3
    tail -c +5001 in/ply.ply >&3
    kill -0 $run || fail "it did not wait: $(cat slow.err)"
    exec 3>&-
    got=0; wait $run || got=$?
    [ $got = 0 ] && cmp in/spz.spz made/slow.spz || fail "$got: $(cat slow.err)"
); result

# least FILE OPTION...: the --ram that a refusal names
least() {
    local got=0
    "$KILN_BIN/kiln" convert --quiet --ram 20M "$@" 2>err || got=$?
    [ $got = 5 ] || fail "status $got: $(cat err)"
    sed -n 's/.*the least that works is --ram \([0-9]*M\)$/\1/p' err
}
mkdir least
for to in ply compressed.ply spz sog splat ksplat glb csv; do
    test_case "$to: the --ram that a refusal names is enough" && (
        ram=$(least large/scene.ply "least/x.$to")
        [ "$ram" ] || fail "no size is named: $(cat err)"
        must 0 convert --ram "$ram" large/scene.ply "least/x.$to"
    ); result
done

py wide_ply wide.ply # a block of it takes more than the default of --ram
test_case 'so it is for a file of many columns, whose check takes most' && (
    ram=$(least wide.ply least/wide.ply)
    must 0 convert --ram "$ram" wide.ply least/wide.ply
); result

test_case 'the default of --ram grows to what is needed, a --ram that is given does not' && (
    must 0 "$KILN_BIN/kiln" convert wide.ply made/wide.ply
    grep -q 'instead of 200 MiB, its default' err || fail "$(cat err)"
    must 5 convert --ram 200M wide.ply made/wide2.ply
    must 0 "$KILN_BIN/kiln" convert in/ply.ply made/narrow.ply
    ! grep -q 'its default' err || fail "$(cat err)"
); result

test_case 'its helps are its own' && (
    must 0 "$KILN_BIN/kiln" convert --help-all
    ! grep -qE 'imported scene|SCENE|suffix of -o|kiln-export has' out || fail "of another program: $(cat out)"
    tr -s ' \n' ' ' <out | grep -q 'where its suffix names none, and to standard output' || fail "$(cat out)"
); result
