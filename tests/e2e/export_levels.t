#!/bin/bash
# kiln-export --level, --count, --percent: a flat file with a cut of the levels of detail. Counts are met, rows are chosen first, the
# bytes depend on nothing else, missing levels are made, what cannot be is refused; kiln convert does the same without a bake.
# starts first
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
chunked() {
    kiln import "$1" "$2" >/dev/null && kiln knn "$2" >/dev/null && kiln chunk "$2" --layer source "${@:3}" >/dev/null ||
        fail "bake of $1"
}
rows() { # how many Gaussians kiln-import reads from a file
    rm -f rows.db*
    kiln import "$1" rows.db >/dev/null || fail "import of $1"
    sqlite3 rows.db 'SELECT rows_read - rows_dropped FROM scene'
}
has() { # FILE ROWS
    local n
    n=$(rows "$1")
    [ "$n" = "$2" ] || fail "$1 has $n rows, not $2"
}
level_rows() { # MANIFEST LEVEL
    sqlite3 "$1" "SELECT sum(count) FROM chunk JOIN stage_output USING (layer) WHERE role = 'levels' AND level = $2"
}
shape=-9,-9,-9,0,9,9
scene s 6000 6 64x48
chunked s bare.db --max 700
cp bare.db b.db
kiln lod b.db --levels 3 --coarsest 100 >/dev/null || fail lod
chunks=$(sqlite3 b.db "SELECT count(*) FROM chunk JOIN stage_output USING (layer) WHERE role = 'baked'")
[ "$chunks" -gt 8 ] || fail "only $chunks chunks"

test_case 'a count is met in many chunks, down to one row' && (
    for n in 1 100 333 1000 2500 5999; do
        must 0 kiln export b.db -w -o n.ply --count $n
        has n.ply $n
    done
); result

test_case 'a count is met in one chunk' && (
    [ -n "$KILN_SHARED" ] || skip 'no reference data'
    chunked "$KILN_SHARED/scenes/chair/chair.ply" chair.db
    kiln lod chair.db >/dev/null || fail lod
    for n in 29988 20000 9000 1874 500; do
        must 0 kiln export chair.db -w -o n.ply --count $n
        has n.ply $n
    done
); result

test_case 'a level is each chunk at that level, a cell where chunks have none so coarse' && (
    for k in 1 2 3; do
        must 0 kiln export b.db -w -o n.ply --level $k
        has n.ply "$(level_rows b.db $k)"
    done
    must 0 kiln export b.db -w -o n.ply --level 32
    has n.ply "$(sqlite3 b.db "SELECT count FROM chunk JOIN stage_output USING (layer) WHERE role = 'levels' ORDER BY level DESC LIMIT 1")"
); result

test_case 'all rows give the bytes of an export without the option' && (
    must 0 kiln export b.db -w -o all.ply
    for all in '--level 0' '--count 6000' '--count 7000' '--percent 100' '--level dB:200'; do
        # shellcheck disable=SC2086
        must 0 kiln export b.db -w -o n.ply $all
        cmp all.ply n.ply || fail "$all changes something"
    done
); result

test_case 'rows are chosen first: a share is of what filters and --chunks leave' && (
    must 0 kiln export b.db -w -o part.ply --filter-box=$shape
    left=$(rows part.ply)
    [ "$left" -gt 1000 ] && [ "$left" -lt 5000 ] || fail "the filter leaves $left"
    must 0 kiln export b.db -w -o n.ply --filter-box=$shape --percent 100
    cmp part.ply n.ply || fail 'all that the filter leaves are not the bytes of an export without --percent'
    must 0 kiln export b.db -w -o n.ply --filter-box=$shape --percent 25
    has n.ply $(((left + 2) / 4))
    must 0 kiln stats n.ply --json
    py inside out || fail 'rows stand where the filter leaves none'
    must 0 kiln export b.db -w -o n.ply --chunks '#0,#2' --count 111 --filter-value opacity,gte,0.2
    has n.ply 111
    must 0 kiln export b.db -w -o n.ply --filter-box=$shape --level 1
    n=$(rows n.ply)
    [ "$n" -le $((left / 2)) ] && [ "$n" -ge $((left / 2 - chunks)) ] || fail "level 1 of $left rows has $n"
    must 3 kiln export b.db -w -o n.ply --filter-box=50,50,50,60,60,60 --count 10
    must 3 kiln export b.db -w -o n.ply --filter-value source_row,gt,100000 --count 10
    grep -q -- '--filter-value keeps nothing' err || fail "$(cat err)"
); result

test_case 'fewer rows than nodes keep are refused with the least' && (
    must 2 kiln export b.db -o few.ply --filter-box=$shape --count 1
    [[ $(cat err) =~ --count\ 1:.*the\ least\ is\ --count\ ([0-9]+)$ ]] || fail "$(cat err)"
    least=${BASH_REMATCH[1]}
    [ "$least" -gt 1 ] && [ ! -e few.ply ] || fail "$least: $(cat err)"
    must 0 kiln export b.db -w -o n.ply --filter-box=$shape --count "$least"
    has n.ply "$least"
    must 2 kiln export b.db -o few.ply --filter-box=$shape --count $((least - 1))
    must 0 "$KILN_BIN/kiln-export" b.db -w -o n.ply --filter-box=$shape --percent 0.01
    has n.ply "$least"
    grep -q -- "--percent 0.01: $least Gaussians are written rather than 1" err || fail "$(cat err)"
    must 2 kiln export b.db --add b.db -o few.ply --filter-box=$shape --count "$least"
    must 0 kiln export b.db --add b.db -w -o n.ply --filter-box=$shape --count $((2 * least))
    has n.ply $((2 * least))
    kiln generate scene tiny --gaussians 40 --cameras 1 --size 16x16 >/dev/null
    chunked tiny tiny.db
    must 0 kiln lod tiny.db
    must 0 kiln export tiny.db --add b.db -w -o n.ply --filter-box=$shape --count "$((least + 3))"
    has n.ply $((least + 3))
); result

test_case 'what is said of one Gaussian, and of nothing merged' && (
    must 0 "$KILN_BIN/kiln-export" b.db -w -o n.ply --level 1
    grep -q 'Gaussians stand for 6000 ([0-9]* parts of the scene)$' err || fail "$(cat err)"
    must 0 "$KILN_BIN/kiln-export" b.db -w -o n.ply --filter-value source_row,eq,7 --count 5
    grep -q 'the only Gaussian that is there is written' err || fail "$(cat err)"
); result

test_case 'a share may have its sign, no rows are no number, and a level that is not there is said' && (
    must 0 kiln export b.db -w -o p.ply --percent 12.5
    must 0 kiln export b.db -w -o q.ply --percent 12.5%
    cmp p.ply q.ply || fail 'a % is another number'
    for wrong in '--count 0' '--percent 0' '--percent 0%' '--percent 10%%' '--percent 101%' '--percent %' '--count 10%'; do
        # shellcheck disable=SC2086
        must 2 kiln export b.db -w -o p.ply $wrong
    done
    must 0 "$KILN_BIN/kiln-export" b.db -w -o p.ply --level 1
    ! grep -q coarsest err || fail "$(cat err)"
    must 0 "$KILN_BIN/kiln-export" b.db -w -o p.ply --level 32
    [ "$(grep -c -- '--level 32: the coarsest level of this scene is [0-9]*, which is written$' err)" = 1 ] || fail "$(cat err)"
); result

test_case 'moves and the degree are as of any export' && (
    must 0 kiln export b.db -w -o a.csv --count 500
    must 0 kiln export b.db -w -o c.csv --count 500 --sh-degree 0 --scale 2
    py moved a.csv c.csv || fail 'other rows are written where they are moved'
); result

test_case 'the same bytes for any threads, workers and --ram' && (
    how=(--filter-box=$shape --count 777)
    must 0 kiln export b.db -w -o one.ply "${how[@]}" --threads 1
    for with in '--threads 2' '--workers 3' '--ram 100M'; do
        # shellcheck disable=SC2086
        must 0 kiln export b.db -w -o n.ply "${how[@]}" $with
        cmp one.ply n.ply || fail "other bytes with $with"
    done
    must 0 env KILN_ISA=baseline "$KILN_BIN/kiln-export" b.db --quiet -w -o n.ply "${how[@]}"
    cmp one.ply n.ply || fail 'other bytes without AVX2'
); result

test_case 'the cap that a refusal names is enough' && (
    must 5 kiln export b.db -w -o n.spz --count 777 --filter-box=$shape --ram 8M
    [[ $(cat err) =~ --ram\ ([0-9]+[MG]) ]] || fail "the refusal of --ram names no cap: $(cat err)"
    must 0 kiln export b.db -w -o n.spz --count 777 --filter-box=$shape --ram "${BASH_REMATCH[1]}"
); result

test_case 'levels that are missing or old are made, and it is said' && (
    cp bare.db made.db
    cp bare.db by_hand.db
    kiln lod by_hand.db >/dev/null || fail lod
    must 0 kiln export by_hand.db -w -o one.ply --count 800
    must 0 "$KILN_BIN/kiln-export" made.db -w -o n.ply --count 800
    grep -q 'no levels of detail.*kiln-lod makes them now.*stay in the bake' err || fail "$(cat err)"
    cmp one.ply n.ply || fail 'other bytes where the levels were made'
    same made.db by_hand.db
    must 0 "$KILN_BIN/kiln-export" made.db -w -o n.ply --count 800
    ! grep -q 'makes them' err || fail 'levels that are there are made again'
    must 0 kiln chunk made.db --max 500
    must 0 "$KILN_BIN/kiln-export" made.db -w -o n.ply --percent 5
    grep -q 'kiln-lod makes them now' err || fail "$(cat err)"
    has n.ply 300
    must 0 "$KILN_BIN/kiln-export" bare.db -w -o n.ply
    [ "$(sqlite3 bare.db "SELECT count(*) FROM stage WHERE name = 'lod' AND state != 'missing'")" = 0 ] ||
        fail 'an export of all rows has made levels'
); result

test_case 'every flat format holds the rows' && (
    for pair in $("$KILN_BIN/kiln-export" --list-formats | awk '$3 == "splats" && $2 != "(folder)" { split($2, s, ","); print $1 ":" s[1] }'); do
        [ "${pair%%:*}" != html ] || [ -e "$KILN_BIN/../share/splatkiln/viewer/viewer.js" ] || continue
        must 0 kiln export b.db -w --format "${pair%%:*}" -o "f.${pair#*:}" --count 640
        case ${pair%%:*} in
        html) ;;
        csv) [ "$(wc -l <f.csv)" = 641 ] || fail "csv has $(wc -l <f.csv) lines" ;;
        *) has "f.${pair#*:}" 640 ;;
        esac
    done
    must 0 kiln export b.db --format sog-folder -o sog --count 640
    has sog/meta.json 640
    must 0 kiln export b.db --format ply,spz,csv -o several/ --count 640
    [ "$(wc -l <several/scene.csv)" = 641 ] || fail 'one of several formats has other rows'
); result

test_case 'a file of levels has the columns of its source, normals as 0 and no others' && (
    py add_column s/scene.ply column.ply
    chunked column.ply column.db
    must 0 "$KILN_BIN/kiln-export" column.db -w -o n.ply --count 640
    grep -q "column 'weight_of_mine' of the source is not in levels of detail and left out" err || fail "$(cat err)"
    py columns column.ply n.ply || fail 'other columns'
); result

test_case 'several bakes share the count' && (
    must 0 kiln export b.db --add b.db -w -o n.ply --count 901
    has n.ply 901
    must 0 kiln export b.db --add b.db -w -o n.ply --count 901 --filter-box=$shape
    has n.ply 901
    must 0 kiln export b.db --add b.db -w -o n.ply --count 99999
    has n.ply 12000
    must 4 kiln export b.db --add bare.db -w -o n.ply --count 901
    grep -q "run kiln-lod '.*bare.db' first" err || fail "$(cat err)"
); result

test_case 'more rows are nearer to the full scene' && (
    must 0 kiln export b.db -w -o full.ply --order baked
    draw() { chunked "$1" "$2.db" && must 0 kiln render "$2.db" --cameras b.json -o "$2/" --format npy; }
    py cameras b.db b.json
    draw full.ply full
    for n in 375 750 1500 3000; do
        must 0 kiln export b.db -w -o n$n.ply --count $n
        draw n$n.ply drawn$n
        must 0 "$KILN_BIN/kiln-compare" full drawn$n --json
        cp out db$n.json
    done
    py rising db375.json db750.json db1500.json db3000.json || fail 'fewer rows are nearer'
); result

test_case 'dB:X has more rows for more dB, auto is 35' && (
    was=0
    for x in 15 25 35 45; do
        must 0 kiln export b.db -w -o n.csv --level dB:$x
        n=$(wc -l <n.csv)
        [ "$n" -ge "$was" ] || fail "$n lines at $x dB, $was at less"
        was=$n
        [ $x != 35 ] || cp n.csv 35.csv
    done
    [ "$was" -gt "$(wc -l <35.csv)" ] || fail 'as many at 45 dB as at 35'
    must 0 kiln export b.db -w -o n.csv --level auto
    cmp 35.csv n.csv
); result

test_case 'the loss of a file is measured by the rows that stand for the scene' && (
    must 0 kiln export b.db -w -o n.ply --count 640 --report-loss 1 --json
    py lossless out || fail 'a PLY of levels has lost something'
    must 0 "$KILN_BIN/kiln-export" b.db -w -o n.splat --count 640 --report-loss 1
    grep -q ' dB by the format alone, beside the 640 rows that stand for all$' err || fail "what is lost: $(cat err)"
); result

test_case 'options are stored, and what is written is remembered' && (
    cp b.db stored.db
    must 0 kiln export stored.db --count 500
    has export/scene.ply 500
    must 0 "$KILN_BIN/kiln-export" stored.db
    grep -q 'nothing to do' err || fail "written again: $(cat err)"
    must 2 kiln export stored.db --percent 10
    grep -q -- '--count off takes the stored one back' err || fail "$(cat err)"
    must 0 kiln export stored.db --percent 10% --count off
    has export/scene.ply 600
    sqlite3 stored.db "UPDATE parameter SET value = '0' WHERE name = 'count'" # it said all, once
    must 0 "$KILN_BIN/kiln-export" stored.db
    grep -q 'nothing to do' err || fail "a stored 0: $(cat err)"
    must 2 kiln export stored.db --count 0
    must 0 kiln lod stored.db --levels 2
    must 0 "$KILN_BIN/kiln-export" stored.db
    ! grep -q 'nothing to do' err || fail 'other levels, and nothing is written'
); result

test_case 'what cannot be is refused with the way out' && (
    for format in lod rad 3dtiles chunks; do
        must 2 kiln export b.db --format $format -o refused/ --count 10
        grep -q "the format $format holds all of them; leave the option out" err || fail "$format: $(cat err)"
    done
    must 2 kiln export b.db -o refused.ply --count 10 --percent 10
    grep -q -- '--count and --percent both say how many' err || fail "$(cat err)"
    must 2 kiln export b.db -o refused.ply --count 10 --level 1
    must 2 kiln export b.db -o refused.ply --count 10 --layer source
    grep -q "of the layer 'baked'; 'source' has none" err || fail "$(cat err)"
    for bad in '--level 33' '--level dB:x' '--level -1' '--count -1' '--count x' '--percent 101' '--percent -1' \
        '--percent 0' '--level dB:0x20'; do
        # shellcheck disable=SC2086
        must 2 kiln export b.db -o refused.ply $bad
    done
    [ ! -e refused.ply ] && [ ! -e refused ] || fail 'something was written'
); result

test_case 'what is refused makes no levels' && (
    cp bare.db refused.db
    echo mine >mine.ply
    must 2 kiln export refused.db -o mine.ply --count 10
    must 2 kiln export refused.db -o refused.db --count 10 --format ply
    must 2 kiln export refused.db -o none.ply --count 10 --chunks nowhere
    [ "$(cat mine.ply)" = mine ] && cmp bare.db refused.db || fail 'the bake has changed'
    must 0 kiln export refused.db -w -o mine.ply --count 10
    has mine.ply 10
); result

test_case 'kiln pipeline makes the levels for it' && (
    must 0 "$KILN_BIN/kiln" pipeline s --out piped --stages import,knn,prune,chunk,lod,export --export ply --export-count 1234 --quiet
    has piped/export/scene.ply 1234
    must 2 "$KILN_BIN/kiln" pipeline s --out piped2 --stages import,knn,prune,chunk,export --export ply --export-percent 5 --quiet
    grep -q -- '--export-percent 5 needs levels of detail' err || fail "$(cat err)"
); result

convert() { "$KILN_BIN/kiln" convert --quiet "$@"; }

test_case 'convert: the bytes of a bake and its export, and nothing is left' && (
    mkdir to
    cp s/scene.ply alone.ply
    chunked alone.ply alone.db
    kiln lod alone.db >/dev/null || fail lod
    for how in '--count 700' '--count 700 --order baked' '--percent 12.5' '--level 2' '--level dB:30' "--filter-box=$shape --percent 30 --sh-degree 1"; do
        for suffix in ply spz; do
            # shellcheck disable=SC2086
            must 0 kiln export alone.db -w -o by_hand.$suffix $how
            # shellcheck disable=SC2086
            must 0 convert alone.ply to/x.$suffix $how
            cmp by_hand.$suffix to/x.$suffix || fail "$how as $suffix is not what kiln-export writes"
            [ "$(echo to/*)" = to/x.$suffix ] || fail "left: $(echo to/*)"
            rm to/x.$suffix
        done
    done
    must 0 "$KILN_BIN/kiln" convert alone.ply to/x.ply --count 700 --threads 1 --ram 300M
    grep -q "levels of detail are made in a bake in 'to/x.ply.tmp.*', which is removed" err || fail "$(cat err)"
    has to/x.ply 700
    convert - - --format ply --count 700 <alone.ply >to/y.ply || fail streams
    cmp to/x.ply to/y.ply || fail 'streams'
); result

test_case 'convert: several files, and what is refused before anything is done' && (
    must 0 convert s/scene.ply s/scene.ply several.spz --count 901
    has several.spz 901
    must 2 convert s/scene.ply no.ply --count 10 --percent 10
    must 2 convert s/scene.ply no --format sog-folder --level 40
    must 2 convert s/scene.ply no.rad --count 10
    py points points.ply
    must 3 convert points.ply no.ply --count 10
    grep -q "'points.ply' holds points" err || fail "$(cat err)"
    [ "$(echo no*)" = 'no*' ] || fail "left: $(echo no*)"
); result
