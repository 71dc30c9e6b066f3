#!/usr/bin/env bash
# Progress of `kiln pipeline`: stage k of n and about how long the bake still takes, as lines in a file and as a bar of at most 80 columns
# on a terminal. The workers are stopped for a while, so that there is time to tell something. Where nothing is to be done, and with
# --quiet, nothing is told.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
command -v python3 >/dev/null || skip 'python3 is missing'
scene s 3000 3 96x64

# slow SECONDS STAGE HOW command...: its workers are stopped for so long when they first work for a stage; stderr is a file or a pty of
# 80 columns. Writes `told`.
cat >slow.py <<'PY'
import fcntl, glob, os, pty, signal, struct, sys, termios, threading, time
seconds, stage, how, command = float(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]
pid, fd = pty.fork() if how == "pty" else (os.fork(), -1)
if pid == 0:
    if how == "file": os.dup2(os.open("told", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    os.execv(command[0], command)
if how == "pty": fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
def workers():
    try: children = open("/proc/%d/task/%d/children" % (pid, pid)).read().split()
    except OSError: return []
    return [int(c) for c in children]
def runs():
    try: return open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError: return False
def works(c): # a worker's argv[0] is its stage
    try: return os.path.basename(open("/proc/%d/cmdline" % c).read().split("\0")[0]).endswith(stage)
    except OSError: return False
def stop_and_go():
    while runs():
        found = [c for c in workers() if works(c)]
        if found: break
        time.sleep(0.0005)
    else: return
    for sig, wait in (signal.SIGSTOP, seconds), (signal.SIGCONT, 0):
        for c in found:
            try: os.kill(c, sig)
            except ProcessLookupError: pass
        time.sleep(wait)
t = threading.Thread(target=stop_and_go); t.start()
text = b""
while how == "pty":
    try: part = os.read(fd, 65536)
    except OSError: break
    if not part: break
    text += part
t.join()
status = os.waitpid(pid, 0)[1]
if how == "pty": open("told", "wb").write(text)
sys.exit(os.waitstatus_to_exitcode(status))
PY

# ---- a file: a line every few seconds, of whichever stage; it knows nothing of the time before the import is done ----
must 0 python3 slow.py 5.2 import file "$KILN_BIN/kiln" pipeline s
grep -qE '^kiln-[a-z]+: .*: [0-9]+ of [0-9]+ units, .*; stage [1-7] of 7(, bake: about [0-9]+ (s|min) left)?$' told || fail "no line of the whole: $(cat told)"
grep -q $'[\r\x1b]' told && fail "a file has a bar: $(cat -v told)"

# A worker may end before it is stopped: then another option is tried.
stopped() { # PATTERN command...: on a terminal, with --min-opacity, until what is told has PATTERN
    local pattern=$1 i
    for i in 1 2 3 4 5 6 7 8; do
        opacity=$((opacity + 1))
        must 0 python3 slow.py 0.8 prune pty "${@:2}" --min-opacity 0.$opacity
        grep -q "$pattern" told && return
    done
    fail "'$pattern' is never told: $(cat -v told)"
}
opacity=300

# ---- a terminal: a bar, and now earlier runs say how long it takes ----
stopped 'stage . of 7: .*\[' "$KILN_BIN/kiln" pipeline s
python3 - <<'PY' || fail "on a terminal: $(cat -v told)"
import re
text = open("told", "rb").read().decode()
bars = [b for b in text.split("\r\x1b[K") if "[" in b.split("\n")[0]]
assert bars, "no bar"
for b in bars:
    b = b.split("\r")[0].split("\n")[0]
    assert len(b) <= 79, (len(b), b)
    m = re.fullmatch(r"stage (\d) of 7: [a-z ]+ \[[#.]{4,24}\] +\d+%, bake: about (\d+) (s|min) left", b)
    assert m and 1 <= int(m[2]) < 120, b
PY

# ---- nothing to do, and --quiet ----
must 0 "$KILN_BIN/kiln" pipeline s
grep -qE 'stage [0-9] of|left' err && fail "nothing is done, but: $(cat err)"
must 0 python3 slow.py 0.8 prune pty "$KILN_BIN/kiln" pipeline s --min-opacity 0.25 --quiet
[ ! -s told ] || fail "--quiet tells $(cat -v told)"

# ---- a single stage has its own line alone ----
stopped units/s "$KILN_BIN/kiln-prune" s/bake/manifest.db
grep -qE 'stage [0-9]|bake:' told && fail "a single stage tells $(cat -v told)"
exit 0
