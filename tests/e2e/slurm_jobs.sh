# slurm_jobs -- kiln slurm with a stand-in for the stages (slurm_stand_in.sh); what e2e/slurm_jobs.t and soak/slurm_jobs.t share.
# Sourced from the repository's root after lib.sh and slurm_cluster.sh.
#
#   jobs_start [LINE...]  starts a cluster (slurm_start) for the stand-in, and goes into KILN_TMP
#   jobs_place            makes a kiln with these stages alone, and goes into KILN_TMP
#   new NAME              the next bake is OUT=KILN_TMP/NAME
#   on_hosts WORD...      kiln slurm with these options, of that bake
#   says PATTERN          the last command says so
#   finished [N]          the bake is whole: each unit was computed once, N of them by a round's own job
#   wait_for COMMAND      until it succeeds
# kiln itself is the real one, which finds its stages beside itself.
jobs_place() {
    mkdir -p "$KILN_TMP/bin" "$KILN_TMP/share/splatkiln"
    cp "$KILN_BIN/kiln" "$KILN_TMP/bin/kiln"
    ln -s "$PWD/pipelines/slurm" "$KILN_TMP/share/splatkiln/slurm"
    for name in info import $STAGES lod; do ln -s "$PWD/tests/e2e/slurm_stand_in.sh" "$KILN_TMP/bin/kiln-$name"; done
    export KILN_BIN XDG_STATE_HOME=$KILN_TMP/state
    cd "$KILN_TMP" || fail "cd"
    mkdir "a scene"
}
jobs_start() {
    slurm_start "$KILN_TMP/cluster" "$@"
    jobs_place
}
on_hosts() {
    "$KILN_TMP/bin/kiln" slurm "a scene" --out "$out" --stages import,tiles,export --allow-partial --scratch-dir "it's here" "$@"
}
logs() { find "$out/slurm" -name "$1"; } # of all calls
says() { grep -qE -- "$1" "$KILN_TMP/out" "$KILN_TMP/err" || { cat "$KILN_TMP/out" "$KILN_TMP/err" >&2; fail "nothing says '$1'"; }; }
key() { printf '%028dab%d0' 0 "$1"; } # as slurm_stand_in.sh has it
claim() { # STAGE ROUND TASKS
    printf 'splatkiln-claim 1\nstage %s\nplan %s\nhost here\nstart now\ntasks %d\nunits 10\ndue 0-9\nwhat units\nend\n' \
        "$1" "$(key "$2")" "$3"
}
new() { out="$KILN_TMP/$1"; mkdir "$out"; }
finished() {
    [ "$(sort "$out/manifest.db" | grep -vc fresh)" = 30 ] || fail "units: $(cat "$out/manifest.db")"
    [ "$(grep -c fresh "$out/manifest.db")" = 3 ] || fail "stages: $(grep fresh "$out/manifest.db")"
    [ "$(cut -d ' ' -f 1-3 "$out/computed" | sort | uniq -d)" = '' ] || fail "computed twice: $(sort "$out/computed")"
    [ "$(grep -c here "$out/computed")" = "${1:-0}" ] || fail "computed by rounds: $(grep here "$out/computed")"
    [ ! -e "$out/manifest.db.claim" ] || fail "a claim is left"
    [ -z "$(find "$out/slurm/parts" -name '*.part')" ] || fail "parts are left"
    must 0 on_hosts --status; says '^finished$'
    [ "$(grep -cE '^(import|tiles|export) +fresh$' "$KILN_TMP/out")" = 3 ] || fail "status: $(cat "$KILN_TMP/out")"
}
wait_for() { for _ in $(seq 300); do eval "$1" && return; sleep 0.1; done; fail "waited too long for: $1; $(on_hosts --status)"; }
