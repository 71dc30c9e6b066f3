"""host_kills -- bakes again and again in rounds of --plan, --shard --part and --gather, without a scheduler, and kills plans, tasks and
gathers at random moments: the parent, a worker or both. Arguments: programs, scene, manifest of the same bake in one go, folder, how
many kills, seed; then what to give kiln-chunk.

Tasks run three at a time, some twice at the same time, and a plan may get another number of tasks while its parts lie there. After
each kill: each part that has its name is whole, and none is put aside as bad; a task leaves the manifest's bytes and the names beside
it as they are; kiln-verify finds nothing wrong with what a plan or a gather leaves, and no committed unit is computed again.
At the end: the digests of the bake in one go, and no part, copy, claim, log or scratch."""
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

bin_dir, scene, straight, folder, kills, seed = sys.argv[1:5] + [int(a) for a in sys.argv[5:7]]
chunk_options = sys.argv[7:]
db, parts, scratch = f"{folder}/killed.db", f"{folder}/parts", f"{folder}/scratch"
STAGES = ["import", "knn", "prune", "chunk", "tiles", "render", "export"]
usual = {}  # seconds that a command of this kind takes
scratch_options = []  # half of the bakes have --scratch-dir
counts = {"plan": 0, "task": 0, "gather": 0}


def fail(text):
    sys.exit(f"{text} (SEED={seed})")


def command(stage, *options):
    words = [f"{bin_dir}/kiln-{stage}", "--quiet"] + ([scene] if stage == "import" else []) + [db]
    return words + (chunk_options if stage == "chunk" else []) + scratch_options + list(options)


def has_rounds(stage):
    text = subprocess.run([f"{bin_dir}/kiln-{stage}", "--help-json"], capture_output=True, text=True, check=True).stdout
    return any(o["name"] == "plan" for o in json.loads(text)["options"])


def verify(path, *options):
    done = subprocess.run([f"{bin_dir}/kiln-verify", "--quiet", path, *options], capture_output=True, text=True)
    if done.returncode:
        fail(f"verify of {path}: {done.stderr}")
    return done.stdout


def claim():
    try:
        with open(f"{db}.claim") as f:
            lines = f.read().splitlines()
    except FileNotFoundError:
        return None
    if lines[-1] != "end":
        fail("the claim was cut short")
    return dict(line.split(" ", 1) for line in lines[:-1])


def part_name(c, i, n):
    return f"{parts}/{c['stage']}-{c['plan']}-{i}-of-{n}.part"


def beside():
    """Names and bytes of what a task may not touch."""
    names = sorted(n for n in os.listdir(folder) if n.startswith("killed.db"))
    with open(db, "rb") as f:
        return names, hash(f.read())


def check_parts():
    for name in os.listdir(parts):
        if name.endswith(".bad"):
            fail(f"a part was put aside: {name}")
        if not name.endswith(".part"):
            continue
        base = sqlite3.connect(f"file:{parts}/{name}?immutable=1", uri=True)
        if base.execute("PRAGMA integrity_check").fetchone()[0] != "ok" or base.execute("SELECT seal IS NULL FROM part").fetchone()[0]:
            fail(f"a part is not whole: {name}")
        base.close()


def committed():
    """Rows of units by key, but for what is known of the bake's files, which is written anew; none where there is no manifest yet."""
    if not os.path.exists(db):
        return {}
    base = sqlite3.connect(db, timeout=20)
    try:
        if not base.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'unit'").fetchone()[0]:
            return {}
        return {row[0]: row for row in base.execute("SELECT key, stage, name, wall_ns, finished_ns FROM unit WHERE stage <> 'product'")}
    finally:
        base.close()


def workers_of(parent):
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as f:
                group = int(f.read().rpartition(")")[2].split()[2])
            with open(f"/proc/{name}/cmdline", "rb") as f:
                if group == parent and b"\0--worker=" in f.read():
                    found.append(int(name))
        except OSError:
            continue  # it ended just now
    return found


class Run:
    """A command in its own process group, which a kill may be meant for: at `moment`, of `who`."""

    def __init__(self, kind, words):
        self.kind, self.words, self.begun = kind, words, time.monotonic()
        self.said = open(f"{folder}/said.{time.monotonic_ns()}", "w+")
        self.process = subprocess.Popen(words, stdout=self.said, stderr=self.said, start_new_session=True)
        self.who, self.hit = None, False
        if sum(counts.values()) < kills and random.random() < (0.4 if kind == "task" else 0.8):
            self.who = random.choice(["parent", "worker", "all"])
            self.moment = self.begun + random.uniform(0, usual.get((kind, words[0]), 0.3))

    def kill(self):
        if self.who == "all":
            os.killpg(self.process.pid, signal.SIGKILL)
        elif self.who == "parent":
            os.kill(self.process.pid, signal.SIGKILL)
        else:
            there = workers_of(self.process.pid)
            if not there:
                return
            try:
                os.kill(random.choice(there), signal.SIGKILL)
            except ProcessLookupError:
                return
        self.hit = True
        counts[self.kind] += 1

    def poll(self):
        """None while it runs; else whether it came through."""
        if self.process.poll() is None:
            if self.who and not self.hit and time.monotonic() >= self.moment and sum(counts.values()) < kills:
                self.kill()
            elif time.monotonic() > self.begun + 300:
                fail(f"hangs: {self.words}")
            return None
        self.said.seek(0)
        text = self.said.read()
        self.said.close()
        os.remove(self.said.name)
        code = self.process.returncode
        if code not in (0, -signal.SIGKILL) or (code and not self.hit):
            fail(f"{self.words} ended with {code}, hit: {self.hit}: {text}")
        if code == 0 and not self.hit:
            usual[(self.kind, self.words[0])] = time.monotonic() - self.begun
        return code == 0


def run_all(runs, at_once=3):
    """Starts them, some at a time; waits for all. Whether each came through."""
    waiting, working, through = list(runs), [], []
    while waiting or working:
        while waiting and len(working) < at_once:
            working.append(Run(*waiting.pop()))
        for r in list(working):
            ended = r.poll()
            if ended is not None:
                working.remove(r)
                through.append(ended)
        time.sleep(0.002)
    return all(through)


def write(kind, *words):
    """A plan or a gather, again until it comes through."""
    while True:
        before = committed()
        through = run_all([(kind, command(*words))])
        now = committed()
        for key, row in before.items():
            if now.get(key) != row:
                fail(f"a committed unit was computed again or is gone: {row}, now {now.get(key)}")
        check_parts()
        if through:
            return
        if now:
            verify(db)


def rounds(stage):
    write("plan", stage, "--plan", "--tasks", str(random.randint(1, 5)))
    n_rounds = 0
    while claim():
        n_rounds += 1
        c = claim()
        if random.random() < 0.2:
            write("plan", stage, "--plan", "--tasks", str(random.randint(1, 5)))
        before = beside()
        while True:
            n = int(claim()["tasks"])
            missing = [i for i in range(1, n + 1) if not os.path.exists(part_name(c, i, n))]
            if not missing:
                break
            if random.random() < 0.2:
                missing.append(random.choice(missing))  # a scheduler may run a task twice by mistake
            run_all([("task", command(stage, "--shard", f"{i}/{n}", "--part", parts)) for i in missing])
            check_parts()
            if beside() != before:
                fail(f"a task of {stage} changed the manifest or what lies beside it: {beside()[0]}")
            if random.random() < 0.2 and n > 1:
                write("plan", stage, "--plan", "--tasks", str(random.randint(1, 5)))
                before = beside()
        write("gather", stage, "--gather", parts, "--remove-parts")
        left = os.listdir(parts)
        if left:
            fail(f"left of the parts of {stage}: {left}")
    return n_rounds


def main():
    random.seed(seed)
    os.makedirs(parts), os.makedirs(scratch)
    shared_out = [s for s in STAGES if has_rounds(s)]
    digest, n_rounds, bakes = verify(straight, "--digest"), {}, 0
    while not bakes or sum(counts.values()) < kills:
        scratch_options[:] = ["--scratch-dir", scratch] if random.random() < 0.5 else []
        for stage in STAGES:
            if stage in shared_out:
                n_rounds[stage] = rounds(stage)
            elif subprocess.run(command(stage), stdout=subprocess.DEVNULL).returncode:
                fail(stage)
        if verify(db, "--digest") != digest:
            fail("other digests than in one go")
        verify(db)
        bakes += 1
        # What the bake in one go has beside its manifest (pictures, exports), and nothing else.
        home = {n.replace(os.path.basename(straight), "killed.db") for n in os.listdir(os.path.dirname(straight))}
        left = set(os.listdir(folder)) - home - {"parts", "scratch"}
        if left or os.listdir(parts) or os.listdir(scratch):
            fail(f"left behind: {sorted(left)} {os.listdir(parts)} {os.listdir(scratch)}")
        for name in home:
            subprocess.run(["rm", "-rf", f"{folder}/{name}"], check=True)
    print(f"kills of {counts} in {bakes} bakes, each with the same digests; rounds: {n_rounds}")


main()
