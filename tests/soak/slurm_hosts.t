#!/bin/bash
# The demo scene over two hosts of a Slurm cluster, each a slurmd with a host name and a network of its own. In the middle a task is
# killed, a host is drained, a part is torn, a byte of another is flipped, and the controller is killed and comes back. The same
# command again ends with the digest of a bake at home, and only what was lost is computed again: it is counted. The folder of the
# bake counts as a network file system.
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
. tests/e2e/slurm_cluster.sh
slurm_own_network
wait_for() { for _ in $(seq 1200); do eval "$1" && return; sleep 0.1; done; fail "waited too long for: $1; $(on_hosts --status)"; }
scene=$KILN_TMP/demo out=$KILN_TMP/hosts
kiln generate demo "$scene" >/dev/null || fail "generate"
must 0 "$KILN_BIN/kiln" pipeline "$scene" --out "$KILN_TMP/home" --devices cpu
export XDG_STATE_HOME=$KILN_TMP/state
export KILN_ROUND_S=0 # counting pairs is a round of its own, as in a large scene
slurm_start_two "$KILN_TMP/cluster"
mkdir "$out" "$KILN_TMP/local"
on_hosts() { KILN_NETWORK_FS=$out "$KILN_BIN/kiln" slurm "$scene" --out "$out" --devices cpu --threads 1 --scratch-dir "$KILN_TMP/local" "$@"; }
claims() { grep -qx "$1" "$out/manifest.db.claim" 2>/dev/null; }

must 0 on_hosts --tasks 6 --sbatch='--gres=gpu:1 --cpus-per-task=2'

# ---- the first round of tiles: one task is killed, a host is drained ----
wait_for 'pid=$(pgrep -f "^$KILN_BIN/kiln slurm --job task folder=$out/slurm .* first=tiles .* of=6" | head -n 1) && [ -n "$pid" ] && kill -KILL "$pid"'
claims 'what counting pairs' || fail "this is not the first round: $(cat "$out/manifest.db.claim")"
scontrol update NodeName=kiln2 State=DRAIN Reason=test || fail "drain"

# ---- the second: when all of its parts are there, one is torn and a byte of another flipped, before they are gathered ----
wait_for 'claims "what tile tables"'
wait_for 'behind=$(squeue --noheader --states=PENDING --format="%i %k" | awk "\$3 == \"round\" && \$4 == \"tiles\" { print \$1 }") && [ -n "$behind" ]'
scontrol hold "$behind" || fail "hold"
key=$(sed -n 's/^plan //p' "$out/manifest.db.claim")
part() { echo "$out/slurm/parts/tiles-$key-$1-of-6.part"; }
wait_for '[ "$(ls "$out"/slurm/parts/tiles-"$key"-*-of-6.part 2>/dev/null | wc -l)" = 6 ]'
must 0 on_hosts --status
grep -qE '^tiles +a round is open: 6 of 6 parts exist$' "$KILN_TMP/out" || fail "status: $(cat "$KILN_TMP/out")"
# Units that are lost: all of the torn part, and those of the other that have the blob with the byte.
lost=$(python3 - "$(part 2)" "$(part 5)" <<'E1'
import sqlite3, sys
torn, flipped = (sqlite3.connect(f"file:{p}?immutable=1", uri=True) for p in sys.argv[1:])
n = torn.execute("SELECT count(*) FROM unit").fetchone()[0]
size, blob, packed = flipped.execute("SELECT length(packed), hash, packed FROM blob ORDER BY 1 DESC LIMIT 1").fetchone()
n += flipped.execute("SELECT count(DISTINCT unit) FROM unit_output WHERE hash = ?", (blob,)).fetchone()[0]
flipped.close(); torn.close()
with open(sys.argv[2], "r+b") as f:
    whole = f.read()
    at = whole.find(packed[:64])
    assert size > 64 and whole.count(packed[:64]) == 1
    f.seek(at + 40)
    f.write(bytes([whole[at + 40] ^ 4]))
with open(sys.argv[1], "r+b") as f:
    f.truncate(len(open(sys.argv[1], "rb").read()) // 2)
print(n)
E1
) || fail "faults"

# ---- the controller dies and comes back ----
kill -KILL "$slurm_controller_pid"
wait "$slurm_controller_pid" 2>/dev/null
slurm_controller_start
wait_for 'scontrol ping 2>/dev/null | grep -q UP'
must 0 on_hosts --cancel

# ---- the same command again ----
must 0 on_hosts --wait
same "$KILN_TMP/home/manifest.db" "$out/manifest.db"
diff -r "$KILN_TMP/home/renders" "$out/renders" || fail "pictures differ"
diff -r "$KILN_TMP/home/export" "$out/export" || fail "exports differ"
[ ! -e "$out/manifest.db.claim" ] || fail "a claim is left"
[ "$(find "$out/slurm/parts" -mindepth 1 | sort)" = "$(printf '%s.bad\n' "$(part 2)" "$(part 5)")" ] || fail "parts: $(ls "$out/slurm/parts")"
must 0 "$KILN_BIN/kiln" verify "$out/manifest.db"
[ -z "$(find "$KILN_TMP/local" -name '*.copy*')" ] || fail "copies are left: $(ls "$KILN_TMP/local")"
for host in kiln1 kiln2; do grep -q " Name=kiln-[a-z]*-task .*NodeList=$host " "$slurm/log/jobs" || fail "$host had no task"; done
# What was computed: by tasks, who say so, and by jobs that gather what "is missing".
computed=$(cat "$out"/slurm/logs-*/tiles-tasks-*.log "$out"/slurm/logs-*/*-round-*.log |
    awk '/^kiln-tiles: part [0-9]+ of 6: / { n += $6 } /^kiln-tiles: gathered: / { n += $(NF - 1) } END { print n }')
units=$(python3 - "$out/manifest.db" <<'E2'
import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("""SELECT count(*) FROM unit WHERE stage = 'tiles' AND
    (name LIKE 'pairs of %' OR name LIKE 'visible list of %' OR name LIKE 'tile rows %')""").fetchone()[0])
E2
)
[ "$computed" = $((units + lost)) ] || fail "$computed units of tiles were computed, of $units, of which $lost were lost"
echo "$units units, $lost lost, $computed computed"
slurm_stop
