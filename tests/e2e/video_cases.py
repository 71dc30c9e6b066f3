"""The python of tests/e2e/video.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, signal, struct, subprocess, sys, time, zlib


def frames(count):
    def pixels(path):  # 8-bit RGB, filtered by rows
        data, out, at = open(path, "rb").read(), b"", 8
        while at < len(data):
            n, kind = struct.unpack(">I4s", data[at : at + 8])
            if kind == b"IHDR":
                w, h = struct.unpack(">II", data[at + 8 : at + 16])
            if kind == b"IDAT":
                out += data[at + 8 : at + 8 + n]
            at += 12 + n
        out, rows, above = zlib.decompress(out), [], bytes(3 * w)
        for y in range(h):
            f, row = out[y * (3 * w + 1)], bytearray(out[y * (3 * w + 1) + 1 : (y + 1) * (3 * w + 1)])
            for i in range(3 * w):
                a, b, c = (row[i - 3] if i > 2 else 0), above[i], (above[i - 3] if i > 2 else 0)
                p = a + b - c
                best = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
                row[i] = (row[i] + (0, a, b, (a + b) // 2, best)[f]) & 255
            rows.append(bytes(row))
            above = row
        return b"".join(rows)

    raw, n = open("all.raw", "rb").read(), 97 * 64 * 3
    for i in range(0, int(count), 3):
        assert raw[i * n : (i + 1) * n] == pixels("png/orbit_%04d.png" % i), i


def sizes():
    d = json.load(open("s/cameras.json"))
    d[2]["width"] = 80
    json.dump(d, open("sizes.json", "w"))


def interrupt(program):
    p = subprocess.Popen(
        [program, "m/x.db", "--orbit", "300", "--size", "640x400", "--video", "x.mp4"],
        stderr=open("err", "w"),
        stdout=subprocess.DEVNULL,
    )

    def sleeps(child):
        try:
            return "sleep" in open("/proc/%s/comm" % child).read()
        except OSError:
            return False  # it has ended meanwhile

    while not any(sleeps(c) for c in open("/proc/%d/task/%d/children" % (p.pid, p.pid)).read().split()):
        assert p.poll() is None
        time.sleep(0.05)
    p.send_signal(signal.SIGINT)
    assert p.wait() == 130, p.returncode


def shows(count):
    raw, mp4, y4m = (open(f + ".raw", "rb").read() for f in ("all", "fly", "y4m"))
    n, m = 97 * 64 * 3, 96 * 64 * 3

    def apart(a, b):
        return sum(abs(p - q) for p, q in zip(a, b)) / len(a)

    assert len(raw) == len(y4m) and len(mp4) == int(count) * m, (len(raw), len(y4m), len(mp4))
    for i in (0, 17, 39):
        want = b"".join(raw[i * n + y * 291 : i * n + y * 291 + 288] for y in range(64))
        same, other = apart(want, mp4[i * m : (i + 1) * m]), apart(
            want, mp4[(i + 20) % 40 * m : ((i + 20) % 40 + 1) * m]
        )
        y = apart(raw[i * n : (i + 1) * n], y4m[i * n : (i + 1) * n])
        print(i, same, other, y)
        assert same < 6 and other > same + 3 and y < 6


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
