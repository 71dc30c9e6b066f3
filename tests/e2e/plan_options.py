"""plan_options.py STAGE MANIFEST SCENE GIVEN... -- a plan of the stage stands for GIVEN options; the stage is fresh under its stored ones.

Every step that is given other options ends with 4 and leaves claim and manifest as they are: without any, and with each stored option
at another value. Prints how many were tried."""
import os
import subprocess
import sys

from option_value import other_value, table_of

BIN = os.environ["KILN_BIN"]
stage, manifest, scene, *given = sys.argv[1:]

taken = {o.split("=", 1)[1] for o in given}
FOUND = {"cameras": scene + "/cameras.json", "photos": scene, "add": scene + "/scene.ply"}


def value_of(o):
    value = FOUND.get(o["name"]) or other_value(o, taken)
    return value or sys.exit(f"{stage}: the test has no value for --{o['name']}")


def state():
    """All bytes: to compare them takes a tenth of the time of a hash, and there are hundreds of steps."""
    return [open(path, "rb").read() for path in (manifest, manifest + ".claim")]


def refuse(step, options):
    command = [f"{BIN}/kiln-{stage}"] + ([scene] if stage == "import" else []) + [manifest, "-q"] + step + options
    ended = subprocess.run(command, capture_output=True, text=True)
    if ended.returncode != 4:
        sys.exit(f"FAIL: exit {ended.returncode} of {' '.join(command)}\n{ended.stderr}")
    if state() != before:
        sys.exit(f"FAIL: claim or manifest is another after {' '.join(command)}")
    return ended.stderr


before = state()
steps = (["--shard", "1/2", "--part", "other"], ["--gather", "parts"], ["--plan"])
tried = 0
os.makedirs("parts", exist_ok=True)
for step in steps:
    said = refuse(step, [])
    if "differ from those of" not in said:
        sys.exit(f"FAIL: {stage} {step} says: {said}")
    for o in table_of(stage):
        if o["stored"]:
            refuse(step, given + [f"--{o['name']}={value_of(o)}"])
            tried += 1
if os.path.exists("other"):
    sys.exit("FAIL: a refused part left its folder")
print(f"{stage}: {tried} steps with one option at another value")
