#!/usr/bin/env bash
# Every option that is a text with a grammar has a check (base/option.h, kiln_opt_check), so that a wrong text is refused before a bake
# begins. Those that take any text stand here, with the reason. An option that is in a stage's key from the first bakes on stands here,
# too; every other one is KILN_LATER, or each bake that is there would be made anew.
set -u
KILN_BIN=${KILN_BIN:-$PWD/build/bin}
python3 -SE - "$KILN_BIN" <<'EOF2'
import json, os, subprocess, sys

free = {
    ("export", "add"): "paths of manifests: the program's check opens them",
    ("slurm", "sbatch"): "options of another program",
    ("slurm", "sbatch-task"): "options of another program",
    ("slurm", "sbatch-round"): "options of another program",
    ("slurm", "wrapper"): "a command of the site",
    ("slurm", "setup"): "a file that the site's shell reads",
    ("slurm", "mail"): "an address for another program",
    ("pipeline", "stages"): "names of stages: chosen before anything else is done",
}
first = {  # not prune: a new rule raises its version (stages/prune/rules.def)
    "import": "cameras random-points seed",
    "knn": "neighbors initial-opacity",
    "chunk": "layer max min",
    "lod": "levels coarsest visibility views refine profile antialiased near",
    "tiles": "profile antialiased near tables",
    "render": "profile antialiased near background format alpha depth fast",
    "export": "format layer order chunks keep-origin",
}
folder = sys.argv[1]
programs = sorted(name[5:] for name in os.listdir(folder) if name.startswith("kiln-"))
bad, seen, texts = [], set(), 0
asked = [(name, [f"{folder}/kiln-{name}"]) for name in programs]
asked += [(name, [f"{folder}/kiln", name]) for name in ("pipeline", "slurm")]
stages = set()
for name, command in asked:
    options = json.loads(subprocess.run(command + ["--help-json"], capture_output=True, check=True).stdout)["options"]
    for o in options:
        if name in first and o["stored"] and o["later"] == (o["name"] in first[name].split()):
            bad.append(f"kiln-{name} --{o['name']}: " + ("was in keys from the first bakes on and is KILN_LATER" if o["later"] else
                                                         "is KILN_KEYED without KILN_LATER: each bake that is there would be made anew"))
        if o["kind"] not in ("text", "list") or o["range"] is not None:
            continue
        if name == "pipeline" and o["name"] != "stages":
            continue  # those of its stages, which are asked themselves
        texts += 1
        seen.add((name, o["name"]))
        if o["checked"] == ((name, o["name"]) in free):
            bad.append(f"kiln-{name} --{o['name']}: " + ("has a check and stands in the list" if o["checked"] else "has no check"))
bad += [f"kiln-{n} has no --{o} any more" for n, o in free if (n, o) not in seen]
if texts < 30:
    bad.append(f"only {texts} texts were found")
sys.exit("\n".join(bad) if bad else 0)
EOF2
