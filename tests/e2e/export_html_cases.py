"""The python of tests/e2e/export_html.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import base64, hashlib, html.parser, json, math, sqlite3, sys


def page(path):
    class Page(html.parser.HTMLParser):
        def __init__(self):
            super().__init__(convert_charrefs=True)
            self.elements, self.policy = [], None

        def handle_starttag(self, tag, attributes):
            a = dict(attributes)
            bad = [k for k in a if k.startswith("on") or k in ("src", "srcdoc", "style")]
            assert not bad, f"<{tag}> has {bad}"
            if a.get("http-equiv") == "Content-Security-Policy":
                self.policy = a["content"]
            self.elements.append([tag, a, ""])

        def handle_endtag(self, tag):
            self.elements.append(["/" + tag, {}, ""])

        def handle_data(self, data):
            if self.elements:
                self.elements[-1][2] += data

    page = Page()
    text = open(path, encoding="ascii").read()
    page.feed(text)
    texts = lambda tag, **want: [
        t for name, a, t in page.elements if name == tag and all(a.get(k) == v for k, v in want.items())
    ]
    tags = [name for name, a, t in page.elements]
    assert tags.count("img") == tags.count("iframe") == tags.count("object") == 0, tags
    scripts = [(a, t) for name, a, t in page.elements if name == "script" and "type" not in a]
    assert len(scripts) == 1, "one script runs"
    digest = lambda t: "'sha256-" + base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() + "'"
    rules = {r.split()[0]: r.split()[1:] for r in page.policy.split(";")}
    assert rules["default-src"] == ["'none'"] and rules["style-src"] == [digest(texts("style")[0])], page.policy
    assert sorted(rules["script-src"]) == sorted(["'wasm-unsafe-eval'", digest(scripts[0][1])]), page.policy
    assert "connect-src" not in rules and rules["base-uri"] == rules["form-action"] == ["'none'"], page.policy
    scene = json.loads(texts("script", id="scene")[0])
    pieces = texts("script", **{"class": "splats"})
    data = b"".join(base64.b64decode(p, validate=True) for p in pieces)
    assert len(data) == scene["bytes"] and all(len(p) <= 4 << 20 for p in pieces), (len(data), scene["bytes"])
    open(path + ".sog", "wb").write(data)
    scene["title"], scene["pieces"] = texts("title")[0], len(pieces)
    print(json.dumps(scene))


def cameras():
    scene, moved, want = (json.load(open(f)) for f in ("scene.json", "moved.json", "cameras.json"))
    assert (
        [c["name"] for c in scene["cameras"]] == ["cam0", "cam1", "cam2"]
        and scene["rows"] == 600
        and scene["pieces"] == 1
    )

    def rotation(x, y, z):
        x, y, z = (math.radians(v) for v in (x, y, z))
        cx, sx, cy, sy, cz, sz = math.cos(x), math.sin(x), math.cos(y), math.sin(y), math.cos(z), math.sin(z)
        mul = lambda a, b: [[sum(a[i][k] * b[k][j] for k in range(3)) for j in range(3)] for i in range(3)]
        return mul(
            [[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]],
            mul([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]], [[1, 0, 0], [0, cx, -sx], [0, sx, cx]]),
        )

    turn = rotation(20, -30, 40)
    seen = lambda c, p: [sum(c["R"][3 * i + k] * p[k] for k in range(3)) + c["t"][i] for i in range(3)]
    for a, b in zip(scene["cameras"], moved["cameras"]):
        for p in ([0, 0, 0], [1, 2, 3], [-4, 1, 0.5]):
            q = [2 * sum(turn[i][k] * p[k] for k in range(3)) + (5, 6, 7)[i] for i in range(3)]
            assert all(math.isclose(2 * u, v, abs_tol=1e-9) for u, v in zip(seen(a, p), seen(b, q))), (a, b, p)
    listed = {c["name"]: c for c in want}
    for c in scene["cameras"]:
        w = listed[c["name"]]
        assert c["width"] == w["width"] and math.isclose(c["fx"], w["fx"]), (c, w)


def hostile_names(text):
    db = sqlite3.connect("hostile.db")
    db.execute("UPDATE scene SET name = ?", (text,))
    for i, (name,) in enumerate(db.execute("SELECT name FROM camera ORDER BY name").fetchall()):
        db.execute("UPDATE camera SET name = ? WHERE name = ?", (f"{i}\u202e{text}", name))
    db.commit()


def names_kept(text):
    scene = json.load(open("hostile.json"))
    assert scene["name"] == text == scene["title"], (scene["name"], scene["title"])
    assert all(text in c["name"] and "\u202e" not in c["name"] for c in scene["cameras"]), scene["cameras"][0]["name"]


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
