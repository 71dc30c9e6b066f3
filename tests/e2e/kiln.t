#!/bin/bash
# kiln, the front command: it bakes what make pipeline bakes, keeps the exit codes of the programs (2, 3, 4, 5, 7), finds what lies
# beside it, and ends with a stage in hand at a clean point.
. tests/e2e/lib.sh
front() { "$KILN_BIN/kiln" "$@"; }
says() { grep -qF -- "$1" "$KILN_TMP/err" || fail "stderr lacks '$1': $(cat "$KILN_TMP/err")"; }
last() { [ "$(tail -n 1 "$KILN_TMP/err")" = "$1" ] || fail "the last line is not '$1': $(cat "$KILN_TMP/err")"; }

scene "$KILN_TMP/s" 6000 3 160x120
db=$KILN_TMP/s/bake/manifest.db
must 0 front pipeline "$KILN_TMP/s" --min_opacity 0.02 --chunk-max 512 --threads 2
cp "$KILN_TMP/out" "$KILN_TMP/first"

test_case 'it says where manifest, pictures and export are' && (
    grep -qx "baked:    $db" "$KILN_TMP/out" || fail "no place of the manifest: $(cat "$KILN_TMP/out")"
    grep -qx "pictures: $KILN_TMP/s/bake/renders" "$KILN_TMP/out" || fail "no place of the pictures"
    grep -qx "export:   $KILN_TMP/s/bake/export" "$KILN_TMP/out" || fail "no place of the export"
    grep -qx "look:     kiln serve $db" "$KILN_TMP/out" || fail "no next step"
    [ -s "$KILN_TMP/s/bake/renders/cam1.png" ] && [ -s "$KILN_TMP/s/bake/export/scene.ply" ] ||
        fail "pictures or export are missing"
); result

test_case 'the next step is quoted for a shell' && (
    must 0 "$KILN_BIN/kiln-generate" --quiet points "$KILN_TMP/it's" -n 500 -c 2 -s 32x32
    must 0 front pipeline "$KILN_TMP/it's" --stages import
    next=$(sed -n 's/^look: *//p' "$KILN_TMP/out")
    eval "set -- $next"
    [ "$3" = "$KILN_TMP/it's/bake/manifest.db" ] || fail "$next"
); result

test_case 'the same bake as that of make pipeline' && (
    make -s O="$KILN_MAKE_O" pipeline SCENE="$KILN_TMP/s" OUT="$KILN_TMP/made" MIN_OPACITY=0.02 CHUNK_MAX=512 \
        >"$KILN_TMP/make" 2>&1 ||
        { cat "$KILN_TMP/make"; fail "make pipeline"; }
    same "$db" "$KILN_TMP/made/manifest.db"
); result

test_case 'a second run does nothing' && (
    must 0 front pipeline "$KILN_TMP/s"
    [ "$(grep -c 'nothing to do' "$KILN_TMP/err")" = "$(grep -c '^STAGE([a-z]*, [0-9]*, ALWAYS' pipelines/stages.def)" ] ||
        fail "a second run did something: $(cat "$KILN_TMP/err")"
); result

before=$(digest "$db")

test_case '--quiet says nothing' && (
    must 0 front pipeline "$KILN_TMP/s" --quiet
    [ ! -s "$KILN_TMP/out" ] && [ ! -s "$KILN_TMP/err" ] || fail "--quiet says $(cat "$KILN_TMP/out" "$KILN_TMP/err")"
); result

test_case '--json is a document for each stage' && (
    must 0 front pipeline "$KILN_TMP/s" --json
    py stages "$KILN_TMP/out" "$STAGES" || fail "--json is not a document for each stage"
); result

test_case 'a report is written at the end' && (
    grep -qx "report:   $KILN_TMP/s/bake/report.html" "$KILN_TMP/first" || fail "no place of the report: $(cat "$KILN_TMP/first")"
    grep -q '<h2>Cameras</h2>' "$KILN_TMP/s/bake/report.html" || fail 'no report'
); result

test_step 'the report is written again when something has changed' && (
    cp -r "$KILN_TMP/s/bake" "$KILN_TMP/told"
    must 0 front pipeline "$KILN_TMP/s" --out "$KILN_TMP/told" --no-report # a bake that was copied is looked at as a whole
    must 0 front pipeline "$KILN_TMP/s" --out "$KILN_TMP/told"
    page() { stat -c '%i %y' "$KILN_TMP/told/report.html"; }
    page=$(page)
    must 0 front pipeline "$KILN_TMP/s" --out "$KILN_TMP/told"
    [ "$(page)" = "$page" ] || fail 'nothing has changed, and there is another report'
    must 0 front pipeline "$KILN_TMP/s" --out "$KILN_TMP/told" --stages export
    [ "$(page)" = "$page" ] || fail 'a single stage writes a report'
    must 0 front pipeline "$KILN_TMP/s" --out "$KILN_TMP/told" --background white --no-report
    [ "$(page)" = "$page" ] || fail '--no-report writes one'
    must 0 front pipeline "$KILN_TMP/s" --out "$KILN_TMP/told" --background black
    [ "$(page)" != "$page" ] || fail 'something has changed, and there is no other report'
); result

test_case 'a page of the user stays, and a report that cannot be written fails no bake' && (
    echo mine >"$KILN_TMP/told/report.html" # of the user: the bake ends before it begins
    must 2 front pipeline "$KILN_TMP/s" --out "$KILN_TMP/told" --background white
    [ "$(cat "$KILN_TMP/told/report.html")" = mine ] || fail 'a page of the user was replaced'
    must 0 front pipeline "$KILN_TMP/s" --out "$KILN_TMP/told" --background white -w
    grep -q '<h2>Cameras</h2>' "$KILN_TMP/told/report.html" || fail 'no report with -w'
    rm "$KILN_TMP/told/report.html"
    mkfifo "$KILN_TMP/told/report.html"
    must 0 front pipeline "$KILN_TMP/s" --out "$KILN_TMP/told"; says 'its report could not be written'
    rm -r "$KILN_TMP/told"
); result

test_case '--print-commands: run by a shell they are the bake' && (
    must 0 front pipeline "$KILN_TMP/s" --out "$KILN_TMP/it's by hand" --min_opacity 0.02 --chunk-max 512 --threads 2 \
        --print-commands
    [ ! -e "$KILN_TMP/it's by hand" ] || fail "--print-commands made something"
    [ "$(sed "s/.*kiln-\([a-z]*\)'.*/\1/" "$KILN_TMP/out" | paste -sd ' ')" = "import $STAGES report" ] ||
        fail "commands: $(cat "$KILN_TMP/out")"
    sh -e "$KILN_TMP/out" >/dev/null 2>"$KILN_TMP/err" || fail "the commands: $(cat "$KILN_TMP/err")"
    same "$db" "$KILN_TMP/it's by hand/manifest.db"
    [ -s "$KILN_TMP/it's by hand/report.html" ] || fail "the commands make no report"
); result

test_case '--print-commands checks options and names' && (
    must 2 front pipeline "$KILN_TMP/s" --print-commands --min-opacty 1
    must 2 front pipeline "$KILN_TMP/s" --print-commands --out 'a
b'; says 'has a line break'
); result

test_case 'a wrong command line ends with 2' && (
    must 2 front pipeline "$KILN_TMP/s" --min-opacty 1; says "did you mean '--min-opacity'?"
    must 2 front pipeline "$KILN_TMP/s" --format npy; says "'--render-format' or '--export-format'?"
    must 2 front pipeline "$KILN_TMP/s" --ram 0
    last 'kiln pipeline: --ram 0 leaves no memory at all; give a size such as 512M, or 50%'
    must 2 front prun x; says "did you mean 'prune'?"
    must 2 front pruen x; says "did you mean 'prune'?"
    must 2 front foo x; says "there is no command 'foo', see 'kiln help'"
    must 2 front pipeline "$KILN_TMP/s" --stages foo; says "--stages: there is no stage 'foo'. See 'kiln help'"
    must 2 front pipeline "$KILN_TMP/s" --foo 1; says "unknown option '--foo', see "
    must 2 front ../bin/kiln-info x
    must 2 front
); result

test_case 'a scene that is not there ends with 3' && (
    must 3 front pipeline "$KILN_TMP/none"; last 'kiln pipeline: kiln-import ended with exit code 3 (bad input)'
    [ ! -e "$KILN_TMP/none.bake" ] || fail "a scene that is not there left a bake"
); result

test_case 'a stage that lacks another ends with 4' && (
    must 0 front import "$KILN_TMP/s" "$KILN_TMP/new/manifest.db"
    must 4 front pipeline --out "$KILN_TMP/new" --stages tiles
    last 'kiln pipeline: kiln-tiles ended with exit code 4 (a needed stage is missing, stale or partial)'
); result

test_case 'a cap that is too small ends with 5, and refusals change nothing' && (
    must 5 front pipeline "$KILN_TMP/s" --force --prune-ram 1M
    last 'kiln pipeline: kiln-prune ended with exit code 5 (the memory cap is too small, or out of memory)'
    [ "$before" = "$(digest "$db")" ] || fail "refusals changed the bake"
); result

test_case 'a partial bake ends with 7, and --allow-partial goes on' && (
    cp -r "$KILN_TMP/s/bake" "$KILN_TMP/part"
    KILN_FAULT='unit=*cam1*:abort' must 7 front pipeline --out "$KILN_TMP/part" --stages tiles,render,export --background white
    says 'kiln pipeline: kiln-render ended with exit code 7 (finished partially)'
    KILN_FAULT='unit=*cam1*:abort' must 7 front pipeline --out "$KILN_TMP/part" --stages tiles,render,export --background white \
        --allow-partial
    says "lacks units that kiln-render gave up"
    grep -q 'kiln-export' "$KILN_TMP/err" || fail "--allow-partial did not go on"
    must 0 front pipeline --out "$KILN_TMP/part" --stages tiles,render,export
); result

test_case 'kiln help names the programs' && (
    must 0 front help
    for name in pipeline convert slurm help completion import $STAGES compare doctor generate info report verify; do
        grep -q "^  $name " "$KILN_TMP/out" || fail "kiln help lacks $name"
    done
); result

test_case 'help fits 80 columns' && (
    for words in 'help' 'help pipeline' 'help prune' 'help slurm' 'help convert' 'pipeline --help' 'pipeline --help-all' '--help'; do
        # shellcheck disable=SC2086 # words
        must 0 front $words
        [ -z "$(awk 'length > 80' "$KILN_TMP/out")" ] || fail "kiln $words is wider than 80 columns"
        grep -q '^Usage: kiln' "$KILN_TMP/out" || fail "kiln $words has no usage"
    done
); result

test_case 'options of kiln pipeline, --version and info' && (
    must 0 front pipeline --help-all
    for option in --min-opacity --render-format --export-format --out; do
        grep -q -- " $option " "$KILN_TMP/out" || fail "no $option"
    done
    must 0 front --version; grep -qx 'kiln [0-9.]*' "$KILN_TMP/out" || fail "--version"
    must 0 front info "$db" --json
); result

mkdir "$KILN_TMP/bin" && cp "$KILN_BIN/kiln" "$KILN_TMP/bin"
cat >"$KILN_TMP/bin/kiln-cow" <<'E1'
#!/bin/sh
if [ "$1" = --help-json ]; then echo '{"summary": "says moo", "options": []}'; else echo "moo $*"; exit 9; fi
E1
chmod +x "$KILN_TMP/bin/kiln-cow"

test_case 'a program beside kiln is found' && (
    must 9 "$KILN_TMP/bin/kiln" cow 'a b' --c; grep -qx 'moo a b --c' "$KILN_TMP/out" || fail "a program beside it is not run"
    must 0 "$KILN_TMP/bin/kiln" help; grep -q '^  cow  *says moo' "$KILN_TMP/out" || fail "a program beside it is not listed"
); result

mkdir "$KILN_TMP/apart" && cp "$KILN_BIN"/kiln* "$KILN_TMP/apart"
for s in import $STAGES; do printf '\0' >>"$KILN_TMP/apart/kiln-$s"; done # another program, which does the same

test_step 'one process, or one for each stage: the same bake and the same words' && (
    for folder in "$KILN_BIN" "$KILN_TMP/apart"; do
        rm -rf "$KILN_TMP/one"
        must 0 "$folder/kiln" pipeline "$KILN_TMP/s" -o "$KILN_TMP/one" --min-opacity 0.02 --chunk-max 512 --threads 2
        [ "$before" = "$(digest "$KILN_TMP/one/manifest.db")" ] || fail "the stages of $folder give another bake"
        sed 's/ [0-9.]* s / N s /g' "$KILN_TMP/out" "$KILN_TMP/err" >"$KILN_TMP/said.${folder##*/}"
    done
    diff "$KILN_TMP/said.bin" "$KILN_TMP/said.apart" || fail "stages in one process say something else"
); result

test_case 'with nothing to do no other process is started' && (
    strace=$(command -v strace) && "$strace" -o /dev/null true 2>/dev/null || skip 'no strace'
    must 0 "$strace" -f -e trace=execve -o "$KILN_TMP/calls" "$KILN_BIN/kiln" pipeline "$KILN_TMP/s" --out "$KILN_TMP/one"
    [ "$(grep -c execve "$KILN_TMP/calls")" = 1 ] ||
        fail "with nothing to do, kiln pipeline starts $(grep execve "$KILN_TMP/calls")"
); result

test_case "--force of a stage is that stage's alone" && (
    must 0 "$KILN_BIN/kiln" pipeline --out "$KILN_TMP/one" --stages prune,chunk --prune-threads 1 --prune-force --prune-deadline 5 \
        --verbose
    [ "$(grep -c 'chunk: .*nothing to do' "$KILN_TMP/err")" = 1 ] || fail "--force of prune reached chunk: $(cat "$KILN_TMP/err")"
); result

test_case 'an option of render that export has not' && (
    must 0 "$KILN_BIN/kiln" pipeline "$KILN_TMP/s" -o "$KILN_TMP/one" --stages render,export --render-shard 1/2 --background white \
        --export spz
    says 'when all are stored, run the same command without --shard to finish the stage'
    [ -s "$KILN_TMP/one/export/scene.spz" ] || fail "render's --shard reached export: $(cat "$KILN_TMP/err")"
    [ "$(grep -c -- --shard "$KILN_TMP/err")" = 1 ] || fail "render's --shard reached export: $(cat "$KILN_TMP/err")"
); result

test_case 'kiln under the name of a stage is that stage' && (
    cp "$KILN_BIN/kiln" "$KILN_TMP/bin/kiln-knn"
    must 0 "$KILN_TMP/bin/kiln-knn" "$KILN_TMP/one/manifest.db"
    grep -q '^kiln-knn: .*nothing to do' "$KILN_TMP/err" || fail "kiln-knn is not knn"
    must 0 "$KILN_TMP/bin/kiln" knn "$KILN_TMP/one/manifest.db"
    grep -q '^kiln-knn: .*nothing to do' "$KILN_TMP/err" || fail "kiln knn is not knn"
); result

test_case 'a worker that computed for stages before is killed, and another goes on' && (
    rm -rf "$KILN_TMP/one"
    KILN_FAULT='unit=camera cam1:kill,times=1' must 0 "$KILN_BIN/kiln" pipeline "$KILN_TMP/s" -o "$KILN_TMP/one" --min-opacity \
        0.02 --chunk-max 512 --workers 1 --verbose
    says "kiln-render: warning: 'camera cam1' failed on worker 0 of the CPU and is tried again: the worker was killed"
    [ "$(sed -n 's/^kiln-[a-z]*: worker \([0-9]*\): .*/\1/p' "$KILN_TMP/err" | sort -u | wc -l)" = 2 ] ||
        fail "not one worker before the kill and one after it: $(cat "$KILN_TMP/err")"
    [ "$before" = "$(digest "$KILN_TMP/one/manifest.db")" ] || fail "the kill changed the bake"
    [ -z "$(ls "$KILN_TMP/one/" | grep -E 'wal|shm')" ] || fail "the manifest was left open: $(ls "$KILN_TMP/one")"
); result

for signal in INT TERM HUP KILL; do
    test_case "SIG$signal: the stage in hand ends at a clean point, and nothing runs on" && (
        rm -rf "$KILN_TMP/s/bake"
        KILN_FAULT='unit=0:hang' env --default-signal=HUP "$KILN_BIN/kiln" pipeline "$KILN_TMP/s" >/dev/null 2>"$KILN_TMP/err" &
        pid=$! child=
        for _ in $(seq 200); do child=$(pgrep -P $pid -f 'kiln-import --worker') && break; sleep 0.05; done
        [ -n "$child" ] || fail "no worker was started"
        kill -s $signal $pid
        wait $pid && code=0 || code=$?
        case $signal in INT) want=130 ;; TERM) want=143 ;; HUP) want=129 ;; KILL) want=137 ;; esac
        [ "$code" = "$want" ] || fail "SIG$signal ends kiln pipeline with $code: $(cat "$KILN_TMP/err")"
        for _ in $(seq 100); do kill -0 "$child" 2>/dev/null || break; sleep 0.05; done
        ! kill -0 "$child" 2>/dev/null || fail "SIG$signal left a worker running"
    ); result
done

test_case 'after signals the same command gives the same bake' && (
    must 0 front pipeline "$KILN_TMP/s" --min-opacity 0.02 --chunk-max 512
    [ "$before" = "$(digest "$db")" ] || fail "what was interrupted came out otherwise"
); result

test_case 'the bytes of a path need not be UTF-8' && (
    place=$KILN_TMP/$'H\xf6hle'
    mkdir "$place"
    cp "$KILN_TMP/s/scene.ply" "$KILN_TMP/s/cameras.json" "$place"
    must 0 front pipeline "$place" --chunk-max 512
    db=$place/bake/manifest.db
    for command in 'render --orbit 2 -o' 'render --depth -o' 'export -w -o'; do
        # shellcheck disable=SC2086
        must 0 front $command "$place/new/" "$db" --json
        python3 -m json.tool <"$KILN_TMP/out" >/dev/null || fail "$command: no JSON"
    done
    grep -q '"path": ".*/H?hle/new/scene.ply"' "$KILN_TMP/out" || fail "$(cat "$KILN_TMP/out")"
    must 0 front prune "$db" --against "$db" --json
    grep -q '"manifest": ".*/H?hle/bake/manifest.db"' "$KILN_TMP/out" || fail "$(cat "$KILN_TMP/out")"
); result

# interrupted command...: what it says of a SIGTERM while a unit hangs
interrupted() {
    KILN_FAULT='unit=1:hang' "$KILN_BIN/kiln" "$@" >"$KILN_TMP/out" 2>"$KILN_TMP/err" &
    pid=$! child=
    for _ in $(seq 200); do child=$(pgrep -P $pid) && break; sleep 0.05; done
    [ -n "$child" ] || fail "no worker was started: $(cat "$KILN_TMP/err")"
    kill $pid
    wait $pid && code=0 || code=$?
    [ $code = 143 ] || fail "exit $code: $*"
    tail -n 1 "$KILN_TMP/err"
}

test_case 'a run that stores nothing says so after a signal' && (
    for command in 'prune --dry-run --min-opacity 0.3' "export -o $KILN_TMP/once.ply" "render --orbit 3 -o $KILN_TMP/once/"; do
        # shellcheck disable=SC2086
        said=$(interrupted $command "$db") || exit 1
        [[ $said == *"; no unit is kept; run the same command to begin again" ]] || fail "$command: $said"
    done
    said=$(interrupted render --force "$db") || exit 1
    [[ $said == *"; finished units are kept; run the same command to continue" ]] || fail "$said"
); result
