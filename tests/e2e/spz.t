#!/bin/bash
# SPZ files: the same Gaussians in each container are one scene, under --ram; --frame and an extension record decide the axes; bombs end
# within seconds and a small address space, and leave nothing; --max-inflated limits what does not say its size.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3 to write files with"
cd "$KILN_TMP" || exit 1
python3 - <<'P' || fail 'cannot write the files'
import gzip, random, struct
n, degree = 20000, 3
r = random.Random(5)
planes = [r.randbytes(n * k) for k in (9, 1, 3, 3, 4, 45)]
def header(version, flags=0, last=0, count=n):
    return b'NGSP' + struct.pack('<II4B', version, count, degree, 12, flags, last)
def record(system):
    return struct.pack('<III', 0xADBE0003, 4, system)
def put(name, data):
    open(name, 'wb').write(data)
def frame(data): # raw blocks of zstd, behind a window of a MiB
    out = struct.pack('<IBB', 0xFD2FB528, 0, 10 << 3)
    for at in range(0, len(data), 131072):
        b = data[at:at + 131072]
        out += ((at + 131072 >= len(data)) | len(b) << 3).to_bytes(3, 'little') + b
    return out
def streams(frames, sizes, flags=0, ext=b''):
    head = header(4, flags, 6) + struct.pack('<I12x', 32 + len(ext)) + ext
    return head + b''.join(struct.pack('<QQ', len(f), s) for f, s in zip(frames, sizes)) + b''.join(frames)
plain = b''.join(planes)
frames, sizes = [frame(p) for p in planes], [len(p) for p in planes]
put('v3.spz', gzip.compress(header(3) + plain, 1))
put('v4in3.spz', gzip.compress(header(4) + plain, 1))
put('v4.spz', streams(frames, sizes))
put('v4.spz.gz', gzip.compress(streams(frames, sizes), 1))
put('rub.spz', gzip.compress(header(3, 2) + plain + record(4), 1))
put('rdf.spz', streams(frames, sizes, 2, record(6)))
put('plain.spz', header(3) + plain)
put('cut.spz', gzip.compress(header(3) + plain, 1)[:-9])
put('more.spz', gzip.compress(header(3, count=10) + bytes(10 * 65 + (32 << 20)), 9))
zeros = struct.pack('<IBB', 0xFD2FB528, 0, 10 << 3) + (131072 << 3 | 2).to_bytes(3, 'little').__add__(b'\0') * 2047 + (131072 << 3 | 3).to_bytes(3, 'little') + b'\0'
put('bomb.spz', streams([frames[0], zeros] + frames[2:], sizes))
head = b'ply\nformat ascii 1.0\ncomment ' + b'x' * 1000 + b'\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\nend_header\n0 0 0'
put('blank.ply.gz', gzip.compress(head + b'\n' * 8000000, 9))
P
mkdir scratch
for file in v3 v4in3 v4 rub rdf; do
    must 0 kiln import $file.spz $file.db --ram 200M --scratch-dir scratch --json
    python3 -c 'import json; r = json.load(open("out")); assert r["rows_read"] == 20000 and r["ram_peak_bytes"] <= 200 << 20, r' || fail "$(cat out)"
    [ -z "$(ls scratch)" ] || fail "scratch keeps $(ls scratch)"
done
must 0 kiln import v4.spz.gz packed.db
for file in v4in3 v4 rub packed; do same v3.db $file.db; done
must 0 "$KILN_BIN/kiln-import" v3.spz no.db --list
grep -q '^notes    splats   v3.spz: SPZ numbers are taken as RUB' out || fail "--list says no axes: $(cat out)"
must 0 "$KILN_BIN/kiln-import" rub.spz no.db --list # names its axes behind the rows
grep -q '^notes    splats   rub.spz: which axes its numbers have shows when the file is unpacked$' out || fail "--list guesses axes: $(cat out)"
must 0 "$KILN_BIN/kiln-import" v3.spz said.db && grep -q 'SPZ numbers are taken as RUB' err && ! grep 'warning' err || fail "a healthy file is warned of: $(cat err)"
must 0 "$KILN_BIN/kiln-import" v3.spz as-is.db --frame as-is && grep -q 'left as they stand (--frame as-is)' err || fail "which frame: $(cat err)"
same rdf.db as-is.db
[ "$(digest v3.db)" != "$(digest as-is.db)" ] || fail '--frame changes nothing'
must 0 kiln import v3.spz v3.db --json && grep -q 'nothing to do' out || fail "imported twice: $(cat out)"
must 0 kiln import v3.spz v3.db --frame as-is && same v3.db as-is.db
axes() { python3 -c 'import json, sqlite3, sys; print(json.loads(sqlite3.connect(sys.argv[1]).execute("SELECT notes FROM scene").fetchone()[0])["axes"])' "$1"; }
[ "$(axes v4.db) $(axes as-is.db) $(axes rub.db)" = 'RUB RDF RUB' ] || fail "axes: $(axes v4.db) $(axes as-is.db) $(axes rub.db)"
# the file decides, not the option
must 0 kiln import rub.spz rub.db --frame as-is && must 0 kiln import rub.spz again.db && same rub.db again.db

refused() { # code, words, arguments
    local code=$1 words=$2; shift 2
    must "$code" kiln import "$@" bad.db --scratch-dir scratch
    [ "$(grep -c . err)" = 1 ] || fail "not one sentence: $(cat err)"
    grep -qE -- "$words" err || fail "$*: $(cat err)"
    [ ! -e bad.db ] && [ -z "$(ls scratch)" ] || fail "$* left something behind"
}
refused 3 'is SPZ version 3 outside a gzip stream' plain.spz
refused 3 'in the midst of its gzip stream' cut.spz
refused 3 "more.spz' unpacks to more than 1049242 bytes: the header inside fixes 666; the file is damaged" more.spz
refused 3 "the alpha stream of .*it unpacks to more than its header says" bomb.spz
refused 3 'above 100 times the [0-9.]+ [KM]iB? that it has packed; if you trust it, raise --max-inflated' blank.ply.gz
must 0 kiln import blank.ply.gz blank.db --max-inflated 2000
