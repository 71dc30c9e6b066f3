#!/usr/bin/env bash
# kiln-info --plots: what a person sees at 80 columns and at fewer, with blocks and without, and the same numbers as JSON; a manifest
# of a stranger moves no cursor and makes it wait for nothing.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
info() { "$KILN_BIN/kiln-info" "$@"; }
plots() { sed -n '/^Longest axis/,$p' out; }
widest() { python3 -c 'import sys; print(max(len(l.rstrip("\n")) for l in open(sys.argv[1], encoding="utf-8")))' "$1"; }
scene scene 2000 9 96x64 # no photos
bake scene m.db --max 512
kiln prune m.db --min-opacity 0.3 >/dev/null && kiln chunk m.db --max 512 >/dev/null || fail 'prune again'

must 0 info m.db
cp out without
must 0 env LC_ALL=C.UTF-8 "$KILN_BIN/kiln-info" m.db --plots
[ "$(head -n "$(wc -l <without)" out)" = "$(cat without)" ] || fail 'the table is another one beside plots'
plots >blocks
[ "$(grep -cE '^(Longest axis|Opacity|Needle ratio|Spacing|Rows of a chunk) \(' blocks)" = 5 ] || fail "titles: $(cat blocks)"
grep -q '^PSNR' blocks && fail 'a plot of nothing'
grep -q '█' blocks || fail 'no blocks in UTF-8'
[ "$(widest blocks)" -le 80 ] || fail "wider than 80 columns: $(widest blocks)"
grep -qxE 'before: 2000 Gaussians, median [0-9.]+, from [0-9.]+ to [0-9.]+' blocks || fail "no summary: $(cat blocks)"
for locale in C POSIX xx_XX.nowhere; do # the last is not installed
    must 0 env LC_ALL=$locale "$KILN_BIN/kiln-info" m.db --plots
    plots >ascii
    grep -q '#' ascii && ! grep -q '[^ -~]' ascii || fail "not ASCII alone with LC_ALL=$locale"
done
must 0 env LC_ALL=C.UTF-8 "$KILN_BIN/kiln-info" m.db --plots --ascii
plots | cmp - ascii || fail '--ascii is not what the locale C shows'
must 0 env LC_ALL=C "$KILN_BIN/kiln-info" m.db --plots --no-ascii
plots | cmp - blocks || fail '--no-ascii is not what UTF-8 shows'

# ---- the same numbers as JSON, and they add up ----
must 0 info m.db --json
grep -q '"plots"' out && fail 'plots that nobody asked for'
must 0 info m.db --plots --json
python3 - out blocks <<'PY' || fail 'info --plots --json'
import json, sys
d = json.load(open(sys.argv[1])); shown = open(sys.argv[2], encoding="utf-8").read()
p, c = d["plots"], d["counts"]
assert list(p) == ["scale", "opacity", "needle", "spacing", "chunk_rows"], list(p)
for key in ("scale", "opacity", "needle", "spacing"):
    assert [(s["name"], s["counted"]) for s in p[key]["series"]] == [("before", c["source"]), ("after", c["pruned"])], p[key]
assert c["source"] > c["pruned"]
for plot in p.values():
    assert sorted(plot["borders"]) == plot["borders"]
    for s in plot["series"]:
        assert sum(s["counts"]) == s["counted"] == s["of"] and len(s["counts"]) == len(plot["borders"]) - 1
        assert s["least"] <= s["median"] <= s["most"]
        assert plot["borders"][0] <= s["least"] * 1.000001 and s["most"] <= plot["borders"][-1] * 1.000001
        assert all(" %d" % n in shown for n in s["counts"])
assert p["chunk_rows"]["series"][0]["counted"] == c["chunks"]
assert sum(p["opacity"]["series"][1]["counts"][:3]) == 0, "opacities below 0.3 were pruned"
PY

# ---- as wide as the terminal ----
for columns in 20 40 80 200; do
    python3 - "$KILN_BIN/kiln-info" m.db $columns >seen <<'PY' || fail "on a terminal of $columns columns"
import fcntl, os, pty, struct, sys, termios
program, db, columns = sys.argv[1:]
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(columns), 0, 0))
    os.execve(program, [program, db, "--plots"], {"LC_ALL": "C.UTF-8"})
text = b""
while True:
    try: part = os.read(fd, 65536)
    except OSError: break
    if not part: break
    text += part
assert os.waitpid(pid, 0)[1] == 0
lines = text.decode().replace("\r\n", "\n").split("Longest axis", 1)[1].split("\n")
assert "\x1b" not in text.decode()
widest = max(len(l) for l in lines[1:])
want = min(int(columns), 80)
assert widest <= want and (widest > want - 16), (widest, want)
PY
done

# ---- what does not go together ----
must 2 info m.db --ascii
must 2 info m.db --plots --cameras
must 0 info m.db --plots --lod

# ---- a bake that has only begun: what there is; points have no sizes yet ----
kiln import scene begun.db >/dev/null || fail import
must 0 info begun.db --plots --ascii
plots | grep -qE '^before: 2000 Gaussians' && ! grep -qE '^after:|^Rows of a chunk|^Spacing' out || fail "an import alone: $(cat out)"
printf 'ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nproperty float y\nproperty float z\nend_header\n0 0 0\n1 1 1\n' >points.ply
kiln import points.ply points.db >/dev/null || fail 'import of points'
must 0 info points.db --plots
grep -qx 'nothing to plot yet: there are no Gaussians, no measured pictures and no chunks' out || fail "points: $(cat out)"

# ---- a stranger's manifest: names that move the cursor are refused, numbers are any ----
odd() { # the exit code, SQL...
    local want=$1; shift
    cp m.db odd.db
    python3 - odd.db "$@" <<'PY' || fail 'odd.db'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("PRAGMA ignore_check_constraints = 1")
for sql in sys.argv[2:]: db.execute(sql)
db.commit()
PY
    must "$want" timeout 20 "$KILN_BIN/kiln-info" odd.db --plots --no-ascii
    LC_ALL=C grep -q $'\x1b' out err && fail "an escape reaches the terminal after $*"
}
odd 3 "UPDATE camera SET name = 'x' || char(27) || '[2J' WHERE name = 'cam5'"
odd 0 "UPDATE image SET psnr = 30 + substr(camera, 4)" "UPDATE image SET psnr = 9e999 WHERE camera = 'cam1'" # equal to its photo
grep -qE '^others: 6 of 7 views, median 3[0-9.]+, from' out || fail "a number without end: $(grep views out)"
odd 3 "UPDATE image SET psnr = -9e999 WHERE camera = 'cam2'"
odd 0 "UPDATE image SET psnr = 1e308" "UPDATE image SET psnr = -1e308 WHERE camera = 'cam3'"
grep -qx 'others: 7 views, median 1e+308, from -1e+308 to 1e+308' out || fail "numbers of any size: $(grep views out)"
exit 0
