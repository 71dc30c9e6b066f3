"""The python of tests/e2e/report.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import base64, json, os, re, shutil, sqlite3, struct, sys
import report
from math import log

from splat_columns import SPLAT_COLUMNS


def stranger(path):
    db = sqlite3.connect(path)
    evil = "</script></style>--><img src=x onerror=alert(1)>\"'><svg onload=alert(2)>"
    db.execute("UPDATE scene SET name = ?, up_axis = ?, unit = ?", ("scene" + evil, evil[:40], evil[-20:]))
    db.execute("UPDATE run SET device = ?, program = ?", ("device" + evil, "program" + evil))
    for id, text in db.execute("SELECT id, parameters FROM run").fetchall():
        p = json.loads(text)
        p["key" + evil] = "value" + evil
        db.execute("UPDATE run SET parameters = ? WHERE id = ?", (json.dumps(p), id))
    for id, text in db.execute("SELECT id, counters FROM run").fetchall():
        c = json.loads(text)
        for name in ("dropped", "frames_dropped_by", "rules"):
            c[name] = {"reason" + evil: 3 if name != "rules" else {"dropped": 5, "policy": evil}}
        c["split"] = {"rule": "split" + evil}
        db.execute("UPDATE run SET counters = ? WHERE id = ?", (json.dumps(c), id))
    db.execute(
        "INSERT INTO quarantine VALUES (randomblob(16), 'tiles', ?, 3, ?, ?, 1795470251865196815)",
        ("unit" + evil, "gpu" + evil, "reason of it" + evil),
    )
    db.execute("UPDATE source_file SET role = 'r' || substr(?, 1, 25)", (evil,))
    db.commit()


def told(path):
    p = report.page(path)
    evil = "</script></style>--><img src=x onerror=alert(1)>\"'><svg onload=alert(2)>"
    for word in ("scene", "device", "program", "--key", "value", "split", "reason", "unit", "gpu", "reason of it"):
        assert word + evil in p.text, word


def counters(path):
    db = sqlite3.connect(path)
    for i, text in enumerate(
        [
            "[]",
            '{"rules":[1],"dropped":"x","split":7,"units":[]}',
            '{"rules":{"a":[],"b":7},"dropped":{"c":-1,"d":[]}}',
            "{}",
            '{"rules":{"a":{"dropped":1e300,"limit":"x"}}}',
            '{"rows":-5,"kept":[],"rules":{"min-opacity":{"limit":1e308}}}',
        ]
    ):
        db.execute("UPDATE run SET counters = ?, parameters = ? WHERE id = ?", (text, text, i + 1))
    db.execute("UPDATE run SET start_ns = 9223372036854775807, stop_ns = 0")
    db.commit()


def rows(path):
    names = SPLAT_COLUMNS
    with open(path, "wb") as f:
        f.write(
            (
                "ply\nformat binary_little_endian 1.0\nelement vertex 1000\n"
                + "".join(f"property float {n}\n" for n in names)
                + "end_header\n"
            ).encode()
        )
        for i in range(1000):  # 40 of opacity 0.03, 7 needles of 30 : 1, the others all alike
            opacity, needle = 0.03 if i < 40 else 0.8, 30 if 100 <= i < 107 else 1
            f.write(
                struct.pack(
                    "<14f",
                    i % 10,
                    i // 10 % 10,
                    i // 100,
                    0,
                    0,
                    0,
                    log(opacity / (1 - opacity)),
                    log(0.05 * needle),
                    log(0.05),
                    log(0.05),
                    1,
                    0,
                    0,
                    0,
                )
            )


def shown(path):
    p = report.page(path)
    n = {}
    for tag, a in p.tags:
        if tag in ("img", "image"):
            kind, data = a["src" if tag == "img" else "href"].split(";base64,")
            head = base64.b64decode(data)[:12]
            assert head[:3] == b"\xff\xd8\xff" if kind == "data:image/jpeg" else head[8:] == b"WEBP", kind
            layer = a["alt"].lower() if tag == "img" else "tiles"
            n[layer] = n.get(layer, 0) + 1
    print(*(f"{k}:{n[k]}" for k in sorted(n)))


def levels(json_path, page_path):
    want = {r["level"]: r["psnr"] for r in json.load(open(json_path))["levels_against"]}
    got = re.findall('<h4>Level (\\d+).*?class="numbers">([0-9.]+) dB', open(page_path).read())
    assert got and all(abs(float(db) - want[int(level)]) < 0.006 for level, db in got), (got, want)


def move_camera(path):
    db = sqlite3.connect(path)
    db.execute("UPDATE camera SET t0 = 1e7 WHERE name = 'view_03'")
    db.commit()


def hosts(path):
    db = sqlite3.connect(path)
    tasks = [i for i, in db.execute("SELECT id FROM run WHERE instr(counters, '\"part stored\"') ORDER BY id")]
    assert len(tasks) == 4, tasks
    for k, i in enumerate(tasks):
        db.execute("UPDATE run SET counters = json_set(counters, '$.host', ?) WHERE id = ?", (f"node<{k % 2}>", i))
    db.commit()


def strange_photos(path, folder):
    db, t = sqlite3.connect(path), folder

    def photo(camera, path, listed):  # listed: with the size and hash of the photo that it was
        (old,) = db.execute("SELECT path FROM photo WHERE camera = ?", (camera,)).fetchone()
        db.execute("UPDATE photo SET path = ? WHERE camera = ?", (path, camera))
        if listed:
            db.execute("UPDATE source_file SET path = ? WHERE path = ?", (path, old))

    photo("view_00", t + "/secret.png", False)
    photo("view_01", t + "/pipe.png", True)
    photo("view_02", "/etc/passwd", True)
    photo("view_03", t + "/link.png", True)
    db.execute("UPDATE image SET path = 'renders/outside/view_00.png' WHERE camera = 'view_00'")
    db.execute("UPDATE image SET path = 'renders' WHERE camera = 'view_01'")
    db.execute("UPDATE image SET path = 'renders/away.png' WHERE camera = 'view_02'")
    os.symlink(t + "/secret.png", t + "/demo/bake/renders/away.png")
    os.symlink(t + "/demo/images", t + "/demo/bake/renders/outside")
    os.mkfifo(t + "/demo/bake/renders/pipe.png")
    db.execute("UPDATE image SET path = 'renders/pipe.png' WHERE camera = 'view_03'")
    db.commit()


def change_photo(folder, kept):
    names = sorted((os.path.join(folder, n) for n in os.listdir(folder)), key=os.path.getsize)
    shutil.copytree(folder, kept)
    size, data = os.path.getsize(names[-1]), open(names[0], "rb").read()
    open(names[-1], "wb").write(data + bytes(size - len(data)))


def begins_with_pictures(path):
    text = open(path, encoding="utf-8").read()
    main = text[text.index("<main>") :]
    assert main.index("<h2>Pictures</h2>") < main.index("<h2>Import</h2>") and main.index("<img") < main.index("<table")
    cards = main[: main.index("</section>")].split("<article")[1:]
    told = [float(re.search(r">([0-9.]+) dB", card).group(1)) for card in cards]
    assert len(told) == 3 and told == sorted(told) and told[0] < told[-1], told
    for card in cards:
        assert re.search(r'class="mode beside" checked', card) and card.count("checked") == 1, card[:400]
        assert 'alt="Photo"' in card and 'alt="Picture"' in card, card[:400]


def narrow(path, folder):
    """The page without its policy, in a frame of 390 pixels, and a script that says how wide what is."""
    os.makedirs(folder)
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", open(path, encoding="utf-8").read())
    script = """document.querySelectorAll("details").forEach((d) => { d.open = true; });
        const told = [["page", document.documentElement.scrollWidth > innerWidth ? "cut" : "fits"]];
        for (const e of document.querySelectorAll("main *"))
            if (!e.closest(".scroll, .views") && e.getBoundingClientRect().right > innerWidth + 1)
                told.push([e.tagName + " " + e.className, "cut"]);
        for (const e of document.querySelectorAll(".scroll, .views")) {
            e.scrollLeft = 1e6;
            const last = [...e.querySelectorAll("th, td, article")].map((c) => c.getBoundingClientRect().right);
            const reached = Math.max(...last) <= e.getBoundingClientRect().right + 1;
            told.push([e.getAttribute("aria-label"), reached ? (e.scrollLeft > 0 ? "scrolls" : "fits") : "cut"]);
        }
        parent.postMessage(JSON.stringify(told), "*");"""
    open(folder + "/page.html", "w").write(text.replace("</body>", "<script>%s</script></body>" % script))
    frame = '<iframe src="page.html" width=390 height=3000></iframe><script>onmessage = (e) => { document.title = "TOLD" + e.data; }</script>'
    open(folder + "/frame.html", "w").write(frame)


def nothing_is_cut(dom):
    told = json.loads(re.search(r"<title>TOLD(.*?)</title>", open(dom).read()).group(1))
    assert len(told) > 8 and not [t for t in told if t[1] == "cut"], told
    assert [t for t in told if t[1] == "scrolls"], told


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
