#!/bin/bash
# kiln-export --format html without a browser: what is in the page, that nothing of a bake is markup or script in it, and that the scene
# inside is the .sog of the same rows. tests/e2e/viewers.t opens such pages.
. tests/e2e/lib.sh
# page.py FILE: checks the policy and prints the scene's JSON; the archive goes to FILE.sog
cat >"$KILN_TMP/page.py" <<'EOF'
import base64, hashlib, html.parser, json, sys
class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.elements, self.policy = [], None
    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        bad = [k for k in a if k.startswith('on') or k in ('src', 'srcdoc', 'style')]
        assert not bad, f'<{tag}> has {bad}'
        if a.get('http-equiv') == 'Content-Security-Policy': self.policy = a['content']
        self.elements.append([tag, a, ''])
    def handle_endtag(self, tag):
        self.elements.append(['/' + tag, {}, ''])
    def handle_data(self, data):
        if self.elements: self.elements[-1][2] += data
page = Page()
text = open(sys.argv[1], encoding='ascii').read()
page.feed(text)
texts = lambda tag, **want: [t for name, a, t in page.elements if name == tag and all(a.get(k) == v for k, v in want.items())]
tags = [name for name, a, t in page.elements]
assert tags.count('img') == tags.count('iframe') == tags.count('object') == 0, tags
scripts = [(a, t) for name, a, t in page.elements if name == 'script' and 'type' not in a]
assert len(scripts) == 1, 'one script runs'
digest = lambda t: "'sha256-" + base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() + "'"
rules = {r.split()[0]: r.split()[1:] for r in page.policy.split(';')}
assert rules['default-src'] == ["'none'"] and rules['style-src'] == [digest(texts('style')[0])], page.policy
assert sorted(rules['script-src']) == sorted(["'wasm-unsafe-eval'", digest(scripts[0][1])]), page.policy
assert 'connect-src' not in rules and rules['base-uri'] == rules['form-action'] == ["'none'"], page.policy
scene = json.loads(texts('script', id='scene')[0])
pieces = texts('script', **{'class': 'splats'})
data = b''.join(base64.b64decode(p, validate=True) for p in pieces)
assert len(data) == scene['bytes'] and all(len(p) <= 4 << 20 for p in pieces), (len(data), scene['bytes'])
open(sys.argv[1] + '.sog', 'wb').write(data)
scene['title'], scene['pieces'] = texts('title')[0], len(pieces)
print(json.dumps(scene))
EOF
cd "$KILN_TMP" || exit 1
scene s 600 3 48x32
bake s x.db
must 0 kiln export x.db -o x.html
must 0 kiln export x.db -o x.sog
python3 page.py x.html >scene.json || fail 'the page is not as it should be'
cmp x.html.sog x.sog || fail 'the scene inside is not the .sog'
[ -z "$(find . -name '*.tmp.*')" ] || fail "left: $(find . -name '*.tmp.*')"

# Cameras are the bake's; moved as the rows are. A picture's camera sees the same points at the same places, --scale times as far away.
must 0 kiln export x.db -o moved.html --rotate 20,-30,40 --scale 2 --translate 5,6,7
python3 page.py moved.html >moved.json || fail 'the moved page'
kiln info x.db --cameras >cameras.json || fail 'kiln-info --cameras'
python3 - <<'EOF' || fail 'cameras'
import json, math
scene, moved, want = (json.load(open(f)) for f in ('scene.json', 'moved.json', 'cameras.json'))
assert [c['name'] for c in scene['cameras']] == ['cam0', 'cam1', 'cam2'] and scene['rows'] == 600 and scene['pieces'] == 1
def rotation(x, y, z):
    x, y, z = (math.radians(v) for v in (x, y, z))
    cx, sx, cy, sy, cz, sz = math.cos(x), math.sin(x), math.cos(y), math.sin(y), math.cos(z), math.sin(z)
    mul = lambda a, b: [[sum(a[i][k] * b[k][j] for k in range(3)) for j in range(3)] for i in range(3)]
    return mul([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]], mul([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]], [[1, 0, 0], [0, cx, -sx], [0, sx, cx]]))
turn = rotation(20, -30, 40)
seen = lambda c, p: [sum(c['R'][3 * i + k] * p[k] for k in range(3)) + c['t'][i] for i in range(3)]
for a, b in zip(scene['cameras'], moved['cameras']):
    for p in ([0, 0, 0], [1, 2, 3], [-4, 1, 0.5]):
        q = [2 * sum(turn[i][k] * p[k] for k in range(3)) + (5, 6, 7)[i] for i in range(3)]
        assert all(math.isclose(2 * u, v, abs_tol=1e-9) for u, v in zip(seen(a, p), seen(b, q))), (a, b, p)
listed = {c['name']: c for c in want}
for c in scene['cameras']:
    w = listed[c['name']]
    assert c['width'] == w['width'] and math.isclose(c['fx'], w['fx']), (c, w)
EOF

# Names of the scene and of cameras are text: markup, the end of a script, and what turns the direction of reading.
hostile='</script><script>alert(1)</script><img src=x onerror=alert(1)>&quot;"<!--'
cp x.db hostile.db
python3 - "$hostile" <<'EOF' || fail 'names'
import sqlite3, sys
db = sqlite3.connect('hostile.db')
db.execute('UPDATE scene SET name = ?', (sys.argv[1],))
for i, (name,) in enumerate(db.execute('SELECT name FROM camera ORDER BY name').fetchall()):
    db.execute('UPDATE camera SET name = ? WHERE name = ?', (f'{i}\u202e{sys.argv[1]}', name))
db.commit()
EOF
must 0 kiln export hostile.db -o hostile.html
python3 page.py hostile.html >hostile.json || fail 'a name is more than a text'
python3 - "$hostile" <<'EOF' || fail 'names are not what they were'
import json, sys
scene = json.load(open('hostile.json'))
assert scene['name'] == sys.argv[1] == scene['title'], (scene['name'], scene['title'])
assert all(sys.argv[1] in c['name'] and '\u202e' not in c['name'] for c in scene['cameras']), scene['cameras'][0]['name']
EOF

# The viewer: one sentence where there is none, or one that would end its element; a new one makes the page due.
KILN_VIEWER=$PWD/none must 3 kiln export x.db -o none.html
grep -q 'make viewer' err && [ "$(grep -c . err)" = 1 ] && [ ! -e none.html ] || fail "without the viewer: $(cat err)"
mkdir v && cp "$KILN_VIEWER"/viewer.* v
said() { KILN_VIEWER=$PWD/v "$KILN_BIN/kiln-export" x.db --format html 2>&1; }
[[ $(said) == *'written to'* && $(said) != *'written to'* ]] || fail 'a page that is there is written again, or was not written'
echo '// newer' >>v/viewer.js
[[ $(said) == *'written to'* ]] || fail 'a new viewer does not make the page due'
for text in '</script>' '<!--' $'\303\244' $'\r'; do
    printf '"%s"' "$text" >v/viewer.js
    KILN_VIEWER=$PWD/v must 3 kiln export x.db -o bad.html
    grep -q 'make viewer' err && [ ! -e bad.html ] || fail "viewer.js with $text: $(cat err)"
done

# A scene of several pieces: 3 MiB each, from the last one on.
if [ -n "$KILN_SHARED" ]; then
    kiln import "$KILN_SHARED/scenes/files/guitar_90854.compressed.ply" g.db >/dev/null || fail 'import'
    must 0 kiln export g.db --layer source -o g.html --add g.db --add g.db
    must 0 kiln export g.db --layer source -o g.sog --add g.db --add g.db
    python3 page.py g.html >g.json || fail 'the large page'
    cmp g.html.sog g.sog || fail 'the large scene inside is not the .sog'
    python3 -c 'import json; assert json.load(open("g.json"))["pieces"] > 1' || fail 'one piece'
fi
