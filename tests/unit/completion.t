#!/usr/bin/env bash
# The completion scripts that the option tables give: bash is asked word by word, zsh in a terminal of its own where it is
# installed.
set -u
. tests/cases.sh
"$KILN_BIN/kiln" completion bash >"$KILN_TMP/kiln.bash" || fail 'kiln completion bash'
"$KILN_BIN/kiln" completion zsh >"$KILN_TMP/_kiln" || fail 'kiln completion zsh'
! "$KILN_BIN/kiln" completion fish 2>/dev/null || fail 'a shell that is not known'
mkdir -p "$KILN_TMP/w/scene dir/inner" && cd "$KILN_TMP/w" || exit 1
touch a.db b.txt "scene dir/x.ply"

# Nothing but bash: no bash-completion, no program on the path. The completion function itself runs no program.
cat >"$KILN_TMP/ask" <<'E1'
PATH=/nowhere
. "$1"; shift
complete -p "${1##*/}" >/dev/null || exit 1
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_kiln
printf '<%s>' "${COMPREPLY[@]}"
E1
bash=$(command -v bash)
sorted() { sed 's/></>\n</g' | sort; }
is() { # what comes, in any order, words; the last one is being typed
    local want=$1 got; shift
    got=$("$bash" --norc "$KILN_TMP/ask" "$KILN_TMP/kiln.bash" "$@" 2>&1)
    [ "$(sorted <<<"$got")" = "$(sorted <<<"$want")" ] || fail "$*: $got, expected $want"
}
has() { # one of what comes, words
    local want=$1 got; shift
    got=$("$bash" --norc "$KILN_TMP/ask" "$KILN_TMP/kiln.bash" "$@" 2>&1)
    [[ $got == *"<$want>"* ]] || fail "$*: $got, without $want"
}

test_case 'commands of kiln' && (
    is '<pipeline><prune>' kiln p
    has verify kiln ''
    has info kiln help i
    is '<--help>' kiln --h
); result

test_case 'options of a stage' && (
    is '<--min-opacity>' kiln prune --min-o
    is '<--min-opacity>' kiln prune --min_o
    is '<--min-opacity>' kiln-prune --min-o
    is '<--min-opacity>' /usr/bin/kiln-prune --min-o
    is '<>' kiln prune --min-opacity 0 # a number: nothing is offered
    is '<--merge><--merge-distance>' kiln prune --mer
    is '<--no-merge>' kiln prune --no-m
); result

test_case 'values of options' && (
    is '<png><png16>' kiln render x.db --format p
    is '<png><png16>' kiln render x.db --format = p
    is '<--format=png><--format=png16>' kiln render x.db --format=p
    is '<npy><none>' kiln-render -f n
    is '<clamp>' kiln prune --max_scale_policy c
    is '<inria>' kiln pipeline s --profile in
    is '<--render-format><--render-undistort-filter><--render-camera><--render-cameras><--render-scale><--render-output>' kiln \
        pipeline --render-
); result

test_case 'files, folders and other commands' && (
    is '<b.txt><a.db><scene dir>' kiln pipeline ''
    is '<a.db><scene dir>' kiln info ''
    is '<>' kiln info a.db ''
    is '<a.db><scene dir>' kiln import b.txt ''
    is '<scene dir/x.ply><scene dir/inner>' kiln import 'scene dir/'
    is '<a.db><scene dir>' kiln knn --neighbors 4 --force --json=yes ''
    is '<a.db><scene dir>' kiln knn --neighbors = 4 --sync = yes ''
    is '<scene dir>' kiln pipeline --out s
    is '<demo>' kiln generate d
    is '<--sbatch><--sbatch-task><--sbatch-round>' kiln slurm --sb
    is '<--tasks>' kiln slurm --tasks
    is '<inria>' kiln slurm s --profile in
    is '<>' kiln slurm --pri
    is '<b.txt><a.db><scene dir>' kiln slurm ''
    is '<scene dir>' kiln generate demo ''
    is '<bash>' kiln completion b
    is '<a.db><scene dir>' kiln knn -- ''
    is '<>' kiln knn -- --
    is '<>' kiln nothing --x
); result

test_case 'every option that a program shows is offered' && (
    shopt -s nullglob
    for path in "$KILN_BIN"/kiln-*; do
        program=${path##*/}
        offered=$("$bash" --norc "$KILN_TMP/ask" "$KILN_TMP/kiln.bash" "$program" --)
        for name in $("$path" --help-json | sed -n 's/.*{"name": "\([^"]*\)".*/\1/p'); do
            [[ $offered == *"<--$name>"* ]] || fail "$program --$name is not offered in bash"
            grep -q -- "--${name}[=,}[]" "$KILN_TMP/_kiln" || fail "$program --$name is not in zsh's script"
        done
    done
); result

test_case 'zsh' && (
    command -v zsh >/dev/null || skip 'no zsh'
    cp "$KILN_TMP/_kiln" "$KILN_TMP/w/_kiln"
    cat >"$KILN_TMP/zask" <<'E2'
zmodload zsh/zpty || exit 1
zpty z zsh -f -i
type() { zpty -w -n z "$1"; }
hear() { local part; heard=; for i in {1..100}; do zpty -r -t z part && heard+=$part || { [[ $heard == *$1* ]] && break; sleep 0.05; }; done; }
type $'PS1=; fpath=('$PWD$' $fpath); autoload -Uz compinit; compinit -u -D; setopt noautomenu; print rea""dy\n'
hear ready
for line in "$@"; do
    type $'\C-u'$line$'\t\t'
    hear "$(cat want)"
    print -r -- "$heard"
done
zpty -d z
E2
    zis() { # what must be in the answer, line
        printf '%s' "$1" >want
        zsh -f "$KILN_TMP/zask" "$2" 2>&1 | grep -qF -- "$1" || fail "zsh: '$2' does not give '$1'"
    }
    zis 'pacity' 'kiln prune --min-o'
    zis 'drop Gaussians with less opacity than this' 'kiln-prune --min-'
    zis 'png16' 'kiln render a.db --format='
    zis 'normalises scales' 'kiln p'
    zis 'info a.db' 'kiln info a'
    zis 'demo' 'kiln generate d'
    zis 'ncel' 'kiln slurm --ca'
); result
