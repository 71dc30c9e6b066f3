# pruning.sh -- what tests of kiln-prune share, which compare its layers. Behind lib.sh.

prune() { must 0 "$KILN_BIN/kiln-prune" "$@"; }
pruned() { digest "$1" | grep '^layer pruned'; }
# imported SCENE MANIFEST: as far as kiln-prune begins
imported() { kiln import "$1" "$2" >/dev/null && kiln knn "$2" >/dev/null || fail "start of $2"; }
# dropped FILE RULE: the count of the table in a record
dropped() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["rules"][sys.argv[2]]["dropped"])' "$@"; }
# over_hosts MANIFEST [option...]: prunes on two hosts; $rounds says in how many rounds
over_hosts() {
    local db=$1 shard; shift
    prune "$db" "$@" --plan --tasks 2
    for ((rounds = 0; rounds < 9; rounds++)); do
        [ -e "$db.claim" ] || return 0
        for shard in 1 2; do prune "$db" "$@" --shard $shard/2 --part "$db.parts"; done
        prune "$db" "$@" --gather "$db.parts" --remove-parts
    done
    fail "the rounds do not end"
}
