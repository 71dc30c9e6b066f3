"""slurm_killer -- disturbs the bakes of slurm_kills.t until there were enough kills. Each time it waits for a process of a
random kind and kills it at a random moment: a job's, in which its stages run, or a worker; of those side by side now and then
all. Or a running job is put back into the queue, or a job of another partition takes its place.
Arguments: kiln, how folders of bakes begin, file of events (a line each), how many kills, seed, the process with which this
ends."""
import os
import random
import signal
import subprocess
import sys
import time

kiln, folders, events, wanted, seed, parent = sys.argv[1:4] + [int(a) for a in sys.argv[4:7]]
n_kills = 0


def kind_of(words):
    """What a command line is: job, worker, or None."""
    if not any(w.startswith(folders) or f"={folders}" in w for w in words):
        return None
    if any(w.startswith("--worker=cpu:") for w in words):
        return "worker"
    return "job" if words[:3] == [kiln, "slurm", "--job"] else None


def processes_of(kind):
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as f:
                words = f.read().decode(errors="replace").split("\0")
        except OSError:
            continue  # it ended just now
        if kind_of(words) == kind:
            found.append(int(name))
    return found


def note(what):
    with open(events, "a") as f:
        f.write(what + "\n")


def strike(kind):
    global n_kills
    deadline = time.monotonic() + 5
    while not processes_of(kind):
        if time.monotonic() > deadline:
            return
        time.sleep(0.01)
    time.sleep(random.uniform(0, 0.3))
    there = processes_of(kind)
    if there and random.random() < 0.67:
        there = [random.choice(there)]
    for pid in there:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        n_kills += 1
        note(kind)


def running():
    listed = ["squeue", "--noheader", "--states=RUNNING", "--array", "--format=%i %k"]
    jobs = subprocess.run(listed, capture_output=True, text=True).stdout
    return [line.split()[0] for line in jobs.splitlines() if line.split()[1:2] == ["kiln"]]


def requeue():
    jobs = running()
    if jobs and subprocess.run(["scontrol", "requeue", random.choice(jobs)], stderr=subprocess.DEVNULL).returncode == 0:
        note("requeue")


def preempt():
    other = ["sbatch", "--partition=high", "--cpus-per-task=4", "--output=/dev/null", "--wrap=sleep 0.5"]
    if running() and subprocess.run(other, stdout=subprocess.DEVNULL).returncode == 0:
        note("preempt")


random.seed(seed)
while n_kills < wanted and os.getppid() == parent:
    what = random.choices(["job", "worker", "requeue", "preempt"], [6, 3, 1, 1])[0]
    if what == "requeue":
        requeue()
    elif what == "preempt":
        preempt()
    else:
        strike(what)
    time.sleep(random.uniform(0.1, 1))
