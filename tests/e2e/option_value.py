"""option_value.py -- a value other than its default for each option of a stage, by its row of --help-json.

As a program: option_value.py STAGE prints a line --NAME=VALUE for each option that `kiln pipeline` has of the stage, the value in
the form in which it reaches the stage."""
import json
import os
import subprocess
import sys

# Options whose values have a grammar of their own, or a range in which other_value has none.
TEXT = {"split": "all-train", "near": "0.3", "level": "1", "tables": "none", "background": "white", "crop-box": "0,0,0,1,1,1",
        "crop-sphere": "0,0,0,1", "drop-row": "7", "keep": "50%", "outlier-sor": "8,2", "filter-floaters": "0.1", "filter-cluster": "1,0.9", "filter-box": "0,0,0,1,1,1", "filter-sphere": "0,0,0,1",
        "filter-value": "opacity,gt,0.1", "cameras": "cameras.json", "photos": "photos", "add": "other.db",
        "scratch-dir": "scratch", "shared-dir": "shared", "shard": "1/2", "units": "1-2", "devices": "cpu", "sizes": "100,200",
        "against": "other.db", "write-undistorted": "undistorted", "camera": "#0", "orbit": "4", "look-at": "0,1,0", "through": "#0,#1", "size": "64x48",
        "crop": "8x8+1+1", "video": "film.mp4", "levels-against": "levels", "output": "out", "chunks": "#0", "geo": "1,2,3",
        "format": "ply,spz"}


def table_of(stage):
    program = os.environ["KILN_BIN"] + "/kiln-" + stage
    return json.loads(subprocess.run([program, "--help-json"], capture_output=True, check=True).stdout)["options"]


def other_value(o, taken=()):
    """Of an enum none of the words in `taken`. None: the option is of a kind that has no value here."""
    name, kind, default, limits = o["name"], o["kind"], o["default"], o["range"]
    if name in TEXT and kind in ("text", "path", "list"):
        return TEXT[name]
    if kind == "bool":
        return "no" if default == "yes" else "yes"
    if kind == "enum":
        return next(w for w in limits.split("|") if w != default and w not in taken)
    if kind in ("u32", "u64"):
        now = 0 if default == "off" else int(default or 0)
        most = int((limits or "").split("|")[0].split("..")[-1] or now + 2)
        return str(now + 2 if now < 9 and now + 2 <= most else now - 1)
    if kind == "f64x3":
        return "1,2,3"
    if kind == "f64":
        most = (limits or "").split("|")[0].split("..")[-1]
        return "0.25" if default != "off" else "2" if not most or float(most) >= 2 else "0.5"
    if kind == "size":
        return "40%"
    return None


def main(stage):
    for o in table_of(stage):
        if o["alone"] or o["step"]:
            continue
        value = other_value(o)
        if value is None:
            sys.exit(f"{stage}: the test has no value for --{o['name']}")
        print(f"--{o['name']}={value}")


if __name__ == "__main__":
    main(sys.argv[1])
