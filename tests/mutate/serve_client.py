"""serve_client -- runs kiln-serve on a manifest, asks for everything that it serves, and ends it: serve_client.py PROGRAM [options].
Prints the sentences of failed answers, so that `run` judges them like a program's. Ends with 0 if the server was still there and ended
as SIGTERM ends it, else with its exit code (128 and more: the signal that it died of)."""
import json, signal, subprocess, sys, urllib.error, urllib.request

server = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
root = server.stdout.readline().decode().strip()


def ask(path):
    try:
        with urllib.request.urlopen(root + path, timeout=100) as answer:
            return answer.read()
    except urllib.error.HTTPError as e:
        print(path, e.code, e.read().decode())
    except OSError as e:  # the server is gone, which its exit code tells
        print(path, e)
    return b"{}"


if root.startswith("http://"):
    state, cameras, chunks = (json.loads(ask(name + ".json")) for name in ("state", "cameras", "chunks"))
    ask("report.html")
    for key in [camera["key"] for camera in cameras.get("cameras", [])[:4]] + ["0" * 32]:
        for path in ("photo/%s.jpg", "picture/%s.jpg", "heat/%s.webp"):
            ask(path % key)
    for digest in {state.get("layer"), state.get("levels")} - {None}:
        for i in range(8):
            ask("splats/%s/%d.ply?sh=%d" % (digest, i, i % 4))
    server.send_signal(signal.SIGTERM)
code = server.wait(timeout=100)
sys.stdout.flush()
sys.exit(0 if code == 143 else 128 - code if code < 0 else code)
