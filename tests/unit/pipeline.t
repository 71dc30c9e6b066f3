#!/usr/bin/env bash
# kiln pipeline, and the make rules that call it, over stand-ins for the programs, which print their arguments.
set -u
. tests/cases.sh
fake=$KILN_TMP/o home=$KILN_TMP/home
mkdir -p "$fake/bin" "$home" "$KILN_TMP/scene dir"
: >"$KILN_TMP/one.file.ply"
cp "$KILN_BIN/kiln" "$fake/bin/kiln" # it finds the programs beside itself
stages=$(sed -n 's/^STAGE(\([a-z]*\),.*/\1/p' pipelines/stages.def | tr '\n' ' ')
always=$(sed -n 's/^STAGE(\([a-z]*\), [0-9]*, ALWAYS,.*/\1/p' pipelines/stages.def | tr '\n' ' ')
for stage in $stages generate; do
    cat >"$fake/bin/kiln-$stage" <<'EOF'
#!/bin/sh
stage=${0##*kiln-}
row() { # name kind default range help once aliases title
    printf '%s{"name": "%s", "letter": null, "kind": "%s", "arg": "X", "default": %s, "range": %s, "help": "%s", "aliases": [%s], "stored": true, "once": %s, "alone": false, "title": %s}' \
        "$comma" "$1" "$2" "$3" "$4" "$5" "$7" "$6" "${8:-false}"
    comma=,
}
if [ "$1" = --help-json ]; then
    comma=
    printf '{"version": 1, "program": "kiln-%s", "options": [' "$stage"
    row threads u32 '"0"' '"0..64"' threads false '"jobs"'
    row devices text '"auto"' null devices false '"device", "gpu"'
    row allow-partial bool null null 'go on' false
    case $stage in
    prune) row min-opacity f64 '"1/255"' '"0..1|off"' faint false; row dry-run bool null null look true ;;
    render) row format enum '"png"' '"png|npy"' pictures false; row background text null null colour false; row profile text null null whose false ;;
    tiles) row profile text null null whose false ;;
    export) row format text '"ply"' '"ply|chunks"' files false '' true; row output path null null where true ;;
    esac
    echo ']}'
    exit
fi
[ "$stage" != generate ] || mkdir -p "$2"
printf '%s' "$stage"
printf ' <%s>' "$@"
echo
[ "$stage" != "$BROKEN" ] || { echo "kiln-$stage: broken" >&2; exit "${CODE:-3}"; }
[ "$stage" != "$KILLED" ] || kill -9 $$
EOF
    chmod +x "$fake/bin/kiln-$stage"
done
printf 'all:\nO := %s\ninclude pipelines/pipeline.mk\n' "$fake" >"$KILN_TMP/mk"
export BROKEN='' KILLED='' CODE=
bake() { HOME=$home make --no-print-directory -f "$KILN_TMP/mk" "$@" 2>&1; }
pipeline() { HOME=$home "$fake/bin/kiln" pipeline "$@" 2>&1; }
has() { grep -qxF -- "$2" <<<"$1" || fail "expected: $2
got: $1"; }
lacks() { ! grep -qF -- "$2" <<<"$1" || fail "not expected: $2
got: $1"; }
says() { grep -qF -- "$2" <<<"$1" || fail "does not say: $2
got: $1"; }
ends() { # code, words: kiln pipeline ends with it; its output in $out
    local want=$1 got; shift
    out=$(pipeline "$@"); got=$?
    [ "$got" = "$want" ] || fail "exit $got, not $want: kiln pipeline $*: $out"
}
S="$KILN_TMP/scene dir"

# ---- make ----
test_case 'make pipeline: the stages in their order, with their options' && (
    out=$(BACKGROUND=white PROFILE=env bake pipeline "SCENE=$S" MIN_OPACITY=0.02 JOBS=3 DEVICE=cpu)
    [ "$(sed 's/ .*//' <<<"$out" | tr '\n' ' ')" = "$always" ] || fail "order: $out"
    has "$out" "import <$S> <$S/bake/manifest.db> <--threads=3> <--devices=cpu>"
    has "$out" "prune <$S/bake/manifest.db> <--min-opacity=0.02> <--threads=3> <--devices=cpu>"
    lacks "$out" white # the environment does not count
    lacks "$out" env
); result

test_case 'make of two stages' && (
    out=$(bake prune import "SCENE=$KILN_TMP/one.file.ply" PRUNE_JOBS=2 JOBS=4)
    has "$out" "import <$KILN_TMP/one.file.ply> <$KILN_TMP/one.file.bake/manifest.db> <--threads=4>"
    has "$out" "prune <$KILN_TMP/one.file.bake/manifest.db> <--threads=2>"
    lacks "$out" knn
); result

test_case "a packing's suffix goes, and then the format's" && (
    for name in two.sog.gz two.sog two.ply.ZST two.Compressed.PLY two.compressed.ply.gz; do
        : >"$KILN_TMP/$name"
        has "$(pipeline "$KILN_TMP/$name" --stages import)" "import <$KILN_TMP/$name> <$KILN_TMP/two.bake/manifest.db>"
    done
    has "$(pipeline "$KILN_TMP/.gz" --stages import)" "import <$KILN_TMP/.gz> <$KILN_TMP/.gz.bake/manifest.db>"
    has "$(pipeline "$KILN_TMP/.compressed.ply" --stages import)" \
        "import <$KILN_TMP/.compressed.ply> <$KILN_TMP/.compressed.bake/manifest.db>"
    mkdir "$KILN_TMP/two.sog.bake"
    has "$(pipeline "$KILN_TMP/two.sog.gz" --stages import)" "import <$KILN_TMP/two.sog.gz> <$KILN_TMP/two.sog.bake/manifest.db>"
    has "$(pipeline "$KILN_TMP/two.sog" --stages import)" "import <$KILN_TMP/two.sog> <$KILN_TMP/two.bake/manifest.db>"
); result

test_case 'make: signs that a shell knows' && (
    # shellcheck disable=SC2016 # the dollar signs are literal
    out=$(bake render 'SCENE=~/a'"'"'b$HOME' 'OUT=~/o $x' 'BACKGROUND=a '"'"'"$(PATH)`;#b' RENDER_FORMAT=npy PROFILE=inria THREADS=)
    # shellcheck disable=SC2016
    has "$out" "render <$home/o "'$x/manifest.db> <--format=npy> <--background=a '"'"'"$(PATH)`;#b> <--profile=inria>'
); result

test_case 'make without a scene, and settings of the build' && (
    out=$(bake pipeline)
    has "$out" "import <$fake/demo> <$fake/demo/bake/manifest.db>"
    [ -d "$fake/demo" ] || fail 'no demo was made'
    out=$(bake pipeline "SCENE=$S" CUDA_ARCHS='80 90' CUDA_HOME=/opt/cuda PREFIX=/opt CUDA=0) || fail "settings of the build: $out"
); result

test_case 'make: wrong names and values' && (
    ! out=$(bake pipeline "SCENE=$S" MIN_OPACTY=1) || fail 'a typo was accepted'
    says "$out" 'did you mean MIN_OPACITY?'
    lacks "$out" 'import <'
    ! out=$(bake pipeline "SCEN=$S") || fail 'a typo was accepted'
    says "$out" 'did you mean SCENE?'
    ! out=$(bake pipeline "SCENE=$S" FORMAT=npy) || fail 'an ambiguous name was accepted'
    says "$out" 'did you mean RENDER_FORMAT or EXPORT_FORMAT?'
    ! out=$(bake knn "SCENE=$S" MIN_OPACITY=1) || fail 'an option of another stage was accepted'
    lacks "$out" 'knn <'
    ! out=$(bake pipeline "SCENE=$S" MIN_OPACITY=abc) || fail 'a wrong value was accepted'
    says "$out" "--min-opacity takes a number from 0 to 1 or off, not 'abc'"
    lacks "$out" 'import <' # told before any stage works
); result

test_case "make: the last line above its own has the program's exit code" && (
    ! out=$(BROKEN=prune bake pipeline "SCENE=$S") || fail 'a failed stage does not fail the pipeline'
    has "$out" 'kiln-prune: broken'
    [ "$(tail -n 2 <<<"$out" | head -n 1)" = 'kiln pipeline: kiln-prune ended with exit code 3 (bad input)' ] ||
        fail "the last line: $out"
    says "$out" 'Error 3'
    lacks "$out" 'chunk <'
); result

test_case 'a stage that waits to be asked for' && (
    for words in --lod 'LOD=1'; do
        out=$(if [ "$words" = --lod ]; then pipeline "$S" $words; else bake pipeline "SCENE=$S" $words; fi)
        [ "$(sed 's/ .*//' <<<"$out" | tr '\n' ' ')" = "$stages" ] || fail "$words: $out"
    done
    has "$(bake lod "OUT=$KILN_TMP/x")" "lod <$KILN_TMP/x/manifest.db>"
    lacks "$(pipeline "$S" --no-lod)" 'lod <'
    ! out=$(pipeline "$S" --lod --stages tiles) || fail '--lod is dropped'
    says "$out" '--lod needs a stage that --stages leaves out'
); result

test_case 'kiln pipeline: options of all stages and of one' && (
    ends 0 "$S" --min_opacity 0.5 --jobs=3 --render-threads 2 -o "$KILN_TMP/x" --export-format chunks
    has "$out" "import <$S> <$KILN_TMP/x/manifest.db> <--threads=3>"
    has "$out" "prune <$KILN_TMP/x/manifest.db> <--min-opacity=0.5> <--threads=3>"
    has "$out" "render <$KILN_TMP/x/manifest.db> <--threads=2>"
    has "$out" "export <$KILN_TMP/x/manifest.db> <--for-viewers> <--format=chunks> <--threads=3>"
); result

test_case 'kiln pipeline --export' && (
    ends 0 "$S" --export ply,chunks
    has "$out" "export <$S/bake/manifest.db> <--for-viewers> <--format=ply,chunks>"
    ends 0 "$S" --export-format chunks # the longer name is the same option
    has "$out" "export <$S/bake/manifest.db> <--for-viewers> <--format=chunks>"
); result

test_case 'kiln pipeline --stages: in their order, and no scene is needed' && (
    ends 0 --stages render,tiles --out "$KILN_TMP/x" --no-allow-partial # in their order, and no scene is needed
    [ "$out" = "tiles <$KILN_TMP/x/manifest.db> <--allow-partial=no>
render <$KILN_TMP/x/manifest.db> <--allow-partial=no>" ] || fail "two stages: $out"
); result

test_case 'kiln pipeline: a scene that begins with a dash, and the demo' && (
    mkdir "$KILN_TMP/-odd"
    out=$(cd "$KILN_TMP" && "$fake/bin/kiln" pipeline -- -odd)
    has "$out" 'import <./-odd> <./-odd/bake/manifest.db>'
    out=$(cd "$KILN_TMP" && "$fake/bin/kiln" pipeline --demo 2>/dev/null)
    has "$out" 'import <kiln-demo> <kiln-demo/bake/manifest.db>'
    [ -d "$KILN_TMP/kiln-demo" ] && [ ! -e "$KILN_TMP/kiln-demo.unfinished" ] || fail 'no demo was made'
); result

for words in --min-opacty=1 --format=npy --prune-min-opacty=1 --min-opacity=2 --threads --stages=prun \
    '--stages=knn --min-opacity=1' \
    '--dry-run' '--stages=prune,chunk --dry-run' 'another-scene' '-z' '--out=' '--export=spx' '--export=ply,,chunks'; do
    test_case "refused: $words" && (
        # shellcheck disable=SC2086 # words
        ends 2 "$S" $words
        [ "$(wc -l <<<"$out")" = 1 ] && [[ $out == 'kiln pipeline: '* ]] || fail "$words: not one sentence: $out"
    ); result
done

test_case 'kiln pipeline without a scene' && (
    ends 2
    says "$out" 'kiln pipeline --demo'
    ends 0 "$S" --stages=prune --dry-run
    ends 0 "$S" --export-output x.ply # nothing reads what export writes
); result

for code in 2 3 4 5 6 7 70 74 75 130; do
    test_case "exit code $code of a stage" && (
        BROKEN=chunk CODE=$code ends $code "$S"
        [[ $(tail -n 1 <<<"$out") == "kiln pipeline: kiln-chunk ended with exit code $code ("*')' ]] || fail "$code: $out"
        lacks "$out" 'tiles <'
    ); result
done

test_case '--allow-partial' && (
    BROKEN=chunk CODE=7 ends 7 "$S" --allow-partial
    says "$out" 'export <'
    says "$(tail -n 1 <<<"$out")" 'lacks units that kiln-chunk gave up'
    BROKEN=chunk CODE=3 ends 3 "$S" --allow-partial
); result

test_case 'a stage that is killed' && (
    KILLED=tiles ends 137 "$S"
    says "$out" 'kiln pipeline: kiln-tiles was ended by signal 9 (Killed)'
); result

test_case 'a parent that ignores SIGCHLD' && (
    (trap '' CHLD; BROKEN=knn CODE=5 ends 5 "$S")
); result

rm "$fake/bin/kiln-tiles"

test_case 'a program that is missing' && (
    ends 74 "$S"
    says "$out" "kiln-tiles': No such file or directory; is the installation complete?"
    lacks "$out" 'import <'
); result
