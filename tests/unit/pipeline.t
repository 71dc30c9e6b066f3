#!/usr/bin/env bash
# The make rules of pipelines/pipeline.mk over stand-ins for the programs, which print their arguments.
set -u
bad=0
fail() { echo "$*"; bad=1; }
fake=$KILN_TMP/o home=$KILN_TMP/home
mkdir -p "$fake/bin" "$home" "$KILN_TMP/scene dir"
: >"$KILN_TMP/one.file.ply"
for stage in import knn prune chunk tiles render export generate; do
    cat >"$fake/bin/kiln-$stage" <<'EOF'
#!/bin/sh
stage=${0##*kiln-}
if [ "$1" = --help-make ]; then
    case $stage in
    prune) own='MIN_OPACITY:min-opacity' ;;
    render) own='FORMAT:format BACKGROUND:background PROFILE:profile' ;;
    tiles) own='PROFILE:profile' ;;
    export) own='FORMAT:format' ;;
    esac
    echo "VARS_$stage := $own THREADS:threads JOBS:threads DEVICES:devices DEVICE:devices"
    exit
fi
case " $* " in *' --version '*)
    case "$stage $*" in *--min-opacity=abc*) echo 'kiln-prune: not a number' >&2; exit 2 ;; esac
    exit
    ;;
esac
[ "$stage" != generate ] || mkdir -p "$2"
printf '%s' "$stage"
printf ' <%s>' "$@"
echo
[ "$stage" != "$BROKEN" ] || { echo "kiln-$stage: broken" >&2; exit 3; }
EOF
    chmod +x "$fake/bin/kiln-$stage"
done
printf 'all:\nO := %s\ninclude pipelines/pipeline.mk\n' "$fake" >"$KILN_TMP/mk"
bake() { BROKEN=${BROKEN:-} HOME=$home make --no-print-directory -f "$KILN_TMP/mk" "$@" 2>&1; }
has() { grep -qxF -- "$2" <<<"$1" || fail "expected: $2
got: $1"; }
lacks() { ! grep -qF -- "$2" <<<"$1" || fail "not expected: $2
got: $1"; }

S="$KILN_TMP/scene dir"
out=$(BACKGROUND=white PROFILE=env bake pipeline "SCENE=$S" MIN_OPACITY=0.02 JOBS=3 DEVICE=cpu)
[ "$(sed 's/ .*//' <<<"$out" | tr '\n' ' ')" = 'import knn prune chunk tiles render export baked: ' ] || fail "order: $out"
has "$out" "import <$S> <$S/bake/manifest.db> <--devices=cpu> <--threads=3>"
has "$out" "prune <$S/bake/manifest.db> <--devices=cpu> <--min-opacity=0.02> <--threads=3>"
lacks "$out" white # the environment does not count
lacks "$out" env

out=$(bake prune import "SCENE=$KILN_TMP/one.file.ply" PRUNE_JOBS=2 JOBS=4)
has "$out" "import <$KILN_TMP/one.file.ply> <$KILN_TMP/one.file.bake/manifest.db> <--threads=4>"
has "$out" "prune <$KILN_TMP/one.file.bake/manifest.db> <--threads=2>"
lacks "$out" knn

# shellcheck disable=SC2016 # the dollar signs are literal
out=$(bake render 'SCENE=~/a'"'"'b$HOME' 'OUT=~/o $x' 'BACKGROUND=a '"'"'"$(PATH)`;#b' RENDER_FORMAT=npy PROFILE=inria)
# shellcheck disable=SC2016
has "$out" "render <$home/o "'$x/manifest.db> <--background=a '"'"'"$(PATH)`;#b> <--format=npy> <--profile=inria>'

out=$(bake pipeline)
has "$out" "import <$fake/demo> <$fake/demo/bake/manifest.db>"
[ -e "$fake/demo.made" ] || fail 'no demo was made'

out=$(bake pipeline "SCENE=$S" CUDA_ARCHS='80 90' CUDA_HOME=/opt/cuda PREFIX=/opt CUDA=0) || fail "settings of the build: $out"

out=$(bake pipeline "SCENE=$S" MIN_OPACTY=1) && fail 'a typo was accepted'
grep -q 'did you mean MIN_OPACITY?' <<<"$out" || fail "no suggestion: $out"
lacks "$out" 'import <'
out=$(bake pipeline "SCENE=$S" FORMAT=npy) && fail 'an ambiguous name was accepted'
grep -q 'EXPORT_FORMAT or RENDER_FORMAT?' <<<"$out" || fail "no suggestion: $out"
out=$(bake knn "SCENE=$S" MIN_OPACITY=1) && fail 'an option of another stage was accepted'
lacks "$out" 'knn <'

out=$(bake pipeline "SCENE=$S" MIN_OPACITY=abc) && fail 'a wrong value was accepted'
has "$out" 'kiln-prune: not a number'
lacks "$out" 'import <' # told before any stage works

out=$(BROKEN=prune bake pipeline "SCENE=$S") && fail 'a failed stage does not fail the pipeline'
grep -q 'Error 3' <<<"$out" || fail "the exit code is not shown: $out"
has "$out" 'kiln-prune: broken'
lacks "$out" 'chunk <'
exit $bad
