"""The python of tests/unit/doctor.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import fcntl, json, os, struct, subprocess, sys


def healthy(text):
    r = json.loads(text)
    assert r["stage"] == "doctor" and r["status"] == "done" and r["gpus"] == [] and r["tried"] == [], r
    assert r["libraries"]["sqlite"].startswith("3.") and r["cpu"]["usable"] > 0 and r["memory"]["free_bytes"] > 0, r
    assert [f["kind"] for f in r["findings"]] == ["note"], r


def ill(text):
    r = json.loads(text)
    assert r["status"] == "failed" and "GPU 1 does not work" in r["message"] and len(r["gpus"]) == 3, r
    assert r["findings"][0]["kind"] == "ill", r


def held(path):
    fd = os.open(path, os.O_RDWR)
    fcntl.fcntl(fd, 37, struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0))  # F_OFD_SETLK
    sys.stdout.write(
        subprocess.run([os.environ["KILN_BIN"] + "/kiln-doctor", path[:-5]], capture_output=True, text=True).stdout
    )


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
