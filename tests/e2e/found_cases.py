"""The python of tests/e2e/found.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import gzip, json, os, struct, sys, zipfile


def report():
    r = json.load(open("out"))
    assert r["split"] == {"rule": "every 8th by name", "test": 1, "train": 4}, r
    assert r["frames_dropped"] == 3 and r["frames_dropped_by"] == {"photo_not_there": 2, "photo_unreadable": 1}, r
    m = r["photos_missing"]
    assert (
        m["count"] == 2
        and m["first"] == "images/view_06.png"
        and "'images'" in m["sought"]
        and m["source_path"] == "/far/away"
    ), r
    assert r["distorted"] == {"cameras": 5, "model": "OPENCV", "as_is": False}, r
    assert r["cfg_args"]["white_background"] is True and r["cfg_args"]["images"] == "images", r


def others():
    def put(name, data):
        with open(name, "wb") as f:
            f.write(data)

    put("other.gz", gzip.compress(b"something else"))
    put("twice.ply.gz.gz", gzip.compress(gzip.compress(b"ply")))
    row = struct.pack("<6f8B", 1, 2, 3, 0.1, 0.1, 0.1, 9, 9, 9, 255, 255, 128, 128, 128)
    put("splat.dat", row * 4)
    put("text.dat", b"no splats" + 23 * b" ")
    put("cut.dat", row * 4 + b".")
    meta = json.dumps(
        {"version": 2, "count": 1, "means": {"mins": [0] * 3, "maxs": [1] * 3, "files": ["l.webp", "u.webp"]}}
    )
    with zipfile.ZipFile("z.sog", "w") as z:
        z.writestr("meta.json", meta)
    with zipfile.ZipFile("z.zip", "w") as z:
        z.writestr("holiday.txt", "sun")
    for d, name, text in (
        ("sog", "meta.json", meta),
        ("lod", "lod-meta.json", json.dumps({"lodLevels": 2, "filenames": []})),
        ("other", "meta.json", '{"means": 3}'),
    ):
        os.mkdir(d)
        put(d + "/" + name, text.encode())
    put("a.bin", b"RAD0" + bytes(100))
    put("b.rad", bytes(100))
    put("a.lcc", b'{"version": "5.0", "totalSplats": 3}')
    put("a.usda", b"#usda 1.0\n")
    with zipfile.ZipFile("a.usdz", "w") as z:
        z.writestr("a.usdc", "PXR-USDC")
    put("tileset.json", b'{"asset": {"version": "1.1"}, "geometricError": 10, "root": {}}')
    mesh = json.dumps(
        {
            "asset": {"version": "2.0"},
            "scenes": [{"nodes": [0]}],
            "nodes": [{"mesh": 0}],
            "extensionsRequired": ["KHR_draco_mesh_compression"],
            "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        }
    )
    os.mkdir("meshes")
    put("meshes/mesh.gltf", mesh.encode())
    os.mkdir("only")
    put("only/a.spz", gzip.compress(struct.pack("<IIIBBBB", 0x5053474E, 9, 5, 0, 12, 0, 0) + bytes(100)))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
