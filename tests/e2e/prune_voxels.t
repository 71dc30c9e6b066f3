#!/bin/bash
# Pruning by voxels: what --filter-floaters and --filter-cluster drop is what the definition says, by numpy, on 66,000 Gaussians; the
# same on any threads, in parts, under a cap, killed, over hosts, and beside other rules.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
python3 -c 'import numpy' 2>/dev/null || skip "no numpy in $(command -v python3)"
T=$KILN_TMP
rows=66000 # two blocks
off='--max-spacing off --max-extent off --min-opacity off --min-scale off'
prune() { must 0 "$KILN_BIN/kiln-prune" "$@"; }
pruned() { digest "$1" | grep '^layer pruned'; }
kept() { sqlite3 "$1" "SELECT count FROM layer WHERE kind = 'pruned' ORDER BY id DESC LIMIT 1"; }
again() { cp "$T/start.db" "$T/$1.db"; }
# dropped FILE RULE: the count of the table in a record
dropped() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["rules"][sys.argv[2]]["dropped"])' "$@"; }
mkdir "$T/s"
py scene "$T/s/scene.ply" $rows 100.03,-7,3 || fail "scene"
kiln import "$T/s" "$T/start.db" >/dev/null && kiln knn "$T/start.db" >/dev/null || fail "start"
floaters='--filter-floaters 0.1,0.3,1/250' cluster='--filter-cluster 0.1,0.5,0.005 --seed-pos 101.1,-7,3'

test_step 'the floaters that the definition says' && (
    again floaters
    # shellcheck disable=SC2086
    prune "$T/floaters.db" $off $floaters --threads 1
    py dropped "$T/start.db" "$T/floaters.db" floaters 0.1 0.3 0.004 || fail "see above"
    pruned "$T/floaters.db" >"$T/floaters"
); result

test_step 'the cluster that the definition says' && (
    again cluster
    # shellcheck disable=SC2086
    prune "$T/cluster.db" $off $cluster --threads 1
    py dropped "$T/start.db" "$T/cluster.db" cluster 0.1 0.5 0.005 101.1,-7,3 || fail "see above"
    pruned "$T/cluster.db" >"$T/cluster"
); result
