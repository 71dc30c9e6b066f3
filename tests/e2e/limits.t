#!/bin/bash
# Rows at the limits of float32 (a log scale of 87.9, positions of 3e38) go through every stage. Lengths made of them may be infinite:
# the record and --json say null, as JSON has no infinity, and the text says inf.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
cd "$KILN_TMP" || exit 1
python3 - <<'P' || fail "scenes"
import random, struct
random.seed(3)
names = ['x', 'y', 'z', 'f_dc_0', 'f_dc_1', 'f_dc_2', 'opacity', 'scale_0', 'scale_1', 'scale_2', 'rot_0', 'rot_1', 'rot_2', 'rot_3']
near = lambda: [random.uniform(-1, 1) for _ in range(3)]
far = lambda: [random.choice([-3e38, 3e38]) for _ in range(3)]
def write(name, n, position, scale):
    with open(name + '.ply', 'wb') as f:
        f.write(b'ply\nformat binary_little_endian 1.0\nelement vertex %d\n' % n)
        for column in names: f.write(b'property float %s\n' % column.encode())
        f.write(b'end_header\n')
        for i in range(n): f.write(struct.pack('<14f', *position(), .5, .1, -.3, 2, *[scale] * 3, 1, 0, 0, 0))
write('wide', 200, near, 87.9)
write('far', 200, far, -4)
write('both', 200, far, 87.9)
write('place', 3, lambda: [3e38] * 3, -4)
P
# of what was said just now, in JSON that has no infinity; all are judged at the end, by one python, whose start takes longer than a stage
n=0
strict() { n=$((n + 1)); cp out "said$n" && echo "$1" >"must$n"; }
for name in wide far both place; do
    db=$name/m.db
    must 0 kiln import $name.ply $db --json
    for stage in $STAGES; do
        must 0 kiln "$stage" $db --json
        strict 'd["status"] == "done" and d["units"]["quarantined"] == 0'
        [ $stage != prune ] || strict "d['rows'] == d['kept'] and d['extent'] $([ $name = place ] && echo '> 0' || echo 'is None')"
    done
    must 0 kiln export $db --format chunks -o $name/chunks
    cp $name/chunks/index.json out && strict 'd["chunks"]'
    must 0 kiln info $db --json
    strict 'all(s["state"] == "fresh" for s in d["stages"] if s["name"] in ("prune", "render", "export"))'
    must 0 "$KILN_BIN/kiln-prune" $db --dry-run
    [ $name = place ] || grep -q 'extent inf' out || fail "the report of $name: $(head -n 1 out)"
    must 0 kiln verify $db
    kiln export $db -o $name/again.ply >/dev/null && cmp $name.ply $name/again.ply || fail "$name came back different"
done
[ $n = $((4 * ($(wc -w <<<"$STAGES") + 3))) ] || fail "$n sentences are judged"
python3 - $n <<'P' || fail "see above"
import json, sys
for i in range(1, int(sys.argv[1]) + 1):
    must = open('must%d' % i).read().strip()
    d = json.load(open('said%d' % i), parse_constant=lambda c: sys.exit('%s: %s is no JSON' % (must, c)))
    assert eval(must), (must, d)
P
