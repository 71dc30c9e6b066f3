"""plan_options.py STAGE MANIFEST SCENE GIVEN... -- a plan of the stage stands for GIVEN options; the stage is fresh under its stored ones.

Every step that is given other options ends with 4 and leaves claim and manifest as they are: without any, and with each stored option
at another value. Prints how many were tried."""
import hashlib
import json
import os
import subprocess
import sys

BIN = os.environ["KILN_BIN"]
stage, manifest, scene, *given = sys.argv[1:]

# Options whose values have a grammar of their own.
TEXT = {"split": "all-train", "near": "0.3", "level": "1", "tables": "none", "background": "white", "crop-box": "0,0,0,1,1,1",
        "crop-sphere": "0,0,0,1", "drop-row": "7", "filter-box": "0,0,0,1,1,1", "filter-sphere": "0,0,0,1",
        "filter-value": "opacity,gt,0.1", "cameras": scene + "/cameras.json", "photos": scene, "add": scene + "/scene.ply"}


def other_value(o):
    name, kind, default, limits = o["name"], o["kind"], o["default"], o["range"]
    if name in TEXT:
        return TEXT[name]
    if kind == "bool":
        return "no" if default == "yes" else "yes"
    if kind == "enum":
        return next(w for w in limits.split("|") if w != default and "--" + name + "=" + w not in given)
    if kind in ("u32", "u64"):
        return str(int(default) + 2 if int(default) < 9 else int(default) - 1)
    if kind == "f64x3":
        return "1,2,3"
    if kind == "f64":
        return "2" if default == "off" else "0.25"
    sys.exit(f"{stage}: the test has no value for --{name}")


def state():
    sums = []
    for path in (manifest, manifest + ".claim"):
        with open(path, "rb") as f:
            sums.append(hashlib.sha256(f.read()).hexdigest())
    return sums


def refuse(step, options):
    command = [f"{BIN}/kiln-{stage}"] + ([scene] if stage == "import" else []) + [manifest, "-q"] + step + options
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode != 4:
        sys.exit(f"FAIL: exit {ended.returncode} of {' '.join(command)}\n{ended.stderr}")
    if state() != before:
        sys.exit(f"FAIL: claim or manifest is another after {' '.join(command)}")
    return ended.stderr


before = state()
table = json.loads(subprocess.run([f"{BIN}/kiln-{stage}", "--help-json"], capture_output=True, check=True).stdout)
steps = (["--shard", "1/2", "--part", "other"], ["--gather", "parts"], ["--plan"])
tried = 0
os.makedirs("parts", exist_ok=True)
for step in steps:
    said = refuse(step, [])
    if "not those of the plan" not in said:
        sys.exit(f"FAIL: {stage} {step} says: {said}")
    for o in table["options"]:
        if o["stored"]:
            refuse(step, given + [f"--{o['name']}={other_value(o)}"])
            tried += 1
if os.path.exists("other"):
    sys.exit("FAIL: a refused part left its folder")
print(f"{stage}: {tried} steps with one option at another value")
