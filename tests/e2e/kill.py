"""kill -- bakes again and again and kills parent, workers or both at random moments. Arguments: programs, scene, manifest of the
same bake in one go, folder, how many kills, seed; then what to give kiln-chunk.

After each kill: verify finds nothing wrong. Whoever runs next keeps every unit that was committed, row by row, and computes
just the rest, by the run's own record. Each bake that comes through has the digests of the one in one go. A bake whose
worker alone was killed comes through by itself."""
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

bin_dir, scene, straight, folder, kills, seed = sys.argv[1:5] + [int(a) for a in sys.argv[5:7]]
chunk_options = sys.argv[7:]
db = f"{folder}/killed.db"
STAGES = ["import", "knn", "prune", "chunk", "tiles", "render", "export"]
WORKERS = ["--workers", "3"]


def command(stage):
    words = [f"{bin_dir}/kiln-{stage}", "--quiet"] + ([scene] if stage == "import" else []) + [db]
    return words + (chunk_options if stage == "chunk" else []) + WORKERS


def fail(text):
    sys.exit(f"{text} (SEED={seed})")


def verify(path, *options):
    done = subprocess.run([f"{bin_dir}/kiln-verify", "--quiet", path, *options], capture_output=True, text=True)
    if done.returncode:
        fail(f"verify of {path}: {done.stderr}")
    return done.stdout


class State:
    """Committed units by key (the list of files, which each run replaces, is none), and the records of finished runs: stage -> (done, cached), those after run `last` only."""

    def __init__(self, path, last=0):
        self.units, self.runs, self.last, self.made = {}, {}, last, False
        if not os.path.exists(path):
            return
        base = sqlite3.connect(path, timeout=20)
        try:
            if not base.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'unit'").fetchone()[0]:
                return  # killed while it was made: an empty database, which the next import fills
            self.made = True
            self.units = {row[0]: row for row in base.execute("SELECT key, id, stage, name, wall_ns, finished_ns FROM unit WHERE stage <> 'product'")}
            for i, stage, text in base.execute("SELECT id, stage, counters FROM run WHERE exit_code = 0 AND id > ? ORDER BY id", (last,)):
                units = json.loads(text)["units"]
                self.runs[stage], self.last = (units["done"], units["cached"]), i
        finally:
            base.close()

    def count(self, stage):
        # The record of a written file is no unit of a list: a run that finds its file as it was has nothing to compute or to keep.
        return sum(row[2] == stage and row[3] != "written file" for row in self.units.values())


def check_nothing_redone(before, now, whole):
    """`now` came out of `before`; `whole`: how many units each stage has."""
    for key, row in before.units.items():
        if now.units.get(key) != row:
            fail(f"a committed unit was done again: {row}, now {now.units.get(key)}")
    for stage, (done, cached) in now.runs.items():
        kept = before.count(stage)
        # More may be kept than could be seen at the kill: a commit whose writer died before it told others shows once the last
        # worker is gone. Results that are never stored are computed again, though not all of them when little is left to do.
        if cached < whole[stage][1] + kept or done + cached > sum(whole[stage]):
            fail(f"{stage}: {done} done and {cached} kept where {kept} of {whole[stage][0]} were committed")


def workers_of(parent):
    """Its processes that are workers; all of a stage are one process group."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as f:
                group = int(f.read().rpartition(")")[2].split()[2])
            if group != parent:
                continue
            with open(f"/proc/{name}/cmdline", "rb") as f:
                if b"\0--worker=" in f.read():
                    found.append(int(name))
        except OSError:
            continue  # it ended just now
    return found


def kill(who, parent):
    """Whether it hit."""
    if who == "both":
        os.killpg(parent, signal.SIGKILL)
    elif who == "parent":
        os.kill(parent, signal.SIGKILL)
    else:
        there = workers_of(parent)
        try:
            if there:
                os.kill(random.choice(there), signal.SIGKILL)
        except ProcessLookupError:
            return False
        return bool(there)
    return True


def bake(who, moment):
    """Every stage; kills once, `moment` seconds from now. Whether it came through, and whether it was hit."""
    until, hit = time.monotonic() + moment, False
    for stage in STAGES:
        with open(f"{folder}/said", "w") as said:
            process = subprocess.Popen(command(stage), stdout=said, stderr=said, start_new_session=True)
        while process.poll() is None:
            if hit or time.monotonic() < until:
                try:
                    process.wait(60 if hit else max(0.0, until - time.monotonic()))
                except subprocess.TimeoutExpired:
                    if hit:
                        fail(f"{stage} hangs after a kill of {who}")
                continue
            hit = kill(who, process.pid)
            time.sleep(0 if hit else 0.001)
        if process.returncode == 0:
            continue
        if not hit or process.returncode != -signal.SIGKILL:
            with open(f"{folder}/said") as said:
                fail(f"{stage} ended with {process.returncode} {'after a kill of ' + who if hit else 'by itself'}: {said.read()}")
        return False, hit
    return True, hit


def main():
    random.seed(seed)
    begun = time.monotonic()
    if not bake("nobody", 1e9)[0]:
        fail("the first bake")
    seconds, digest = time.monotonic() - begun, verify(straight, "--digest")
    whole = State(straight).runs
    before, through, counts = State(db), 0, {"parent": 0, "workers": 0, "both": 0}
    while True:
        finished = True
        if sum(counts.values()) < kills:
            who = random.choice(list(counts))
            finished, hit = bake(who, random.uniform(0, 0.9) * seconds)
            counts[who] += hit
        else:
            finished, _ = bake("nobody", 1e9)
        now = State(db, before.last)
        check_nothing_redone(before, now, whole)
        if now.made:
            verify(db)
        before = now
        if not finished:
            continue
        if verify(db, "--digest") != digest:
            fail("other digests than in one go")
        if os.path.exists(f"{db}.scratch"):
            fail(f"scratch is left: {os.listdir(db + '.scratch')}")
        through += 1
        for name in os.listdir(folder):
            if name.startswith("killed.db"):
                os.remove(f"{folder}/{name}")
        shutil.rmtree(f"{folder}/export")  # of the bake that is gone: another manifest does not replace it
        before = State(db)
        if sum(counts.values()) >= kills:
            break
    print(f"kills of {counts}, {through} bakes came through, each with the same digests, no committed unit was done again")


main()
