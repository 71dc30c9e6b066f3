"""The python of tests/e2e/lens.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import collections, json, struct, sys


def measured(path, least):
    views = json.load(open(path))["views"]
    for v in views:
        assert v["psnr"] is not None and v["psnr"] >= float(least) and not v.get("note"), v
    assert views


def data_set(k1):
    frames = [
        {
            "file_path": f"images/view_{k:02d}.png",
            "transform_matrix": [[1, 0, 0, k], [0, 1, 0, 0], [0, 0, 1, 9], [0, 0, 0, 1]],
        }
        for k in range(4)
    ]
    json.dump(
        {"camera_model": "OPENCV", "k1": float(k1), "w": 64, "h": 48, "fl_x": 50, "cx": 32, "cy": 24, "frames": frames},
        open("d/transforms.json", "w"),
    )


def records(*paths):
    def images(path):
        data, at, out = open(path, "rb").read(), 8, {}
        for _ in range(struct.unpack("<Q", data[:8])[0]):
            number, *pose = struct.unpack("<I7d", data[at : at + 60])
            end = data.index(b"\0", at + 64)
            (n,) = struct.unpack("<Q", data[end + 1 : end + 9])
            at = end + 9
            out[number] = (
                pose,
                data[end - 4 : end],
                [struct.unpack("<ddQ", data[at + 24 * i : at + 24 * i + 24]) for i in range(n)],
            )
            at += 24 * n
        assert at == len(data)
        return out

    a, b = (images(p) for p in paths)
    assert a.keys() == b.keys()
    moved = 0
    for k in a:
        sign = 1 if a[k][0][0] >= 0 else -1
        assert (
            all(abs(sign * x - y) < 1e-12 for x, y in zip(a[k][0][:4], b[k][0][:4])) and a[k][0][4:] == b[k][0][4:]
        ), (a[k][0], b[k][0])
        assert [p[2] for p in a[k][2]] == [p[2] for p in b[k][2]] and b[k][1] == b".png"
        for p, q in zip(a[k][2], b[k][2]):
            moved = max(moved, abs(p[0] - q[0]), abs(p[1] - q[1]))
            assert abs(p[0] - q[0]) < 30 and abs(p[1] - q[1]) < 30, (p, q)
    assert moved > 1


def models():
    views = collections.defaultdict(list)
    for v in json.load(open("out"))["views"]:
        views[v["name"].split("/")[0]].append(v["psnr"])
    for name, db in sorted(views.items()):
        print("%-28s %d photos, at least %.2f dB" % (name, len(db), min(db)))
    assert len(views) == 18


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
