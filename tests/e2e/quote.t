#!/bin/bash
# time-limit: 600
# Texts of other people's files on their way to the terminal: whatever a scene or a manifest says, no program writes a control
# byte, a mark that reorders text or a byte that is no UTF-8, and no text begins a line of its own.
. tests/e2e/lib.sh
EVIL=$'\x1b]0;pwned\x07\nkiln-import: done \x7f\xc2\x9b31m\xe2\x80\xae\r\t'
export EVIL

mkdir "$KILN_TMP/said"
n_runs=0
tell() { # PROGRAM ARGUMENTS...: both streams are kept for the end; a failure has a sentence
    local program=$1 code; shift
    n_runs=$((n_runs + 1))
    "$KILN_BIN/kiln-$program" "$@" >"$KILN_TMP/said/$n_runs.$program" 2>&1; code=$?
    [ $code -lt 128 ] && [ $code -ne 70 ] || fail "exit $code of kiln-$program $*"
    [ $code -eq 0 ] || [ -s "$KILN_TMP/said/$n_runs.$program" ] || fail "exit $code of kiln-$program $* without a word"
}
# all that was told: no control character but the line feeds, no byte that is no UTF-8, no line that the evil text began
are_clean() {
    python3 - "$KILN_TMP/said" <<'END'
import os, re, sys
for name in sorted(os.listdir(sys.argv[1])):
    text = open(os.path.join(sys.argv[1], name), 'rb').read().decode('utf-8', 'surrogateescape')
    bad = re.search('[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\udc80-\udcff]', text)
    forged = re.search('^kiln-import: done', text, re.M)
    if bad or forged:
        at = (bad or forged).start()
        sys.exit('%s: %s in %r' % (name, repr(bad.group()) if bad else 'a forged line', text[max(0, at - 60):at + 40]))
END
}

# ---- scenes: header comments, names of columns, of elements, of formats; cameras of every kind of file -----------------------
write_ply() { # FILE WHERE
    python3 - "$1" "$2" <<'END'
import os, struct, sys
evil = os.environb[b'EVIL']
line = evil.replace(b'\n', b'')
where = sys.argv[2]
head = [b'ply', b'format ' + (line if where == 'format' else b'binary_little_endian 1.0'), b'comment ' + (line if where == 'comment' else b'x'),
        b'element ' + (line if where == 'element' else b'vertex') + b' 3']
names = ['x', 'y', 'z', 'f_dc_0', 'f_dc_1', 'f_dc_2', 'opacity', 'scale_0', 'scale_1', 'scale_2', 'rot_0', 'rot_1', 'rot_2', 'rot_3']
head += [b'property float ' + n.encode() for n in names]
extra = {'column': line, 'utf8': 'n\x9b\u202e'.encode(), 'type': b'n'}.get(where)
if extra:
    head.append(b'property ' + (line if where == 'type' else b'float') + b' ' + extra)
head.append(b'end_header')
with open(sys.argv[1], 'wb') as f:
    f.write(b'\n'.join(head) + b'\n')
    for i in range(3):
        row = [i, 0, 0, 1, 1, 1, 2, -3, -3, -3, 1, 0, 0, 0] + ([7] if extra else [])
        f.write(struct.pack('<%df' % len(row), *row))
END
}
for where in comment format element column utf8 type; do
    mkdir "$KILN_TMP/ply"
    write_ply "$KILN_TMP/ply/scene.ply" $where
    tell import "$KILN_TMP/ply/scene.ply" "$KILN_TMP/ply/x.db" --list
    tell import "$KILN_TMP/ply/scene.ply" "$KILN_TMP/ply/x.db" --verbose
    tell import "$KILN_TMP/ply/scene.ply" "$KILN_TMP/ply/x.db" --json
    if [ -e "$KILN_TMP/ply/x.db" ]; then
        for s in info verify; do
            tell $s "$KILN_TMP/ply/x.db"
            tell $s "$KILN_TMP/ply/x.db" --json
        done
        for s in knn prune chunk; do tell $s "$KILN_TMP/ply/x.db" --verbose; done
        tell tiles "$KILN_TMP/ply/x.db" --verbose --camera '#0' # eight cameras of an orbit are many pixels
        tell export "$KILN_TMP/ply/x.db" --verbose
    fi
    rm -rf "$KILN_TMP/ply"
done

mkdir "$KILN_TMP/folder" "$KILN_TMP/folder/$EVIL"
write_ply "$KILN_TMP/folder/$EVIL/$EVIL.ply" comment
for option in --list --json --verbose; do tell import "$KILN_TMP/folder/$EVIL" "$KILN_TMP/$EVIL.db" $option; done
for s in info verify doctor knn; do tell $s "$KILN_TMP/$EVIL.db"; done
rm -f "$KILN_TMP/$EVIL.db"

mkdir "$KILN_TMP/json"
python3 - "$KILN_TMP/json" <<'END'
import json, os, sys
evil = os.environ['EVIL']
unit = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 3], [0, 0, 0, 1]]
def transforms(path, **more):
    frame = {'file_path': more.pop('file', 'a.png'), 'transform_matrix': unit}
    json.dump(dict({'w': 32, 'h': 24, 'fl_x': 30, 'frames': [frame]}, **more), open(path, 'w'))
transforms(sys.argv[1] + '/name.json', file=evil)
transforms(sys.argv[1] + '/model.json', camera_model=evil)
transforms(sys.argv[1] + '/splats.json', ply_file_path=evil)
open(sys.argv[1] + '/syntax.json', 'w').write('{"frames": [' + evil + ']}')
json.dump([{'id': 0, 'img_name': evil, 'width': 32, 'height': 24, 'position': [0, 0, 3], 'rotation': [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
            'fx': 30, 'fy': 30}], open(sys.argv[1] + '/cameras.json', 'w'))
END
for file in "$KILN_TMP"/json/*.json; do
    mkdir "$KILN_TMP/one"
    case $file in */cameras.json) cp "$file" "$KILN_TMP/one/" ;; *) cp "$file" "$KILN_TMP/one/transforms.json" ;; esac
    write_ply "$KILN_TMP/one/scene.ply" comment
    tell import "$KILN_TMP/one" "$KILN_TMP/one.db" --list
    tell import "$KILN_TMP/one" "$KILN_TMP/one.db"
    rm -rf "$KILN_TMP/one" "$KILN_TMP/one.db"
done
mkdir -p "$KILN_TMP/colmap/sparse/0"
echo "1 $EVIL 32 24 30 30 16 12" >"$KILN_TMP/colmap/sparse/0/cameras.txt"
echo "1 1 0 0 0 0 0 3 1 $EVIL" >"$KILN_TMP/colmap/sparse/0/images.txt"
echo "1 0 0 0 $EVIL" >"$KILN_TMP/colmap/sparse/0/points3D.txt"
tell import "$KILN_TMP/colmap" "$KILN_TMP/colmap.db" --list
tell import "$KILN_TMP/colmap" "$KILN_TMP/colmap.db"

# ---- a manifest: every text of every table, one after the other --------------------------------------------------------------
scene "$KILN_TMP/s" 300 2 48x32
bake "$KILN_TMP/s" "$KILN_TMP/clean.db" --max 64
# a copy for each of them, all made by one python, whose start takes longer than a program
python3 - "$KILN_TMP/clean.db" "$KILN_TMP/m" >"$KILN_TMP/columns" <<'END' || fail "columns"
import os, shutil, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("INSERT INTO quarantine VALUES (randomblob(16), 'render', 'camera x', 3, 'the CPU', 'signal 9', 1)")
db.commit()
columns = []
for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'").fetchall():
    columns += [(table, column[1]) for column in db.execute('PRAGMA table_info(%s)' % table) if column[2] == 'TEXT']
db.close()
for column in columns:
    copy = '%s/%s.%s/x.db' % (sys.argv[2], *column)
    os.makedirs(os.path.dirname(copy))
    shutil.copy(sys.argv[1], copy)
    db = sqlite3.connect(copy)
    db.execute('PRAGMA ignore_check_constraints = on')
    db.execute('UPDATE OR IGNORE %s SET %s = ?' % column, [os.environ['EVIL']])
    db.commit()
    db.close()
    print(*column)
END
[ "$(wc -l <"$KILN_TMP/columns")" -ge 40 ] || fail "few columns"
while read -r table column; do
    db=$KILN_TMP/m/$table.$column/x.db
    for s in info verify; do tell $s "$db"; done
    tell info "$db" --json
    tell verify "$db" --digest
    case $table in camera | scene | parameter | run | photo | quarantine) for s in prune tiles render export; do tell $s "$db" --verbose; done ;; esac
    rm -rf "${db%/*}"
done <"$KILN_TMP/columns"
are_clean || fail "see above"
echo "$n_runs runs"
[ "$n_runs" -gt 250 ] || fail "only $n_runs runs"
