#!/bin/bash
# kiln convert: each format that is read into each flat format that is written gives the bytes of kiln-import and kiln-export of the
# layer source; with filters, moves and a degree; of several files; through streams; and it leaves nothing else, also when it is ended.
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
pairs=0
for from in in/*; do
    rm -f two.db*
    kiln import "$from" two.db >/dev/null || fail "import $from"
    for pair in $written; do
        name=${pair%%:*} suffix=${pair#*:}
        kiln export two.db --layer source --format "$name" -w -o "two/x.$suffix" || fail "export of $from as $name"
        must 0 convert "$from" "made/x.$suffix" --format "$name"
        cmp "two/x.$suffix" "made/x.$suffix" || fail "$from as $name is not what kiln-export writes"
        [ "$(echo made/*)" = "made/x.$suffix" ] || fail "$from as $name left $(echo made/*)"
        rm "made/x.$suffix" "two/x.$suffix"
        pairs=$((pairs + 1))
    done
done
[ $pairs -ge 90 ] || fail "only $pairs pairs"

# Filters, moves and the degree are those of kiln-export.
must 0 kiln import in/ply.ply one.db
as_exported() { # suffix, options
    local suffix=$1; shift
    must 0 kiln export one.db --layer source "$@" -w -o "two/o.$suffix"
    must 0 convert in/ply.ply "made/o.$suffix" "$@"
    cmp "two/o.$suffix" "made/o.$suffix" || fail "$* is not what kiln-export writes"
    rm "made/o.$suffix"
}
as_exported ply --filter-value opacity,gt,0.5 --filter-box '-2,-2,-2,2,2,2' --sh-degree 1
as_exported spz --translate 1,2,3 --rotate 30,40,50 --scale 2 --filter-sphere 0,0,0,3
as_exported ply --order baked --columns inria --no-normals
must 2 convert in/ply.ply made/f.glb --frame as-is
must 0 convert in/ply.ply made/a.spz --export-frame as-is
must 0 kiln export one.db --layer source --frame as-is -w -o two/a.spz
cmp two/a.spz made/a.spz || fail '--export-frame'
must 0 convert made/a.spz made/b.ply --import-frame as-is
must 0 convert in/ply.ply -V opacity,gt,0.5 -s 2 -H 1 -N made/c.ply
must 0 convert in/ply.ply --filter-value opacity,gt,0.5 --scale 2 --sh-degree 1 made/d.ply
cmp made/c.ply made/d.ply || fail 'letters of splat-transform'
for letter in -t -r -B -S; do
    must 2 convert in/ply.ply $letter 1,2,3 made/e.ply
    grep -q 'turned by 180 degrees' err || fail "$letter: $(cat err)"
done

# several files, and a packed one
must 0 kiln import in/ply.ply join.db --add 'in/splat.splat;translate=5,0,0' --add in/ply.ply.gz
must 0 kiln export join.db --layer source -o two/join.ply
must 0 convert in/ply.ply 'in/splat.splat;translate=5,0,0' in/ply.ply.gz made/join.ply
cmp two/join.ply made/join.ply || fail 'several files'

# streams
convert in/ply.ply - <in/ply.ply >made/s.ply && cmp in/ply.ply made/s.ply || fail 'to standard output'
convert - - --format spz <in/ply.ply >made/s.spz && cmp in/spz.spz made/s.spz || fail 'from standard input'
must 2 convert - - made/x.ply <in/ply.ply
must 2 convert in/ply.ply - --format sog-folder
must 3 convert - made/x.ply </dev/null

# folders, pages, and what takes a bake
must 0 convert in/ply.ply made/sog --format sog-folder
[ -s made/sog/meta.json ] || fail 'a folder'
must 0 convert in/ply.ply made/page.html
must 0 kiln export one.db --layer source -w -o two/page.html
cmp two/page.html made/page.html || fail 'a page is not what kiln-export writes'
for format in lod rad 3dtiles; do
    must 2 convert in/ply.ply "made/x.$format" --format $format
    grep -qF "kiln pipeline 'in/ply.ply' --export $format" err || fail "$format: $(cat err)"
done

# what is there
cp in/ply.ply made/mine.splat
must 2 convert in/ply.ply made/mine.splat
cmp in/ply.ply made/mine.splat || fail 'a file that is not ours was replaced'
must 0 convert in/ply.ply made/mine.splat -w
must 2 convert in/ply.ply in/ply.ply -w
must 2 convert in/ply.ply
must 3 convert in/none.ply made/x.ply
[ ! -e made/x.ply ] || fail 'a file after a failure'

# ended in the middle: nothing is left; killed: what is left goes with the next
must 0 "$KILN_BIN/kiln-generate" --quiet scene large -n 300000 -c 1 -s 16x16
large=large/scene.ply
for to in csv html; do # without and with a bake
    mkdir ended
    "$KILN_BIN/kiln" convert --quiet "$large" ended/x.$to 2>err & run=$!
    for _ in $(seq 1000); do [ -z "$(ls -A ended)" ] || break; sleep 0.01; done
    kill -TERM $run
    wait $run; got=$?
    [ $got = 143 ] && [ -z "$(ls -A ended)" ] || fail "$to, ended: $got, $(ls -A ended) $(cat err)"
    "$KILN_BIN/kiln" convert --quiet "$large" ended/x.$to 2>err & run=$!
    for _ in $(seq 1000); do [ -z "$(ls -A ended)" ] || break; sleep 0.01; done
    kill -KILL $run
    wait $run 2>/dev/null
    must 0 convert in/ply.ply ended/x.$to
    [ "$(ls -A ended)" = x.$to ] || fail "$to, killed: $(ls -A ended)"
    rm -r ended
done

# kiln-export, given what is no manifest
must 3 kiln export in/ply.ply -o made/x.spz
grep -q 'kiln convert IN OUT' err || fail "kiln-export of a PLY: $(cat err)"
must 2 kiln export one.db --layer source -o -
grep -q 'kiln convert IN -' err || fail "kiln-export to standard output: $(cat err)"
