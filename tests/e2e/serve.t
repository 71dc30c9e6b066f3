#!/bin/bash
# kiln-serve: who is answered and who is not, what the answers hold, a stranger's manifest, a stage that runs meanwhile, many
# connections at a time, how it ends. tests/soak/serve_load.t has what takes longer.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip 'no python3'
export PYTHONDONTWRITEBYTECODE=1
T=$KILN_TMP
ask() { local check=$1; shift; timeout 120 python3 tests/e2e/serve.py "$check" "$KILN_BIN/kiln-serve" "$@" || fail "$check"; }
must 0 kiln generate demo "$T/demo" --gaussians 6000 --cameras 5 --size 256x160
M=$T/demo/bake/manifest.db
bake "$T/demo" "$M" --max 3000
must 0 kiln lod "$M"
for s in tiles render; do must 0 kiln $s "$M"; done

ask rules "$M"
mkdir "$T/ply"
for i in $(seq 0 30); do
    kiln export "$M" --format ply -o "$T/ply/$i.ply" --chunks "#$i" --order baked --keep-origin --no-normals >"$T/out" 2>&1 || break
done
[ "$i" -gt 3 ] || fail "too few chunks: $(cat "$T/out")"
before=$(cksum "$M")
ask data "$M" "$T/ply"
[ "$(cksum "$M")" = "$before" ] || fail 'the manifest was changed'
ask many "$M" 300
ask ends "$M"
must 0 kiln import "$T/demo" "$T/new.db"
ask begun "$T/new.db"
for s in knn prune chunk; do must 0 kiln $s "$T/new.db"; done
ask changing "$T/new.db" "$KILN_BIN/kiln-tiles"

# the file is another one, or has other cameras, from one request to the next
must 0 kiln generate demo "$T/other" --gaussians 1000 --cameras 2 --size 64x64
bake "$T/other" "$T/other/bake/manifest.db" --max 500
cp "$M" "$T/demo/bake/first.db"
ask replaced "$T/demo/bake/first.db" "$T/other/bake/manifest.db"
ask moved "$T/demo/bake/first.db"

# a stranger's: names are markup, photos and pictures lead elsewhere
cp "$T/demo/images/view_00.png" "$T/secret.png"
printf 'TOP SECRET' >>"$T/secret.png"
mkfifo "$T/pipe.png"
ln -s "$T/secret.png" "$T/link.png"
cp "$M" "$T/demo/bake/evil.db"
python3 - "$T/demo/bake/evil.db" "$T" <<'PY' || fail 'cannot make the stranger'
import os, sqlite3, sys
db, t = sqlite3.connect(sys.argv[1]), sys.argv[2]
evil = "</script><img src=x onerror=alert(1)>\"'\u2028"
db.execute("UPDATE scene SET name = ?", ("scene" + evil,))
def photo(camera, path, listed):
    old, = db.execute("SELECT path FROM photo WHERE camera = ?", (camera,)).fetchone()
    db.execute("UPDATE photo SET path = ? WHERE camera = ?", (path, camera))
    if listed:
        db.execute("UPDATE source_file SET path = ? WHERE path = ?", (path, old))
photo("view_00", t + "/secret.png", False)
photo("view_01", t + "/pipe.png", True)
photo("view_02", "/etc/passwd", True)
photo("view_03", t + "/link.png", True)
os.symlink(t, t + "/demo/bake/renders/outside")
db.execute("UPDATE image SET path = 'renders/outside/secret.png' WHERE camera = 'view_00'")
os.mkfifo(t + "/demo/bake/renders/pipe.png")
db.execute("UPDATE image SET path = 'renders/pipe.png' WHERE camera = 'view_01'")
db.execute("PRAGMA foreign_keys = OFF")
for table, column in (("camera", "name"), ("photo", "camera"), ("image", "camera"), ("tile_table", "camera")):
    db.execute(f"UPDATE {table} SET {column} = {column} || ? WHERE {column} = 'view_03'", (evil,))
db.commit()
PY
ask stranger "$T/demo/bake/evil.db" 'TOP SECRET'

# what is wrong is said by an exit code
must 2 kiln serve
must 2 kiln serve "$M" --port 65536
must 2 kiln serve "$M" --listen localhost.example
must 2 kiln serve "$M" --listen 192.0.2.77
must 3 kiln serve "$T/demo/scene.ply"
must 3 kiln serve "$T/none.db"
"$KILN_BIN/kiln" help | grep -q '^ *serve ' || fail 'kiln help does not list it'
for p in kiln kiln-info kiln-report; do ldd "$KILN_BIN/$p" | grep -q microhttpd && fail "$p is linked with what kiln-serve alone needs"; done
exit 0
