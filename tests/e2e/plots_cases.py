"""The python of tests/e2e/plots.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import fcntl, json, os, pty, sqlite3, struct, sys, termios


def plots(json_path, text_path):
    d = json.load(open(json_path))
    shown = open(text_path, encoding="utf-8").read()
    p, c = d["plots"], d["counts"]
    assert list(p) == ["scale", "opacity", "needle", "spacing", "chunk_rows"], list(p)
    for key in ("scale", "opacity", "needle", "spacing"):
        assert [(s["name"], s["counted"]) for s in p[key]["series"]] == [
            ("before", c["source"]),
            ("after", c["pruned"]),
        ], p[key]
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


def terminal(program, db, columns):
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(columns), 0, 0))
        os.execve(program, [program, db, "--plots"], {"LC_ALL": "C.UTF-8"})
    text = b""
    while True:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        text += part
    assert os.waitpid(pid, 0)[1] == 0
    lines = text.decode().replace("\r\n", "\n").split("Longest axis", 1)[1].split("\n")
    assert "\x1b" not in text.decode()
    widest = max(len(l) for l in lines[1:])
    want = min(int(columns), 80)
    assert widest <= want and (widest > want - 16), (widest, want)


def odd(path, *statements):
    db = sqlite3.connect(path)
    db.execute("PRAGMA ignore_check_constraints = 1")
    for sql in statements:
        db.execute(sql)
    db.commit()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
