#!/bin/bash
# Every option of every stage, by the tables of --help-json, reaches the stage with its value by each way on which a bake's commands are
# made: the lines of `kiln pipeline --print-commands`, which scripts run on other hosts, and the jobs of kiln slurm, whose Slurm and
# whose stages are stand-ins here. What the printed commands make is what `kiln pipeline` makes.
. tests/e2e/lib.sh
. tests/e2e/slurm_fake.sh
HERE=$PWD/tests/e2e
cd "$KILN_TMP" || exit 1
export KILN_BIN XDG_STATE_HOME=$KILN_TMP/state
scene s 300 3 32x32
must 0 "$KILN_BIN/kiln" pipeline s --no-report
fake=$KILN_TMP/fake
slurm_fake "$fake"
# In front of each command of a stage in a job: notes it, runs nothing.
cat >wrap <<E1
#!/bin/sh
printf '%s\n' "\$@" >>'$KILN_TMP/wrapped'
E1
chmod +x wrap
# has_all STAGE FILE: the command of the stage, a word a line, has each word of `words`
has_all() {
    grep -qx ".*/kiln-$1" "$2" || fail "$1 is not in $2: $(cat "$2" err)"
    lost=$(grep -vxFf "$2" words)
    [ -z "$lost" ] || fail "$1 loses in $2: $lost"
}
for stage in $(sed -n 's/^STAGE(\([a-z]*\),.*/\1/p' "$HERE/../../pipelines/stages.def"); do
    stages=$stage # --level needs levels
    case $stage in tiles | render | export) stages=lod,$stage ;; esac
    python3 -BSE "$HERE/option_value.py" "$stage" >"all.$stage" || fail "$stage"
    test_case "every option of $stage is printed" && (
        cp "all.$stage" words
        mapfile -t typed < <(sed "s/^--/--$stage-/" words)
        must 0 "$KILN_BIN/kiln" pipeline s --stages $stages "${typed[@]}" --print-commands
        grep "/kiln-$stage' " out | tr -d "'" | tr ' ' '\n' >printed
        has_all $stage printed
    ); result
    test_case "every option of $stage reaches a job of kiln slurm" && (
        # What computes by force or in part is not for a bake over hosts.
        grep -vE '^--(force|shard|units)=' "all.$stage" >words
        mapfile -t typed < <(sed "s/^--/--$stage-/" words)
        rm -rf b wrapped "$fake"/job.* "$fake/ids"
        cp -r s b # a bake of its own, of which no other call is remembered
        PATH=$fake/bin:$PATH must 0 "$KILN_BIN/kiln" slurm b --stages $stages --wrapper "$KILN_TMP/wrap" "${typed[@]}"
        PATH=$fake/bin:$PATH slurm_fake_run
        [ -e wrapped ] || fail "$stage: no job ran it: $(cat b/bake/slurm/logs-*/* b/bake/slurm/ended)"
        has_all $stage wrapped
    ); result
done
test_case 'there are options to ask for' && (
    [ "$(cat all.* | wc -l)" -ge 250 ] || fail "$(cat all.* | wc -l) options were tried"
); result

python3 -BSE "$HERE/dialects.py" "$KILN_TMP" || fail 'no files'
test_case 'printed commands write what the pipeline writes, of a scene with an origin too' && (
    must 0 "$KILN_BIN/kiln" pipeline far.ply --out whole
    must 0 "$KILN_BIN/kiln" pipeline far.ply --out apart --print-commands
    cp out commands
    must 0 sh -e commands
    cmp whole/export/scene.ply apart/export/scene.ply || fail "exports differ: $(head -c 300 apart/export/scene.ply)"
    grep -aq '^property float x' apart/export/scene.ply || fail "the scene has no origin"
); result

test_case 'what was said of the origin once holds' && (
    must 0 "$KILN_BIN/kiln" pipeline far.ply --out said --no-keep-origin
    must 0 "$KILN_BIN/kiln" pipeline far.ply --out said --print-commands
    cp out commands
    must 0 sh -e commands
    grep -aq '^property double x' said/export/scene.ply || fail "what was said is forgotten"
); result
