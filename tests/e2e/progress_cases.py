"""The python of tests/e2e/progress.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import fcntl, os, pty, re, signal, struct, sys, termios, threading, time


def slow(seconds_text, stage, how, *command):
    seconds, stage, how, command = float(seconds_text), stage, how, command
    pid, fd = pty.fork() if how == "pty" else (os.fork(), -1)
    if pid == 0:
        if how == "file":
            os.dup2(os.open("told", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.execv(command[0], command)
    if how == "pty":
        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

    def workers():
        try:
            children = open("/proc/%d/task/%d/children" % (pid, pid)).read().split()
        except OSError:
            return []
        return [int(c) for c in children]

    def runs():
        try:
            return open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[0] != "Z"
        except OSError:
            return False

    def works(c):  # a worker's argv[0] is its stage
        try:
            return os.path.basename(open("/proc/%d/cmdline" % c).read().split("\0")[0]).endswith(stage)
        except OSError:
            return False

    def stop_and_go():
        while runs():
            found = [c for c in workers() if works(c)]
            if found:
                break
            time.sleep(0.0005)
        else:
            return
        for sig, wait in (signal.SIGSTOP, seconds), (signal.SIGCONT, 0):
            for c in found:
                try:
                    os.kill(c, sig)
                except ProcessLookupError:
                    pass
            time.sleep(wait)

    t = threading.Thread(target=stop_and_go)
    t.start()
    text = b""
    while how == "pty":
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        text += part
    t.join()
    status = os.waitpid(pid, 0)[1]
    if how == "pty":
        open("told", "wb").write(text)
    sys.exit(os.waitstatus_to_exitcode(status))


def bar():
    text = open("told", "rb").read().decode()
    bars = [b for b in text.split("\r\x1b[K") if "[" in b.split("\n")[0]]
    assert bars, "no bar"
    for b in bars:
        b = b.split("\r")[0].split("\n")[0]
        assert len(b) <= 79, (len(b), b)
        m = re.fullmatch(r"stage (\d) of 7: [a-z ]+ \[[#.]{4,24}\] +\d+%, bake: about (\d+) (s|min) left", b)
        assert m and 1 <= int(m[2]) < 120, b


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
