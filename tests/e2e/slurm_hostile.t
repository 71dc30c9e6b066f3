#!/bin/bash
# A folder of a bake that somebody else has made: settings, commands, claim, lock, ended, links, pipes and parts in it are data at
# most. kiln slurm and its jobs, examples/gnu-parallel.sh and examples/kubernetes/bake.sh run nothing of it and change nothing
# outside of it. Slurm and kubectl are stand-ins. Each case has a folder of its own.
# starts first
. tests/e2e/lib.sh
. "${0%/*}/slurm_fake.sh"
examples=$PWD/examples
export HOSTILE=$KILN_TMP/hostile XDG_STATE_HOME=$KILN_TMP/state
mkdir -p "$HOSTILE" && cd "$HOSTILE" || fail "cd"

# ---- stand-ins ----
slurm_fake "$KILN_TMP"
# kubectl: a Job's pods run here, one after the other
cat >"$KILN_TMP/bin/kubectl" <<'E5'
#!/bin/bash
log=$HOSTILE/../pod.log
case "$1 $2" in
'apply -f')
    yaml=$(cat)
    code=$(printf '%s\n' "$yaml" | sed -n '/^            - |$/,/^          resources:/p' | sed '1d;$d;s/^              //')
    : >"$log"
    JOB_COMPLETION_INDEX=0 sh -c "$code" >>"$log" 2>&1
    echo $? >"$log.code" ;;
'get job') [ "$(cat "$log.code")" = 0 ] && echo Complete || echo Failed ;;
'get pods') echo pod/one ;;
'logs pod/one') cat "$log" ;;
esac
E5
chmod +x "$KILN_TMP"/bin/*
export PATH=$KILN_TMP/bin:$KILN_BIN:$PATH PAUSE=0 IMAGE=it TASKS=2 NAME=kiln-it

# ---- what is hostile ----
kiln generate scene small --gaussians 300 --cameras 2 --size 32x32 >/dev/null || fail "generate"
touched() { printf '$(touch %s/PWNED)`touch %s/PWNED`' "$HOSTILE" "$HOSTILE"; }
claim() { # STAGE TASKS [KEY]
    printf 'splatkiln-claim 1\nstage %s\nplan %s\nhost h\npid 1\nstart now\ntasks %s\nunits 5\ndue 0-4\nwhat units\nend\n' \
        "$1" "${3:-0123456789abcdef0123456789abcdef}" "$2"
}
# new NAME: a scene whose bake is $out
new() {
    scene=$HOSTILE/$1 out=$HOSTILE/$1/bake
    cp -r small "$scene" && mkdir -p "$out/slurm" "$out/parallel" || fail "new $1"
    rm -f PWNED
}
# What scripts once sourced and evaluated.
settings() {
    printf "folder='%s'\nmanifest='%s'\nkiln='%s'\nscripts='%s'\ntasks='2'\nsbatch_options='%s'\ntmpdir=\n%s\n" "$out/slurm" \
        "$out/manifest.db" \
        "$HOSTILE/evil" "$HOSTILE" "--wrap=$(touched)" "$(touched)" >"$out/slurm/settings"
    printf "'%s/evil-import' 'a' 'b' %s\n" "$HOSTILE" "$(touched)" >"$out/slurm/commands"
    printf "'%s/evil/kiln-%s' %s 'b'\n" "$HOSTILE" import "$(touched)" >>"$out/slurm/commands"
}
for name in evil evil-import shared.sh; do
    printf '#!/bin/sh\ntouch "%s/PWNED"\n' "$HOSTILE" >$name
    chmod +x $name
done
victims=$KILN_TMP/victims
make_victims() {
    rm -rf "$victims" && mkdir -p "$victims/folder"
    for v in one two folder/three; do echo "the bytes of $v" >"$victims/$v"; done
}
make_victims

wrong() { echo "FAIL: $case: $*" >&2; right=no; }
# harmless: nothing ran, and nothing outside has changed
harmless() {
    [ ! -e PWNED ] || { wrong "a command of the bake's folder ran"; rm PWNED; }
    [ "$(cd "$victims" && find . | sort | xargs)" = '. ./folder ./folder/three ./one ./two' ] &&
        [ "$(cd "$victims" && cat one two folder/three)" = "$(printf 'the bytes of %s\n' one two folder/three)" ] || {
        wrong "something outside has changed: $(cd "$victims" && find . -newer "$HOSTILE/evil" ! -type d | xargs)"
        make_victims
    }
    ! grep -q "$(printf '\033')" "$KILN_TMP/out" "$KILN_TMP/err" || wrong "an escape reaches the terminal"
}
try() { # CODES command...: it ends with one of these
    local codes=$1; shift
    timeout -k 5 "${HANGS:-60}" "$@" >"$KILN_TMP/out" 2>"$KILN_TMP/err" </dev/null
    code=$?
    case " $codes " in *" $code "* | ' any ') [ $code -lt 124 ] || [ $code = 143 ] ||
        wrong "exit $code: $*" ;; *) wrong "exit $code, not $codes: $*: $(tail -n 2 "$KILN_TMP/err")" ;; esac
    harmless
}
says() { grep -qE -- "$1" "$KILN_TMP/out" "$KILN_TMP/err" || wrong "nothing says '$1': $(cat "$KILN_TMP/out" "$KILN_TMP/err")"; }
slurm() { local codes=$1; shift; try "$codes" "$KILN_BIN/kiln" slurm "$scene" "$@"; }
# job: runs the job that was submitted last, as Slurm would: script and words are behind sbatch's options
job() {
    local codes=$1
    slurm_fake_words
    SLURM_JOB_ID=1 SLURM_ARRAY_JOB_ID=${2:+1} SLURM_ARRAY_TASK_ID=${2:-} try "$codes" sh "${words[@]}"
}
begin() { # CASE
    case=$1 right=yes
    rm -f "$KILN_TMP/ids" "$KILN_TMP"/job.*
    new "$case"
}
end() { [ $right = yes ] || exit 1; }

# ---- kiln slurm ----
test_case 'settings-and-commands' && (
    begin settings-and-commands
    settings
    slurm 'any' --status
    slurm 'any' --cancel
    slurm '0'; says 'job 1 is submitted'
    grep -q evil "$KILN_TMP/job.1" && wrong "the job has words of the settings"
    grep -q -- --wrap "$KILN_TMP/job.1" && wrong "the job has options of the settings"
    job '0'
    job '0' 1
    slurm '0' --status
    end
); result

test_case 'settings-appear-later' && (
    begin settings-appear-later # somebody writes them while jobs wait
    slurm '0'
    settings
    job '0'
    job 'any' 1
    end
); result

for name in lock settings settings.new commands commands.new begun ended ended.new cancelled partial-import arrays chain; do
    test_case "link-$name" && (
        begin "link-$name"
        rm -f "$out/slurm/$name"
        ln -s "$victims/one" "$out/slurm/$name"
        slurm 'any'
        slurm 'any' --status
        slurm 'any' --cancel
        slurm 'any'
        [ ! -e "$KILN_TMP/ids" ] || { job 'any'; job 'any' 1; }
        slurm 'any' --wait
        end
    ); result
done
for name in lock begun ended cancelled settings commands chain; do
    test_case "pipe-$name" && (
        begin "pipe-$name"
        rm -f "$out/slurm/$name"
        mkfifo "$out/slurm/$name"
        slurm 'any' --status
        slurm 'any' --cancel
        slurm 'any'
        [ ! -e "$KILN_TMP/ids" ] || job 'any'
        end
    ); result
done

test_case 'link-to-a-folder' && (
    begin link-to-a-folder
    rm -r "$out/slurm"
    ln -s "$victims/folder" "$out/slurm"
    slurm 3; says 'is a link or a file'
    slurm 3 --status
    slurm 3 --cancel
    end
); result

test_case 'link-to-a-folder-of-parts' && (
    begin link-to-a-folder-of-parts
    ln -s "$victims/folder" "$out/slurm/parts"
    slurm 3; says 'is a link or a file'
    slurm 3 --status
    end
); result

test_case 'pipe-as-a-folder' && (
    begin pipe-as-a-folder
    rm -r "$out/slurm"
    mkfifo "$out/slurm"
    slurm 3
    slurm 3 --status
    end
); result

test_case 'links-of-logs' && (
    begin links-of-logs # Slurm opens logs by their paths, appending
    for i in $(seq 20); do ln -s "$victims/two" "$out/slurm/import-round-$i.log"; done
    slurm 0
    log=$(sed -n 's/^--output=//p' "$KILN_TMP/job.1" | sed 's/%j/1/')
    echo 'what the job says' >>"$log"
    harmless
    end
); result

test_case 'a-link-in-place-of-the-logs' && (
    begin a-link-in-place-of-the-logs # after the first job was submitted
    slurm 0
    for logs in "$out"/slurm/logs-*; do rm -r "$logs" && ln -s "$victims/folder" "$logs"; done
    job 'any'
    says 'the folder of the logs'
    end
); result

test_case 'links-of-parts' && (
    begin links-of-parts
    slurm 0
    job 0 # leaves a claim, and an array in the queue
    key=$(sed -n 's/^plan //p' "$out/manifest.db.claim")
    for i in 1 2; do ln -s "$victims/two" "$out/slurm/parts/import-$key-$i-of-2.part"; done
    slurm 0 --status; says 'a round is open: 0 of'
    job 0 1
    job 'any'
    end
); result

test_case 'pipes-of-parts' && (
    begin pipes-of-parts
    slurm 0 --tasks 2
    job 0
    key=$(sed -n 's/^plan //p' "$out/manifest.db.claim")
    for i in 1 2; do mkfifo "$out/slurm/parts/import-$key-$i-of-2.part"; done
    slurm 0 --status
    job 0 1
    job 'any'
    end
); result

# ---- claims ----
hostile_claims() {
    claim ../../x 2
    printf '\0'
    claim "\$(touch $HOSTILE/PWNED)" 2
    printf '\0'
    claim 'x;touch${IFS}PWNED' 2
    printf '\0'
    claim "$(printf 'prune\033]0;title\007')" 2
    printf '\0'
    claim render 1000000000000
    printf '\0'
    claim render 200000
    printf '\0'
    claim render 0
    printf '\0'
    claim render 2 "'\$(touch $HOSTILE/PWNED)'"
    printf '\0'
    claim render 2 | grep -v '^plan'
    printf '\0'
    claim render 2 | sed '$d'
    printf '\0'
    printf "'/x/kiln-prune' \$(touch %s/PWNED)\n%s" "$HOSTILE" "$(claim prune 2)" # like a line of --print-commands
    printf '\0'
    claim render 2 | sed "s|^what.*|what '\$(touch $HOSTILE/PWNED)'|; s|^host.*|host $(printf '\033')[2Jh|"
    printf '\0'
    claim "import' 'x" 2
}
i=0
while IFS= read -r -d '' text || [ -n "$text" ]; do
    i=$((i + 1))

    test_case "claim-$i" && (
        begin "claim-$i"
        : >"$out/manifest.db"
        printf %s "$text" >"$out/manifest.db.claim"
        slurm 'any' --status
        slurm 'any' --cancel
        slurm 'any'
        [ ! -e "$KILN_TMP/ids" ] || job 'any'
        [ ! -e "$KILN_TMP/ids" ] || [ "$(cat "$KILN_TMP/ids")" -le 3 ] || wrong "$(cat "$KILN_TMP/ids") jobs were submitted"
        slurm 'any' --status
        try 'any' "$examples/gnu-parallel.sh" "$scene"
        try 'any' "$examples/kubernetes/bake.sh" "$scene"
        if [ -x "$KILN_BIN/kiln" ] && "$KILN_BIN/kiln" help | grep -q '^  claim '; then
            try '0 3' "$KILN_BIN/kiln" claim "$out/manifest.db"
            [ $code = 3 ] && [ ! -s "$KILN_TMP/out" ] || [ "$i" = 12 ] ||
                wrong "kiln claim prints a claim that is none: $(cat "$KILN_TMP/out")"
        fi
        end
    ); result
done < <(hostile_claims)

test_case 'claim-pipe' && (
    begin claim-pipe
    mkfifo "$out/manifest.db.claim"
    slurm 'any' --status
    slurm 'any'
    [ ! -e "$KILN_TMP/ids" ] || job 'any'
    try 'any' "$examples/gnu-parallel.sh" "$scene"
    try 'any' "$examples/kubernetes/bake.sh" "$scene"
    end
); result

# ---- what ended says ----
for text in '5 tiles \033]0;title\007\033[31mred' '5 ../../x y' '999999999999999999999 tiles x' '-1 tiles x' '0' '' \
    'a[$(touch PWNED)] tiles x' \
    '5 $(touch PWNED) x' '0 tiles'; do
    test_case "ended says '$text'" && (
        begin "ended-$(printf '%s' "$text" | cksum | cut -d ' ' -f 1)"
        # shellcheck disable=SC2059 # with its escapes
        printf -- "$text\n" >"$out/slurm/ended"
        mkdir -p "$out/slurm/parts"
        slurm 'any' --status
        slurm 'any' --wait
        end
    ); result
done
# ---- names ----
names=('a $(touch PWNED) b' 'a`touch PWNED`b' "a';touch PWNED;'b" 'a{= system("touch PWNED") =}b' 'a{}b{%}' $'a\nb' 'a%jb' 'a|b' 'a\b' '-rf'
    'kiln-import' "kiln-tiles' x" ' blank ')
for i in "${!names[@]}"; do
    test_case "name: ${names[i]//$'\n'/ }" && (
        begin "name-$i"
        mv "$scene" "$HOSTILE/${names[i]}" && scene=$HOSTILE/${names[i]} out=$scene/bake
        slurm 'any'
        if [ -e "$KILN_TMP/ids" ]; then job 0; fi
        slurm 'any' --status
        slurm 'any' --cancel
        rm -rf "$out"
        ! command -v parallel >/dev/null || try 'any' "$examples/gnu-parallel.sh" "$scene" --stages import,knn,prune
        [ -z "$(find "$HOSTILE" -name 'PWNED*')" ] || wrong "the name ran"
        rm -rf "$out"
        try 'any' "$examples/kubernetes/bake.sh" "$scene" --stages import,knn
        [ -z "$(find "$HOSTILE" -name 'PWNED*')" ] || wrong "the name ran"
        rm -rf "$scene"
        end
    ); result
done
# ---- the examples ----
for place in parallel parallel/parts parts; do
    test_case "example-link-$place" && (
        begin "example-link-$(basename "$place")-$(dirname "$place" | tr -d .)"
        rm -rf "${out:?}/$place"
        ln -s "$victims/folder" "$out/$place"
        ! command -v parallel >/dev/null || try 'any' "$examples/gnu-parallel.sh" "$scene" --stages import,knn,prune
        try 'any' "$examples/kubernetes/bake.sh" "$scene" --stages import,knn,prune
        end
    ); result
done

test_case 'example-links-of-scripts' && (
    begin example-links-of-scripts
    command -v parallel >/dev/null || skip "no parallel"
    try 0 "$KILN_BIN/kiln" pipeline "$scene" --stages import,knn
    try 0 "$KILN_BIN/kiln-prune" "$out/manifest.db" --plan --tasks 2
    key=$(sed -n 's/^plan //p' "$out/manifest.db.claim" 2>/dev/null) || :
    for ending in sh log ended; do ln -s "$victims/two" "$out/parallel/prune-$key-of-2.$ending"; done
    try 'any' "$examples/gnu-parallel.sh" "$scene" --stages import,knn,prune
    end
); result

# ---- what is remembered ----
test_case 'remembered-elsewhere' && (
    begin remembered-elsewhere # by a variable that leads into the bake, as a scene's own .envrc might
    mkdir -p "$out/state"
    XDG_STATE_HOME=$out/state slurm 0 --sbatch=--partition=one
    [ -z "$(find "$out/state" -type f)" ] || wrong "it was remembered in the bake's own folder"
    end
); result

test_case 'remembered' && (
    begin remembered
    slurm 0 --sbatch='--gres=gpu:1 --constraint="a|b"' --tasks 3
    slurm 0
    last=$KILN_TMP/job.$(cat "$KILN_TMP/ids")
    grep -qx -- '--gres=gpu:1' "$last" && grep -qx -- '--constraint=a|b' "$last" && grep -qx 'tasks=3' "$last" ||
        wrong "nothing was remembered"
    file=$(grep -l "^bake $out\$" "$XDG_STATE_HOME"/splatkiln/slurm/*) || wrong "there is no file"
    chmod g+w "$file" # others may write to it now
    slurm 0; says 'others may write'
    last=$KILN_TMP/job.$(cat "$KILN_TMP/ids")
    ! grep -q gres "$last" || wrong "a file was read that others may write to"
    slurm 0 --sbatch=--gres=gpu:1
    mv "$file" "$KILN_TMP/moved" && ln -s "$KILN_TMP/moved" "$file"
    slurm 0; says 'is a link'
    last=$KILN_TMP/job.$(cat "$KILN_TMP/ids")
    ! grep -q gres "$last" || wrong "a link was read"
    end
); result
